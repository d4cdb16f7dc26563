//! The lock of the state directory.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

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
