//! How far back rows reach, and how much time each covers.

/// Rows of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Seconds that a row covers.
    pub step_s: u64,
    /// Number of rows that are kept.
    pub rows: u64,
}

/// A second for 15 minutes, ten seconds for two hours, a minute for a day.
pub const TIERS: [Tier; 3] = [
    Tier { step_s: 1, rows: 900 },
    Tier { step_s: 10, rows: 720 },
    Tier { step_s: 60, rows: 1_440 },
];

/// Rows that are allocated together.
pub(crate) const BLOCK_ROWS: u64 = 60;

impl Tier {
    /// Number of blocks: one more than is full at any time.
    pub(crate) const fn blocks(self) -> usize {
        (self.rows / BLOCK_ROWS + 1) as usize
    }

    /// Returns the number of the last row that has ended at `second` of the clock that counts them.
    /// Row `n` covers the seconds after `(n - 1) * step_s`, up to `n * step_s`.
    pub fn last_row(self, second: u64) -> u64 {
        second / self.step_s
    }

    /// Returns the finest tier that reaches back `span_s` seconds, or the longest.
    pub fn reaching(span_s: u64) -> usize {
        let reaches = |tier: &Tier| tier.step_s * tier.rows >= span_s;
        TIERS.iter().position(reaches).unwrap_or(TIERS.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finest_tier_that_reaches_is_taken() {
        assert_eq!(
            [1, 900, 901, 7_200, 7_201, 86_400, u64::MAX].map(Tier::reaching),
            [0, 0, 1, 1, 2, 2, 2]
        );
    }

    #[test]
    fn a_row_ends_at_its_second() {
        assert_eq!([0, 1, 9, 10, 11].map(|second| TIERS[1].last_row(second)), [0, 0, 0, 1, 1]);
    }
}
