//! Another member: its process, the messages to and from it, and its lease.

use std::collections::VecDeque;
use std::time::Duration;

use model::Moment;

use crate::wire::{Message, Offer};

/// How long a borrower may use a slot after a message that the lender has acknowledged was sent.
pub const LEASE: Duration = Duration::from_secs(3);

/// After so long without a message from a borrower, it starts no request with what was lent to it: the lease, and
/// a second since clocks differ in speed and a borrower looks at its leases only at its turns.
pub(crate) const UNUSED_AFTER: Duration = Duration::from_secs(4);

/// How often the state is sent to a member although nothing has changed.
const ANNOUNCE: Duration = Duration::from_millis(500);

/// Without a message for this time, a member gets no further slots: it could not learn of them.
const SILENCE: Duration = Duration::from_millis(1_500);

/// Sent messages of which it is remembered when they were sent and whether they have arrived.
const SENT_MAX: usize = 1_024;

/// Whether slots of another member may be used. One that ended earlier is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lease {
    /// No more, since this time; `None`: since ever.
    Ended(Option<Moment>),
    /// They may.
    Holds,
}

/// Another member.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) start: [u8; 16],
    /// The starts of the processes before it.
    pub(crate) starts_before: Vec<[u8; 16]>,
    pub(crate) is_live: bool,
    /// The list of members has named it.
    pub(crate) was_listed: bool,
    /// It shares the limits of some servers.
    pub(crate) has_servers: bool,
    /// What it said last.
    pub(crate) offer: Option<Offer>,
    /// When it was last heard, or when its process was first known.
    pub(crate) heard_at: Moment,
    /// When the last message that it has acknowledged was sent.
    acked_at: Option<Moment>,
    /// Its process ends by then.
    pub(crate) ends_at: Option<Moment>,
    /// Since when what it has borrowed counts, in microseconds: greater each time that all was taken back.
    pub(crate) epoch: u64,
    /// The same of what it has lent.
    pub(crate) its_epoch: u64,
    number: u64,
    got: (u64, u64),
    /// Messages up to this number are ignored: what they say is older than something that was forgotten since.
    stale_to: u64,
    sent: VecDeque<Sent>,
    announce_at: Moment,
}

#[derive(Debug)]
struct Sent {
    number: u64,
    at: Moment,
    is_acked: bool,
}

impl Peer {
    pub(crate) fn new(start: [u8; 16], now: Moment) -> Peer {
        Peer {
            start,
            starts_before: Vec::new(),
            is_live: true,
            was_listed: false,
            has_servers: false,
            offer: None,
            heard_at: now,
            acked_at: None,
            ends_at: None,
            // Greater than those of an earlier record of the same process.
            epoch: now.as_micros(),
            its_epoch: 0,
            number: now.as_micros(),
            got: (0, 0),
            stale_to: 0,
            sent: VecDeque::new(),
            announce_at: now,
        }
    }

    /// Whether it receives this member's messages.
    pub(crate) fn hears(&self, now: Moment) -> bool {
        self.is_live && self.acked_at.is_some_and(|at| now.since(at) < SILENCE)
    }

    /// Returns the lease of the slots that it has lent.
    pub(crate) fn lease(&self, now: Moment) -> Lease {
        match self.acked_at {
            Some(at) if self.is_live && now.since(at) < LEASE => Lease::Holds,
            acked_at => Lease::Ended(acked_at.map(|at| at + LEASE)),
        }
    }

    /// Returns when it uses no slot any more that was lent to it, if it is not heard again; a request takes
    /// `request_max` at most.
    pub(crate) fn forfeits_at(&self, request_max: Duration) -> Moment {
        self.heard_at + UNUSED_AFTER + request_max
    }

    pub(crate) fn is_announce_due(&self, now: Moment) -> bool {
        self.announce_at <= now
    }

    /// Whether it has received this message.
    pub(crate) fn has_received(&self, number: u64) -> bool {
        let first = self.sent.front().map_or(u64::MAX, |sent| sent.number);
        let at = number.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.sent.get(at)).is_some_and(|sent| sent.is_acked)
    }

    /// Sends the next message as soon as possible.
    pub(crate) fn hurry(&mut self) {
        self.announce_at = Moment::ZERO;
    }

    /// Returns the head of the next message.
    pub(crate) fn next_message(&mut self, offer: Offer, now: Moment) -> Message {
        self.number += 1;
        if self.sent.len() == SENT_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { number: self.number, at: now, is_acked: false });
        self.announce_at = now + ANNOUNCE;
        Message {
            number: self.number,
            got: self.got,
            offer,
            epoch: self.epoch,
            seen_epoch: self.its_epoch,
            ends_after_s: 0,
            has_servers: false,
            rows: Vec::new(),
        }
    }

    /// Something that it and this member had agreed on is forgotten. A message of before that may arrive late, and would
    /// bring back what is over.
    pub(crate) fn forget_agreed(&mut self) {
        self.stale_to = self.got.0;
    }

    /// Whether a message is to be ignored. It is not acknowledged, so what it says is sent again.
    pub(crate) fn is_stale(&self, message: &Message) -> bool {
        message.number <= self.stale_to
    }

    /// Takes the head of a message. Returns whether it is newer than all before it.
    pub(crate) fn on_message(&mut self, message: &Message, now: Moment) -> bool {
        let (highest, before) = self.got;
        let is_newest = message.number > highest;
        if is_newest {
            let by = message.number - highest;
            let by = u32::try_from(by).unwrap_or(u32::MAX);
            let shifted = before.checked_shl(by).unwrap_or_default();
            let highest_bit = if highest > 0 { 1_u64.checked_shl(by - 1) } else { None };
            self.got = (message.number, shifted | highest_bit.unwrap_or_default());
            self.offer = Some(message.offer);
            self.has_servers = message.has_servers;
        } else {
            self.got.1 |= bit_of(highest - message.number);
        }
        self.heard_at = now;
        for sent in self.sent.iter_mut().filter(|sent| is_acked(message.got, sent.number)) {
            sent.is_acked = true;
            self.acked_at = self.acked_at.max(Some(sent.at));
        }
        is_newest
    }
}

/// Returns the bit for a message so many before the newest one; 0: it has none.
fn bit_of(before: u64) -> u64 {
    let place = before.checked_sub(1).and_then(|place| u32::try_from(place).ok());
    place.and_then(|place| 1_u64.checked_shl(place)).unwrap_or_default()
}

/// Returns whether a message is among those that were received.
fn is_acked(got: (u64, u64), number: u64) -> bool {
    match got.0.checked_sub(number) {
        Some(0) => number > 0,
        Some(before) => got.1 & bit_of(before) != 0,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_which_messages_were_received() {
        let mut peer = Peer::new([0; 16], Moment::ZERO);
        let mut sent = Peer::new([1; 16], Moment::ZERO);
        let mut messages: Vec<Message> =
            (0..9).map(|_| sent.next_message(Offer::default(), Moment::ZERO)).collect();
        messages.swap(2, 3);
        for lost in [7, 0] {
            messages.remove(lost);
        }
        for message in &messages {
            let is_newest = message.number != 3;
            assert_eq!(peer.on_message(message, Moment::ZERO), is_newest, "{message:?}");
        }
        let received: Vec<u64> = (0..=12).filter(|number| is_acked(peer.got, *number)).collect();
        assert_eq!(received, [2, 3, 4, 5, 6, 7, 9]);
    }

    #[test]
    fn a_lease_begins_when_the_message_that_is_acknowledged_was_sent() {
        let at = Moment::from_millis;
        let mut peer = Peer::new([0; 16], at(0));
        assert_eq!(peer.lease(at(0)), Lease::Ended(None));
        for sent in [100, 200] {
            peer.next_message(Offer::default(), at(sent));
        }
        let answer = Message { number: 1, got: (1, 0), ..Message::default() };
        peer.on_message(&answer, at(2_000));
        assert_eq!(peer.lease(at(3_099)), Lease::Holds);
        assert_eq!(peer.lease(at(3_100)), Lease::Ended(Some(at(3_100))));
        assert!(peer.forfeits_at(Duration::ZERO) > at(3_100 + 2_000 - 100));
    }
}
