//! How many slots may be used at an address, and how many are, in one word: a thread that
//! takes a slot does so by the number allowed at that moment, never by one that it read before.

use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};

use crate::sync::AtomicU64;

/// The number allowed where there is no limit.
pub(crate) const NO_LIMIT: u32 = u32::MAX;

/// Both numbers: those allowed in the upper 32 bits, those in flight in the lower ones.
#[derive(Debug)]
pub(crate) struct Count(AtomicU64);

/// Both numbers at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Slots that may be used; [`NO_LIMIT`]: any number.
    pub(crate) allowed: u32,
    /// Slots in use; more than allowed if that was lowered meanwhile.
    pub(crate) in_flight: u32,
}

impl Counted {
    fn of(word: u64) -> Counted {
        // Each half of the word.
        Counted { allowed: (word >> 32) as u32, in_flight: word as u32 }
    }

    /// Returns whether a slot is free.
    pub(crate) fn has_room(self) -> bool {
        self.in_flight < self.allowed
    }

    /// Returns whether more is in flight than allowed.
    pub(crate) fn is_over(self) -> bool {
        self.in_flight > self.allowed
    }
}

impl Count {
    /// Returns a count of nothing in flight.
    pub(crate) fn new(allowed: u32) -> Count {
        Count(AtomicU64::new(u64::from(allowed) << 32))
    }

    /// Returns both numbers.
    pub(crate) fn load(&self) -> Counted {
        Counted::of(self.0.load(Relaxed))
    }

    /// Counts one more if that is allowed.
    pub(crate) fn take(&self) -> bool {
        let mut word = self.0.load(Relaxed);
        while Counted::of(word).has_room() {
            // Less than allowed, so it does not reach the upper half.
            match self.0.compare_exchange_weak(word, word + 1, SeqCst, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Counts one less, of those that [`Count::take`] counted. Returns the numbers before.
    pub(crate) fn give_back(&self) -> Counted {
        Counted::of(self.0.fetch_sub(1, SeqCst))
    }

    /// Sets the number allowed. Returns the number in flight at that moment. Not to be called by two
    /// threads at once.
    pub(crate) fn allow(&self, allowed: u32) -> u32 {
        // No other thread changes the upper half, so the difference is right whatever the lower one
        // becomes meanwhile; a negative one wraps.
        let difference = allowed.wrapping_sub(self.load().allowed);
        Counted::of(self.0.fetch_add(u64::from(difference) << 32, SeqCst)).in_flight
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn neither_number_touches_the_other() {
        let count = Count::new(NO_LIMIT);
        assert!(count.take() && count.take() && count.take());
        for allowed in [0, 1, NO_LIMIT, 7, 3, 0, NO_LIMIT, 2] {
            assert_eq!(count.allow(allowed), 3);
            assert_eq!(count.load(), Counted { allowed, in_flight: 3 });
            assert_eq!(count.take(), allowed > 3);
            if allowed > 3 {
                assert_eq!(count.give_back(), Counted { allowed, in_flight: 4 });
            }
        }
        assert_eq!(count.give_back(), Counted { allowed: 2, in_flight: 3 });
        assert!(!count.take(), "full");
        assert_eq!(count.give_back(), Counted { allowed: 2, in_flight: 2 });
        assert!(count.take());
    }
}
