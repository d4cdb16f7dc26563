//! All probes of one member: who runs each of them, what others said, and which results are to be sent.
//!
//! It joins the parts of this folder; [`super`] says what each is for. The caller has a list of members
//! and a way to send bytes to those of its own zone, asks [`Exchange::duty`] at each turn of a probe, and
//! passes what happens to [`Exchange::on_own`] and [`Exchange::on_batch`].

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use model::{Moment, ProbeIdentity};

use super::assignment::{Changed, Member, MemberIndex, Probers, Roster};
use super::belief::{Belief, Duty, Event, Needs, REPEAT_AFTER, Standing};
use super::identity::{ProbeHash, ProbeHasher};
use super::result::Heard;
use super::wire::{self, ENTRIES_MAX, Refused};
use crate::evidence::Failure;
use crate::plan::{Probe, ProbeId};

/// How long a result waits for others that go into the same datagram. Short beside an interval; a fleet's
/// datagrams are a tenth of what they would be without it.
const COLLECT_FOR: Duration = Duration::from_millis(50);

/// Up to so many changes of members are applied one by one; of more, all probers are computed again.
const CHANGES_ONE_BY_ONE_MAX: usize = 4;

/// If [`Exchange::batches`] is not asked for so long, the process did not run: results that arrived
/// meanwhile are older than they say.
const STOPPED_AFTER: Duration = Duration::from_millis(500);

/// How long the process reads afterwards what has waited.
const CATCHES_UP_FOR: Duration = Duration::from_millis(250);

/// What one member shares with its zone.
pub struct Exchange {
    /// Names the probe where probers are chosen. Its key is the same in all fleets: these names stay here.
    placing: ProbeHasher,
    /// Name probes in messages, by the keys that are accepted; the first names them in those sent.
    naming: Vec<ProbeHasher>,
    own: Member,
    me: MemberIndex,
    roster: Roster,
    probes: HashMap<ProbeId, Shared>,
    by_name: HashMap<ProbeHash, ProbeId>,
    /// Results to be sent for the first time, the oldest first.
    first: VecDeque<Outgoing>,
    /// Those to be sent again.
    again: VecDeque<Outgoing>,
    /// When the caller last called.
    seen: Option<Moment>,
    /// When it last did so after it had not run, and how long it had not.
    stopped: Option<(Moment, Duration)>,
}

struct Shared {
    identity: Arc<ProbeIdentity>,
    place: ProbeHash,
    /// By each of the keys, in order.
    names: Vec<ProbeHash>,
    belief: Belief,
    probers: Probers,
}

#[derive(Clone, Copy)]
struct Outgoing {
    due: Moment,
    ended: Moment,
    probe: ProbeHash,
    heard: Heard,
}

/// A result of another member that the consumers count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The probe.
    pub probe: ProbeId,
    /// Who ran it.
    pub from: MemberIndex,
    /// What it says.
    pub heard: Heard,
    /// Whose results count.
    pub standing: Standing,
}

/// A member whose results this one ignores, or believes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubted {
    /// Its name.
    pub member: Arc<str>,
    /// The probe.
    pub probe: ProbeId,
    /// What changed.
    pub event: Event,
}

/// Who runs the probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Probes that this member runs since it is one of their probers.
    pub assigned: usize,
    /// Probes that it runs since results of the probers are missing or contradict each other.
    pub stood_in: usize,
    /// Probes whose results it takes from others.
    pub relied: usize,
}

impl Exchange {
    /// Returns the exchange of `own`, alone and without probes. `keys` are derived from the fleet's secrets
    /// for this purpose, the one in use first; `probers` is the number of probers of each probe in a zone.
    pub fn new(keys: &[[u8; 32]], own: Member, probers: usize) -> Exchange {
        let mut roster = Roster::new(own.zone.clone(), probers);
        roster.join(own.clone());
        // It has just joined.
        let me = roster.index_of(&own.name).unwrap_or(MemberIndex(0));
        Exchange {
            placing: ProbeHasher::new(&[0; 32]),
            naming: keys.iter().map(ProbeHasher::new).collect(),
            own,
            me,
            roster,
            probes: HashMap::new(),
            by_name: HashMap::new(),
            first: VecDeque::new(),
            again: VecDeque::new(),
            seen: None,
            stopped: None,
        }
    }

    /// Applies the probes of a changed plan, all of them.
    pub fn follow<'a>(&mut self, probes: impl Iterator<Item = &'a Probe>, now: Moment) {
        let mut gone: HashSet<ProbeId> = self.probes.keys().copied().collect();
        for probe in probes {
            gone.remove(&probe.id);
            self.set(probe, now);
        }
        for id in gone {
            self.remove(id);
        }
        self.naming.iter_mut().chain([&mut self.placing]).for_each(ProbeHasher::forget_unused);
    }

    /// Adds a probe, or applies its changed consumers. A server that only this machine reaches is not shared:
    /// its address means another server elsewhere.
    pub fn set(&mut self, probe: &Probe, now: Moment) {
        if probe.identity.address.is_of_one_machine() {
            return;
        }
        let needs = Needs {
            interval: probe.interval,
            timeouts: probe.timeouts(),
            fall: probe.consumers.iter().map(|one| one.check.fall).max().unwrap_or(1),
        };
        if let Some(shared) = self.probes.get_mut(&probe.id) {
            shared.belief.retune(needs);
            return;
        }
        let place = self.placing.hash(&probe.identity);
        let probers = self.roster.probers(place);
        let mut belief = Belief::new(self.me, needs);
        belief.assign(&probers, now);
        let identity = Arc::clone(&probe.identity);
        let names: Vec<_> = self.naming.iter_mut().map(|hasher| hasher.hash(&identity)).collect();
        self.by_name.extend(names.iter().map(|name| (*name, probe.id)));
        self.probes.insert(probe.id, Shared { identity, place, names, belief, probers });
    }

    /// Applies another number of probers of each probe in a zone.
    pub fn set_probers(&mut self, probers: usize, now: Moment) {
        self.roster.set_probers(probers);
        self.assign_all(now);
    }

    /// Makes this member run a probe for an interval from `now`: its own results are needed.
    pub fn probe_for_itself(&mut self, id: ProbeId, now: Moment) {
        if let Some(shared) = self.probes.get_mut(&id) {
            shared.belief.probe_for_itself(now);
        }
    }

    /// Applies other keys.
    pub fn set_keys(&mut self, keys: &[[u8; 32]]) {
        self.naming = keys.iter().map(ProbeHasher::new).collect();
        self.by_name.clear();
        for (id, shared) in &mut self.probes {
            let names = self.naming.iter_mut().map(|hasher| hasher.hash(&shared.identity));
            shared.names = names.collect();
            self.by_name.extend(shared.names.iter().map(|name| (*name, *id)));
        }
    }

    /// Removes a probe.
    pub fn remove(&mut self, id: ProbeId) {
        let Some(shared) = self.probes.remove(&id) else { return };
        for name in shared.names {
            // A probe that left the plan and returned has another ID.
            if self.by_name.get(&name) == Some(&id) {
                self.by_name.remove(&name);
            }
        }
    }

    /// Applies the list of the other members, of all zones.
    pub fn set_members(&mut self, members: impl Iterator<Item = Member>, now: Moment) {
        let members: Vec<Member> = members.filter(|one| one.name != self.own.name).collect();
        let listed: HashSet<&str> = members.iter().map(|one| &*one.name).collect();
        let here = self.roster.members().filter(|one| one.name != self.own.name);
        let gone = here.filter(|one| !listed.contains(&*one.name)).map(|one| Arc::clone(&one.name));
        let gone: Vec<Arc<str>> = gone.collect();
        let mut changes: Vec<Changed> =
            gone.iter().filter_map(|name| self.roster.leave(name)).collect();
        for member in members {
            changes.extend(self.roster.join(member));
        }
        if changes.len() > CHANGES_ONE_BY_ONE_MAX {
            return self.assign_all(now);
        }
        for changed in changes {
            self.assign_after(changed, now);
        }
    }

    /// Returns what this member does at its turn of a probe; it runs those that it does not share.
    pub fn duty(&mut self, id: ProbeId, now: Moment) -> Duty {
        self.probes.get_mut(&id).map_or(Duty::Probe, |shared| shared.belief.duty(now))
    }

    /// Returns whose results of a probe count.
    pub fn standing(&mut self, id: ProbeId, now: Moment) -> Standing {
        let shared = self.probes.get_mut(&id);
        shared.map_or_else(Standing::alone, |shared| shared.belief.standing(now))
    }

    /// Records a run of this member's own that ended `now`. Returns whom it ignores from now on, or
    /// believes again.
    pub fn on_own(
        &mut self,
        id: ProbeId,
        elapsed: Duration,
        result: Result<(), Failure>,
        now: Moment,
    ) -> Vec<Doubted> {
        let Some(shared) = self.probes.get_mut(&id) else { return Vec::new() };
        let own = shared.belief.on_own(elapsed, result, now);
        // Alone in its zone, it has no one to tell.
        let heard = own.send.filter(|_| self.roster.len() > 1);
        if let (Some(heard), Some(&probe)) = (heard, shared.names.first()) {
            let one = Outgoing { due: now + COLLECT_FOR, ended: now, probe, heard };
            self.first.push_back(one);
            self.again.push_back(Outgoing { due: now + REPEAT_AFTER, ..one });
        }
        own.events.into_iter().filter_map(|event| self.doubted(id, event)).collect()
    }

    /// Reads a batch that start `start` of the member `from` has sent. Returns the results that count;
    /// none from a member that is not in this zone. After a time in which the process did not run, a batch
    /// may have waited for all of it, and its results count as that much older.
    ///
    /// # Errors
    ///
    /// Why the batch cannot be read.
    pub fn on_batch(
        &mut self,
        from: &str,
        start: u64,
        bytes: &[u8],
        now: Moment,
    ) -> Result<Vec<Received>, Refused> {
        self.notice(now);
        let entries = wire::decode(bytes)?;
        let waited = self.stopped.filter(|(since, _)| now.since(*since) < CATCHES_UP_FOR);
        let waited = waited.map(|(_, time)| time).unwrap_or_default();
        let from = self.roster.index_of(from).filter(|from| self.roster.member(*from).is_some());
        let Some(from) = from else { return Ok(Vec::new()) };
        let mut received = Vec::new();
        for (name, mut heard) in entries {
            heard.age_at_sending = heard.age_at_sending.saturating_add(waited);
            let Some(&probe) = self.by_name.get(&name) else { continue };
            let Some(shared) = self.probes.get_mut(&probe) else { continue };
            if shared.belief.on_heard(from, start, &heard, now) {
                let standing = shared.belief.standing(now);
                received.push(Received { probe, from, heard, standing });
            }
        }
        Ok(received)
    }

    /// Returns when [`Exchange::batches`] next has something to send.
    pub fn next_due(&self) -> Option<Moment> {
        let due = [self.first.front(), self.again.front()];
        due.into_iter().flatten().map(|one| one.due).min()
    }

    /// Takes what is to be sent to every other member of the zone: messages for one datagram each. To be
    /// called whenever the caller does anything, several times a second.
    pub fn batches(&mut self, now: Moment) -> Vec<Vec<u8>> {
        self.notice(now);
        if self.next_due().is_none_or(|due| due > now) {
            return Vec::new();
        }
        let repeated = self.again.partition_point(|one| one.due <= now + COLLECT_FOR);
        let due = self.first.drain(..).chain(self.again.drain(..repeated));
        let results: Vec<(ProbeHash, Heard)> = due
            .map(|one| (one.probe, Heard { age_at_sending: now.since(one.ended), ..one.heard }))
            .collect();
        let chunks = results.chunks(ENTRIES_MAX);
        let encoded = chunks.map(|chunk| {
            let mut bytes = Vec::new();
            wire::encode(chunk, &mut bytes);
            bytes
        });
        encoded.collect()
    }

    /// Returns the other members of the zone, to which batches go.
    pub fn peers(&self) -> impl Iterator<Item = &Member> {
        self.roster.members().filter(|one| one.name != self.own.name)
    }

    /// Returns how many probes this member runs, and how many it leaves to others.
    pub fn shares(&mut self, now: Moment) -> Shares {
        let mut shares = Shares::default();
        for shared in self.probes.values_mut() {
            let is_prober = shared.probers.contains(self.me);
            match shared.belief.duty(now) {
                Duty::Probe if is_prober => shares.assigned += 1,
                Duty::Probe => shares.stood_in += 1,
                Duty::Rely => shares.relied += 1,
            }
        }
        shares
    }

    /// Returns the members whose results of some probes are ignored, and of how many, by name.
    pub fn ignored(&self) -> Vec<(Arc<str>, usize)> {
        let mut counts: HashMap<MemberIndex, usize> = HashMap::new();
        for member in self.probes.values().flat_map(|shared| shared.belief.ignored()) {
            *counts.entry(member).or_default() += 1;
        }
        let named = counts.into_iter().filter_map(|(member, count)| {
            Some((Arc::clone(&self.roster.member(member)?.name), count))
        });
        let mut named: Vec<_> = named.collect();
        named.sort_unstable();
        named
    }

    fn notice(&mut self, now: Moment) {
        let before = self.seen.replace(now);
        let pause = before.map(|before| now.since(before)).unwrap_or_default();
        if pause > STOPPED_AFTER {
            self.stopped = Some((now, pause));
        }
    }

    fn doubted(&self, probe: ProbeId, event: Event) -> Option<Doubted> {
        let member = match event {
            Event::Ignored { member, .. } | Event::Believed { member } => member,
        };
        let member = Arc::clone(&self.roster.member(member)?.name);
        Some(Doubted { member, probe, event })
    }

    fn assign_all(&mut self, now: Moment) {
        for shared in self.probes.values_mut() {
            shared.assign(self.roster.probers(shared.place), now);
        }
    }

    fn assign_after(&mut self, changed: Changed, now: Moment) {
        for shared in self.probes.values_mut() {
            if let Some(after) = self.roster.probers_after(shared.place, &shared.probers, changed) {
                shared.assign(after, now);
            }
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("own", &self.own)
            .field("members", &self.roster.len())
            .field("probes", &self.probes.len())
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn assign(&mut self, probers: Probers, now: Moment) {
        self.belief.assign(&probers, now);
        self.probers = probers;
    }
}
