//! The server's role: requests come in as streams.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::Reason;
use h2::server::{Builder, Connection};

use super::exchange::Exchange;
use super::failure::to_io;
use super::io::Io;
use super::{RESET_STREAMS_MAX, SMALL_FRAMES_BUDGET, STREAM_WINDOW_BYTES, UNSENT_MAX_BYTES};
use crate::Stream;

/// What a client is told and held to.
#[derive(Clone, Copy, Debug)]
pub struct ServerSettings {
    /// Requests at once.
    pub streams_max: u32,
    /// The largest request head, in bytes as RFC 9113 section 6.5.2 counts them.
    pub head_max_bytes: u32,
}

/// A client's connection.
pub struct Http2Server {
    connection: Connection<Io, Bytes>,
    stream: Rc<Stream>,
}

impl Http2Server {
    /// Takes a client's connection, of which `before` has been read already. Yields when the
    /// client's preface has come.
    pub async fn accept(
        stream: Rc<Stream>,
        before: &[u8],
        settings: ServerSettings,
    ) -> io::Result<Http2Server> {
        let io =
            Io { stream: Rc::clone(&stream), before: Bytes::copy_from_slice(before), window: None };
        let mut builder = Builder::new();
        builder
            .max_concurrent_streams(settings.streams_max)
            .max_header_list_size(settings.head_max_bytes)
            .initial_window_size(STREAM_WINDOW_BYTES)
            // Room for all streams: one whose body nobody reads must not hold up the others.
            .initial_connection_window_size(
                STREAM_WINDOW_BYTES.saturating_mul(settings.streams_max.max(1)).min(1 << 30),
            )
            .max_send_buffer_size(UNSENT_MAX_BYTES)
            .data_frame_budget(SMALL_FRAMES_BUDGET)
            .max_concurrent_reset_streams(RESET_STREAMS_MAX)
            .enable_connect_protocol();
        let connection = builder.handshake(io).await.map_err(to_io)?;
        Ok(Http2Server { connection, stream })
    }

    /// The next request, as a stream of its own. Also moves the bytes of all streams: it must be
    /// polled as long as any of them lives, and after the end until it yields `None`.
    pub fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Stream>>> {
        self.connection.poll_accept(cx).map(|next| {
            next.map(|accepted| {
                let (request, respond) = accepted.map_err(to_io)?;
                let exchange = Exchange::of_client(Rc::clone(&self.stream), request, respond);
                Ok(Stream::from_exchange(exchange))
            })
        })
    }

    /// The connection underneath.
    pub fn connection(&self) -> &Rc<Stream> {
        &self.stream
    }

    /// Whether anything of a request or a response is still to be moved.
    pub fn has_streams(&self) -> bool {
        self.connection.has_streams()
    }

    /// Says that no further request is taken; those that are under way end (RFC 9113 section 6.8).
    pub fn go_away(&mut self) {
        self.connection.graceful_shutdown();
    }

    /// Ends every stream: the client asks for more than is good (RFC 9113 section 10.5).
    pub fn refuse(&mut self) {
        self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
    }
}
