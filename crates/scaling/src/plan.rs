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
    /// Its zone, as a number.
    pub zone: usize,
    /// It takes requests, or would if it did not leave.
    pub is_up: bool,
    /// It gets no new requests, because this plan or another one said so.
    pub is_leaving: bool,
    /// Its requests in flight at all balancers; `None`: some have not said.
    pub in_flight: Option<u64>,
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
    /// How many stay in use now.
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
    /// The number of the last successful call.
    asked: Option<u32>,
    /// When it was made.
    asked_at: Option<Duration>,
    leaving: BTreeMap<K, Leaving>,
    calling: Option<Call<K>>,
    failures: u32,
    retry_at: Duration,
}

/// A server that leaves.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    since: Duration,
    /// A successful call has named it.
    is_told: bool,
}

impl<K> Default for Plan<K> {
    fn default() -> Plan<K> {
        Plan {
            begun: None,
            settled: 0,
            asked: None,
            asked_at: None,
            leaving: BTreeMap::new(),
            calling: None,
            failures: 0,
            retry_at: Duration::ZERO,
        }
    }
}

impl<K: Copy + Ord> Plan<K> {
    /// Returns what to do about these servers at a time that never decreases. `servers` are those that belong to the
    /// service now, without those that an operator has taken out.
    pub fn step(
        &mut self,
        wanted: u32,
        servers: &[Listed<K>],
        pace: &Pace,
        now: Duration,
    ) -> Step<K> {
        let begun = *self.begun.get_or_insert_with(|| {
            self.settled = wanted;
            now
        });
        self.follow(servers, now);
        let mut step = Step { back: Vec::new(), leave: Vec::new(), call: None };
        let mut staying = self.staying(servers);
        step.back = self.bring_back(wanted.saturating_sub(staying), false, servers);
        staying += count(&step.back);
        if wanted >= self.settled && staying >= wanted {
            self.settled = wanted;
        }
        if self.calling.is_some() || now < self.retry_at || now.saturating_sub(begun) < LOOK {
            return step;
        }
        if self.is_out_due(wanted, staying, pace, now) {
            let returned = self.bring_back(wanted.saturating_sub(staying), true, servers);
            step.call = Some(Call {
                change: Change::Out,
                servers: wanted,
                before: staying,
                remove: Vec::new(),
            });
            step.back.extend(returned);
        } else if self.has_left(servers, pace, now) {
            let remove = self.leaving.keys().copied().collect();
            let servers = staying;
            step.call = Some(Call { change: Change::In, servers, before: staying, remove });
        } else if self.is_in_due(wanted, staying, pace, now) {
            let excess = staying.saturating_sub(wanted);
            if pace.drain_max.is_zero() || excess == 0 {
                step.call = Some(Call {
                    change: Change::In,
                    servers: wanted,
                    before: staying,
                    remove: Vec::new(),
                });
            } else {
                step.leave = self.choose(excess, servers, now);
            }
        }
        self.calling.clone_from(&step.call);
        step
    }

    /// Notes the result of the last call.
    pub fn called(&mut self, is_ok: bool, now: Duration) {
        let Some(call) = self.calling.take() else { return };
        if is_ok {
            (self.failures, self.retry_at) = (0, now);
            (self.settled, self.asked, self.asked_at) =
                (call.servers, Some(call.servers), Some(now));
            for key in &call.remove {
                if let Some(leaving) = self.leaving.get_mut(key) {
                    leaving.is_told = true;
                }
            }
        } else {
            let wait = RETRY * 2_u32.pow(self.failures.min(10));
            self.retry_at = now + wait.min(RETRY_MAX);
            self.failures += 1;
        }
    }

    /// Returns the number of the last successful call.
    pub fn asked(&self) -> Option<u32> {
        self.asked
    }

    /// Returns whether a server leaves.
    pub fn leaves(&self, key: &K) -> bool {
        self.leaving.contains_key(key)
    }

    /// Forgets servers that are gone, and takes over those that leave already.
    fn follow(&mut self, servers: &[Listed<K>], now: Duration) {
        self.leaving.retain(|key, _| servers.iter().any(|server| server.key == *key));
        for server in servers.iter().filter(|server| server.is_leaving) {
            self.leaving.entry(server.key).or_insert(Leaving { since: now, is_told: false });
        }
    }

    /// Returns how many servers do not leave.
    fn staying(&self, servers: &[Listed<K>]) -> u32 {
        let staying = servers.iter().filter(|server| !self.leaving.contains_key(&server.key));
        u32::try_from(staying.count()).unwrap_or(u32::MAX)
    }

    /// Brings back up to `missing` servers that leave: those that no call has named, and the others, too, with
    /// `are_told`. Those that are up come first.
    fn bring_back(&mut self, missing: u32, are_told: bool, servers: &[Listed<K>]) -> Vec<K> {
        let mut back: Vec<(bool, K)> = servers
            .iter()
            .filter(|server| {
                let leaving = self.leaving.get(&server.key);
                leaving.is_some_and(|leaving| are_told || !leaving.is_told)
            })
            .map(|server| (!server.is_up, server.key))
            .collect();
        // A call that names servers is on its way: whether they are removed is not known.
        if self.calling.as_ref().is_some_and(|call| !call.remove.is_empty()) {
            back.clear();
        }
        back.sort_unstable();
        back.truncate(missing as usize);
        let back: Vec<K> = back.into_iter().map(|(_, key)| key).collect();
        self.leaving.retain(|key, _| !back.contains(key));
        back
    }

    fn is_out_due(&self, wanted: u32, staying: u32, pace: &Pace, now: Duration) -> bool {
        let is_missing = wanted > staying || self.asked.is_some_and(|asked| asked < wanted);
        let wait = if self.asked == Some(wanted) { REPEAT } else { pace.out_cooldown };
        is_missing && self.is_past(wait, now)
    }

    fn is_in_due(&self, wanted: u32, staying: u32, pace: &Pace, now: Duration) -> bool {
        let is_excess = wanted < staying || self.asked.is_some_and(|asked| asked > wanted);
        let is_draining = self.leaving.values().any(|leaving| !leaving.is_told);
        wanted < self.settled && is_excess && !is_draining && self.is_past(pace.in_cooldown, now)
    }

    /// Returns whether this time has passed since the last change.
    fn is_past(&self, wait: Duration, now: Duration) -> bool {
        self.asked_at.is_none_or(|at| now.saturating_sub(at) >= wait)
    }

    /// Returns whether a call must name the servers that leave: none has yet, and they are without requests or have
    /// had their time; or one has, and they are still up after a while.
    fn has_left(&self, servers: &[Listed<K>], pace: &Pace, now: Duration) -> bool {
        let mut are_new = false;
        for server in servers {
            let Some(leaving) = self.leaving.get(&server.key) else { continue };
            let is_over = now.saturating_sub(leaving.since) >= pace.drain_max;
            if !leaving.is_told && server.in_flight != Some(0) && !is_over {
                return false;
            }
            are_new |= !leaving.is_told || (server.is_up && self.is_past(REPEAT, now));
        }
        are_new
    }

    /// Lets so many servers leave: first those that are not up, then one of the zone that has most, and there the one
    /// with the fewest requests.
    fn choose(&mut self, number: u32, servers: &[Listed<K>], now: Duration) -> Vec<K> {
        let mut chosen = Vec::new();
        let mut staying: Vec<&Listed<K>> =
            servers.iter().filter(|server| !self.leaving.contains_key(&server.key)).collect();
        for _ in 0..number {
            let of_zone = |zone| staying.iter().filter(|other| other.zone == zone).count();
            let best = staying.iter().enumerate().min_by_key(|(_, server)| {
                let in_flight = server.in_flight.unwrap_or(u64::MAX);
                (server.is_up, usize::MAX - of_zone(server.zone), in_flight, server.key)
            });
            let Some(at) = best.map(|(at, _)| at) else { break };
            let key = staying.swap_remove(at).key;
            self.leaving.insert(key, Leaving { since: now, is_told: false });
            chosen.push(key);
        }
        chosen
    }
}

fn count<T>(of: &[T]) -> u32 {
    u32::try_from(of.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
