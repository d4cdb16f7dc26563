//! An exchange under way, as whoever looks in from outside sees it. Gathered when it is asked for;
//! nothing here is kept up to date on the request's path.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::Moment;

model::words! {
    /// How far an exchange (or a connection in tcp mode) has come.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Stage {
        /// It waits for a server's slot.
        Queue = "queue",
        /// A connection to the server is being made.
        Connect = "connect",
        /// The request is being sent, or the response head is awaited.
        Response = "response",
        /// The response body is being passed on.
        Body = "body",
        /// Bytes go both ways: tcp mode, or an upgraded connection.
        Tunnel = "tunnel",
    }
}

/// One exchange under way. In tcp mode there is no request: its texts are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// When the request head was complete (in tcp mode: when the connection was accepted).
    pub since: Moment,
    /// How far it has come.
    pub stage: Stage,
    /// X-Request-Id, if there is one.
    pub request_id: String,
    /// Who asked.
    pub client: SocketAddr,
    /// Where it came in.
    pub listener: Arc<str>,
    /// Request method.
    pub method: String,
    /// Host asked for.
    pub host: String,
    /// Path asked for, without the query, which may hold what is nobody's business.
    pub path: String,
    /// Where it was routed to.
    pub service: Option<Arc<str>>,
    /// The server of the present attempt.
    pub server: Option<SocketAddr>,
    /// Attempts begun.
    pub attempts: u32,
}

/// Which of what is under way is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFlightWanted {
    /// Only of this service.
    pub service: Option<String>,
    /// Only what is under way for at least this long.
    pub longer_than: Duration,
}

impl InFlightWanted {
    /// Whether something of this service that has been under way since then is meant.
    pub fn takes(&self, service: Option<&str>, since: Moment, now: Moment) -> bool {
        let of_service = self.service.is_none() || service == self.service.as_deref();
        of_service && now.since(since) >= self.longer_than
    }
}

/// What is told of what is under way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InFlightTold {
    /// All that is under way.
    pub in_flight: usize,
    /// What of it is asked for.
    pub matching: usize,
    /// Of these, those under way for longest, in any order; not all if there are very many.
    pub requests: Vec<InFlight>,
    /// Workers that did not answer in time; theirs is missing from all of the above.
    pub workers_silent: usize,
}

impl InFlightTold {
    /// Adds what another worker tells.
    pub fn add(&mut self, other: InFlightTold) {
        self.in_flight += other.in_flight;
        self.matching += other.matching;
        self.requests.extend(other.requests);
        self.workers_silent += other.workers_silent;
    }
}
