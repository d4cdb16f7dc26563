//! What Weir does so that a service gets its number of servers: which servers it stops using, and when it calls the
//! program that starts and stops them.
//!
//! A call states the whole number, so that it can be repeated and a lost one does no harm. Before servers are removed,
//! they get no new requests (they *leave*), and the call waits until they have none in flight. The memory of a plan is
//! small and may be lost: a new plan takes over the servers that it finds leaving.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long a plan only looks: a process that has just started may not know all servers yet, and a call states the
/// whole number.
pub const LOOK: Duration = Duration::from_secs(30);
/// After this time, a call is repeated if its effect is missing.
pub const REPEAT: Duration = Duration::from_secs(300);
/// How long after a failed call the next one is made, at first. It doubles with each failure.
pub const RETRY: Duration = Duration::from_secs(5);
/// The longest time between a failed call and the next one.
pub const RETRY_MAX: Duration = Duration::from_secs(60);

/// How fast a plan proceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The least time between a change and a call for more servers.
    pub out_cooldown: Duration,
    /// The least time between a change and one to fewer servers.
    pub in_cooldown: Duration,
    /// How long a server that leaves may have requests in flight before it is removed nevertheless. Zero: servers do
    /// not leave, and the program chooses which ones it removes.
    pub drain_max: Duration,
}

/// A server, as it is now. `K` is its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed<K> {
    /// Which one.
    pub key: K,
    /// Its zone, as a number below the number of servers.
    pub zone: usize,
    /// It takes requests, or would if it did not leave.
    pub is_up: bool,
    /// It is one of those that a call's number counts. A server of a fixed list that is down is switched off and does
    /// not count. One that a source lists does, since it exists.
    pub counts: bool,
    /// Its source no longer lists it.
    pub is_gone: bool,
    /// It gets no new requests, because this plan or another one decided so.
    pub is_leaving: bool,
    /// Its requests in flight at this balancer.
    pub in_flight_here: u64,
    /// Its requests in flight at all balancers; `None`: some have not reported theirs.
    pub in_flight: Option<u64>,
}

/// The servers of a service.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a, K> {
    /// Those that may be added and removed.
    pub servers: &'a [Listed<K>],
    /// How many more a call's number counts: those that an operator has taken out of use. They are never chosen.
    pub aside: u32,
    /// All servers are known: the service's source answers. Otherwise nothing is called.
    pub is_complete: bool,
    /// The load of all balancers is known. Otherwise no server is removed.
    pub may_shrink: bool,
}

/// Whether there will be more servers or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// More.
    Out,
    /// Fewer, or as many as there are although more had been asked for.
    In,
}

impl Change {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Change::Out => "out",
            Change::In => "in",
        }
    }
}

/// A call to the program that starts and stops servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<K> {
    /// The direction.
    pub change: Change,
    /// How many servers there should be.
    pub servers: u32,
    /// How many there are now, without those that leave.
    pub before: u32,
    /// The servers to remove, which have left.
    pub remove: Vec<K>,
}

/// What to do now, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<K> {
    /// Servers that get requests again.
    pub back: Vec<K>,
    /// Servers that get no new requests.
    pub leave: Vec<K>,
    /// A call to make. [`Plan::called`] must follow before another one is made.
    pub call: Option<Call<K>>,
}

/// The plan for one service.
#[derive(Clone, Debug)]
pub struct Plan<K> {
    /// When it began, once it has been asked.
    begun: Option<Duration>,
    /// The wanted number that was last acted on. Fewer servers need a lower one: servers that others add, as in the
    /// middle of a deployment, do not leave.
    settled: u32,
    /// The number of the last successful call, without those that are set aside.
    asked: Option<u32>,
    /// When the last call succeeded.
    called_at: Option<Duration>,
    /// When a call last succeeded that changed something.
    changed_at: Option<Duration>,
    leaving: BTreeMap<K, Leaving>,
    calling: Option<Calling<K>>,
    failures: u32,
    retry_at: Duration,
}

/// A server that leaves.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    since: Duration,
    named: Named,
}

/// Whether a successful call has named a server that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    No,
    /// An earlier plan may have done so.
    Perhaps,
    Yes,
}

/// A call that has not ended.
#[derive(Clone, Debug)]
struct Calling<K> {
    number: u32,
    remove: Vec<K>,
}

impl<K> Default for Plan<K> {
    fn default() -> Plan<K> {
        Plan {
            begun: None,
            settled: 0,
            asked: None,
            called_at: None,
            changed_at: None,
            leaving: BTreeMap::new(),
            calling: None,
            failures: 0,
            retry_at: Duration::ZERO,
        }
    }
}

impl<K: Copy + Ord> Plan<K> {
    /// Returns what to do about these servers at a time that never decreases.
    pub fn step(
        &mut self,
        wanted: u32,
        group: &Group<'_, K>,
        pace: &Pace,
        now: Duration,
    ) -> Step<K> {
        let begun = *self.begun.get_or_insert_with(|| {
            self.settled = wanted;
            now
        });
        self.follow(group.servers, now);
        let mut step = Step { back: Vec::new(), leave: Vec::new(), call: None };
        let up = self.count(group.servers, |server| server.is_up);
        step.back = self.bring_back(wanted.saturating_sub(up), false, group.servers);
        let staying = self.count(group.servers, |server| server.counts);
        if wanted >= self.settled && staying >= wanted {
            self.settled = wanted;
        }
        let is_looking = now.saturating_sub(begun) < LOOK;
        if self.calling.is_some() || now < self.retry_at || is_looking || !group.is_complete {
            return step;
        }
        if self.is_out_due(wanted, staying, pace, now) {
            let returned = self.bring_back(wanted - staying, true, group.servers);
            step.back.extend(returned);
            step.call = Some(self.call(Change::Out, wanted, staying, Vec::new(), group.aside));
        } else if staying >= wanted && group.may_shrink && self.has_left(group.servers, pace, now) {
            let gone = |key: &K| group.servers.iter().any(|one| one.key == *key && one.is_gone);
            let remove = self.leaving.keys().copied().filter(|key| !gone(key)).collect();
            step.call = Some(self.call(Change::In, staying, staying, remove, group.aside));
        } else if group.may_shrink && self.is_in_due(wanted, staying, pace, now) {
            let excess = staying.saturating_sub(wanted);
            if pace.drain_max.is_zero() || excess == 0 {
                let call = self.call(Change::In, wanted, staying, Vec::new(), group.aside);
                step.call = Some(call);
            } else {
                step.leave = self.choose(excess, group.servers, now);
            }
        }
        step
    }

    /// Notes the result of the last call.
    pub fn called(&mut self, is_ok: bool, now: Duration) {
        let Some(Calling { number, remove }) = self.calling.take() else { return };
        if is_ok {
            let mut is_change = self.asked != Some(number);
            for key in &remove {
                if let Some(leaving) = self.leaving.get_mut(key) {
                    is_change |= leaving.named != Named::Yes;
                    leaving.named = Named::Yes;
                }
            }
            if is_change {
                self.changed_at = Some(now);
            }
            (self.failures, self.retry_at) = (0, now);
            (self.settled, self.asked, self.called_at) = (number, Some(number), Some(now));
        } else {
            let wait = RETRY * 2_u32.pow(self.failures.min(10));
            self.retry_at = now + wait.min(RETRY_MAX);
            self.failures += 1;
        }
    }

    /// Returns the number of the last successful call, without servers that are set aside.
    pub fn asked(&self) -> Option<u32> {
        self.asked
    }

    /// Returns whether a server leaves.
    pub fn leaves(&self, key: &K) -> bool {
        self.leaving.contains_key(key)
    }

    fn call(
        &mut self,
        change: Change,
        number: u32,
        staying: u32,
        remove: Vec<K>,
        aside: u32,
    ) -> Call<K> {
        self.calling = Some(Calling { number, remove: remove.clone() });
        let [servers, before] = [number, staying].map(|count| count.saturating_add(aside));
        Call { change, servers, before, remove }
    }

    /// Forgets servers that do not exist any more, and takes over those that leave already.
    fn follow(&mut self, servers: &[Listed<K>], now: Duration) {
        let listed: BTreeMap<K, &Listed<K>> =
            servers.iter().map(|server| (server.key, server)).collect();
        self.leaving.retain(|key, leaving| match listed.get(key) {
            None => false,
            Some(server) => {
                // There is nothing to name.
                if server.is_gone {
                    leaving.named = Named::Yes;
                }
                true
            }
        });
        for server in servers.iter().filter(|server| server.is_leaving) {
            let taken_over = Leaving { since: now, named: Named::Perhaps };
            self.leaving.entry(server.key).or_insert(taken_over);
        }
    }

    /// Returns how many servers that stay have a property.
    fn count(&self, servers: &[Listed<K>], has: impl Fn(&Listed<K>) -> bool) -> u32 {
        let staying = servers.iter().filter(|one| has(one) && !self.leaving.contains_key(&one.key));
        u32::try_from(staying.count()).unwrap_or(u32::MAX)
    }

    /// Brings back up to `missing` servers that leave: those that are up and that no call has named, or with `with_call`,
    /// which comes before a call for more servers, all that have not gone. Those that are up come first.
    fn bring_back(&mut self, missing: u32, with_call: bool, servers: &[Listed<K>]) -> Vec<K> {
        // A call that names servers has not ended: whether they are removed is not known.
        if missing == 0 || self.calling.as_ref().is_some_and(|call| !call.remove.is_empty()) {
            return Vec::new();
        }
        let may_return = |server: &&Listed<K>| {
            let leaving = self.leaving.get(&server.key);
            let is_of_no_call = || leaving.is_some_and(|leaving| leaving.named == Named::No);
            if with_call {
                leaving.is_some() && !server.is_gone
            } else {
                server.is_up && is_of_no_call()
            }
        };
        let mut back: Vec<(bool, K)> =
            servers.iter().filter(may_return).map(|server| (!server.is_up, server.key)).collect();
        back.sort_unstable();
        back.truncate(missing as usize);
        for (_, key) in &back {
            self.leaving.remove(key);
        }
        back.into_iter().map(|(_, key)| key).collect()
    }

    fn is_out_due(&self, wanted: u32, staying: u32, pace: &Pace, now: Duration) -> bool {
        wanted > staying
            && match self.asked {
                // There will be enough. If they come late, the call is repeated.
                Some(asked) if asked == wanted => is_past(self.called_at, REPEAT, now),
                // Fewer than were asked for: that is a change in the other direction.
                Some(asked) if asked > wanted => false,
                Some(_) | None => is_past(self.changed_at, pace.out_cooldown, now),
            }
    }

    fn is_in_due(&self, wanted: u32, staying: u32, pace: &Pace, now: Duration) -> bool {
        let is_excess = wanted < staying || self.asked.is_some_and(|asked| asked > wanted);
        let is_draining = self.leaving.values().any(|leaving| leaving.named != Named::Yes);
        wanted < self.settled
            && is_excess
            && !is_draining
            && is_past(self.changed_at, pace.in_cooldown, now)
    }

    /// Returns whether a call must name the servers that leave: none has yet, and they are without requests or have
    /// reached the longest time for that; or one has, and they are still up after a while.
    fn has_left(&self, servers: &[Listed<K>], pace: &Pace, now: Duration) -> bool {
        let mut is_due = false;
        for server in servers {
            let Some(leaving) = self.leaving.get(&server.key) else { continue };
            if leaving.named == Named::Yes {
                let is_late = is_past(self.called_at, REPEAT, now);
                is_due |= is_late && server.is_up && !server.is_gone;
                continue;
            }
            let is_over = now.saturating_sub(leaving.since) >= pace.drain_max;
            if server.in_flight != Some(0) && !is_over {
                return false;
            }
            is_due = true;
        }
        is_due
    }

    /// Lets so many servers leave: first those that are not up, then one of the zone that has most, and there the one
    /// with the fewest requests.
    fn choose(&mut self, number: u32, servers: &[Listed<K>], now: Duration) -> Vec<K> {
        let may_leave =
            |one: &&Listed<K>| one.counts && !one.is_gone && !self.leaving.contains_key(&one.key);
        let mut staying: Vec<&Listed<K>> = servers.iter().filter(may_leave).collect();
        staying.sort_unstable_by_key(|one| {
            (one.is_up, one.in_flight.unwrap_or(one.in_flight_here), one.key)
        });
        let mut zones = vec![0_usize; servers.len()];
        for zone in staying.iter().map(|one| one.zone) {
            if let Some(count) = zones.get_mut(zone) {
                *count += 1;
            }
        }
        let mut chosen = Vec::new();
        for _ in 0..number {
            let of_zone = |one: &Listed<K>| zones.get(one.zone).copied().unwrap_or(0);
            let best = staying
                .iter()
                .enumerate()
                .min_by_key(|(at, one)| (one.is_up, usize::MAX - of_zone(one), *at));
            let Some((at, _)) = best else { break };
            let server = staying.remove(at);
            if let Some(count) = zones.get_mut(server.zone) {
                *count -= 1;
            }
            self.leaving.insert(server.key, Leaving { since: now, named: Named::No });
            chosen.push(server.key);
        }
        chosen
    }
}

/// Returns whether this time has passed since then.
fn is_past(since: Option<Duration>, wait: Duration, now: Duration) -> bool {
    since.is_none_or(|at| now.saturating_sub(at) >= wait)
}

#[cfg(test)]
mod tests;
