//! Tracks retransmissions until the peer's acknowledgements show whether they were needed.
//!
//! A retransmission was needless if the capture shows that its bytes had arrived: they were acknowledged
//! or selectively acknowledged before, or a D-SACK (RFC 2883) reports them as received twice.

use std::collections::VecDeque;

use crate::analysis::{is_after, is_before};
use crate::decode::{Options, SACK_BLOCKS_MAX};

/// Segments that wait for a D-SACK; of more, the oldest counts as needed.
const WAITING_MAX: usize = 64;

/// A stretch of bytes: its first, and the one behind its last.
type Block = (u32, u32);

#[derive(Debug, Default)]
pub(super) struct Repeats {
    waiting: VecDeque<Waiting>,
    /// What the newest acknowledgement says has arrived, beyond what it acknowledges.
    sacked: [Block; SACK_BLOCKS_MAX],
    sacked_count: u8,
    acknowledged: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    block: Block,
    /// Bytes of it that no D-SACK has reported.
    left: u32,
}

/// What an acknowledgement says of segments sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Duplicates {
    /// It reports data that came twice.
    pub(super) is_duplicate_sack: bool,
    /// Segments sent again that this shows were not needed.
    pub(super) needless: u64,
}

impl Repeats {
    /// A segment sent again. Returns whether its bytes are known to have arrived before.
    pub(super) fn sent_again(&mut self, first: u32, length: u32) -> bool {
        let block = (first, first.wrapping_add(length));
        let sacked = &self.sacked[..usize::from(self.sacked_count)];
        let is_acknowledged = self.acknowledged.is_some_and(|until| !is_after(block.1, until));
        if is_acknowledged || sacked.iter().any(|held| is_within(block, *held)) {
            return true;
        }
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting { block, left: length });
        false
    }

    /// An acknowledgement of the other end.
    pub(super) fn acknowledged(&mut self, acknowledged: u32, options: &Options) -> Duplicates {
        let blocks = options.sack_blocks();
        let duplicate = duplicate(acknowledged, blocks);
        let held = if duplicate.is_some() { &blocks[1..] } else { blocks };
        if self.acknowledged.is_none_or(|before| !is_before(acknowledged, before)) {
            self.acknowledged = Some(acknowledged);
            self.sacked[..held.len()].copy_from_slice(held);
            self.sacked_count = held.len() as u8;
        }
        let Some(block) = duplicate else { return Duplicates::default() };
        Duplicates { is_duplicate_sack: true, needless: self.reported(block) }
    }

    /// Takes a D-SACK's bytes off the segments that wait; each byte counts for one of them.
    fn reported(&mut self, block: Block) -> u64 {
        let mut bytes = block.1.wrapping_sub(block.0);
        let mut needless = 0;
        self.waiting.retain_mut(|waiting| {
            let both = overlap(waiting.block, block).min(bytes);
            bytes -= both;
            waiting.left = waiting.left.saturating_sub(both);
            needless += u64::from(waiting.left == 0);
            waiting.left > 0
        });
        needless
    }
}

/// The first block, if it reports data that came twice: it lies below what is acknowledged, or
/// within the block behind it.
fn duplicate(acknowledged: u32, blocks: &[Block]) -> Option<Block> {
    let first = *blocks.first()?;
    let is_below = is_before(first.0, acknowledged);
    let is_held = blocks.get(1).is_some_and(|second| is_within(first, *second));
    (is_below || is_held).then_some(first)
}

fn is_within(inner: Block, outer: Block) -> bool {
    !is_before(inner.0, outer.0) && !is_after(inner.1, outer.1)
}

fn overlap(one: Block, other: Block) -> u32 {
    let first = if is_after(one.0, other.0) { one.0 } else { other.0 };
    let end = if is_before(one.1, other.1) { one.1 } else { other.1 };
    if is_after(end, first) { end.wrapping_sub(first) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sack(blocks: &[Block]) -> Options {
        let mut options = Options { sack_count: blocks.len() as u8, ..Options::default() };
        options.sack[..blocks.len()].copy_from_slice(blocks);
        options
    }

    /// What acknowledgement `at` with `blocks` says, near the end of the numbers.
    fn duplicates(repeats: &mut Repeats, at: u32, blocks: &[Block]) -> (bool, u64) {
        let base = u32::MAX - 1_500;
        let moved: Vec<Block> =
            blocks.iter().map(|(a, b)| (base.wrapping_add(*a), base.wrapping_add(*b))).collect();
        let duplicates = repeats.acknowledged(base.wrapping_add(at), &sack(&moved));
        (duplicates.is_duplicate_sack, duplicates.needless)
    }

    fn again(repeats: &mut Repeats, first: u32) -> bool {
        repeats.sent_again((u32::MAX - 1_500).wrapping_add(first), 1_000)
    }

    #[test]
    fn a_d_sack_below_the_acknowledgement_names_a_segment_that_had_arrived() {
        let mut repeats = Repeats::default();
        assert_eq!(duplicates(&mut repeats, 0, &[(1_000, 3_000)]), (false, 0));
        assert!(!again(&mut repeats, 0), "no acknowledgement says that it arrived");
        assert_eq!(duplicates(&mut repeats, 3_000, &[(0, 1_000)]), (true, 1));
        assert_eq!(duplicates(&mut repeats, 3_000, &[(0, 1_000)]), (true, 0), "it counts once");
    }

    #[test]
    fn a_d_sack_above_the_acknowledgement_is_told_by_the_block_behind_it() {
        let mut repeats = Repeats::default();
        duplicates(&mut repeats, 0, &[(3_000, 4_000)]);
        assert!(!again(&mut repeats, 1_000));
        assert_eq!(duplicates(&mut repeats, 0, &[(1_000, 2_000), (1_000, 4_000)]), (true, 1));
        assert_eq!(duplicates(&mut repeats, 0, &[(5_000, 6_000), (1_000, 4_000)]), (false, 0));
    }

    #[test]
    fn one_d_sack_may_cover_several_segments_or_a_part_of_one() {
        let mut repeats = Repeats::default();
        for first in [0, 1_000, 2_000, 0] {
            assert!(!again(&mut repeats, first));
        }
        assert_eq!(duplicates(&mut repeats, 5_000, &[(0, 2_500)]), (true, 2));
        assert_eq!(duplicates(&mut repeats, 5_000, &[(2_500, 3_000)]), (true, 1));
        assert_eq!(duplicates(&mut repeats, 5_000, &[(0, 1_000)]), (true, 1), "sent a third time");
    }

    #[test]
    fn what_was_acknowledged_or_selectively_acknowledged_is_needless_at_once() {
        let mut repeats = Repeats::default();
        duplicates(&mut repeats, 1_000, &[(2_000, 4_000)]);
        assert!(again(&mut repeats, 0));
        assert!(!again(&mut repeats, 1_000), "the hole");
        assert!(again(&mut repeats, 2_000) && again(&mut repeats, 3_000));
        assert!(!again(&mut repeats, 3_500), "half of it");
        // An acknowledgement that was overtaken says nothing newer.
        duplicates(&mut repeats, 500, &[]);
        assert!(again(&mut repeats, 2_000));
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut repeats = Repeats::default();
        for number in 0..1_000 {
            repeats.sent_again(number * 1_000, 1_000);
        }
        assert_eq!(repeats.waiting.len(), WAITING_MAX);
    }
}
