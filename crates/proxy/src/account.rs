//! The record of one exchange: filled in while it runs, closed once, then counted in metrics and
//! logged.

mod line;
mod spans;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use decide::{Ask, Endpoint, LiveService, Slot};
use model::{Address, Attempt, Cause, Moment, Route, ServiceId, Timings};
use observe::{TcpSide, TlsRecord};
use transport::Stream;
use wire::http1::{Known, RequestHead, Version};

use crate::answer::Answer;
use crate::client::Client;
use crate::explain::Explanation;
use crate::failure::Reason;
use crate::head::{RequestId, TraceContext};
use crate::plane::Plane;
use crate::scratch::Scratch;
use crate::server_connection::ServerConnection;
use crate::tcp_sample;
use crate::via::{Accepted, Via};
use crate::worker::Worker;

use line::Line;

/// The record of an exchange in progress.
pub(crate) struct Record {
    pub(crate) id: RequestId,
    pub(crate) started: Moment,
    pub(crate) ended: Moment,
    /// The deadline of the exchange, if it has one, and the cause reported when it passes.
    pub(crate) to_end: Option<(Moment, Cause)>,
    pub(crate) status: u16,
    pub(crate) cause: Cause,
    /// Detail beyond the cause, if any.
    pub(crate) detail: &'static str,
    /// The name of the rate limit that refused the request: its detail in the log.
    pub(crate) exceeded: Option<Arc<str>>,
    /// Who has sent the request, if its route has asked.
    pub(crate) user: Option<String>,
    pub(crate) service: Option<ServiceId>,
    endpoint: Option<Arc<Endpoint>>,
    pub(crate) reused: bool,
    /// Whether the kernel's TCP statistics are read for this exchange's connections.
    pub(crate) asks_tcp: bool,
    /// Whether servers with little traffic are sampled too, for metrics only.
    pub(crate) raises_tcp: bool,
    /// TCP statistics of the server connection, once read.
    pub(crate) tcp_server: Option<TcpSide>,
    /// The explanation of the balancing decisions; `None` if not requested.
    pub(crate) explanation: Option<Box<Explanation>>,
    /// Its trace, if Weir records traces.
    pub(crate) trace: Option<TraceContext>,
    /// Whether the request has asked for its explanation, so that its line is written in any case.
    is_asked: bool,
    /// Whether the exchange's storage has the head of the response that the client received.
    has_response: bool,
    /// Connections opened for this exchange.
    connections: u32,
    failed: Vec<Attempt>,
    pub(crate) not_retried: Option<&'static str>,
    /// A server may have seen something of it.
    pub(crate) is_seen: bool,
    /// The `grpc-status` that ended the response.
    pub(crate) grpc_status: Option<u8>,
    pub(crate) body_in: u64,
    /// The request body has been read completely: what the client sends next is another request.
    pub(crate) body_read: bool,
    pub(crate) body_out: u64,
    timings: Timings,
    /// When the current stage began: the request head was complete, or a server was chosen.
    head_at: Moment,
    admitted_at: Moment,
}

impl Record {
    pub(crate) fn new(now: Moment, id: RequestId) -> Record {
        Record {
            id,
            started: now,
            ended: now,
            to_end: None,
            status: 0,
            cause: Cause::ProxyInternalError,
            detail: "",
            exceeded: None,
            user: None,
            service: None,
            endpoint: None,
            reused: false,
            asks_tcp: false,
            raises_tcp: false,
            tcp_server: None,
            explanation: None,
            trace: None,
            is_asked: false,
            has_response: false,
            connections: 0,
            failed: Vec::new(),
            not_retried: None,
            is_seen: false,
            grpc_status: None,
            body_in: 0,
            body_read: false,
            body_out: 0,
            timings: Timings::default(),
            head_at: now,
            admitted_at: now,
        }
    }

    /// Begins the record of a request, or of a connection in TCP mode, and decides by its random
    /// bits what the record asks for: TCP figures, the reasons of its choices, and whether a trace that begins
    /// here is sampled. `is_trusted`: the peer's own trace is continued.
    pub(crate) fn begin(
        worker: &Worker,
        plane: &Plane,
        random: u128,
        request: Option<&RequestHead>,
        is_trusted: bool,
    ) -> Record {
        let mut record = Record::new(os::clock::now(), RequestId::new(random));
        record.asks_tcp = plane.sampling.asks_tcp(random);
        record.raises_tcp = plane.sampling.is_raised();
        (record.explanation, record.is_asked) = plane.explanation(random, request);
        record.trace = plane.traces().map(|sample| {
            let stated = request.filter(|_| is_trusted).and_then(TraceContext::stated);
            stated.unwrap_or_else(|| {
                let is_sampled = spans::begins_sampled(worker, sample, &record);
                TraceContext::begun(&record.id, is_sampled)
            })
        });
        record
    }

    /// Records how long the request waited for the verdict of an authentication server.
    pub(crate) fn authenticated(&mut self, waited: Duration) {
        self.timings.authentication += waited;
    }

    /// Records how long the request waited for a slot, whether or not it got one.
    pub(crate) fn queued(&mut self, waited: Duration) {
        self.timings.queue += waited;
    }

    /// Records the server of the current attempt.
    pub(crate) fn server(&mut self, slot: &Slot, now: Moment) {
        self.endpoint = Some(Arc::clone(slot.endpoint()));
        self.admitted_at = now;
    }

    /// Records how long connecting took, whether or not it succeeded.
    pub(crate) fn dialled(&mut self, took: Duration, connected: bool) {
        if let Some(endpoint) = &self.endpoint {
            endpoint.state.latency.connect.record(took);
        }
        self.timings.connect += took;
        self.connections += u32::from(connected);
    }

    /// Records a failed attempt that is retried, and when it failed.
    pub(crate) fn failed_attempt(
        &mut self,
        server: Address,
        (cause, status): (Cause, Option<u16>),
        now: Moment,
    ) {
        let (after, took) = (self.admitted_at - self.started, now - self.admitted_at);
        self.failed.push(Attempt { server, cause, status, after, took });
        self.timings.first_byte = Duration::ZERO;
        // That of a response which the client does not get.
        self.status = 0;
        self.has_response = false;
        self.endpoint = None;
        self.reused = false;
        self.tcp_server = None;
    }

    /// Starts the explanation of a server choice.
    pub(crate) fn considers(&mut self, live: &LiveService, ask: &Ask<'_>, now: Moment) {
        if let Some(explanation) = &mut self.explanation {
            explanation.considers(live, ask, now);
        }
    }

    /// Completes the explanation of a server choice: see [`Explanation::decided`].
    pub(crate) fn decided(
        &mut self,
        chosen: Option<&(Slot, Moment)>,
        elsewhere: bool,
        now: Moment,
    ) {
        if let Some(explanation) = &mut self.explanation {
            explanation.decided(chosen, elsewhere, now);
        }
    }

    /// Reads the TCP statistics of the server connection. Called when little or nothing more will
    /// be sent or received on it.
    pub(crate) fn ask_tcp(&mut self, connection: &mut ServerConnection, endpoint: &Endpoint) {
        let ServerConnection { stream, counted, .. } = connection;
        if self.asks_tcp {
            self.tcp_server = tcp_sample::server(stream, counted, endpoint);
        } else if self.raises_tcp {
            tcp_sample::server_extra(stream, counted, endpoint, os::clock::now());
        }
    }

    /// Records the final response head.
    pub(crate) fn head_arrived(&mut self, status: u16) {
        self.status = status;
        self.has_response = true;
        self.head_at = os::clock::now();
        self.timings.first_byte = self.head_at - self.started;
    }

    /// Returns when the current attempt began.
    pub(crate) fn begun_at(&self) -> Moment {
        self.admitted_at
    }

    /// Returns when the response head arrived.
    pub(crate) fn head_at(&self) -> Moment {
        self.head_at
    }

    /// Returns the time from sending the request to the server until its response head arrived.
    pub(crate) fn server_time(&self) -> Duration {
        self.head_at - self.admitted_at
    }

    /// Records an answer that Weir generates itself.
    pub(crate) fn answered(&mut self, answer: &Answer) {
        self.status = answer.status;
        self.has_response = false;
        self.detail = answer.detail;
        self.end(answer.cause);
    }

    /// Returns the cause of a failure: the client's deadline if that has passed when a server resets
    /// the stream. Servers know the deadline as well, and cancel calls themselves, usually before the
    /// timer here fires.
    pub(crate) fn unless_late(&self, cause: Cause) -> Cause {
        match self.to_end {
            Some((end, Cause::ClientDeadlineExceeded))
                if cause == Cause::HttpStreamReset && os::clock::now() >= end =>
            {
                Cause::ClientDeadlineExceeded
            }
            _ => cause,
        }
    }

    /// Returns whether a server has answered: with a response head, or in TCP mode by serving a
    /// connection to its end.
    fn is_answered(&self) -> bool {
        !self.timings.first_byte.is_zero() || self.cause == Cause::Completed
    }

    /// Returns how often the request was sent to a server.
    pub(crate) fn attempts(&self) -> u32 {
        self.failed.len() as u32 + u32::from(self.endpoint.is_some())
    }

    /// Closes the record.
    pub(crate) fn end(&mut self, cause: Cause) {
        self.cause = cause;
        self.ended = os::clock::now();
        self.timings.total = self.ended - self.started;
        if self.is_seen {
            let last = self.endpoint.as_ref().map(|_| self.ended - self.admitted_at);
            self.timings.worked = self.failed.iter().map(|attempt| attempt.took).chain(last).sum();
        }
    }
}

/// Returns the request ID used in the log, towards the server and towards the client: the one sent
/// by a trusted peer if there is one, else a generated one.
pub(crate) fn request_id<'a>(
    client: &Client,
    request: &'a RequestHead,
    own: &'a RequestId,
) -> &'a [u8] {
    let believed = client.origin.trusted.then(|| request.known(Known::XRequestId)).flatten();
    believed.unwrap_or(own.as_bytes())
}

/// Closes the record of an exchange: updates counters, then writes the access line.
pub(crate) fn finish(
    worker: &Worker,
    plane: &Plane,
    (client, address): (&Client, SocketAddr),
    route: Option<&Route>,
    scratch: &Scratch,
    record: &Record,
) {
    let request: &RequestHead = &scratch.request;
    let peer = client.origin.peer;
    let line = Line {
        client: address,
        peer: (peer != address).then_some(peer),
        listener: client.via.listener,
        live: &client.via.live,
        request_id: request_id(client, request, &record.id),
        method: request.method().as_bytes(),
        host: request.authority().as_bytes(),
        path: request.path().as_bytes(),
        protocol: protocol(&client.stream, request),
        tls: tls_record(&client.stream),
        tcp_client: tcp_client(&client.stream, record),
        route: route.map(|route| &*route.name),
        request: Some(request),
        response: record.has_response.then_some(&scratch.response),
    };
    close(worker, plane, &line, record);
}

/// Closes the record of a connection in TCP mode.
pub(crate) fn finish_tcp(worker: &Worker, accepted: &Accepted, record: &Record) {
    let tcp_client = tcp_client(&accepted.stream, record);
    let tls = tls_record(&accepted.stream);
    let bare = Line::bare(accepted.peer, &accepted.via, record.id.as_bytes());
    let line = Line { protocol: "TCP", tls, tcp_client, ..bare };
    close(worker, &accepted.via.plane, &line, record);
}

/// Counts for its service a question to an authentication server, or a copy for a mirror. It belongs to
/// another exchange, so no listener counts it and there is no access line.
pub(crate) fn count_for_service(worker: &Worker, plane: &Plane, record: &Record) {
    count_service(worker, plane, record, (record.status > 0).then_some(record.status));
}

/// Records input that was refused before it became a request.
pub(crate) fn refused(
    worker: &Worker,
    client: &Client,
    answer: &Answer,
    id: RequestId,
    started: Moment,
) {
    let mut record = Record::new(started, id);
    record.answered(answer);
    let line = Line::bare(client.origin.peer, &client.via, id.as_bytes());
    close(worker, &client.via.plane, &line, &record);
}

/// Records a connection that ended before or outside its exchanges, for `reason`.
pub(crate) fn ended_before_exchange(worker: &Worker, via: &Via, peer: SocketAddr, reason: Reason) {
    let id = RequestId::new(worker.rng.borrow_mut().u128(..));
    let mut record = Record::new(os::clock::now(), id);
    record.detail = reason.detail;
    record.end(reason.cause);
    close(worker, &via.plane, &Line::bare(peer, via, id.as_bytes()), &record);
}

/// Records a stream that was refused before it became a request. `status` is the status it was
/// answered with, 0 for a reset.
pub(crate) fn refused_stream(
    worker: &Worker,
    via: &Via,
    peer: SocketAddr,
    (reason, status): (Reason, u16),
) {
    let id = RequestId::new(worker.rng.borrow_mut().u128(..));
    let mut record = Record::new(os::clock::now(), id);
    (record.status, record.detail) = (status, reason.detail);
    record.end(reason.cause);
    let line = Line { protocol: "HTTP/2", ..Line::bare(peer, via, id.as_bytes()) };
    close(worker, &via.plane, &line, &record);
}

/// Returns the protocol that the client of an exchange speaks.
fn protocol(stream: &Stream, request: &RequestHead) -> &'static str {
    match request.version() {
        _ if stream.is_exchange() => "HTTP/2",
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    }
}

fn tls_record(stream: &Stream) -> Option<TlsRecord<'_>> {
    stream.tls().map(|tls| TlsRecord {
        version: tls.version,
        cipher: tls.cipher,
        server_name: tls.server_name.as_deref(),
        resumed: tls.resumed,
    })
}

fn tcp_client(stream: &Stream, record: &Record) -> Option<TcpSide> {
    record.asks_tcp.then(|| tcp_sample::client(stream)).flatten()
}

fn close(worker: &Worker, plane: &Plane, line: &Line<'_>, record: &Record) {
    let status = (record.status > 0).then_some(record.status);
    plane.listeners[line.listener.0 as usize].exchanges.count(record.cause, status);
    count_service(worker, plane, record, status);
    if let Some(id) = record.service {
        let counters = plane.service_counters(id, &worker.shard);
        counters.clients.count(line.client.ip(), record.begun_at());
        if let Some(tcp) = line.tcp_client {
            counters.client_round_trip.record(tcp.round_trip);
        }
    }
    let kept_for = line::keep(worker, plane, line, record, status);
    if let Some(sample) = plane.traces() {
        spans::write(worker, plane, sample, (line, record), status, kept_for);
    }
    if plane.logs {
        line::write(worker, plane, line, record, status);
    }
}

fn count_service(worker: &Worker, plane: &Plane, record: &Record, status: Option<u16>) {
    let Some(id) = record.service else { return };
    if let Some(endpoint) = record.endpoint.as_ref().filter(|_| record.is_answered()) {
        endpoint.state.latency.whole.record(record.ended - record.admitted_at);
    }
    let counters = plane.service_counters(id, &worker.shard);
    counters.exchange_ended(record.cause, status, record.attempts(), &record.timings);
    counters.request_body_bytes.add(record.body_in);
    counters.response_body_bytes.add(record.body_out);
    if !record.timings.queue.is_zero() {
        counters.queued.increment();
    }
    counters.connections_opened.add(u64::from(record.connections));
    counters.connections_reused.add(u64::from(record.reused));
}
