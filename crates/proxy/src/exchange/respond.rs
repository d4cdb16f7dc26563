//! The response on its way to the client, beside what is left of the request.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use decide::Slot;
use model::{Balance, Cause, Service};
use wire::http1::{ChunkLimits, ChunkedDecoder, ResponseBody};

use super::attempt::request_failure;
use super::forward::{Request, note_outcome};
use super::local::respond_self;
use crate::abandon::abandon;
use crate::account::Record;
use crate::answer::Answer;
use crate::balance;
use crate::connection::{After, Client, settings};
use crate::head::{self, ResponseForm};
use crate::pump::{Framing, Patience, Pump, PumpError, Source};
use crate::scratch::Scratch;
use crate::tunnel;
use crate::upstream::ServerConnection;
use crate::watchdog::Direction;
use crate::worker::{Plane, Worker};

/// An exchange whose response head has come.
pub(super) struct Answered {
    pub(super) slot: Slot,
    pub(super) server: ServerConnection,
    pub(super) upload: Pump,
    pub(super) affinity: Option<u64>,
}

/// Passes the response on, and the rest of the request if there is any.
pub(super) async fn respond(
    worker: &Rc<Worker>,
    request: Request<'_>,
    client: &mut Client,
    scratch: &mut Scratch,
    record: &mut Record,
    exchange: Answered,
) -> After {
    let Answered { slot, mut server, mut upload, affinity } = exchange;
    let Request { plane, forward, live, service, limits, .. } = request;
    let status = scratch.response.status();
    record.head_arrived(status);
    let state = &slot.endpoint().state;
    state.note_response(record.head_at());
    if service.balance == Balance::PeakEwma {
        decide::observe_latency(state, record.server_time(), record.head_at());
    }
    let failed = status >= 500 && service.passive.is_some_and(|p| p.count_5xx);
    note_outcome(live, service, &slot, failed);

    if status == 101 {
        scratch.up = upload.into_pending();
        if scratch.request.upgrade().is_none() {
            let detail = "101 to a request that asked for no upgrade";
            let answer = Answer { detail, ..Answer::of(Cause::HttpProtocolError) };
            return respond_self(worker, client, scratch, record, answer).await;
        }
        return tunnel::upgraded(worker, service, client, scratch, record, (slot, server)).await;
    }
    let body = scratch.response.body(scratch.request.is_head());
    let keep = scratch.request.keep_alive() && !worker.shared.draining();
    let form = ResponseForm::new(body, scratch.request.version(), keep);
    let cookie = balance::set_affinity(service, affinity, &slot);
    let mut download = download(plane, client, scratch, service, body, form);
    let changes = &forward.response_fields;
    head::write_response(&scratch.response, form, changes, cookie.as_deref(), download.pending());

    let Client { stream, buffer, watchdog, .. } = client;
    let mut sending = !upload.is_done();
    let moving = poll_fn(|cx| {
        if sending
            && let Poll::Ready(sent) = upload.poll(cx, stream, buffer, &server.stream, &limits)
        {
            match sent {
                // It answered without wanting the rest; what it answers is what counts.
                Ok(()) | Err(PumpError::Write) => sending = false,
                Err(error) => return Poll::Ready(Err(request_failure(&error).0)),
            }
            limits.clear(Direction::Up);
        }
        download.poll(cx, &server.stream, &mut server.buffer, stream, &limits).map_err(|error| {
            match error {
                PumpError::Write => Cause::ClientClosed,
                PumpError::Read => Cause::ConnectionTerminated,
                PumpError::Incomplete => Cause::HttpResponseIncomplete,
                PumpError::Malformed(_) | PumpError::TooLarge => Cause::HttpProtocolError,
            }
        })
    });
    let result = watchdog.guard(&limits, moving).await;

    record.body_in = upload.bytes();
    record.body_out = download.bytes();
    let uploaded = upload.is_done();
    scratch.up = upload.into_pending();
    scratch.down = download.into_pending();
    if let Err(cause) = result {
        record.end(cause);
        if matches!(cause, Cause::ClientClosed | Cause::ClientWriteTimeout) {
            abandon(service, slot, server);
        }
        // A body that only a close would end looks whole if it ends with one.
        return if body == ResponseBody::UntilClose { After::Reset } else { After::Close };
    }
    record.end(Cause::Completed);
    if uploaded && scratch.response.keep_alive() && body != ResponseBody::UntilClose {
        let expires = record.head_at() + service.timeouts.keep_alive;
        let address = slot.endpoint().row.address;
        worker.pool.give(address, server, expires, service.idle_connections_max);
    }
    match (form.close, uploaded) {
        (false, true) => After::Keep,
        (true, true) => client.after_last(worker),
        (_, false) => After::Linger,
    }
}

/// The response on its way down.
fn download(
    plane: &Plane,
    client: &Client,
    scratch: &mut Scratch,
    service: &Service,
    body: ResponseBody,
    form: ResponseForm,
) -> Pump {
    let source = match body {
        ResponseBody::None => Source::Length(0),
        ResponseBody::Length(length) => Source::Length(length),
        ResponseBody::Chunked => {
            Source::Chunked(Box::new(ChunkedDecoder::new(ChunkLimits::default())))
        }
        ResponseBody::UntilClose => Source::UntilClose,
    };
    let patience = Patience {
        direction: Direction::Down,
        read: (service.timeouts.idle, Cause::ConnectionReadTimeout),
        write: (settings(plane, client.listener).timeouts.body, Cause::ClientWriteTimeout),
    };
    let framing = if form.chunked { Framing::Chunked } else { Framing::Raw };
    Pump::new(source, framing, patience, std::mem::take(&mut scratch.down))
}
