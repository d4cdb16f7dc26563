//! What has happened in the last seconds, to compute rates and quantiles from.

use model::Cause;
use model::histogram::HistogramTotals;

use crate::columns::{Kind, Source};
use crate::reading::{FURTHER_COUNTS, Mean};

/// What has happened in the last seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub(crate) kind: Kind,
    /// How many seconds were asked for.
    pub span: u64,
    /// How many seconds these are: at least as many as were asked for, unless the series is younger.
    pub seconds: u64,
    /// In the order of [`crate::Reading`]'s members of the same names.
    pub(crate) counts: Vec<u64>,
    pub(crate) further_counts: [u64; FURTHER_COUNTS],
    pub(crate) means: Vec<Mean>,
    pub(crate) durations: Vec<HistogramTotals>,
    pub(crate) causes: Vec<(u8, u64)>,
}

impl Window {
    /// Returns how much the count of this column, or of this name among [`Kind::further_counts`], has
    /// grown; 0 if there is none.
    pub fn count(&self, column: &str) -> u64 {
        let count = if let Some(Source::Count(index)) = self.source(column) {
            self.counts.get(index)
        } else {
            let index = self.kind.further_counts().iter().position(|name| *name == column);
            index.and_then(|index| self.further_counts.get(index))
        };
        count.copied().unwrap_or(0)
    }

    /// Returns how exchanges ended (of a server: how attempts failed), in order of causes.
    pub fn causes(&self) -> impl Iterator<Item = (Cause, u64)> {
        let named =
            |&(cause, count): &(u8, u64)| Some((*Cause::ALL.get(usize::from(cause))?, count));
        self.causes.iter().filter_map(named)
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
