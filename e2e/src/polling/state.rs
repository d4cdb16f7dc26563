//! What a fake of Consul or Nomad knows: rows of services with their indexes, faults, and what has happened.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;

/// What differs between the servers that answer blocking queries.
pub trait Api: Send + 'static {
    /// A row of an answer, as tests write it.
    type Row: Clone + Send;
    /// The server's name in its header fields: `X-NAME-Index`, `X-NAME-Token`.
    const NAME: &'static str;
    /// The path in front of the name of a service.
    const PREFIX: &'static str;

    /// The row in an answer about a service, which was last changed at `index`; `None`: it is not asked for.
    fn entry(row: &Self::Row, query: &Query, index: u64) -> Option<Value>;

    /// Further header fields of an answer, each with its line end.
    fn further_fields(_stale: bool) -> String {
        String::new()
    }
}

/// A question about a service.
pub struct Query {
    /// Its name.
    pub service: String,
    /// Whether only rows are asked for whose checks pass.
    pub passing: bool,
    /// Whether any server may answer.
    pub stale: bool,
    pub(super) index: u64,
    /// When it is answered, whatever has changed.
    pub(super) until: Instant,
    /// It is not answered before.
    pub(super) not_before: Instant,
    /// [`State::resets`] when it came.
    pub(super) resets: u64,
}

impl Query {
    /// When it is to be answered, as things are now.
    pub(super) fn ready_at<A: Api>(&self, state: &State<A>) -> Instant {
        let has_changed = self.index == 0
            || self.resets != state.resets
            || state.index_of(&self.service) > self.index;
        if has_changed { self.not_before } else { self.until.max(self.not_before) }
    }
}

/// What goes wrong with requests that arrive from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An answer at once, with this status and body, and the index only if the status is 200.
    Answer(u16, String),
    /// The right answer, this much later.
    Slow(Duration),
    /// No answer.
    Hang,
    /// The connection is closed.
    Close,
    /// An answer of this many bytes: an empty list behind a lot of white space.
    Huge(usize),
}

impl Fault {
    /// As an agent that knows no leader.
    pub fn no_leader() -> Fault {
        Fault::Answer(500, "No cluster leader".to_owned())
    }

    /// As an agent that does not know the token.
    pub fn acl_not_found() -> Fault {
        Fault::Answer(403, "ACL not found".to_owned())
    }

    /// As an agent whose limit of connections per client is reached.
    pub fn rate_limited() -> Fault {
        let text =
            "Your IP is issuing too many concurrent connections, please rate limit your calls\n";
        Fault::Answer(429, text.to_owned())
    }

    /// As an agent of Nomad whose token may not read the service.
    pub fn permission_denied() -> Fault {
        Fault::Answer(403, "Permission denied".to_owned())
    }

    /// A list that breaks off.
    pub fn malformed() -> Fault {
        Fault::Answer(200, "[{\"Node\": {\"ID\": \"".to_owned())
    }
}

/// A request that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// When it was complete.
    pub at: Instant,
    /// The path, without the query.
    pub path: String,
    /// What stands behind the question mark.
    pub query: String,
    /// `X-Consul-Token` or the like, or the bearer token of `Authorization`.
    pub token: Option<String>,
    /// How many connections came before the one that it came over.
    pub connection: u64,
}

impl Recorded {
    /// A parameter of the query; empty if it has no value.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        parameter(&self.query, name)
    }
}

/// What the test has set and what has happened.
pub(super) struct State<A: Api> {
    pub(super) services: HashMap<String, (u64, Vec<A::Row>)>,
    pub(super) index: u64,
    /// The index of services that were never set.
    pub(super) index_of_unknown: u64,
    /// Changes when queries that are held must be answered, whatever the index is.
    pub(super) resets: u64,
    pub(super) fault: Option<Fault>,
    pub(super) index_field: Option<String>,
    pub(super) has_leader: bool,
    pub(super) last_contact: Duration,
    pub(super) requests: Vec<Recorded>,
    pub(super) open_connections: usize,
    pub(super) accepted: u64,
    pub(super) held: usize,
    /// Changes when all connections must be closed.
    pub(super) disconnects: u64,
    pub(super) is_stopped: bool,
}

impl<A: Api> State<A> {
    pub(super) fn new() -> State<A> {
        State {
            services: HashMap::new(),
            index: 1,
            index_of_unknown: 1,
            resets: 0,
            fault: None,
            index_field: None,
            has_leader: true,
            last_contact: Duration::ZERO,
            requests: Vec::new(),
            open_connections: 0,
            accepted: 0,
            held: 0,
            disconnects: 0,
            is_stopped: false,
        }
    }

    /// The index of a service.
    pub(super) fn index_of(&self, service: &str) -> u64 {
        self.services.get(service).map_or(self.index_of_unknown, |(index, _)| *index)
    }

    /// Header fields and body of the answer to a query.
    pub(super) fn answer(&self, query: &Query) -> (String, Vec<u8>) {
        let index = self.index_of(&query.service);
        let all = self.services.get(&query.service).map_or(&[][..], |(_, all)| all);
        let entries: Vec<_> = all.iter().filter_map(|one| A::entry(one, query, index)).collect();
        let body = serde_json::to_vec(&entries).expect("JSON");
        (self.fields(&index.to_string(), query.stale), body)
    }

    /// The header fields of an answer with status 200.
    pub(super) fn fields(&self, index: &str, stale: bool) -> String {
        let (name, further) = (A::NAME, A::further_fields(stale));
        let index = self.index_field.as_deref().unwrap_or(index);
        let index_line =
            if index.is_empty() { String::new() } else { format!("X-{name}-Index: {index}\r\n") };
        // Written as Go's library writes them.
        format!(
            "{index_line}{further}X-{name}-Knownleader: {}\r\nX-{name}-Lastcontact: {}\r\n",
            self.has_leader,
            self.last_contact.as_millis(),
        )
    }
}

/// A parameter of a query; empty if it has no value.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let mut all = query.split('&').map(|one| one.split_once('=').unwrap_or((one, "")));
    all.find(|(key, _)| *key == name).map(|(_, value)| value)
}
