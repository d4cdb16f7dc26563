//! Memory budgets shared by all requests: for bodies that wait until a server is chosen, and for
//! response compression.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Usage of one budget over all workers.
#[derive(Debug, Default)]
pub struct Budget {
    used_bytes: AtomicU64,
    exhausted: AtomicU64,
}

impl Budget {
    /// Returns the bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Relaxed)
    }

    /// Returns how many requests went without because the bound was reached.
    pub fn exhausted(&self) -> u64 {
        self.exhausted.load(Relaxed)
    }
}

/// One request's share, given back when dropped.
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: u64,
    max: u64,
}

impl Charge {
    /// Returns an empty share of a budget of `max` bytes.
    pub(crate) fn new(budget: &Arc<Budget>, max: u64) -> Charge {
        Charge { budget: Arc::clone(budget), bytes: 0, max }
    }

    /// Reserves up to `bytes` in total for this request. Returns false if the budget is exhausted.
    pub(crate) fn covers(&mut self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let before = self.budget.used_bytes.fetch_add(more, Relaxed);
        if before.saturating_add(more) > self.max {
            self.budget.used_bytes.fetch_sub(more, Relaxed);
            return false;
        }
        self.bytes += more;
        true
    }

    /// Makes room in `bytes` for `needed` of them, and for more if possible, up to `max`. If the budget is
    /// exhausted, it counts that and returns false.
    pub(crate) fn make_room(&mut self, bytes: &mut Vec<u8>, needed: usize, max: usize) -> bool {
        if needed <= bytes.capacity() {
            return true;
        }
        let roomy = needed.max(bytes.capacity() * 2).min(max);
        let Some(room) = [roomy, needed].into_iter().find(|&room| self.covers(room as u64)) else {
            self.note_exhausted();
            return false;
        };
        bytes.reserve_exact(room - bytes.len());
        true
    }

    /// Gives everything back.
    pub(crate) fn release(&mut self) {
        self.budget.used_bytes.fetch_sub(self.bytes, Relaxed);
        self.bytes = 0;
    }

    /// Counts a request that was denied the memory it needs.
    pub(crate) fn note_exhausted(&self) {
        self.budget.exhausted.fetch_add(1, Relaxed);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_together_stay_below_the_bound() {
        let budget = Arc::default();
        let (mut one, mut other) = (Charge::new(&budget, 100), Charge::new(&budget, 100));
        assert!(one.covers(60) && one.covers(50) && other.covers(40));
        assert!(!other.covers(41) && !one.covers(61));
        one.note_exhausted();
        assert_eq!((budget.used_bytes(), budget.exhausted()), (100, 1));
        drop(one);
        assert!(other.covers(100));
        drop(other);
        assert_eq!(budget.used_bytes(), 0);
        assert!(!Charge::new(&budget, 0).covers(1));
    }
}
