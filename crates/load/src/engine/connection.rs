//! One connection to a target, and its requests in flight.

use os::poll::Interest;

use super::exchange::Exchange;
use super::http1::Reader;
use super::http2::Http2;
use super::link::Link;

/// A connection's life.
///
/// ```text
/// Connecting ─▶ Handshaking ─▶ Http1 (idle ◀─▶ one exchange) ─▶ closed
///         └─────────────────▶ Http2 (streams)
/// ```
#[derive(Debug)]
pub(crate) enum State {
    /// Until the socket is writable; the request that it was opened for waits. `None`: it is opened
    /// ahead of requests.
    Connecting(Option<Exchange>),
    /// TLS; the request waits.
    Handshaking(Option<Exchange>),
    /// HTTP/1.1, with or without a request under way.
    Http1(Option<Exchange>),
    /// HTTP/2.
    Http2(Box<Http2>),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    /// `None`: HTTP/2 has it.
    pub(crate) link: Option<Link>,
    pub(crate) state: State,
    pub(crate) site: usize,
    /// Which of the plan's sources.
    pub(crate) source: usize,
    /// When connecting began, then when TLS did.
    pub(crate) since: u64,
    /// When what is under way must be done.
    pub(crate) deadline: u64,
    pub(crate) reader: Reader,
    /// Exchanges completed on it.
    pub(crate) served: u64,
    /// Whether it has waited for its first request.
    pub(crate) was_idle: bool,
    /// Whether it is among those that can take a request.
    pub(crate) is_spare: bool,
    /// The interest registered with the poller.
    pub(crate) interest: Interest,
}

impl Connection {
    /// Requests under way.
    pub(crate) fn under_way(&self) -> usize {
        match &self.state {
            State::Connecting(exchange) | State::Handshaking(exchange) | State::Http1(exchange) => {
                usize::from(exchange.is_some())
            }
            State::Http2(http2) => http2.under_way(),
        }
    }
}

/// Connections by number. A number is used again, so each has a generation: an event for one that
/// was closed meanwhile is not its successor's.
#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: Vec<(u32, Option<Connection>)>,
    free: Vec<usize>,
    len: usize,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The number of the next connection and its token for the poller.
    pub(crate) fn reserve(&mut self) -> (usize, u64) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() - 1
        });
        (index, self.token(index))
    }

    pub(crate) fn put(&mut self, index: usize, connection: Connection) {
        self.len += 1;
        self.slots[index].1 = Some(connection);
    }

    /// Gives a number back that was reserved, or whose connection is closed.
    pub(crate) fn release(&mut self, index: usize) -> Option<Connection> {
        let (generation, slot) = &mut self.slots[index];
        *generation = generation.wrapping_add(1);
        let connection = slot.take();
        self.len -= usize::from(connection.is_some());
        self.free.push(index);
        connection
    }

    pub(crate) fn token(&self, index: usize) -> u64 {
        u64::from(self.slots[index].0) << 32 | index as u64
    }

    /// The number of a token, if its connection is still there.
    pub(crate) fn of_token(&self, token: u64) -> Option<usize> {
        let index = (token & u64::from(u32::MAX)) as usize;
        let (generation, slot) = self.slots.get(index)?;
        (u64::from(*generation) == token >> 32 && slot.is_some()).then_some(index)
    }

    pub(crate) fn get(&mut self, index: usize) -> Option<&mut Connection> {
        self.slots.get_mut(index)?.1.as_mut()
    }

    pub(crate) fn peek(&self, index: usize) -> Option<&Connection> {
        self.slots.get(index)?.1.as_ref()
    }

    /// Numbers that may hold a connection.
    pub(crate) fn numbers(&self) -> usize {
        self.slots.len()
    }
}
