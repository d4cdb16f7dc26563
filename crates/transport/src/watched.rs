//! Descriptors other than connections (a listener, a timer, a poller), registered with the runtime.

use std::io;
use std::os::fd::AsRawFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches a descriptor for reading. `owner` must own it and keep the same one for its whole life.
/// Must be called within a runtime.
///
/// # Errors
/// The kernel has no room to watch more.
#[allow(
    deprecated,
    reason = "deprecated for types whose descriptor may change; the replacement is unsafe"
)]
pub fn watched<T: AsRawFd>(owner: T) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(owner, Interest::READABLE)
}
