//! HTTP/2 client role: a connection to a server, shared by many exchanges.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use http2::{Code, Config, Role};
use wire::http1::RequestBody;

use super::exchange::Exchange;
use super::link::Link;
use super::{StreamError, WEBSOCKET, WINDOW_MAX_BYTES};
use crate::Stream;

/// Receive window of all streams of a connection together.
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
/// Receive window of each stream at first.
const WINDOW_BYTES: u32 = 256 * 1024;
/// No more streams than can have their first windows unread: one more would block on the others'
/// readers.
const STREAMS_MAX: usize = (CONNECTION_WINDOW_BYTES / WINDOW_BYTES) as usize;

/// Reserved for a body of unknown length: these are mostly single gRPC messages.
const UNKNOWN_LENGTH_BYTES: i64 = 256;
/// Maximum reserved for one body: a longer one moves on as the peer reads. A quarter of the initial
/// window, since peers send updates only after half of the window.
const PROMISED_MAX_BYTES: i64 = 16 * 1024;

/// With more unsent bytes than this, further requests use another connection: their heads are not
/// subject to flow control.
const UNSENT_MAX_BYTES: usize = 256 * 1024;

/// Reads in a row before other tasks get their turn.
const READS_MAX: usize = 4;

/// An HTTP/2 connection to a server.
pub struct Http2Client {
    link: Rc<Link>,
}

/// Moves the bytes of all streams of one connection. Ends when the connection does, or when neither
/// its [`Http2Client`] nor any stream is left.
pub struct Http2Driver {
    link: Rc<Link>,
    /// Nothing is left that would use the connection.
    closing: bool,
}

impl Http2Client {
    /// Starts HTTP/2 on a new connection, and waits for the server's settings, with which it must
    /// start as well (RFC 9113 section 3.4), until these allow a request. Has no time limit of its
    /// own.
    ///
    /// # Errors
    /// The server closed before, or its bytes are not HTTP/2; see [`StreamError::of`].
    pub async fn start(
        stream: Stream,
        head_max_bytes: u32,
    ) -> io::Result<(Http2Client, Http2Driver)> {
        let role = Role::Client { is_https: stream.tls().is_some() };
        let config = Config {
            streams_max: 0,
            head_max_bytes,
            window_bytes: WINDOW_BYTES,
            window_max_bytes: WINDOW_MAX_BYTES,
            connection_window_bytes: CONNECTION_WINDOW_BYTES,
            websocket: WEBSOCKET,
        };
        let link = Rc::new(Link::new(stream, role, config));
        let mut driver = Http2Driver { link: Rc::clone(&link), closing: false };
        poll_fn(|cx| {
            let moved = driver.poll_move(cx);
            let engine = &driver.link.state().engine;
            match moved {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) => Poll::Ready(Err(ErrorKind::UnexpectedEof.into())),
                Poll::Pending if engine.is_established() && engine.streams_max() > 0 => {
                    Poll::Ready(Ok(()))
                }
                Poll::Pending => Poll::Pending,
            }
        })
        .await?;
        Ok((Http2Client { link }, driver))
    }

    /// Returns whether another exchange may start: the connection is alive, and the server has not
    /// sent GOAWAY.
    pub fn is_open(&self) -> bool {
        let state = self.link.state();
        state.ended.is_none() && state.engine.accepts_requests()
    }

    /// Returns whether the connection has ended; one that is only leaving still finishes exchanges.
    pub fn has_ended(&self) -> bool {
        self.link.state().ended.is_some()
    }

    /// Returns the exchanges in progress.
    pub fn streams(&self) -> usize {
        self.link.state().engine.streams()
    }

    /// Returns how many exchanges may be in progress at once: as many as the server accepts and the
    /// receive windows allow.
    pub fn streams_max(&self) -> usize {
        STREAMS_MAX.min(self.link.state().engine.streams_max() as usize)
    }

    /// Returns whether a request with such a body can be sent without waiting for the bodies of
    /// other exchanges: whether the connection's send window (RFC 9113 section 6.9) has room for
    /// it. Uploads that the server does not read use that window up. Also returns false while the
    /// server does not read the heads that were sent before.
    pub fn has_room_for(&self, body: RequestBody) -> bool {
        let state = self.link.state();
        if state.engine.unsent() > UNSENT_MAX_BYTES {
            return false;
        }
        needed(body).is_none_or(|bytes| bytes <= state.engine.send_window() - state.promised)
    }

    /// Opens a stream for one exchange whose request has such a body. The request is sent with the
    /// first bytes written.
    pub fn open(&self, body: RequestBody) -> Stream {
        let mut state = self.link.state();
        let key = state.engine.open();
        let promised = needed(body).unwrap_or(0);
        state.slot(key).promised = promised;
        state.promised += promised;
        if state.ended.is_some() {
            // It has ended since it was chosen; nothing will be sent.
            state.slot(key).fail(StreamError::Refused);
        }
        Stream::from_exchange(Exchange::new(Rc::clone(&self.link), key))
    }

    /// Frees memory that an idle connection does not need.
    pub fn shrink(&self) {
        self.link.state().shrink();
    }

    /// Returns the underlying connection.
    pub fn connection(&self) -> &Stream {
        &self.link.socket
    }
}

impl Drop for Http2Client {
    fn drop(&mut self) {
        self.link.state().wake();
    }
}

/// Returns how much of the send window a body needs; `None`: heads are not subject to flow control.
fn needed(body: RequestBody) -> Option<i64> {
    match body {
        RequestBody::None => None,
        RequestBody::Length(length) => {
            Some(i64::try_from(length).unwrap_or(i64::MAX).min(PROMISED_MAX_BYTES))
        }
        RequestBody::Chunked => Some(UNKNOWN_LENGTH_BYTES),
    }
}

impl Http2Driver {
    /// Receives and sends. Ready when the connection has ended.
    fn poll_move(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let link = &*self.link;
        link.state().begin_turn(os::clock::now());
        let mut reads = 0;
        while link.state().ended.is_none() && link.poll_receive(cx).is_ready() {
            reads += 1;
            if reads == READS_MAX {
                cx.waker().wake_by_ref();
                break;
            }
        }
        if link.poll_flush(cx).is_pending() {
            return Poll::Pending;
        }
        match link.state().ended {
            None => Poll::Pending,
            Some(StreamError::Connection(ErrorKind::UnexpectedEof)) => Poll::Ready(Ok(())),
            Some(why) => Poll::Ready(Err(why.into())),
        }
    }
}

impl Future for Http2Driver {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closing && Rc::strong_count(&self.link) == 1 {
            self.closing = true;
            self.link.state().engine.fail(Code::NO_ERROR);
        }
        let moved = self.poll_move(cx);
        if self.closing && !self.link.state().has_output() {
            return self.link.socket.poll_close_write(cx);
        }
        moved
    }
}
