//! HAProxy's log formats, as of its manual, sections 8.2.2 (`option tcplog`) and 8.2.3 (`option
//! httplog`), with Weir's causes as termination states (section 8.5).
//!
//! ```text
//! client:port [accept date] frontend backend/server TR/Tw/Tc/Tr/Ta status bytes - - state \
//!     actconn/feconn/beconn/srv_conn/retries srv_queue/backend_queue "request line"
//! client:port [accept date] frontend backend/server Tw/Tc/Tt bytes state actconn/… srv_queue/…
//! ```

use std::time::Duration;

use model::{Cause, RedactQuery};

use super::AccessRecord;
use super::combined::push_clf_date;
use super::escape::{push_address, push_hex_upper};
use super::redact::push_url;
use crate::digits::push_u64;
use crate::timestamp::Timestamp;

/// What HAProxy counts at the end of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Concurrency {
    /// Client connections of the process.
    pub process: u64,
    /// Client connections of the listener.
    pub listener: u64,
    /// Requests in flight at the server.
    pub server: u64,
}

/// How far an exchange got, in the letters of a termination state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waiting for the request.
    Request = b'R' as isize,
    /// Waiting for a slot.
    Queue = b'Q' as isize,
    /// Connecting to a server.
    Connect = b'C' as isize,
    /// Waiting for the response's head.
    Head = b'H' as isize,
    /// Sending data.
    Data = b'D' as isize,
}

impl AccessRecord<'_> {
    /// Appends the record as a line of HAProxy's `httplog`, or `tcplog` in TCP mode. `started` is when
    /// it began. `spare` is overwritten.
    pub fn write_haproxy(
        &self,
        started: &Timestamp,
        concurrency: &Concurrency,
        redact: &RedactQuery,
        spare: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        let is_tcp = self.protocol == "TCP";
        let state = self.termination_state();
        push_address(out, self.client);
        if self.client.port() == 0 {
            out.extend_from_slice(b":0");
        }
        out.extend_from_slice(b" [");
        let text = started.as_bytes();
        push_clf_date(text, out);
        out.push(b':');
        out.extend_from_slice(&text[11..23]);
        out.extend_from_slice(b"] ");
        self.push_places(out);
        out.push(b' ');
        self.push_timers(is_tcp, state, out);
        if !is_tcp {
            out.push(b' ');
            match self.status {
                Some(status) => push_u64(out, u64::from(status)),
                None => out.extend_from_slice(b"-1"),
            }
        }
        out.push(b' ');
        push_u64(out, self.response_bytes);
        if !is_tcp {
            // Captured cookies.
            out.extend_from_slice(b" - -");
        }
        out.extend_from_slice(&[b' ', state[0], state[1]]);
        if !is_tcp {
            // How a cookie was treated.
            out.extend_from_slice(b"--");
        }
        self.push_counts(concurrency, out);
        if !is_tcp {
            out.extend_from_slice(b" \"");
            self.push_quoted_request(redact, spare, out);
            out.push(b'"');
        }
        out.push(b'\n');
    }

    /// Appends the frontend, with `~` for TLS, and backend and server.
    fn push_places(&self, out: &mut Vec<u8>) {
        push_name(self.listener, out);
        if self.tls.is_some() {
            out.push(b'~');
        }
        out.push(b' ');
        push_name(self.service.unwrap_or(self.listener), out);
        out.push(b'/');
        match self.server {
            Some(server) => push_name(server, out),
            None => out.extend_from_slice(b"<NOSRV>"),
        }
    }

    /// Appends the timers; -1 for a stage that was not completed.
    fn push_timers(&self, is_tcp: bool, state: [u8; 2], out: &mut Vec<u8>) {
        let timings = &self.timings;
        let reached = |phase: Phase| self.server.is_some() && state[1] != phase as u8;
        let queued = self.service.is_some() && (self.server.is_some() || !timings.queue.is_zero());
        let connected = reached(Phase::Connect);
        let answered = if is_tcp { connected } else { self.response.is_some() };
        if !is_tcp {
            // The time of the head's arrival is not part of `total`.
            out.extend_from_slice(if self.method.is_empty() { b"-1/" } else { b"0/" });
        }
        push_timer(queued.then_some(timings.queue), out);
        out.push(b'/');
        push_timer(connected.then_some(timings.connect), out);
        out.push(b'/');
        if !is_tcp {
            let before = timings.queue.saturating_add(timings.connect);
            push_timer(answered.then(|| timings.first_byte.saturating_sub(before)), out);
            out.push(b'/');
        }
        push_timer(Some(timings.total), out);
    }

    fn push_counts(&self, concurrency: &Concurrency, out: &mut Vec<u8>) {
        out.push(b' ');
        push_u64(out, concurrency.process);
        out.push(b'/');
        push_u64(out, concurrency.listener);
        // A service has no such count.
        out.extend_from_slice(b"/0/");
        push_u64(out, concurrency.server);
        // Each retry goes to another server if there is one.
        out.extend_from_slice(if self.failed_attempts.is_empty() { b"/" } else { b"/+" });
        push_u64(out, self.failed_attempts.len() as u64);
        out.extend_from_slice(b" 0/0");
    }

    fn push_quoted_request(&self, redact: &RedactQuery, spare: &mut Vec<u8>, out: &mut Vec<u8>) {
        let Some(request) = self.request else {
            out.extend_from_slice(b"<BADREQ>");
            return;
        };
        push_encoded(self.method, |_| false, out);
        out.push(b' ');
        spare.clear();
        push_url(request.target().as_bytes(), redact, spare);
        push_encoded(spare, |byte| byte == b' ', out);
        out.push(b' ');
        out.extend_from_slice(self.clf_protocol().as_bytes());
    }

    /// Returns the two letters of the termination state: who ended the exchange, and when.
    fn termination_state(&self) -> [u8; 2] {
        let (who, when) = termination(self.cause);
        let when = match (who, when) {
            (_, Some(when)) => when,
            (b'-', None) => return *b"--",
            (_, None) => self.phase(),
        };
        [who, when as u8]
    }

    /// Returns how far the exchange got.
    fn phase(&self) -> Phase {
        if self.response.is_some() {
            Phase::Data
        } else if self.server.is_some() {
            if self.protocol == "TCP" { Phase::Data } else { Phase::Head }
        } else if self.service.is_none() {
            Phase::Request
        } else if self.timings.queue.is_zero() {
            Phase::Connect
        } else {
            Phase::Queue
        }
    }
}

/// Returns who ended an exchange, in HAProxy's letters, and when, unless that depends on how far it
/// got:
///
/// `C` the client, `c` a timeout of the client, `S` the server or the network, `s` a timeout of the
/// server, `P` the proxy by its rules, `L` the proxy by answering itself, `R` a resource of the proxy,
/// `I` a fault of the proxy, `D` a server that is down, `K` an operator.
fn termination(cause: Cause) -> (u8, Option<Phase>) {
    use Phase::{Connect, Data, Head, Queue, Request};
    match cause {
        Cause::Completed => (b'-', None),
        Cause::Redirected | Cause::Responded | Cause::Maintenance => (b'L', Some(Request)),
        Cause::HttpRequestError
        | Cause::UriTooLong
        | Cause::HttpRequestHeadTooLarge
        | Cause::HttpRequestBodyTooLarge
        | Cause::HttpRequestNotImplemented
        | Cause::HttpVersionNotSupported
        | Cause::HttpExpectationFailed
        | Cause::ProxyProtocolError
        | Cause::EnhanceYourCalm
        | Cause::Http2ProtocolError
        | Cause::Http2StreamsExceeded
        | Cause::HttpMethodNotAllowed
        | Cause::MisdirectedRequest
        | Cause::HttpRequestDenied
        | Cause::Unauthenticated
        | Cause::RateLimited
        | Cause::ProxyLoopDetected
        | Cause::DestinationNotFound
        | Cause::ProxyConfigurationError => (b'P', Some(Request)),
        Cause::HttpRequestTimeout => (b'c', Some(Request)),
        Cause::HttpRequestIncomplete | Cause::ClientTlsError => (b'C', Some(Request)),
        Cause::HttpRequestBodyTimeout | Cause::HttpRequestBodySlow => (b'c', None),
        Cause::ClientWriteTimeout | Cause::TunnelIdleTimeout => (b'c', Some(Data)),
        Cause::ClientClosed | Cause::ClientReset => (b'C', None),
        Cause::AuthenticationOverloaded => (b'R', Some(Request)),
        // The server that failed is not the one of this request.
        Cause::AuthenticationUnavailable => (b'S', Some(Request)),
        Cause::AuthenticationTimeout => (b's', Some(Request)),
        Cause::DestinationUnavailable
        | Cause::DnsError
        | Cause::ConnectionRefused
        | Cause::DestinationIpUnroutable
        | Cause::TlsProtocolError
        | Cause::TlsCertificateError
        | Cause::TlsAlertReceived => (b'S', Some(Connect)),
        Cause::QueueFull => (b'P', Some(Queue)),
        Cause::QueueWaitExceeded => (b's', Some(Queue)),
        Cause::ConnectionTimeout | Cause::ListenQueueFull | Cause::ConnectSynUnanswered => {
            (b's', Some(Connect))
        }
        Cause::ConnectionLimitReached => (b'R', Some(Connect)),
        Cause::HttpStreamRefused
        | Cause::HttpStreamReset
        | Cause::ConnectionTerminated
        | Cause::ConnectionReset
        | Cause::ConnectionLost
        | Cause::ServerClosedIdleConnection => (b'S', None),
        Cause::HttpResponseIncomplete => (b'S', Some(Data)),
        Cause::HttpResponseTimeout => (b's', Some(Head)),
        Cause::ConnectionWriteTimeout
        | Cause::ConnectionReadTimeout
        | Cause::TotalTimeout
        | Cause::AttemptTimeout
        | Cause::ClientDeadlineExceeded => (b's', None),
        Cause::ServerMarkedDown => (b'D', None),
        Cause::HttpProtocolError
        | Cause::HttpResponseHeadTooLarge
        | Cause::HttpResponseTransferCoding
        | Cause::HttpUpgradeFailed => (b'P', Some(Head)),
        // Only of an attempt that was followed by another.
        Cause::HttpResponseStatus => (b'S', Some(Head)),
        Cause::HttpResponseTrailerTooLarge => (b'P', Some(Data)),
        Cause::ShuttingDown | Cause::ListenerChanged => (b'K', None),
        Cause::ProxyInternalError => (b'I', None),
    }
}

/// Appends a timer in milliseconds; -1 for one that never ended.
fn push_timer(time: Option<Duration>, out: &mut Vec<u8>) {
    match time {
        Some(time) => push_u64(out, u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        None => out.extend_from_slice(b"-1"),
    }
}

/// Appends a name of the configuration. HAProxy's names have no `/`, which separates two here.
fn push_name(name: &str, out: &mut Vec<u8>) {
    push_encoded(name.as_bytes(), |byte| matches!(byte, b' ' | b'/'), out);
}

/// Appends text as HAProxy encodes a request in a log: a quote, `#`, and every byte that is not
/// visible ASCII or a space becomes `#NN`. `also` encodes more.
fn push_encoded(text: &[u8], also: impl Fn(u8) -> bool, out: &mut Vec<u8>) {
    for &byte in text {
        if matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'#') && !also(byte) {
            out.push(byte);
        } else {
            out.push(b'#');
            push_hex_upper(out, byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Fault;

    use super::*;

    #[test]
    fn who_ended_it_fits_whose_fault_it_is() {
        for &cause in Cause::ALL {
            let (who, when) = termination(cause);
            let name = cause.name();
            let fits: &[u8] = match cause.fault() {
                Fault::None => b"-Lc",
                Fault::Client => b"CcPs",
                Fault::Server | Fault::Network => b"SsPD",
                Fault::Balancer => b"PRIKs",
                Fault::Configuration => b"PS",
            };
            assert!(fits.contains(&who), "{name}: {}", char::from(who));
            // A timeout of a queue or a connect has a fixed place.
            assert!(who != b'L' || when == Some(Phase::Request), "{name}");
        }
    }
}
