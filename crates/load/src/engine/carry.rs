//! Drives connections: opens, uses and closes them. The worker decides when; the recorder counts
//! the outcomes.

use std::io;

use os::poll::{Interest, Ready};

use super::connection::{Connection, State};
use super::exchange::Exchange;
use super::failure::Failure;
use super::http1::{Progress, Reader};
use super::http2::Http2;
use super::link::Link;
use super::plan::Protocol;
use super::round_trip::round_trip;
use super::worker::{Worker, nanos};

/// Of so many responses one is asked for TCP's estimate of the round trip.
const ROUND_TRIP_EVERY: u64 = 64;
/// Reads from one connection before others have their turn.
const READS_MAX: usize = 64;

impl Worker {
    /// Begins a request: on a connection that has room, on one that is being opened ahead, or on a new
    /// one. Without room for any it is put back.
    pub(crate) fn begin(&mut self, mut exchange: Exchange, now: u64) {
        let plan = &self.shared.plan;
        let site = plan.targets[exchange.target].site;
        let deadline = now + nanos(plan.timeout);
        while let Some(index) = self.spare[site].pop() {
            let streams_max = self.shared.plan.streams_max;
            let Some(connection) = self.table.get(index) else { continue };
            connection.is_spare = false;
            match &mut connection.state {
                State::Http1(under_way @ None) => {
                    exchange.moments.sent = now;
                    *under_way = Some(exchange);
                    connection.deadline = deadline;
                    self.send(index, now);
                    return;
                }
                State::Http2(http2) if http2.has_room(streams_max) => {
                    exchange.moments.sent = now;
                    let target = &self.shared.plan.targets[exchange.target];
                    http2.begin(exchange, target, deadline);
                    self.drive_http2(index, now);
                    return;
                }
                _ => {}
            }
        }
        if let Some(index) = self.ahead[site].pop()
            && let Some(connection) = self.table.get(index)
            && let State::Connecting(waits) | State::Handshaking(waits) = &mut connection.state
        {
            *waits = Some(exchange);
        } else if self.make_room() {
            self.open(Some(exchange), site, now);
        } else {
            self.put_back.push_back(exchange);
        }
    }

    /// Opens a connection, for a request or ahead of them.
    pub(super) fn open(&mut self, exchange: Option<Exchange>, site: usize, now: u64) {
        debug_assert!(self.table.len() < self.connections_max, "never more than were asked for");
        self.opened_ns = now;
        self.has_closed = false;
        let plan = &self.shared.plan;
        let address = plan.sites[site].address;
        let source = self.next_source % plan.sources.len().max(1);
        self.next_source = self.next_source.wrapping_add(1);
        let socket = match plan.sources.get(source) {
            Some(&from) => os::socket::connect_begin_from(address, from),
            None => os::socket::connect_begin(address, None),
        };
        let (index, token) = self.table.reserve();
        let added = socket.and_then(|socket| {
            self.poller.add(&socket, token, Interest::ReadWrite)?;
            Ok(socket)
        });
        let socket = match added {
            Ok(socket) => socket,
            Err(error) => {
                self.table.release(index);
                self.unopened(exchange, source, Failure::of_connect(&error), now);
                return;
            }
        };
        let connection = Connection {
            link: Some(Link::new(socket)),
            state: State::Connecting(exchange),
            site,
            source,
            since: now,
            deadline: now + nanos(self.shared.plan.connect_timeout),
            reader: Reader::default(),
            served: 0,
            interest: Interest::ReadWrite,
            is_spare: false,
            was_idle: false,
        };
        self.table.put(index, connection);
        if exchange.is_none() {
            self.ahead[site].push(index);
        }
    }

    /// A connection did not come about. Where no request waited for it, the next one that needs one
    /// will tell.
    fn unopened(&mut self, waits: Option<Exchange>, source: usize, failure: Failure, now: u64) {
        self.recorder.unconnected(source);
        if waits.is_some() {
            self.fail_one(failure, now);
            self.rest(now);
        }
    }

    pub(super) fn fail_one(&mut self, failure: Failure, now: u64) {
        self.in_flight -= 1;
        self.recorder.failed(failure, now);
    }

    /// Something has happened on a connection.
    pub(crate) fn carry(&mut self, ready: Ready, now: u64) {
        let Some(index) = self.table.of_token(ready.token) else { return };
        let Some(connection) = self.table.get(index) else { return };
        match &mut connection.state {
            State::Connecting(_) => self.connected(index, now),
            State::Handshaking(_) => self.handshake(index, now),
            State::Http2(_) => self.drive_http2(index, now),
            State::Http1(exchange) => {
                let sending = exchange.is_some() && connection.interest == Interest::ReadWrite;
                if sending && ready.writable {
                    self.send(index, now);
                }
                if ready.readable {
                    self.receive(index, now);
                }
            }
        }
    }

    /// The attempt to connect has ended.
    fn connected(&mut self, index: usize, now: u64) {
        let Some(connection) = self.table.get(index) else { return };
        let State::Connecting(exchange) = connection.state else { return };
        let (source, took) = (connection.source, now.saturating_sub(connection.since));
        let Some(link) = &mut connection.link else { return };
        let failure = match link.socket.take_error() {
            Ok(None) => None,
            Ok(Some(error)) | Err(error) => Some(Failure::of_connect(&error)),
        };
        if let Some(failure) = failure {
            self.close(index);
            self.unopened(exchange, source, failure, now);
            return;
        }
        self.recorder.connected(took, source);
        connection.since = now;
        connection.state = State::Handshaking(exchange);
        if let Some((config, name)) = &self.shared.plan.sites[connection.site].tls {
            let begun = link.begin_tls(config, name);
            if begun.is_err() {
                self.close(index);
                self.unopened(exchange, source, Failure::Tls, now);
                return;
            }
        }
        self.handshake(index, now);
    }

    /// Carries TLS on, if it is spoken; then the request that waits.
    fn handshake(&mut self, index: usize, now: u64) {
        let plan = &self.shared.plan;
        let Some(connection) = self.table.get(index) else { return };
        let State::Handshaking(exchange) = connection.state else { return };
        let (source, is_tls) = (connection.source, plan.sites[connection.site].tls.is_some());
        let Some(link) = &mut connection.link else { return };
        match link.handshake() {
            Ok(false) => {
                let blocked = link.is_blocked();
                self.listen(index, blocked);
                return;
            }
            Ok(true) => {}
            Err(_) => {
                self.close(index);
                self.unopened(exchange, source, Failure::Tls, now);
                return;
            }
        }
        if is_tls {
            self.recorder.times.tls.saturating_record(now.saturating_sub(connection.since));
        }
        connection.deadline = now + nanos(plan.timeout);
        let site = connection.site;
        let begun = |mut exchange: Exchange| {
            exchange.moments.sent = now;
            exchange
        };
        let exchange = exchange.map(begun);
        match plan.protocol {
            Protocol::Connect => {
                self.close(index);
                if let Some(exchange) = exchange {
                    self.in_flight -= 1;
                    self.recorder.completed(&exchange.moments, 0, now);
                }
            }
            Protocol::Http1 => {
                connection.state = State::Http1(exchange);
                connection.was_idle = exchange.is_none();
                self.listen(index, false);
                if exchange.is_some() {
                    self.send(index, now);
                } else {
                    self.no_longer_ahead(site, index);
                    self.offer(index);
                }
            }
            Protocol::Http2 => {
                if is_tls && link.alpn() != Some(b"h2") {
                    self.close(index);
                    self.unopened(exchange, source, Failure::Protocol, now);
                    return;
                }
                let Some(link) = connection.link.take() else { return };
                let mut http2 = Box::new(Http2::begin_on(link, now));
                if let Some(exchange) = exchange {
                    http2.begin(exchange, &plan.targets[exchange.target], connection.deadline);
                }
                connection.state = State::Http2(http2);
                self.no_longer_ahead(site, index);
                self.listen(index, false);
                self.drive_http2(index, now);
            }
        }
    }

    /// Sends what is left of the request.
    fn send(&mut self, index: usize, now: u64) {
        let Some(connection) = self.table.get(index) else { return };
        let State::Http1(Some(exchange)) = &mut connection.state else { return };
        let Some(link) = &mut connection.link else { return };
        let bytes = &self.shared.plan.targets[exchange.target].http1[exchange.sent..];
        let written = if bytes.is_empty() { link.flush().map(|()| 0) } else { link.write(bytes) };
        match written {
            Ok(count) => {
                exchange.sent += count;
                let blocked = count < bytes.len() || link.is_blocked();
                self.recorder.sent(count);
                self.listen(index, blocked);
            }
            // A server may answer and close before it has read everything: its answer counts.
            Err(_) => self.receive(index, now),
        }
    }

    /// Has the poller wait for room, or not.
    pub(super) fn listen(&mut self, index: usize, room: bool) {
        let token = self.table.token(index);
        let Some(connection) = self.table.get(index) else { return };
        let interest = if room { Interest::ReadWrite } else { Interest::Read };
        if connection.interest == interest {
            return;
        }
        connection.interest = interest;
        let changed = match (&connection.link, &connection.state) {
            (Some(link), _) => self.poller.change(&link.socket, token, interest),
            (None, State::Http2(http2)) => {
                http2.with_socket(|socket| self.poller.change(socket, token, interest))
            }
            _ => Ok(()),
        };
        // It fails only for want of kernel memory; then the deadline ends what waits.
        drop(changed);
    }

    /// Reads what has come. Over TLS more than once, since a read yields one record at most; but not
    /// for as long as there is something, which may be for ever. What no event would announce, bytes
    /// that TLS has opened already, is never left: the room to read into holds several records.
    fn receive(&mut self, index: usize, now: u64) {
        for _ in 0..READS_MAX {
            if !self.receive_some(index, now) {
                return;
            }
        }
    }

    /// Whether there may be more to read.
    fn receive_some(&mut self, index: usize, now: u64) -> bool {
        let Some(connection) = self.table.get(index) else { return false };
        let State::Http1(under_way) = &mut connection.state else { return false };
        let Some(link) = &mut connection.link else { return false };
        let read = match link.read(&mut self.scratch) {
            Ok(None) => return false,
            Ok(Some(count)) => Ok(count),
            Err(error) => Err(error),
        };
        let Some(exchange) = under_way else {
            // An idle connection: the server has closed it, or sends unrequested data.
            self.close(index);
            return false;
        };
        let count = match read {
            Ok(count) if count > 0 => count,
            ended => {
                let moments = exchange.moments;
                let has_begun = connection.reader.has_begun();
                let status = connection.reader.end().filter(|_| ended.is_ok());
                let is_kept = (connection.served > 0 || connection.was_idle) && !has_begun;
                self.close(index);
                match (status, ended) {
                    (Some(status), _) => {
                        self.in_flight -= 1;
                        self.recorder.completed(&moments, status, now);
                    }
                    (None, ended) => self.fail_one(Self::break_of(ended, is_kept), now),
                }
                return false;
            }
        };
        if exchange.moments.first_byte == 0 {
            exchange.moments.first_byte = now;
        }
        let target = &self.shared.plan.targets[exchange.target];
        let mut body = 0;
        let bytes = &self.scratch[..count];
        let progress = connection.reader.feed(bytes, target.is_head, &mut self.head, &mut body);
        self.recorder.received(count, body);
        match progress {
            Ok(Progress::More) => return self.shared.plan.sites[connection.site].tls.is_some(),
            Ok(Progress::Whole { status, keeps }) => {
                let unsent = exchange.sent < target.http1.len();
                let moments = exchange.moments;
                *under_way = None;
                connection.served += 1;
                if connection.served % ROUND_TRIP_EVERY == 1
                    && let Ok(info) = os::tcp_info::read(&link.socket)
                {
                    let took = round_trip(&info, target.http1.len() as u64);
                    self.recorder.times.round_trip.saturating_record(nanos(took));
                }
                self.in_flight -= 1;
                self.recorder.completed(&moments, status, now);
                if keeps && !unsent && self.shared.plan.keep_alive {
                    self.offer(index);
                } else {
                    self.close(index);
                }
            }
            Err(_) => {
                self.close(index);
                self.fail_one(Failure::Protocol, now);
            }
        }
        false
    }

    /// What a connection's end in the middle of a request is.
    fn break_of(ended: io::Result<usize>, is_kept: bool) -> Failure {
        match ended.map_err(|error| Failure::of_io(&error)) {
            Err(Failure::Tls) => Failure::Tls,
            _ if is_kept => Failure::IdleClosed,
            Ok(_) => Failure::Incomplete,
            Err(failure) => failure,
        }
    }

    /// Ends what has taken too long.
    pub(crate) fn scan(&mut self, now: u64) {
        for index in 0..self.table.numbers() {
            let Some(connection) = self.table.get(index) else { continue };
            if let State::Http2(http2) = &mut connection.state {
                if http2.end_overdue(now) > 0 {
                    self.drive_http2(index, now);
                }
                continue;
            }
            match &mut connection.state {
                State::Http1(Some(_)) if now >= connection.deadline => {
                    self.close(index);
                    self.fail_one(Failure::ResponseTimeout, now);
                }
                &mut (State::Connecting(exchange) | State::Handshaking(exchange))
                    if now >= connection.deadline =>
                {
                    let source = connection.source;
                    self.close(index);
                    self.unopened(exchange, source, Failure::ConnectTimeout, now);
                }
                _ => {}
            }
        }
        self.end_put_back(now);
    }
}
