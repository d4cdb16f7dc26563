//! The rows of a bundle's history as numbers, by service and server.

use std::collections::BTreeMap;

use admin_api::history::{History, Series};

/// A row's number; `None`: nothing was measured.
pub(super) type Rows = Vec<Option<f64>>;

/// All rows of a bundle, which have the same ends.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// When each row ended, in milliseconds since 1970 (UTC), ascending.
    pub(super) ended_unix_ms: Vec<u64>,
    /// How many seconds each row covers.
    pub(super) covered_s: Vec<f64>,
    /// The nominal length of a row.
    pub(super) step_s: f64,
    /// Answers that are left out, because their rows are of other times.
    pub(super) other_rows: usize,
    pub(super) process: Option<Series>,
    pub(super) services: BTreeMap<String, Service>,
}

#[derive(Debug, Default)]
pub(super) struct Service {
    pub(super) own: Option<Series>,
    pub(super) servers: BTreeMap<String, Series>,
}

impl Past {
    /// Takes the rows of several answers. Rows that other answers do not have are left out: all must mean the
    /// same time.
    pub(super) fn of(answers: &[History]) -> Past {
        let mut past = Past::default();
        let finest = answers.iter().min_by_key(|answer| answer.step_ms);
        let Some(first) = finest else { return past };
        let same = answers.iter().filter(|answer| {
            answer.step_ms == first.step_ms && answer.ended_unix_ms == first.ended_unix_ms
        });
        past.other_rows = answers.len() - same.clone().count();
        let rows = first.ended_unix_ms.len();
        past.ended_unix_ms.clone_from(&first.ended_unix_ms);
        past.step_s = first.step_ms as f64 / 1e3;
        past.covered_s = (0..rows)
            .map(|row| {
                first.covered_ms.get(row).map_or(past.step_s, |&ms| f64::from(ms.max(1)) / 1e3)
            })
            .collect();
        for series in same.flat_map(|answer| &answer.series) {
            match (series.kind.as_str(), &series.service, &series.server) {
                ("process", _, _) => past.process = Some(series.clone()),
                ("service", Some(service), _) => {
                    past.services.entry(service.clone()).or_default().own = Some(series.clone());
                }
                ("server", Some(service), Some(server)) => {
                    let service = past.services.entry(service.clone()).or_default();
                    service.servers.insert(server.clone(), series.clone());
                }
                _ => {}
            }
        }
        past
    }

    /// Returns a column as it is.
    pub(super) fn levels(&self, series: &Series, column: &str) -> Rows {
        let values = series.columns.get(column);
        (0..self.ended_unix_ms.len())
            .map(|row| values.and_then(|values| *values.get(row)?).map(|value| value as f64))
            .collect()
    }

    /// Returns a column of counts, per second.
    pub(super) fn rates(&self, series: &Series, column: &str) -> Rows {
        let levels = self.levels(series, column).into_iter().zip(&self.covered_s);
        levels.map(|(count, covered_s)| Some(count? / covered_s)).collect()
    }

    /// Returns the position of the row that contains a moment, or begins with it; the last one for later moments.
    pub(super) fn row_at(&self, unix_ms: u64) -> usize {
        let row = self.ended_unix_ms.partition_point(|&ended| ended <= unix_ms);
        row.min(self.ended_unix_ms.len().saturating_sub(1))
    }

    /// Returns when a row began.
    pub(super) fn began_unix_ms(&self, row: usize) -> u64 {
        let covered_ms = self.covered_s.get(row).copied().unwrap_or_default() * 1e3;
        self.ended_unix_ms.get(row).map_or(0, |ended| ended.saturating_sub(covered_ms as u64))
    }
}

/// Returns the median of what was measured; `None` if nothing was.
pub(super) fn median(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let mut values: Vec<f64> =
        values.into_iter().flatten().filter(|value| !value.is_nan()).collect();
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let is_even = values.len().is_multiple_of(2);
    Some(if is_even { f64::midpoint(values[middle - 1], values[middle]) } else { values[middle] })
}
