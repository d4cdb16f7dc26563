//! Descriptors that are no connection (a listener, a timer, a poller), watched by the runtime.

use std::io;
use std::os::fd::AsRawFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Watches a descriptor for reading. `owner` must own it and keep the same one for its whole life. To
/// be called within a runtime.
///
/// # Errors
/// When the kernel has no room for more to watch.
#[allow(
    deprecated,
    reason = "deprecated for types whose descriptor may change; the replacement is unsafe"
)]
pub fn watched<T: AsRawFd>(owner: T) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(owner, Interest::READABLE)
}
