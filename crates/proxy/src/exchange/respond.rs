//! The response on its way to the client, beside what is left of the request.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use decide::Slot;
use decide::retry::leaves_work;
use decide::reuse::Promise;
use health::blame::{Ended, Outcome, Sent};
use model::{Balance, Cause, Service};
use wire::grpc;
use wire::http1::{ChunkError, ChunkLimits, ChunkedDecoder, Known, ResponseBody, ResponseHead};
use wire::http2::trailer;

use super::attempt::{request_failure, waiting_for};
use super::forward::Request;
use super::local::respond_self;
use crate::abandon::abandon;
use crate::account::Record;
use crate::admission::client_gone;
use crate::answer::Answer;
use crate::balance;
use crate::blame::{client_failed, server_ended, server_failed};
use crate::client::{After, Client};
use crate::head::{self, Additions, ResponseForm};
use crate::judgement::Judgement;
use crate::pump::{Framing, Patience, Pump, PumpError, Source};
use crate::scratch::Scratch;
use crate::tunnel;
use crate::upstream::ServerConnection;
use crate::watchdog::Direction;
use crate::worker::Worker;

/// An exchange whose response head has come.
pub(super) struct Answered<'a> {
    pub(super) slot: Slot,
    pub(super) server: ServerConnection,
    pub(super) upload: Pump,
    pub(super) affinity: Option<u64>,
    pub(super) judgement: Judgement<'a>,
}

/// Passes the response on, and the rest of the request if there is any.
pub(super) async fn respond(
    worker: &Rc<Worker>,
    request: Request<'_>,
    client: &mut Client,
    scratch: &mut Scratch,
    record: &mut Record,
    exchange: Answered<'_>,
) -> After {
    let Answered { slot, mut server, mut upload, affinity, mut judgement } = exchange;
    let Request { forward, service, ref limits, .. } = request;
    let status = scratch.response.status();
    record.head_arrived(status);
    let state = &slot.endpoint().state;
    state.note_response(record.head_at());
    if status >= 500 {
        state.answered_5xx.fetch_add(1, Relaxed);
    }
    slot.endpoint().slots.learner.answered(&server.busy, record.head_at());
    if service.balance == Balance::PeakEwma {
        decide::observe_latency(state, record.server_time(), record.head_at());
    }
    // The two sides must agree on where the request ends and the new protocol begins.
    let is_unasked =
        status == 101 && (!head::agrees(&scratch.request, &scratch.response) || !upload.is_done());
    let outcome = if is_unasked {
        Outcome::Failed(Cause::HttpUpgradeFailed)
    } else {
        Outcome::Answered(status)
    };
    let sent = if upload.is_done() { Sent::Whole } else { Sent::Part };
    let ended = Ended::alone(outcome, waiting_for(&upload), sent);
    let bound = slot.endpoint().is_named_by(affinity);
    judgement.ended(&slot, ended, bound, (record.begun_at(), record.head_at()));
    drop(judgement);

    if status == 101 {
        record.body_in = upload.bytes();
        scratch.up = upload.into_pending();
        if is_unasked {
            let detail =
                "101 without the Upgrade that was asked for, or before the end of the request";
            let received_status = Some(status);
            let cause = Cause::HttpUpgradeFailed;
            let answer = Answer { detail, received_status, ..Answer::of(cause) };
            return respond_self(worker, client, scratch, record, answer).await;
        }
        return tunnel::upgraded(service, client, scratch, record, (slot, server)).await;
    }
    // To a client of HTTP/2 a success would be consent (RFC 8441 section 4).
    let is_consent = client.stream.is_exchange() && scratch.request.upgrade().is_some();
    if is_consent && (200..300).contains(&status) {
        scratch.up = upload.into_pending();
        let detail = "the server answered without an upgrade";
        let answer = Answer {
            detail,
            received_status: Some(status),
            ..Answer::of(Cause::HttpUpgradeFailed)
        };
        return respond_self(worker, client, scratch, record, answer).await;
    }
    let body = scratch.response.body(scratch.request.is_head());
    // What is left of a request after its answer nobody may come to read.
    let keep = scratch.request.keep_alive() && !client.is_last(worker) && upload.is_done();
    let form = ResponseForm::new(body, scratch.request.version(), keep);
    let cookie = balance::set_affinity(service, affinity, &slot, client.uses_https());
    // A stream that ends with its head is passed on as one: to gRPC it is not the same as one that
    // ends with data, even if there is none.
    let nothing_follows = server.buffer.is_empty() && server.stream.is_ended();
    let body_or_none = if nothing_follows { ResponseBody::None } else { body };
    let from_stream = server.stream.is_exchange();
    let mut download = download(client, scratch, service, body_or_none, form, from_stream);
    let changes = &forward.response_fields;
    let additions = Additions { set_cookie: cookie.as_deref(), hsts: client.hsts() };
    head::write_response(&scratch.response, form, changes, additions, download.pending());

    // From here on it is a conversation, in which a server may be silent for as long.
    upload.wait_for_sender(service.timeouts.idle.max(client.settings().timeouts.body));

    let Client { stream, buffer, watchdog, .. } = client;
    let mut sending = !upload.is_done();
    let mut write_failed = None;
    let moving = poll_fn(|cx| {
        let (before, bytes_down) = (upload.bytes(), download.bytes());
        if sending
            && let Poll::Ready(sent) = upload.poll(cx, stream, buffer, &server.stream, limits)
        {
            match sent {
                Ok(()) => sending = false,
                // It answered without wanting the rest; what it answers is what counts.
                Err(PumpError::Write(kind)) => {
                    write_failed = Some(kind);
                    sending = false;
                }
                Err(error) => return Poll::Ready(Err(request_failure(&error).0)),
            }
            limits.clear(Direction::Up);
        }
        let moved = download.poll(cx, &server.stream, &mut server.buffer, stream, limits);
        if moved.is_pending() {
            if sending && upload.bytes() > before {
                // The server may be waiting for just that.
                download.wait_anew(limits);
            }
            if sending && download.bytes() > bytes_down {
                // A conversation goes on as long as either side speaks.
                upload.wait_anew(limits);
            }
            return if sending {
                Poll::Pending
            } else {
                client_gone(stream, buffer, false, cx).map(Err)
            };
        }
        moved.map_err(|error| match error {
            PumpError::Write(kind) => client_failed(kind),
            // TLS without its last word, or a stream that was given up, is no whole body either.
            PumpError::Incomplete | PumpError::Read(ErrorKind::UnexpectedEof) => {
                server_ended(write_failed, Cause::HttpResponseIncomplete)
            }
            PumpError::Read(kind) => server_failed(kind),
            PumpError::Malformed(ChunkError::TrailersTooLarge) => {
                Cause::HttpResponseTrailerTooLarge
            }
            PumpError::Malformed(_) | PumpError::TooLarge => Cause::HttpResponseTransferCoding,
        })
    });
    let result = watchdog.guard(limits, moving).await;

    record.ask_tcp(&mut server, slot.endpoint());
    record.body_in = upload.bytes();
    record.body_out = download.bytes();
    server.brought_bulk = download.has_spliced();
    record.grpc_status = grpc_status(&scratch.response, download.trailers());
    let uploaded = upload.is_done();
    scratch.up = upload.into_pending();
    scratch.down = download.into_pending();
    if let Err(cause) = result {
        record.end(cause);
        if leaves_work(cause) {
            abandon(service, slot, server);
        }
        if client.stream.is_exchange() {
            return After::Reset;
        }
        // A body that a close would end looks whole if it ends with one.
        let unframed = matches!(body, ResponseBody::Chunked | ResponseBody::UntilClose);
        return if unframed && !form.chunked { After::Reset } else { After::Close };
    }
    record.end(Cause::Completed);
    if uploaded && scratch.response.keep_alive() && body != ResponseBody::UntilClose {
        let promise =
            scratch.response.known(Known::KeepAlive).map_or(Promise::NONE, Promise::parse);
        let reach = request.reach(client.origin.peer, &client.stream);
        let idle_max = worker.idle_server_connections_max();
        worker.pool.give(&reach, slot.endpoint(), server, promise, idle_max, record.ended);
    }
    match (form.close, uploaded) {
        (false, true) => After::Keep,
        (true, true) => client.after_last(worker),
        (_, false) => After::Linger,
    }
}

/// The status that a gRPC response ends with: in the trailers, or in the head if that is all there
/// is.
fn grpc_status(head: &ResponseHead, trailers: &[u8]) -> Option<u8> {
    let of_grpc = head.known(Known::ContentType).is_some_and(grpc::is_content_type);
    let digits = head.known(Known::GrpcStatus).or_else(|| trailer(trailers, b"grpc-status"))?;
    of_grpc.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

/// The response on its way down.
fn download(
    client: &Client,
    scratch: &mut Scratch,
    service: &Service,
    body: ResponseBody,
    form: ResponseForm,
    from_stream: bool,
) -> Pump {
    let source = match body {
        ResponseBody::None => Source::Length(0),
        _ if from_stream => Source::UntilClose,
        ResponseBody::Length(length) => Source::Length(length),
        ResponseBody::Chunked => {
            Source::Chunked(Box::new(ChunkedDecoder::new(ChunkLimits::default())))
        }
        ResponseBody::UntilClose => Source::UntilClose,
    };
    let patience = Patience {
        direction: Direction::Down,
        read: (service.timeouts.idle, Cause::ConnectionReadTimeout),
        write: (client.settings().timeouts.body, Cause::ClientWriteTimeout),
    };
    let framing = match form.chunked {
        _ if client.stream.is_exchange() => Framing::Stream,
        true => Framing::Chunked,
        false => Framing::Raw,
    };
    Pump::new(source, framing, patience, std::mem::take(&mut scratch.down))
}
