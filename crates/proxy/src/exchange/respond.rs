//! Forwards the response to the client, along with the rest of the request.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use decide::Slot;
use decide::retry::leaves_work;
use decide::reuse::Promise;
use model::{Cause, Moment};
use wire::grpc;
use wire::http1::{Known, ResponseBody, ResponseHead, trailer};

use super::forward::Forwarding;
use super::{Exchange, local};
use crate::balance;
use crate::budget::Charge;
use crate::client::{After, Client, client_gone};
use crate::failure;
use crate::filter;
use crate::head::{self, Additions, ResponseForm};
use crate::pump::{Framing, Patience, Pump, PumpError, Source};
use crate::server_connection::ServerConnection;
use crate::watchdog::{Direction, Limits};

/// How much of a response that the client does not get is read so that its connection can be kept…
const DROPPED_BYTES_MAX: usize = 16 * 1024;
/// …and for how long: the next attempt waits for it.
const DROPPED_MAX: Duration = Duration::from_millis(100);

/// A response being forwarded to the client.
struct Response {
    slot: Slot,
    server: Box<ServerConnection>,
    download: Pump,
    body: ResponseBody,
    form: ResponseForm,
}

impl Forwarding<'_, '_> {
    /// Forwards the response whose head is in `scratch.response`, and the rest of the request if
    /// there is any.
    pub(super) async fn respond(&mut self, slot: Slot, server: Box<ServerConnection>) -> After {
        if self.exchange.scratch.response.status() == 101 {
            return Box::pin(self.upgrade(slot, server)).await;
        }
        if self.is_mistakable_success() {
            let detail = "the server answered without an upgrade";
            return Box::pin(self.refuse_upgrade(slot, server, detail)).await;
        }
        let mut response = self.begin_response(slot, server);
        let moved = self.move_bodies(&mut response).await;
        let moved = moved.map_err(|cause| self.exchange.record.unless_late(cause));
        self.settle(response, moved)
    }

    /// Writes the head that the client receives, and sets up the body's download.
    fn begin_response(&mut self, slot: Slot, server: Box<ServerConnection>) -> Response {
        let Exchange { worker, plane, client, identity, rates, scratch, record, .. } =
            &mut *self.exchange;
        let body = scratch.response.body(scratch.request.is_head());
        let nothing_follows = server.buffer.is_empty() && server.stream.is_ended();
        let filtered = filter::response(self.filters, scratch, nothing_follows, || {
            let max = plane.published.snapshot.compression_memory_max_bytes;
            Charge::new(&worker.shared.compression, max)
        });
        // The rest of a request may never arrive once it has been answered.
        let is_whole = self.upload.pump.is_done();
        let keep = scratch.request.keep_alive() && !client.is_last(worker) && is_whole;
        let length = if filtered.body.is_some() { ResponseBody::UntilClose } else { body };
        let form = ResponseForm::new(length, scratch.request.version(), keep);
        let https = client.uses_https();
        let of = (self.route, self.forward, self.service);
        // It was only full, and so was its queue: the session stays there.
        let is_ready = self.bound.session.is_some_and(|session| {
            plane.published.service(self.id).endpoints().by_token(session.server).is_some()
        });
        let bound = (self.bound, is_ready && record.attempts() <= 1);
        let told = balance::affinity_field(of, bound, &slot, &plane.published, https);
        // A stream that ends with its head is forwarded as one: for gRPC this differs from a stream
        // that ends with an empty data frame.
        let source = match body {
            _ if nothing_follows => Source::Length(0),
            body => Source::of(body, &server.stream),
        };
        let framing = match form.chunked {
            _ if client.stream.is_exchange() => Framing::Stream,
            true => Framing::Chunked,
            false => Framing::Raw,
        };
        let patience = Patience {
            direction: Direction::Down,
            read: (self.service.timeouts.idle, Cause::ConnectionReadTimeout),
            write: (client.settings().timeouts.body, Cause::ClientWriteTimeout),
        };
        let storage = std::mem::take(&mut scratch.down);
        let mut download = Pump::new(source, framing, patience, storage);
        download.filter(filtered.body);
        download.limit_bytes(self.response_max_bytes);
        let changes = &self.fields.response;
        let additions = Additions {
            affinity: told.as_ref().map(|(name, value)| (*name, value.as_str())),
            session: balance::session_carrier(self.forward),
            compression: filtered.compression,
            own: local::own_fields(
                client,
                Some(self.route),
                &scratch.request,
                (rates, identity.as_deref()),
            ),
        };
        head::write_response(&scratch.response, form, changes, additions, download.pending());
        Response { slot, server, download, body, form }
    }

    /// Sends the response to the client, and the rest of the request to the server.
    async fn move_bodies(&mut self, response: &mut Response) -> Result<(), Cause> {
        let Forwarding { exchange, upload, limits, service, .. } = self;
        let Exchange { client, record, .. } = &mut **exchange;
        // From here on the two sides converse, and a server may be silent for as long as the idle
        // timeout allows.
        upload.pump.wait_for_sender(service.timeouts.idle.max(client.settings().timeouts.body));
        let Client { stream, buffer, watchdog, .. } = &mut **client;
        let Response { server, download, .. } = response;
        let moving = poll_fn(|cx| {
            let (before, bytes_down) = (upload.pump.bytes(), download.bytes());
            if upload.is_sending() {
                let sent = upload.poll(cx, (stream, buffer), &server.stream, limits);
                record.body_in = upload.pump.bytes();
                if let Poll::Ready(Err(reason)) = sent {
                    return Poll::Ready(Err(reason.cause));
                }
            }
            let moved = download.poll(cx, &server.stream, &mut server.buffer, stream, limits);
            record.body_out = download.bytes_out();
            if let Poll::Ready(moved) = moved {
                if let Err(PumpError::TooLarge) = moved {
                    return Poll::Ready(Ok(()));
                }
                let sender = upload.answered_by(Cause::HttpResponseIncomplete);
                return Poll::Ready(moved.map_err(|e| failure::reason(&e, sender).cause));
            }
            if !upload.is_sending() {
                return client_gone(stream, buffer, false, cx).map(Err);
            }
            if upload.pump.bytes() > before {
                // The server may be waiting for exactly this data.
                download.restart_wait(limits);
            }
            if download.bytes() > bytes_down {
                // A conversation continues as long as either side sends.
                upload.pump.restart_wait(limits);
            }
            Poll::Pending
        });
        // A response that arrived at the last moment is still forwarded.
        watchdog.guard_rest(limits, moving).await
    }

    /// Completes the record, and decides what happens to both connections.
    fn settle(&mut self, response: Response, moved: Result<(), Cause>) -> After {
        let Response { slot, mut server, mut download, body, form } = response;
        let Exchange { scratch, record, .. } = &mut *self.exchange;
        record.ask_tcp(&mut server, slot.endpoint());
        record.grpc_status = grpc_status(&scratch.response, download.trailers());
        server.brought_bulk = download.has_spliced();
        let (uploaded, is_whole) = (self.upload.pump.is_done(), download.is_done());
        scratch.up = self.upload.pump.take_pending();
        scratch.down = download.take_pending();
        record.end(moved.err().unwrap_or(Cause::Completed));
        if let Err(cause) = moved {
            if leaves_work(cause) {
                self.abandon(slot, server);
            }
            // A body delimited by the close would look complete if the connection were closed.
            let unframed = matches!(body, ResponseBody::Chunked | ResponseBody::UntilClose);
            let seems_whole = unframed && !form.chunked;
            let is_stream = self.exchange.client.stream.is_exchange();
            return if is_stream || seems_whole { After::Reset } else { After::Close };
        }
        if !is_whole {
            self.abandon(slot, server);
            return After::Close;
        }
        if uploaded && scratch.response.keep_alive() && body != ResponseBody::UntilClose {
            self.keep_connection(&slot, server, self.exchange.record.ended);
        }
        match (form.close, uploaded) {
            (false, true) => After::Keep,
            (true, true) => self.exchange.client.after_last(self.exchange.worker),
            (_, false) => After::Linger,
        }
    }

    /// Drops the response whose head is in `scratch.response`. The connection is kept if the body, usually
    /// that of an error, is short and here soon.
    pub(super) async fn drop_response(&mut self, slot: Slot, mut server: Box<ServerConnection>) {
        if self.upload.pump.is_done()
            && self.exchange.scratch.response.keep_alive()
            && self.read_rest(&mut server).await
        {
            self.keep_connection(&slot, server, os::clock::now());
        } else {
            self.abandon(slot, server);
        }
    }

    /// Reads a body that the client does not get. Returns whether that was all of it, and another response
    /// may follow.
    async fn read_rest(&mut self, server: &mut ServerConnection) -> bool {
        let Exchange { client, scratch, .. } = &mut *self.exchange;
        let body = scratch.response.body(scratch.request.is_head());
        let is_short = match body {
            ResponseBody::Length(length) => length <= DROPPED_BYTES_MAX as u64,
            ResponseBody::UntilClose => server.stream.is_exchange(),
            ResponseBody::None | ResponseBody::Chunked => true,
        };
        if !is_short {
            return false;
        }
        let until = os::clock::now() + DROPPED_MAX;
        let patience = Patience {
            direction: Direction::Down,
            read: (DROPPED_MAX, Cause::ConnectionReadTimeout),
            write: (DROPPED_MAX, Cause::ConnectionWriteTimeout),
        };
        let source = Source::of(body, &server.stream);
        let mut download = Pump::new(source, Framing::Raw, patience, Vec::new());
        download.limit_bytes(DROPPED_BYTES_MAX as u64);
        // A budget of its own: it is small and short-lived.
        let mut charge = Charge::new(&Arc::default(), DROPPED_BYTES_MAX as u64);
        let limits = Limits::default();
        let Client { stream, buffer, watchdog, .. } = &mut **client;
        let reading = poll_fn(|cx| {
            let from = (&server.stream, &mut server.buffer);
            let read = download.poll_read_ahead(cx, from, &limits, DROPPED_BYTES_MAX, &mut charge);
            match read {
                Poll::Ready(read) => Poll::Ready(read.is_ok()),
                Poll::Pending => client_gone(stream, buffer, false, cx).map(|_| false),
            }
        });
        watchdog.until(until, reading).await == Some(true) && download.has_read_all()
    }

    /// Returns the server's connection to the pool.
    fn keep_connection(&self, slot: &Slot, server: Box<ServerConnection>, now: Moment) {
        let Exchange { worker, scratch, .. } = &*self.exchange;
        let promise = scratch.response.known(Known::KeepAlive);
        let promise = promise.map_or(Promise::NONE, Promise::parse);
        let idle_max = worker.idle_server_connections_max();
        worker.pool.give(&self.reach(), slot.endpoint(), server, promise, idle_max, now);
    }
}

/// Returns the `grpc-status` of a response: from the trailers, or from the head of a trailers-only
/// response.
fn grpc_status(head: &ResponseHead, trailers: &[u8]) -> Option<u8> {
    let of_grpc = head.known(Known::ContentType).is_some_and(grpc::is_content_type);
    let digits = head.known(Known::GrpcStatus).or_else(|| trailer(trailers, b"grpc-status"))?;
    of_grpc.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
}
