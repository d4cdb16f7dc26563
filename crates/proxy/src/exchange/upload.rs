//! Sends the request to the server while the exchange waits for other events.

use std::task::{Context, Poll, ready};

use health::blame::{Sent, WaitingFor};
use model::{Cause, HttpVersion, Service};
use transport::Stream;
use transport::http2::StreamError;
use wire::http1::{ChunkLimits, ChunkedDecoder, RequestBody, RequestHead};

use crate::buffer::Buffer;
use crate::client::Client;
use crate::failure::{self, Reason, Sender, client_failed};
use crate::head::upgrade_towards;
use crate::plane::Plane;
use crate::pump::{Framing, Patience, Pump, PumpError, Source};
use crate::scratch::Scratch;
use crate::watchdog::{Direction, Limits};

/// A request's upload, over all its attempts.
pub(super) struct Upload {
    pub(super) pump: Pump,
    /// There is more to send, and the server has not stopped reading.
    is_sending: bool,
    /// Set once the server has stopped reading, with the write error.
    write_failed: Option<StreamError>,
}

impl Upload {
    /// Returns the upload of the request in `scratch`, keeping what another attempt would need.
    pub(super) fn new(
        client: &Client,
        plane: &Plane,
        scratch: &mut Scratch,
        service: &Service,
    ) -> Upload {
        let listener = client.settings();
        let body = scratch.request.body();
        let source = match body {
            RequestBody::None => Source::Length(0),
            _ if client.stream.is_exchange() => Source::UntilClose,
            RequestBody::Length(length) => Source::Length(length),
            RequestBody::Chunked => {
                Source::Chunked(Box::new(ChunkedDecoder::new(ChunkLimits::default())))
            }
        };
        let framing = match (service.http, body) {
            // What follows an upgrade is not a body, and the stream continues.
            (http @ HttpVersion::Http2, _) if upgrade_towards(&scratch.request, http).is_none() => {
                Framing::Stream
            }
            (HttpVersion::Http11, RequestBody::Chunked) => Framing::Chunked,
            _ => Framing::Raw,
        };
        let patience = Patience {
            direction: Direction::Up,
            read: (listener.timeouts.body, Cause::HttpRequestBodyTimeout),
            write: (service.timeouts.idle, Cause::ConnectionWriteTimeout),
        };
        let mut pump = Pump::new(source, framing, patience, std::mem::take(&mut scratch.up));
        pump.withhold_trailers(plane.identity_names.clone());
        if let RequestBody::Length(length) = body {
            pump.expect_bytes(length);
        }
        if let Some(max) = listener.body_max_bytes {
            pump.limit_bytes(max);
        }
        // HTTP/2 servers may refuse a stream of any method, and the request may then be sent again.
        if scratch.request.is_idempotent() || service.http == HttpVersion::Http2 {
            pump.keep(service.retries.body_kept_max_bytes as usize);
        }
        Upload { pump, is_sending: true, write_failed: None }
    }

    /// Rewinds to the start of the request, to send it on another connection.
    pub(super) fn rewind(&mut self, buffer: &mut Buffer, write_head: impl FnOnce(&mut Vec<u8>)) {
        self.pump.rewind(buffer, write_head);
        self.is_sending = true;
        self.write_failed = None;
    }

    /// Returns whether there is more to send and the server still reads.
    pub(super) fn is_sending(&self) -> bool {
        self.is_sending
    }

    /// Sends as much as possible. Ready when there is no more to send, or when the server stopped
    /// reading: it may have answered before, and then its response counts. Fails when the client has
    /// cancelled the request, even if nothing is being read from it.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        (from, buffer): (&Stream, &mut Buffer),
        to: &Stream,
        limits: &Limits,
    ) -> Poll<Result<(), Reason>> {
        let polled = self.pump.poll(cx, from, buffer, to, limits);
        if polled.is_pending()
            && let Poll::Ready(why) = from.poll_abandoned(cx)
        {
            return Poll::Ready(Err(client_failed(why).into()));
        }
        match ready!(polled) {
            Ok(()) => {}
            Err(PumpError::Write(error)) => self.write_failed = Some(error),
            Err(error) => return Poll::Ready(Err(failure::reason(&error, Sender::Client))),
        }
        self.is_sending = false;
        limits.clear(Direction::Up);
        Poll::Ready(Ok(()))
    }

    /// Returns the server as the sender of a response to this request. `early_end` is the cause
    /// reported if its connection ends too early.
    pub(super) fn answered_by(&self, early_end: Cause) -> Sender {
        Sender::Server { early_end, write_failed: self.write_failed }
    }

    /// Returns which side must act next to make progress with the request.
    pub(super) fn waiting_for(&self) -> WaitingFor {
        if self.pump.is_starved() { WaitingFor::Client } else { WaitingFor::Server }
    }

    /// Returns how much of the request the server may have seen.
    pub(super) fn sent(&self) -> Sent {
        if !self.pump.has_sent() {
            Sent::Nothing
        } else if self.pump.is_done() {
            Sent::Whole
        } else {
            Sent::Part
        }
    }
}

/// Returns whether this is a gRPC call over HTTP/2 on both sides. It may stream in both directions,
/// so a pause of the client does not mean that it is slow. The media type alone proves nothing: any
/// client can send it.
pub(super) fn is_conversation(head: &RequestHead, service: &Service, client: &Client) -> bool {
    client.stream.is_exchange() && service.http == HttpVersion::Http2 && head.is_grpc()
}
