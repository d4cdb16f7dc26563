//! All series, by what they are about.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use model::Address;
use serde::{Deserialize, Serialize};

use crate::block::CauseCount;
use crate::columns::{Column, Kind};
use crate::reading::Reading;
use crate::series::{Scratch, Series, Tick};
use crate::tier::{BLOCK_ROWS, TIERS};
use crate::window::Window;

/// Seconds between two checks of the memory.
const SWEEP_S: u64 = 60;

/// So many seconds after its last reading, only a series' rows are kept.
const FORGET_S: u64 = 120;

/// What a series is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Key {
    /// The balancer's process.
    Process,
    /// A listener, by name.
    Listener(Arc<str>),
    /// A service, by name.
    Service(Arc<str>),
    /// A server, by its service's name and its address.
    Server(Arc<str>, Address),
}

impl Key {
    /// Returns the kind of the series.
    pub fn kind(&self) -> Kind {
        match self {
            Key::Process => Kind::Process,
            Key::Listener(_) => Kind::Listener,
            Key::Service(_) => Kind::Service,
            Key::Server(..) => Kind::Server,
        }
    }
}

/// All series.
#[derive(Clone, Debug)]
pub struct History {
    memory_max_bytes: usize,
    pub(crate) series: BTreeMap<Key, Series>,
    /// For each tier, the rows that have ended: their numbers, and how many milliseconds each covers.
    /// A row is longer than its tier's step if readings were late, and there is none if they were
    /// missing.
    pub(crate) ended: [VecDeque<(u64, u32)>; TIERS.len()],
    /// The last reading's second, and for each tier the milliseconds since the last row's end.
    second: u64,
    open_ms: [u32; TIERS.len()],
    tick: Tick,
    /// The readings of this second are those to count from.
    is_baseline: bool,
    swept: u64,
    scratch: Scratch,
}

/// Rows of one series in one tier.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// For each column that was asked for, a value for each row: `None` if nothing was measured.
    pub columns: Vec<Vec<Option<u64>>>,
    /// How exchanges ended: the position of the row, and the cause.
    pub causes: Vec<(usize, CauseCount)>,
}

impl History {
    /// Returns an empty history whose rows are dropped, the oldest of each tier first, in proportion to its
    /// span, when all of it takes more than `memory_max_bytes`. Checked once a minute, so for a minute it
    /// may be exceeded by about 1 kB for each server. What is needed to go on is not dropped: about
    /// 8 kB for each busy server, 2 kB for each idle one, and the block of 60 rows that is being written in
    /// each tier.
    pub fn new(memory_max_bytes: usize) -> History {
        History {
            memory_max_bytes,
            series: BTreeMap::new(),
            ended: Default::default(),
            second: 0,
            open_ms: [0; TIERS.len()],
            tick: Tick { second: 0, ends: [None; TIERS.len()] },
            is_baseline: false,
            swept: 0,
            scratch: Scratch::default(),
        }
    }

    /// Sets the bound of the memory.
    pub fn set_memory_max(&mut self, bytes: usize) {
        self.memory_max_bytes = bytes;
    }

    /// Begins the readings to count from: those of counters that have been running. They make no rows.
    pub fn begin_with_baseline(&mut self, second: u64) {
        self.begin_at(second);
        self.tick = Tick { second, ends: [None; TIERS.len()] };
        self.is_baseline = true;
    }

    /// Begins the readings of a second, at most one for each. `second` is that of a clock that goes
    /// on across processes; `elapsed_ms` is the time since the last readings, or since the start.
    /// Returns false if this second has had its readings.
    pub fn begin(&mut self, second: u64, elapsed_ms: u32) -> bool {
        if second <= self.second {
            return false;
        }
        self.is_baseline = false;
        if self.swept == 0 {
            self.swept = second;
        }
        let is_first = self.second == 0;
        let before = std::mem::replace(&mut self.second, second);
        let before = if is_first { second - 1 } else { before };
        self.tick.second = second;
        for (at, tier) in TIERS.iter().enumerate() {
            self.open_ms[at] = self.open_ms[at].saturating_add(elapsed_ms);
            let number = tier.last_row(second);
            self.tick.ends[at] = (number > tier.last_row(before)).then_some(number);
            if self.tick.ends[at].is_some() {
                let ended = &mut self.ended[at];
                ended.push_back((number, std::mem::take(&mut self.open_ms[at])));
                while ended.front().is_some_and(|(first, _)| first + tier.rows <= number) {
                    ended.pop_front();
                }
            }
        }
        if second >= self.swept + SWEEP_S {
            self.swept = second;
            self.sweep(before);
        }
        true
    }

    /// Sets the second of the last readings: those of the next second are the first.
    pub(crate) fn begin_at(&mut self, second: u64) {
        (self.second, self.swept) = (second, second);
    }

    /// Adds a series' reading of the second that has begun.
    pub fn add(&mut self, key: Key, reading: &Reading<'_>) {
        let begun = if self.is_baseline { self.second } else { self.second.saturating_sub(1) };
        let kind = key.kind();
        let series = self.series.entry(key).or_insert_with(|| Series::new(kind, begun));
        if self.is_baseline {
            series.set_baseline(self.second, reading);
        } else {
            series.push(&self.tick, reading, &mut self.scratch);
        }
    }

    /// Returns the second of the last readings.
    pub fn second(&self) -> u64 {
        self.second
    }

    /// Returns all series that have rows or readings.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.series.keys()
    }

    /// Returns the numbers of the last `count` rows of a tier (an index into [`TIERS`]), the oldest
    /// first, and how many milliseconds each covers. A row `n` ends at second `n * step_s`; rows that
    /// are not among them were not measured.
    pub fn ended(&self, tier: usize, count: usize) -> impl Iterator<Item = (u64, u32)> + '_ {
        let ended = &self.ended[tier];
        ended.iter().copied().skip(ended.len().saturating_sub(count))
    }

    /// Returns a series' rows with these numbers, in some of its kind's columns, and with causes if they are
    /// `wanted`; `None` if there is no such series. Counts of rows in which nothing happened are 0.
    pub fn rows(
        &self,
        key: &Key,
        (tier, numbers): (usize, &[u64]),
        columns: &[Column],
        wants_causes: bool,
    ) -> Option<Rows> {
        let series = self.series.get(key)?;
        let (ring, tier) = (&series.rings[tier], TIERS[tier]);
        let all = key.kind().columns();
        let places: Vec<(usize, &Column)> = columns
            .iter()
            .filter_map(|wanted| {
                all.iter().enumerate().find(|(_, column)| column.name == wanted.name)
            })
            .collect();
        let mut rows = Rows {
            columns: vec![Vec::with_capacity(numbers.len()); places.len()],
            causes: Vec::new(),
        };
        for (position, &number) in numbers.iter().enumerate() {
            let is_known = number * tier.step_s > series.begun;
            let row = ring.row(tier, number, all.len());
            let (cells, causes) =
                row.map_or((None, None), |(cells, causes)| (Some(cells), Some(causes)));
            for (values, (place, column)) in rows.columns.iter_mut().zip(&places) {
                values.push(match cells {
                    Some(cells) => cells[*place].get(),
                    None => column.when_quiet().filter(|_| is_known),
                });
            }
            let causes = causes.into_iter().flatten().filter(|_| wants_causes);
            rows.causes.extend(causes.map(|cause| (position, cause)));
        }
        Some(rows)
    }

    /// Returns what has happened in the last `seconds` to a series that was read in the last second:
    /// at most 60 for servers, 3,600 for others; `None` if there is no such series.
    pub fn window(&self, key: &Key, seconds: u64) -> Option<Window> {
        let series = self.series.get(key).filter(|series| series.until == self.second)?;
        Some(series.window(seconds))
    }

    /// Returns the memory that it takes.
    pub fn bytes(&self) -> usize {
        let clocks = self.ended.iter().map(|ended| ended.capacity() * size_of::<(u64, u32)>());
        // A map's node holds its keys and values with a pointer or two each.
        let node = size_of::<Key>() + 2 * size_of::<usize>();
        let series = self.series.values().map(|series| node + series.bytes());
        clocks.sum::<usize>() + series.sum::<usize>()
    }

    /// Forgets what is too old, and the oldest rows while there is too much. `before`: the second of the
    /// readings before this one, which all series had that are still there, even if the process was
    /// suspended since.
    fn sweep(&mut self, before: u64) {
        let newest = TIERS.map(|tier| tier.last_row(self.second));
        self.retain(|tier, number| (number + 1) * BLOCK_ROWS + TIERS[tier].rows > newest[tier]);
        self.series.retain(|_, series| {
            let is_gone = series.until + FORGET_S <= before;
            if is_gone {
                series.keep_only_rows();
            }
            !is_gone || series.blocks().next().is_some()
        });
        let bytes = self.bytes();
        if bytes > self.memory_max_bytes {
            // A little more than necessary, so that this is not done every minute.
            self.shrink(bytes - self.memory_max_bytes + self.memory_max_bytes / 20, newest);
        }
    }

    /// Drops the oldest blocks, by age in proportion to their tier's span, until `surplus` bytes are
    /// free.
    fn shrink(&mut self, surplus: usize, newest: [u64; TIERS.len()]) {
        let age = |tier: usize, number: u64| {
            let rows = newest[tier].saturating_sub(number * BLOCK_ROWS);
            (rows * 1_000 / TIERS[tier].rows) as u32
        };
        let blocks = self.series.values().flat_map(Series::blocks);
        let mut ages: Vec<(u32, usize)> =
            blocks.map(|(tier, block)| (age(tier, block.number), block.bytes())).collect();
        ages.sort_unstable_by(|a, b| b.cmp(a));
        let mut freed = 0;
        let keep_below = ages.iter().find_map(|&(age, bytes)| {
            freed += bytes;
            (freed >= surplus).then_some(age)
        });
        let keep_below = keep_below.unwrap_or(0).max(1);
        let keeps = |tier: usize, number: u64| {
            // The newest block of each tier is being written.
            age(tier, number) < keep_below || number == newest[tier] / BLOCK_ROWS
        };
        self.retain(keeps);
        for (tier, ended) in self.ended.iter_mut().enumerate() {
            ended.retain(|(row, _)| keeps(tier, row / BLOCK_ROWS));
        }
    }

    fn retain(&mut self, keeps: impl Fn(usize, u64) -> bool) {
        for series in self.series.values_mut() {
            for (tier, ring) in series.rings.iter_mut().enumerate() {
                ring.retain(|block| keeps(tier, block.number));
            }
        }
    }
}
