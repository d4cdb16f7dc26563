//! One entry per client connection of a worker, so that an event that concerns waiting connections
//! (a server marked down, a drain) can wake just them, and requests in flight can be reported
//! (`in_flight`).

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use model::{Address, Moment};

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
    /// Bytes flow both ways.
    Tunnel,
    /// Anything else.
    Busy,
}

impl Phase {
    /// Returns whether it matters to this connection that a server is marked down.
    pub(crate) fn awaits_server(self) -> bool {
        matches!(self, Phase::Connecting | Phase::AwaitingHead)
    }
}

/// One client connection's entry in the roster; removed when dropped.
pub(crate) struct Entry {
    roster: Rc<Roster>,
    index: usize,
    seat: Rc<Seat>,
}

/// A connection's slot in the roster.
pub(crate) struct Seat {
    phase: Cell<Phase>,
    waker: Waker,
    /// The exchange in progress, if any. Allocated separately, since most connections wait for
    /// their first.
    flight: OnceCell<Box<RefCell<Option<Flight>>>>,
}

impl Seat {
    /// Applies `read` to the exchange in progress.
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
    /// Adds the current task.
    pub(crate) async fn enter(self: &Rc<Self>) -> Entry {
        // A task keeps its waker for life, so it is cloned once.
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

    /// Wakes every connection in a matching phase.
    pub(crate) fn wake(&self, such: impl Fn(Phase) -> bool) {
        for seat in self.seats.borrow().iter().flatten().filter(|seat| such(seat.phase.get())) {
            seat.waker.wake_by_ref();
        }
    }

    /// Wakes every connection.
    pub(crate) fn wake_all(&self) {
        self.wake(|_| true);
    }

    /// Returns the exchanges in progress and when each began.
    pub(crate) fn flying(&self) -> Vec<(Moment, Rc<Seat>)> {
        let seats = self.seats.borrow();
        let since = |seat: &Rc<Seat>| seat.flight(|flight, _| flight.since);
        seats.iter().flatten().filter_map(|seat| Some((since(seat)?, Rc::clone(seat)))).collect()
    }
}

impl Entry {
    /// Sets what the connection is doing now.
    pub(crate) fn set(&self, phase: Phase) {
        self.seat.phase.set(phase);
    }

    /// Records the start of an exchange.
    pub(crate) fn begin(&self, flight: Flight) {
        *self.seat.flight.get_or_init(Box::default).borrow_mut() = Some(flight);
    }

    /// Updates the description of the exchange in progress.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Flight)) {
        if let Some(flight) = self.seat.flight.get()
            && let Some(flight) = &mut *flight.borrow_mut()
        {
            change(flight);
        }
    }

    /// Records the server that is about to be tried.
    pub(crate) fn attempt(&self, server: Address) {
        self.note(|flight| {
            flight.server = Some(server);
            flight.attempts += 1;
        });
    }

    /// Records the end of the exchange.
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
