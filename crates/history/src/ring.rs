//! The rows of one series in one tier. Blocks without any row take no memory.

use crate::block::{Block, CauseCount};
use crate::quantised::Quantised;
use crate::tier::{BLOCK_ROWS, Tier};

/// A ring of blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    /// By their numbers, modulo the tier's number of blocks; empty until something is written.
    blocks: Vec<Option<Box<Block>>>,
}

/// Returns a row's block and its position in it.
fn place(row: u64) -> (u64, u8) {
    (row / BLOCK_ROWS, (row % BLOCK_ROWS) as u8)
}

impl Ring {
    /// Writes the row with this number; replaces a block that is a round older.
    pub(crate) fn write(
        &mut self,
        tier: Tier,
        number: u64,
        row: &[Quantised],
        causes: &mut Vec<(u8, u64)>,
    ) {
        let (block, position) = place(number);
        if self.blocks.is_empty() {
            self.blocks.resize_with(tier.blocks(), || None);
        }
        let slot = &mut self.blocks[(block % tier.blocks() as u64) as usize];
        if slot.as_ref().is_none_or(|held| held.number != block) {
            *slot = Some(Box::new(Block::new(block, row.len())));
        }
        if let Some(block) = slot {
            block.write(position, row, causes);
        }
    }

    /// Returns a row with its causes, if it was written and not replaced.
    pub(crate) fn row(
        &self,
        tier: Tier,
        number: u64,
        columns: usize,
    ) -> Option<(&[Quantised], impl Iterator<Item = CauseCount>)> {
        let (block, position) = place(number);
        let slot = self.blocks.get((block % tier.blocks() as u64) as usize)?;
        let block = slot.as_ref().filter(|held| held.number == block)?;
        Some((block.row(position, columns)?, block.causes(position)))
    }

    /// Returns its blocks.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter_map(Option::as_deref)
    }

    /// Adds a block that comes from elsewhere.
    pub(crate) fn insert(&mut self, tier: Tier, block: Block) {
        if self.blocks.is_empty() {
            self.blocks.resize_with(tier.blocks(), || None);
        }
        let slot = (block.number % tier.blocks() as u64) as usize;
        self.blocks[slot] = Some(Box::new(block));
    }

    /// Drops the blocks that `keeps` does not keep.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&Block) -> bool) {
        for slot in &mut self.blocks {
            slot.take_if(|block| !keeps(block));
        }
    }

    /// Returns the memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let slots = self.blocks.capacity() * size_of::<Option<Box<Block>>>();
        slots + self.blocks().map(Block::bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tier::TIERS;

    #[test]
    fn rows_are_found_until_a_round_later() {
        let (tier, mut ring) = (TIERS[0], Ring::default());
        assert!(ring.row(tier, 5, 1).is_none());
        for number in 1_000..3_000 {
            ring.write(tier, number, &[Quantised::new(number)], &mut Vec::new());
        }
        let read = |number| ring.row(tier, number, 1).map(|(row, _)| row[0].get().unwrap());
        for number in 3_000 - tier.rows..3_000 {
            assert_eq!(read(number), Some(number));
        }
        assert_eq!([read(1_500), read(3_000)], [None, None]);
        let bound = tier.blocks() * (60 * 2 + size_of::<Block>() + 8);
        assert!(ring.bytes() <= bound, "{} {bound}", ring.bytes());
    }
}
