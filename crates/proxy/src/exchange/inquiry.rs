//! Asks an authentication server about a request. The question is a request of its own to a service,
//! with the service's balancing, limits, retries and metrics; the client's body stays where it is.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use decide::Slot;
use decide::retry::leaves_work;
use decide::reuse::Promise;
use health::blame::{Ended, Outcome, Sent, WaitingFor};
use model::{Cause, ForwardRules, HttpVersion, RouteRetries, Service};
use rustls::ClientConfig;
use transport::http2::StreamError;
use wire::http1::{
    FIELDS_MAX, HeadLimits, INFORMATIONAL_MAX, Known, Parsed, RequestHead, ResponseBody,
    ResponseHead, parse_request,
};

use super::Exchange;
use super::connecting::{self, Connecting};
use super::response_head::poll_read;
use crate::account::{self, Record};
use crate::balance;
use crate::budget::Charge;
use crate::buffer::Buffer;
use crate::client::{Client, client_gone};
use crate::failure::{self, Reason, Sender};
use crate::head::{Inquiry, write_inquiry};
use crate::pump::{Framing, Patience, Pump, PumpError, Source};
use crate::roster::Phase;
use crate::server_connection::{Introduced, Reach, ServerConnection, Want};
use crate::servers::{Attempt, Chosen, Failure, NoServer, Place, Resend, Servers};
use crate::watchdog::{Direction, Limits};

/// The longest body of a response that is read: a login page, or the text of an error.
pub(super) const BODY_MAX_BYTES: usize = 64 * 1024;
/// The detail of a response whose body is longer. Another server would give the same, so it is no failure
/// of this one.
pub(super) const TOO_LARGE: &str = "response_too_large";
/// Of the question, which has what the client sent and its target once more.
const HEAD_LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 1024 * 1024, target_max_bytes: 64 * 1024, fields_max: FIELDS_MAX };

/// A complete response of an authentication server.
pub(super) struct Reply {
    pub(super) head: ResponseHead,
    pub(super) body: Vec<u8>,
}

/// A question on its way.
struct Question<'x, 'a> {
    exchange: &'x mut Exchange<'a>,
    rules: &'a ForwardRules,
    service: &'a Service,
    tls: Option<&'a Arc<ClientConfig>>,
    limits: Limits,
    /// Its own: the request's has no attempt yet.
    record: Record,
    /// The head as sent in the last attempt.
    request: RequestHead,
    response: ResponseHead,
    /// `None`: longer than [`BODY_MAX_BYTES`].
    body: Option<Vec<u8>>,
    upload: Pump,
    write_failed: Option<StreamError>,
}

impl<'a> Exchange<'a> {
    /// Asks the service of `rules` about the request, and returns the whole response. Fails with the reason
    /// why there is none.
    pub(super) async fn ask(&mut self, rules: &'a ForwardRules) -> Result<Reply, NoServer> {
        let plane = self.plane;
        let id = rules.service;
        self.client.entry.note(|flight| flight.service = Some(id));
        let mut question = Question::new(self, rules);
        let replied = question.run().await;
        let Question { mut record, .. } = question;
        record.end(replied.as_ref().err().map_or(Cause::Completed, |none| none.reason.cause));
        account::count_for_service(self.worker, plane, &record);
        self.record.authenticated(os::clock::now() - record.started);
        self.client.entry.note(|flight| {
            (flight.service, flight.server, flight.attempts) = (None, None, 0);
        });
        replied
    }
}

impl<'x, 'a> Question<'x, 'a> {
    fn new(exchange: &'x mut Exchange<'a>, rules: &'a ForwardRules) -> Question<'x, 'a> {
        let plane = exchange.plane;
        let service = plane.published.snapshot.service(rules.service);
        let mut record = Record::new(os::clock::now(), exchange.record.id);
        record.service = Some(rules.service);
        let total = service.timeouts.total.map_or(rules.timeout, |max| max.min(rules.timeout));
        let to_end = record.started + total;
        record.to_end = Some((to_end, Cause::TotalTimeout));
        let limits = Limits::default();
        limits.set(Direction::Whole, to_end, Cause::TotalTimeout);
        Question {
            exchange,
            rules,
            service,
            tls: plane.tls.services[rules.service.0 as usize].as_ref(),
            limits,
            record,
            request: RequestHead::default(),
            response: ResponseHead::default(),
            body: None,
            upload: upload(service),
            write_failed: None,
        }
    }

    async fn run(&mut self) -> Result<Reply, NoServer> {
        let Exchange { worker, plane, address, ref scratch, .. } = *self.exchange;
        let key = balance::key(self.service, &scratch.request, None, address.ip());
        let mut servers =
            Servers::new(worker, plane, self.rules.service, (key, None), &RouteRetries::OF_SERVICE);
        let now = self.record.started;
        let (slot, server) = servers.reach(self, now).await?;
        drop(servers);
        self.keep_connection(&slot, server);
        let Some(body) = std::mem::take(&mut self.body) else {
            return Err(Reason { cause: Cause::HttpResponseIncomplete, detail: TOO_LARGE }.into());
        };
        self.record.body_out = body.len() as u64;
        Ok(Reply { head: std::mem::take(&mut self.response), body })
    }

    /// Puts the head at the front of the upload, and parses it as the server will.
    fn write_head(&mut self, to: &Chosen<'_>) -> Result<(), Failure> {
        let Exchange { worker, client, address, scratch, record, .. } = &*self.exchange;
        let inquiry = Inquiry {
            rules: self.rules,
            client: address.ip(),
            server: to.slot.endpoint().row.address,
            request_id: account::request_id(client, &scratch.request, &record.id),
            loop_mark: worker.shared.identity.line(),
        };
        self.upload = upload(self.service);
        self.write_failed = None;
        let out = self.upload.pending();
        write_inquiry(&scratch.request, &client.origin, &inquiry, out);
        match parse_request(out, &HEAD_LIMITS, &mut self.request) {
            Ok(Parsed::Complete { consumed }) if consumed == out.len() => Ok(()),
            _ => Err(Failure::new(Cause::HttpRequestError, Sent::Nothing)),
        }
    }

    async fn connect(&mut self, to: &Chosen<'_>) -> Result<Box<ServerConnection>, Failure> {
        let Exchange { worker, client, address, .. } = &mut *self.exchange;
        let want = Want { request: &self.request, repeatable: true, private: to.tries.private };
        let connecting = Connecting {
            worker,
            client,
            address: *address,
            service: self.service,
            tls: self.tls,
            want,
            limits: &self.limits,
            record: &mut self.record,
        };
        connecting.run(to).await
    }

    /// Waits for the final response head.
    async fn await_final_head(
        &mut self,
        to: &Chosen<'_>,
        server: &mut ServerConnection,
    ) -> Result<(), Reason> {
        for informational in 0..=INFORMATIONAL_MAX {
            self.await_head(to, server, informational == 0).await?;
            if !self.response.is_informational() {
                break;
            }
        }
        // Also a 101, since the question asked for no upgrade.
        if self.response.status() < 200 {
            return Err(Cause::HttpProtocolError.into());
        }
        Ok(())
    }

    /// Sends the question while waiting for a response head.
    async fn await_head(
        &mut self,
        to: &Chosen<'_>,
        server: &mut ServerConnection,
        is_first: bool,
    ) -> Result<(), Reason> {
        let Question { exchange, upload, limits, service, response, write_failed, .. } = self;
        let Exchange { worker, client, .. } = &mut **exchange;
        let Client { stream, buffer, watchdog, .. } = &mut **client;
        let looks_again = watchdog.will_look_again();
        // The question has no body, so nothing of the client's is read for it.
        let mut nothing = Buffer::new(Rc::clone(&worker.buffers));
        limits.set(
            Direction::Down,
            os::clock::now() + service.timeouts.response,
            Cause::HttpResponseTimeout,
        );
        let waiting = poll_fn(|cx| {
            if write_failed.is_none() && !upload.is_done() {
                match upload.poll(cx, stream, &mut nothing, &server.stream, limits) {
                    // The server may have answered before.
                    Poll::Ready(Err(PumpError::Write(error))) => *write_failed = Some(error),
                    Poll::Ready(Err(_)) => {
                        return Poll::Ready(Err(Cause::ProxyInternalError.into()));
                    }
                    Poll::Ready(Ok(())) | Poll::Pending => {}
                }
            }
            match poll_read(cx, server, response) {
                Poll::Ready(Ok(())) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(none)) => {
                    let early_end = Cause::ConnectionTerminated;
                    let sender = Sender::Server { early_end, write_failed: *write_failed };
                    let reason = connecting::no_head(none, sender, (to.slot, server), is_first);
                    return Poll::Ready(Err(reason));
                }
                Poll::Pending => {}
            }
            if to.is_to_leave() {
                return Poll::Ready(Err(Cause::ServerMarkedDown.into()));
            }
            client_gone(stream, buffer, looks_again, cx).map(|gone| Err(gone.into()))
        });
        let headed = watchdog.guard(limits, waiting).await;
        limits.clear(Direction::Up);
        limits.clear(Direction::Down);
        headed
    }

    /// Reads the whole body of the response; `None`: it is too long.
    async fn read_body(
        &mut self,
        server: &mut ServerConnection,
    ) -> Result<Option<Vec<u8>>, Reason> {
        let body = self.response.body(false);
        let source = match body {
            ResponseBody::None => return Ok(Some(Vec::new())),
            body => Source::of(body, &server.stream),
        };
        let Question { exchange, limits, service, write_failed, .. } = self;
        let Client { stream, buffer, watchdog, .. } = &mut *exchange.client;
        let patience = Patience {
            direction: Direction::Down,
            read: (service.timeouts.idle, Cause::ConnectionReadTimeout),
            write: (service.timeouts.idle, Cause::ConnectionWriteTimeout),
        };
        let mut download = Pump::new(source, Framing::Raw, patience, Vec::new());
        download.limit_bytes(BODY_MAX_BYTES as u64);
        // A budget of its own: it is small and short-lived.
        let mut charge = Charge::new(&Arc::default(), BODY_MAX_BYTES as u64);
        // As without a head: nothing of the response is used before all of it is there.
        let early_end = Cause::ConnectionTerminated;
        let sender = Sender::Server { early_end, write_failed: *write_failed };
        let reading = poll_fn(|cx| {
            let from = (&server.stream, &mut server.buffer);
            let read = download.poll_read_ahead(cx, from, limits, BODY_MAX_BYTES, &mut charge);
            match read {
                Poll::Ready(Ok(())) => Poll::Ready(Ok(true)),
                Poll::Ready(Err(PumpError::TooLarge)) => Poll::Ready(Ok(false)),
                Poll::Ready(Err(error)) => Poll::Ready(Err(failure::reason(&error, sender))),
                Poll::Pending => {
                    client_gone(stream, buffer, false, cx).map(|gone| Err(gone.into()))
                }
            }
        });
        let is_whole = watchdog.guard(limits, reading).await?;
        Ok(is_whole.then(|| download.take_kept()))
    }

    fn sent(&self) -> Sent {
        match (self.upload.has_sent(), self.upload.is_done()) {
            (false, _) => Sent::Nothing,
            (true, false) => Sent::Part,
            (true, true) => Sent::Whole,
        }
    }

    /// Returns the server's connection to the pool, if the exchange on it is complete.
    fn keep_connection(&self, slot: &Slot, server: Box<ServerConnection>) {
        let is_complete = self.upload.is_done() && self.body.is_some();
        if !is_complete
            || !self.response.keep_alive()
            || self.response.body(false) == ResponseBody::UntilClose
        {
            return;
        }
        let Exchange { worker, client, address, .. } = &*self.exchange;
        let introduced = Introduced { address: *address, stream: &client.stream };
        let reach = Reach { service: self.service, tls: self.tls, client: introduced };
        let promise = self.response.known(Known::KeepAlive);
        let promise = promise.map_or(Promise::NONE, Promise::parse);
        let (idle_max, now) = (worker.idle_server_connections_max(), os::clock::now());
        worker.pool.give(&reach, slot.endpoint(), server, promise, idle_max, now);
    }
}

impl Attempt for Question<'_, '_> {
    fn place(&mut self) -> Place<'_> {
        let Client { stream, buffer, watchdog, entry, .. } = &mut *self.exchange.client;
        let record = &mut self.record;
        Place { stream, buffer, watchdog, entry, record, half_close: false }
    }

    async fn attempt(&mut self, to: &Chosen<'_>) -> Result<Box<ServerConnection>, Failure> {
        self.write_head(to)?;
        let mut server = self.connect(to).await?;
        self.record.reused = server.reused;
        self.exchange.client.entry.set(Phase::AwaitingHead);
        let mut replied = self.await_final_head(to, &mut server).await;
        if replied.is_ok() {
            // The client has nothing yet, so another server may be asked if this one fails.
            replied = self.read_body(&mut server).await.map(|body| self.body = body);
        }
        self.exchange.client.entry.set(Phase::Busy);
        let Err(reason) = replied else { return Ok(server) };
        let failure = connecting::failed(reason, &server, &self.request, self.sent());
        if reason.cause == Cause::ServerClosedIdleConnection {
            to.slot.endpoint().slots.learner.failed(&server.busy, os::clock::now());
        }
        let is_at_work = failure.may_have_been_seen() && leaves_work(reason.cause);
        Err(Failure { server: is_at_work.then_some(server), ..failure })
    }

    fn accepted(&mut self, servers: &mut Servers<'_>, slot: &Slot, server: &ServerConnection) {
        let status = self.response.status();
        let ended = Ended::alone(Outcome::Answered(status), WaitingFor::Server, self.sent());
        let of = (&mut self.record, self.service);
        connecting::note_head(of, (servers, slot, server), &self.response, ended);
    }

    fn status(&self) -> Option<u16> {
        // Another server must not overrule a verdict.
        Some(self.response.status()).filter(|status| *status >= 500)
    }

    async fn discard(&mut self, slot: Slot, server: Box<ServerConnection>) {
        self.keep_connection(&slot, server);
    }

    fn resend(&self) -> Resend {
        // A GET without a body.
        Resend { idempotent: true, kept: true, informed: false }
    }
}

/// Returns the upload of a request without a body.
fn upload(service: &Service) -> Pump {
    let framing = match service.http {
        HttpVersion::Http2 => Framing::Stream,
        HttpVersion::Http11 => Framing::Raw,
    };
    let patience = Patience {
        direction: Direction::Up,
        read: (service.timeouts.idle, Cause::ConnectionReadTimeout),
        write: (service.timeouts.idle, Cause::ConnectionWriteTimeout),
    };
    Pump::new(Source::Length(0), framing, patience, Vec::new())
}
