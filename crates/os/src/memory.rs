//! Memory of this process.

#![allow(unsafe_code, reason = "malloc_trim has no safe wrapper")]

/// Returns memory that this process has freed to the system, as far as the C library's allocator
/// still holds it: much of it after a large configuration has been read. Takes milliseconds for
/// 100 MB; threads that allocate or free meanwhile may wait. Does nothing with other C libraries
/// than glibc.
pub fn release_freed() {
    #[cfg(target_env = "gnu")]
    // SAFETY: `malloc_trim` may be called at any time from any thread; it takes no pointer.
    unsafe {
        libc::malloc_trim(0);
    }
}
