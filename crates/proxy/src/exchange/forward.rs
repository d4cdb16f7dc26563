//! The loop over servers: a place, an attempt, and another if that is safe.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use decide::retry::WhyNot;
use decide::{Ask, route};
use health::blame::cause_to_report;
use model::{Cause, Forward, Health, HttpVersion, Route, Service};
use rustls::ClientConfig;
use transport::Stream;
use wire::http1::{ChunkLimits, ChunkedDecoder, RequestBody};
use wire::http2::can_carry_authority;

use super::ahead::{is_conversation, read_ahead};
use super::attempt::{Way, attempt};
use super::local::respond_self;
use super::pace::Pace;
use super::respond::{Answered, respond};
use crate::abandon::abandon;
use crate::account::Record;
use crate::admission::{self, Place};
use crate::answer::Answer;
use crate::balance;
use crate::client::{After, Client};
use crate::head::upgrade_towards;
use crate::judgement::Judgement;
use crate::pump::{Framing, Patience, Pump, Source};
use crate::roster::Phase;
use crate::scratch::Scratch;
use crate::tries::{self, Tries};
use crate::upstream::{Introduced, Reach};
use crate::watchdog::{Direction, Limits};
use crate::worker::{Plane, Worker};

/// What stays the same over the attempts of one request.
pub(super) struct Request<'a> {
    pub(super) route: &'a Route,
    pub(super) forward: &'a Forward,
    pub(super) service: &'a Service,
    tls: Option<&'a Arc<ClientConfig>>,
    pub(super) limits: Limits,
    /// The client was told to go on with its body, in the server's place.
    pub(super) continued: bool,
}

impl Request<'_> {
    /// How its servers are reached.
    pub(super) fn reach<'a>(&'a self, peer: SocketAddr, stream: &'a Stream) -> Reach<'a> {
        Reach { service: self.service, tls: self.tls, client: Introduced { peer, stream } }
    }
}

/// Gives the request to a server, and to another if the first fails it and that is safe.
pub(super) async fn forward(
    worker: &Rc<Worker>,
    plane: &Plane,
    client: &mut Client,
    scratch: &mut Scratch,
    record: &mut Record,
    route: &Route,
    to: &Forward,
) -> After {
    let id = route::split(to, &mut worker.rng.borrow_mut());
    let service = plane.published.snapshot.service(id);
    let live = &plane.published.services[id.0 as usize];
    record.service = Some(id);
    client.entry.note(|flight| flight.service = Some(id));
    let tls = plane.tls.services[id.0 as usize].as_ref();
    let limits = Limits::default();
    let mut request = Request { route, forward: to, service, tls, limits, continued: false };
    if service.http == HttpVersion::Http2
        && to.rewrite.host.is_none()
        && !can_carry_authority(scratch.request.authority())
    {
        let detail = "a percent-encoded host, which HTTP/2 towards the server cannot carry";
        let answer = Answer { detail, ..Answer::of(Cause::HttpRequestError) };
        return respond_self(worker, client, scratch, record, answer).await;
    }
    if let Some((total, cause)) = decide::deadline::total(service, &scratch.request) {
        let to_end = record.started + total;
        record.to_end = Some((to_end, cause));
        request.limits.set(Direction::Whole, to_end, cause);
    }
    let mut upload = upload(client, scratch, service);
    let hash = balance::key(service, &scratch.request, client.origin.peer.ip());
    let affinity = balance::affinity(service, &scratch.request);
    let has_rate = !matches!(scratch.request.body(), RequestBody::None)
        && !is_conversation(&scratch.request, service, client);
    let mut tries = Tries::new(service);
    let mut judgement = Judgement::new(live, service);
    let mut now = record.started;
    let ahead = read_ahead(worker, plane, &mut request, client, scratch, &mut upload).await;
    let charge = match ahead {
        Ok(charge) => charge,
        Err((cause, detail)) => {
            let answer = Answer { detail, ..Answer::of(cause) };
            return give_up(worker, client, scratch, record, upload, answer).await;
        }
    };
    if charge.is_some() {
        now = os::clock::now();
    }
    live.retries().note_request(worker.id, now);

    loop {
        let ask = Ask { key: hash, affinity, avoid: &tries.failed };
        client.entry.set(Phase::Queued);
        record.considers(live, &ask, now);
        let Client { stream, buffer, watchdog, .. } = &mut *client;
        let place = Place { stream, buffer, watchdog, record, half_close: false };
        let elsewhere = tries.elsewhere(worker, live, hash);
        let is_elsewhere = elsewhere.is_some();
        let admitted = match elsewhere {
            Some(slot) => Ok((slot, now)),
            None => admission::admit(worker, live, service, &ask, place, now).await,
        };
        record.decided(admitted.as_ref().ok(), is_elsewhere, now);
        let (slot, admitted_at) = match admitted {
            Ok(admitted) => admitted,
            Err(refused) => {
                client.entry.set(Phase::Busy);
                let mut answer =
                    Answer { retry_after: refused.retry_after, ..Answer::of(refused.cause) };
                if matches!(refused.cause, Cause::QueueFull | Cause::QueueWaitExceeded) {
                    answer.status = service.when_full;
                }
                return give_up(worker, client, scratch, record, upload, answer).await;
            }
        };
        record.server(&slot, admitted_at);
        client.entry.attempt(slot.endpoint().row.address);
        let way = Way {
            slot: &slot,
            tries: &tries,
            live,
            was_up: slot.endpoint().state.health() != Health::Down,
            pace: if has_rate { Pace::of(&slot, &upload) } else { None },
        };
        let failure =
            match attempt(worker, &request, client, scratch, record, &mut upload, way).await {
                Ok(server) => {
                    upload.keep_no_more();
                    // Where the server has answered early, some of the body is still held.
                    let _charge = charge.filter(|_| !upload.is_done());
                    let exchange = Answered { slot, server, upload, affinity, judgement };
                    return respond(worker, request, client, scratch, record, exchange).await;
                }
                Err(failure) => failure,
            };
        now = os::clock::now();
        let endpoint = Arc::clone(slot.endpoint());
        let bound = endpoint.is_named_by(affinity);
        let ended = failure.ended();
        judgement.ended(&slot, ended, bound, (admitted_at, now));
        if let Some(carrier) = &failure.ended_shared {
            carrier.judge();
        }
        let cause = cause_to_report(ended, failure.cause, failure.waited);
        let sent = failure.may_have_been_seen();
        let shared_connection = failure.ended_shared.is_some() && cause != Cause::HttpStreamRefused;
        match failure.server {
            Some(server) => abandon(service, slot, server),
            None => drop(slot),
        }
        let failed = tries::Failure {
            cause,
            sent,
            idempotent: scratch.request.is_idempotent(),
            kept: upload.can_rewind(),
            shared_connection,
        };
        let again = if failure.informed {
            // The client has seen part of an answer: a second server's would be another.
            Err(WhyNot::NoUse)
        } else {
            tries.again(live, &endpoint, &failed, now)
        };
        match again {
            Ok(()) => record.failed_attempt(endpoint.row.address, cause),
            Err(why) => {
                record.not_retried = Some(why.name());
                let answer = Answer { detail: failure.detail, ..Answer::of(cause) };
                return give_up(worker, client, scratch, record, upload, answer).await;
            }
        }
    }
}

/// Answers a request that no server gets, or gets any more.
async fn give_up(
    worker: &Rc<Worker>,
    client: &mut Client,
    scratch: &mut Scratch,
    record: &mut Record,
    upload: Pump,
    answer: Answer<'_>,
) -> After {
    record.body_in = upload.bytes();
    record.body_read = upload.has_read_all();
    scratch.up = upload.into_pending();
    respond_self(worker, client, scratch, record, answer).await
}

/// The request on its way up, with what another attempt would need.
fn upload(client: &Client, scratch: &mut Scratch, service: &Service) -> Pump {
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
        // What follows an upgrade is no body, and the stream goes on.
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
    let mut upload = Pump::new(source, framing, patience, std::mem::take(&mut scratch.up));
    if let RequestBody::Length(length) = body {
        upload.expect_bytes(length);
    }
    if let Some(max) = listener.body_max_bytes {
        upload.limit_bytes(max);
    }
    // Servers of HTTP/2 may refuse a stream of any method, and it may then be sent again.
    if scratch.request.is_idempotent() || service.http == HttpVersion::Http2 {
        upload.keep(service.retries.body_kept_max_bytes as usize);
    }
    upload
}
