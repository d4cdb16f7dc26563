//! Which counters of one sender were seen.

const BLOCKS: usize = 17;
const BLOCK_BITS: u64 = 64;

/// A window over the last [`Window::COUNTERS`] counters of a sender, as in RFC 6479: a ring of blocks of bits,
/// one block more than the window, so that moving it clears whole blocks.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The greatest counter that was accepted; 0 if none.
    highest: u64,
    blocks: [u64; BLOCKS],
}

/// A counter that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Accepted before.
    Replayed,
    /// So far behind that it is not known whether it was accepted before.
    TooOld,
}

impl Window {
    /// How far behind the greatest counter a datagram may come.
    pub(super) const COUNTERS: u64 = 1_024;

    pub(super) fn new() -> Window {
        Window { highest: 0, blocks: [0; BLOCKS] }
    }

    /// Accepts a counter once. 0 is never used by a sender and counts as seen.
    pub(super) fn accept(&mut self, counter: u64) -> Result<(), Seen> {
        if counter == 0 {
            return Err(Seen::Replayed);
        }
        if self.highest - self.highest.min(counter) >= Window::COUNTERS {
            return Err(Seen::TooOld);
        }
        let block = counter / BLOCK_BITS;
        if counter > self.highest {
            let moved = (block - self.highest / BLOCK_BITS).min(BLOCKS as u64);
            for entered in 0..moved {
                *self.block_mut(block - entered) = 0;
            }
            self.highest = counter;
        }
        let bit = 1 << (counter % BLOCK_BITS);
        let bits = self.block_mut(block);
        if *bits & bit != 0 {
            return Err(Seen::Replayed);
        }
        *bits |= bit;
        Ok(())
    }

    fn block_mut(&mut self, block: u64) -> &mut u64 {
        // A remainder by BLOCKS is always an index.
        #[expect(clippy::indexing_slicing)]
        &mut self.blocks[(block % BLOCKS as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_counter_is_accepted_once_in_any_order_within_the_window() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..200 {
            let (mut window, mut seen, mut highest) = (Window::new(), HashSet::new(), 0_u64);
            let mut near = 1_u64;
            for _ in 0..3_000 {
                near += rng.u64(0..4) * rng.u64(0..30);
                if rng.u8(..) == 0 {
                    near += rng.u64(0..3_000);
                }
                let counter = near.saturating_sub(rng.u64(0..1_300)).max(1);
                let expected = if highest.saturating_sub(counter) >= Window::COUNTERS {
                    Err(Seen::TooOld)
                } else if seen.insert(counter) {
                    highest = highest.max(counter);
                    Ok(())
                } else {
                    Err(Seen::Replayed)
                };
                assert_eq!(window.accept(counter), expected, "{counter} after {highest}");
            }
        }
    }

    #[test]
    fn the_ends_of_the_counters_do_not_wrap() {
        let mut window = Window::new();
        assert_eq!(window.accept(0), Err(Seen::Replayed));
        assert_eq!(window.accept(1), Ok(()));
        assert_eq!(window.accept(u64::MAX), Ok(()));
        assert_eq!(window.accept(u64::MAX), Err(Seen::Replayed));
        assert_eq!(window.accept(u64::MAX - 1), Ok(()));
        assert_eq!(window.accept(u64::MAX - 1_024), Err(Seen::TooOld));
        assert_eq!(window.accept(u64::MAX - 1_023), Ok(()));
        assert_eq!(window.accept(1), Err(Seen::TooOld));
    }
}
