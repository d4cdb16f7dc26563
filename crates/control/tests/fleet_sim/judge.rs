//! What must hold, for one process and one server. The world says what happens and when; times without
//! a clock of their own are microseconds of the world.

use std::collections::VecDeque;

use health::shared::assignment::MemberIndex;
use health::shared::belief::Standing;
use health::shared::tally::Decided;
use model::{Health, Moment};

use crate::process::{FALL, INTERVAL, RISE, TIMEOUT};

pub(crate) const SECOND: u64 = 1_000_000;
const TURN: u64 = INTERVAL.as_micros() as u64;
const WAIT: u64 = TIMEOUT.as_micros() as u64;

/// Clocks run at 0.99 to 1.01 of the world's, and a datagram takes 50 ms at most.
const CLOCKS: f64 = 1.0102;
const WAY_MAX: u64 = 50_000;

/// How old a result may be that changes a health.
pub(crate) const FRESH: u64 = ((2 * TURN + WAIT) as f64 * CLOCKS) as u64 + WAY_MAX;

/// The time until a change of a server is known, after which a member must have it.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    down: u64,
    up: u64,
}

impl Limits {
    /// Without churn, if each result arrives.
    pub(crate) fn calm() -> Limits {
        Limits::new(|results| limit(1.1 * results, 1.0))
    }

    /// Without churn, if both messages with a result may be lost, which happens to one in 400 at a loss of 5 %. Then
    /// the next result counts.
    pub(crate) fn lossy() -> Limits {
        Limits::new(|results| limit(1.1 * (results + 1.0), 1.0))
    }

    /// In any schedule. All results but one of a prober may arrive, the last one is fresh for two intervals, and
    /// then the member begins to count its own.
    pub(crate) fn any() -> Limits {
        Limits::new(|results| limit(1.1 * (results - 1.0) + 2.0 + 1.1 * results, 2.0))
    }

    fn new(of_results: impl Fn(f64) -> u64) -> Limits {
        Limits { down: of_results(f64::from(FALL)), up: of_results(f64::from(RISE)) }
    }

    pub(crate) fn of(self, health: Health) -> u64 {
        if health == Health::Up { self.up } else { self.down }
    }
}

/// Returns the time of some intervals and timeouts by the slowest clock, and a second.
fn limit(intervals: f64, timeouts: f64) -> u64 {
    ((intervals * TURN as f64 + timeouts * WAIT as f64) * CLOCKS) as u64 + SECOND
}

/// A server, from its beginning on.
#[derive(Default)]
pub(crate) struct Server {
    pub(crate) is_dead: bool,
    /// While it is dead: it refuses connections, instead of not answering.
    pub(crate) refuses: bool,
    /// How long it takes to answer.
    pub(crate) takes: u64,
    /// When it died or came back.
    pub(crate) since: u64,
    /// When it was dead before, from and until.
    deaths: Vec<(u64, u64)>,
    /// Probes in the last minute, and in the present calm stretch.
    starts: VecDeque<u64>,
    pub(crate) calm_starts: u64,
    /// The most probes in any minute.
    pub(crate) most: usize,
}

impl Server {
    pub(crate) fn set_dead(&mut self, is_dead: bool, time: u64) {
        if self.is_dead && !is_dead {
            self.deaths.push((self.since, time));
        }
        if self.is_dead != is_dead {
            (self.is_dead, self.since) = (is_dead, time);
        }
    }

    /// Returns whether a result that may count `now` may have found it dead, after enough time for others before it.
    fn was_dead(&self, now: u64, for_at_least: u64) -> bool {
        let present = self.is_dead.then_some((self.since, now));
        // All runs fail if it only lives between two of them.
        let mut from_to: Option<(u64, u64)> = None;
        for (from, to) in self.deaths.iter().copied().chain(present) {
            from_to = match from_to {
                Some((first, last)) if from <= last + TURN + TURN / 4 => Some((first, to)),
                _ => Some((from, to)),
            };
        }
        from_to.is_some_and(|(from, to)| to + FRESH >= now && to - from >= for_at_least)
    }

    fn was_alive(&self, now: u64) -> bool {
        !self.is_dead || now - self.since <= FRESH
    }

    /// Counts a start. Fails if there are more in a minute than members run without sharing.
    pub(crate) fn on_start(&mut self, time: u64, members: usize) -> Result<(), String> {
        self.starts.push_back(time);
        self.calm_starts += 1;
        while self.starts.front().is_some_and(|at| at + 60 * SECOND < time) {
            self.starts.pop_front();
        }
        self.most = self.most.max(self.starts.len());
        let limit = members as f64 * 1.1 * 60.0 * SECOND as f64 / TURN as f64;
        if self.starts.len() as f64 > limit {
            return Err(format!("{} probes in a minute", self.starts.len()));
        }
        Ok(())
    }

    /// Fails if the probes of a calm stretch are more than those of the probers.
    pub(crate) fn on_calm(&self, stretch: u64, probers: usize) -> Result<(), String> {
        // Each prober may have one more at an end of the stretch.
        let limit = probers as f64 * (1.1 * stretch as f64 / TURN as f64 + 1.0);
        if self.calm_starts as f64 > limit {
            let seconds = stretch as f64 / SECOND as f64;
            return Err(format!(
                "{} probes in {seconds:.1} calm seconds, limit {limit:.1}",
                self.calm_starts
            ));
        }
        Ok(())
    }
}

/// What one process knows about one server.
pub(crate) struct Evidence {
    /// By its own clock: the last time that it had all results, or ran the probe itself.
    complete: Moment,
    last_run: Option<Moment>,
    /// Whose results it had when it was last asked, if it had all.
    voters: Option<Vec<MemberIndex>>,
    /// It was paused, and has not run the probe since.
    was_paused: bool,
    /// The last runs of its own: when they ended, by the world's clock and its own; the last one last.
    ends: VecDeque<(u64, Moment)>,
    /// Whether they succeeded.
    own: VecDeque<bool>,
    /// When the last run ended that each other member told it about.
    heard: Vec<(MemberIndex, u64)>,
    /// From when to when this member alone could not reach the server.
    pub(crate) cut: Option<(u64, u64)>,
}

impl Evidence {
    pub(crate) fn new(now: Moment, cut: Option<(u64, u64)>) -> Evidence {
        Evidence {
            complete: now,
            last_run: None,
            voters: None,
            was_paused: false,
            ends: VecDeque::new(),
            own: VecDeque::new(),
            heard: Vec::new(),
            cut,
        }
    }

    /// The process did not run until now.
    pub(crate) fn on_pause(&mut self, now: Moment) {
        self.complete = now;
        self.last_run = None;
        self.was_paused = true;
    }

    pub(crate) fn on_run(&mut self, now: Moment) -> Result<(), String> {
        self.complete = now;
        // The first run after a pause is late, and `health::plan` starts the next one as planned before: these two
        // may follow each other at once.
        let counts = !std::mem::take(&mut self.was_paused);
        let before = std::mem::replace(&mut self.last_run, counts.then_some(now));
        match before.map(|before| now.since(before)) {
            // Timers wake the process up to 2 µs late.
            Some(pause) if pause + 4 * MICROSECOND < INTERVAL.mul_f64(0.9) => {
                Err(format!("two runs within {pause:?}"))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn on_standing(&mut self, standing: &Standing, now: Moment) {
        if standing.is_complete {
            self.complete = now;
        }
        self.voters = standing.is_complete.then(|| standing.voters.clone());
    }

    /// Fails if there is no evidence for too long.
    pub(crate) fn check(&mut self, time: u64, now: Moment) -> Result<(), String> {
        let is_fresh = |voter: &MemberIndex| {
            let heard = self.heard.iter().find(|(member, _)| member == voter);
            heard.is_some_and(|(_, ended)| time - ended < 2 * TURN)
        };
        if self.voters.as_ref().is_some_and(|voters| voters.iter().all(is_fresh)) {
            self.complete = now;
        }
        let age = now.since(self.complete);
        if age > INTERVAL * 3 + TIMEOUT {
            return Err(format!("neither results of all probers nor a run for {age:?}"));
        }
        Ok(())
    }

    pub(crate) fn on_ended(&mut self, is_success: bool, time: u64, now: Moment) {
        self.ends.push_back((time, now));
        self.own.push_back(is_success);
        if self.ends.len() > 4 {
            self.ends.pop_front();
            self.own.pop_front();
        }
    }

    /// Returns whether its last run did not fail.
    pub(crate) fn may_fail(&self) -> bool {
        self.own.back().is_some_and(|success| *success)
    }

    /// Returns when the run ended that this process says is so old.
    pub(crate) fn ended(&self, age: std::time::Duration, now: Moment) -> Option<u64> {
        // Ages are sent in milliseconds.
        let is_it = |(_, local): &&(u64, Moment)| now.since(*local).as_millis() == age.as_millis();
        self.ends.iter().rev().find(is_it).map(|(time, _)| *time)
    }

    pub(crate) fn on_heard(&mut self, from: MemberIndex, ended: u64) {
        match self.heard.iter_mut().find(|(member, _)| *member == from) {
            Some((_, at)) => *at = ended,
            None => self.heard.push((from, ended)),
        }
    }

    /// Judges a change of health. `is_exact`: no run of this
    /// schedule fails by chance, and no process pauses.
    pub(crate) fn on_decided(
        &self,
        decided: &Decided,
        standing: &Standing,
        server: &Server,
        time: u64,
        is_exact: bool,
    ) -> Result<(), String> {
        let is_up = decided.change.to == Health::Up;
        let needed = match (decided.change.from, is_up) {
            (Health::Unknown, true) => 1,
            (_, true) => RISE,
            (_, false) => FALL,
        };
        if decided.is_own {
            let row = self.own.iter().rev().take_while(|success| **success == is_up).count();
            let age = self.ends.back().map_or(u64::MAX, |(ended, _)| time - ended);
            if row < needed as usize || age > FRESH {
                return Err(format!("{decided:?} by {row} own results, the last {age} µs old"));
            }
        } else {
            for voter in &standing.voters {
                let heard = self.heard.iter().find(|(member, _)| member == voter);
                let age = heard.map_or(u64::MAX, |(_, ended)| time - ended);
                if age > FRESH {
                    return Err(format!("{decided:?} by a result that is {age} µs old"));
                }
            }
        }
        let dead_for = if is_exact {
            (f64::from(FALL - 1) * 0.9 / CLOCKS * TURN as f64) as u64 - WAIT
        } else {
            0
        };
        let was_cut = self.cut.is_some_and(|(from, to)| from <= time && time <= to + FRESH);
        let may_be = if is_up {
            server.was_alive(time)
        } else {
            server.was_dead(time, dead_for) || was_cut && decided.is_own
        };
        if may_be { Ok(()) } else { Err(format!("{decided:?}, which is wrong, {standing:?}")) }
    }
}

const MICROSECOND: std::time::Duration = std::time::Duration::from_micros(1);
