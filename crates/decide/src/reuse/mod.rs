//! The keep-alive learner: learns how long a server leaves idle connections open, and derives how
//! long the pool keeps them and what may be sent on them.
//!
//! If a server closes an idle connection just as a request is sent on it, that request is lost, and
//! it is unknown whether it was acted on. So a non-idempotent request is only sent on a connection
//! if there is evidence that the server leaves connections open for longer than this one has been
//! idle:
//!
//! - the server has *promised* so (`Keep-Alive: timeout=`), and has not broken such a promise; or
//! - several connections were *seen open* at a greater age, by enough to cover the way there, or
//!   answered a request at this age; and no remembered close came near this age.
//!
//! A close is remembered by the two checks that it lies between. Closes that agree are an idle
//! timeout: the pool keeps its connections below it, by a fifth. Closes at any age (a random
//! timeout, or a server that makes room by closing its oldest connections) leave nothing to rely
//! on: only idempotent requests are sent on pooled connections. Of a server that closes right after
//! its responses, no connections are kept at all. Many connections of different ages closed at once
//! are a restart, which says nothing about timeouts: learning restarts, and connections from before
//! are not used.
//!
//! What has been learned is tested: while it limits the pool, one connection is kept now and then
//! as an *observer*, which carries no request and is watched until the server closes it or it has
//! outlived the conclusion. Evidence expires after some minutes; a server that has closed at any
//! age is trusted again only after longer, and each relapse doubles that.
//!
//! What no evidence prevents: the first close of a server that changes its behaviour without a
//! restart, if it crosses a request on its way.
//!
//! ```text
//!  connected ──> Busy ── rest (response complete) ──> Idle ── saw_open (each sweep) ──┐
//!                 ^                                    │ ^──────────────────────────────┘
//!                 │                                    ├─ saw_closed, or too old ──> gone
//!                 └── answered / failed <── take <─────┘
//! ```
//!
//! One [`Learner`] per server address, shared by all workers. The questions on a request's path are
//! a few loads; the lock is taken when something new was observed, which is rare.

mod connection;
mod evidence;
mod habit;
mod memory;
mod promise;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use connection::{Busy, Idle};
pub use habit::{Habit, View};
pub use promise::Promise;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use connection::Reused;
use memory::{AT_ONCE, Memory};
use model::Moment;

/// Minimum allowance for the way to the server and its timers: a worker may notice a close this
/// much late.
const TRIP_MIN: Duration = Duration::from_millis(50);
/// Maximum allowance, when connections take long to establish.
const TRIP_MAX: Duration = Duration::from_secs(1);
/// Time, besides the network's, until a close right after a response is noticed: no non-idempotent
/// request is sent before.
const SETTLE_MIN: Duration = Duration::from_millis(2);
/// How often a connection is kept only for observation.
const OBSERVE_EVERY: Duration = Duration::from_secs(15);
/// How long after a burst of closes its survivors are checked.
const SURVIVOR_AFTER: Duration = Duration::from_millis(150);

/// What is known about when one server closes idle connections.
#[derive(Debug)]
pub struct Learner {
    /// Counts the server's restarts; a connection belongs to the epoch in which it was opened.
    epoch: AtomicU32,
    /// A non-idempotent request may be sent below this idle age. 0: never.
    safe_us: AtomicU64,
    /// Ages to keep below, as learned; [`NEVER`]: no limit.
    keep_us: AtomicU64,
    /// A connection open at an age that would raise the safe age above this is new information.
    news_us: AtomicU64,
    /// A connection open at this age contradicts the remembered closes.
    outlive_us: AtomicU64,
    /// When a burst of closes began that may be a restart; [`NEVER`]: none is under examination.
    burst_us: AtomicU64,
    /// When to re-evaluate even without new observations.
    due_us: AtomicU64,
    /// When the next observer may be kept.
    observe_us: AtomicU64,
    /// The longest recent time to establish a connection: one round trip.
    way_us: AtomicU64,
    /// The shortest timeout promised since the last restart; [`NEVER`]: none was.
    promised_us: AtomicU64,
    promises_hold: AtomicBool,
    has_news: AtomicBool,
    memory: Mutex<Memory>,
}

/// Means "never" and "unlimited" in published values.
const NEVER: u64 = u64::MAX;

impl Default for Learner {
    fn default() -> Self {
        Learner::new()
    }
}

impl Learner {
    /// Returns a learner that knows nothing about its server.
    pub fn new() -> Learner {
        Learner {
            epoch: AtomicU32::new(0),
            safe_us: AtomicU64::new(0),
            keep_us: AtomicU64::new(NEVER),
            news_us: AtomicU64::new(0),
            outlive_us: AtomicU64::new(NEVER),
            burst_us: AtomicU64::new(NEVER),
            due_us: AtomicU64::new(0),
            observe_us: AtomicU64::new(0),
            way_us: AtomicU64::new(0),
            promised_us: AtomicU64::new(NEVER),
            promises_hold: AtomicBool::new(true),
            has_news: AtomicBool::new(false),
            memory: Mutex::default(),
        }
    }

    // Questions of the pool.

    /// Returns whether a request may be sent on this connection now. An idempotent one: until the
    /// pool would close it. A non-idempotent one: only at an age that the server has promised or
    /// been seen to leave open, and not so soon after its last response that a close right after
    /// that could still be on its way. Never on an observer, nor on a connection from before a
    /// restart.
    pub fn may_reuse(
        &self,
        idle: &Idle,
        repeatable: bool,
        keep_alive: Duration,
        now: Moment,
    ) -> bool {
        if idle.observer || !self.is_of_this_life(idle.epoch) {
            return false;
        }
        let age_us = micros(now.since(idle.since));
        if age_us >= self.limit_us(idle.promised_us, keep_alive) {
            return false;
        }
        if repeatable {
            return true;
        }
        if !self.has_settled(idle, now) {
            return false;
        }
        // What a promise allows was just checked: the limit is below it.
        let promised = idle.promised_us != NEVER && self.promises_hold.load(Relaxed);
        promised || age_us < self.safe_us.load(Relaxed)
    }

    /// Returns whether a close right after its last response would have been noticed by now. Of
    /// connections in the order in which they became idle, the first ones have settled and the last
    /// ones have not.
    pub fn has_settled(&self, idle: &Idle, now: Moment) -> bool {
        let settled_us = micros(SETTLE_MIN) + self.way_us.load(Relaxed) / 2;
        micros(now.since(idle.since)) >= settled_us
    }

    /// Returns how long an idle connection of this server is kept at most; zero: not at all. Never
    /// more than the configured `keep_alive`.
    pub fn keep_for(&self, keep_alive: Duration) -> Duration {
        Duration::from_micros(self.limit_us(self.promised_us.load(Relaxed), keep_alive))
    }

    // Events of a connection, in this order.

    /// Records that a connection was established, which took this long.
    pub fn connected(&self, took: Duration) -> Busy {
        // The longest recent value, so that one quick handshake does not hide a long round trip.
        // Stored coarsely, so that it is not written each time.
        let known = self.way_us.load(Relaxed);
        let way = micros(took.min(TRIP_MAX)).max(known - known / 8);
        if way.abs_diff(known) > known / 16 {
            self.way_us.store(way, Relaxed);
        }
        Busy { epoch: self.epoch.load(Relaxed), after: None }
    }

    /// Starts the connection's idle time: a response is complete, and neither side has announced a
    /// close. Returns `None` if it must not be kept.
    pub fn rest(
        &self,
        busy: Busy,
        promise: Promise,
        keep_alive: Duration,
        now: Moment,
    ) -> Option<Idle> {
        // A connection opened before a restart belongs to a server process that is going away.
        if !self.is_of_this_life(busy.epoch) || promise.requests_left == Some(0) {
            return None;
        }
        let promised_us = promise.timeout.map_or(NEVER, micros);
        if promised_us < self.promised_us.load(Relaxed) {
            self.promised_us.store(promised_us, Relaxed);
            self.has_news.store(true, Relaxed);
        }
        let limit_us = self.limit_us(promised_us, keep_alive);
        let learned_us = self.keep_us.load(Relaxed);
        let observer = learned_us <= limit_us && learned_us < NEVER && self.wants_observer(now);
        if limit_us == 0 && !observer {
            return None;
        }
        let epoch = busy.epoch;
        Some(Idle { since: now, seen: now, epoch, observer, outlived: false, promised_us })
    }

    /// Records that a sweep found it open: no close has arrived, and nothing else. Returns whether
    /// it is kept further.
    pub fn saw_open(&self, idle: &mut Idle, keep_alive: Duration, now: Moment) -> bool {
        if now.as_micros() >= self.due_us.load(Relaxed) {
            self.note(idle.epoch, now, |_| {});
        }
        if !self.is_of_this_life(idle.epoch) {
            return false;
        }
        idle.seen = now;
        let age = now.since(idle.since);
        // A request sent now would arrive one trip later; so this age proves that much less.
        let vouches_us = micros(age.saturating_sub(self.trip()));
        if vouches_us > self.news_us.load(Relaxed) {
            let vouches = Duration::from_micros(vouches_us);
            self.note(idle.epoch, now, |memory| memory.survived(idle.since, vouches));
        }
        let burst_us = self.burst_us.load(Relaxed);
        if burst_us != NEVER
            && idle.since.as_micros() < burst_us
            && now.since(Moment::from_micros(burst_us)) >= SURVIVOR_AFTER
        {
            self.note(idle.epoch, now, Memory::survived_burst);
        }
        let outlives_us = self.outlive_us.load(Relaxed).min(
            // An observer that the pool would no longer keep has observed enough.
            if idle.observer { micros(keep_alive) } else { NEVER },
        );
        if !idle.outlived && micros(age) >= outlives_us {
            idle.outlived = true;
            self.note(idle.epoch, now, |memory| memory.outlived_closes(now));
        }
        if idle.observer {
            return !idle.outlived;
        }
        // While a burst is under examination, connections from before it are witnesses.
        let is_witness = burst_us != NEVER && idle.since.as_micros() < burst_us;
        let limit_us = self.limit_us(idle.promised_us, keep_alive);
        micros(age) < if is_witness { micros(keep_alive) } else { limit_us }
    }

    /// Records that it was found closed, by a sweep or when it was about to be used. Also right at
    /// [`rest`].
    ///
    /// [`rest`]: Learner::rest
    pub fn saw_closed(&self, idle: Idle, now: Moment) {
        if self.is_of_this_life(idle.epoch) {
            let ages = (idle.seen.since(idle.since), now.since(idle.since));
            self.note(idle.epoch, now, |memory| {
                memory.closed(ages, promised(idle.promised_us), now);
            });
        }
    }

    /// Takes it out of the pool for a request.
    pub fn take(&self, idle: Idle, now: Moment) -> Busy {
        let Idle { since, seen, promised_us, .. } = idle;
        Busy { epoch: idle.epoch, after: Some(Reused { since, seen, taken: now, promised_us }) }
    }

    /// Records the first byte of the response: the server had left the connection open until the
    /// request arrived.
    pub fn answered(&self, busy: &Busy, now: Moment) {
        let Some(reused) = busy.after else { return };
        let age = reused.taken.since(reused.since);
        if micros(age) > self.news_us.load(Relaxed) && self.is_of_this_life(busy.epoch) {
            self.note(busy.epoch, now, |memory| memory.survived(reused.since, age));
        }
    }

    /// Returns whether an end before any byte of the response can be one that crossed the request:
    /// later than a round trip, the server has closed because of the request.
    pub fn could_be_stale(&self, busy: &Busy, now: Moment) -> bool {
        busy.after.is_some_and(|reused| now.since(reused.taken) <= 2 * self.trip())
    }

    /// Records that it ended or was reset before any byte of a response to that request.
    pub fn failed(&self, busy: &Busy, now: Moment) {
        let Some(reused) = busy.after else { return };
        let trip = self.trip();
        if !self.is_of_this_life(busy.epoch) || !self.could_be_stale(busy, now) {
            return;
        }
        let latest = reused.taken.since(reused.since) + trip;
        let ages = (reused.seen.since(reused.since), latest);
        self.note(busy.epoch, now, |memory| {
            memory.closed(ages, promised(reused.promised_us), now);
        });
    }

    /// Records that the server has certainly been down: a connection was refused, or checks saw it
    /// down. What was learned is forgotten, and connections from before are no longer used.
    pub fn restarted(&self, now: Moment) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        self.reset(&mut memory, now);
        self.publish(&memory, now);
    }

    // Reports.

    /// Returns what is known now, for the API.
    pub fn view(&self, keep_alive: Duration) -> View {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        self.view_of(&memory, keep_alive)
    }

    /// Returns what is known now, if it differs materially from what this last returned: for the
    /// log. Called periodically, by one caller for all; two loads while there is nothing new.
    pub fn news(&self, keep_alive: Duration, now: Moment) -> Option<View> {
        if !self.has_news.load(Relaxed) && now.as_micros() < self.due_us.load(Relaxed) {
            return None;
        }
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        self.think(&mut memory, now);
        self.publish(&memory, now);
        if !self.has_news.swap(false, Relaxed) {
            return None;
        }
        let view = self.view_of(&memory, keep_alive);
        let is_new = view.habit.differs(memory.reported);
        memory.reported = view.habit;
        (is_new && view.habit != Habit::Unknown).then_some(view)
    }

    // Details.

    fn is_of_this_life(&self, epoch: u32) -> bool {
        epoch == self.epoch.load(Relaxed)
    }

    /// Returns the age at which the pool closes a connection.
    fn limit_us(&self, promised_us: u64, keep_alive: Duration) -> u64 {
        let learned_us = self.keep_us.load(Relaxed).min(micros(keep_alive));
        if promised_us == NEVER {
            return learned_us;
        }
        let trip = self.trip();
        learned_us.min(micros(below(Duration::from_micros(promised_us), trip)))
    }

    /// Returns the allowance for the way to the server and for late checks.
    fn trip(&self) -> Duration {
        (2 * Duration::from_micros(self.way_us.load(Relaxed))).clamp(TRIP_MIN, TRIP_MAX)
    }

    /// Returns true at most once per [`OBSERVE_EVERY`], over all workers.
    fn wants_observer(&self, now: Moment) -> bool {
        let due_us = self.observe_us.load(Relaxed);
        let next_us = (now + OBSERVE_EVERY).as_micros();
        now.as_micros() >= due_us
            && self.observe_us.compare_exchange(due_us, next_us, Relaxed, Relaxed).is_ok()
    }

    /// Adds an observation of a connection since the server's last restart, and publishes the
    /// conclusions.
    fn note(&self, epoch: u32, now: Moment, what: impl FnOnce(&mut Memory)) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        self.think(&mut memory, now);
        // The evaluation may have found a restart meanwhile.
        if self.is_of_this_life(epoch) {
            what(&mut memory);
        }
        self.publish(&memory, now);
    }

    /// Draws the conclusions from the time that has passed.
    fn think(&self, memory: &mut Memory, now: Moment) {
        if memory.judge_burst(now) {
            self.reset(memory, now);
        }
        memory.forget_old(now);
        // Not while a burst is under examination that may turn out to be a restart.
        if memory.is_settled() && self.view_habit(memory).differs(memory.reported) {
            self.has_news.store(true, Relaxed);
        }
    }

    fn reset(&self, memory: &mut Memory, now: Moment) {
        if memory.is_blank() && self.promised_us.load(Relaxed) == NEVER {
            // A server that is down refuses many connections; only the first counts as a restart.
            if !memory.is_new_life {
                self.epoch.fetch_add(1, Relaxed);
                memory.is_new_life = true;
            }
            return;
        }
        self.safe_us.store(0, Relaxed);
        self.epoch.fetch_add(1, Relaxed);
        self.promised_us.store(NEVER, Relaxed);
        memory.reset(now);
    }

    fn publish(&self, memory: &Memory, now: Moment) {
        let trip = self.trip();
        let limits = memory.limits(trip);
        self.safe_us.store(micros(limits.safe), Relaxed);
        self.keep_us.store(limits.keep.map_or(NEVER, micros), Relaxed);
        self.news_us.store(micros(limits.news), Relaxed);
        self.outlive_us.store(limits.outlive.map_or(NEVER, micros), Relaxed);
        self.burst_us.store(limits.burst.map_or(NEVER, Moment::as_micros), Relaxed);
        self.due_us.store(limits.due.max(now).as_micros(), Relaxed);
        self.promises_hold.store(limits.promises_hold, Relaxed);
    }

    fn view_habit(&self, memory: &Memory) -> Habit {
        match (memory.habit(), self.promised_us.load(Relaxed)) {
            (Habit::Unknown, us) if us != NEVER => {
                Habit::Promises { timeout: Duration::from_micros(us) }
            }
            (habit, _) => habit,
        }
    }

    fn view_of(&self, memory: &Memory, keep_alive: Duration) -> View {
        let kept = self.keep_for(keep_alive);
        let seen_open = Duration::from_micros(self.safe_us.load(Relaxed)).min(kept);
        View { habit: self.view_habit(memory), kept, seen_open }
    }
}

/// Returns how long a connection is kept whose server closes at `age`: below it by a fifth, which
/// is 1 s of the usual 5 s and so covers timers that count whole seconds; at least by the allowance
/// for the trip. Zero when nothing worthwhile is left.
fn below(age: Duration, trip: Duration) -> Duration {
    let kept = age.saturating_sub((age / 5).max(trip));
    if kept < AT_ONCE { Duration::ZERO } else { kept }
}

fn promised(us: u64) -> Option<Duration> {
    (us != NEVER).then(|| Duration::from_micros(us))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(NEVER)
}
