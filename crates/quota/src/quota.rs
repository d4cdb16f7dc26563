//! One member's part in the rate limits of the fleet.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use foldhash::{HashMap, HashMapExt as _};
use model::{Moment, RateLimit, RateReading, RateShare, RateTerms};

use crate::key::{Key, Rate};
use crate::wire::{self, Malformed, ROWS_MAX, Row};

/// The time between two turns, in a fleet of up to [`MEMBERS_PER_TURN`] members; more take a multiple of it.
pub const TURN: Duration = Duration::from_millis(250);

/// Members for each [`TURN`] between two turns. Bounds what a member sends.
const MEMBERS_PER_TURN: usize = 64;

/// Maximum number of messages to each other member in a turn. Keys that do not fit are sent later.
const MESSAGES_MAX: usize = 4;

/// Number of known keys at which messages add no more. Keys of the workers are added in any case; the workers'
/// table bounds them to the same number.
const KEYS_OF_OTHERS_MAX: usize = 1 << 16;

/// Time after the start during which listed members that do not answer are not counted as missing.
const JOIN_MAX: Duration = Duration::from_secs(3);

/// A member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberAt {
    /// Its address.
    pub address: SocketAddr,
    /// The start of its process.
    pub start: [u8; 16],
}

/// The allowances that the workers take from.
pub trait Buckets {
    /// Returns the counts of all keys in use.
    fn readings(&mut self) -> Vec<RateReading>;
    /// Charges requests that another member has let pass.
    fn charge(&mut self, limit: &RateLimit, key: u64, requests: u32);
    /// Sets what may be used of the limit of a key.
    fn set_terms(&mut self, key: u64, terms: RateTerms);
    /// Forgets a key if it has not been used since the reading. Returns whether it is forgotten.
    fn forget(&mut self, reading: &RateReading) -> bool;
}

/// One member.
#[derive(Debug)]
pub struct Quota {
    own: SocketAddr,
    listed: BTreeSet<SocketAddr>,
    /// The other members that live, by the start of their process, and the newest turn of each.
    others: HashMap<[u8; 16], (SocketAddr, Option<u32>)>,
    limits: HashMap<u32, (RateLimit, Rate)>,
    keys: HashMap<u64, Key>,
    turn: u32,
    turned_at: Moment,
    unknown: u64,
    begun: Moment,
}

impl Quota {
    /// Returns a member that knows no other.
    pub fn new(own: SocketAddr, now: Moment) -> Quota {
        Quota {
            own,
            listed: BTreeSet::new(),
            others: HashMap::new(),
            limits: HashMap::new(),
            keys: HashMap::new(),
            turn: 0,
            turned_at: now,
            unknown: 0,
            begun: now,
        }
    }

    /// Sets the addresses of all members, as far as they are listed.
    pub fn set_listed(&mut self, listed: BTreeSet<SocketAddr>) {
        self.listed = listed;
    }

    /// Sets the other members that live.
    pub fn set_live(&mut self, live: impl IntoIterator<Item = MemberAt>) {
        let mut before = std::mem::take(&mut self.others);
        self.others = live
            .into_iter()
            .map(|MemberAt { address, start }| {
                let turn = before.remove(&start).and_then(|(_, turn)| turn);
                (start, (address, turn))
            })
            .collect();
    }

    /// Sets the limits that hold over the fleet, by number.
    pub fn set_limits(&mut self, limits: impl IntoIterator<Item = (u32, RateLimit)>) {
        let with_rate = |(number, limit): (u32, RateLimit)| {
            let rate = Rate::of(&limit);
            (number, (limit, rate))
        };
        self.limits = limits.into_iter().map(with_rate).collect();
        self.keys.retain(|_, key| self.limits.contains_key(&key.limit));
    }

    /// Returns the part of every limit that this side of the fleet has: all of it if all listed members answer.
    pub fn side(&self) -> RateShare {
        let here = self.members();
        RateShare::of(here as f64 / (here + self.missing().len()) as f64)
    }

    /// Returns how many members answer, this one included.
    pub fn members(&self) -> usize {
        self.others.len() + 1
    }

    /// Returns the listed members that do not answer; none at the start, while members find each other.
    pub fn missing(&self) -> Vec<SocketAddr> {
        if self.turned_at.since(self.begun) < JOIN_MAX {
            return Vec::new();
        }
        let live: BTreeSet<SocketAddr> =
            self.others.values().map(|(address, _)| *address).chain([self.own]).collect();
        self.listed.difference(&live).copied().collect()
    }

    /// Returns how many limits hold over the fleet.
    pub fn limits_count(&self) -> usize {
        self.limits.len()
    }

    /// Returns the number of keys that other members use, too, or alone.
    pub fn keys_of_others(&self) -> usize {
        self.keys.values().filter(|key| key.is_shared()).count()
    }

    /// Returns the number of rows so far about limits that are not known here.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Returns when the next turn is due; `None`: no limit holds over the fleet.
    pub fn next_due(&self) -> Option<Moment> {
        (!self.limits.is_empty()).then(|| self.turned_at + self.pause())
    }

    /// Takes the message of another member.
    ///
    /// # Errors
    ///
    /// If the bytes are no message. One of a process that is no member, or that is older than another of the same
    /// process, has no effect.
    pub fn on_message(
        &mut self,
        from: [u8; 16],
        bytes: &[u8],
        buckets: &mut impl Buckets,
    ) -> Result<(), Malformed> {
        let (turn, rows) = wire::read(bytes)?;
        let Some((_, newest)) = self.others.get_mut(&from) else { return Ok(()) };
        if newest.is_some_and(|newest| turn.wrapping_sub(newest) > u32::MAX / 2) {
            return Ok(());
        }
        *newest = Some(turn);
        for row in rows {
            let Some((limit, _)) = self.limits.get(&row.limit) else {
                self.unknown += 1;
                continue;
            };
            let has_place =
                self.keys.len() < KEYS_OF_OTHERS_MAX || self.keys.contains_key(&row.key);
            let requests = if has_place {
                let key = self.keys.entry(row.key).or_insert_with(|| Key::new(row.limit));
                key.hear(from, &row, self.turn)
            } else {
                row.recent
            };
            if requests > 0 {
                buckets.charge(limit, row.key, requests);
            }
        }
        Ok(())
    }

    /// Takes a turn: sets the parts for the time until the next one. Returns the messages for all other members.
    pub fn turn(&mut self, buckets: &mut impl Buckets, now: Moment) -> Vec<Vec<u8>> {
        let elapsed = now.since(self.turned_at);
        (self.turn, self.turned_at) = (self.turn.wrapping_add(1), now);
        let readings = buckets.readings();
        self.read(&readings, elapsed);
        let (pause, members) = (self.pause(), self.members());
        for reading in &readings {
            let Some((key, rate)) = known(&mut self.keys, &self.limits, reading.key) else {
                buckets.forget(reading);
                continue;
            };
            key.forget(self.turn, |member| self.others.contains_key(member));
            let terms = key.terms(rate, members, pause);
            if terms != key.terms {
                key.terms = terms;
                buckets.set_terms(reading.key, terms);
            }
            if self.others.is_empty() {
                key.keep_to_itself();
            }
            if key.is_idle(rate, self.turn, pause) && buckets.forget(reading) {
                key.end();
            }
        }
        let rows = self.rows(&readings);
        self.forget();
        rows.chunks(ROWS_MAX).map(|rows| wire::write(self.turn, rows)).collect()
    }

    /// Takes what the workers have counted.
    fn read(&mut self, readings: &[RateReading], elapsed: Duration) {
        for reading in readings {
            let Some((_, rate)) = self.limits.get(&reading.limit) else { continue };
            let key = self.keys.entry(reading.key).or_insert_with(|| Key::new(reading.limit));
            key.read(reading, rate, self.turn, elapsed);
        }
    }

    /// Returns the rows to send, the most urgent ones if there are many.
    fn rows(&mut self, readings: &[RateReading]) -> Vec<Row> {
        let members = self.members();
        if members == 1 {
            return Vec::new();
        }
        let mut urgent: Vec<(f64, u64)> = Vec::new();
        for reading in readings {
            let Some((key, rate)) = known(&mut self.keys, &self.limits, reading.key) else {
                continue;
            };
            let urgency = key.urgency(rate, members, self.turn);
            urgent.extend(urgency.map(|urgency| (urgency, reading.key)));
        }
        let most = MESSAGES_MAX * ROWS_MAX;
        if urgent.len() > most {
            urgent.select_nth_unstable_by(most, |one, other| other.0.total_cmp(&one.0));
            urgent.truncate(most);
        }
        let rows = urgent.into_iter();
        rows.filter_map(|(_, number)| {
            let (key, rate) = known(&mut self.keys, &self.limits, number)?;
            Some(key.report(number, rate, members, self.turn))
        })
        .collect()
    }

    /// Forgets the keys that neither the workers nor other members use.
    fn forget(&mut self) {
        let (turn, others) = (self.turn, &self.others);
        self.keys.retain(|_, key| {
            if key.read == turn {
                return true;
            }
            key.end();
            key.forget(turn, |member| others.contains_key(member));
            key.is_shared()
        });
    }

    fn pause(&self) -> Duration {
        TURN * (1 + (self.others.len() / MEMBERS_PER_TURN) as u32)
    }
}

/// Returns a key that is known, with its rate.
fn known<'a>(
    keys: &'a mut HashMap<u64, Key>,
    limits: &'a HashMap<u32, (RateLimit, Rate)>,
    key: u64,
) -> Option<(&'a mut Key, &'a Rate)> {
    let key = keys.get_mut(&key)?;
    let (_, rate) = limits.get(&key.limit)?;
    Some((key, rate))
}
