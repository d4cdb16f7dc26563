//! One member's view of the keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::Moment;

use crate::key::{GENERATION_MAX, KEYS_MAX, Key, KeyName};
use crate::pace::Pace;
use crate::partner::{Partner, Peer};
use crate::wire::{self, Malformed};

/// How long a key seals tickets: 6 hours, as rustls's own keys.
pub const SEALS_MAX: Duration = Duration::from_hours(6);
/// How old a key becomes: 12 hours. Tickets that it sealed last are valid for 6 of them.
pub const OPENS_MAX: Duration = Duration::from_hours(12);
/// The next key is made so long before the newest one stops sealing.
pub const LEAD: Duration = Duration::from_mins(5);
/// How long a new key waits for members that take part but do not fetch it.
pub const WAIT_MAX: Duration = Duration::from_mins(1);
/// A key seals for this much longer when there is no newer one.
pub(crate) const GRACE: Duration = Duration::from_mins(30);
/// How long after its start a member makes no key: others may have some.
const JOIN: Duration = Duration::from_secs(3);
/// A key that will be dropped within this time is not fetched.
const ALMOST_OVER: Duration = Duration::from_mins(1);
/// When a key has been due for so long, any member makes it: the one that has to does not. Each waits up to
/// [`OVERDUE_SPREAD`] more, by its start, so that the first one's key is enough.
const OVERDUE: Duration = LEAD;
const OVERDUE_SPREAD: Duration = Duration::from_mins(4);
/// How much greater than that of all known keys a generation may be. It grows by four a day.
const GENERATIONS_AHEAD_MAX: u64 = 1_000;
/// The greatest generation of the first key that a member has.
const FIRST_GENERATION_MAX: u64 = 1 << 32;
/// What a member has to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Make a key, and pass its id to [`Keyring::make`].
    pub must_make: bool,
    /// The message for all other members, if one is due.
    pub message: Option<Vec<u8>>,
}

/// What status pages show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// How many keys this member has.
    pub keys: usize,
    /// The age of the key that seals new tickets; `None`: no shared key does, and they are valid at this member alone.
    pub sealing_age: Option<Duration>,
    /// Members that take part and do not have the newest key.
    pub behind: Vec<Arc<str>>,
    /// Members that do not take part.
    pub silent: Vec<Arc<str>>,
}

/// The keys, as one member knows them.
#[derive(Debug)]
pub struct Keyring {
    own: [u8; 16],
    begun: Moment,
    keys: BTreeMap<KeyName, Held>,
    others: BTreeMap<[u8; 16], Other>,
    /// The key that seals.
    seals: Option<KeyName>,
    /// The greatest generation of a key that this member has had.
    generation: u64,
    /// The greatest generation of a key that was dropped for its age. It does not come back: a member whose clock stood
    /// still, such as a restored virtual machine, takes it for young.
    retired: u64,
    pace: Pace,
    /// The member that is being asked for keys.
    asked: Option<[u8; 16]>,
}

#[derive(Debug)]
struct Held {
    age: (Duration, Moment),
    /// Since when this member has it.
    since: Moment,
}

impl Held {
    fn key(&self, name: &KeyName) -> Key {
        Key { name: *name, age: self.age }
    }
}

/// Another member, with the keys in its last message.
type Other = Partner<Vec<Key>>;

impl Other {
    fn keys(&self) -> &[Key] {
        self.message().map_or(&[], Vec::as_slice)
    }

    fn has(&self, name: &KeyName) -> bool {
        self.keys().iter().any(|key| key.name == *name)
    }
}

impl Keyring {
    /// Returns the keyring of the member whose process has this start, without keys.
    pub fn new(own: [u8; 16], now: Moment) -> Keyring {
        Keyring {
            own,
            begun: now,
            keys: BTreeMap::new(),
            others: BTreeMap::new(),
            seals: None,
            generation: 0,
            retired: 0,
            pace: Pace::new(now),
            asked: None,
        }
    }

    /// Sets which other members live.
    pub fn set_live(&mut self, live: impl IntoIterator<Item = Peer>, now: Moment) {
        let mut before = std::mem::take(&mut self.others);
        for peer in live {
            let start = peer.start;
            let other = before.remove(&start).unwrap_or_else(|| {
                // It has to know which keys there are.
                self.pace.announce(now);
                Partner::new(peer.clone(), now)
            });
            self.others.insert(start, other.with_peer(peer));
        }
        if self.asked.is_some_and(|asked| !self.others.contains_key(&asked)) {
            self.asked = None;
        }
    }

    /// Takes the message of another member. One of a process that is no member has no effect.
    ///
    /// # Errors
    ///
    /// If the bytes are no message.
    pub fn on_message(
        &mut self,
        from: [u8; 16],
        bytes: &[u8],
        now: Moment,
    ) -> Result<(), Malformed> {
        let said = wire::read(bytes)?;
        let Some(other) = self.others.get_mut(&from) else { return Ok(()) };
        let said = said.into_iter().map(|(name, age)| Key { name, age: (age, now) });
        let said: Vec<Key> = said.collect();
        if !said.is_empty() && said.iter().all(|key| self.keys.contains_key(&key.name)) {
            other.fetch_worked();
        }
        other.set_message(said, now);
        Ok(())
    }

    /// Returns when [`Keyring::turn`] next has work to do.
    pub fn next_due(&self) -> Moment {
        self.pace.next_due()
    }

    /// Does what is due.
    pub fn turn(&mut self, now: Moment) -> Turn {
        let is_over = |name: &KeyName, held: &mut Held| held.key(name).age(now) >= OPENS_MAX;
        for (name, _) in self.keys.extract_if(.., is_over) {
            self.retired = self.retired.max(name.generation);
        }
        self.choose(now);
        let must_make = self.must_make(now);
        let is_due = self.pace.turn(now) && !self.others.is_empty();
        let message = is_due.then(|| wire::write(self.iter().map(|key| (key.name, key.age(now)))));
        Turn { must_make, message }
    }

    /// Enters a key that this member has just made. Returns its name.
    pub fn make(&mut self, id: [u8; 16], now: Moment) -> KeyName {
        let generation = self.generation.saturating_add(1).min(GENERATION_MAX);
        let name = KeyName { generation, id };
        self.add(Key { name, age: (Duration::ZERO, now) }, now);
        self.choose(now);
        name
    }

    /// Returns the member to fetch keys from, if another one has some that this one lacks. Until
    /// [`Keyring::fetched`] or [`Keyring::not_fetched`] there is no other.
    pub fn fetch(&mut self, now: Moment) -> Option<Peer> {
        if self.asked.is_some() {
            return None;
        }
        let lacks = |key: &Key| {
            key.age(now) + ALMOST_OVER < OPENS_MAX && !self.keys.contains_key(&key.name)
        };
        let may = |other: &&Other| other.may_be_asked(now) && other.keys().iter().any(lacks);
        let best = self.others.values().filter(may).min_by_key(|other| other.failures())?;
        self.asked = Some(best.peer.start);
        Some(best.peer.clone())
    }

    /// Enters keys that were fetched from a member.
    pub fn fetched(&mut self, from: [u8; 16], keys: impl IntoIterator<Item = Key>, now: Moment) {
        self.asked = None;
        let before = self.keys.len();
        for key in keys {
            self.add(key, now);
        }
        // One that does not have what it says is asked less and less often.
        match self.others.get_mut(&from) {
            Some(other) if self.keys.len() > before => other.fetch_worked(),
            Some(_) => self.not_fetched(from, now),
            None => {}
        }
        self.choose(now);
    }

    /// Keys could not be fetched from a member.
    pub fn not_fetched(&mut self, from: [u8; 16], now: Moment) {
        self.asked = None;
        if let Some(other) = self.others.get_mut(&from) {
            other.fetch_failed(now);
        }
    }

    /// Returns the key that seals new tickets; `None`: no key of the fleet does.
    pub fn seals(&self) -> Option<KeyName> {
        self.seals
    }

    /// Returns the keys, the newest first.
    pub fn iter(&self) -> impl Iterator<Item = Key> {
        self.keys.iter().rev().map(|(name, held)| held.key(name))
    }

    /// Returns whether the last fetch from the member with this start failed.
    pub fn has_failed(&self, from: &[u8; 16], now: Moment) -> bool {
        self.others.get(from).is_some_and(|other| other.has_failed() && other.takes_part(now))
    }

    /// Returns whether it has this key.
    pub fn has(&self, name: &KeyName) -> bool {
        self.keys.contains_key(name)
    }

    /// Returns what status pages show.
    pub fn state(&self, now: Moment) -> State {
        let newest = self.iter().next();
        let names = |is: &dyn Fn(&Other) -> bool| -> Vec<Arc<str>> {
            let others = self.others.values().filter(|other| is(other));
            others.map(|other| Arc::clone(&other.peer.name)).collect()
        };
        State {
            keys: self.keys.len(),
            sealing_age: self
                .iter()
                .find(|key| Some(key.name) == self.seals)
                .map(|key| key.age(now)),
            behind: names(&|other| {
                other.takes_part(now) && newest.is_some_and(|key| !other.has(&key.name))
            }),
            silent: names(&|other| other.is_silent(now)),
        }
    }

    fn add(&mut self, key: Key, now: Moment) {
        let greatest = match self.generation {
            0 => FIRST_GENERATION_MAX,
            known => known.saturating_add(GENERATIONS_AHEAD_MAX).min(GENERATION_MAX),
        };
        let is_retired = key.name.generation <= self.retired && !self.keys.is_empty();
        if key.name.generation > greatest
            || is_retired
            || key.age(now) >= OPENS_MAX
            || self.keys.contains_key(&key.name)
        {
            return;
        }
        self.generation = self.generation.max(key.name.generation);
        self.keys.insert(key.name, Held { age: key.age, since: now });
        while self.keys.len() > KEYS_MAX {
            self.keys.pop_first();
        }
        if self.keys.contains_key(&key.name) {
            self.pace.announce(now);
        }
    }

    /// Returns whether this member has to make the next key. One whose keys cannot be fetched is no better placed.
    fn must_make(&self, now: Moment) -> bool {
        if now.since(self.begun) < JOIN {
            return false;
        }
        let due = SEALS_MAX.saturating_sub(LEAD);
        let overdue = match self.iter().map(|key| key.age(now)).min() {
            Some(youngest) if youngest < due => return false,
            Some(youngest) => youngest.saturating_sub(due),
            None => now.since(self.begun),
        };
        let wait = OVERDUE + OVERDUE_SPREAD.mul_f64(f64::from(self.own[0]) / 255.0);
        overdue >= wait || self.is_maker(now)
    }

    /// Returns whether this member is the one that makes the next key, and knows of no other that it could have.
    fn is_maker(&self, now: Moment) -> bool {
        let is_known = |other: &Other| other.takes_part(now) || other.is_silent(now);
        let is_behind = |other: &Other| other.is_skipped() || self.own < other.peer.start;
        // A fetch from a skipped member may fail again, slowly: it is not waited for.
        let asked = self.asked.and_then(|asked| self.others.get(&asked));
        self.others.values().filter(|other| other.takes_part(now)).all(is_behind)
            && asked.is_none_or(Partner::is_skipped)
            && self.others.values().all(is_known)
            && !self.lacks_fresh(now)
    }

    /// Returns whether another member has a key that could seal, and that this one lacks and can still fetch.
    fn lacks_fresh(&self, now: Moment) -> bool {
        let mut others = self.others.values().filter(|other| !other.is_skipped());
        others.any(|other| {
            let mut keys = other.keys().iter();
            keys.any(|key| key.age(now) + LEAD < SEALS_MAX && !self.keys.contains_key(&key.name))
        })
    }

    /// Chooses the key that seals: the newest that all others have, or the one before it. Without either, the newest:
    /// its tickets are valid at those members that have it.
    fn choose(&mut self, now: Moment) {
        let kept = self.seals.filter(|name| {
            let held = self.iter().find(|key| key.name == *name);
            held.is_some_and(|key| key.age(now) < SEALS_MAX + GRACE)
        });
        let is_fresh = |(name, held): &(&KeyName, &Held)| held.key(name).age(now) < SEALS_MAX;
        let mut fresh = self.keys.iter().rev().filter(is_fresh);
        let newest = fresh.clone().next();
        let of_all = fresh.find(|(name, held)| {
            let waited = now.since(held.since) >= WAIT_MAX;
            let mut others = self.others.values().filter(|other| !other.is_silent(now));
            // One that no other member has is of no use to clients that go elsewhere.
            others.clone().all(|other| other.has(name))
                || waited && others.any(|other| other.has(name))
        });
        let name = |(name, _): (&KeyName, &Held)| *name;
        self.seals = kept.max(of_all.map(name)).or(newest.map(name));
    }
}

#[cfg(test)]
mod tests;
