//! A pool of reusable objects of a worker, so that steady load never waits for the allocator, and
//! memory is freed after a burst.

use std::cell::{Cell, RefCell};

/// Minimum number of unused objects that are kept.
const KEPT_MIN: usize = 64;

/// Unused objects of one kind; last in, first out.
pub(crate) struct Shelf<T> {
    unused: RefCell<Vec<T>>,
    /// The fewest objects in the pool since the last trim: this many were not needed.
    fewest: Cell<usize>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf { unused: RefCell::default(), fewest: Cell::default() }
    }
}

impl<T> Shelf<T> {
    /// Takes an object.
    pub(crate) fn take(&self) -> Option<T> {
        let mut unused = self.unused.borrow_mut();
        let taken = unused.pop();
        self.fewest.set(self.fewest.get().min(unused.len()));
        taken
    }

    /// Returns an object for reuse.
    pub(crate) fn give(&self, thing: T) {
        self.unused.borrow_mut().push(thing);
    }

    /// Frees half of the objects not needed since the last call, so that after a burst the memory
    /// is freed within a few calls.
    pub(crate) fn trim(&self) {
        let mut unused = self.unused.borrow_mut();
        let surplus = self.fewest.get().saturating_sub(KEPT_MIN);
        let left = unused.len().saturating_sub(surplus.div_ceil(2));
        unused.truncate(left);
        unused.shrink_to(left * 2);
        self.fewest.set(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bursts_surplus_is_given_back_and_what_is_needed_stays() {
        let shelf = Shelf::default();
        for thing in 0..1000 {
            shelf.give(thing);
        }
        // Needed once, and then no more than 100 at a time.
        shelf.trim();
        for _ in 0..20 {
            let taken: Vec<i32> = (0..100).map_while(|_| shelf.take()).collect();
            assert_eq!(taken.len(), 100);
            for thing in taken {
                shelf.give(thing);
            }
            shelf.trim();
        }
        let left = std::iter::from_fn(|| shelf.take()).count();
        assert!((100..=100 + KEPT_MIN).contains(&left), "{left}");
    }
}
