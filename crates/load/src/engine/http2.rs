//! HTTP/2 on one connection, driven by the worker's own loop: it polls the `h2` crate's futures
//! when the socket is ready, and needs no runtime.

mod io;
#[cfg(test)]
mod tests;
mod wake;

use std::fmt;
use std::net::TcpStream;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use h2::RecvStream;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};

use super::exchange::Exchange;
use super::failure::Failure;
use super::link::Link;
use super::plan::Target;
use super::recorder::Moments;
use io::Io;
use wake::Woken;

/// What a server may send on one stream before we have taken it. Everything is taken at once.
const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// The same for all streams of a connection together.
const CONNECTION_WINDOW_BYTES: u32 = 64 * 1024 * 1024;
/// How often what was woken is polled before others have their turn.
const ROUNDS_MAX: u32 = 256;
/// What is read from one connection before others have their turn.
const TURN_MAX_BYTES: usize = 1024 * 1024;

/// What came of moving on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    /// Bytes came in, `body` of them of bodies.
    Received { bytes: usize, body: usize },
    /// Bytes went out.
    Sent(usize),
    /// A response is whole, with this status.
    Whole(Moments, u16),
    /// A request got none.
    Failed(Failure),
    /// The server has not looked at this request: it may be sent again.
    Unprocessed(Exchange),
}

/// A connection.
pub(crate) struct Http2 {
    bytes: Rc<io::Bytes>,
    driver: Driver,
    streams: Vec<Option<Stream>>,
    free: Vec<usize>,
    wakers: Vec<Waker>,
    woken: Arc<Woken>,
    driver_waker: Waker,
    /// Streams that the server's limit keeps from being sent.
    held_back: Vec<usize>,
    /// Exchanges that ran out of time and are not reported yet.
    overdue: usize,
    /// No more requests begin on it: it is closed when those under way have ended.
    leaving: bool,
    /// When something of a response came last, in nanoseconds of the process's clock.
    heard: u64,
    /// How it has ended, once it has.
    over: Option<Over>,
}

type Handshake = Result<(SendRequest<Bytes>, Connection<Io, Bytes>), h2::Error>;

enum Driver {
    /// The preface is on its way.
    Starting(Pin<Box<dyn Future<Output = Handshake>>>),
    Running(SendRequest<Bytes>, Box<Connection<Io, Bytes>>),
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// As it should.
    Orderly,
    Broken(Failure),
}

struct Stream {
    exchange: Exchange,
    deadline: u64,
    stage: Stage,
}

enum Stage {
    /// To be sent when the connection has begun.
    Waiting(Box<(http::Request<()>, Bytes)>),
    /// Sent.
    Sent(ResponseFuture),
    /// The head has come.
    Body(RecvStream, u16),
}

/// Why a stream yields no response.
enum NoResponse {
    Failed(Failure),
    /// The server says that it has not processed it (RFC 9113 sections 6.8 and 8.7).
    Unprocessed,
}

impl Http2 {
    /// Begins to speak, at this moment of the process's clock.
    pub(crate) fn begin_on(link: Link, now: u64) -> Http2 {
        let bytes = Rc::new(io::Bytes::new(link));
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let handshake = builder.handshake(Io(Rc::clone(&bytes)));
        let woken = Arc::new(Woken::default());
        Http2 {
            bytes,
            driver: Driver::Starting(Box::pin(handshake)),
            streams: Vec::new(),
            free: Vec::new(),
            wakers: Vec::new(),
            driver_waker: woken.driver(),
            woken,
            held_back: Vec::new(),
            overdue: 0,
            leaving: false,
            heard: now,
            over: None,
        }
    }

    /// Requests under way.
    pub(crate) fn under_way(&self) -> usize {
        self.streams.len() - self.free.len()
    }

    /// Whether a further request may begin.
    pub(crate) fn has_room(&self, streams_max: usize) -> bool {
        let max = match &self.driver {
            _ if self.leaving || self.over.is_some() => 0,
            Driver::Starting(_) => streams_max,
            Driver::Running(send, _) => send.current_max_send_streams().min(streams_max),
        };
        self.under_way() < max
    }

    /// Whether nothing more will come of it, and everything was reported.
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_some() || (self.leaving && self.under_way() == 0)
    }

    /// Whether it ended as it should not.
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.over, Some(Over::Broken(_)))
    }

    /// Whether it waits for room in the socket, or only for another turn: then, too, it is to be
    /// moved on as soon as the socket has room, which is at once.
    pub(crate) fn is_blocked(&self) -> bool {
        self.bytes.blocked.get() || self.woken.any()
    }

    /// Calls `look` with the socket underneath.
    pub(crate) fn with_socket<R>(&self, look: impl FnOnce(&TcpStream) -> R) -> R {
        look(&self.bytes.link.borrow().socket)
    }

    /// Takes a request on; [`Http2::drive`] sends it.
    pub(crate) fn begin(&mut self, exchange: Exchange, target: &Target, deadline: u64) {
        let index = self.free.pop().unwrap_or_else(|| {
            let index = self.streams.len();
            self.wakers.push(self.woken.stream(index));
            self.streams.push(None);
            index
        });
        let request = Box::new((target.http2.clone(), target.body.clone()));
        let stage = Stage::Waiting(request);
        self.streams[index] = Some(Stream { exchange, deadline, stage });
        self.woken.push(index);
    }

    /// Moves everything on that can move; `tell` hears what came of it.
    pub(crate) fn drive(&mut self, now: u64, mut tell: impl FnMut(Ended)) {
        for _ in 0..std::mem::take(&mut self.overdue) {
            tell(Ended::Failed(Failure::ResponseTimeout));
        }
        self.bytes.blocked.set(false);
        self.bytes.left.set(TURN_MAX_BYTES);
        for round in 0..ROUNDS_MAX {
            let is_driver = self.woken.take_driver();
            self.poll_driver();
            let mut woken = self.woken.take();
            if is_driver || round == 0 {
                // `h2` wakes one of those that its server's limit holds back, not each.
                woken.append(&mut self.held_back);
            }
            for &index in &woken {
                self.poll_stream(index, now, &mut tell);
            }
            if self.over.is_some() || (woken.is_empty() && !self.woken.any()) {
                break;
            }
        }
        let (bytes_in, bytes_out) = (self.bytes.read.take(), self.bytes.written.take());
        if bytes_in > 0 {
            tell(Ended::Received { bytes: bytes_in, body: 0 });
        }
        if bytes_out > 0 {
            tell(Ended::Sent(bytes_out));
        }
        if let Some(over) = self.over {
            self.end_streams(over, now, &mut tell);
        } else {
            self.look_for_goaway();
        }
    }

    /// After a GOAWAY no stream begins any more, and those that run may end.
    fn look_for_goaway(&mut self) {
        let Driver::Running(send, _) = &mut self.driver else { return };
        let mut context = Context::from_waker(&self.driver_waker);
        self.leaving |= matches!(send.poll_ready(&mut context), Poll::Ready(Err(_)));
    }

    /// Ends streams whose time is over; yields how many. The next [`Http2::drive`] tells of them.
    pub(crate) fn end_overdue(&mut self, now: u64) -> usize {
        let before = self.overdue;
        for index in 0..self.streams.len() {
            let Some(stream) = &self.streams[index] else { continue };
            if now < stream.deadline {
                continue;
            }
            // Nothing of any response has come for as long as a request may take: the server that
            // was there is gone, or stuck. Further requests go elsewhere; those that run may still
            // be answered.
            self.leaving |= self.heard <= stream.exchange.moments.sent;
            // Dropping its halves resets it.
            self.streams[index] = None;
            self.free.push(index);
            self.overdue += 1;
        }
        self.overdue - before
    }

    fn poll_driver(&mut self) {
        if self.over.is_some() {
            return;
        }
        let mut context = Context::from_waker(&self.driver_waker);
        if let Driver::Starting(handshake) = &mut self.driver {
            match handshake.as_mut().poll(&mut context) {
                Poll::Pending => return,
                Poll::Ready(Ok((send, connection))) => {
                    self.driver = Driver::Running(send, Box::new(connection));
                    for index in 0..self.streams.len() {
                        self.woken.push(index);
                    }
                }
                Poll::Ready(Err(error)) => self.over = Some(Over::Broken(failure_of(&error))),
            }
        }
        if let Driver::Running(_, connection) = &mut self.driver {
            match Pin::new(connection.as_mut()).poll(&mut context) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.over = Some(Over::Orderly),
                Poll::Ready(Err(error)) => self.over = Some(Over::Broken(failure_of(&error))),
            }
        }
    }

    fn poll_stream(&mut self, index: usize, now: u64, tell: &mut impl FnMut(Ended)) {
        let Driver::Running(send, _) = &mut self.driver else { return };
        let Some(stream) = &mut self.streams[index] else { return };
        let is_waiting = matches!(stream.stage, Stage::Waiting(_));
        if is_waiting && self.over.is_some() {
            return;
        }
        let mut contexts = [&self.driver_waker, &self.wakers[index]].map(Context::from_waker);
        let heard = &mut self.heard;
        let mut hear = |ended| {
            *heard = now;
            tell(ended);
        };
        let polled = poll(stream, send, now, &mut contexts, &mut hear);
        if polled.is_ready() || stream.exchange.moments.first_byte == now {
            self.heard = now;
        }
        let ended = match polled {
            Poll::Pending => {
                if matches!(stream.stage, Stage::Waiting(_)) {
                    self.held_back.push(index);
                }
                return;
            }
            Poll::Ready(Ok(status)) => Ended::Whole(stream.exchange.moments, status),
            Poll::Ready(Err(NoResponse::Failed(failure))) => Ended::Failed(failure),
            Poll::Ready(Err(NoResponse::Unprocessed)) => Ended::Unprocessed(stream.exchange),
        };
        self.streams[index] = None;
        self.free.push(index);
        tell(ended);
    }

    /// The connection has ended: what came before its end still counts, for each stream.
    fn end_streams(&mut self, over: Over, now: u64, tell: &mut impl FnMut(Ended)) {
        for index in 0..self.streams.len() {
            self.poll_stream(index, now, tell);
            let Some(stream) = self.streams[index].take() else { continue };
            self.free.push(index);
            tell(match (over, &stream.stage) {
                (Over::Orderly, Stage::Waiting(_)) => Ended::Unprocessed(stream.exchange),
                (Over::Orderly, _) => Ended::Failed(Failure::Incomplete),
                (Over::Broken(failure), _) => Ended::Failed(failure),
            });
        }
    }
}

/// A stream's walk: sent, its head come, its body come. The connection is woken when it may be sent,
/// itself by what comes then.
fn poll(
    stream: &mut Stream,
    send: &mut SendRequest<Bytes>,
    now: u64,
    [connection, context]: &mut [Context<'_>; 2],
    tell: &mut impl FnMut(Ended),
) -> Poll<Result<u16, NoResponse>> {
    loop {
        match &mut stream.stage {
            Stage::Waiting(request) => {
                ready!(send.poll_ready(connection)).map_err(|error| no_response(&error))?;
                let (head, body) = request.as_ref().clone();
                let sent = send.send_request(head, body.is_empty());
                let (response, mut sending) = sent.map_err(|error| no_response(&error))?;
                if !body.is_empty() {
                    sending.send_data(body, true).map_err(|error| no_response(&error))?;
                }
                stream.stage = Stage::Sent(response);
            }
            Stage::Sent(response) => {
                let response = ready!(Pin::new(response).poll(context));
                let response = response.map_err(|error| no_response(&error))?;
                stream.exchange.moments.first_byte = now;
                let status = response.status().as_u16();
                stream.stage = Stage::Body(response.into_body(), status);
            }
            Stage::Body(body, status) => match ready!(body.poll_data(context)) {
                None => return Poll::Ready(Ok(*status)),
                Some(Ok(data)) => {
                    tell(Ended::Received { bytes: 0, body: data.len() });
                    // It fails only for more than was received.
                    let _ = body.flow_control().release_capacity(data.len());
                }
                Some(Err(error)) => {
                    return Poll::Ready(Err(NoResponse::Failed(failure_of(&error))));
                }
            },
        }
    }
}

/// Why no response begins. A server that closes names the last stream that it has looked at in a
/// GOAWAY, and `h2` hands that on to later ones only.
fn no_response(error: &h2::Error) -> NoResponse {
    let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
    if error.is_remote() && (error.is_go_away() || refused) {
        NoResponse::Unprocessed
    } else {
        NoResponse::Failed(failure_of(error))
    }
}

fn failure_of(error: &h2::Error) -> Failure {
    if let Some(error) = error.get_io() {
        return match error.kind() {
            // What `h2` says of streams when their connection ends.
            std::io::ErrorKind::BrokenPipe => Failure::Incomplete,
            _ => Failure::of_io(error),
        };
    }
    let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
    match error {
        _ if error.is_remote() && (error.is_go_away() || refused) => Failure::StreamRefused,
        _ if error.is_remote() && error.is_reset() => Failure::Reset,
        _ if error.is_library() => Failure::Protocol,
        _ => Failure::Lost,
    }
}

impl fmt::Debug for Http2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2").field("under_way", &self.under_way()).finish_non_exhaustive()
    }
}
