//! The queue of a service: requests that wait for a free slot, in order of arrival.
//!
//! Most wait for the first free server; a request bound to a server by affinity waits for that
//! server's slots only, in a separate lane, so that it does not block the others. A slot goes to
//! the lowest ticket number among those that can use it. The lock is taken to join, leave or be
//! served; while nothing waits, it is never taken.
//!
//! This file decides which request is served; `limits` provides the slots.
//!
//! A ticket's life:
//!
//! ```text
//! Waiting ──grant──▶ Granted ──collect──▶ Gone
//!    └──────────leave────┴────────leave────▲
//! ```
//! Leaving while Granted gives the slot back, so it is handed on; a grant to a ticket that is Gone
//! fails, and the slot goes to the next.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{
    Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst,
};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use model::Address;

use crate::endpoint::Endpoint;
use crate::slot::Slot;
use crate::sync::{AtomicBool, AtomicU32, Mutex, MutexGuard};
use crate::tickets::Tickets;

/// A place in the queue.
#[derive(Debug)]
pub(crate) struct Ticket {
    number: u64,
    /// The one server it waits for, if it is bound to one.
    bound: Option<Address>,
    /// Servers whose slots it leaves to others.
    avoid: Box<[Address]>,
    /// Only servers that it avoids are left, so it takes any.
    takes_any: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Waiting(Option<Waker>),
    Granted(Slot),
    Gone,
}

impl Ticket {
    #[cfg(test)]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    fn avoids(&self, address: Address) -> bool {
        self.avoid.contains(&address) && !self.takes_any.load(Relaxed)
    }

    /// Grants it a slot that is already counted; false if it has gone.
    pub(crate) fn grant(&self, endpoint: &Arc<Endpoint>) -> bool {
        let mut state = self.lock();
        let waker = match &mut *state {
            State::Waiting(waker) => waker.take(),
            State::Granted(_) | State::Gone => return false,
        };
        if self.bound == Some(endpoint.row.address) {
            endpoint.state.bound.fetch_add(1, Relaxed);
        }
        // After an attempt elsewhere, the server is not any one of its peers.
        *state = State::Granted(Slot::adopt(endpoint).drawn(self.avoid.is_empty()));
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Returns the slot once it is granted; afterwards it stays pending.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Slot> {
        let mut state = self.lock();
        match &mut *state {
            State::Waiting(waker) => {
                if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    *waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            State::Granted(_) => match std::mem::replace(&mut *state, State::Gone) {
                State::Granted(slot) => Poll::Ready(slot),
                State::Waiting(_) | State::Gone => Poll::Pending,
            },
            State::Gone => Poll::Pending,
        }
    }

    /// Returns the slot if it is already granted.
    pub(crate) fn collect(&self) -> Option<Slot> {
        match self.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(slot) => Some(slot),
            Poll::Pending => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests waiting for a service.
#[derive(Debug)]
pub(crate) struct Queue {
    lanes: Mutex<Lanes>,
    /// Lengths, for checks without the lock; written only under it. Tickets only move from `bound`
    /// to `unbound`, so a thread that reads `bound` first and finds both empty has missed no
    /// ticket.
    unbound: AtomicU32,
    bound: AtomicU32,
    tickets: Arc<Tickets>,
}

/// Each lane is in order of ticket number.
#[derive(Debug, Default)]
struct Lanes {
    any: VecDeque<Arc<Ticket>>,
    bound: HashMap<Address, VecDeque<Arc<Ticket>>>,
}

enum Place {
    Any(usize),
    Bound,
}

impl Queue {
    pub(crate) fn new(tickets: Arc<Tickets>) -> Queue {
        Queue {
            lanes: Mutex::default(),
            unbound: AtomicU32::new(0),
            bound: AtomicU32::new(0),
            tickets,
        }
    }

    /// Returns how many requests wait.
    pub(crate) fn length(&self) -> u32 {
        let bound = self.bound.load(Acquire);
        bound + self.unbound.load(Acquire)
    }

    /// Returns whether a request waits for the first free server.
    pub(crate) fn has_unbound(&self) -> bool {
        self.unbound.load(Acquire) > 0
    }

    /// Joins at the end; `None` if `length_max` wait already. The caller must check for a free slot
    /// afterwards (see `limits` on lost wake-ups).
    pub(crate) fn join(
        &self,
        bound: Option<Address>,
        avoid: &[Address],
        length_max: u32,
    ) -> Option<Arc<Ticket>> {
        // Checked without the lock first, so that a refused request takes none; the check under the
        // lock decides.
        if self.length() >= length_max {
            return None;
        }
        let mut lanes = self.lock();
        if self.length() >= length_max {
            return None;
        }
        let ticket = Arc::new(Ticket {
            // Numbered under the lock, so that each lane is sorted by number.
            number: self.tickets.next.fetch_add(1, Relaxed),
            bound,
            avoid: avoid.into(),
            takes_any: AtomicBool::new(false),
            state: Mutex::new(State::Waiting(None)),
        });
        match bound {
            Some(address) => lanes.bound.entry(address).or_default().push_back(Arc::clone(&ticket)),
            None => lanes.any.push_back(Arc::clone(&ticket)),
        }
        self.tickets.waiting.fetch_add(1, SeqCst);
        self.publish_lengths(&lanes);
        Some(ticket)
    }

    /// Gives up a place; a slot that was granted and not collected is released.
    pub(crate) fn leave(&self, ticket: &Ticket) {
        let before = std::mem::replace(&mut *ticket.lock(), State::Gone);
        match before {
            // It may have been removed for a grant meanwhile; that grant then finds it gone.
            State::Waiting(_) => self.remove(ticket),
            State::Granted(slot) => drop(slot),
            State::Gone => {}
        }
    }

    /// Returns the lowest number among the tickets that can use a slot at `address`; `to_any`: the
    /// slot may serve tickets that are not bound.
    pub(crate) fn waiting_since(&self, address: Address, to_any: bool) -> Option<u64> {
        let waiting = if to_any { self.length() } else { self.bound.load(Acquire) };
        if waiting == 0 {
            return None;
        }
        self.lock().find(address, to_any).map(|(number, _)| number)
    }

    /// Returns whether the tickets that are not bound ask the fleet for slots of the server at this place of
    /// `count`. Each could use any server; they ask for those of a few more than they are, and of others as
    /// further tickets come.
    pub(crate) fn asks(&self, place: usize, count: usize) -> bool {
        const SERVERS_MIN: usize = 8;
        const TICKETS: u64 = 16;
        let asked = (2 * self.unbound.load(Acquire) as usize).max(SERVERS_MIN);
        let first = (self.tickets.next.load(Relaxed) / TICKETS) as usize;
        asked >= count || (place + count - first % count) % count < asked
    }

    /// Returns how many tickets may be able to use a slot at `address`: those bound to it and, if it
    /// may serve them (`to_any`), those that are not bound, even if they avoid it.
    pub(crate) fn waiting(&self, address: Address, to_any: bool) -> u32 {
        let has_bound = self.bound.load(Acquire) > 0;
        let bound = has_bound.then(|| self.lock().bound.get(&address).map_or(0, VecDeque::len));
        let any = if to_any { self.unbound.load(Acquire) } else { 0 };
        any.saturating_add(bound.unwrap_or(0) as u32)
    }

    /// Removes the ticket that [`Queue::waiting_since`] returns.
    pub(crate) fn pop(&self, address: Address, to_any: bool) -> Option<Arc<Ticket>> {
        let mut lanes = self.lock();
        let (_, place) = lanes.find(address, to_any)?;
        let ticket = match place {
            Place::Any(index) => lanes.any.remove(index),
            Place::Bound => lanes.pop_bound(address),
        };
        if ticket.is_some() {
            self.note_one_less(&lanes);
        }
        ticket
    }

    /// Adjusts tickets after the servers changed: those bound to a server that no longer serves
    /// wait for any, and those that avoid every remaining server avoid none.
    pub(crate) fn relax(
        &self,
        serves: impl Fn(Address) -> bool,
        are_all: impl Fn(&[Address]) -> bool,
    ) {
        if self.length() == 0 {
            return;
        }
        let mut lanes = self.lock();
        let Lanes { any, bound } = &mut *lanes;
        for (_, lane) in bound.extract_if(|address, _| !serves(*address)) {
            for ticket in lane {
                let at = any.partition_point(|other| other.number < ticket.number);
                any.insert(at, ticket);
            }
        }
        for ticket in any {
            let takes_any = !ticket.avoid.is_empty() && are_all(&ticket.avoid);
            ticket.takes_any.store(takes_any, Relaxed);
        }
        self.publish_lengths(&lanes);
    }

    fn remove(&self, ticket: &Ticket) {
        let mut lanes = self.lock();
        if lanes.remove(ticket) {
            self.note_one_less(&lanes);
        }
    }

    fn note_one_less(&self, lanes: &Lanes) {
        self.tickets.waiting.fetch_sub(1, SeqCst);
        self.publish_lengths(lanes);
    }

    /// Only called under the lock.
    fn publish_lengths(&self, lanes: &Lanes) {
        self.unbound.store(lanes.any.len() as u32, Release);
        let bound: usize = lanes.bound.values().map(VecDeque::len).sum();
        self.bound.store(bound as u32, Release);
    }

    fn lock(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lanes {
    fn find(&self, address: Address, to_any: bool) -> Option<(u64, Place)> {
        let bound = self.bound.get(&address).and_then(VecDeque::front);
        let bound = bound.map(|ticket| (ticket.number, Place::Bound));
        if !to_any {
            return bound;
        }
        // Nearly always the first: only a request that is retried avoids servers.
        let any = self.any.iter().position(|ticket| !ticket.avoids(address));
        let any = any.map(|index| (self.any[index].number, Place::Any(index)));
        match (any, bound) {
            (Some(any), Some(bound)) => Some(if any.0 < bound.0 { any } else { bound }),
            (any, bound) => any.or(bound),
        }
    }

    fn pop_bound(&mut self, address: Address) -> Option<Arc<Ticket>> {
        let lane = self.bound.get_mut(&address)?;
        let ticket = lane.pop_front();
        if lane.is_empty() {
            self.bound.remove(&address);
        }
        ticket
    }

    /// Returns false if it is in no lane.
    fn remove(&mut self, ticket: &Ticket) -> bool {
        // A bound ticket may have been moved to the others since it joined.
        if take_out(&mut self.any, ticket.number) {
            return true;
        }
        let Some(address) = ticket.bound else {
            return false;
        };
        let Some(lane) = self.bound.get_mut(&address) else {
            return false;
        };
        let found = take_out(lane, ticket.number);
        if lane.is_empty() {
            self.bound.remove(&address);
        }
        found
    }
}

fn take_out(lane: &mut VecDeque<Arc<Ticket>>, number: u64) -> bool {
    let Ok(index) = lane.binary_search_by_key(&number, |ticket| ticket.number) else {
        return false;
    };
    lane.remove(index).is_some()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn address(port: u16) -> Address {
        SocketAddr::from(([127, 0, 0, 1], port)).into()
    }

    fn queue() -> Queue {
        Queue::new(Arc::default())
    }

    #[test]
    fn a_slot_goes_to_the_lowest_number_that_can_use_it() {
        let queue = queue();
        let to_1 = queue.join(Some(address(1)), &[], 9).unwrap();
        let not_2 = queue.join(None, &[address(2)], 9).unwrap();
        let any = queue.join(None, &[], 9).unwrap();
        let to_2 = queue.join(Some(address(2)), &[], 9).unwrap();
        assert_eq!((queue.length(), queue.has_unbound()), (4, true));

        let next = |port, to_any| queue.pop(address(port), to_any).map(|ticket| ticket.number());
        assert_eq!(queue.waiting_since(address(3), false), None);
        assert_eq!(next(2, true), Some(any.number()));
        assert_eq!(next(1, true), Some(to_1.number()));
        assert_eq!(next(2, true), Some(to_2.number()));
        assert_eq!(next(2, true), None);
        assert_eq!(next(3, true), Some(not_2.number()));
        assert_eq!((queue.length(), queue.tickets.any_waiting()), (0, false));
    }

    #[test]
    fn length_is_bounded_and_leaving_makes_room() {
        let queue = queue();
        let first = queue.join(None, &[], 2).unwrap();
        let second = queue.join(Some(address(1)), &[], 2).unwrap();
        assert!(queue.join(None, &[], 2).is_none());
        queue.leave(&second);
        queue.leave(&second);
        assert_eq!((queue.length(), queue.has_unbound()), (1, true));
        queue.leave(&first);
        assert_eq!((queue.length(), queue.tickets.any_waiting()), (0, false));
        assert!(queue.join(None, &[], 0).is_none());
    }

    #[test]
    fn when_servers_change_bound_tickets_keep_their_turn_and_avoiding_ones_take_any() {
        let queue = queue();
        let first = queue.join(Some(address(1)), &[], 9).unwrap();
        let second = queue.join(None, &[address(2)], 9).unwrap();
        let third = queue.join(Some(address(2)), &[], 9).unwrap();
        queue.relax(|server| server == address(2), |avoided| avoided == [address(2)]);
        let order: Vec<_> =
            std::iter::from_fn(|| queue.pop(address(2), true)).map(|t| t.number()).collect();
        assert_eq!(order, [first.number(), second.number(), third.number()]);
        assert_eq!(queue.length(), 0);
    }

    #[test]
    fn a_ticket_that_was_moved_can_still_leave() {
        let queue = queue();
        let ticket = queue.join(Some(address(1)), &[], 9).unwrap();
        queue.relax(|_| false, |_| false);
        assert!(queue.has_unbound());
        queue.leave(&ticket);
        assert_eq!(queue.length(), 0);
    }
}
