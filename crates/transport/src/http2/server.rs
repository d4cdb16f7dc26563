//! HTTP/2 server role: requests arrive as streams.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::Reason;
use h2::server::{Builder, Connection};

use super::exchange::Exchange;
use super::failure::to_io;
use super::io::{Io, Onlooker};
use super::watch::{Refusal, Watch};
use super::{RESET_STREAMS_MAX, SMALL_FRAMES_BUDGET, STREAM_WINDOW_BYTES, UNSENT_MAX_BYTES};
use crate::Stream;

/// The settings announced to a client and enforced.
#[derive(Clone, Copy, Debug)]
pub struct ServerSettings {
    /// Maximum number of concurrent requests.
    pub streams_max: u32,
    /// The largest request head, in bytes as RFC 9113 section 6.5.2 counts them.
    pub head_max_bytes: u32,
}

/// A client's HTTP/2 connection.
pub struct Http2Server {
    connection: Connection<Io, Bytes>,
    stream: Rc<Stream>,
    watch: Rc<Watch>,
}

/// The fate of a request that a client has begun.
pub enum Incoming {
    /// It arrived, as a stream.
    Request(Stream),
    /// It was already refused.
    Refused(Refusal),
}

impl Http2Server {
    /// Accepts a client's connection, of which `before` has already been read. Returns when the
    /// client's preface has arrived.
    ///
    /// # Errors
    /// The connection failed, or the preface is not that of HTTP/2.
    pub async fn accept(
        stream: Rc<Stream>,
        before: &[u8],
        settings: ServerSettings,
    ) -> io::Result<Http2Server> {
        let watch = Rc::new(Watch::new());
        let io = Io {
            stream: Rc::clone(&stream),
            before: Bytes::copy_from_slice(before),
            onlooker: Some(Onlooker::Refusals(Rc::clone(&watch))),
        };
        let mut builder = Builder::new();
        builder
            .max_concurrent_streams(settings.streams_max)
            .max_header_list_size(settings.head_max_bytes)
            .initial_window_size(STREAM_WINDOW_BYTES)
            // Room for all streams: one whose body is not read must not block the others.
            .initial_connection_window_size(
                STREAM_WINDOW_BYTES.saturating_mul(settings.streams_max.max(1)).min(1 << 30),
            )
            .max_send_buffer_size(UNSENT_MAX_BYTES)
            .data_frame_budget(SMALL_FRAMES_BUDGET)
            .max_concurrent_reset_streams(RESET_STREAMS_MAX)
            .enable_connect_protocol();
        let connection = builder.handshake(io).await.map_err(to_io)?;
        Ok(Http2Server { connection, stream, watch })
    }

    /// Returns the next request, or the next refused one. Also moves the bytes of all streams: it
    /// must be polled while any of them exists, and after the end until it returns `None`.
    pub fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Incoming>>> {
        let next = self.connection.poll_accept(cx);
        if next.is_pending()
            && let Some(refusal) = self.take_refusal()
        {
            return Poll::Ready(Some(Ok(Incoming::Refused(refusal))));
        }
        next.map(|next| {
            next.map(|accepted| {
                let (request, respond) = accepted.map_err(to_io)?;
                self.watch.accepted(respond.stream_id().as_u32());
                let exchange = Exchange::of_client(Rc::clone(&self.stream), request, respond);
                Ok(Incoming::Request(Stream::from_exchange(exchange)))
            })
        })
    }

    /// Returns the next refusal that [`Http2Server::poll_request`] has not reported, because the
    /// connection ended with it.
    pub fn take_refusal(&mut self) -> Option<Refusal> {
        self.watch.take_refusal()
    }

    /// Returns the underlying connection.
    pub fn connection(&self) -> &Rc<Stream> {
        &self.stream
    }

    /// Returns whether any request or response is still in progress.
    pub fn has_streams(&self) -> bool {
        self.connection.has_streams()
    }

    /// Sends GOAWAY: no further requests are accepted; those in progress finish (RFC 9113 section
    /// 6.8).
    pub fn go_away(&mut self) {
        self.connection.graceful_shutdown();
    }

    /// Ends every stream: the client causes excessive load (RFC 9113 section 10.5).
    pub fn refuse(&mut self) {
        self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
    }
}
