//! The atomics, fences and locks that `limits`, `queue`, `admission` and `live` share between
//! threads: the standard library's, or with `--cfg loom` those of loom.
//!
//! Loom runs the threads of a test in every order and lets a load return each value that the memory
//! model allows (see `tests/orders.rs`). `Arc` and `Weak` stay the standard library's: loom has no
//! `Weak`, and no proof here depends on the order of drops. Loom does not see the accesses of
//! `arc_swap`, so with loom [`ArcSwap`] is a wrapper that marks each access as one that other
//! threads' accesses may come before or after.
//!
//! The four fences that prevent lost wake-ups are named here ([`Fence`]), so that a test can
//! remove one and check that the proof fails.

/// Where a sequentially consistent fence separates a write from a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fence {
    /// A count was lowered; then the thread checks for waiting requests.
    Freed,
    /// A request joined the queue; then it checks for a free slot.
    Joined,
    /// The number of slots allowed changed; then the thread checks for waiting requests.
    Allowed,
    /// The servers changed; then the thread checks for waiting requests.
    Changed,
}

#[cfg(not(loom))]
mod imp {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
    pub(crate) use std::sync::{Mutex, MutexGuard};

    pub(crate) use arc_swap::ArcSwap;

    /// A sequentially consistent fence.
    #[inline]
    pub(crate) fn fence(_: super::Fence) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
}

#[cfg(loom)]
mod imp {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
    pub(crate) use loom::sync::{Mutex, MutexGuard};

    thread_local! {
        /// The fence to weaken, and to which ordering; `None`: remove it. Loom runs all threads of
        /// a test as coroutines of the calling thread.
        static FAULT: Cell<Option<(super::Fence, Option<Ordering>)>> = const { Cell::new(None) };
    }

    /// Weakens a fence for the rest of this test.
    pub(crate) fn weaken(fence: super::Fence, to: Option<Ordering>) {
        FAULT.set(Some((fence, to)));
    }

    /// A sequentially consistent fence, unless [`weaken`] changed it.
    pub(crate) fn fence(which: super::Fence) {
        match FAULT.get() {
            Some((weakened, None)) if weakened == which => {}
            Some((weakened, Some(order))) if weakened == which => loom::sync::atomic::fence(order),
            _ => loom::sync::atomic::fence(Ordering::SeqCst),
        }
    }

    /// A pointer whose accesses loom orders, without letting one thread see what another wrote
    /// before: weaker than what `arc_swap` guarantees.
    #[derive(Debug)]
    pub(crate) struct ArcSwap<T> {
        accesses: AtomicU32,
        pointer: arc_swap::ArcSwap<T>,
    }

    impl<T> ArcSwap<T> {
        pub(crate) fn from_pointee(value: T) -> ArcSwap<T> {
            let pointer = arc_swap::ArcSwap::from_pointee(value);
            ArcSwap { accesses: AtomicU32::new(0), pointer }
        }

        pub(crate) fn load(&self) -> arc_swap::Guard<Arc<T>> {
            self.accesses.fetch_add(1, Ordering::Relaxed);
            self.pointer.load()
        }

        pub(crate) fn load_full(&self) -> Arc<T> {
            Arc::clone(&self.load())
        }

        pub(crate) fn store(&self, value: Arc<T>) {
            self.accesses.fetch_add(1, Ordering::Relaxed);
            self.pointer.store(value);
        }
    }
}

pub(crate) use imp::*;
