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
    /// The path of the list of all services, if it has one.
    const LIST: Option<&'static str> = None;

    /// The row in an answer about a service, which was last changed at `index`; `None`: it is not asked for.
    fn entry(row: &Self::Row, query: &Query, index: u64) -> Option<Value>;

    /// The list of all services.
    fn list(_services: &Services<Self::Row>) -> Value {
        Value::Null
    }

    /// Further header fields of an answer, each with its line end.
    fn further_fields(_stale: bool) -> String {
        String::new()
    }

    /// Does what a `PUT` asks. Returns status and text of the answer.
    fn put(_path: &str, _body: &[u8], _services: &mut Services<Self::Row>) -> (u16, String) {
        (405, "method PUT not allowed".to_owned())
    }

    /// Answers a `GET` that asks for something other than a service's rows, with status and text.
    fn get(_path: &str, _services: &Services<Self::Row>) -> Option<(u16, String)> {
        None
    }
}

/// Rows by the names of their services, and the index at which each service was last changed.
pub struct Services<R> {
    all: HashMap<String, (u64, Vec<R>)>,
    index: u64,
    /// That of services that were never set.
    index_of_unknown: u64,
}

impl<R> Services<R> {
    fn new() -> Services<R> {
        Services { all: HashMap::new(), index: 1, index_of_unknown: 1 }
    }

    /// The services that have rows, with these.
    pub fn listed(&self) -> impl Iterator<Item = (&str, &[R])> {
        let all = self.all.iter().map(|(name, (_, rows))| (name.as_str(), rows.as_slice()));
        all.filter(|(_, rows)| !rows.is_empty())
    }

    /// The index of a service; without a name, that of the list of all.
    pub(super) fn index_of(&self, service: &str) -> u64 {
        if service.is_empty() {
            return self.index;
        }
        self.all.get(service).map_or(self.index_of_unknown, |(index, _)| *index)
    }

    pub(super) fn rows(&self, service: &str) -> &[R] {
        self.all.get(service).map_or(&[], |(_, rows)| rows)
    }

    /// Returns the first row that `is_meant` says, with the name of its service.
    pub fn find(&self, is_meant: impl Fn(&R) -> bool) -> Option<(&str, &R)> {
        let mut all = self.all.iter();
        all.find_map(|(service, (_, rows))| {
            Some((&**service, rows.iter().find(|row| is_meant(row))?))
        })
    }

    pub(super) fn set(&mut self, service: &str, rows: Vec<R>) {
        self.index += 1;
        self.all.insert(service.to_owned(), (self.index, rows));
    }

    pub(super) fn set_index(&mut self, index: u64) {
        (self.index, self.index_of_unknown) = (index, index);
        self.all.values_mut().for_each(|(of_service, _)| *of_service = index);
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// Adds a row to a service.
    pub fn add(&mut self, service: &str, row: R) {
        self.index += 1;
        let (index, rows) = self.all.entry(service.to_owned()).or_default();
        *index = self.index;
        rows.push(row);
    }

    /// Removes the rows that `is_meant` says. Returns whether there were any.
    pub fn remove(&mut self, is_meant: impl Fn(&R) -> bool) -> bool {
        self.change(|rows| {
            let before = rows.len();
            rows.retain(|row| !is_meant(row));
            (rows.len() != before, rows.len() != before)
        })
    }

    /// Changes the rows that `is_meant` says; the index stays if they are equal to those before. Returns whether
    /// there were any.
    pub fn edit(&mut self, is_meant: impl Fn(&R) -> bool, edit: impl Fn(&mut R)) -> bool
    where
        R: Clone + PartialEq,
    {
        self.change(|rows| {
            let (mut is_there, mut is_changed) = (false, false);
            for row in rows.iter_mut().filter(|row| is_meant(row)) {
                let before = row.clone();
                edit(row);
                is_there = true;
                is_changed |= *row != before;
            }
            (is_there, is_changed)
        })
    }

    /// Changes the rows of each service with `change`, which returns whether it found rows and whether it changed
    /// them. Returns whether it found any.
    fn change(&mut self, mut change: impl FnMut(&mut Vec<R>) -> (bool, bool)) -> bool {
        let next = self.index + 1;
        let mut is_there = false;
        for (index, rows) in self.all.values_mut() {
            let (found, changed) = change(rows);
            is_there |= found;
            if changed {
                (*index, self.index) = (next, next);
            }
        }
        is_there
    }
}

/// A question about a service.
pub struct Query {
    /// Its name; empty: about the list of all services.
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
            || state.services.index_of(&self.service) > self.index;
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
    /// Its method.
    pub method: String,
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
    pub(super) services: Services<A::Row>,
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
            services: Services::new(),
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

    /// Header fields and body of the answer to a query.
    pub(super) fn answer(&self, query: &Query) -> (String, Vec<u8>) {
        let index = self.services.index_of(&query.service);
        if query.service.is_empty() {
            let body = serde_json::to_vec(&A::list(&self.services)).expect("JSON");
            return (self.fields(&index.to_string(), query.stale), body);
        }
        let all = self.services.rows(&query.service).iter();
        let entries: Vec<_> = all.filter_map(|one| A::entry(one, query, index)).collect();
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
