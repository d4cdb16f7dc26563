//! HTTP/2 client role: a connection to a server, shared by many exchanges.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{Builder, Connection};

use super::exchange::{Exchange, Requests};
use super::failure::to_io;
use super::io::{Io, Onlooker};
use super::window::{Promise, SendWindow};
use super::{RESET_STREAMS_MAX, SMALL_FRAMES_BUDGET, STREAM_WINDOW_BYTES, UNSENT_MAX_BYTES};
use crate::Stream;
use wire::http1::RequestBody;

/// Receive window of all streams of a connection together.
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
/// Receive window of each stream.
const WINDOW_BYTES: u32 = STREAM_WINDOW_BYTES * 4;
const STREAMS_MAX: usize = (CONNECTION_WINDOW_BYTES / WINDOW_BYTES) as usize;
/// Number of streams before the server has announced its limit: it refuses excess streams.
const STREAMS_AT_FIRST: usize = 0;

/// An HTTP/2 connection to a server.
pub struct Http2Client {
    requests: Requests,
    stream: Rc<Stream>,
    is_open: Rc<Cell<bool>>,
    window: Rc<SendWindow>,
}

/// Moves the bytes of all streams of one connection. Ends when the connection does.
pub struct Http2Driver {
    connection: Connection<Io, Bytes>,
    is_open: Rc<Cell<bool>>,
}

impl Http2Client {
    /// Starts HTTP/2 on a new connection, and waits for the server's settings, with which it must
    /// start as well (RFC 9113 section 3.4). Has no time limit of its own.
    ///
    /// # Errors
    /// `UnexpectedEof` when the server closed before; [`super::PROTOCOL_VIOLATED`] when its bytes
    /// are not HTTP/2.
    pub async fn start(
        stream: Stream,
        head_max_bytes: u32,
    ) -> io::Result<(Http2Client, Http2Driver)> {
        let scheme = if stream.tls().is_some() { "https" } else { "http" };
        let stream = Rc::new(stream);
        let window = Rc::new(SendWindow::default());
        let onlooker = Some(Onlooker::Window(Rc::clone(&window)));
        let io = Io { stream: Rc::clone(&stream), before: Bytes::new(), onlooker };
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .max_header_list_size(head_max_bytes)
            .initial_window_size(WINDOW_BYTES)
            .data_frame_budget(SMALL_FRAMES_BUDGET)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .max_send_buffer_size(UNSENT_MAX_BYTES)
            .max_concurrent_reset_streams(RESET_STREAMS_MAX);
        let (send, mut connection) = builder.handshake(io).await.map_err(to_io)?;
        poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(to_io(error))),
            Poll::Ready(Ok(())) => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            Poll::Pending if send.current_max_send_streams() == STREAMS_AT_FIRST => Poll::Pending,
            Poll::Pending => Poll::Ready(Ok(())),
        })
        .await?;
        let is_open = Rc::new(Cell::new(true));
        let driver = Http2Driver { connection, is_open: Rc::clone(&is_open) };
        let requests = Requests { send, scheme, exchanges: Rc::new(()) };
        Ok((Http2Client { requests, stream, is_open, window }, driver))
    }

    /// Returns whether another exchange may start: the connection is alive, and the server has not
    /// sent GOAWAY.
    pub fn is_open(&self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.is_open.get()
            && !matches!(self.requests.send.clone().poll_ready(&mut context), Poll::Ready(Err(_)))
    }

    /// Returns the exchanges in progress.
    pub fn streams(&self) -> usize {
        Rc::strong_count(&self.requests.exchanges) - 1
    }

    /// Returns how many exchanges may be in progress at once: as many as the server accepts and the
    /// receive windows allow.
    pub fn streams_max(&self) -> usize {
        // No more than can have their whole windows unread: one more would block on the others'
        // readers.
        self.requests.send.current_max_send_streams().min(STREAMS_MAX)
    }

    /// Returns whether a request with such a body can be sent without waiting for the bodies of
    /// other exchanges: whether the connection's send window (RFC 9113 section 6.9) has room for
    /// it.
    pub fn has_room_for(&self, body: RequestBody) -> bool {
        self.window.has_room_for(body, self.streams() == 0)
    }

    /// Opens a stream for one exchange whose request has such a body. The request is sent with the
    /// first bytes written.
    pub fn open(&self, body: RequestBody) -> Stream {
        let connection = Rc::clone(&self.stream);
        let promise = Promise::new(&self.window, body);
        Stream::from_exchange(Exchange::to_server(connection, self.requests.clone(), promise))
    }

    /// Returns the underlying connection.
    pub fn connection(&self) -> &Rc<Stream> {
        &self.stream
    }
}

impl Future for Http2Driver {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.connection).poll(cx);
        if ended.is_ready() {
            self.is_open.set(false);
        }
        ended.map_err(to_io)
    }
}
