//! Opens a log file, possibly while still root, in a directory that others may write to.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, fchown};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// Opens `path` for appending, and creates the file if it does not exist. Never blocks.
///
/// With an `owner` (the user and group IDs that the process is about to switch to), a created file
/// belongs to them, so that the process can reopen it later.
///
/// While the process is root, a symbolic link in the last component is not followed: a user who may
/// write to the directory could otherwise make root append to any file of the system.
///
/// # Errors
/// Anything that is neither a regular file nor a pipe (FIFO) with a reader is refused, as is a
/// symbolic link while the process is root; else the system's error.
pub fn append(path: &Path, owner: Option<(u32, u32)>) -> io::Result<File> {
    open(path, owner, follows_links(owner))
}

fn follows_links(owner: Option<(u32, u32)>) -> bool {
    owner.is_none() && !rustix::process::geteuid().is_root()
}

fn open(path: &Path, owner: Option<(u32, u32)>, follows_links: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // A blocking open of a FIFO without a reader would wait forever.
    options.append(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    if follows_links {
        return options.create(true).open(path).map_err(explained).and_then(accepted);
    }
    // O_EXCL also prevents following a link, and guarantees that this call created the file.
    match options.clone().create_new(true).open(path) {
        Ok(created) => {
            if let Some((user, group)) = owner {
                fchown(&created, Some(user), Some(group))?;
            }
            return accepted(created);
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(explained(error)),
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    options.custom_flags(flags).open(path).map_err(explained).and_then(accepted)
}

/// Accepts a regular file or a pipe. Writes to it block from here on: the log is written by a
/// thread that may wait.
fn accepted(file: File) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_fifo() {
        return Err(not_a_log());
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Describes the system's error numbers in words.
fn explained(error: io::Error) -> io::Error {
    let why = match error.raw_os_error() {
        Some(libc::ELOOP) => {
            "it is a symbolic link, which is not followed as root; name the file itself"
        }
        // Sockets and devices without a driver give the same number as a FIFO without a reader.
        Some(libc::ENXIO) => {
            "it is a pipe without a reader, or a socket; start the program that reads the pipe \
             first, or name a regular file"
        }
        Some(libc::EISDIR) => return not_a_log(),
        _ => return error,
    };
    io::Error::new(error.kind(), why)
}

fn not_a_log() -> io::Error {
    let why = "it is neither a regular file nor a pipe (write \"stdout\" for standard output, \
               \"off\" for no log)";
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Checks whether [`append`] would open `path`, as far as possible without creating the file: for a
/// check before a start. Writes nothing, and does not open a pipe, whose reader would see it close.
///
/// # Errors
/// As [`append`].
pub fn check(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.file_type().is_fifo() => Ok(()),
        // A dangling link: `append` would create its target, or refuse to follow.
        Ok(found) if found.is_symlink() && follows_links(owner) && !path.exists() => {
            let target = path.parent().unwrap_or(Path::new("")).join(path.read_link()?);
            crate::folder::takes_new_files(target.parent().unwrap_or(Path::new("")))
        }
        Ok(_) => append(path, owner).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            crate::folder::takes_new_files(path.parent().unwrap_or(Path::new("")))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::fs::{MetadataExt, symlink};

    use rustix::fs::{CWD, FileType, Mode};

    use super::*;

    /// Returns another user if possible, which needs root.
    fn owner() -> (u32, u32) {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        if user.is_root() { (65_534, 65_533) } else { (user.as_raw(), group.as_raw()) }
    }

    #[test]
    fn a_new_log_is_its_owners_and_an_old_one_is_appended_to() {
        let folder = std::env::temp_dir().join(format!("weir-log-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("access.log");
        append(&path, Some(owner())).unwrap().write_all(b"one\n").unwrap();
        let made = fs::metadata(&path).unwrap();
        assert_eq!((made.uid(), made.gid()), owner());
        append(&path, Some(owner())).unwrap().write_all(b"two\n").unwrap();
        append(&path, None).unwrap().write_all(b"three\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_check_creates_no_file_and_reports_problems() {
        let folder = std::env::temp_dir().join(format!("weir-log-check-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("access.log");
        for owner in [None, Some(owner())] {
            check(&path, owner).unwrap();
            assert!(!path.exists(), "a check makes no log");
            let kind = |path: &Path| check(path, owner).unwrap_err().kind();
            assert_eq!(kind(&folder.join("none/access.log")), io::ErrorKind::NotFound);
            assert_eq!(kind(&folder), io::ErrorKind::InvalidInput);
        }
        fs::write(&path, "kept").unwrap();
        check(&path, None).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
        assert_eq!(check(&path.join("x"), None).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        let link = folder.join("link");
        symlink(folder.join("absent"), &link).unwrap();
        assert_eq!(check(&link, None).is_ok(), follows_links(None));
        assert!(check(&link, Some(owner())).is_err(), "not followed by root");
        assert!(!folder.join("absent").exists());
        // It has no reader: opening it would block.
        let pipe = folder.join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        check(&pipe, None).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn root_follows_no_symbolic_link() {
        let folder = std::env::temp_dir().join(format!("weir-log-link-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [precious, absent] = ["precious", "absent"].map(|name| folder.join(name));
        fs::write(&precious, "untouched").unwrap();
        let is_root = rustix::process::geteuid().is_root();
        for target in [&precious, &absent] {
            let link = folder.join("access.log");
            symlink(target, &link).unwrap();
            for owner in [Some(owner()), None] {
                if owner.is_some() || is_root {
                    let message = append(&link, owner).unwrap_err().to_string();
                    assert!(message.contains("symbolic link"), "{message}");
                }
            }
            // A process without privileges may use links.
            open(&link, None, true).unwrap();
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read_to_string(&precious).unwrap(), "untouched");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn only_files_and_pipes_with_a_reader_are_logs() {
        let folder = std::env::temp_dir().join(format!("weir-log-kinds-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let socket = folder.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for owner in [Some(owner()), None] {
            for (path, said) in [
                (pipe.as_path(), "without a reader"),
                (&socket, "a socket"),
                (&folder, "neither a regular file"),
                (Path::new("/dev/null"), "neither a regular file"),
            ] {
                let message = append(path, owner).unwrap_err().to_string();
                assert!(message.contains(said), "{path:?}: {message}");
            }
        }
        let options = &mut OpenOptions::new();
        let mut reader = options.read(true).custom_flags(libc::O_NONBLOCK).open(&pipe).unwrap();
        let mut log = append(&pipe, None).unwrap();
        assert!(!fcntl_getfl(&log).unwrap().contains(OFlags::NONBLOCK));
        log.write_all(b"one\n").unwrap();
        let mut read = [0; 4];
        reader.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"one\n");
        fs::remove_dir_all(&folder).unwrap();
    }
}
