//! Who is here: one entry per client connection of a worker, so that an event that concerns
//! waiting connections (a server marked down, a drain) can wake just them, and so that whoever
//! asks can be told what they are about (`in_flight`).

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Poll, Waker};

use model::Moment;

use crate::flight::Flight;

/// What a connection is doing, as far as an event could concern it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Between requests.
    Idle,
    /// Waiting for a slot at a server.
    Queued,
    /// Waiting for a connection to a server.
    Connecting,
    /// Waiting for a server's response head.
    AwaitingHead,
    /// Bytes go both ways.
    Tunnel,
    /// Anything else.
    Busy,
}

impl Phase {
    /// Whether it would matter that a server is marked down.
    pub(crate) fn awaits_server(self) -> bool {
        matches!(self, Phase::Connecting | Phase::AwaitingHead)
    }
}

/// One client connection's place in the roster; leaves when dropped.
pub(crate) struct Entry {
    roster: Rc<Roster>,
    index: usize,
    seat: Rc<Seat>,
}

/// Where a connection sits.
pub(crate) struct Seat {
    phase: Cell<Phase>,
    waker: Waker,
    /// The exchange under way, if there is one. Apart, since most connections wait for their first.
    flight: OnceCell<Box<RefCell<Option<Flight>>>>,
}

impl Seat {
    /// What `read` makes of the exchange under way.
    pub(crate) fn flight<T>(&self, read: impl FnOnce(&Flight, Phase) -> T) -> Option<T> {
        self.flight.get()?.borrow().as_ref().map(|flight| read(flight, self.phase.get()))
    }
}

/// A worker's connections.
#[derive(Default)]
pub(crate) struct Roster {
    seats: RefCell<Vec<Option<Rc<Seat>>>>,
    free: RefCell<Vec<usize>>,
}

impl Roster {
    /// Enters the current task.
    pub(crate) async fn enter(self: &Rc<Self>) -> Entry {
        // A task keeps its waker for life, so it is taken once.
        let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
        let phase = Cell::new(Phase::Busy);
        let seat = Rc::new(Seat { phase, waker, flight: OnceCell::new() });
        let mut seats = self.seats.borrow_mut();
        let index = if let Some(index) = self.free.borrow_mut().pop() {
            seats[index] = Some(Rc::clone(&seat));
            index
        } else {
            seats.push(Some(Rc::clone(&seat)));
            seats.len() - 1
        };
        Entry { roster: Rc::clone(self), index, seat }
    }

    /// Wakes every connection in such a phase.
    pub(crate) fn wake(&self, such: impl Fn(Phase) -> bool) {
        for seat in self.seats.borrow().iter().flatten().filter(|seat| such(seat.phase.get())) {
            seat.waker.wake_by_ref();
        }
    }

    /// Wakes every connection.
    pub(crate) fn wake_all(&self) {
        self.wake(|_| true);
    }

    /// Where exchanges are under way, and since when.
    pub(crate) fn flying(&self) -> Vec<(Moment, Rc<Seat>)> {
        let seats = self.seats.borrow();
        let since = |seat: &Rc<Seat>| seat.flight(|flight, _| flight.since);
        seats.iter().flatten().filter_map(|seat| Some((since(seat)?, Rc::clone(seat)))).collect()
    }
}

impl Entry {
    /// Says what the connection is doing now.
    pub(crate) fn set(&self, phase: Phase) {
        self.seat.phase.set(phase);
    }

    /// An exchange begins.
    pub(crate) fn begin(&self, flight: Flight) {
        *self.seat.flight.get_or_init(Box::default).borrow_mut() = Some(flight);
    }

    /// More is known of the exchange under way.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Flight)) {
        if let Some(flight) = self.seat.flight.get()
            && let Some(flight) = &mut *flight.borrow_mut()
        {
            change(flight);
        }
    }

    /// A server is about to be tried.
    pub(crate) fn attempt(&self, server: SocketAddr) {
        self.note(|flight| {
            flight.server = Some(server);
            flight.attempts += 1;
        });
    }

    /// It has ended.
    pub(crate) fn end(&self) {
        if let Some(flight) = self.seat.flight.get() {
            *flight.borrow_mut() = None;
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.roster.seats.borrow_mut()[self.index] = None;
        self.roster.free.borrow_mut().push(self.index);
    }
}
