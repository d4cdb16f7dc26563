//! What has happened in the last seconds, to compute rates and quantiles from.

use model::histogram::HistogramTotals;

use crate::columns::{Kind, Source};
use crate::reading::Mean;

/// What has happened in the last seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub(crate) kind: Kind,
    /// How many seconds these are: at least as many as were asked for, unless the series is younger.
    pub seconds: u64,
    /// In the order of [`crate::Reading`]'s members of the same names.
    pub(crate) counts: Vec<u64>,
    pub(crate) means: Vec<Mean>,
    pub(crate) durations: Vec<HistogramTotals>,
}

impl Window {
    /// Returns how much the count of this column has grown; 0 if there is no such column.
    pub fn count(&self, column: &str) -> u64 {
        match self.source(column) {
            Some(Source::Count(index)) => self.counts.get(index).copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the durations whose average is this column.
    pub fn mean(&self, column: &str) -> Mean {
        match self.source(column) {
            Some(Source::Mean(index)) => self.means.get(index).copied().unwrap_or_default(),
            _ => Mean::default(),
        }
    }

    /// Returns the durations of which this column is a quantile; only their distribution is known.
    pub fn durations(&self, column: &str) -> Option<&HistogramTotals> {
        match self.source(column) {
            Some(Source::Quantile(index, _)) => self.durations.get(index),
            _ => None,
        }
    }

    fn source(&self, column: &str) -> Option<Source> {
        let mut columns = self.kind.columns().iter();
        columns.find(|one| one.name == column).map(|one| one.source)
    }
}
