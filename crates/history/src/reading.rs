//! What the caller has counted at one moment.

use std::time::Duration;

use model::histogram::HistogramTotals;

/// The largest number of counts that windows have and rows do not.
pub(crate) const FURTHER_COUNTS: usize = 4;

/// The figures of one series at one moment, in the order that its [`crate::Kind`] names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading<'a> {
    /// Counts that only grow.
    pub counts: &'a [u64],
    /// Counts that only windows have ([`crate::Kind::further_counts`]). They may begin again from zero.
    pub further_counts: [u64; FURTHER_COUNTS],
    /// Values of this moment.
    pub levels: &'a [u64],
    /// Durations of which averages are kept.
    pub means: &'a [Mean],
    /// Durations of which quantiles are kept.
    pub durations: &'a [HistogramTotals],
    /// By cause, how exchanges ended (of a server: how attempts failed): the number of each
    /// [`model::Cause`], in order of [`model::Cause::ALL`]; empty if there is none.
    pub causes: &'a [u64],
}

/// The number and the sum of durations recorded so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mean {
    /// Their number.
    pub count: u64,
    /// Their sum in microseconds.
    pub sum_us: u64,
}

impl Mean {
    /// Returns those of a histogram.
    pub fn of(histogram: &HistogramTotals) -> Mean {
        Mean { count: histogram.count(), sum_us: histogram.sum().as_micros() as u64 }
    }

    /// Returns the average; `None` if there is none.
    pub fn average(self) -> Option<Duration> {
        self.sum_us.checked_div(self.count).map(Duration::from_micros)
    }

    /// Returns what was added since `before`, an earlier reading of the same.
    #[must_use]
    pub fn since(self, before: Mean) -> Mean {
        Mean {
            count: self.count.saturating_sub(before.count),
            sum_us: self.sum_us.saturating_sub(before.sum_us),
        }
    }

    /// Returns whether it has less than `other`.
    pub(crate) fn is_before(self, other: Mean) -> bool {
        self.count < other.count || self.sum_us < other.sum_us
    }
}
