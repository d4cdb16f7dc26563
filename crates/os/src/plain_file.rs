//! Reads a file that a person named: never waits, and never reads more than a bound. Replaces a file of our
//! own as a whole.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads the file at `path`, following links. At most `bytes_max + 1` bytes of it are read: the caller
/// recognises a larger file by its length. Never blocks, as opening a pipe would.
///
/// # Errors
/// When it cannot be read, or is no regular file.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<(Vec<u8>, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC);
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        // A socket, or a device without a driver.
        Some(libc::ENXIO) => not_a_file(),
        _ => error,
    })?;
    // Asked of the open file: the path may name another one by now.
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(not_a_file());
    }
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes, metadata))
}

/// Replaces the file at `path`, so that after a crash it has either the old or the new contents, readable by
/// its owner only. `new`, in the same directory, is written first; no other thread or process may use that name.
///
/// # Errors
/// When it cannot be written; the file at `path` is as before then.
pub fn replace(path: &Path, new: &Path, contents: &[u8]) -> io::Result<()> {
    // Left over from a crash.
    match std::fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // O_EXCL also refuses to follow a link.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    let written = file.write_all(contents).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| std::fs::rename(new, path)) {
        let _ = std::fs::remove_file(new);
        return Err(error);
    }
    // The rename itself is on disk once the directory is.
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_file_is_refused_at_once() {
        let folder = std::env::temp_dir().join(format!("weir-plain-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let socket = folder.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [&folder, &pipe, &socket, Path::new("/dev/zero")] {
            assert_eq!(read(path, 10).unwrap_err().to_string(), "not a file", "{}", path.display());
        }
        let file = folder.join("file");
        std::fs::write(&file, "0123456789").unwrap();
        assert_eq!(read(&file, 10).unwrap().0.len(), 10);
        assert_eq!(read(&file, 3).unwrap().0.len(), 4, "more than the bound");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
