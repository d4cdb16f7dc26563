//! What the protocol asks for, as values: datagrams, changes of the list, timers.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use foca::{Notification, State, Timer};
use model::Moment;

use crate::member::{Id, Member};
use crate::message::Message;
use crate::wire::is_turn_undead;

/// What a membership wants its shell to do or to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Seal this payload and send it.
    Send {
        /// The receiver.
        to: SocketAddr,
        /// The payload, at most [`crate::seal::PAYLOAD_MAX`] bytes.
        payload: Vec<u8>,
    },
    /// A member joined, or restarted: then it left before, with its former start.
    Joined(Member),
    /// A member left, or does not answer.
    Left(Member),
}

/// The parts of the protocol, each with the byte that its messages begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Swim = 0,
    RosterRequest = 1,
    RosterPage = 2,
}

/// A timer of foca that becomes due.
struct Due {
    at: Moment,
    timer: Timer<Id>,
    /// Timers of one moment and kind keep the order in which they were set.
    sequence: u64,
}

impl Ord for Due {
    /// The earliest is the greatest, since the heap yields the greatest.
    fn cmp(&self, other: &Due) -> Ordering {
        let order = self.at.cmp(&other.at).then_with(|| self.timer.cmp(&other.timer));
        order.then_with(|| self.sequence.cmp(&other.sequence)).reverse()
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

/// How many timers are kept. Only timers that forget members which are down can add up to so many; further
/// ones are dropped, so that such a member is remembered longer.
const TIMERS_MAX: usize = 65_536;

/// Collects what foca asks for.
pub(super) struct Effects {
    own: Id,
    now: Moment,
    /// The other members that live, by name.
    pub(super) members: BTreeMap<Arc<str>, Id>,
    pub(super) outputs: VecDeque<Output>,
    timers: BinaryHeap<Due>,
    sequence: u64,
    /// Members that this one began to suspect since the last look, with the suspected incarnation.
    pub(super) suspected: Vec<foca::Member<Id>>,
    /// The fleet declared this member down since the last look.
    pub(super) is_declared_down: bool,
    /// foca reads a message that says that this member is down. It answers with the same if the sender is down
    /// here, and two members would do so without end until both have joined again: so this answer is not sent.
    /// The other learns it with the next message of another kind.
    pub(super) is_told_down: bool,
}

impl Effects {
    pub(super) fn new(own: Id) -> Effects {
        Effects {
            own,
            now: Moment::ZERO,
            members: BTreeMap::new(),
            outputs: VecDeque::new(),
            timers: BinaryHeap::new(),
            sequence: 0,
            suspected: Vec::new(),
            is_declared_down: false,
            is_told_down: false,
        }
    }

    /// Returns itself with the time at which what follows happens.
    pub(super) fn at(&mut self, now: Moment) -> &mut Effects {
        self.now = now;
        self
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        self.timers.peek().map(|due| due.at)
    }

    /// Takes the next timer that is due.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Timer<Id>> {
        if self.next_due()? > now {
            return None;
        }
        self.timers.pop().map(|due| due.timer)
    }

    /// Moves all timers by the same time.
    pub(super) fn postpone(&mut self, by: Duration) {
        let timers = std::mem::take(&mut self.timers);
        self.timers = timers.into_iter().map(|due| Due { at: due.at + by, ..due }).collect();
    }

    pub(super) fn clear_timers(&mut self) {
        self.timers.clear();
    }

    /// Sends a message of the membership.
    pub(super) fn send(&mut self, to: SocketAddr, part: Part, bytes: &[u8]) {
        if to == self.own.member().address {
            return;
        }
        let mut payload = Vec::with_capacity(bytes.len() + 2);
        Message::Membership(&[part as u8]).write(&mut payload);
        payload.extend_from_slice(bytes);
        self.outputs.push_back(Output::Send { to, payload });
    }

    fn up(&mut self, id: &Id) {
        self.members.insert(id.member().name.clone(), id.clone());
        self.outputs.push_back(Output::Joined(id.member().clone()));
    }

    fn down(&mut self, id: &Id) {
        if let Some(known) = self.members.remove(&id.member().name) {
            self.outputs.push_back(Output::Left(known.member().clone()));
        }
    }

    /// One name has a newer identity: a new start, or the same start that had been declared down.
    fn renamed(&mut self, to: &Id) {
        let Some(known) = self.members.get_mut(&to.member().name) else { return };
        if known.member() == to.member() {
            *known = to.clone();
        } else {
            self.down(to);
            self.up(to);
        }
    }
}

impl foca::Runtime<Id> for Effects {
    fn notify(&mut self, notification: Notification<'_, Id>) {
        match notification {
            Notification::MemberUp(id) => self.up(id),
            Notification::MemberDown(id) => self.down(id),
            Notification::Rename(_, to) => self.renamed(to),
            Notification::Defunct => self.is_declared_down = true,
            Notification::Active | Notification::Idle | Notification::Rejoin(_) => {}
        }
    }

    fn send_to(&mut self, to: Id, data: &[u8]) {
        if self.is_told_down && is_turn_undead(data) {
            return;
        }
        self.send(to.member().address, Part::Swim, data);
    }

    fn submit_after(&mut self, timer: Timer<Id>, after: Duration) {
        if self.timers.len() >= TIMERS_MAX && matches!(timer, Timer::RemoveDown(_)) {
            return;
        }
        if let Timer::ChangeSuspectToDown { member_id, incarnation, .. } = &timer {
            self.suspected.push(foca::Member::new(member_id.clone(), *incarnation, State::Suspect));
        }
        self.sequence += 1;
        self.timers.push(Due { at: self.now + after, timer, sequence: self.sequence });
    }
}
