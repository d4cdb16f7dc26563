//! One attempt: the request goes to one server, and its response head comes back, or not.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use decide::Slot;
use model::{Cause, Health};
use wire::http1::{self, HeadLimits, Parsed};

use super::forward::Request;
use crate::account::Record;
use crate::admission::client_gone;
use crate::connection::Client;
use crate::head::{self, RequestChanges};
use crate::pump::{Pump, PumpError};
use crate::roster::Phase;
use crate::scratch::Scratch;
use crate::upstream::{self, ServerConnection};
use crate::watchdog::Direction;
use crate::worker::Worker;

/// The largest response head that is taken from a server.
const RESPONSE_HEAD_LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 16 * 1024, target_max_bytes: 0, fields_max: 128 };
/// Informational responses before a final one; more is a server that plays.
const INFORMATIONAL_MAX: u32 = 16;

/// Why an attempt brought no response head.
pub(super) struct Failure {
    pub(super) cause: Cause,
    pub(super) detail: &'static str,
    /// The connection on which the server may still be working on the request.
    pub(super) server: Option<ServerConnection>,
    /// Whether the server may have seen any of the request.
    pub(super) sent: bool,
}

impl Failure {
    fn new(cause: Cause, sent: bool) -> Failure {
        Failure { cause, detail: "", server: None, sent }
    }

    /// Whether the server can be expected to be still at work on the request.
    fn leaves_work(&self) -> bool {
        let gone = matches!(
            self.cause,
            Cause::ServerClosedIdleConnection
                | Cause::ConnectionTerminated
                | Cause::ServerMarkedDown
                | Cause::HttpProtocolError
        );
        self.sent && !gone
    }

    pub(super) fn counts_against_server(&self) -> bool {
        self.cause.fault() != model::Fault::Client
            && !matches!(
                self.cause,
                Cause::ServerClosedIdleConnection
                    | Cause::ConnectionLimitReached
                    | Cause::ServerMarkedDown
            )
    }
}

/// How an attempt is made.
pub(super) struct Way<'a> {
    pub(super) slot: &'a Slot,
    /// A kept connection may be used.
    pub(super) reuse: bool,
    /// It is not the last attempt.
    pub(super) more_follow: bool,
    /// It was up, or not known to be down, when it was chosen: all are tried when all are down.
    pub(super) was_up: bool,
}

impl Way<'_> {
    /// Whether the server has been marked down and there is still a chance to try another.
    fn is_to_leave(&self) -> bool {
        self.more_follow && self.was_up && self.slot.endpoint().state.health() == Health::Down
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
    let address = way.slot.endpoint().row.address;
    let timeouts = &request.service.timeouts;
    let kept = if way.reuse { worker.pool.take(address, &worker.buffers) } else { None };
    let mut server = if let Some(kept) = kept {
        kept
    } else {
        let dialled = os::clock::now();
        client.entry.set(Phase::AwaitingServer);
        let mut dialling = pin!(upstream::dial(address, timeouts, &worker.buffers));
        let fresh = poll_fn(|cx| match dialling.as_mut().poll(cx) {
            Poll::Pending if way.is_to_leave() => Poll::Ready(Err(Cause::ServerMarkedDown)),
            dialled => dialled,
        });
        let fresh = fresh.await;
        record.connected(dialled);
        fresh.map_err(|cause| Failure::new(cause, false))?
    };
    record.reused = server.reused;

    let random = worker.rng.borrow_mut().u64(..);
    let changes = RequestChanges {
        matched: &request.route.matches.path,
        rewrite: &request.forward.rewrite,
        fields: &request.forward.request_fields,
        server: address,
    };
    scratch.request_out.clear();
    let out = &mut scratch.request_out;
    head::write_request(&scratch.request, &client.origin, &record.id, &changes, random, out);
    upload.rewind(out, &mut client.buffer);

    client.entry.set(Phase::AwaitingServer);
    let mut informational = 0;
    let outcome = loop {
        match await_head(request, client, scratch, upload, &mut server, &way).await {
            Ok(()) if scratch.response.is_informational() => {
                informational += 1;
                if informational > INFORMATIONAL_MAX {
                    break Err(Failure::new(Cause::HttpProtocolError, true));
                }
                if let Err(failure) = pass_informational(worker, client, scratch).await {
                    break Err(failure);
                }
            }
            Ok(()) => break Ok(()),
            Err(failure) => break Err(failure),
        }
    };
    client.entry.set(Phase::Busy);
    match outcome {
        Ok(()) => Ok(server),
        Err(failure) if failure.leaves_work() => Err(Failure { server: Some(server), ..failure }),
        Err(failure) => Err(failure),
    }
}

/// The request goes up while the response head is awaited; whatever ends the wait first.
async fn await_head(
    request: &Request<'_>,
    client: &mut Client,
    scratch: &mut Scratch,
    upload: &mut Pump,
    server: &mut ServerConnection,
    way: &Way<'_>,
) -> Result<(), Failure> {
    let limits = &request.limits;
    let response_timeout = request.service.timeouts.response;
    let reused = server.reused;
    let Client { stream, buffer, watchdog, .. } = client;
    let may_leave = scratch.request.is_idempotent();
    let mut detail = "";
    let mut sending = true;
    let waiting = poll_fn(|cx| {
        if sending
            && let Poll::Ready(sent) = upload.poll(cx, stream, buffer, &server.stream, limits)
        {
            match sent {
                // A server that stopped reading may have answered before.
                Ok(()) | Err(PumpError::Write) => sending = false,
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
                    Ok(Parsed::Partial) if server.buffer.has_room() => {}
                    Ok(Parsed::Partial) => {
                        return Poll::Ready(Err(Cause::HttpResponseHeadTooLarge));
                    }
                    Err(error) => {
                        detail = error.detail();
                        return Poll::Ready(Err(Cause::HttpProtocolError));
                    }
                }
            }
            match server.buffer.poll_fill(&server.stream, cx) {
                Poll::Pending => break,
                Poll::Ready(Ok(count)) if count > 0 => {}
                Poll::Ready(_) if reused && server.buffer.is_empty() => {
                    return Poll::Ready(Err(Cause::ServerClosedIdleConnection));
                }
                Poll::Ready(_) => return Poll::Ready(Err(Cause::ConnectionTerminated)),
            }
        }
        if may_leave && way.is_to_leave() {
            return Poll::Ready(Err(Cause::ServerMarkedDown));
        }
        if !sending && client_gone(stream, buffer, cx) {
            return Poll::Ready(Err(Cause::ClientClosed));
        }
        Poll::Pending
    });
    let result = watchdog.guard(limits, waiting).await;
    limits.clear(Direction::Down);
    result.map_err(|cause| Failure { detail, ..Failure::new(cause, upload.has_sent()) })
}

/// What a failure to read the request's body is called.
pub(super) fn request_failure(error: &PumpError) -> (Cause, &'static str) {
    match error {
        PumpError::Malformed(detail) => (Cause::HttpRequestError, detail),
        PumpError::TooLarge => (Cause::HttpRequestBodyTooLarge, ""),
        PumpError::Read | PumpError::Incomplete | PumpError::Write => (Cause::ClientClosed, ""),
    }
}

/// Passes a 1xx on, unless the client is of HTTP/1.0, which knows none (RFC 9110 section 15.2).
async fn pass_informational(
    worker: &Rc<Worker>,
    client: &mut Client,
    scratch: &mut Scratch,
) -> Result<(), Failure> {
    if scratch.request.version() == http1::Version::Http10 {
        return Ok(());
    }
    scratch.down.clear();
    head::write_informational(&scratch.response, &mut scratch.down);
    let sent = client.send(worker, &scratch.down).await;
    sent.map_err(|_| Failure::new(Cause::ClientClosed, true))
}
