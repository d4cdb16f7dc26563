//! The servers of one service as its source lists them, over time.
//!
//! An answer normally applies as it is. Two things are damped, because sources fail, too: an answer
//! that lists far fewer servers than the one before (a catalogue that restarted empty), and servers
//! that come and go. Neither removes a server: it becomes one of last resort, which is used when no
//! other is left, and after a passing check if the service has one. While a source fails, its last
//! good answer stays.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use model::{Discover, Listing, Moment, ServerSourceWord, ServerSpec, ServerTarget, Standing};

use crate::{Answer, Readiness, Refused, Row};

/// Each return of a server after it had left counts 1; the count halves in this time.
const FLAP_HALF_LIFE: Duration = Duration::from_secs(60);
/// From this count on a server is flapping: three returns within about half a minute.
const FLAPPING_FROM: f64 = 2.5;
/// Below this count it no longer is: at least 80 s without another return.
const FLAPPING_BELOW: f64 = 1.0;
/// A server that has been gone for this long is forgotten: a return then is no flap.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(300);
/// Servers of a service whose returns are counted.
const FLAPS_MAX: usize = 4096;

/// The servers of one service as its source lists them.
#[derive(Clone, Debug)]
pub struct Set {
    source: ServerSourceWord,
    servers: BTreeMap<ServerTarget, Listed>,
    flaps: HashMap<ServerTarget, Flaps>,
    answered_at: Option<Moment>,
    changed_at: Option<Moment>,
    failing_since: Option<Moment>,
    /// Since when no part of the source has answered.
    silent_since: Option<Moment>,
    error: Option<String>,
    index: Option<u64>,
    refused: (u64, Vec<Refused>),
    /// Everything was dropped, since the source had failed for longer than `kept_max`.
    is_dropped: bool,
}

/// A server as its source lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its address or name, and its settings.
    pub server: ServerSpec,
    /// How and since when it is listed.
    pub listing: Arc<Listing>,
    /// When it is dropped, if it is held.
    held_until: Option<Moment>,
}

/// How often a server has come back.
#[derive(Clone, Copy, Debug)]
struct Flaps {
    count: f64,
    at: Moment,
    is_away: bool,
    is_flapping: bool,
}

/// What an answer changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the servers, or what is known of them, are different.
    pub changed: bool,
    /// Servers that are held from now on, since the answer lists too few.
    pub newly_held: usize,
}

/// The state of a set, for display.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SetState {
    /// Servers that are listed and may receive requests.
    pub listed: usize,
    /// Servers that the source reports as failing or in maintenance.
    pub not_ready: usize,
    /// Servers that are held.
    pub held: usize,
    /// Servers that are flapping.
    pub flapping: usize,
    /// Entries of the last answer that were refused.
    pub refused: u64,
    /// Some of them, each with the reason.
    pub refused_examples: Vec<Refused>,
    /// When the source last answered; `None`: not since this process started.
    pub answered_at: Option<Moment>,
    /// When an answer last changed something.
    pub changed_at: Option<Moment>,
    /// Since when it fails; `None`: the last answer was good.
    pub failing_since: Option<Moment>,
    /// Why it fails.
    pub error: Option<String>,
    /// The index of the last answer, if the source has one.
    pub index: Option<u64>,
}

impl Set {
    /// Returns an empty set.
    pub fn new(source: ServerSourceWord) -> Set {
        Set {
            source,
            servers: BTreeMap::new(),
            flaps: HashMap::new(),
            answered_at: None,
            changed_at: None,
            failing_since: None,
            silent_since: None,
            error: None,
            index: None,
            refused: (0, Vec::new()),
            is_dropped: false,
        }
    }

    /// Fills a new set with the rows of an earlier process, which count as if the source had listed them before, and
    /// with those that it held, which are held again.
    pub fn restore(&mut self, rows: Vec<Row>, held: Vec<Row>, policy: &Discover, now: Moment) {
        for row in rows {
            let standing = standing(row.readiness);
            self.put(row, None, standing, now);
        }
        for row in held {
            if policy.hold.max > Duration::ZERO && !self.servers.contains_key(&row.server.target) {
                let target = row.server.target.clone();
                self.put(row, None, Standing::Held, now);
                if let Some(one) = self.servers.get_mut(&target) {
                    one.held_until = Some(now + policy.hold.max);
                }
            }
        }
    }

    /// Takes over the servers of another set.
    pub fn take_servers(&mut self, other: &Set) {
        self.servers = other.servers.clone();
    }

    /// Forgets the servers, which were those of another source: in the first answer of this one, fewer servers are
    /// no failure. Returns whether there were any.
    pub fn forget_servers(&mut self, now: Moment) -> bool {
        let had_any = !self.servers.is_empty();
        if had_any {
            self.servers.clear();
            self.changed_at = Some(now);
        }
        had_any
    }

    /// Lets no server be held for longer than until `end`.
    pub fn limit_held(&mut self, end: Moment) {
        for one in self.servers.values_mut() {
            one.held_until = one.held_until.map(|until| until.min(end));
        }
    }

    /// Returns whether it has no servers.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Returns whether its servers were dropped because the source had failed for `kept_max`.
    pub fn is_dropped(&self) -> bool {
        self.is_dropped
    }

    /// Applies an answer. `index`: that of the source, if it has one.
    pub fn on_answer(
        &mut self,
        answer: Answer,
        index: Option<u64>,
        policy: &Discover,
        now: Moment,
    ) -> Outcome {
        let Answer { rows, refused, refused_count } = answer;
        let mut rows: BTreeMap<ServerTarget, Row> =
            rows.into_iter().map(|row| (row.server.target.clone(), row)).collect();
        let holds = self.holds(&rows, policy);
        let mut outcome = Outcome::default();
        let missing: Vec<ServerTarget> =
            self.servers.keys().filter(|target| !rows.contains_key(target)).cloned().collect();
        for target in missing {
            let Slot::Occupied(mut slot) = self.servers.entry(target) else { continue };
            let one = slot.get_mut();
            if one.held_until.is_some_and(|until| until > now) {
                continue;
            }
            outcome.changed = true;
            // What the source had reported as not ready is not missed.
            if holds && one.held_until.is_none() && one.listing.standing.is_ready() {
                outcome.newly_held += 1;
                one.held_until = Some(now + policy.hold.max);
                one.listing = Arc::new(Listing {
                    standing: Standing::Held,
                    since: now,
                    index,
                    ..Listing::clone(&one.listing)
                });
            } else {
                let target = slot.remove().server.target;
                self.leaves(target, now);
            }
        }
        while let Some((target, row)) = rows.pop_first() {
            let is_failing = row.readiness == Readiness::Critical;
            let standing = match standing(row.readiness) {
                Standing::Listed if self.comes(&target, now) => Standing::Flapping,
                standing => standing,
            };
            // Maintenance is a decision of an operator, no failure.
            if is_failing {
                self.leaves(target, now);
            }
            outcome.changed |= self.put(row, index, standing, now);
        }
        self.forget(now);
        self.refused = (refused_count, refused);
        (self.answered_at, self.index) = (Some(now), index);
        (self.failing_since, self.silent_since, self.error) = (None, None, None);
        self.is_dropped = false;
        if outcome.changed {
            self.changed_at = Some(now);
        }
        outcome
    }

    /// Notes that the source, or a part of it, has not answered usably since `since`. The servers stay.
    /// `silent_since`: since when no part has answered; `None`: one has.
    pub fn on_failure(&mut self, why: String, since: Moment, silent_since: Option<Moment>) {
        self.failing_since = Some(since);
        self.silent_since = silent_since;
        self.error = Some(why);
    }

    /// Does what is due at `now`: held servers leave, servers stop flapping, everything leaves after
    /// `kept_max` without an answer. Returns whether the servers changed.
    pub fn tick(&mut self, policy: &Discover, now: Moment) -> bool {
        let before = self.servers.len();
        self.servers.retain(|_, one| one.held_until.is_none_or(|until| until > now));
        if self.kept_until(policy).is_some_and(|until| until <= now) {
            self.servers.clear();
            self.is_dropped = true;
        }
        let mut changed = self.servers.len() != before;
        for (target, flaps) in &mut self.flaps {
            if flaps.is_flapping && flaps.ends_at() <= now {
                flaps.is_flapping = false;
                let Some(one) = self.servers.get_mut(target) else { continue };
                if one.listing.standing == Standing::Flapping {
                    let listing = Listing::clone(&one.listing);
                    let standing = Standing::Listed;
                    one.listing = Arc::new(Listing { standing, since: now, ..listing });
                    changed = true;
                }
            }
        }
        if changed {
            self.changed_at = Some(now);
        }
        changed
    }

    /// Returns when [`Set::tick`] next has something to do.
    pub fn next_due(&self, policy: &Discover) -> Option<Moment> {
        let held = self.servers.values().filter_map(|one| one.held_until);
        let flapping = self.flaps.values().filter(|flaps| flaps.is_flapping).map(Flaps::ends_at);
        held.chain(flapping).chain(self.kept_until(policy)).min()
    }

    /// Returns the servers, sorted by address.
    pub fn servers(&self) -> impl Iterator<Item = &Listed> {
        self.servers.values()
    }

    /// Returns the servers that are held, as entries of an answer.
    pub fn held(&self) -> impl Iterator<Item = Row> + '_ {
        let held = self.servers.values().filter(|one| one.held_until.is_some());
        held.map(|one| Row {
            server: one.server.clone(),
            readiness: Readiness::Ready,
            object: Arc::clone(&one.listing.object),
        })
    }

    /// Returns its state.
    pub fn state(&self) -> SetState {
        let count = |of: &dyn Fn(Standing) -> bool| {
            self.servers.values().filter(|one| of(one.listing.standing)).count()
        };
        SetState {
            listed: count(&|standing| standing == Standing::Listed),
            not_ready: count(&|standing| !standing.is_ready()),
            held: count(&|standing| standing == Standing::Held),
            flapping: count(&|standing| standing == Standing::Flapping),
            refused: self.refused.0,
            refused_examples: self.refused.1.clone(),
            answered_at: self.answered_at,
            changed_at: self.changed_at,
            failing_since: self.failing_since,
            error: self.error.clone(),
            index: self.index,
        }
    }

    /// Returns whether the servers that these rows lack are held: together they are most of those that
    /// were ready, or all.
    fn holds(&self, rows: &BTreeMap<ServerTarget, Row>, policy: &Discover) -> bool {
        let is_current =
            |one: &&Listed| one.held_until.is_none() && one.listing.standing.is_ready();
        let before = self.servers.values().filter(is_current).count();
        let missing = self.servers.values().filter(is_current);
        let missing = missing.filter(|one| !rows.contains_key(&one.server.target)).count();
        let is_too_few = missing > 1 && (rows.len() as f64) < policy.hold.share * before as f64;
        policy.hold.max > Duration::ZERO && (rows.is_empty() || is_too_few)
    }

    /// Adds or updates a server. Returns whether anything is different.
    fn put(&mut self, row: Row, index: Option<u64>, standing: Standing, now: Moment) -> bool {
        let Row { server, object, .. } = row;
        let known = self.servers.get(&server.target);
        if known.is_some_and(|known| {
            known.server == server
                && known.listing.object == object
                && known.listing.standing == standing
        }) {
            return false;
        }
        let listing =
            Arc::new(Listing { source: self.source, object, index, since: now, standing });
        let target = server.target.clone();
        self.servers.insert(target, Listed { server, listing, held_until: None });
        true
    }

    /// Notes that a server has left, or is no longer ready.
    fn leaves(&mut self, target: ServerTarget, now: Moment) {
        if self.flaps.len() >= FLAPS_MAX && !self.flaps.contains_key(&target) {
            return;
        }
        let none = Flaps { count: 0.0, at: now, is_away: true, is_flapping: false };
        self.flaps.entry(target).or_insert(none).is_away = true;
    }

    /// Notes that a server is listed as ready. Returns whether it is flapping.
    fn comes(&mut self, target: &ServerTarget, now: Moment) -> bool {
        let Some(flaps) = self.flaps.get_mut(target) else { return false };
        if std::mem::take(&mut flaps.is_away) {
            flaps.count = flaps.count_at(now) + 1.0;
            flaps.at = now;
            flaps.is_flapping |= flaps.count >= FLAPPING_FROM;
        }
        flaps.is_flapping
    }

    fn forget(&mut self, now: Moment) {
        self.flaps.retain(|_, flaps| now.since(flaps.at) < FORGOTTEN_AFTER || flaps.is_flapping);
    }

    fn kept_until(&self, policy: &Discover) -> Option<Moment> {
        let since = self.silent_since.filter(|_| !self.is_dropped)?;
        Some(since + policy.kept_max?)
    }
}

impl Flaps {
    fn count_at(&self, now: Moment) -> f64 {
        let half_lives = now.since(self.at).as_secs_f64() / FLAP_HALF_LIFE.as_secs_f64();
        self.count * (-half_lives).exp2()
    }

    /// Returns when the count is below the bound, if the server does not come back once more.
    fn ends_at(&self) -> Moment {
        self.at + FLAP_HALF_LIFE.mul_f64((self.count / FLAPPING_BELOW).log2().max(0.0))
    }
}

fn standing(readiness: Readiness) -> Standing {
    match readiness {
        Readiness::Ready => Standing::Listed,
        Readiness::Maintenance => Standing::Maintenance,
        Readiness::Critical => Standing::Critical,
    }
}

#[cfg(test)]
mod tests;
