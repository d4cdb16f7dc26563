//! Files of the state directory: replaced as a whole, and readable by their owner only.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Replaces the file at `path`: after a crash it has either the old or the new contents. The
/// caller holds the directory's [`Lock`].
pub(super) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let new = path.with_added_extension("new");
    // Left over from a crash.
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // O_EXCL also refuses to follow a link.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = file.write_all(contents).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| std::fs::rename(&new, path)) {
        let _ = std::fs::remove_file(&new);
        return Err(error);
    }
    // The rename itself is on disk once the directory is.
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// The right to order certificates and to write into the directory. It ends when it is dropped,
/// and also with the process.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Locked while it is open.
    _file: File,
}

/// Locks the file at `path`, which exists; `None`: another process holds the lock.
pub(super) fn lock(path: &Path) -> io::Result<Option<Lock>> {
    // Opened each time, because a lock belongs to the open file: two in one process exclude
    // each other, too.
    let file = File::open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Lock { _file: file })),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
