//! One attempt: the request goes to one server, and its response head comes back, or not.

use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use decide::retry::leaves_work;
use decide::{LiveService, Slot};
use health::blame::{Ended, Outcome, Sent, WaitingFor};
use model::{Cause, Health, Service};
use wire::http1::{self, HeadLimits, Parsed, RequestBody, ResponseError};

use super::forward::Request;
use super::pace::Pace;
use crate::account::Record;
use crate::admission::client_gone;
use crate::blame::{client_failed, server_ended, server_failed};
use crate::buffer::LARGE_BYTES;
use crate::client::Client;
use crate::head::{self, RequestChanges};
use crate::multiplex::Carrier;
use crate::pump::{Pump, PumpError};
use crate::roster::Phase;
use crate::scratch::Scratch;
use crate::tries::Tries;
use crate::upstream::{self, NoConnection, ServerConnection, Want};
use crate::watchdog::Direction;
use crate::worker::Worker;

/// The largest response head that is taken from a server.
const RESPONSE_HEAD_LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: LARGE_BYTES, target_max_bytes: 0, fields_max: 128 };
/// Informational responses before a final one; more is a server that plays.
const INFORMATIONAL_MAX: u32 = 16;

/// Why an attempt brought no response head.
pub(super) struct Failure {
    pub(super) cause: Cause,
    pub(super) detail: &'static str,
    /// The connection on which the server may still be working on the request.
    pub(super) server: Option<ServerConnection>,
    /// How far the request had got.
    pub(super) sent: Sent,
    /// Who had to act next.
    pub(super) waiting_for: WaitingFor,
    /// How long the client has let the attempt wait for the body.
    pub(super) waited: Duration,
    /// It was one stream of several, and their connection has ended with it.
    pub(super) ended_shared: Option<Rc<Carrier>>,
    /// Another request that waited for the same connection has been judged for it.
    judged: bool,
    /// The server was told who the client is before the connection was ready (PROXY protocol), and
    /// may have refused it for that.
    introduced: bool,
    /// It was one stream of several.
    pub(super) shared: bool,
    /// The client has got an informational response of this attempt.
    pub(super) informed: bool,
}

impl Failure {
    /// While the server was waited for.
    fn new(cause: Cause, sent: Sent) -> Failure {
        Failure {
            cause,
            detail: "",
            server: None,
            sent,
            waiting_for: WaitingFor::Server,
            waited: Duration::ZERO,
            ended_shared: None,
            judged: false,
            introduced: false,
            shared: false,
            informed: false,
        }
    }

    /// Whether the server may have seen any of the request.
    pub(super) fn may_have_been_seen(&self) -> bool {
        matches!(self.sent, Sent::Part | Sent::Whole)
    }

    /// What blame sees of it.
    pub(super) fn ended(&self) -> Ended {
        Ended {
            outcome: Outcome::Failed(self.cause),
            waiting_for: self.waiting_for,
            sent: if self.introduced { Sent::Part } else { self.sent },
            shared: self.shared,
            among_others: self.ended_shared.as_ref().is_some_and(|carrier| carrier.streams() > 1),
            judged: self.judged
                || self.ended_shared.as_ref().is_some_and(|carrier| carrier.is_judged()),
        }
    }
}

/// How an attempt is made.
pub(super) struct Way<'a> {
    pub(super) slot: &'a Slot,
    pub(super) tries: &'a Tries,
    pub(super) live: &'a LiveService,
    /// It was up, or not known to be down, when it was chosen: all are tried when all are down.
    pub(super) was_up: bool,
    /// How quickly the client sends, where others may want its slot.
    pub(super) pace: Option<Pace<'a>>,
}

impl Way<'_> {
    /// Whether the server has been marked down and another may do better.
    fn is_to_leave(&self) -> bool {
        let endpoint = self.slot.endpoint();
        self.was_up
            && endpoint.state.health() == Health::Down
            && self.tries.may_leave(self.live, endpoint)
    }
}

/// Sends the request to the slot's server and waits for its final response head, which is then in
/// `scratch.response`. Informational responses are passed on as they come.
pub(super) async fn attempt(
    worker: &Rc<Worker>,
    request: &Request<'_>,
    client: &mut Client,
    scratch: &mut Scratch,
    record: &mut Record,
    upload: &mut Pump,
    way: Way<'_>,
) -> Result<ServerConnection, Failure> {
    let endpoint = way.slot.endpoint();
    let repeatable = is_repeatable(&scratch.request, request.service);
    let Client { stream, origin, watchdog, entry, .. } = &mut *client;
    let reach = request.reach(origin.peer, stream);
    let want = Want { body: scratch.request.body(), repeatable };
    let kept = || worker.pool.take(&reach, endpoint, want, &worker.buffers, record.begun_at());
    let mut server = if let Some(kept) = way.tries.takes_kept().then(kept).flatten() {
        kept
    } else {
        let dialled = os::clock::now();
        entry.set(Phase::Connecting);
        // Of an attempt before this one.
        request.limits.clear(Direction::Up);
        let private = way.tries.private;
        let mut dialling = pin!(upstream::open(worker, &reach, endpoint, want, private));
        let fresh = poll_fn(|cx| match dialling.as_mut().poll(cx) {
            Poll::Pending if way.is_to_leave() => Poll::Ready(Err(Cause::ServerMarkedDown)),
            dialled => dialled.map(Ok),
        });
        let fresh = watchdog.guard(&request.limits, fresh).await;
        let fresh = fresh.unwrap_or_else(|cause| Err(cause.into()));
        record.dialled(os::clock::now() - dialled, fresh.is_ok());
        fresh.map_err(|none| not_connected(&none, request.service))?
    };
    record.reused = server.reused;

    let random = worker.rng.borrow_mut().u64(..);
    let changes = RequestChanges {
        matched: &request.route.matches.path,
        rewrite: &request.forward.rewrite,
        fields: &request.forward.request_fields,
        server: endpoint.row.address,
        http: request.service.http,
        loop_mark: worker.shared.identity.line(),
        continued: request.continued,
        received: if client.stream.is_exchange() {
            "2"
        } else {
            scratch.request.version().number()
        },
    };
    let Client { buffer, origin, .. } = &mut *client;
    upload.rewind(buffer, |out| {
        head::write_request(&scratch.request, origin, &record.id, &changes, random, out);
    });

    client.entry.set(Phase::AwaitingHead);
    let mut informational = 0;
    let outcome = loop {
        let fresh = informational == 0;
        match await_head(request, client, scratch, upload, &mut server, &way, fresh).await {
            Ok(()) if scratch.response.is_informational() => {
                informational += 1;
                if informational > INFORMATIONAL_MAX {
                    break Err(Failure::new(Cause::HttpProtocolError, Sent::Part));
                }
                if let Err(failure) = pass_informational(client, scratch).await {
                    break Err(failure);
                }
            }
            Ok(()) => break Ok(()),
            Err(failure) => break Err(failure),
        }
    };
    let informed = informational > 0 && scratch.request.version() == http1::Version::Http11;
    let outcome = outcome.map_err(|failure| Failure { informed, ..failure });
    client.entry.set(Phase::Busy);
    if outcome.is_err() {
        record.ask_tcp(&mut server, endpoint);
    }
    if let Err(Failure { cause: Cause::ServerClosedIdleConnection, .. }) = outcome {
        endpoint.slots.learner.failed(&server.busy, os::clock::now());
    }
    match outcome {
        Ok(()) => Ok(server),
        Err(failure) if failure.may_have_been_seen() && leaves_work(failure.cause) => {
            Err(Failure { server: Some(server), ..failure })
        }
        Err(failure) => Err(failure),
    }
}

/// Whether the request may be sent twice, and can be: nothing of its body would be lost.
fn is_repeatable(request: &http1::RequestHead, service: &Service) -> bool {
    let kept_max = u64::from(service.retries.body_kept_max_bytes);
    let kept = match request.body() {
        RequestBody::None => true,
        RequestBody::Length(length) => length <= kept_max,
        RequestBody::Chunked => false,
    };
    kept && request.is_idempotent()
}

/// The request goes up while the response head is awaited; whatever ends the wait first.
async fn await_head(
    request: &Request<'_>,
    client: &mut Client,
    scratch: &mut Scratch,
    upload: &mut Pump,
    server: &mut ServerConnection,
    way: &Way<'_>,
    nothing_came: bool,
) -> Result<(), Failure> {
    let limits = &request.limits;
    let response_timeout = request.service.timeouts.response;
    let learner = &way.slot.endpoint().slots.learner;
    let Client { stream, buffer, watchdog, .. } = client;
    let looks_again = watchdog.will_look_again();
    let may_leave = scratch.request.is_idempotent();
    let mut detail = "";
    let mut sending = true;
    let mut write_failed = None;
    let waiting = poll_fn(|cx| {
        if sending
            && let Poll::Ready(sent) = upload.poll(cx, stream, buffer, &server.stream, limits)
        {
            match sent {
                Ok(()) => sending = false,
                // A server that stopped reading may have answered before.
                Err(PumpError::Write(kind)) => {
                    write_failed = Some(kind);
                    sending = false;
                }
                Err(error) => {
                    let (cause, why) = request_failure(&error);
                    detail = why;
                    return Poll::Ready(Err(cause));
                }
            }
            limits.clear(Direction::Up);
            let until = os::clock::now() + response_timeout;
            limits.set(Direction::Down, until, Cause::HttpResponseTimeout);
        }
        loop {
            if !server.buffer.is_empty() {
                match http1::parse_response(
                    &server.buffer,
                    &RESPONSE_HEAD_LIMITS,
                    &mut scratch.response,
                ) {
                    Ok(Parsed::Complete { consumed }) => {
                        server.buffer.consume(consumed);
                        return Poll::Ready(Ok(()));
                    }
                    Ok(Parsed::Partial) if server.buffer.has_room() || server.buffer.grow() => {}
                    Ok(Parsed::Partial) => {
                        return Poll::Ready(Err(Cause::HttpResponseHeadTooLarge));
                    }
                    Err(error) => {
                        detail = error.detail();
                        return Poll::Ready(Err(response_failure(error)));
                    }
                }
            }
            let filled = if server.brought_bulk {
                server.buffer.poll_fill_head(&server.stream, cx)
            } else {
                server.buffer.poll_fill(&server.stream, cx)
            };
            let failed = match filled {
                Poll::Pending => break,
                Poll::Ready(Ok(count)) if count > 0 => continue,
                Poll::Ready(Ok(_)) => server_ended(write_failed, Cause::ConnectionTerminated),
                // TLS without its last word, or a stream that was given up: an end all the same.
                Poll::Ready(Err(error))
                    if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe) =>
                {
                    server_ended(write_failed, Cause::ConnectionTerminated)
                }
                Poll::Ready(Err(error)) => server_failed(error.kind()),
            };
            let stale = nothing_came
                && server.buffer.is_empty()
                && failed != Cause::ConnectionLost
                && learner.could_be_stale(&server.busy, os::clock::now());
            let cause = if stale { Cause::ServerClosedIdleConnection } else { failed };
            return Poll::Ready(Err(cause));
        }
        if may_leave && upload.can_rewind() && way.is_to_leave() {
            return Poll::Ready(Err(Cause::ServerMarkedDown));
        }
        if sending && way.pace.as_ref().is_some_and(|pace| pace.must_yield(upload, limits)) {
            return Poll::Ready(Err(Cause::HttpRequestBodySlow));
        }
        if sending { Poll::Pending } else { client_gone(stream, buffer, looks_again, cx).map(Err) }
    });
    let result = watchdog.guard(limits, waiting).await;
    limits.clear(Direction::Down);
    limits.clear_poll_again();
    result.map_err(|cause| Failure { detail, ..failure(cause, upload, server, request.service) })
}

/// A failure of an attempt that got no connection.
fn not_connected(none: &NoConnection, service: &Service) -> Failure {
    let unreachable = matches!(
        none.cause,
        Cause::ConnectionRefused | Cause::ConnectSynUnanswered | Cause::DestinationIpUnroutable
    );
    let introduced = service.send_proxy.is_some() && !unreachable;
    let judged = none.judged;
    Failure { judged, introduced, ..Failure::new(none.cause, Sent::Connecting) }
}

/// A failure of an attempt whose request was on its way.
fn failure(cause: Cause, upload: &Pump, server: &ServerConnection, service: &Service) -> Failure {
    let cause = match cause {
        Cause::ConnectionLost if upload.is_held_up() && upstream::is_unread(server, service) => {
            Cause::ConnectionWriteTimeout
        }
        other => other,
    };
    // By the server's own word, none of a refused stream was looked at.
    let sent = if !upload.has_sent() || cause == Cause::HttpStreamRefused {
        Sent::Nothing
    } else if upload.is_done() {
        Sent::Whole
    } else {
        Sent::Part
    };
    let waiting_for = waiting_for(upload);
    let shared = server.carrier.as_ref().filter(|carrier| !carrier.is_private());
    let ended_shared = shared.filter(|carrier| !carrier.is_open()).cloned();
    let waited = upload.waited_for_sender();
    let shared = shared.is_some();
    Failure { waiting_for, waited, ended_shared, shared, ..Failure::new(cause, sent) }
}

/// Who has to act next as far as the request is concerned.
pub(super) fn waiting_for(upload: &Pump) -> WaitingFor {
    if upload.is_starved() { WaitingFor::Client } else { WaitingFor::Server }
}

/// What a failure to read the request's body is called.
pub(super) fn request_failure(error: &PumpError) -> (Cause, &'static str) {
    match error {
        PumpError::Malformed(error) => (Cause::HttpRequestError, error.detail()),
        PumpError::TooLarge => (Cause::HttpRequestBodyTooLarge, ""),
        PumpError::Incomplete => (Cause::HttpRequestIncomplete, ""),
        PumpError::Read(kind) => (client_failed(*kind), ""),
        // Nobody asks about a write: the server may have answered before it stopped reading.
        PumpError::Write(kind) => (server_failed(*kind), ""),
    }
}

/// What a response head that cannot be taken is called.
fn response_failure(error: ResponseError) -> Cause {
    match error {
        ResponseError::HeadTooLarge | ResponseError::TooManyFields => {
            Cause::HttpResponseHeadTooLarge
        }
        ResponseError::BadTransferEncoding => Cause::HttpResponseTransferCoding,
        _ => Cause::HttpProtocolError,
    }
}

/// Passes a 1xx on, unless the client is of HTTP/1.0, which knows none (RFC 9110 section 15.2).
async fn pass_informational(client: &mut Client, scratch: &mut Scratch) -> Result<(), Failure> {
    if scratch.request.version() == http1::Version::Http10 {
        return Ok(());
    }
    scratch.down.clear();
    head::write_informational(&scratch.response, &mut scratch.down);
    let sent = client.send(&scratch.down).await;
    sent.map_err(|cause| Failure::new(cause, Sent::Part))
}
