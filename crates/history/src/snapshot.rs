//! What a series had counted at one moment, in little memory.

use model::histogram::HistogramTotals;

use crate::reading::{Mean, Reading};

/// The figures of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) counts: Vec<u64>,
    pub(crate) means: Vec<Mean>,
    durations: Vec<Sparse>,
    /// Those that have occurred, in order.
    causes: Vec<(u8, u64)>,
}

/// A histogram's counts from its first bucket with a value to its last. Modulo 2^32: only differences
/// matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sparse {
    start: usize,
    counts: Vec<u32>,
}

impl Snapshot {
    /// Takes the figures of `reading`. Returns whether they have begun again from zero: a server or a
    /// service that was removed and came back.
    pub(crate) fn set(&mut self, reading: &Reading<'_>) -> bool {
        let fewer = |(now, before): (&u64, &u64)| now < before;
        let mut has_restarted = reading.counts.iter().zip(&self.counts).any(fewer)
            || self.causes.iter().any(|&(cause, before)| {
                reading.causes.get(usize::from(cause)).copied().unwrap_or(0) < before
            })
            || reading.means.iter().zip(&self.means).any(|(now, before)| now.is_before(*before));
        replace(&mut self.counts, reading.counts);
        replace(&mut self.means, reading.means);
        let causes = reading.causes.iter().enumerate().filter(|(_, count)| **count > 0);
        self.causes.clear();
        self.causes.extend(causes.map(|(cause, &count)| (cause as u8, count)));
        self.durations.resize_with(reading.durations.len(), Sparse::default);
        for (held, totals) in self.durations.iter_mut().zip(reading.durations) {
            has_restarted |= held.is_after(totals);
            held.set(totals);
        }
        has_restarted
    }

    /// Returns the number of its histograms.
    pub(crate) fn durations_len(&self) -> usize {
        self.durations.len()
    }

    /// Returns how much the count with this index has grown since `before`.
    pub(crate) fn grown(&self, before: &Snapshot, index: usize) -> u64 {
        let count = |of: &Snapshot| of.counts.get(index).copied().unwrap_or(0);
        count(self).saturating_sub(count(before))
    }

    /// Returns the causes that have occurred since `before`, in order.
    pub(crate) fn causes<'a>(
        &'a self,
        before: &'a Snapshot,
    ) -> impl Iterator<Item = (u8, u64)> + 'a {
        let grown = self.causes.iter().map(|&(cause, count)| {
            let at = before.causes.binary_search_by_key(&cause, |(cause, _)| *cause);
            (cause, count.saturating_sub(at.map_or(0, |at| before.causes[at].1)))
        });
        grown.filter(|(_, count)| *count > 0)
    }

    /// Returns the average since `before`.
    pub(crate) fn mean(&self, before: &Snapshot, index: usize) -> Mean {
        let before = before.means.get(index).copied().unwrap_or_default();
        self.means.get(index).copied().unwrap_or_default().since(before)
    }

    /// Replaces `into` with the durations recorded since `before`. Their sum and maximum are unknown.
    pub(crate) fn durations(&self, before: &Snapshot, index: usize, into: &mut HistogramTotals) {
        into.clear();
        let nothing = Sparse::default();
        let before = before.durations.get(index).unwrap_or(&nothing);
        if let Some(now) = self.durations.get(index) {
            let grown = now.buckets().map(|(bucket, count)| {
                (bucket, u64::from(count.wrapping_sub(before.count(bucket))))
            });
            into.add(grown.filter(|(_, count)| *count > 0), 0, u64::MAX);
        }
    }

    /// Returns the memory that it takes besides itself.
    pub(crate) fn bytes(&self) -> usize {
        let sparse =
            |held: &Sparse| size_of::<Sparse>() + held.counts.capacity() * size_of::<u32>();
        self.counts.capacity() * size_of::<u64>()
            + self.causes.capacity() * size_of::<(u8, u64)>()
            + self.means.capacity() * size_of::<Mean>()
            + self.durations.iter().map(sparse).sum::<usize>()
    }
}

fn replace<T: Copy>(held: &mut Vec<T>, new: &[T]) {
    held.clear();
    // Without spare room: most are kept for long.
    held.reserve_exact(new.len());
    held.extend_from_slice(new);
}

impl Sparse {
    /// Returns whether any bucket has more than `totals`.
    fn is_after(&self, totals: &HistogramTotals) -> bool {
        self.buckets().any(|(bucket, before)| {
            let now = totals.counts().get(bucket).copied().unwrap_or(0) as u32;
            // Modulo 2^32: what has grown has grown by less than half of that since the last second.
            now.wrapping_sub(before) > u32::MAX / 2
        })
    }

    fn set(&mut self, totals: &HistogramTotals) {
        let counts = totals.counts();
        let is_used = |count: &u64| *count > 0;
        let start = counts.iter().position(is_used).unwrap_or(0);
        let end = counts.iter().rposition(is_used).map_or(start, |last| last + 1);
        self.start = start;
        self.counts.clear();
        self.counts.reserve_exact(end - start);
        self.counts.extend(counts[start..end].iter().map(|&count| count as u32));
    }

    fn buckets(&self) -> impl Iterator<Item = (usize, u32)> {
        self.counts.iter().enumerate().map(|(at, &count)| (self.start + at, count))
    }

    fn count(&self, bucket: usize) -> u32 {
        let at = bucket.checked_sub(self.start);
        at.and_then(|at| self.counts.get(at)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::histogram::bucket_of;

    use super::*;

    fn totals(micros: &[u64]) -> HistogramTotals {
        let mut totals = HistogramTotals::default();
        totals.add(micros.iter().map(|&us| (bucket_of(us), 1)), micros.iter().sum(), 0);
        totals
    }

    fn snapshot(count: u64, micros: &[u64]) -> Snapshot {
        let (durations, mut snapshot) = ([totals(micros)], Snapshot::default());
        let means = [Mean::of(&durations[0])];
        let reading = Reading {
            counts: &[count],
            means: &means,
            durations: &durations,
            ..Reading::default()
        };
        snapshot.set(&reading);
        snapshot
    }

    #[test]
    fn differences_are_what_happened_in_between() {
        let before = snapshot(2, &[300, 40_000]);
        let now = snapshot(5, &[300, 40_000, 20, 20, 900_000]);
        assert_eq!(now.grown(&before, 0), 3);
        let mean = now.mean(&before, 0).average();
        assert_eq!(mean, Some(Duration::from_micros(900_040 / 3)));
        let mut between = HistogramTotals::default();
        now.durations(&before, 0, &mut between);
        assert_eq!(between.counts(), totals(&[20, 20, 900_000]).counts());
        now.durations(&Snapshot::default(), 0, &mut between);
        assert_eq!(between.count(), 5);
        now.durations(&now, 0, &mut between);
        assert_eq!((between.count(), between.quantile(0.5)), (0, None));
    }

    #[test]
    fn figures_that_begin_again_are_noticed() {
        let mut held = snapshot(1_000, &[200_000; 50]);
        let mut is_again = |count, micros: &[u64]| {
            let durations = [totals(micros)];
            let means = [Mean::of(&durations[0])];
            let (counts, levels, causes) = (&[count], &[], &[]);
            held.set(&Reading {
                counts,
                levels,
                means: &means,
                durations: &durations,
                causes,
                ..Reading::default()
            })
        };
        assert!(!is_again(1_001, &[200_000; 51]));
        // As many as before, but others.
        assert!(is_again(1_001, &[6_000; 51]));
        assert!(is_again(3, &[6_000; 52]));
        assert!(!is_again(3, &[6_000; 52]));
    }
}
