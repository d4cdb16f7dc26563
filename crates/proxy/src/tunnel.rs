//! Bytes both ways until both ends are done: TCP mode, and what follows a 101.
//!
//! Each direction ends by itself (half-close): when one side has said all it has to say, the other
//! is told so and may go on talking.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::task::{Context, Poll, ready};

use decide::Slot;
use model::{Cause, Service};
use os::splice::Pipe;
use transport::Stream;

use crate::account::Record;
use crate::blame::{client_failed, server_failed};
use crate::buffer::Buffer;
use crate::client::{After, Client};
use crate::head;
use crate::listener::LiveListener;
use crate::pipes;
use crate::pump::TURN_BYTES;
use crate::roster::Phase;
use crate::scratch::Scratch;
use crate::upstream::ServerConnection;
use crate::watchdog::{Direction, Limits, Watchdog};

/// One end of a tunnel.
pub(crate) struct End<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) buffer: &'a mut Buffer,
}

/// What went through, and why it ended.
pub(crate) struct Ended {
    pub(crate) bytes_up: u64,
    pub(crate) bytes_down: u64,
    pub(crate) cause: Cause,
}

impl Ended {
    /// Whether both sides may take what they got for all there was.
    pub(crate) fn is_orderly(&self) -> bool {
        matches!(self.cause, Cause::Completed | Cause::TunnelIdleTimeout)
    }
}

/// Moves bytes between `client` and `server` until both have closed, one fails, or nothing has
/// moved either way for the service's `timeouts.tunnel`, or `listener`, by which the client came,
/// has been replaced and its tunnels' time is over.
pub(crate) async fn run(
    client: End<'_>,
    server: End<'_>,
    service: &Service,
    listener: &LiveListener,
    watchdog: &mut Watchdog,
) -> Ended {
    let idle = service.timeouts.tunnel;
    let limits = Limits::default();
    limits.set(Direction::Up, os::clock::now() + idle, Cause::TunnelIdleTimeout);
    let (mut up, mut down) = (Half::default(), Half::default());
    let moving = poll_fn(|cx| {
        if let Some(end) = listener.tunnels_end() {
            limits.set(Direction::Whole, end, Cause::ListenerChanged);
        }
        let before = (up.bytes, down.bytes);
        let up_done = match up.poll(cx, client.stream, client.buffer, server.stream) {
            Poll::Ready(Err(Side::From(kind))) => return Poll::Ready(Err(client_failed(kind))),
            Poll::Ready(Err(Side::To(kind))) => return Poll::Ready(Err(server_failed(kind))),
            Poll::Ready(Ok(())) => true,
            Poll::Pending => false,
        };
        let down_done = match down.poll(cx, server.stream, server.buffer, client.stream) {
            Poll::Ready(Err(Side::From(kind))) => return Poll::Ready(Err(server_failed(kind))),
            Poll::Ready(Err(Side::To(kind))) => return Poll::Ready(Err(client_failed(kind))),
            Poll::Ready(Ok(())) => true,
            Poll::Pending => false,
        };
        if up_done && down_done {
            return Poll::Ready(Ok(()));
        }
        if before != (up.bytes, down.bytes) {
            limits.set(Direction::Up, os::clock::now() + idle, Cause::TunnelIdleTimeout);
        }
        Poll::Pending
    });
    let result = watchdog.guard(&limits, moving).await;
    let cause = result.err().unwrap_or(Cause::Completed);
    Ended { bytes_up: up.bytes, bytes_down: down.bytes, cause }
}

/// Passes a 101 on, and then whatever the two sides say to each other. The slot is held to the
/// end: a tunnel occupies its server as a request does.
pub(crate) async fn upgraded(
    service: &Service,
    client: &mut Client,
    scratch: &mut Scratch,
    record: &mut Record,
    (slot, mut server): (Slot, ServerConnection),
) -> After {
    scratch.down.clear();
    head::write_informational(&scratch.response, &mut scratch.down);
    if let Err(cause) = client.send(&scratch.down).await {
        record.end(cause);
        return After::Close;
    }
    client.entry.set(Phase::Tunnel);
    let Client { stream, buffer, watchdog, live, .. } = client;
    let ended = run(
        End { stream, buffer },
        End { stream: &server.stream, buffer: &mut server.buffer },
        service,
        live,
        watchdog,
    )
    .await;
    record.ask_tcp(&mut server, slot.endpoint());
    drop(slot);
    record.body_in = ended.bytes_up;
    record.body_out = ended.bytes_down;
    record.end(ended.cause);
    if ended.is_orderly() {
        return After::Close;
    }
    // A plain close would tell either side that all is said.
    server.stream.reset();
    After::Reset
}

/// Which side's connection failed.
enum Side {
    From(ErrorKind),
    To(ErrorKind),
}

#[derive(Default)]
enum Stage {
    /// Through the buffer.
    #[default]
    Copying,
    /// Through a pipe, without a copy into this process: bulk.
    Splicing(Pipe),
    /// The sender is done; the receiver is still to be told.
    Closing,
    Done,
}

/// One direction.
#[derive(Default)]
struct Half {
    bytes: u64,
    stage: Stage,
}

impl Half {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &Stream,
        buffer: &mut Buffer,
        to: &Stream,
    ) -> Poll<Result<(), Side>> {
        let turn_ends = self.bytes + TURN_BYTES;
        loop {
            if self.bytes >= turn_ends {
                // Others are waiting for this thread.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match &mut self.stage {
                Stage::Copying => {
                    while !buffer.is_empty() {
                        let sent =
                            ready!(to.poll_write(cx, buffer)).map_err(|e| Side::To(e.kind()))?;
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
                            // It may be long until there is something again.
                            buffer.release();
                            return Poll::Pending;
                        }
                        Poll::Ready(Ok(0)) => self.stage = Stage::Closing,
                        Poll::Ready(Ok(_)) => {}
                        Poll::Ready(Err(e)) => return Poll::Ready(Err(Side::From(e.kind()))),
                    }
                }
                Stage::Splicing(pipe) => {
                    while !pipe.is_empty() {
                        let sent = ready!(to.poll_splice_out(cx, pipe, false))
                            .map_err(|e| Side::To(e.kind()))?;
                        self.bytes += sent as u64;
                    }
                    let taken = ready!(from.poll_splice_in(cx, pipe, usize::MAX));
                    if taken.map_err(|e| Side::From(e.kind()))? == 0 {
                        self.stage = Stage::Closing;
                    }
                }
                Stage::Closing => {
                    ready!(to.poll_close_write(cx)).map_err(|e| Side::To(e.kind()))?;
                    buffer.release();
                    self.stage = Stage::Done;
                }
                Stage::Done => return Poll::Ready(Ok(())),
            }
        }
    }
}
