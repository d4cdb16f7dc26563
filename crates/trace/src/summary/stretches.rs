//! Which bytes of a direction have been seen: up to where, and with which holes.

use crate::analysis::{is_after, is_before};

/// Holes that are remembered; the oldest is given up for another.
const HOLES_MAX: usize = 8;

/// What a segment's bytes were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Novelty {
    /// Bytes beyond all before.
    pub(super) beyond_bytes: u32,
    /// Bytes that fill a hole: they come late, and for the first time.
    pub(super) filled_bytes: u32,
}

#[derive(Debug, Default)]
pub(super) struct Stretches {
    /// Behind the highest byte seen.
    end: Option<u32>,
    /// First byte, and the one behind the last, in the order in which they came to be.
    holes: [(u32, u32); HOLES_MAX],
    count: u8,
}

impl Stretches {
    /// Behind the highest byte seen.
    pub(super) fn end(&self) -> Option<u32> {
        self.end
    }

    /// A segment's bytes.
    pub(super) fn take(&mut self, first: u32, length: u32) -> Novelty {
        let last = first.wrapping_add(length);
        let Some(end) = self.end else {
            self.end = Some(last);
            return Novelty { beyond_bytes: length, filled_bytes: 0 };
        };
        if is_after(first, end) {
            self.add_hole(end, first);
        }
        let mut novelty = Novelty::default();
        if is_after(last, end) {
            let from = if is_after(first, end) { first } else { end };
            novelty.beyond_bytes = last.wrapping_sub(from);
            self.end = Some(last);
        }
        if is_before(first, end) && self.count > 0 {
            novelty.filled_bytes = self.fill(first, last);
        }
        novelty
    }

    /// Everything up to `acknowledged` has arrived; yields how many of those bytes were never seen.
    pub(super) fn acknowledge(&mut self, acknowledged: u32) -> u32 {
        let mut unseen = 0_u32;
        if self.count > 0 {
            let mut kept = 0;
            for index in 0..usize::from(self.count) {
                let (from, to) = self.holes[index];
                if is_after(to, acknowledged) {
                    self.holes[kept] = (from, to);
                    kept += 1;
                } else {
                    unseen = unseen.wrapping_add(to.wrapping_sub(from));
                }
            }
            self.count = kept as u8;
        }
        if let Some(end) = self.end
            && is_after(acknowledged, end)
        {
            // A FIN's byte, or one that a probe had, is no loss.
            let more = acknowledged.wrapping_sub(end);
            unseen = unseen.wrapping_add(if more > 1 { more } else { 0 });
            self.end = Some(acknowledged);
        }
        unseen
    }

    fn add_hole(&mut self, from: u32, to: u32) {
        let count = usize::from(self.count);
        if count == HOLES_MAX {
            self.holes.rotate_left(1);
            self.holes[HOLES_MAX - 1] = (from, to);
        } else {
            self.holes[count] = (from, to);
            self.count += 1;
        }
    }

    fn fill(&mut self, first: u32, last: u32) -> u32 {
        let mut filled = 0_u32;
        let holes = self.holes;
        let count = usize::from(self.count);
        self.count = 0;
        for (from, to) in holes.into_iter().take(count) {
            let left = if is_after(first, from) { first } else { from };
            let right = if is_before(last, to) { last } else { to };
            if !is_after(right, left) {
                self.add_hole(from, to);
                continue;
            }
            filled = filled.wrapping_add(right.wrapping_sub(left));
            if is_after(left, from) {
                self.add_hole(from, left);
            }
            if is_after(to, right) {
                self.add_hole(right, to);
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_new_late_or_seen_before() {
        let near_end = u32::MAX - 99;
        let mut stretches = Stretches::default();
        let mut take = |first: u32, length| {
            let novelty = stretches.take(near_end.wrapping_add(first), length);
            (novelty.beyond_bytes, novelty.filled_bytes)
        };
        assert_eq!(take(0, 100), (100, 0));
        assert_eq!(take(0, 100), (0, 0), "seen before");
        assert_eq!(take(300, 100), (100, 0), "a hole of 200");
        assert_eq!(take(150, 50), (0, 50), "its middle");
        assert_eq!(take(100, 200), (0, 150), "the rest of it");
        assert_eq!(take(350, 100), (50, 0), "half new");
    }

    #[test]
    fn what_was_acknowledged_and_never_seen_is_told_once() {
        let mut stretches = Stretches::default();
        stretches.take(1_000, 100);
        stretches.take(1_300, 100);
        assert_eq!(stretches.acknowledge(1_200), 0, "half of the hole");
        assert_eq!(stretches.acknowledge(1_400), 200);
        assert_eq!(stretches.acknowledge(1_400), 0);
        assert_eq!(stretches.acknowledge(1_401), 0, "a FIN");
        assert_eq!(stretches.acknowledge(2_401), 1_000);
    }
}
