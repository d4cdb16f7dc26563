//! One series: its rows, and what it had counted at the moments that matter for the next ones.

use std::collections::VecDeque;
use std::sync::Arc;

use model::histogram::HistogramTotals;

use crate::block::Block;
use crate::columns::{Kind, Source};
use crate::quantised::Quantised;
use crate::reading::{FURTHER_COUNTS, Reading};
use crate::ring::Ring;
use crate::snapshot::Snapshot;
use crate::tier::TIERS;
use crate::window::Window;

/// Seconds between two snapshots for the windows of the last minute.
pub(crate) const FINE_S: u64 = 5;

/// Seconds that these windows reach back.
const FINE_SPAN_S: u64 = 60;

/// Seconds between two snapshots for the windows of the last hour, which servers do not have.
const COARSE_S: u64 = 60;

const COARSE_SPAN_S: u64 = 3_600;

/// A series of which so many seconds are missing has been away: windows begin when it is back.
const AWAY_S: u64 = 2 * FINE_S;

/// A series.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    kind: Kind,
    /// Nothing is known of it up to this second.
    pub(crate) begun: u64,
    /// The second of its last reading.
    pub(crate) until: u64,
    latest: Snapshot,
    /// Apart from it, since they change in idle series too, whose snapshots are shared.
    latest_further: FurtherCounts,
    /// At the end of the last row of each tier.
    row_ends: [Snapshot; TIERS.len()],
    /// The largest levels since then.
    peaks: [Vec<u64>; TIERS.len()],
    /// The oldest first; never empty.
    earlier: VecDeque<Earlier>,
    /// See [`Series::keep_only_rows`].
    has_only_rows: bool,
    pub(crate) rings: [Ring; TIERS.len()],
}

type FurtherCounts = [u64; FURTHER_COUNTS];

/// What had been counted at the end of a second. Snapshots that are the same share their memory.
#[derive(Clone, Debug)]
struct Earlier {
    second: u64,
    snapshot: Arc<Snapshot>,
    further: FurtherCounts,
}

/// Which rows end with a reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    /// The second of the reading.
    pub(crate) second: u64,
    /// The number of the row that ends with it, by tier.
    pub(crate) ends: [Option<u64>; TIERS.len()],
}

/// Memory for computing rows, used for one series after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    durations: Vec<HistogramTotals>,
    row: Vec<Quantised>,
    causes: Vec<(u8, u64)>,
}

impl Series {
    /// Returns a series that has counted nothing at the end of `second`.
    pub(crate) fn new(kind: Kind, second: u64) -> Series {
        let mut series = Series {
            kind,
            begun: second,
            until: second,
            latest: Snapshot::default(),
            latest_further: FurtherCounts::default(),
            row_ends: Default::default(),
            peaks: Default::default(),
            earlier: VecDeque::new(),
            has_only_rows: false,
            rings: Default::default(),
        };
        series.restart(second);
        series
    }

    /// Adds what was counted at a tick.
    pub(crate) fn push(&mut self, tick: &Tick, reading: &Reading<'_>, scratch: &mut Scratch) {
        if std::mem::take(&mut self.has_only_rows) {
            return self.set_baseline(tick.second, reading);
        }
        let was_away = tick.second > self.until + AWAY_S;
        let is_first = self.latest == Snapshot::default();
        self.latest_further = reading.further_counts;
        if self.latest.set(reading) {
            self.row_ends = Default::default();
            self.restart(tick.second - 1);
        } else if was_away {
            self.restart(tick.second - 1);
        } else if is_first {
            // They may belong to something that is older than the series.
            self.earlier.iter_mut().for_each(|one| one.further = reading.further_counts);
        }
        let before = std::mem::replace(&mut self.until, tick.second);
        if before / FINE_S != tick.second / FINE_S {
            self.keep_earlier(tick.second);
        }
        for (tier, end) in tick.ends.iter().enumerate() {
            let peaks = &mut self.peaks[tier];
            peaks.resize(reading.levels.len(), 0);
            for (peak, level) in peaks.iter_mut().zip(reading.levels) {
                *peak = (*peak).max(*level);
            }
            if let Some(number) = *end {
                self.end_row(tier, number, scratch);
                self.peaks[tier].fill(0);
            }
        }
    }

    /// Takes a reading as the one to count from: what was counted before is in no row and no window.
    pub(crate) fn set_baseline(&mut self, second: u64, reading: &Reading<'_>) {
        self.latest.set(reading);
        self.latest_further = reading.further_counts;
        self.row_ends = std::array::from_fn(|_| self.latest.clone());
        self.until = second;
        self.restart(second);
    }

    /// Lets windows begin with what was counted at the end of the last row, at `second`.
    fn restart(&mut self, second: u64) {
        let [before, ..] = &self.row_ends;
        let (snapshot, further) = (Arc::new(before.clone()), self.latest_further);
        self.earlier = VecDeque::from([Earlier { second, snapshot, further }]);
        self.peaks.iter_mut().for_each(Vec::clear);
    }

    /// Forgets everything but the rows: for a series that is no longer read. If it is read again, that
    /// reading is the one to count from.
    pub(crate) fn keep_only_rows(&mut self) {
        let Series { kind, begun, until, rings, .. } = self;
        let rings = std::mem::take(rings);
        let has_only_rows = true;
        *self = Series { begun: *begun, has_only_rows, rings, ..Series::new(*kind, *until) };
    }

    /// Writes a row, unless nothing has happened in it.
    fn end_row(&mut self, tier: usize, number: u64, scratch: &mut Scratch) {
        let (now, before) = (&self.latest, &self.row_ends[tier]);
        let Scratch { durations, row, causes } = scratch;
        durations.resize_with(now.durations_len(), HistogramTotals::default);
        for (index, into) in durations.iter_mut().enumerate() {
            now.durations(before, index, into);
        }
        row.clear();
        let mut is_quiet = true;
        for column in self.kind.columns() {
            let cell = match column.source {
                Source::Count(index) => Quantised::new(now.grown(before, index)),
                Source::Level(index) | Source::State(index) => {
                    Quantised::new(self.peaks[tier].get(index).copied().unwrap_or(0))
                }
                Source::Mean(index) => {
                    let average = now.mean(before, index).average();
                    Quantised::from(average.map(|average| average.as_micros() as u64))
                }
                Source::Quantile(index, hundredths) => {
                    let quantile = durations
                        .get(index)
                        .and_then(|between| between.quantile(f64::from(hundredths) / 100.0));
                    Quantised::from(quantile.map(|quantile| quantile.as_micros() as u64))
                }
            };
            let is_state = matches!(column.source, Source::State(_));
            is_quiet &= is_state || cell == Quantised::ZERO || cell == Quantised::NONE;
            row.push(cell);
        }
        causes.clear();
        if self.kind.has_causes() {
            causes.extend(now.causes(before));
        }
        if !is_quiet {
            self.rings[tier].write(TIERS[tier], number, row, causes);
            self.row_ends[tier].clone_from(&self.latest);
        }
    }

    /// Keeps the latest snapshot for windows, and drops those that are too old.
    fn keep_earlier(&mut self, second: u64) {
        let latest = Arc::new(self.latest.clone());
        let last = self.earlier.back().map(|one| &one.snapshot);
        let snapshot = last.filter(|last| **last == latest).map_or(latest, Arc::clone);
        self.earlier.push_back(Earlier { second, snapshot, further: self.latest_further });
        let span_s = if self.kind == Kind::Server { FINE_SPAN_S } else { COARSE_SPAN_S };
        // The newest of those that are too old is the state at the beginning of the span.
        let from = second.saturating_sub(span_s + FINE_S);
        while self.earlier.get(1).is_some_and(|one| one.second <= from) {
            self.earlier.pop_front();
        }
        // Beyond the last minute, one a minute is enough.
        let fine_from = second.saturating_sub(FINE_SPAN_S + FINE_S);
        let mut minute = None;
        self.earlier.retain(|one| {
            let of_minute = one.second / COARSE_S;
            one.second >= fine_from || minute.replace(of_minute) != Some(of_minute)
        });
    }

    /// Returns what has happened in the last `seconds`, or in a little more: to the last snapshot
    /// before them.
    pub(crate) fn window(&self, seconds: u64) -> Window {
        let from = self.until.saturating_sub(seconds);
        let earlier = self.earlier.iter().rev().find(|one| one.second <= from);
        let nothing = Snapshot::default();
        let (started, before, further) = match earlier.or(self.earlier.front()) {
            Some(one) => (one.second, &*one.snapshot, one.further),
            None => (self.until, &nothing, self.latest_further),
        };
        let further_counts =
            std::array::from_fn(|at| self.latest_further[at].saturating_sub(further[at]));
        let durations = (0..self.latest.durations_len()).map(|index| {
            let mut between = HistogramTotals::default();
            self.latest.durations(before, index, &mut between);
            between
        });
        Window {
            kind: self.kind,
            span: seconds,
            seconds: self.until.saturating_sub(started),
            counts: (0..self.latest.counts.len()).map(|at| self.latest.grown(before, at)).collect(),
            further_counts,
            means: (0..self.latest.means.len()).map(|at| self.latest.mean(before, at)).collect(),
            durations: durations.collect(),
            causes: self.latest.causes(before).collect(),
        }
    }

    /// Returns all blocks, with their tiers.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (usize, &Block)> {
        let rings = self.rings.iter().enumerate();
        rings.flat_map(|(tier, ring)| ring.blocks().map(move |block| (tier, block)))
    }

    /// Returns the memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        // Each once, though several may share it.
        let mut last: Option<&Arc<Snapshot>> = None;
        let earlier = self.earlier.iter().filter_map(|Earlier { snapshot, .. }| {
            let is_shared = last.replace(snapshot).is_some_and(|last| Arc::ptr_eq(last, snapshot));
            (!is_shared).then(|| size_of::<Snapshot>() + snapshot.bytes())
        });
        size_of::<Series>()
            + self.latest.bytes()
            + self.row_ends.iter().map(Snapshot::bytes).sum::<usize>()
            + self.earlier.capacity() * size_of::<Earlier>()
            + earlier.sum::<usize>()
            + self.rings.iter().map(Ring::bytes).sum::<usize>()
    }
}
