//! A listening Unix socket to which only its owner can connect at any time. Replaces a file left behind
//! by a crash, but never the socket of a running balancer.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Only the owner may connect.
const MODE: u32 = 0o600;

/// Listen backlog.
const BACKLOG: i32 = 128;

/// A listening socket and its file.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    file: FileId,
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
}

impl UnixSocket {
    /// Listens at `path`, with a file that only `owner` (user and group ids; `None`: the current user)
    /// may use. Replaces a stale socket atomically; leaves a socket on which a process listens, and a
    /// file of another kind, alone.
    ///
    /// # Errors
    /// A process listens there, a file of another kind exists there, or the system refuses.
    pub fn bind(path: &Path, owner: Option<(u32, u32)>) -> Result<UnixSocket, UnixError> {
        let error = |why| UnixError { path: path.to_path_buf(), why };
        let failed = |source| error(Why::Failed(source));
        refuse_unless_stale(path).map_err(error)?;

        // Created under another name, so that it can replace a stale socket and has its permissions
        // before it has its final name.
        let new = with_suffix(path, ".new");
        match fs::symlink_metadata(&new) {
            Ok(left) if left.file_type().is_socket() => fs::remove_file(&new).map_err(failed)?,
            Ok(_) => return Err(UnixError { path: new, why: Why::NotASocket }),
            Err(_) => {}
        }
        let socket = bound(&new).map_err(failed)?;
        let listening = || -> io::Result<FileId> {
            let file = give_to(&new, owner)?;
            rustix::net::listen(&socket, BACKLOG)?;
            fs::rename(&new, path)?;
            Ok(file)
        };
        match listening() {
            Ok(file) => {
                let listener = UnixListener::from(socket);
                Ok(UnixSocket { listener, path: path.to_path_buf(), file })
            }
            Err(source) => {
                // It is ours and useless; failing to remove it changes nothing.
                let _ = fs::remove_file(&new);
                Err(failed(source))
            }
        }
    }

    /// Checks whether [`UnixSocket::bind`] would succeed, without binding. A socket on which a process
    /// listens is accepted: it may belong to the running balancer.
    pub(crate) fn check(path: &Path) -> Result<(), UnixError> {
        let error = |why| UnixError { path: path.to_path_buf(), why };
        match refuse_unless_stale(path) {
            Ok(()) | Err(Why::InUse) => {}
            Err(why) => return Err(error(why)),
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        os::folder::takes_new_files(folder).map_err(|source| error(Why::Failed(source)))
    }

    /// Uses a socket that another process bound to `path` and handed over.
    ///
    /// # Errors
    /// The file at `path` does not exist any more.
    pub fn adopt(socket: OwnedFd, path: &Path) -> io::Result<UnixSocket> {
        let file = FileId::of(&fs::symlink_metadata(path)?);
        Ok(UnixSocket { listener: UnixListener::from(socket), path: path.to_path_buf(), file })
    }

    /// Returns the listening socket, and the file to remove at the end.
    pub(crate) fn into_parts(self) -> (UnixListener, SocketFile) {
        (self.listener, SocketFile { path: self.path, file: self.file })
    }
}

impl AsFd for UnixSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// A socket's file, while the socket is in use.
#[derive(Debug)]
pub(crate) struct SocketFile {
    pub(crate) path: PathBuf,
    file: FileId,
}

impl SocketFile {
    /// Removes the file, unless another socket has replaced it.
    pub(crate) fn remove(self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| FileId::of(&metadata) == self.file);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            // The next start replaces it.
            tracing::debug!(%error, path = %self.path.display(), "the socket's file stays");
        }
    }
}

fn open() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Binds a socket to `path`; its file has the final permissions from the start.
fn bound(path: &Path) -> io::Result<OwnedFd> {
    let socket = open()?;
    // Linux creates the file with the socket's mode. Changing it afterwards by name could affect another
    // file.
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(MODE))?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// Changes the owner of the socket's file. If the directory belongs to another user, that user can
/// replace the file at any time: no link is followed, and other kinds of files are left alone.
fn give_to(path: &Path, owner: Option<(u32, u32)>) -> io::Result<FileId> {
    let file =
        rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let file = fs::File::from(file);
    let metadata = file.metadata()?;
    if !metadata.file_type().is_socket() {
        return Err(io::Error::other("another file has taken its place"));
    }
    if let Some((user, group)) = owner {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        rustix::fs::chownat(&file, c"", Some(user), Some(group), AtFlags::EMPTY_PATH)?;
    }
    Ok(FileId::of(&metadata))
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
                "cannot listen on unix:{path}: a file with that name exists that is not a socket; move it away"
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
            Why::Failed(source) => Some(source),
            Why::InUse | Why::NotASocket => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::testing::Directory;

    #[test]
    fn a_check_binds_nothing_and_says_what_is_missing() {
        let directory = Directory::new("unix-check");
        let path = directory.path("admin.sock");
        UnixSocket::check(&path).unwrap();
        assert!(!path.exists());
        let missing = UnixSocket::check(&directory.path("none/admin.sock")).unwrap_err();
        assert!(missing.to_string().contains("; make the directory "), "{missing}");
        let _running = UnixSocket::bind(&path, None).unwrap();
        UnixSocket::check(&path).unwrap();
        let file = directory.path("file");
        fs::write(&file, "kept").unwrap();
        let taken = UnixSocket::check(&file).unwrap_err();
        assert!(taken.to_string().contains("that is not a socket"), "{taken}");
    }

    #[test]
    fn at_no_moment_may_others_connect() {
        let directory = Directory::new("unix-mode");
        let path = directory.path("admin.sock");
        let _socket = bound(&path).unwrap();
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
        // Whom only root could give it to; and for anybody else, it is theirs already.
        let other_owner = Some((65_534, 65_534)).filter(|_| rustix::process::geteuid().is_root());
        for path in [&link, &precious] {
            let message = give_to(path, other_owner).unwrap_err().to_string();
            assert!(message.contains("has taken its place"), "{message}");
        }
        let after = fs::metadata(&precious).unwrap();
        assert_eq!((after.uid(), after.mode()), (before.uid(), before.mode()));
        // What it is meant for.
        let socket = directory.path("socket");
        let _socket = bound(&socket).unwrap();
        give_to(&socket, other_owner).unwrap();
        let owner = fs::metadata(&socket).unwrap().uid();
        assert_eq!(owner, other_owner.map_or(before.uid(), |(user, _)| user));
    }

    #[test]
    fn its_owner_alone_may_connect_and_its_file_goes_with_it() {
        let directory = Directory::new("unix");
        let path = directory.path("admin.sock");
        let (listener, file) = UnixSocket::bind(&path, None).unwrap().into_parts();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        UnixStream::connect(&path).unwrap();
        drop(listener);
        file.remove();
        assert!(!path.exists());
        assert_eq!(fs::read_dir(directory.path("")).unwrap().count(), 0);
    }

    #[test]
    fn what_a_crash_left_is_replaced_and_what_lives_is_not() {
        let directory = Directory::new("unix-stale");
        let path = directory.path("admin.sock");
        drop(UnixSocket::bind(&path, None).unwrap());
        assert!(path.exists(), "as after a crash");
        let second = UnixSocket::bind(&path, None).unwrap();

        let error = UnixSocket::bind(&path, None).unwrap_err();
        assert!(error.is_address_in_use());
        assert!(error.to_string().contains("ss -lxp"), "{error}");
        UnixStream::connect(&path).unwrap();
        // The first one's file is not the second one's to keep.
        let (_listener, file) = second.into_parts();
        fs::remove_file(&path).unwrap();
        let third = UnixSocket::bind(&path, None).unwrap();
        file.remove();
        assert!(path.exists(), "the third's file is not removed by the second");
        drop(third);
    }

    #[test]
    fn files_of_other_kinds_are_left_alone() {
        let directory = Directory::new("unix-file");
        let path = directory.path("admin.sock");
        fs::write(&path, "precious").unwrap();
        let message = UnixSocket::bind(&path, None).unwrap_err().to_string();
        assert!(message.contains("move it away"), "{message}");
        fs::remove_file(&path).unwrap();
        fs::write(directory.path("admin.sock.new"), "precious").unwrap();
        let message = UnixSocket::bind(&path, None).unwrap_err().to_string();
        assert!(message.contains("admin.sock.new"), "{message}");
        let nowhere = directory.path("none/admin.sock");
        let message = UnixSocket::bind(&nowhere, None).unwrap_err().to_string();
        assert!(message.ends_with("/none"), "{message}");
    }
}
