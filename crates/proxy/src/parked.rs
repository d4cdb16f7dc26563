//! Connections between their requests. One that has been silent for a while is parked: it leaves its
//! task and the runtime's watch, which together take kilobytes, and waits in a list, beside a poller
//! of its own. When it speaks it goes on in a new task.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

use model::Moment;
use os::poll::{Interest, Poller};
use slab::Slab;
use tokio::io::unix::AsyncFd;
use transport::{Stream, watched};

use crate::accept::Held;
use crate::worker::Worker;
use crate::{client, connection};

/// A connection that is silent for longer is parked. Long beside the pauses of a client at work:
/// to park and to go on costs four system calls.
pub(crate) const PARKED_AFTER: Duration = Duration::from_millis(250);

/// Closed in a row before others get their turn.
const BATCH_MAX: usize = 256;

/// A connection that has nothing to say for the time being.
pub(crate) struct Silent {
    pub(crate) stream: Stream,
    /// The client's address: that of the other end, or what a PROXY header says.
    pub(crate) peer: SocketAddr,
    /// Whether the client spoke TLS to whoever sent the PROXY header.
    pub(crate) tls_before: bool,
    /// Whether it has sent anything before.
    pub(crate) begun: bool,
    /// When its time between requests is over.
    pub(crate) until: Moment,
}

/// A silent connection, and what it is counted by.
struct Parked {
    silent: Silent,
    held: Held,
}

/// A worker's parked connections.
pub(crate) struct Parking {
    /// Its tokens are places in `places`.
    poller: RefCell<AsyncFd<Poller>>,
    places: RefCell<Slab<Parked>>,
    /// Nobody attends to the poller any more: it has failed.
    is_blind: Cell<bool>,
}

impl Parking {
    /// Without connections. To be called within a runtime.
    pub(crate) fn new() -> io::Result<Parking> {
        Ok(Parking {
            poller: RefCell::new(watched(Poller::new()?)?),
            places: RefCell::default(),
            is_blind: Cell::new(false),
        })
    }

    /// Takes a connection in; gives it back when it can't be waited for.
    fn enter(&self, parked: Parked) -> Option<Parked> {
        if self.is_blind.get() {
            return Some(parked);
        }
        let poller = self.poller.borrow();
        let mut places = self.places.borrow_mut();
        let place = places.vacant_entry();
        let token = place.key() as u64;
        let stream = &parked.silent.stream;
        let watched = stream.unwatch().and_then(|()| {
            stream.with_descriptor(|tcp| poller.get_ref().add(&tcp, token, Interest::Read))
        });
        if watched.is_err() {
            return Some(parked);
        }
        place.insert(parked);
        None
    }

    /// Lets a connection out.
    fn leave(&self, place: usize) -> Option<Parked> {
        let parked = self.places.borrow_mut().try_remove(place)?;
        let poller = self.poller.borrow();
        // An error would mean that it was not watched.
        let _ = parked.silent.stream.with_descriptor(|tcp| poller.get_ref().remove(&tcp));
        Some(parked)
    }

    /// Waits for connections that speak, or have ended; yields their places.
    async fn speaking(&self) -> io::Result<Vec<usize>> {
        poll_fn(|cx| {
            let mut poller = self.poller.borrow_mut();
            loop {
                let mut ready = ready!(poller.poll_read_ready_mut(cx))?;
                let poller = ready.get_inner_mut();
                poller.wait(Duration::ZERO)?;
                if poller.is_empty() {
                    ready.clear_ready();
                    continue;
                }
                let places = (0..poller.len()).map(|index| poller.ready(index).token as usize);
                return Poll::Ready(Ok(places.collect()));
            }
        })
        .await
    }

    /// Gives memory back that a burst has left.
    pub(crate) fn trim(&self) {
        let mut places = self.places.borrow_mut();
        if places.len() < places.capacity() / 4 {
            places.shrink_to_fit();
        }
    }
}

/// Lets a connection wait here until it speaks or its time is over.
pub(crate) fn park(worker: &Rc<Worker>, silent: Silent, held: Held) {
    // One that can't be waited for here waits in a task, a little at a time.
    if let Some(parked) = worker.parking.enter(Parked { silent, held }) {
        go_on(worker, parked);
    }
}

/// Goes on with every connection that speaks, for as long as the worker lives.
pub(crate) async fn attend(worker: Rc<Worker>) {
    let error = loop {
        match worker.parking.speaking().await {
            Ok(places) => go_on_from(&worker, places),
            Err(error) => break error,
        }
    };
    tracing::error!(worker = worker.id, %error, "cannot watch silent connections any more");
    worker.parking.is_blind.set(true);
    let places: Vec<usize> = worker.parking.places.borrow().iter().map(|(at, _)| at).collect();
    go_on_from(&worker, places);
}

/// Closes those whose time is over.
pub(crate) fn close_due(worker: &Rc<Worker>, now: Moment) {
    close(worker, move |_, parked| parked.silent.until <= now);
}

/// Closes those that are to wait no longer, because the worker or their listener ends.
pub(crate) fn close_last(worker: &Rc<Worker>) {
    close(worker, |worker, parked| worker.shared.draining() || parked.held.listener().is_closing());
}

/// Closes such connections, in a task of its own, some at a time; what has arrived is still
/// answered.
fn close(worker: &Rc<Worker>, such: impl Fn(&Worker, &Parked) -> bool + 'static) {
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        while close_some(&worker, &such) > 0 {
            tokio::task::yield_now().await;
        }
    });
}

/// Closes the first of such connections; yields how many.
fn close_some(worker: &Rc<Worker>, such: impl Fn(&Worker, &Parked) -> bool) -> usize {
    let places = worker.parking.places.borrow();
    let such = places.iter().filter(|(_, parked)| such(worker, parked));
    let such: Vec<usize> = such.map(|(place, _)| place).take(BATCH_MAX).collect();
    drop(places);
    let count = such.len();
    for parked in such.into_iter().filter_map(|place| worker.parking.leave(place)) {
        if parked.silent.stream.is_silent() {
            client::close(&parked.silent.stream);
        } else {
            go_on(worker, parked);
        }
    }
    count
}

/// Goes on with the connections at these places.
fn go_on_from(worker: &Rc<Worker>, places: Vec<usize>) {
    for parked in places.into_iter().filter_map(|place| worker.parking.leave(place)) {
        go_on(worker, parked);
    }
}

/// Goes on with a connection, in a task that is large enough to serve requests.
fn go_on(worker: &Rc<Worker>, parked: Parked) {
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        let Parked { silent, held } = parked;
        if let Some(silent) = connection::resume(&worker, silent, &held).await {
            park(&worker, silent, held);
        }
    });
}
