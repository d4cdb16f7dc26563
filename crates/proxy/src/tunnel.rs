//! Forwards bytes both ways until both ends are done: TCP mode, and what follows a 101.
//!
//! Each direction ends separately (half-close): when one side has finished sending, its end is
//! forwarded, and the other side may continue.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use model::{Cause, Service};
use os::splice::Pipe;
use transport::Stream;

use crate::account::Record;
use crate::buffer::Buffer;
use crate::client;
use crate::failure::{self, Sender};
use crate::listener::LiveListener;
use crate::pipes;
use crate::pump::PumpError;
use crate::turns::Ticket;
use crate::watchdog::{Direction, Limits, Watchdog};

/// The server side of a tunnel: a TLS connection that ends without `close_notify` counts as reset.
const BY_SERVER: Sender = Sender::Server { early_end: Cause::ConnectionReset, write_failed: None };

/// One end of a tunnel.
pub(crate) struct End<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) buffer: &'a mut Buffer,
}

/// A client and a server whose bytes are forwarded to each other.
pub(crate) struct Tunnel<'a> {
    pub(crate) client: End<'a>,
    pub(crate) server: End<'a>,
    pub(crate) service: &'a Service,
    /// The listener that accepted the client.
    pub(crate) listener: &'a LiveListener,
}

impl Tunnel<'_> {
    /// Moves bytes both ways until both ends have closed, one fails, nothing has moved either way
    /// for the service's `timeouts.tunnel`, or the listener has been replaced and its tunnels'
    /// deadline has passed. Returns which. `record` always has the number of bytes forwarded.
    pub(crate) async fn run(self, watchdog: &mut Watchdog, record: &mut Record) -> Cause {
        let Tunnel { client, server, service, listener } = self;
        let idle = service.timeouts.tunnel;
        let limits = Limits::default();
        limits.set(Direction::Up, os::clock::now() + idle, Cause::TunnelIdleTimeout);
        let (mut up, mut down) = (Half::default(), Half::default());
        (record.body_in, record.body_out) = (0, 0);
        let moving = poll_fn(|cx| {
            if let Some(end) = listener.tunnels_end() {
                limits.set(Direction::Whole, end, Cause::ListenerChanged);
            }
            let before = (up.bytes, down.bytes);
            let up_done = up.poll(cx, client.stream, client.buffer, server.stream);
            record.body_in = up.bytes;
            let up_done = up_done.map_err(|error| failure::reason(&error, Sender::Client).cause)?;
            let down_done = down.poll(cx, server.stream, server.buffer, client.stream);
            record.body_out = down.bytes;
            let down_done = down_done.map_err(|error| failure::reason(&error, BY_SERVER).cause)?;
            if up_done.is_ready() && down_done.is_ready() {
                return Poll::Ready(Ok(()));
            }
            if before != (up.bytes, down.bytes) {
                limits.set(Direction::Up, os::clock::now() + idle, Cause::TunnelIdleTimeout);
            }
            Poll::Pending
        });
        let moved = watchdog.guard(&limits, moving).await;
        moved.err().unwrap_or(Cause::Completed)
    }
}

/// Returns whether both ends of a tunnel that ended by `cause` may consider what they received
/// complete.
pub(crate) fn is_orderly(cause: Cause) -> bool {
    matches!(cause, Cause::Completed | Cause::TunnelIdleTimeout)
}

/// Closes an end of a tunnel that ended by `cause`: so that the peer can tell whether what it
/// received is complete.
pub(crate) fn close(stream: Stream, cause: Cause) {
    if is_orderly(cause) {
        // Over TLS, an end without close_notify would look like a truncation.
        client::close(&stream);
    } else {
        stream.reset();
    }
}

#[derive(Default)]
enum Stage {
    /// Through the buffer.
    #[default]
    Copying,
    /// Through a pipe, without a copy into this process: bulk data.
    Splicing(Pipe),
    /// The sender is done; the end has yet to be forwarded.
    Closing,
    Done,
}

/// One direction.
#[derive(Default)]
struct Half {
    bytes: u64,
    stage: Stage,
    /// Its place among the transfers that wait for a turn.
    ticket: Ticket,
}

impl Half {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &Stream,
        buffer: &mut Buffer,
        to: &Stream,
    ) -> Poll<Result<(), PumpError>> {
        let before = self.bytes;
        let polled = self.poll_turn(cx, from, buffer, to);
        buffer.turns().count(self.bytes - before);
        polled
    }

    fn poll_turn(
        &mut self,
        cx: &mut Context<'_>,
        from: &Stream,
        buffer: &mut Buffer,
        to: &Stream,
    ) -> Poll<Result<(), PumpError>> {
        let before = self.bytes;
        loop {
            let share = buffer.turns().share(self.bytes - before);
            if share == 0 {
                // Other connections wait for this thread.
                buffer.turns().wait(&mut self.ticket, cx);
                return Poll::Pending;
            }
            match &mut self.stage {
                Stage::Copying => {
                    while !buffer.is_empty() {
                        let sent = ready!(to.poll_write(cx, buffer)).map_err(PumpError::write)?;
                        buffer.consume(sent);
                        self.bytes += sent as u64;
                    }
                    if buffer.is_bulk()
                        && from.can_splice()
                        && to.can_splice()
                        && let Some(pipe) = pipes::wide()
                    {
                        buffer.release();
                        self.stage = Stage::Splicing(pipe);
                        continue;
                    }
                    buffer.enlarge_for_bulk();
                    match buffer.poll_fill(from, cx) {
                        Poll::Pending => {
                            // It may take long until there is more data.
                            buffer.release();
                            return Poll::Pending;
                        }
                        Poll::Ready(Ok(0)) => self.stage = Stage::Closing,
                        Poll::Ready(Ok(_)) => {}
                        Poll::Ready(Err(e)) => return Poll::Ready(Err(PumpError::read(e))),
                    }
                }
                Stage::Splicing(pipe) => {
                    while !pipe.is_empty() {
                        let sent = ready!(to.poll_splice_out(cx, pipe, false))
                            .map_err(PumpError::write)?;
                        self.bytes += sent as u64;
                    }
                    let taken = ready!(from.poll_splice_in(cx, pipe, share as usize));
                    if taken.map_err(PumpError::read)? == 0 {
                        self.stage = Stage::Closing;
                    }
                }
                Stage::Closing => {
                    ready!(to.poll_close_write(cx)).map_err(PumpError::write)?;
                    buffer.release();
                    self.stage = Stage::Done;
                }
                Stage::Done => return Poll::Ready(Ok(())),
            }
        }
    }
}
