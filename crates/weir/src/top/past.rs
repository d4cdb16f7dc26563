//! The recent past as sparklines: rows of a second are gathered into cells of equal length.

use admin_api::history::{History, Series};

/// How far back a sparkline goes.
pub(crate) const SPAN_S: u64 = 60;

/// Widths of a sparkline, the widest first: each makes cells of whole seconds.
const WIDTHS: [u16; 6] = [60, 30, 20, 15, 12, 10];

/// What a cell shows of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Counts, as a rate per second.
    Rate,
    /// Durations and levels: the largest.
    Largest,
}

/// Returns the widest sparkline that fits into `room` cells, or 0.
pub(crate) fn width(room: u16) -> u16 {
    WIDTHS.into_iter().find(|width| *width <= room).unwrap_or(0)
}

/// Returns `width` cells of the last minute, the oldest first; `None` where nothing was measured.
///
/// Cells begin at whole multiples of their length, so that only the last one changes as time passes.
pub(crate) fn cells(
    history: &History,
    series: &Series,
    column: &str,
    width: u16,
    of: Of,
) -> Vec<Option<f64>> {
    let (Some(values), Some(last)) = (series.columns.get(column), history.ended_unix_ms.last())
    else {
        return Vec::new();
    };
    if width == 0 {
        return Vec::new();
    }
    let cell_ms = SPAN_S * 1_000 / u64::from(width);
    // A row belongs to the cell in which it began.
    let cell_of = |ended_ms: u64| ended_ms.saturating_sub(1) / cell_ms;
    let first = (cell_of(*last) + 1).saturating_sub(u64::from(width));
    let mut cells: Vec<(Option<u64>, u64)> = vec![(None, 0); usize::from(width)];
    let rows = history.ended_unix_ms.iter().zip(&history.covered_ms).zip(values);
    for ((ended_ms, covered_ms), value) in rows {
        let at = cell_of(*ended_ms).checked_sub(first).and_then(|at| usize::try_from(at).ok());
        let (Some(cell), Some(value)) = (at.and_then(|at| cells.get_mut(at)), value) else {
            continue;
        };
        let before = cell.0.unwrap_or(0);
        cell.0 = Some(match of {
            Of::Rate => before.saturating_add(*value),
            Of::Largest => before.max(*value),
        });
        cell.1 = cell.1.saturating_add(u64::from(*covered_ms));
    }
    let show = |(value, covered_ms): (Option<u64>, u64)| {
        let value = value? as f64;
        Some(match of {
            Of::Rate => value * 1e3 / covered_ms.max(1) as f64,
            Of::Largest => value,
        })
    };
    cells.into_iter().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(values: &[Option<u64>], last_ended_ms: u64) -> (History, Series) {
        let count = values.len() as u64;
        let history = History {
            ended_unix_ms: (0..count).map(|n| last_ended_ms - (count - 1 - n) * 1_000).collect(),
            covered_ms: vec![1_000; values.len()],
            ..History::default()
        };
        let mut series = Series::default();
        series.columns.insert("requests".to_owned(), values.to_vec());
        (history, series)
    }

    #[test]
    fn finished_cells_stay_as_they_are_while_time_passes() {
        let values: Vec<Option<u64>> = (0..80).map(|n| Some(n * 7 % 11)).collect();
        let at = |seconds: usize| {
            let (history, series) = history(&values[..seconds], 600_000 + seconds as u64 * 1_000);
            cells(&history, &series, "requests", 20, Of::Rate)
        };
        assert_eq!(at(75)[..19], at(74)[..19], "only the last cell changes");
        assert_eq!(at(78)[..19], at(75)[1..], "and then all move by one");
    }

    #[test]
    fn a_cell_is_a_rate_or_the_largest() {
        let (history, series) = history(&[Some(3), None, Some(9)], 60_000);
        let rate = cells(&history, &series, "requests", 20, Of::Rate);
        assert_eq!((rate[18], rate[19]), (None, Some(6.0)));
        assert_eq!(cells(&history, &series, "requests", 20, Of::Largest)[19], Some(9.0));
        assert_eq!(cells(&history, &series, "other", 20, Of::Rate), []);
        assert_eq!(cells(&History::default(), &series, "requests", 20, Of::Rate), []);
    }
}
