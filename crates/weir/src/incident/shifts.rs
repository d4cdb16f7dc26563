//! When a series of numbers moved from one level to another.
//!
//! Binary segmentation (Scott and Knott 1974): the split into two levels that explains most is accepted if it
//! explains more than noise would, and both sides are split again; then splits between levels that do not differ
//! enough to matter are removed. Numbers are compared as logarithms, because the noise of rates and latencies
//! grows with them.

use super::series::median;

/// Rows on each side of a split.
const ROWS_MIN: usize = 3;

/// Splits of one series, at most.
const SPLITS_MAX: usize = 12;

/// How many times the noise a split must explain, in the sense of the Bayesian information criterion with two
/// more parameters, and three times that: many series are searched.
const PENALTY: f64 = 9.0;

/// What counts as a difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    /// The quotient of the larger and the smaller level.
    pub(super) ratio: f64,
    /// Their difference, in the series' unit.
    pub(super) difference: f64,
    /// What is added to both before they are divided: levels below it are the same as zero.
    pub(super) floor: f64,
}

impl Least {
    /// Returns whether two levels differ.
    pub(super) fn differ(&self, before: f64, after: f64) -> bool {
        let (less, more) = if before < after { (before, after) } else { (after, before) };
        more - less >= self.difference && (more + self.floor) >= self.ratio * (less + self.floor)
    }
}

/// A move from one level to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shift {
    /// The first row of the new level.
    pub(super) row: usize,
    /// The median of the rows before, back to the shift before.
    pub(super) before: f64,
    /// The median of the rows after, up to the next shift.
    pub(super) after: f64,
}

/// Returns the shifts of a series, in order of time. Rows without a number are passed over.
pub(super) fn shifts(rows: &[Option<f64>], least: &Least) -> Vec<Shift> {
    let known: Vec<(usize, f64)> = rows
        .iter()
        .enumerate()
        .filter_map(|(row, value)| Some((row, value.filter(|value| *value >= 0.0)?)))
        .collect();
    if known.len() < 2 * ROWS_MIN {
        return Vec::new();
    }
    let logs: Vec<f64> = known.iter().map(|(_, value)| (value + least.floor).log2()).collect();
    let mut splits: Vec<usize> = Vec::new();
    let mut parts = vec![(0, known.len())];
    while let Some((from, to)) = parts.pop()
        && splits.len() < SPLITS_MAX
    {
        if let Some(at) = split(&logs[from..to]) {
            splits.push(from + at);
            parts.extend([(from, from + at), (from + at, to)]);
        }
    }
    let mut borders = [&[0][..], &splits, &[known.len()]].concat();
    borders.sort_unstable();
    let shift = |part: &[usize]| {
        let level = |from: usize, to: usize| {
            median(known[from..to].iter().map(|(_, value)| Some(*value))).unwrap_or_default()
        };
        let (before, after) = (level(part[0], part[1]), level(part[1], part[2]));
        Shift { row: known[part[1]].0, before, after }
    };
    // A split that separates nothing that matters goes; then its neighbours have other levels.
    while let Some(at) = borders.windows(3).position(|part| {
        let Shift { before, after, .. } = shift(part);
        !least.differ(before, after)
    }) {
        borders.remove(at + 1);
    }
    borders.windows(3).map(shift).collect()
}

/// Returns where two levels explain the numbers better than noise would.
fn split(logs: &[f64]) -> Option<usize> {
    let count = logs.len();
    if count < 2 * ROWS_MIN {
        return None;
    }
    let total: f64 = logs.iter().sum();
    let mut left = 0.0;
    let mut best = (0, 0.0);
    for at in 1..=count - ROWS_MIN {
        left += logs[at - 1];
        if at < ROWS_MIN {
            continue;
        }
        let (before, after) = (at as f64, (count - at) as f64);
        let apart = left / before - (total - left) / after;
        let gain = before * after / count as f64 * apart * apart;
        if gain > best.1 {
            best = (at, gain);
        }
    }
    let (at, gain) = best;
    (gain > PENALTY * noise(logs) * (count as f64).ln()).then_some(at)
}

/// Returns the variance of the noise: from differences of neighbours, which a shift hardly changes.
fn noise(logs: &[f64]) -> f64 {
    let differences = logs.windows(2).map(|pair| Some((pair[1] - pair[0]).abs()));
    // The median of the absolute value of a normal variable is 0.6745 deviations; a difference of two has
    // twice the variance. A histogram's buckets are 4 % wide: less is no noise.
    let deviation = median(differences).unwrap_or_default() / 0.6745 / 2f64.sqrt();
    deviation.max(0.04).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: Least = Least { ratio: 2.0, difference: 5.0, floor: 1.0 };

    fn found(rows: &[f64]) -> Vec<(usize, u64, u64)> {
        let rows: Vec<_> = rows.iter().copied().map(Some).collect();
        shifts(&rows, &LEAST)
            .into_iter()
            .map(|shift| (shift.row, shift.before.round() as u64, shift.after.round() as u64))
            .collect()
    }

    fn levels(levels: &[(usize, f64)], noise: f64, seed: u64) -> Vec<f64> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let value = |level: f64| level * (1.0 + noise * (2.0 * rng.f64() - 1.0));
        levels
            .iter()
            .flat_map(|&(count, level)| (0..count).map(move |_| level))
            .map(value)
            .collect()
    }

    #[test]
    fn levels_are_found_where_they_begin() {
        assert_eq!(found(&levels(&[(60, 20.0), (40, 200.0)], 0.0, 0)), [(60, 20, 200)]);
        assert_eq!(
            found(&levels(&[(60, 20.0), (10, 200.0), (30, 20.0)], 0.0, 0)),
            [(60, 20, 200), (70, 200, 20)]
        );
        assert_eq!(found(&levels(&[(60, 0.0), (3, 90.0)], 0.0, 0)), [(60, 0, 90)]);
        assert_eq!(found(&levels(&[(100, 20.0)], 0.0, 0)), []);
        // Too small to matter: in proportion, or at all.
        assert_eq!(found(&levels(&[(60, 200.0), (40, 300.0)], 0.0, 0)), []);
        assert_eq!(found(&levels(&[(60, 1.0), (40, 4.0)], 0.0, 0)), []);
        assert_eq!(found(&[]), []);
        assert_eq!(found(&[1.0, 1.0, 90.0, 90.0, 90.0]), []);
    }

    #[test]
    fn rows_without_a_number_move_nothing() {
        let rows: Vec<Option<f64>> = (0..90)
            .map(|row| (row % 3 == 0).then_some(if row < 60 { 20.0 } else { 90.0 }))
            .collect();
        let found = shifts(&rows, &LEAST);
        assert_eq!(found, [Shift { row: 60, before: 20.0, after: 90.0 }]);
        assert_eq!(shifts(&[None; 40], &LEAST), []);
        assert_eq!(shifts(&[Some(f64::NAN); 40], &LEAST), []);
    }

    #[test]
    fn noise_is_no_shift_and_hides_none_that_matters() {
        for seed in 0..200 {
            let calm = found(&levels(&[(600, 100.0)], 0.5, seed));
            assert_eq!(calm, [], "seed {seed}");
            let moved = found(&levels(&[(300, 100.0), (300, 400.0)], 0.5, seed));
            assert_eq!(moved.len(), 1, "seed {seed}: {moved:?}");
            assert!(moved[0].0.abs_diff(300) <= 1, "seed {seed}: {moved:?}");
        }
    }
}
