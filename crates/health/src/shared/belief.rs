//! Whether one member can rely on the results of others for one probe, or must probe for itself.
//!
//! ```text
//!             a prober's result is missing, contrary or ignored
//!   Relying ────────────────────────────────────────────────────▶ Probing
//!      ▲                                                             │
//!      └── fresh and alike for one whole interval, not a prober ─────┘
//! ```
//!
//! [`crate::plan::Plan`] schedules a turn for every probe, also for those that other members run. A
//! member that probes for itself uses these turns. Therefore it never probes more often than without
//! sharing, its first probe starts within 1.1 intervals, and the probes of the members are spread over
//! the interval.
//!
//! A result is fresh for two intervals after the run ended, or for 1.1 intervals and the longest
//! timeout if that is longer: the time until a run that times out can be reported. Its age is what
//! the sender's monotonic clock says, and then this member's; wall clocks play no part. A prober that
//! was assigned lately has as long to report first, if the others report successes.
//!
//! A prober whose results contradict this member's own, [`CONTRADICTIONS_IN_A_ROW`] times in a row or
//! [`CONTRADICTIONS_OF_LAST`] times of 8, is ignored until it agrees [`AGREEMENTS_NEEDED`] times in a
//! row. It counts as absent: this member probes for itself. Relying on the others would be cheaper,
//! but with two probers a single one would remain, whose results could mark down a healthy
//! server; and only this member's own results show when the ignored prober is right again.
//!
//! If the probers use a longer interval or a shorter timeout than this member, their results are
//! never fresh or never conclusive, and it probes for itself.

use std::time::Duration;

use model::Moment;

use super::assignment::{MemberIndex, PROBERS_MAX, Probers};
use super::doubt::Doubt;
pub use super::doubt::{AGREEMENTS_NEEDED, CONTRADICTIONS_IN_A_ROW, CONTRADICTIONS_OF_LAST, Event};
use super::result::{Heard, Outcome};
use crate::evidence::Failure;
use crate::plan::JITTER_SHARE;

/// How long after a result its prober sends it for the second time, at the latest: so the loss of one
/// message delays a result by this time only.
pub const REPEAT_AFTER: Duration = Duration::from_millis(500);

/// Maximum number of members whose results for one probe are kept.
pub const SOURCES_MAX: usize = 2 * PROBERS_MAX;

/// The unit of [`Heard::run`]. A number of this process's clock, so that it goes on when a probe
/// leaves the plan and returns; it wraps around after 27 minutes.
const RUN_UNIT: Duration = Duration::from_millis(25);

/// What a member does at its turn of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// It runs the probe.
    Probe,
    /// It relies on the results of the probers.
    Rely,
}

/// What the consumers of a probe at this member need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The shortest interval of any of them.
    pub interval: Duration,
    /// Their distinct timeouts, shortest first ([`crate::plan::Probe::timeouts`]).
    pub timeouts: Vec<Duration>,
    /// The largest `fall` of any of them.
    pub fall: u32,
}

/// Whose results count at present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Other members that are believed and have a fresh result.
    pub voters: Vec<MemberIndex>,
    /// Whether no prober is missing: they are as many as the probers other than this member, which has
    /// a result of its own if it is a prober.
    pub is_complete: bool,
    /// Since when this member has probed for itself, without a pause.
    pub probing_since: Option<Moment>,
}

impl Standing {
    /// Returns that of a probe that no other member runs: own results decide.
    pub fn alone() -> Standing {
        let probing_since = Some(Moment::ZERO);
        Standing { voters: Vec::new(), is_complete: false, probing_since }
    }
}

/// What follows from an own result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// What to send to the zone: at once, and again within [`REPEAT_AFTER`], with its age at the
    /// time. `None`: this member is no prober of the probe.
    pub send: Option<Heard>,
    /// For findings.
    pub events: Vec<Event>,
}

/// What one member knows about one probe.
#[derive(Clone, Debug)]
pub struct Belief {
    me: MemberIndex,
    needs: Needs,
    is_prober: bool,
    sources: Vec<Source>,
    own: Option<Dated>,
    /// Results of one kind in a row of this member's own.
    own_in_a_row: u8,
    /// It probes for itself until then, at least.
    wary_until: Option<Moment>,
    probing_since: Option<Moment>,
}

#[derive(Clone, Debug)]
struct Source {
    member: MemberIndex,
    role: Role,
    /// The start of its process that sent the last result.
    start: u64,
    last: Option<Dated>,
    doubt: Doubt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Assigned {
        since: Moment,
    },
    /// It was assigned until a moment ago; its results stand in for those of new probers.
    Former {
        until: Moment,
    },
    /// Perhaps it is assigned by a roster that is newer than this member's.
    Other,
}

/// A result, and when it was received. Its run may have ended before this process started, so that
/// there is no moment for that.
#[derive(Clone, Copy, Debug)]
struct Dated {
    heard: Heard,
    received: Moment,
}

impl Belief {
    /// Returns the belief of a member that has heard nothing.
    pub fn new(me: MemberIndex, needs: Needs) -> Belief {
        Belief {
            me,
            needs,
            is_prober: false,
            sources: Vec::new(),
            own: None,
            own_in_a_row: 0,
            wary_until: None,
            probing_since: None,
        }
    }

    /// Applies changed consumers.
    pub fn retune(&mut self, needs: Needs) {
        self.needs = needs;
    }

    /// Applies a changed assignment. Results of members that are no longer assigned count for as
    /// long as a result is fresh: rosters differ for a while.
    pub fn assign(&mut self, probers: &Probers, now: Moment) {
        self.review(now);
        let was_prober = std::mem::replace(&mut self.is_prober, probers.contains(self.me));
        if was_prober && !self.is_prober {
            // Goes on until its successor speaks, who may not be reachable.
            self.wary_until = Some(now + self.needs.interval);
        }
        let until = now + self.fresh_for();
        // The successor of one that was waited for in vain does not get more time: members that cannot be
        // reached leave the list one after the other.
        let in_vain = self.sources.iter().filter_map(|source| match source.role {
            Role::Assigned { since } if !probers.contains(source.member) => {
                source.last.is_none_or(|last| last.received < since).then_some(since)
            }
            Role::Assigned { .. } | Role::Former { .. } | Role::Other => None,
        });
        let new_since = in_vain.min().unwrap_or(now);
        for source in &mut self.sources {
            source.role = match (source.role, probers.contains(source.member)) {
                (Role::Assigned { since }, true) => Role::Assigned { since },
                (Role::Assigned { .. }, false) => Role::Former { until },
                (Role::Former { .. } | Role::Other, true) => Role::Assigned { since: new_since },
                (Role::Former { until }, false) => Role::Former { until },
                (Role::Other, false) => Role::Other,
            };
        }
        let me = self.me;
        for member in probers.iter().filter(|member| *member != me) {
            if !self.sources.iter().any(|source| source.member == member) {
                self.make_room();
                self.sources.push(Source::new(member, Role::Assigned { since: new_since }));
            }
        }
        self.review(now);
    }

    /// Records a result. Returns whether it is new and conclusive, so that the consumers count it.
    pub fn on_heard(&mut self, from: MemberIndex, start: u64, heard: &Heard, now: Moment) -> bool {
        let longest = self.needs.timeout_max();
        if from == self.me || heard.read(longest).is_none() {
            return false;
        }
        // What became stale in the meantime must not go unnoticed.
        self.review(now);
        let dated = Dated { heard: *heard, received: now };
        let fresh_for = self.fresh_for();
        if !dated.is_fresh(fresh_for, now) {
            return false;
        }
        let at = self.sources.iter().position(|source| source.member == from);
        let at = at.or_else(|| {
            self.make_room();
            let has_room = self.sources.len() < SOURCES_MAX;
            has_room.then(|| {
                self.sources.push(Source::new(from, Role::Other));
                self.sources.len() - 1
            })
        });
        let Some(source) = at.and_then(|at| self.sources.get_mut(at)) else {
            return false;
        };
        let before = source.last.filter(|last| last.is_fresh(fresh_for, now));
        if let Some(before) = before
            && source.start == start
            && !is_later(heard.run, before.heard.run)
        {
            return false;
        }
        source.start = start;
        source.last = Some(dated);
        self.review(now);
        true
    }

    /// Records the result of a run of this member's own that ended `now`.
    pub fn on_own(&mut self, elapsed: Duration, result: Result<(), Failure>, now: Moment) -> Own {
        self.review(now);
        let outcome = Outcome::of(result);
        let run = (now.as_micros() / RUN_UNIT.as_micros() as u64) as u16;
        let is_like = |own: &Dated| own.heard.is_success() == (outcome == Outcome::Success);
        let continues = self.own.as_ref().is_some_and(is_like);
        let mut heard =
            Heard { outcome, elapsed, age_at_sending: Duration::ZERO, run, in_a_row: 1 };
        if outcome == Outcome::Unknown {
            return Own { send: self.is_prober.then_some(heard), events: Vec::new() };
        }
        heard.in_a_row = if continues { self.own_in_a_row.saturating_add(1) } else { 1 };
        let mut events = Vec::new();
        if let Some(own) = heard.read(self.needs.timeout_max()) {
            let recent = self.needs.interval;
            for source in &mut self.sources {
                let Some(last) = source.last.filter(|last| last.age(now) <= recent) else {
                    continue;
                };
                let theirs = last.heard.read(self.needs.timeout_max());
                let Some(theirs) = theirs else { continue };
                let agrees = theirs.is_ok() == own.is_ok();
                events.extend(source.doubt.compare(source.member, agrees, now));
            }
        }
        if self.probing_since.is_some() {
            self.own_in_a_row = heard.in_a_row;
            self.own = Some(Dated { heard, received: now });
        }
        self.review(now);
        Own { send: self.is_prober.then_some(heard), events }
    }

    /// Probes for an interval from `now` on, whatever others say.
    pub fn probe_for_itself(&mut self, now: Moment) {
        self.wary_until = Some(now + self.needs.interval.mul_f64(1.0 + JITTER_SHARE));
    }

    /// Returns the probers whose results are ignored.
    pub fn ignored(&self) -> impl Iterator<Item = MemberIndex> {
        let counts = |source: &&Source| source.role != Role::Other && source.doubt.is_ignored();
        self.sources.iter().filter(counts).map(|source| source.member)
    }

    /// Returns what this member does if it is its turn `now`.
    pub fn duty(&mut self, now: Moment) -> Duty {
        self.review(now);
        if self.probing_since.is_some() { Duty::Probe } else { Duty::Rely }
    }

    /// Returns whose results count for the consumers.
    pub fn standing(&mut self, now: Moment) -> Standing {
        self.review(now);
        let mut voters = Vec::new();
        let (mut missing, mut late) = (0_usize, false);
        for source in &self.sources {
            let Role::Assigned { since } = source.role else { continue };
            if self.speaks(source, now) {
                voters.push(source.member);
            } else {
                missing += 1;
                late |= source.doubt.is_ignored() || !self.is_new(source, since, now);
            }
        }
        if missing > 0 {
            let former = |source: &&Source| {
                matches!(source.role, Role::Former { .. }) && self.speaks(source, now)
            };
            let before = voters.len();
            voters.extend(self.sources.iter().filter(former).map(|source| source.member));
            missing = missing.saturating_sub(voters.len() - before);
        }
        // A prober is one of those that must agree: until its first result, the others are too few.
        let is_silent = self.is_prober && self.own.is_none();
        let is_complete = missing == 0 && !late && !is_silent;
        Standing { voters, is_complete, probing_since: self.probing_since }
    }

    /// Returns how long a result is fresh.
    fn fresh_for(&self) -> Duration {
        let interval = self.needs.interval;
        let one_run = interval.mul_f64(1.0 + JITTER_SHARE).saturating_add(self.needs.timeout_max());
        one_run.max(interval.saturating_mul(2))
    }

    /// Begins and ends probing for itself, by what is known `now`.
    fn review(&mut self, now: Moment) {
        for source in &mut self.sources {
            if let Role::Former { until } = source.role
                && until <= now
            {
                source.role = Role::Other;
            }
        }
        if !self.is_settled(now) {
            self.wary_until = Some(now + self.needs.interval);
        }
        let probes = self.is_prober || self.wary_until.is_some_and(|until| now < until);
        if !probes {
            (self.own, self.probing_since) = (None, None);
        } else if self.probing_since.is_none() {
            self.probing_since = Some(now);
        }
    }

    /// Returns whether every prober has a fresh result, and all results are alike. One that is new need
    /// not have one yet, unless this member already probes for itself.
    fn is_settled(&self, now: Moment) -> bool {
        let own = self.own.as_ref().filter(|own| own.is_fresh(self.fresh_for(), now));
        let mut voice = own.map(|own| own.heard);
        let (mut assigned, mut speaking) = (0, 0);
        let (mut is_waiting, mut is_behind) = (false, false);
        for source in &self.sources {
            let since = match source.role {
                Role::Assigned { since } => Some(since),
                Role::Former { .. } => None,
                Role::Other => continue,
            };
            assigned += usize::from(since.is_some());
            if let Some(last) = source.last.as_ref().filter(|_| self.speaks(source, now)) {
                speaking += 1;
                is_behind |= since.is_some_and(|since| self.is_behind(&last.heard, since, now));
                let first = *voice.get_or_insert(last.heard);
                if !self.needs.are_alike(&first, &last.heard) {
                    return false;
                }
            } else if let Some(since) = since {
                if source.doubt.is_ignored() || !self.is_new(source, since, now) {
                    return false;
                }
                is_waiting = true;
            }
        }
        // A new prober is a reason to wait for it, but none to stop probing, or to do nothing while the
        // others report failures.
        let is_wary = self.wary_until.is_some_and(|until| now < until);
        let is_calm = !is_wary && speaking > 0 && voice.is_some_and(|voice| voice.is_success());
        assigned > 0 && !is_behind && (!is_waiting || is_calm)
    }

    /// Returns whether a prober that was assigned lately has not seen enough failures yet for a
    /// consumer to conclude from. Otherwise every change of probers would delay that.
    fn is_behind(&self, heard: &Heard, since: Moment, now: Moment) -> bool {
        let turns = self.needs.interval.mul_f64(1.0 + JITTER_SHARE).saturating_mul(self.needs.fall);
        let lately = self.fresh_for().saturating_add(turns);
        !heard.is_success()
            && u32::from(heard.in_a_row) < self.needs.fall.min(255)
            && now.since(since) < lately
    }

    fn speaks(&self, source: &Source, now: Moment) -> bool {
        let is_fresh = source.last.is_some_and(|last| last.is_fresh(self.fresh_for(), now));
        is_fresh && !source.doubt.is_ignored()
    }

    /// Returns whether a prober that does not speak need not have spoken yet.
    fn is_new(&self, source: &Source, since: Moment, now: Moment) -> bool {
        source.last.is_none_or(|last| last.received < since) && now.since(since) < self.fresh_for()
    }

    /// Drops a member that is not assigned if there are as many as may be kept.
    fn make_room(&mut self) {
        if self.sources.len() < SOURCES_MAX {
            return;
        }
        let received = |source: &Source| source.last.map(|last| last.received);
        let others = self.sources.iter().enumerate();
        let others = others.filter(|(_, source)| !matches!(source.role, Role::Assigned { .. }));
        if let Some((oldest, _)) = others.min_by_key(|(_, source)| received(source)) {
            self.sources.swap_remove(oldest);
        }
    }
}

impl Source {
    fn new(member: MemberIndex, role: Role) -> Source {
        Source { member, role, start: 0, last: None, doubt: Doubt::default() }
    }
}

impl Dated {
    /// Returns the time since its run ended, but for the time of the message on its way.
    fn age(&self, now: Moment) -> Duration {
        now.since(self.received).saturating_add(self.heard.age_at_sending)
    }

    fn is_fresh(&self, fresh_for: Duration, now: Moment) -> bool {
        self.age(now) < fresh_for
    }
}

impl Needs {
    fn timeout_max(&self) -> Duration {
        self.timeouts.last().copied().unwrap_or_default()
    }

    /// Returns whether two results mean the same for every consumer.
    fn are_alike(&self, one: &Heard, other: &Heard) -> bool {
        let is_up = |heard: &Heard, timeout| heard.read(timeout).map(|result| result.is_ok());
        self.timeouts.iter().all(|&timeout| is_up(one, timeout) == is_up(other, timeout))
    }
}

/// Returns whether a run comes after another, by numbers that wrap around.
fn is_later(run: u16, than: u16) -> bool {
    (1..=u16::MAX / 2).contains(&run.wrapping_sub(than))
}

#[cfg(test)]
mod tests;
