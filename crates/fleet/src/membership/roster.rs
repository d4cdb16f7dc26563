//! The roster: how a member gets the whole list of another one, in pages by name.
//!
//! Gossip spreads each change to most members quickly, but loses some, and says nothing of what was before. So
//! each member compares its list with that of a random member every few seconds, by a sum over all names and
//! generations. Only if the sums differ, the other answers with the first page, and the member asks for the rest.
//!
//! | message | fields |
//! |---|---|
//! | request | number (8 bytes), sum (8), the last name of the page before (text; empty at first), the asking member |
//! | page | number (8 bytes), whether it is the last (1), how many members (1), the members |
//!
//! A list may also have a member too many, if all news of its end were lost. So a member that several others in a
//! row do not list any more counts as down here, long before the turn to probe it comes in a large fleet. If it
//! does live, it learns so by its next message, and joins again.
//!
//! A page is accepted only with the number of the current request, so an old one cannot be replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use model::Moment;

use super::effects::{Effects, Part};
use crate::member::{Id, NameKey};
use crate::seal::PAYLOAD_MAX;
use crate::start::StartId;
use crate::wire::{Codec, Malformed, Reader, put_id, put_text};

/// From one page to the next: 12 kB/s.
const PAGE_EVERY: Duration = Duration::from_millis(100);
/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_millis(600);
/// How often a page is asked for again.
const TRIES_MAX: u8 = 3;
/// From one comparison to the next, if the last one found no difference, or found one.
const COMPARE_EVERY: Duration = Duration::from_secs(10);
const COMPARE_AGAIN: Duration = Duration::from_secs(2);

/// How many comparisons in a row a member must be missing from, and for how long, to count as down: longer than
/// a new member takes to become known everywhere.
const DOUBTS_MIN: u8 = 3;
const DOUBTED_FOR: Duration = Duration::from_secs(12);

/// A member that others do not list.
#[derive(Clone, Copy)]
struct Doubt {
    rank: (u64, StartId),
    since: Moment,
    count: u8,
}

/// A comparison with one member.
struct Comparison {
    with: SocketAddr,
    number: u64,
    /// The last name of the page before; empty at first.
    after: Arc<str>,
    tries: u8,
    /// What the pages have listed so far.
    listed: BTreeSet<NameKey>,
}

/// When to compare, and the comparison that is under way.
pub(super) struct Roster {
    current: Option<Comparison>,
    due: Moment,
    doubts: BTreeMap<NameKey, Doubt>,
    /// The names in pages, with a memory of their own.
    codec: Codec,
}

/// Returns the sum of a list: equal for equal lists, whatever their order.
fn sum(own: &Id, members: &BTreeMap<Arc<str>, Id>) -> u64 {
    let of = |id: &Id| id.key().mixed_with(id.generation());
    members.values().map(of).fold(of(own), u64::wrapping_add)
}

impl Roster {
    pub(super) fn new(own: &Id, now: Moment) -> Roster {
        Roster { current: None, due: now, doubts: BTreeMap::new(), codec: Codec::new(own.clone()) }
    }

    /// Returns when [`Roster::act`] has something to do.
    pub(super) fn due(&self) -> Moment {
        self.due
    }

    /// Compares soon.
    pub(super) fn hasten(&mut self, now: Moment) {
        self.due = self.due.min(now + PAGE_EVERY);
    }

    /// Does what is due: begins a comparison, or asks for a page, again if the last request had no answer.
    pub(super) fn act(
        &mut self,
        own: &Id,
        effects: &mut Effects,
        rng: &mut fastrand::Rng,
        now: Moment,
    ) {
        if self.due > now {
            return;
        }
        // An unanswered first request is the usual end: the lists are equal.
        if self
            .current
            .as_ref()
            .is_some_and(|current| current.after.is_empty() || current.tries >= TRIES_MAX)
        {
            let next_in = if self.doubts.is_empty() { COMPARE_EVERY } else { COMPARE_AGAIN };
            self.end(next_in, rng, now);
            return;
        }
        if self.current.is_none() {
            let chosen = rng.usize(..effects.members.len().max(1));
            let Some(with) = effects.members.values().nth(chosen) else {
                self.due = now + COMPARE_AGAIN;
                return;
            };
            let with = with.member().address;
            let (number, after) = (rng.u64(..), Arc::from(""));
            self.current =
                Some(Comparison { with, number, after, tries: 0, listed: BTreeSet::new() });
        }
        let Some(current) = &mut self.current else { return };
        current.tries += 1;
        let mut request = current.number.to_be_bytes().to_vec();
        request.extend_from_slice(&sum(own, &effects.members).to_be_bytes());
        put_text(&current.after, &mut request);
        put_id(own, &mut request);
        effects.send(current.with, Part::RosterRequest, &request);
        self.due = now + ANSWER_WITHIN;
    }

    /// Answers a request, unless it shows that the lists are equal.
    pub(super) fn answer(bytes: &[u8], own: &Id, effects: &mut Effects) -> Result<(), Malformed> {
        let mut reader = Reader(bytes);
        let number = reader.array::<8>()?;
        let theirs = u64::from_be_bytes(reader.array()?);
        let after = reader.text()?;
        let to = reader.id()?.address;
        if after.is_empty() && theirs == sum(own, &effects.members) {
            return Ok(());
        }
        let mut page = number.to_vec();
        page.extend_from_slice(&[1, 0]);
        let own_entry = (&own.member().name, own);
        let rest = effects.members.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let own_entry = Some(own_entry).filter(|(name, _)| ***name > *after);
        // The own name among the others, in order.
        let (before, behind): (Vec<_>, Vec<_>) = match own_entry {
            None => (rest.collect(), Vec::new()),
            Some((own_name, _)) => rest.partition(|(name, _)| *name < own_name),
        };
        let mut count = 0_u8;
        for (_, id) in before.into_iter().chain(own_entry).chain(behind) {
            let len = page.len();
            put_id(id, &mut page);
            if page.len() > PAYLOAD_MAX - 2 || count == u8::MAX {
                page.truncate(len);
                set(&mut page, 8, 0);
                break;
            }
            count += 1;
        }
        set(&mut page, 9, count);
        effects.send(to, Part::RosterPage, &page);
        Ok(())
    }

    /// Reads a page. Returns the states to apply if the page was asked for: its members live, and those that too
    /// many others do not list are down.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        effects: &Effects,
        rng: &mut fastrand::Rng,
        now: Moment,
    ) -> Result<Vec<foca::Member<Id>>, Malformed> {
        let mut reader = Reader(bytes);
        let number = u64::from_be_bytes(reader.array()?);
        let Some(current) = self.current.as_mut().filter(|current| current.number == number) else {
            return Ok(Vec::new());
        };
        let (is_last, count) = (reader.byte()? != 0, reader.byte()?);
        let mut states = Vec::new();
        let mut last_name = None;
        for _ in 0..count {
            let id = self.codec.remember(reader.id()?)?;
            current.listed.insert(id.key());
            last_name = Some(id.member().name.clone());
            states.push(foca::Member::alive(id));
        }
        match last_name {
            // Names only grow, so the pages end.
            Some(last) if !is_last && last > current.after => {
                (current.after, current.number, current.tries) = (last, rng.u64(..), 0);
                self.due = now + PAGE_EVERY;
            }
            _ => {
                let listed = std::mem::take(&mut current.listed);
                if is_last {
                    states.extend(self.doubt(&listed, effects, now));
                }
                self.end(COMPARE_AGAIN, rng, now);
            }
        }
        Ok(states)
    }

    /// Doubts the members that a complete list of another member does not have. Returns those that were doubted
    /// often enough, as down.
    fn doubt(
        &mut self,
        listed: &BTreeSet<NameKey>,
        effects: &Effects,
        now: Moment,
    ) -> Vec<foca::Member<Id>> {
        let former = std::mem::take(&mut self.doubts);
        let mut down = Vec::new();
        for id in effects.members.values().filter(|id| !listed.contains(&id.key())) {
            let new = Doubt { rank: id.rank(), since: now, count: 0 };
            let known = former.get(&id.key()).copied().filter(|doubt| doubt.rank == id.rank());
            let mut doubt = known.unwrap_or(new);
            doubt.count = doubt.count.saturating_add(1);
            if doubt.count >= DOUBTS_MIN && now.since(doubt.since) >= DOUBTED_FOR {
                down.push(foca::Member::down(id.clone()));
            } else {
                self.doubts.insert(id.key(), doubt);
            }
        }
        down
    }

    fn end(&mut self, next_in: Duration, rng: &mut fastrand::Rng, now: Moment) {
        self.current = None;
        self.due = now + next_in.mul_f64(0.7 + 0.6 * rng.f64());
    }
}

fn set(page: &mut [u8], at: usize, value: u8) {
    if let Some(byte) = page.get_mut(at) {
        *byte = value;
    }
}
