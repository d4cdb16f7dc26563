//! Who the members of the fleet are: SWIM (Das, Gupta, Motivala, 2002) with suspicion and incarnations, by
//! foca; and a roster that compares whole lists.
//!
//! Each second, a member probes one other, itself or through three helpers. One that does not answer is
//! suspected, and gossip spreads it; if it does not object within 3 s (more in large fleets), it is down. A
//! member that lives but was declared down takes a greater generation and joins again. Members that are down
//! are sought for a day, so both sides of a partition find each other.
//!
//! # Old datagrams
//!
//! The opener of [`crate::seal`] refuses a datagram that it has seen, but not one from before its own start. Of
//! these, foca ignores every message that is not addressed to this very start and generation, except an
//! announcement, which contains only its sender. An identity contains start and generation, and of one name the
//! greatest generation is valid, so an announcement from before a restart of its sender loses against the
//! sender's present identity, even if that is down. Only if this member has not heard of the sender yet, the
//! old identity is listed, until the sender's next message, or until it has not answered a probe.

mod effects;
mod roster;
mod settings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use foca::{Foca, NoCustomBroadcast, State};
use model::Moment;

pub use effects::Output;
use effects::{Effects, Part};
use roster::Roster;

use crate::draws::Draws;
use crate::member::{GENERATION_END, Id, Member, TEXT_BYTES_MAX};
use crate::start::StartId;
use crate::wire::{Codec, Malformed, gossip_to_subject, is_turn_undead, peek, turn_undead};

/// How many addresses [`Membership::join`] keeps.
pub const JOIN_ADDRESSES_MAX: usize = 64;

/// From one look at the addresses to join to the next: while no other member is known, and otherwise.
const SEEK_EVERY: Duration = Duration::from_secs(1);
const SEEK_AGAIN: Duration = Duration::from_secs(20);
/// How many members are sought at once.
const SOUGHT_AT_ONCE: usize = 3;
/// After being declared down: the first delay before joining again, and the longest. It doubles while it happens
/// again within a minute, so that two processes with one name send little.
const REJOIN_FIRST: Duration = Duration::from_millis(200);
const REJOIN_LAST: Duration = Duration::from_secs(10);
const REJOIN_CALM: Duration = Duration::from_secs(60);
/// If a timer runs so late, the process was stopped: what is due is postponed, so that answers which have
/// arrived meanwhile are read before a member is suspected.
const LATE: Duration = Duration::from_millis(700);

/// Why a member cannot take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberRefused {
    /// Its name, zone or host is empty, longer than [`TEXT_BYTES_MAX`] bytes, or has control characters.
    Text,
    /// Its generation is not below 2^62.
    Generation,
}

impl fmt::Display for MemberRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemberRefused::Text => {
                write!(
                    f,
                    "the name, zone and host of a fleet's member need 1 to {TEXT_BYTES_MAX} bytes each"
                )
            }
            MemberRefused::Generation => {
                f.write_str("the generation of a fleet's member must be below 2^62")
            }
        }
    }
}

impl std::error::Error for MemberRefused {}

/// What went wrong so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that could not be read, or that no member sends.
    pub malformed: u64,
    /// Messages of or to another start of this member's name. A few after a restart; many if two processes
    /// have one name.
    pub name_conflicts: u64,
    /// How often this member joined again after the fleet had declared it down.
    pub rejoins: u64,
}

/// This member's view of the fleet. After each call, take the [`Output`]s until there is none.
pub struct Membership {
    own: Id,
    foca: Foca<Id, Codec, Draws, NoCustomBroadcast>,
    effects: Effects,
    roster: Roster,
    rng: fastrand::Rng,
    join: Vec<SocketAddr>,
    seek_at: Moment,
    rejoin_at: Option<Moment>,
    rejoined_at: Moment,
    rejoin_delay: Duration,
    /// The greatest generation of this member's name that others seem to know.
    surpass: u64,
    /// The number of members that foca is configured for.
    sized_for: usize,
    has_left: bool,
    counts: Counts,
}

impl Membership {
    /// Begins alone. `generation` must be greater than that of former starts: milliseconds of the wall clock
    /// since 1970 (if the clock was set back, joining takes a few seconds longer). `seed` seeds all choices.
    ///
    /// # Errors
    /// If a text of the member or the generation is out of bounds.
    pub fn new(
        own: Member,
        generation: u64,
        seed: u64,
        now: Moment,
    ) -> Result<Membership, MemberRefused> {
        if !own.has_valid_texts() {
            return Err(MemberRefused::Text);
        }
        if generation >= GENERATION_END / 2 {
            return Err(MemberRefused::Generation);
        }
        let own = Id::new(own, generation);
        let mut rng = fastrand::Rng::with_seed(seed);
        let draws = Draws(rng.fork());
        Ok(Membership {
            foca: Foca::new(own.clone(), settings::config(1), draws, Codec::new(own.clone())),
            effects: Effects::new(own.clone()),
            roster: Roster::new(&own, now),
            own,
            rng,
            join: Vec::new(),
            seek_at: now + SEEK_EVERY,
            rejoin_at: None,
            rejoined_at: Moment::ZERO,
            rejoin_delay: REJOIN_FIRST,
            surpass: 0,
            sized_for: 1,
            has_left: false,
            counts: Counts::default(),
        })
    }

    /// Announces itself to members at these addresses, now and whenever none of them is known. Replaces the
    /// addresses of an earlier call; only the first [`JOIN_ADDRESSES_MAX`] are used.
    pub fn join(&mut self, addresses: &[SocketAddr], now: Moment) {
        let own = self.own.member().address;
        let others = addresses.iter().copied().filter(|address| *address != own);
        self.join = others.take(JOIN_ADDRESSES_MAX).collect();
        self.seek_at = now;
        self.seek(now);
    }

    /// Reads a message: the bytes of [`crate::Message::Membership`] in an opened datagram. Hostile bytes are
    /// counted.
    pub fn on_datagram(&mut self, bytes: &[u8], now: Moment) {
        if self.has_left {
            return;
        }
        let known = self.effects.members.len();
        if let Err(Malformed) = self.read(bytes, now) {
            self.counts.malformed += 1;
        }
        if known == 0 && !self.effects.members.is_empty() {
            self.roster.hasten(now);
        }
        self.settle(now);
    }

    /// Does what is due.
    pub fn on_timer(&mut self, now: Moment) {
        if self.has_left {
            return;
        }
        if let Some(late) =
            self.effects.next_due().map(|due| now.since(due)).filter(|late| *late > LATE)
        {
            self.effects.postpone(late);
        }
        while let Some(timer) = self.effects.take_due(now) {
            // foca reports an incomplete probe after a pause of the process and continues.
            let _ = self.foca.handle_timer(timer, self.effects.at(now));
        }
        // foca lets gossip carry a suspicion to the suspected member, which takes a second or so of the three that
        // it has to object. So it is sent there directly, too.
        for suspicion in std::mem::take(&mut self.effects.suspected) {
            let to = suspicion.id().member().address;
            self.effects.send(to, Part::Swim, &gossip_to_subject(&self.own, &suspicion));
        }
        if self.rejoin_at.is_some_and(|at| at <= now) {
            self.rejoin(now);
        }
        if self.seek_at <= now {
            self.seek(now);
        }
        self.roster.act(&self.own, &mut self.effects, &mut self.rng, now);
        self.settle(now);
    }

    /// Returns when [`Membership::on_timer`] has something to do; `None` after leaving.
    pub fn next_due(&self) -> Option<Moment> {
        if self.has_left {
            return None;
        }
        let own = self.seek_at.min(self.roster.due());
        [self.effects.next_due(), self.rejoin_at].into_iter().flatten().chain([own]).min()
    }

    /// Tells the fleet that this member leaves. It then neither sends nor reads anything.
    pub fn leave(&mut self, now: Moment) {
        if self.has_left {
            return;
        }
        let farewell = settings::farewell(self.effects.members.len() + 1);
        // Only the number of receivers differs, which foca lets change.
        let _ = self.foca.set_config(farewell);
        // An error could only be one of the codec; the others then find out by their probes.
        let _ = self.foca.leave_cluster(self.effects.at(now));
        self.effects.clear_timers();
        self.has_left = true;
    }

    /// Takes the next output.
    pub fn next_output(&mut self) -> Option<Output> {
        self.effects.outputs.pop_front()
    }

    /// Returns this member.
    pub fn own(&self) -> &Member {
        self.own.member()
    }

    /// Returns the other members that live, by name.
    pub fn members(&self) -> impl ExactSizeIterator<Item = &Member> + Clone {
        self.effects.members.values().map(Id::member)
    }

    /// Returns what went wrong so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn read(&mut self, bytes: &[u8], now: Moment) -> Result<(), Malformed> {
        let (part, bytes) = bytes.split_first().ok_or(Malformed)?;
        if *part == Part::RosterRequest as u8 {
            return Roster::answer(bytes, &self.own, self.effects.at(now));
        }
        if *part == Part::RosterPage as u8 {
            let states = self.roster.read(bytes, &self.effects, &mut self.rng, now)?;
            self.notify_those_down_here(&states);
            let applied = self.foca.apply_many(states.into_iter(), false, self.effects.at(now));
            return applied.map_err(|_| Malformed);
        }
        if *part != Part::Swim as u8 {
            return Err(Malformed);
        }
        let (src, dst) = peek(bytes)?;
        if *src.name == *self.own.member().name {
            self.note_conflict(src.rank());
            return Ok(());
        }
        if *dst.name == *self.own.member().name {
            self.note_conflict(dst.rank());
        }
        self.effects.is_told_down = is_turn_undead(bytes);
        let handled = self.foca.handle_data(bytes, self.effects.at(now));
        self.effects.is_told_down = false;
        handled.map_err(|_| Malformed)
    }

    /// Sends a message to each member that another one lists but that is down here: if it lives, it must take a
    /// greater generation to be listed here, and might learn so only when its turn comes to probe this member.
    fn notify_those_down_here(&mut self, listed: &[foca::Member<Id>]) {
        for id in listed.iter().filter(|state| state.state() == State::Alive).map(foca::Member::id)
        {
            if self.effects.members.contains_key(&id.member().name) {
                continue;
            }
            let mut known = self.foca.iter_membership_state();
            if known.any(|state| state.state() == State::Down && state.id() == id) {
                self.effects.send(id.member().address, Part::Swim, &turn_undead(&self.own, id));
            }
        }
    }

    /// Notes an identity with this member's name: if it is newer than the own one, others will not listen
    /// until the own one is newer still.
    fn note_conflict(&mut self, (generation, start): (u64, StartId)) {
        if start != self.own.member().start {
            self.counts.name_conflicts += 1;
        }
        if (generation, start) > self.own.rank() {
            self.surpass = self.surpass.max(generation);
        }
    }

    /// Follows what the last event changed.
    fn settle(&mut self, now: Moment) {
        let is_superseded = self.surpass >= self.own.generation() && self.surpass > 0;
        if (std::mem::take(&mut self.effects.is_declared_down) || is_superseded)
            && self.rejoin_at.is_none()
        {
            if now.since(self.rejoined_at) > REJOIN_CALM {
                self.rejoin_delay = REJOIN_FIRST;
            }
            self.rejoin_at = Some(now + self.rejoin_delay.mul_f64(1.0 + self.rng.f64() * 0.5));
            self.rejoin_delay = (self.rejoin_delay * 2).min(REJOIN_LAST);
        }
        let size = (self.effects.members.len() + 1).next_power_of_two();
        if size != self.sized_for {
            // Nothing changes that foca does not let change.
            let _ = self.foca.set_config(settings::config(size));
            self.sized_for = size;
        }
    }

    /// Joins again, with a generation greater than any that others know.
    fn rejoin(&mut self, now: Moment) {
        self.rejoin_at = None;
        self.rejoined_at = now;
        let generation = self.own.generation().max(self.surpass) + 1;
        if generation >= GENERATION_END {
            return;
        }
        self.surpass = 0;
        self.counts.rejoins += 1;
        self.own = self.own.with_generation(generation);
        let _ = self.foca.change_identity(self.own.clone(), self.effects.at(now));
        // Connects again at once: there are members.
        let _ = self.foca.apply_many(std::iter::empty(), false, self.effects.at(now));
        let mut active: Vec<Id> = self.effects.members.values().cloned().collect();
        self.rng.shuffle(&mut active);
        active.truncate(SOUGHT_AT_ONCE);
        let down = self.some_down();
        for id in active.into_iter().chain(down) {
            let _ = self.foca.announce(id, self.effects.at(now));
        }
        self.roster.hasten(now);
    }

    /// Announces itself at addresses to join, if no member there is known; while it is alone, also to members that
    /// are down.
    fn seek(&mut self, now: Moment) {
        let is_alone = self.effects.members.is_empty();
        let every = if is_alone { SEEK_EVERY } else { SEEK_AGAIN };
        self.seek_at = now + every.mul_f64(0.8 + self.rng.f64() * 0.4);
        let known = |address: &SocketAddr| {
            self.effects.members.values().any(|id| id.member().address == *address)
        };
        let mut sought: Vec<SocketAddr> =
            self.join.iter().copied().filter(|one| !known(one)).collect();
        self.rng.shuffle(&mut sought);
        let mut sought: Vec<Id> =
            sought.into_iter().take(SOUGHT_AT_ONCE).map(Id::of_address).collect();
        if is_alone {
            sought.extend(self.some_down());
        }
        for id in sought {
            let _ = self.foca.announce(id, self.effects.at(now));
        }
    }

    /// Returns a few members that are down.
    fn some_down(&mut self) -> Vec<Id> {
        let states = self.foca.iter_membership_state();
        let down = states.filter(|state| state.state() == State::Down).map(foca::Member::id);
        let mut down: Vec<Id> = down.filter(|id| id.key() != self.own.key()).cloned().collect();
        self.rng.shuffle(&mut down);
        down.truncate(SOUGHT_AT_ONCE);
        down
    }
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership")
            .field("own", &self.own)
            .field("members", &self.effects.members.len())
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}
