//! HTTP/2 on one connection, moved on by the worker's own loop: the `h2` crate's futures are polled
//! when the socket is ready, and no runtime is needed.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::net::TcpStream;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};

use bytes::Bytes;
use h2::RecvStream;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::Exchange;
use super::failure::Failure;
use super::link::Link;
use super::plan::Target;
use super::recorder::Moments;

/// What a server may send on one stream before we have taken it. Everything is taken at once.
const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// The same for all streams of a connection together.
const CONNECTION_WINDOW_BYTES: u32 = 64 * 1024 * 1024;
/// How often what was woken is polled before others have their turn.
const ROUNDS_MAX: u32 = 256;

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
}

/// A connection.
pub(crate) struct Http2 {
    link: Rc<Shared>,
    driver: Driver,
    streams: Vec<Option<Stream>>,
    free: Vec<usize>,
    wakers: Vec<Waker>,
    woken: Arc<Woken>,
    driver_waker: Waker,
    /// Exchanges that ran out of time, still to be told.
    overdue: usize,
}

type Handshake = Result<(SendRequest<Bytes>, Connection<Io, Bytes>), h2::Error>;

enum Driver {
    /// The preface is on its way.
    Starting(Pin<Box<dyn Future<Output = Handshake>>>),
    Running(SendRequest<Bytes>, Box<Connection<Io, Bytes>>),
    /// It has ended, so.
    Over(Failure),
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

impl Http2 {
    /// Begins to speak.
    pub(crate) fn begin_on(link: Link) -> Http2 {
        let link = Rc::new(Shared {
            link: RefCell::new(link),
            blocked: Cell::new(false),
            bytes_in: Cell::new(0),
            bytes_out: Cell::new(0),
        });
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let handshake = builder.handshake(Io(Rc::clone(&link)));
        let woken = Arc::new(Woken::default());
        Http2 {
            link,
            driver: Driver::Starting(Box::pin(handshake)),
            streams: Vec::new(),
            free: Vec::new(),
            wakers: Vec::new(),
            driver_waker: Waker::from(Arc::new(DriverWake(Arc::clone(&woken)))),
            woken,
            overdue: 0,
        }
    }

    /// Requests under way.
    pub(crate) fn under_way(&self) -> usize {
        self.streams.len() - self.free.len()
    }

    /// Whether a further request may begin.
    pub(crate) fn has_room(&self, streams_max: usize) -> bool {
        let max = match &self.driver {
            Driver::Starting(_) => streams_max,
            Driver::Running(send, _) => send.current_max_send_streams().min(streams_max),
            Driver::Over(_) => 0,
        };
        self.under_way() < max
    }

    /// Whether it has ended and everything was told.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.driver, Driver::Over(_))
    }

    /// Whether it waits for room in the socket.
    pub(crate) fn is_blocked(&self) -> bool {
        self.link.blocked.get()
    }

    /// Calls `look` with the socket underneath.
    pub(crate) fn with_socket<R>(&self, look: impl FnOnce(&TcpStream) -> R) -> R {
        look(&self.link.link.borrow().socket)
    }

    /// Takes a request on; [`Http2::drive`] sends it.
    pub(crate) fn begin(&mut self, exchange: Exchange, target: &Target, deadline: u64) {
        let index = self.free.pop().unwrap_or_else(|| {
            let index = self.streams.len();
            let wake = StreamWake { index, woken: Arc::clone(&self.woken) };
            self.wakers.push(Waker::from(Arc::new(wake)));
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
        self.link.blocked.set(false);
        for _ in 0..ROUNDS_MAX {
            self.woken.driver.store(false, Ordering::Relaxed);
            self.poll_driver();
            let woken = self.woken.take();
            if woken.is_empty() && !self.woken.driver.load(Ordering::Relaxed) {
                break;
            }
            for index in woken {
                self.poll_stream(index, now, &mut tell);
            }
        }
        let (bytes_in, bytes_out) = (self.link.bytes_in.take(), self.link.bytes_out.take());
        if bytes_in > 0 {
            tell(Ended::Received { bytes: bytes_in, body: 0 });
        }
        if bytes_out > 0 {
            tell(Ended::Sent(bytes_out));
        }
        if let Driver::Over(failure) = self.driver {
            for index in 0..self.streams.len() {
                if self.streams[index].take().is_some() {
                    self.free.push(index);
                    tell(Ended::Failed(failure));
                }
            }
        }
    }

    /// Ends streams whose time is over; yields how many. The next [`Http2::drive`] tells of them.
    pub(crate) fn end_overdue(&mut self, now: u64) -> usize {
        let before = self.overdue;
        for index in 0..self.streams.len() {
            if self.streams[index].as_ref().is_some_and(|stream| now >= stream.deadline) {
                // Dropping its halves resets it.
                self.streams[index] = None;
                self.free.push(index);
                self.overdue += 1;
            }
        }
        self.overdue - before
    }

    fn poll_driver(&mut self) {
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
                Poll::Ready(Err(error)) => self.driver = Driver::Over(failure_of(&error)),
            }
        }
        if let Driver::Running(_, connection) = &mut self.driver {
            match Pin::new(connection.as_mut()).poll(&mut context) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => self.driver = Driver::Over(Failure::Incomplete),
                Poll::Ready(Err(error)) => self.driver = Driver::Over(failure_of(&error)),
            }
        }
    }

    fn poll_stream(&mut self, index: usize, now: u64, tell: &mut impl FnMut(Ended)) {
        let Driver::Running(send, _) = &mut self.driver else { return };
        let Some(stream) = &mut self.streams[index] else { return };
        let mut context = Context::from_waker(&self.wakers[index]);
        let ended = match poll(stream, send, now, &mut context, tell) {
            Poll::Pending => return,
            Poll::Ready(Ok(status)) => Ended::Whole(stream.exchange.moments, status),
            Poll::Ready(Err(failure)) => Ended::Failed(failure),
        };
        self.streams[index] = None;
        self.free.push(index);
        tell(ended);
    }
}

/// A stream's walk: sent, its head come, its body come.
fn poll(
    stream: &mut Stream,
    send: &mut SendRequest<Bytes>,
    now: u64,
    context: &mut Context<'_>,
    tell: &mut impl FnMut(Ended),
) -> Poll<Result<u16, Failure>> {
    loop {
        match &mut stream.stage {
            Stage::Waiting(request) => {
                ready!(send.poll_ready(context)).map_err(|error| failure_of(&error))?;
                let (head, body) = request.as_ref().clone();
                let sent = send.send_request(head, body.is_empty());
                let (response, mut sending) = sent.map_err(|error| failure_of(&error))?;
                if !body.is_empty() {
                    sending.send_data(body, true).map_err(|error| failure_of(&error))?;
                }
                stream.stage = Stage::Sent(response);
            }
            Stage::Sent(response) => {
                let response = ready!(Pin::new(response).poll(context));
                let response = response.map_err(|error| failure_of(&error))?;
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
                Some(Err(error)) => return Poll::Ready(Err(failure_of(&error))),
            },
        }
    }
}

fn failure_of(error: &h2::Error) -> Failure {
    if error.is_io() {
        return error.get_io().map_or(Failure::Lost, Failure::of_io);
    }
    let refused = error.reason() == Some(h2::Reason::REFUSED_STREAM);
    match error {
        _ if error.is_remote() && (error.is_go_away() || refused) => Failure::StreamRefused,
        _ if error.is_remote() && error.is_reset() => Failure::Reset,
        _ if error.is_library() => Failure::Protocol,
        _ => Failure::Lost,
    }
}

/// Who wants to be polled.
#[derive(Debug, Default)]
struct Woken {
    driver: AtomicBool,
    streams: Mutex<Vec<usize>>,
}

impl Woken {
    fn push(&self, index: usize) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(index);
    }

    fn take(&self) -> Vec<usize> {
        std::mem::take(&mut self.streams.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct DriverWake(Arc<Woken>);

impl Wake for DriverWake {
    fn wake(self: Arc<Self>) {
        self.0.driver.store(true, Ordering::Relaxed);
    }
}

struct StreamWake {
    index: usize,
    woken: Arc<Woken>,
}

impl Wake for StreamWake {
    fn wake(self: Arc<Self>) {
        self.woken.push(self.index);
    }
}

/// The connection's bytes, which `h2` moves and the worker waits for.
struct Shared {
    link: RefCell<Link>,
    /// Whether a write found no room since the last look.
    blocked: Cell<bool>,
    bytes_in: Cell<usize>,
    bytes_out: Cell<usize>,
}

/// What `h2` reads and writes. Pending means: when the worker polls again.
struct Io(Rc<Shared>);

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.0.link.borrow_mut().read(buffer.initialize_unfilled())? {
            None => Poll::Pending,
            Some(count) => {
                buffer.advance(count);
                self.0.bytes_in.update(|bytes| bytes + count);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = self.0.link.borrow_mut().write(bytes)?;
        if count == 0 && !bytes.is_empty() {
            self.0.blocked.set(true);
            return Poll::Pending;
        }
        self.0.bytes_out.update(|bytes| bytes + count);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut link = self.0.link.borrow_mut();
        link.flush()?;
        if link.is_blocked() {
            self.0.blocked.set(true);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

impl fmt::Debug for Http2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2").field("under_way", &self.under_way()).finish_non_exhaustive()
    }
}
