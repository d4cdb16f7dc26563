//! Tracks which bytes of a direction have been seen: the highest, and the gaps.

use crate::analysis::{is_after, is_before};

/// Holes that are remembered. A path that reorders one packet in twenty has as many at a time as a
/// twentieth of the window has packets; beyond the bound the oldest is given up.
const HOLES_MAX: usize = 256;
/// What lies further behind, in bytes, is forgotten, long before the numbers come round again.
const BEHIND_MAX_BYTES: u32 = 1 << 30;

/// What a segment's bytes were: how many of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Novelty {
    /// Bytes beyond all before.
    pub(super) beyond: u32,
    /// Bytes that fill a hole: they come late, and for the first time.
    pub(super) filled: u32,
    /// Of these, those that had been acknowledged before: the capture has them, in the wrong order.
    pub(super) acknowledged: u32,
    /// Some of the bytes lie where a hole was given up: whether they were seen before is not known.
    pub(super) is_unknown: bool,
}

#[derive(Debug, Default)]
pub(super) struct Stretches {
    /// Behind the highest byte seen.
    end: Option<u32>,
    /// In the order in which they came to be.
    holes: Vec<Hole>,
    /// From the first byte of the holes that were given up to behind the last.
    given_up: Option<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Hole {
    /// Its first byte, and the one behind its last.
    from: u32,
    to: u32,
    /// All of it has been acknowledged.
    is_acknowledged: bool,
}

impl Stretches {
    /// Behind the highest byte seen.
    pub(super) fn end(&self) -> Option<u32> {
        self.end
    }

    /// A segment's bytes.
    pub(super) fn take(&mut self, first: u32, length: u32) -> Novelty {
        let last = first.wrapping_add(length);
        let mut novelty = Novelty::default();
        let Some(end) = self.end else {
            self.end = Some(last);
            novelty.beyond = length;
            return novelty;
        };
        if is_after(first, end) {
            self.add_hole(Hole { from: end, to: first, is_acknowledged: false });
        }
        if is_after(last, end) {
            let from = if is_after(first, end) { first } else { end };
            novelty.beyond = last.wrapping_sub(from);
            self.end = Some(last);
        }
        if is_before(first, end) && !self.holes.is_empty() {
            self.fill(first, last, &mut novelty);
        }
        let is_within =
            |given_up: (u32, u32)| is_before(first, given_up.1) && is_after(last, given_up.0);
        novelty.is_unknown = self.given_up.is_some_and(is_within);
        novelty
    }

    /// Everything up to `acknowledged` has arrived; yields how many of those bytes were not seen yet.
    pub(super) fn acknowledge(&mut self, acknowledged: u32) -> u32 {
        let mut unseen = 0_u32;
        for hole in &mut self.holes {
            if !hole.is_acknowledged && !is_after(hole.to, acknowledged) {
                hole.is_acknowledged = true;
                unseen = unseen.wrapping_add(hole.to.wrapping_sub(hole.from));
            }
        }
        if let Some(end) = self.end
            && is_after(acknowledged, end)
        {
            // A FIN's byte, or one that a probe had, is no loss.
            let more = acknowledged.wrapping_sub(end);
            if more > 1 {
                unseen = unseen.wrapping_add(more);
                self.add_hole(Hole { from: end, to: acknowledged, is_acknowledged: true });
            }
            self.end = Some(acknowledged);
        }
        unseen
    }

    fn add_hole(&mut self, hole: Hole) {
        let is_near =
            |end: u32| hole.to.wrapping_sub(end).cast_signed() < BEHIND_MAX_BYTES.cast_signed();
        self.holes.retain(|hole| is_near(hole.to));
        self.given_up = self.given_up.filter(|(_, to)| is_near(*to));
        if self.holes.len() >= HOLES_MAX {
            // One that was acknowledged is hardly ever filled: the capture missed it.
            let oldest = self.holes.iter().position(|hole| hole.is_acknowledged).unwrap_or(0);
            let Hole { from, to, .. } = self.holes.remove(oldest);
            let before = self.given_up.unwrap_or((from, to));
            self.given_up = Some((
                if is_before(from, before.0) { from } else { before.0 },
                if is_after(to, before.1) { to } else { before.1 },
            ));
        }
        self.holes.push(hole);
    }

    fn fill(&mut self, first: u32, last: u32, novelty: &mut Novelty) {
        let is_met = |hole: &Hole| is_after(last, hole.from) && is_before(first, hole.to);
        if !self.holes.iter().any(is_met) {
            return;
        }
        let holes = std::mem::take(&mut self.holes);
        self.holes.reserve(holes.len() + 1);
        for hole in holes {
            let left = if is_after(first, hole.from) { first } else { hole.from };
            let right = if is_before(last, hole.to) { last } else { hole.to };
            if !is_after(right, left) {
                self.add_hole(hole);
                continue;
            }
            let filled = right.wrapping_sub(left);
            novelty.filled = novelty.filled.wrapping_add(filled);
            if hole.is_acknowledged {
                novelty.acknowledged = novelty.acknowledged.wrapping_add(filled);
            }
            if is_after(left, hole.from) {
                self.add_hole(Hole { to: left, ..hole });
            }
            if is_after(hole.to, right) {
                self.add_hole(Hole { from: right, ..hole });
            }
        }
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
            (novelty.beyond, novelty.filled)
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

    #[test]
    fn what_the_capture_has_in_the_wrong_order_it_has() {
        let mut stretches = Stretches::default();
        stretches.take(1_000, 100);
        assert_eq!(stretches.acknowledge(1_300), 200, "before it is seen");
        let late = stretches.take(1_100, 150);
        assert_eq!((late.filled, late.acknowledged), (150, 150));
        assert_eq!(stretches.take(1_100, 150), Novelty::default(), "seen before");
        let rest = stretches.take(1_200, 200);
        assert_eq!((rest.beyond, rest.acknowledged), (100, 50));
    }

    #[test]
    fn more_holes_than_are_remembered_make_no_segment_one_that_was_seen() {
        let mut stretches = Stretches::default();
        let holes = HOLES_MAX as u32 + 10;
        for number in 0..=holes {
            stretches.take(number * 200, 100);
        }
        for number in 0..holes {
            let late = stretches.take(number * 200 + 100, 100);
            let is_told = late.filled == 100 || late.is_unknown;
            assert!(is_told, "hole {number}: {late:?}");
            assert_eq!(late.filled == 100, number >= 10, "hole {number}");
        }
        assert_eq!(stretches.take(holes * 200, 100), Novelty::default(), "seen before");
        // Those that the capture missed are given up first.
        let mut stretches = Stretches::default();
        for number in 0..=holes {
            stretches.take(number * 200, 100);
            if number == 20 {
                stretches.acknowledge(4_000);
            }
        }
        assert!(stretches.take(100, 100).is_unknown);
        assert_eq!(stretches.take(4_100, 100).filled, 100, "after what was acknowledged");
    }
}
