//! One attempt: sends the request to one server and waits for the response head.

use std::future::poll_fn;
use std::task::Poll;

use decide::retry::leaves_work;
use health::blame::Sent;
use model::{Cause, Service};
use wire::http1::{INFORMATIONAL_MAX, RequestBody, RequestHead, Version};

use super::connecting::{self, Connecting};
use super::forward::Forwarding;
use super::pace::Pace;
use super::response_head::poll_read;
use super::{Exchange, local};
use crate::balance;
use crate::client::{Client, client_gone};
use crate::failure::Reason;
use crate::head::{self, RequestChanges};
use crate::roster::Phase;
use crate::server_connection::{self, ServerConnection, Want};
use crate::servers::{Chosen, Failure};
use crate::watchdog::Direction;

impl Forwarding<'_, '_> {
    /// Sends the request to the server of `to` and waits for its final response head, which is then
    /// in `scratch.response`. Informational responses are forwarded as they arrive.
    pub(super) async fn send(&mut self, to: &Chosen<'_>) -> Result<Box<ServerConnection>, Failure> {
        let mut server = self.connect(to).await?;
        self.write_head(to, &server);
        self.exchange.client.entry.set(Phase::AwaitingHead);
        let headed = self.await_final_head(to, &mut server).await;
        self.exchange.client.entry.set(Phase::Busy);
        let Err(failure) = headed else { return Ok(server) };
        let endpoint = to.slot.endpoint();
        self.exchange.record.ask_tcp(&mut server, endpoint);
        let cause = failure.reason.cause;
        if cause == Cause::ServerClosedIdleConnection {
            endpoint.slots.learner.failed(&server.busy, os::clock::now());
        }
        let is_at_work = failure.may_have_been_seen() && leaves_work(cause);
        Err(Failure { server: is_at_work.then_some(server), ..failure })
    }

    /// Takes a pooled connection to the server, or opens one.
    async fn connect(&mut self, to: &Chosen<'_>) -> Result<Box<ServerConnection>, Failure> {
        let Exchange { worker, client, address, scratch, record, .. } = &mut *self.exchange;
        let repeatable = is_repeatable(&scratch.request, self.service);
        let want = Want { request: &scratch.request, repeatable, private: to.tries.private };
        let connecting = Connecting {
            worker,
            client,
            address: *address,
            service: self.service,
            tls: self.tls,
            want,
            limits: &self.limits,
            record,
        };
        connecting.run(to).await
    }

    /// Puts the request head at the front of the upload.
    fn write_head(&mut self, to: &Chosen<'_>, server: &ServerConnection) {
        let Exchange {
            worker,
            client,
            address,
            address_is_known,
            identity,
            received,
            scratch,
            record,
            ..
        } = &mut *self.exchange;
        record.reused = server.reused;
        let request = &*scratch.request;
        let changes = RequestChanges {
            matched: &self.route.matches.path,
            rewrite: &self.forward.rewrite,
            fields: &self.fields.request,
            server: to.slot.endpoint().row.address,
            http: self.service.http,
            loop_mark: worker.shared.identity.line(),
            continued: self.continued,
            client: address_is_known.then(|| address.ip()),
            identity: identity.as_deref(),
            received,
            trace: record.trace.as_ref(),
            attempt: record.attempts(),
        };
        let Client { buffer, origin, .. } = &mut **client;
        self.upload.rewind(buffer, |out| {
            head::write_request(request, origin, &record.id, &changes, out);
        });
    }

    /// Waits for the final response head and forwards the informational ones before it.
    async fn await_final_head(
        &mut self,
        to: &Chosen<'_>,
        server: &mut ServerConnection,
    ) -> Result<(), Failure> {
        let pace = if self.has_rate { Pace::of(to.slot, &self.upload.pump) } else { None };
        for informational in 0..=INFORMATIONAL_MAX {
            let headed = self.await_head(to, server, pace.as_ref(), informational == 0).await;
            headed.map_err(|reason| self.failure(reason, server))?;
            if !self.exchange.scratch.response.is_informational() {
                return Ok(());
            }
            if informational == INFORMATIONAL_MAX {
                break;
            }
            self.pass_informational().await.map_err(|cause| Failure::new(cause, Sent::Part))?;
        }
        Err(Failure::new(Cause::HttpProtocolError, Sent::Part))
    }

    /// Sends the request while waiting for a response head; ends with whichever comes first.
    /// `is_first`: nothing has been received for this attempt yet.
    async fn await_head(
        &mut self,
        to: &Chosen<'_>,
        server: &mut ServerConnection,
        pace: Option<&Pace<'_>>,
        is_first: bool,
    ) -> Result<(), Reason> {
        let Forwarding { exchange, upload, limits, service, timeouts, .. } = self;
        let Exchange { client, scratch, record, .. } = &mut **exchange;
        let Client { stream, buffer, watchdog, .. } = &mut **client;
        let looks_again = watchdog.will_look_again();
        let may_leave = scratch.request.is_idempotent();
        let response = &mut scratch.response;
        let (max, cause) = match timeouts.attempt {
            Some(max) => (max, Cause::AttemptTimeout),
            None => (service.timeouts.response, Cause::HttpResponseTimeout),
        };
        let response_due = || {
            // Zero: no limit.
            if !max.is_zero() {
                limits.set(Direction::Down, os::clock::now() + max, cause);
            }
        };
        if !upload.is_sending() {
            response_due();
        }
        let waiting = poll_fn(|cx| {
            if upload.is_sending() {
                let sent = upload.poll(cx, (stream, buffer), &server.stream, limits);
                record.body_in = upload.pump.bytes();
                if sent?.is_ready() {
                    response_due();
                }
            }
            match poll_read(cx, server, response) {
                Poll::Ready(Ok(())) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(none)) => {
                    let sender = upload.answered_by(Cause::ConnectionTerminated);
                    let reason = connecting::no_head(none, sender, (to.slot, server), is_first);
                    return Poll::Ready(Err(reason));
                }
                Poll::Pending => {}
            }
            if may_leave && upload.pump.can_rewind() && to.is_to_leave() {
                return Poll::Ready(Err(Cause::ServerMarkedDown.into()));
            }
            if !upload.is_sending() {
                return client_gone(stream, buffer, looks_again, cx).map(|gone| Err(gone.into()));
            }
            if pace.is_some_and(|pace| pace.must_yield(&upload.pump, limits)) {
                return Poll::Ready(Err(Cause::HttpRequestBodySlow.into()));
            }
            Poll::Pending
        });
        let result = watchdog.guard(limits, waiting).await;
        limits.clear(Direction::Down);
        limits.clear_poll_again();
        result
    }

    /// Describes the failure of an attempt whose request was being sent or had been sent.
    fn failure(&self, reason: Reason, server: &ServerConnection) -> Failure {
        let is_unread = reason.cause == Cause::ConnectionLost
            && self.upload.pump.is_held_up()
            && server_connection::is_unread(server, self.service);
        let cause = if is_unread { Cause::ConnectionWriteTimeout } else { reason.cause };
        let cause = self.exchange.record.unless_late(cause);
        let reason = Reason { cause, ..reason };
        let request = &self.exchange.scratch.request;
        Failure {
            waiting_for: self.upload.waiting_for(),
            waited: self.upload.pump.waited_for_sender(),
            ..connecting::failed(reason, server, request, self.upload.sent())
        }
    }

    /// Forwards a 1xx response, unless the client speaks HTTP/1.0, which has none (RFC 9110 section
    /// 15.2).
    async fn pass_informational(&mut self) -> Result<(), Cause> {
        let Exchange { client, identity, rates, scratch, .. } = &mut *self.exchange;
        if scratch.request.version() == Version::Http10 {
            return Ok(());
        }
        self.informed = true;
        scratch.down.clear();
        let own = local::own_fields(
            client,
            Some(self.route),
            &scratch.request,
            (rates, identity.as_deref()),
        );
        let session = balance::session_carrier(self.forward);
        head::write_informational(&scratch.response, &own, session, &mut scratch.down);
        client.send(&scratch.down).await
    }
}

/// Returns whether the request may be sent twice, and none of its body would be lost.
fn is_repeatable(request: &RequestHead, service: &Service) -> bool {
    let kept_max = u64::from(service.retries.body_kept_max_bytes);
    let kept = match request.body() {
        RequestBody::None => true,
        RequestBody::Length(length) => length <= kept_max,
        RequestBody::Chunked => false,
    };
    kept && request.is_idempotent()
}
