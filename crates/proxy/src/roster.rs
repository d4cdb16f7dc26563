//! Who is here: one entry per client connection of a worker, so that an event that concerns
//! waiting connections (a server marked down, a drain) can wake just them.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// What a connection is doing, as far as an event could concern it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Between requests.
    Idle,
    /// Waiting for a server: for its connection, or its response head.
    AwaitingServer,
    /// Anything else.
    Busy,
}

/// One client connection's place in the roster; leaves when dropped.
pub(crate) struct Entry {
    roster: Rc<Roster>,
    index: usize,
    seat: Rc<Seat>,
}

struct Seat {
    phase: Cell<Phase>,
    waker: RefCell<Option<Waker>>,
}

impl Seat {
    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
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
        let seat =
            Rc::new(Seat { phase: Cell::new(Phase::Busy), waker: RefCell::new(Some(waker)) });
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

    /// Wakes every connection in `phase`.
    pub(crate) fn wake(&self, phase: Phase) {
        for seat in self.seats.borrow().iter().flatten().filter(|s| s.phase.get() == phase) {
            seat.wake();
        }
    }

    /// Wakes every connection.
    pub(crate) fn wake_all(&self) {
        for seat in self.seats.borrow().iter().flatten() {
            seat.wake();
        }
    }
}

impl Entry {
    /// Says what the connection is doing now.
    pub(crate) fn set(&self, phase: Phase) {
        self.seat.phase.set(phase);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.roster.seats.borrow_mut()[self.index] = None;
        self.roster.free.borrow_mut().push(self.index);
    }
}
