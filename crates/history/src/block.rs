//! Sixty consecutive rows of one series.

use serde::{Deserialize, Serialize};

use crate::quantised::Quantised;
use crate::tier::BLOCK_ROWS;

/// Causes that are kept for each row: the most frequent ones. The others are added up.
pub const CAUSES_MAX: usize = 6;

/// The cause that stands for all further ones.
pub(crate) const OTHER_CAUSES: u8 = u8::MAX;

/// Rows whose numbers begin at `number * 60`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Block {
    pub(crate) number: u64,
    /// Row by row; a row that was not written is all [`Quantised::NONE`].
    pub(crate) cells: Vec<Quantised>,
    /// In order of their rows.
    pub(crate) causes: Vec<CauseCount>,
}

/// How often exchanges ended with a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseCount {
    /// Position of the row in its block.
    row: u8,
    /// Index in [`model::Cause::ALL`], or [`OTHER_CAUSES`].
    pub(crate) cause: u8,
    count: Quantised,
}

impl CauseCount {
    /// Returns the cause; `None` for several, each of them less frequent than those that are named.
    pub fn cause(self) -> Option<model::Cause> {
        model::Cause::ALL.get(usize::from(self.cause)).copied()
    }

    /// Returns how often.
    pub fn count(self) -> u64 {
        self.count.get().unwrap_or(0)
    }
}

impl Block {
    pub(crate) fn new(number: u64, columns: usize) -> Block {
        let cells = vec![Quantised::NONE; columns * BLOCK_ROWS as usize];
        Block { number, cells, causes: Vec::new() }
    }

    /// Writes the row at `position`. `causes`: those that occurred, in any order.
    pub(crate) fn write(&mut self, position: u8, row: &[Quantised], causes: &mut Vec<(u8, u64)>) {
        let start = usize::from(position) * row.len();
        self.cells[start..start + row.len()].copy_from_slice(row);
        causes.sort_unstable_by_key(|&(cause, count)| (std::cmp::Reverse(count), cause));
        let others: u64 = causes.iter().skip(CAUSES_MAX).map(|(_, count)| count).sum();
        causes.truncate(CAUSES_MAX);
        if others > 0 {
            causes.push((OTHER_CAUSES, others));
        }
        let counted = causes.iter().map(|&(cause, count)| CauseCount {
            row: position,
            cause,
            count: Quantised::new(count),
        });
        self.causes.extend(counted);
    }

    /// Returns the row at `position`, of `columns` columns; `None` if it was not written.
    pub(crate) fn row(&self, position: u8, columns: usize) -> Option<&[Quantised]> {
        let start = usize::from(position) * columns;
        let row = &self.cells[start..start + columns];
        row.iter().any(|cell| *cell != Quantised::NONE).then_some(row)
    }

    /// Returns the causes of the row at `position`, the most frequent first.
    pub(crate) fn causes(&self, position: u8) -> impl Iterator<Item = CauseCount> {
        let start = self.causes.partition_point(|one| one.row < position);
        self.causes[start..].iter().copied().take_while(move |one| one.row == position)
    }

    /// Returns whether its parts fit together, for blocks that come from elsewhere.
    pub(crate) fn is_sound(&self, columns: usize) -> bool {
        let rows_max = (CAUSES_MAX + 1) * BLOCK_ROWS as usize;
        self.cells.len() == columns * BLOCK_ROWS as usize
            && self.causes.len() <= rows_max
            && self.causes.iter().all(|one| u64::from(one.row) < BLOCK_ROWS)
            && self.causes.is_sorted_by_key(|one| one.row)
    }

    /// Returns the memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Block>()
            + self.cells.capacity() * size_of::<Quantised>()
            + self.causes.capacity() * size_of::<CauseCount>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_causes_are_kept_and_none_is_lost() {
        let mut block = Block::new(3, 1);
        let mut causes: Vec<(u8, u64)> =
            (0..10).map(|cause| (cause, u64::from(cause) + 1)).collect();
        block.write(7, &[Quantised::new(55)], &mut causes);
        block.write(8, &[Quantised::new(2)], &mut vec![(4, 2)]);
        let kept: Vec<_> = block.causes(7).map(|one| (one.cause, one.count())).collect();
        assert_eq!(kept, [(9, 10), (8, 9), (7, 8), (6, 7), (5, 6), (4, 5), (OTHER_CAUSES, 10)]);
        assert_eq!(block.causes(7).map(CauseCount::count).sum::<u64>(), 55);
        assert_eq!(block.causes(8).count(), 1);
        assert!(block.row(6, 1).is_none() && block.row(7, 1).is_some());
        assert!(block.is_sound(1) && !block.is_sound(2));
    }
}
