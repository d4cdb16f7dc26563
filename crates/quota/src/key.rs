//! What a member knows of one key: its own requests, and those of the others.

use std::time::Duration;

use model::{RateLimit, RateReading, RateShare, RateTerms};

use crate::wire::Row;

/// Minimum time over which the demand for a key is averaged; longer for slow limits.
const SMOOTH_MIN: Duration = Duration::from_secs(1);
/// Maximum time over which it is averaged.
const SMOOTH_MAX: Duration = Duration::from_secs(10);

/// A limit is divided among the members once the demand for the key reaches this part of it.
const CONTENDED: f64 = 0.9;

/// Factor by which a member's part exceeds its proportion, because the members' estimates of the demand differ. The
/// excess is charged to all members.
const SURPLUS: f64 = 1.05;

/// A member's part is at least this part of an equal one, so that a client that begins to use another member is not
/// refused there at first.
const SHARE_MIN: f64 = 0.25;

/// A row is repeated after this number of turns if the key has requests, although nothing else has changed.
pub(crate) const REPEAT_TURNS: u32 = 4;
/// What another member has said is forgotten after this number of turns.
pub(crate) const FORGET_TURNS: u32 = 3 * REPEAT_TURNS;

/// A limit as numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Requests per second; 0: none pass.
    pub(crate) per_s: f64,
    /// Requests that may come at once; at least 1.
    pub(crate) burst: f64,
    /// Over how many seconds demand is known.
    smooth_s: f64,
}

impl Rate {
    pub(crate) fn of(limit: &RateLimit) -> Rate {
        let per_s = f64::from(limit.requests) / limit.per.as_secs_f64().max(1e-9);
        let interval_s = if per_s > 0.0 { 1.0 / per_s } else { f64::INFINITY };
        let (min, max) = (SMOOTH_MIN.as_secs_f64(), SMOOTH_MAX.as_secs_f64());
        let smooth_s = (4.0 * interval_s).clamp(min, max);
        Rate { per_s, burst: f64::from(limit.burst.max(1)), smooth_s }
    }
}

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) limit: u32,
    /// As last read here.
    offered: u32,
    taken: u32,
    /// Requests per second that come here.
    demand_per_s: f64,
    /// Requests that passed here and that no row has stated.
    unreported: u32,
    /// The turn of the last row.
    reported_at: u32,
    /// The demand that it stated.
    reported_per_s: f64,
    /// The last turn at which requests came here.
    used: u32,
    /// What others have said.
    pub(crate) others: Vec<Other>,
    /// What the workers may use.
    pub(crate) terms: RateTerms,
    /// The last turn at which the workers knew it.
    pub(crate) read: u32,
}

/// What one other member has said about a key.
#[derive(Debug)]
pub(crate) struct Other {
    pub(crate) member: [u8; 16],
    total: u32,
    demand_per_s: f64,
    /// The turn here at which it said that.
    heard: u32,
}

impl Key {
    pub(crate) fn new(limit: u32) -> Key {
        Key {
            limit,
            offered: 0,
            taken: 0,
            demand_per_s: 0.0,
            unreported: 0,
            reported_at: 0,
            reported_per_s: 0.0,
            used: 0,
            others: Vec::new(),
            terms: RateTerms::ALONE,
            read: 0,
        }
    }

    /// Takes what the workers have counted.
    pub(crate) fn read(
        &mut self,
        reading: &RateReading,
        rate: &Rate,
        turn: u32,
        elapsed: Duration,
    ) {
        let came = reading.offered.wrapping_sub(self.offered);
        let passed = reading.taken.wrapping_sub(self.taken);
        (self.offered, self.taken) = (reading.offered, reading.taken);
        self.unreported = self.unreported.saturating_add(passed);
        self.read = turn;
        if came > 0 {
            self.used = turn;
        }
        let elapsed_s = elapsed.as_secs_f64();
        if elapsed_s > 0.0 {
            let part = 1.0 - (-elapsed_s / rate.smooth_s).exp();
            self.demand_per_s += part * (f64::from(came) / elapsed_s - self.demand_per_s);
        }
    }

    /// The workers do not use it any more.
    pub(crate) fn end(&mut self) {
        let others = std::mem::take(&mut self.others);
        *self = Key { others, ..Key::new(self.limit) };
    }

    /// Takes another member's row. Returns how many requests are to be charged.
    pub(crate) fn hear(&mut self, member: [u8; 16], row: &Row, turn: u32) -> u32 {
        let demand_per_s = f64::from(row.demand) / 1_000.0;
        let said = Other { member, total: row.total, demand_per_s, heard: turn };
        let Some(known) = self.others.iter_mut().find(|other| other.member == member) else {
            self.others.push(said);
            return row.recent;
        };
        let more = row.total.wrapping_sub(known.total);
        *known = said;
        // Otherwise the key came into use there again, and is counted from nothing.
        let goes_on = more <= u32::MAX / 2 && more >= row.recent;
        if goes_on { more } else { row.recent }
    }

    /// Forgets what others said long ago, and what those said that have left.
    pub(crate) fn forget(&mut self, turn: u32, lives: impl Fn(&[u8; 16]) -> bool) {
        self.others
            .retain(|other| lives(&other.member) && turn.wrapping_sub(other.heard) <= FORGET_TURNS);
    }

    /// Returns what this member may use until the next turn.
    pub(crate) fn terms(&self, rate: &Rate, members: usize, pause: Duration) -> RateTerms {
        let others: f64 = self.others.iter().map(|other| other.demand_per_s).sum();
        let all = self.demand_per_s + others;
        let lag = if self.others.is_empty() { Duration::ZERO } else { pause };
        if others <= 0.0 || all < CONTENDED * rate.per_s {
            return RateTerms { share: RateShare::WHOLE, lag };
        }
        let least = SHARE_MIN / members as f64;
        let share = RateShare::of((SURPLUS * self.demand_per_s / all).max(least));
        RateTerms { share, lag }
    }

    /// Returns how urgent a row is; `None`: no row is needed. Requests that are few for the limit need none
    /// ([`few`]).
    pub(crate) fn urgency(&self, rate: &Rate, members: usize, turn: u32) -> Option<f64> {
        let (demand, before) = (self.stated_demand(rate, members), self.reported_per_s);
        let counts = f64::from(self.unreported) >= few(rate.burst, members).max(1.0);
        let has_changed = (demand - before).abs() > 0.1 * before;
        let is_due = self.unreported > 0 || turn.wrapping_sub(self.reported_at) >= REPEAT_TURNS;
        let is_news = has_changed || (demand > 0.0 && is_due);
        (counts || is_news).then(|| f64::from(self.unreported) / rate.burst)
    }

    /// Returns the row about this key, which is sent to all others.
    pub(crate) fn report(&mut self, key: u64, rate: &Rate, members: usize, turn: u32) -> Row {
        self.reported_at = turn;
        self.reported_per_s = self.stated_demand(rate, members);
        Row {
            key,
            limit: self.limit,
            total: self.taken,
            recent: std::mem::take(&mut self.unreported),
            demand: (self.reported_per_s * 1_000.0) as u32,
        }
    }

    /// Returns the demand that a row states: 0 if it is little for the limit.
    fn stated_demand(&self, rate: &Rate, members: usize) -> f64 {
        if self.demand_per_s < few(rate.per_s, members) { 0.0 } else { self.demand_per_s }
    }

    /// There is no other member that would read a row.
    pub(crate) fn keep_to_itself(&mut self) {
        self.unreported = 0;
    }

    /// Returns whether the workers need not count it any more.
    pub(crate) fn is_idle(&self, rate: &Rate, turn: u32, pause: Duration) -> bool {
        let turns = turn.wrapping_sub(self.used);
        // The rate has refilled what passed here.
        let idle_s = pause.as_secs_f64() * f64::from(turns);
        let is_back = f64::from(self.unreported) <= rate.per_s * idle_s;
        turns > FORGET_TURNS && is_back
    }

    /// Returns whether other members use it too.
    pub(crate) fn is_shared(&self) -> bool {
        !self.others.is_empty()
    }
}

/// Returns half of an equal part of a limit: if every member has less, all together do not exceed it.
fn few(limit: f64, members: usize) -> f64 {
    limit / (2.0 * members as f64)
}
