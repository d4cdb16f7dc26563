//! A listening Unix socket. At no moment do others have access to its file than those that it is meant
//! for. Replaces a file left behind by a crash, but never the socket of a running process.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use model::UnixPath;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::listen::clamped;

/// Who may connect to a Unix socket (unix(7): those that may write to its file).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Permission bits of its file.
    pub mode: u32,
    /// User that owns its file; `None`: that of the process.
    pub user: Option<u32>,
    /// Group of its file; `None`: that of the process.
    pub group: Option<u32>,
}

impl Access {
    fn user(self) -> u32 {
        self.user.unwrap_or_else(|| rustix::process::geteuid().as_raw())
    }

    fn group(self) -> u32 {
        self.group.unwrap_or_else(|| rustix::process::getegid().as_raw())
    }
}

/// A listening socket and its file.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    file: SocketFile,
}

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(metadata: &Metadata) -> FileId {
        FileId { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Returns whether the file of this name is this one.
    fn is_of(self, name: &Path) -> bool {
        fs::symlink_metadata(name).is_ok_and(|metadata| FileId::of(&metadata) == self)
    }
}

/// A listening socket whose file does not have its name yet: no client can connect, and what has the name
/// still has it.
#[derive(Debug)]
pub struct NewSocket {
    /// Non-blocking, close-on-exec.
    pub listener: UnixListener,
    /// Its file.
    pub file: NewFile,
}

/// The file of a [`NewSocket`]. Dropping it removes it, unless it was published.
#[derive(Debug)]
pub struct NewFile {
    file: SocketFile,
    /// Its name until it is published.
    name: Option<PathBuf>,
    /// The file that it may replace although a process listens.
    replaced: Option<SocketFile>,
}

impl NewSocket {
    /// Listens for `path`, with room for `backlog` connections that are not accepted yet (the kernel
    /// grants at most net.core.somaxconn). It will replace a stale socket; a socket on which a process
    /// listens is left alone, unless it is `replaced`, and so is a file of another kind.
    ///
    /// # Errors
    /// A process listens there, a file of another kind exists there, or the system refuses.
    pub fn bind(
        path: UnixPath,
        access: Access,
        backlog: u32,
        replaced: Option<SocketFile>,
    ) -> Result<NewSocket, UnixError> {
        let error = |why| UnixError { path: path.as_path().to_path_buf(), why };
        let failed = |source| error(Why::Failed(source));
        if !replaced.is_some_and(SocketFile::exists) {
            refuse_unless_stale(path.as_path()).map_err(error)?;
        }
        let name = with_suffix(path.as_path(), ".new");
        match refuse_unless_stale(&name) {
            // A crash has left it, or nothing is there.
            Ok(()) => drop(fs::remove_file(&name)),
            Err(why) => return Err(UnixError { path: name, why }),
        }
        let socket = bound(&name, access.mode).map_err(failed)?;
        let given = give_to(&name, access, None).map_err(Why::NotGiven);
        let listening = given.and_then(|id| {
            rustix::net::listen(&socket, clamped(backlog))
                .map_err(|errno| Why::Failed(errno.into()))?;
            Ok(id)
        });
        match listening {
            Ok(id) => Ok(NewSocket {
                listener: UnixListener::from(socket),
                file: NewFile { file: SocketFile { path, id }, name: Some(name), replaced },
            }),
            Err(why) => {
                // It is ours and useless; failing to remove it changes nothing.
                let _ = fs::remove_file(&name);
                Err(error(why))
            }
        }
    }
}

impl NewFile {
    /// Returns the file as it will be.
    pub fn file(&self) -> SocketFile {
        self.file
    }

    /// Gives the file its name, atomically: from now on clients connect to the socket.
    ///
    /// # Errors
    /// The system refuses.
    pub fn publish(mut self) -> Result<SocketFile, UnixError> {
        let path = self.file.path.as_path();
        if let Some(name) = &self.name {
            let error = |why| UnixError { path: path.to_path_buf(), why };
            if !self.file.id.is_of(name) {
                return Err(error(Why::Failed(io::Error::other("its file has been replaced"))));
            }
            // Another process may have been as fast.
            if !self.replaced.is_some_and(SocketFile::exists) {
                refuse_unless_stale(path).map_err(error)?;
            }
            fs::rename(name, path).map_err(|source| error(Why::Failed(source)))?;
        }
        self.name = None;
        Ok(self.file)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name
            && self.file.id.is_of(name)
        {
            // The next socket with this name replaces what stays.
            let _ = fs::remove_file(name);
        }
    }
}

impl UnixSocket {
    /// Listens at `path`; see [`NewSocket::bind`].
    ///
    /// # Errors
    /// As [`NewSocket::bind`].
    pub fn bind(path: UnixPath, access: Access, backlog: u32) -> Result<UnixSocket, UnixError> {
        let NewSocket { listener, file } = NewSocket::bind(path, access, backlog, None)?;
        Ok(UnixSocket { listener, file: file.publish()? })
    }

    /// Checks what is at `path`, and whether its directory takes new files, without binding. A socket on
    /// which a process listens is accepted: it may belong to the running balancer.
    ///
    /// # Errors
    /// As [`NewSocket::bind`].
    pub fn check(path: UnixPath) -> Result<(), UnixError> {
        let error = |why| UnixError { path: path.as_path().to_path_buf(), why };
        match refuse_unless_stale(path.as_path()) {
            Ok(()) | Err(Why::InUse) => {}
            Err(why) => return Err(error(why)),
        }
        let new = with_suffix(path.as_path(), ".new");
        refuse_unless_stale(&new).map_err(|why| UnixError { path: new.clone(), why })?;
        let folder = path.as_path().parent().unwrap_or(Path::new(""));
        crate::folder::takes_new_files(folder).map_err(|source| error(Why::Failed(source)))
    }

    /// Uses a socket that another process bound to `path` and handed over.
    ///
    /// # Errors
    /// The file at `path` does not exist any more.
    pub fn adopt(socket: OwnedFd, path: UnixPath) -> io::Result<UnixSocket> {
        let id = FileId::of(&fs::symlink_metadata(path.as_path())?);
        Ok(UnixSocket { listener: UnixListener::from(socket), file: SocketFile { path, id } })
    }

    /// Returns the listening socket, and the file to remove at the end.
    pub fn into_parts(self) -> (UnixListener, SocketFile) {
        (self.listener, self.file)
    }
}

impl AsFd for UnixSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// A socket's file, while the socket is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketFile {
    path: UnixPath,
    id: FileId,
}

impl SocketFile {
    /// Returns the file that another process has made: its path, and the numbers of
    /// [`SocketFile::device_and_inode`].
    pub fn of(path: UnixPath, (device, inode): (u64, u64)) -> SocketFile {
        SocketFile { path, id: FileId { device, inode } }
    }

    /// Returns the numbers that tell it from every other file.
    pub fn device_and_inode(self) -> (u64, u64) {
        (self.id.device, self.id.inode)
    }

    /// Returns whether it still has its name, and these permissions and owners.
    pub fn has(self, access: Access) -> bool {
        fs::symlink_metadata(self.path.as_path()).is_ok_and(|metadata| {
            FileId::of(&metadata) == self.id
                && metadata.mode() & 0o777 == access.mode
                && (metadata.uid(), metadata.gid()) == (access.user(), access.group())
        })
    }

    /// Changes who may connect from now on; connections stay.
    ///
    /// # Errors
    /// The file has been replaced, or the system refuses.
    pub fn change(self, access: Access) -> io::Result<()> {
        give_to(self.path.as_path(), access, Some(self.id)).map(drop)
    }

    /// Returns its path.
    pub fn path(self) -> UnixPath {
        self.path
    }

    /// Returns whether it still has its name: no other file has replaced it.
    pub fn exists(self) -> bool {
        self.id.is_of(self.path.as_path())
    }

    /// Removes the file, unless another one has replaced it.
    ///
    /// # Errors
    /// The system refuses. The next start replaces the file.
    pub fn remove(self) -> io::Result<()> {
        if self.exists() { fs::remove_file(self.path.as_path()) } else { Ok(()) }
    }

    /// As [`SocketFile::remove`], once this process no longer listens on the socket; not if another one
    /// does.
    ///
    /// # Errors
    /// As [`SocketFile::remove`].
    pub fn remove_if_unused(self) -> io::Result<()> {
        match refuse_unless_stale(self.path.as_path()) {
            Ok(()) => self.remove(),
            Err(_) => Ok(()),
        }
    }
}

fn open() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Binds a socket to `path`; its file never has more than these permissions.
fn bound(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let socket = open()?;
    // Linux creates the file with the socket's mode, less the umask.
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Gives the socket's file its owners and permissions, of which the umask may have withheld some. At no
/// moment may others connect than before and afterwards. If the directory belongs to another user, that user
/// can replace the file at any time: no link is followed, and other kinds of files are left alone, as is
/// any file but the one that is `expected`.
fn give_to(path: &Path, access: Access, expected: Option<FileId>) -> io::Result<FileId> {
    let file =
        rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let file = fs::File::from(file);
    let metadata = file.metadata()?;
    let id = FileId::of(&metadata);
    if !metadata.file_type().is_socket() || expected.is_some_and(|expected| expected != id) {
        return Err(io::Error::other("another file has taken its place"));
    }
    let set_mode = |mode: u32| {
        // chmod(2) by a descriptor that may not read the file: only by this name.
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        fs::set_permissions(name, fs::Permissions::from_mode(mode))
    };
    let mode = metadata.mode() & 0o777;
    let (user, group) = (access.user(), access.group());
    if (user, group) != (metadata.uid(), metadata.gid()) {
        if mode & access.mode != mode {
            set_mode(mode & access.mode)?;
        }
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        rustix::fs::chownat(&file, c"", Some(user), Some(group), AtFlags::EMPTY_PATH)?;
    }
    if file.metadata()?.mode() & 0o777 != access.mode {
        set_mode(access.mode)?;
    }
    Ok(id)
}

/// Checks that nothing is at `path`, or a socket on which no process listens.
fn refuse_unless_stale(path: &Path) -> Result<(), Why> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Why::Failed(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => return Err(Why::NotASocket),
        Ok(_) => {}
    }
    let asked = || -> Result<(), Errno> {
        let address = SocketAddrUnix::new(path)?;
        rustix::net::connect(open()?, &address)
    };
    match asked() {
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(()),
        // Its queue is full, so a process listens.
        Ok(()) | Err(Errno::AGAIN) => Err(Why::InUse),
        Err(Errno::ACCESS) => Err(Why::NotTested),
        // Of datagrams, for instance.
        Err(Errno::PROTOTYPE) => Err(Why::NotASocket),
        Err(error) => Err(Why::Failed(error.into())),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Why listening on a Unix socket failed. Prints as one line.
#[derive(Debug)]
pub struct UnixError {
    path: PathBuf,
    why: Why,
}

#[derive(Debug)]
enum Why {
    InUse,
    NotASocket,
    /// This user may not connect, so it is unknown whether a process listens.
    NotTested,
    /// Its file could not be given to its user and group.
    NotGiven(io::Error),
    Failed(io::Error),
}

impl UnixError {
    /// Returns whether another program listens there.
    pub fn is_address_in_use(&self) -> bool {
        matches!(self.why, Why::InUse)
    }
}

impl fmt::Display for UnixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.why {
            Why::InUse => write!(
                f,
                "cannot listen on unix:{path}: another program does already; `ss -lxp src {path}` \
                 shows which"
            ),
            Why::NotASocket => write!(
                f,
                "cannot listen on unix:{path}: a file with that name exists that is not a stream socket; move it away"
            ),
            Why::NotTested => write!(
                f,
                "cannot listen on unix:{path}: a socket is there to which this user may not connect, so \
                 that another program may listen on it; remove it if none does"
            ),
            Why::NotGiven(source) => write!(
                f,
                "cannot listen on unix:{path}: its file cannot be given to its user and group: {source}; \
                 only root can give it to groups that this user is not in"
            ),
            Why::Failed(source) => {
                write!(f, "cannot listen on unix:{path}: {source}")?;
                match (source.kind(), self.path.parent()) {
                    (io::ErrorKind::NotFound, Some(directory)) => {
                        write!(f, "; make the directory {}", directory.display())
                    }
                    (io::ErrorKind::PermissionDenied, Some(directory)) => {
                        write!(f, "; this user must be able to write to {}", directory.display())
                    }
                    _ => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for UnixError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.why {
            Why::NotGiven(source) | Why::Failed(source) => Some(source),
            Why::InUse | Why::NotASocket | Why::NotTested => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    const MODE: u32 = 0o640;
    const ACCESS: Access = Access { mode: MODE, user: None, group: None };

    /// A new directory, removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let (process, next) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
            let path = std::env::temp_dir().join(format!("weir-{name}-{process}-{next}"));
            fs::create_dir(&path).unwrap();
            Directory(path)
        }

        fn path(&self, name: &str) -> PathBuf {
            if name.is_empty() { self.0.clone() } else { self.0.join(name) }
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn unix(path: &Path) -> UnixPath {
        UnixPath::new(path.to_str().unwrap()).unwrap()
    }

    fn bind(path: &Path) -> Result<UnixSocket, UnixError> {
        UnixSocket::bind(unix(path), ACCESS, 128)
    }

    #[test]
    fn a_check_binds_nothing_and_says_what_is_missing() {
        let directory = Directory::new("unix-check");
        let path = directory.path("admin.sock");
        UnixSocket::check(unix(&path)).unwrap();
        assert!(!path.exists());
        let missing = UnixSocket::check(unix(&directory.path("none/admin.sock"))).unwrap_err();
        assert!(missing.to_string().contains("; make the directory "), "{missing}");
        let _running = bind(&path).unwrap();
        UnixSocket::check(unix(&path)).unwrap();
        let file = directory.path("file");
        fs::write(&file, "kept").unwrap();
        let taken = UnixSocket::check(unix(&file)).unwrap_err();
        assert!(taken.to_string().contains("that is not a stream socket"), "{taken}");
    }

    #[test]
    fn at_no_moment_may_others_connect() {
        let directory = Directory::new("unix-mode");
        let path = directory.path("admin.sock");
        let _socket = bound(&path, MODE).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
    }

    #[test]
    fn what_takes_its_place_is_left_alone() {
        let directory = Directory::new("unix-swapped");
        let (precious, link) = (directory.path("precious"), directory.path("admin.sock.new"));
        fs::write(&precious, "precious").unwrap();
        fs::set_permissions(&precious, fs::Permissions::from_mode(0o640)).unwrap();
        let before = fs::metadata(&precious).unwrap();
        symlink(&precious, &link).unwrap();
        // Only root can give a file to another user.
        let other = Some(65_534).filter(|_| rustix::process::geteuid().is_root());
        let other_owner = Access { user: other, group: other, ..ACCESS };
        for path in [&link, &precious] {
            let message = give_to(path, other_owner, None).unwrap_err().to_string();
            assert!(message.contains("has taken its place"), "{message}");
        }
        let after = fs::metadata(&precious).unwrap();
        assert_eq!((after.uid(), after.mode()), (before.uid(), before.mode()));
        // What it is meant for.
        let socket = directory.path("socket");
        let _socket = bound(&socket, MODE).unwrap();
        give_to(&socket, other_owner, None).unwrap();
        let owner = fs::metadata(&socket).unwrap().uid();
        assert_eq!(owner, other.unwrap_or(before.uid()));
    }

    #[test]
    fn its_owner_alone_may_connect_and_its_file_goes_with_it() {
        let directory = Directory::new("unix");
        let path = directory.path("admin.sock");
        let (listener, file) = bind(&path).unwrap().into_parts();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        UnixStream::connect(&path).unwrap();
        drop(listener);
        file.remove().unwrap();
        assert!(!path.exists());
        assert_eq!(fs::read_dir(directory.path("")).unwrap().count(), 0);
    }

    #[test]
    fn what_a_crash_left_is_replaced_and_what_lives_is_not() {
        let directory = Directory::new("unix-stale");
        let path = directory.path("admin.sock");
        drop(bind(&path).unwrap());
        assert!(path.exists(), "as after a crash");
        let second = bind(&path).unwrap();

        let error = bind(&path).unwrap_err();
        assert!(error.is_address_in_use());
        assert!(error.to_string().contains("ss -lxp"), "{error}");
        UnixStream::connect(&path).unwrap();
        // The first one's file is not the second one's to keep.
        let (_listener, file) = second.into_parts();
        fs::remove_file(&path).unwrap();
        let third = bind(&path).unwrap();
        file.remove().unwrap();
        assert!(path.exists(), "the third's file is not removed by the second");
        drop(third);
    }

    #[test]
    fn files_of_other_kinds_are_left_alone() {
        let directory = Directory::new("unix-file");
        let path = directory.path("admin.sock");
        fs::write(&path, "precious").unwrap();
        let message = bind(&path).unwrap_err().to_string();
        assert!(message.contains("move it away"), "{message}");
        fs::remove_file(&path).unwrap();
        fs::write(directory.path("admin.sock.new"), "precious").unwrap();
        let message = bind(&path).unwrap_err().to_string();
        assert!(message.contains("admin.sock.new"), "{message}");
        let nowhere = directory.path("none/admin.sock");
        let message = bind(&nowhere).unwrap_err().to_string();
        assert!(message.ends_with("/none"), "{message}");
    }

    #[test]
    fn its_own_socket_can_be_replaced_and_handed_over_unless_its_access_changes() {
        let directory = Directory::new("unix-replaced");
        let path = directory.path("http.sock");
        let first = bind(&path).unwrap();
        let waiting = UnixStream::connect(&path).unwrap();
        let wider = Access { mode: 0o666, ..ACCESS };
        let (old, file) = first.into_parts();
        let replaced = || NewSocket::bind(unix(&path), wider, 128, Some(file));
        // One that is not published changes nothing.
        drop(replaced().unwrap());
        assert!(file.has(ACCESS));
        assert_eq!(fs::read_dir(directory.path("")).unwrap().count(), 1);
        let second = replaced().unwrap();
        assert!(file.has(ACCESS));
        second.file.publish().unwrap();
        let second = second.listener;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
        old.accept().unwrap();
        drop(waiting);
        file.remove().unwrap();
        UnixStream::connect(&path).unwrap();
        // The first socket's file has no claim on the second's.
        let again = replaced().unwrap_err();
        assert!(again.is_address_in_use(), "{again}");

        let descriptor = || second.try_clone().map(OwnedFd::from).unwrap();
        let (_, adopted) = UnixSocket::adopt(descriptor(), unix(&path)).unwrap().into_parts();
        assert_eq!(SocketFile::of(unix(&path), adopted.device_and_inode()), adopted);
        assert!(adopted.has(wider) && !adopted.has(ACCESS));
        adopted.change(ACCESS).unwrap();
        assert!(adopted.has(ACCESS));
        assert!(file.change(wider).is_err(), "the first one's file is gone");
        // It stays as long as a process listens.
        adopted.remove_if_unused().unwrap();
        assert!(adopted.exists());
        drop(second);
        adopted.remove_if_unused().unwrap();
        assert!(!adopted.exists());
    }
}
