//! Opening a log while still root, in a directory where somebody else may write.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, fchown};
use std::path::Path;

/// Opens `path` for appending; a file that is not there is made.
///
/// With an `owner` (user and group ids of whom the process is about to become), a file that is made
/// is theirs, so that they can open it again later, and a last component that is a symbolic link is
/// not followed: who may write to the directory could make root append to any file of the system.
///
/// # Errors
/// What the system says; for a symbolic link that is not followed, that it is one.
pub fn append(path: &Path, owner: Option<(u32, u32)>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true);
    let Some((user, group)) = owner else {
        return options.create(true).open(path);
    };
    // With O_EXCL no link is followed either, and it is certain who has made the file.
    match options.clone().create_new(true).open(path) {
        Ok(made) => {
            fchown(&made, Some(user), Some(group))?;
            return Ok(made);
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    options.custom_flags(libc::O_NOFOLLOW).open(path).map_err(|error| {
        if error.raw_os_error() == Some(libc::ELOOP) {
            let why = "it is a symbolic link, which is not followed before root has become `user`; \
                       name the file itself";
            return io::Error::new(error.kind(), why);
        }
        error
    })
}

/// Whether [`append`] would open `path`, as far as that can be told without making the file: for a
/// check before a start. Writes nothing, and does not open a pipe, whose reader would see it close.
///
/// # Errors
/// As [`append`].
pub fn check(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.file_type().is_fifo() => Ok(()),
        // A link whose target is not there: `append` would make that, or refuse to follow.
        Ok(found) if found.is_symlink() && owner.is_none() && !path.exists() => {
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
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    /// Somebody else if that can be said, which only root can.
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
    fn a_check_makes_no_file_and_says_what_is_missing() {
        let folder = std::env::temp_dir().join(format!("weir-log-check-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("access.log");
        for owner in [None, Some(owner())] {
            check(&path, owner).unwrap();
            assert!(!path.exists(), "a check makes no log");
            let kind = |path: &Path| check(path, owner).unwrap_err().kind();
            assert_eq!(kind(&folder.join("none/access.log")), io::ErrorKind::NotFound);
            assert_eq!(kind(&folder), io::ErrorKind::IsADirectory);
        }
        fs::write(&path, "kept").unwrap();
        check(&path, None).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
        assert_eq!(check(&path.join("x"), None).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        let link = folder.join("link");
        symlink(folder.join("absent"), &link).unwrap();
        check(&link, None).unwrap();
        assert!(check(&link, Some(owner())).is_err(), "not followed by root");
        assert!(!folder.join("absent").exists());
        // Nobody reads it: to open it would wait.
        let pipe = folder.join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        check(&pipe, None).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn before_root_becomes_somebody_else_no_link_is_followed() {
        let folder = std::env::temp_dir().join(format!("weir-log-link-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [precious, absent] = ["precious", "absent"].map(|name| folder.join(name));
        fs::write(&precious, "untouched").unwrap();
        for target in [&precious, &absent] {
            let link = folder.join("access.log");
            symlink(target, &link).unwrap();
            let message = append(&link, Some(owner())).unwrap_err().to_string();
            assert!(message.contains("symbolic link"), "{message}");
            // Who is nobody else's servant may use links.
            append(&link, None).unwrap();
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read_to_string(&precious).unwrap(), "untouched");
        fs::remove_dir_all(&folder).unwrap();
    }
}
