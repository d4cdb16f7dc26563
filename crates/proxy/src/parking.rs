//! A worker's parked connections: a list with its own poller, since a task plus the runtime's
//! registration take kilobytes.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use model::Moment;
use observe::ListenerCounters;
use os::poll::{Interest, Poller};
use slab::Slab;
use tokio::io::unix::AsyncFd;
use transport::{Stream, watched};

use crate::listener::LiveListener;
use crate::shared::Counted;

/// A connection that is idle for longer is parked. Long compared with the pauses of an active
/// client: parking and resuming costs four system calls.
pub(crate) const PARKED_AFTER: Duration = Duration::from_millis(250);

/// Everything that counts a connection for its lifetime, whatever task it is in.
pub(crate) struct Held {
    counted: Counted,
    _closes: Closes,
}

impl Held {
    /// Counts a connection as accepted now.
    pub(crate) fn new(counted: Counted, counters: Arc<ListenerCounters>) -> Held {
        counters.connections_accepted.increment();
        Held { counted, _closes: Closes(counters) }
    }

    /// Returns the listener that accepted it.
    pub(crate) fn listener(&self) -> &Arc<LiveListener> {
        &self.counted.listener
    }
}

/// Counts a connection as closed when dropped.
struct Closes(Arc<ListenerCounters>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.connections_closed.increment();
    }
}

/// A connection that waits for its next request, reduced to the minimum.
pub(crate) struct Parked {
    pub(crate) stream: Stream,
    /// The client's address: the peer's, or the one that a PROXY header names.
    pub(crate) peer: SocketAddr,
    /// Whether the client spoke TLS to the proxy that sent the PROXY header.
    pub(crate) tls_before: bool,
    /// Whether it has sent anything before.
    pub(crate) begun: bool,
    /// When its idle timeout ends.
    pub(crate) until: Moment,
    pub(crate) held: Held,
}

/// A worker's parked connections.
pub(crate) struct Parking {
    /// Its tokens are indexes into `places`.
    poller: RefCell<AsyncFd<Poller>>,
    places: RefCell<Slab<Parked>>,
    /// The poller has failed and is no longer read.
    is_blind: Cell<bool>,
}

impl Parking {
    /// Returns an empty list. Must be called within a runtime.
    pub(crate) fn new() -> io::Result<Parking> {
        Ok(Parking {
            poller: RefCell::new(watched(Poller::new()?)?),
            places: RefCell::default(),
            is_blind: Cell::new(false),
        })
    }

    /// Parks a connection; returns it if it cannot be watched.
    pub(crate) fn enter(&self, parked: Parked) -> Option<Parked> {
        if self.is_blind.get() {
            return Some(parked);
        }
        let poller = self.poller.borrow();
        let mut places = self.places.borrow_mut();
        let place = places.vacant_entry();
        let token = place.key() as u64;
        let stream = &parked.stream;
        let watched = stream.unwatch().and_then(|()| {
            stream.with_descriptor(|tcp| poller.get_ref().add(&tcp, token, Interest::Read))
        });
        if watched.is_err() {
            return Some(parked);
        }
        place.insert(parked);
        None
    }

    /// Removes a connection.
    pub(crate) fn leave(&self, place: usize) -> Option<Parked> {
        let parked = self.places.borrow_mut().try_remove(place)?;
        let poller = self.poller.borrow();
        // An error would mean that it was not being watched.
        let _ = parked.stream.with_descriptor(|tcp| poller.get_ref().remove(&tcp));
        Some(parked)
    }

    /// Waits for connections that are readable or closed; returns their places.
    pub(crate) async fn speaking(&self) -> io::Result<Vec<usize>> {
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

    /// Stops accepting connections: the poller has failed.
    pub(crate) fn give_up(&self) {
        self.is_blind.set(true);
    }

    /// Returns the places of at most `max` connections that match `such`.
    pub(crate) fn places(&self, max: usize, such: impl Fn(&Parked) -> bool) -> Vec<usize> {
        let places = self.places.borrow();
        let such = places.iter().filter(|(_, parked)| such(parked));
        such.map(|(place, _)| place).take(max).collect()
    }

    /// Frees memory left over from a burst.
    pub(crate) fn trim(&self) {
        let mut places = self.places.borrow_mut();
        if places.len() < places.capacity() / 4 {
            places.shrink_to_fit();
        }
    }
}
