//! A report of an exchange in flight. Collected on request; nothing here is updated on the
//! request's path.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::{Address, Moment};

model::words! {
    /// The stage of an exchange (or a connection in TCP mode).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Stage {
        /// It waits for a server's slot.
        Queue = "queue",
        /// A connection to the server is being opened.
        Connect = "connect",
        /// The request is being sent, or Weir waits for the response head.
        Response = "response",
        /// The response body is being forwarded.
        Body = "body",
        /// Bytes flow both ways: TCP mode, or an upgraded connection.
        Tunnel = "tunnel",
    }
}

/// One exchange in flight. In TCP mode there is no request: its strings are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// When the request head was complete (in TCP mode: when the connection was accepted).
    pub since: Moment,
    /// Its stage.
    pub stage: Stage,
    /// X-Request-Id, if there is one.
    pub request_id: String,
    /// The client's address.
    pub client: SocketAddr,
    /// The listener that accepted it.
    pub listener: Arc<str>,
    /// Request method.
    pub method: String,
    /// The requested host.
    pub host: String,
    /// The requested path, without the query, which may contain sensitive data.
    pub path: String,
    /// The service it was routed to.
    pub service: Option<Arc<str>>,
    /// The server of the current attempt.
    pub server: Option<Address>,
    /// Number of attempts so far.
    pub attempts: u32,
}

/// The filter of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFlightFilter {
    /// Only this service.
    pub service: Option<String>,
    /// Only exchanges that have been in flight for at least this long.
    pub longer_than: Duration,
}

impl InFlightFilter {
    /// Returns whether an exchange of this service that started at `since` matches.
    pub fn takes(&self, service: Option<&str>, since: Moment, now: Moment) -> bool {
        let of_service = self.service.is_none() || service == self.service.as_deref();
        of_service && now.since(since) >= self.longer_than
    }
}

/// The report of exchanges in flight.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InFlightReport {
    /// Number of all exchanges in flight.
    pub in_flight: usize,
    /// Number of matching ones.
    pub matching: usize,
    /// The longest-running of these, in any order; not all if there are very many.
    pub requests: Vec<InFlight>,
    /// Workers that did not answer in time; their exchanges are missing from all of the above.
    pub workers_silent: usize,
}

impl InFlightReport {
    /// Adds another worker's report.
    pub fn add(&mut self, other: InFlightReport) {
        self.in_flight += other.in_flight;
        self.matching += other.matching;
        self.requests.extend(other.requests);
        self.workers_silent += other.workers_silent;
    }
}
