//! Reads a file that holds a secret, possibly while still root.

use std::fmt;
use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Permission bits of users other than the file's owner and group.
const OTHERS: u32 = 0o007;

/// How a path is treated whose last component is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The link is followed.
    Followed,
    /// The link is refused.
    Refused,
}

/// A secret file.
#[derive(Debug)]
pub struct Secret {
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Metadata of the file that was read.
    pub metadata: Metadata,
}

/// Why a file is not read.
#[derive(Debug)]
pub enum SecretError {
    /// The system's error.
    Unreadable(io::Error),
    /// It is a symbolic link.
    Link,
    /// It is a directory, a pipe, a device or a socket.
    NotAFile,
    /// Its mode lets other users than its owner and group read or change it.
    OthersMayReadIt,
    /// It is longer than any secret.
    TooLarge {
        /// The maximum length, in bytes.
        bytes_max: u64,
    },
}

/// Reads the file at `path`, which contains a secret of at most `bytes_max` bytes. Never blocks, as
/// opening a pipe would.
///
/// # Errors
/// When it cannot be read, is not a regular file, is larger, or other users may read or change it.
pub fn read(path: &Path, bytes_max: u64, links: Links) -> Result<Secret, SecretError> {
    let link_flag = match links {
        Links::Followed => 0,
        Links::Refused => libc::O_NOFOLLOW,
    };
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC | link_flag);
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) if links == Links::Refused => SecretError::Link,
        // A socket, or a device without a driver.
        Some(libc::ENXIO) => SecretError::NotAFile,
        _ => SecretError::Unreadable(error),
    })?;
    // Read from the open file: the path may name another one by now.
    let metadata = file.metadata().map_err(SecretError::Unreadable)?;
    if !metadata.is_file() {
        return Err(SecretError::NotAFile);
    }
    if metadata.mode() & OTHERS != 0 {
        return Err(SecretError::OthersMayReadIt);
    }
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(SecretError::Unreadable)?;
    if bytes.len() as u64 > bytes_max {
        return Err(SecretError::TooLarge { bytes_max });
    }
    Ok(Secret { bytes, metadata })
}

impl SecretError {
    /// Returns the remedy for the file at `path`, if there is one.
    pub fn remedy(&self, path: &Path) -> Option<String> {
        match self {
            SecretError::Link => Some("name the file itself".to_owned()),
            SecretError::OthersMayReadIt => {
                Some(format!("`chmod 600 {}` keeps them out", path.display()))
            }
            _ => None,
        }
    }

    /// Returns one line about the file at `path`, a `what` such as "token file": what is wrong with
    /// it, and the remedy.
    pub fn line(&self, what: &str, path: &Path) -> String {
        let shown = path.display();
        let said = match self {
            SecretError::Unreadable(source) => format!("cannot read the {what} {shown}: {source}"),
            SecretError::OthersMayReadIt => {
                format!("other users of this machine may read or change the {what} {shown}")
            }
            other => format!("the {what} {shown} {other}"),
        };
        match self.remedy(path) {
            Some(remedy) => format!("{said}; {remedy}"),
            None => said,
        }
    }
}

/// Displays the predicate of a sentence whose subject is the file.
impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretError::Unreadable(source) => write!(f, "cannot be read: {source}"),
            SecretError::Link => f.write_str("is a symbolic link, which is not followed"),
            SecretError::NotAFile => f.write_str("is not a regular file"),
            SecretError::OthersMayReadIt => {
                f.write_str("may be read or changed by other users of this machine")
            }
            SecretError::TooLarge { bytes_max } => write!(f, "has more than {bytes_max} bytes"),
        }
    }
}

impl std::error::Error for SecretError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SecretError::Unreadable(source) => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    /// Creates a file with these bytes and this mode in a new directory.
    fn file(name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("weir-secret-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_regular_file_of_its_owner_and_group_is_read() {
        for mode in [0o600, 0o640, 0o400] {
            let path = file(&format!("mode-{mode:o}"), b"secret", mode);
            assert_eq!(read(&path, 6, Links::Refused).unwrap().bytes, b"secret");
        }
    }

    #[test]
    fn everything_else_is_refused_in_one_line() {
        let real = file("real", b"secret", 0o600);
        let link = real.with_file_name("link");
        let _ = fs::remove_file(&link);
        symlink(&real, &link).unwrap();
        let pipe = real.with_file_name("pipe");
        let _ = fs::remove_file(&pipe);
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let folder = real.parent().unwrap().to_path_buf();
        for (path, bytes_max, said) in [
            (file("others-read", b"secret", 0o604), 6, "`chmod 600 "),
            (file("others-write", b"secret", 0o602), 6, "other users of this machine"),
            (link.clone(), 6, "is a symbolic link, which is not followed; name the file itself"),
            (pipe, 6, "is not a regular file"),
            (folder.clone(), 6, "is not a regular file"),
            (PathBuf::from("/dev/zero"), 6, "is not a regular file"),
            (real, 5, "has more than 5 bytes"),
            (folder.join("absent"), 5, "cannot read the key file"),
        ] {
            let message =
                read(&path, bytes_max, Links::Refused).unwrap_err().line("key file", &path);
            assert!(message.contains(said), "{message}");
            assert_eq!(message.lines().count(), 1);
        }
        assert_eq!(read(&link, 6, Links::Followed).unwrap().bytes, b"secret");
        fs::remove_dir_all(folder).unwrap();
    }
}
