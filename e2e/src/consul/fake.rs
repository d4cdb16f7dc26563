//! A Consul inside the test: it answers `GET /v1/health/service/NAME` with what the test sets, and it
//! fails on demand.
//!
//! It supports blocking queries, `?passing`, and the header fields of an agent. As an agent does, it answers a query
//! with an index above the current one only after the whole wait. It has no other path, and it
//! knows no ACLs: a test chooses what a token gets with [`Fault::acl_not_found`]. A service that was never set has
//! the index 1 and no instances.

use std::collections::HashMap;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Instance;
use super::fake_http::{Query, serve};

/// What goes wrong with requests that arrive from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An answer at once, with this status and body, and `X-Consul-Index` only if the status is 200.
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
    /// `X-Consul-Token`, or the bearer token of `Authorization`.
    pub token: Option<String>,
    /// How many connections came before the one that it came over.
    pub connection: u64,
}

impl Recorded {
    /// A parameter of the query; empty if it has no value.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        super::fake_http::parameter(&self.query, name)
    }
}

/// What the test has set and what has happened.
pub(super) struct State {
    services: HashMap<String, (u64, Vec<Instance>)>,
    index: u64,
    /// The index of services that were never set.
    index_of_unknown: u64,
    /// Changes when queries that are held must be answered, whatever the index is.
    pub(super) resets: u64,
    pub(super) fault: Option<Fault>,
    index_field: Option<String>,
    has_leader: bool,
    last_contact: Duration,
    pub(super) requests: Vec<Recorded>,
    pub(super) open_connections: usize,
    pub(super) accepted: u64,
    pub(super) held: usize,
    /// Changes when all connections must be closed.
    pub(super) disconnects: u64,
    pub(super) is_stopped: bool,
}

impl State {
    fn new() -> State {
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
        let listed = all.iter().filter(|one| !query.passing || one.is_passing());
        let entries: Vec<_> = listed.map(|one| one.entry(&query.service, index)).collect();
        let body = serde_json::to_vec(&entries).expect("JSON");
        (self.fields(&index.to_string(), query.stale), body)
    }

    /// The header fields of an answer with status 200.
    pub(super) fn fields(&self, index: &str, stale: bool) -> String {
        let index = self.index_field.as_deref().unwrap_or(index);
        let index_line =
            if index.is_empty() { String::new() } else { format!("X-Consul-Index: {index}\r\n") };
        let consistency = if stale { "stale" } else { "leader" };
        // Written as Go's library writes them.
        format!(
            "{index_line}X-Consul-Effective-Consistency: {consistency}\r\n\
             X-Consul-Knownleader: {}\r\nX-Consul-Lastcontact: {}\r\n",
            self.has_leader,
            self.last_contact.as_millis(),
        )
    }
}

/// A running one. It ends when it is dropped.
pub struct FakeConsul {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    /// The thread that serves all connections, and what wakes it.
    server: Option<(JoinHandle<()>, UnixStream)>,
}

impl FakeConsul {
    /// Starts one at `address`.
    pub fn start(address: SocketAddr) -> FakeConsul {
        let state = Arc::new(Mutex::new(State::new()));
        let mut fake = FakeConsul { address, state, server: None };
        fake.start_again();
        fake
    }

    /// Listens again, after [`FakeConsul::stop`], with the same services.
    pub fn start_again(&mut self) {
        assert!(self.server.is_none(), "it is running");
        allow_many_descriptors();
        let listener = TcpListener::bind(self.address).expect("a free address");
        self.address = listener.local_addr().expect("its address");
        let (waker, woken) = UnixStream::pair().expect("a pair of sockets");
        waker.set_nonblocking(true).expect("a socket that does not block");
        self.lock().is_stopped = false;
        let state = Arc::clone(&self.state);
        let thread = std::thread::spawn(move || serve(&listener, &woken, &state));
        self.server = Some((thread, waker));
    }

    /// Closes all connections and refuses further ones until [`FakeConsul::start_again`].
    pub fn stop(&mut self) {
        self.change(|state| state.is_stopped = true);
        if let Some((thread, _)) = self.server.take() {
            // If it has panicked, the test fails with what it lacks.
            drop(thread.join());
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients reach it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the instances of a service, which increases the index and ends its blocking queries. Returns when
    /// that was.
    pub fn set(&self, service: &str, instances: &[Instance]) -> Instant {
        self.change(|state| {
            state.index += 1;
            state.services.insert(service.to_owned(), (state.index, instances.to_vec()));
            Instant::now()
        })
    }

    /// Sets the index of everything and answers all blocking queries, as Consul does when its state is restored from
    /// a snapshot.
    pub fn set_index(&self, index: u64) {
        self.change(|state| {
            state.index = index;
            state.index_of_unknown = index;
            state.services.values_mut().for_each(|(of_service, _)| *of_service = index);
            state.resets += 1;
        });
    }

    /// The index of a service.
    pub fn index(&self, service: &str) -> u64 {
        self.lock().index_of(service)
    }

    /// Sends this as `X-Consul-Index`, whatever the index is; no such field if it is empty. `None` ends
    /// that.
    pub fn set_index_field(&self, text: Option<&str>) {
        self.change(|state| state.index_field = text.map(str::to_owned));
    }

    /// What `X-Consul-KnownLeader` and `X-Consul-LastContact` say.
    pub fn set_leader(&self, is_known: bool, last_contact: Duration) {
        self.change(|state| (state.has_leader, state.last_contact) = (is_known, last_contact));
    }

    /// Sets what goes wrong with requests that arrive from now on. Those that are held are answered as usual.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.change(|state| state.fault = fault);
    }

    /// Closes all connections that are open.
    pub fn disconnect(&self) {
        self.change(|state| state.disconnects += 1);
    }

    /// The requests received so far, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.lock().requests.clone()
    }

    /// Returns the requests received so far and forgets them.
    pub fn take_requests(&self) -> Vec<Recorded> {
        std::mem::take(&mut self.lock().requests)
    }

    /// How many connections are open.
    pub fn open_connections(&self) -> usize {
        self.lock().open_connections
    }

    /// How many connections were accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.lock().accepted
    }

    /// How many queries wait for a change or for the end of a delay.
    pub fn held(&self) -> usize {
        self.lock().held
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the thread that serves.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        if let Some((_, waker)) = &self.server {
            // If the socket is full, the thread is about to wake anyway.
            let mut waker = waker;
            drop(waker.write(&[0]));
        }
        result
    }
}

impl Drop for FakeConsul {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Thousands of connections take more descriptors than a process may have by default.
fn allow_many_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Without the right to it, tests with fewer connections can still run.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::consul::Health;
    use crate::http::{Connection, Response, get, get_with};
    use crate::wait;

    const SOON: Duration = Duration::from_secs(20);
    const WEB: &str = "/v1/health/service/web";

    fn fake() -> FakeConsul {
        FakeConsul::start((Ipv4Addr::LOCALHOST, 0).into())
    }

    fn instance(id: &str) -> Instance {
        Instance::new(id, "10.0.0.1:80".parse().unwrap())
    }

    fn index(answer: &Response) -> &str {
        answer.field("x-consul-index").unwrap_or_default()
    }

    fn ids(answer: &Response) -> Vec<String> {
        let entries = answer.json();
        let entries = entries.as_array().expect("a list").iter();
        entries.map(|one| one["Service"]["ID"].as_str().expect("an ID").to_owned()).collect()
    }

    #[test]
    fn blocking_queries_end_at_a_change_of_their_service() {
        let fake = fake();
        fake.set("web", &[instance("a")]);
        let first = get(fake.address(), WEB).unwrap();
        assert_eq!((index(&first), ids(&first)), ("2", vec!["a".to_owned()]));
        let mut connection = Connection::open(fake.address()).unwrap();
        let query = format!("GET {WEB}?index=2&wait=60s HTTP/1.1\r\nHost: x\r\n\r\n");
        connection.send(query.as_bytes()).unwrap();
        wait::until("the query", SOON, || (fake.held() == 1).then_some(()));
        fake.set("other", &[]);
        assert_eq!(fake.held(), 1);
        fake.set("web", &[instance("a"), instance("b").health(Health::Critical)]);
        let second = connection.response(false).unwrap();
        assert_eq!((index(&second), ids(&second).len()), ("4", 2));
        let passing = connection.get(&format!("{WEB}?passing"), &[]).unwrap();
        assert_eq!(ids(&passing), ["a"]);
        let begun = Instant::now();
        let same = connection.get(&format!("{WEB}?index=4&wait=50ms"), &[]).unwrap();
        assert_eq!(index(&same), "4");
        assert!(begun.elapsed() >= Duration::from_millis(50));
        connection.send(query.replace("index=2", "index=4").as_bytes()).unwrap();
        wait::until("the query", SOON, || (fake.held() == 1).then_some(()));
        fake.set_index(1);
        assert_eq!(index(&connection.response(false).unwrap()), "1");
    }

    #[test]
    fn faults_are_as_asked_and_requests_are_recorded() {
        let mut fake = fake();
        fake.set("web", &[instance("a")]);
        let at = fake.address();
        for (fault, status) in [
            (Fault::no_leader(), 500),
            (Fault::acl_not_found(), 403),
            (Fault::rate_limited(), 429),
            (Fault::malformed(), 200),
        ] {
            fake.set_fault(Some(fault));
            let answer = get(at, WEB).unwrap();
            assert_eq!((answer.status, answer.json().is_null()), (status, true));
        }
        fake.set_fault(Some(Fault::Huge(1 << 20)));
        assert_eq!(get(at, WEB).unwrap().body.len(), 1 << 20);
        fake.set_fault(Some(Fault::Close));
        assert!(get(at, WEB).is_err());
        fake.set_fault(Some(Fault::Slow(Duration::from_millis(50))));
        let begun = Instant::now();
        assert_eq!(get(at, WEB).unwrap().status, 200);
        assert!(begun.elapsed() >= Duration::from_millis(50));
        fake.set_fault(Some(Fault::Hang));
        let mut hung = Connection::open(at).unwrap();
        hung.send(b"GET /v1/health/service/web HTTP/1.1\r\n\r\n").unwrap();
        wait::until("the request", SOON, || (fake.requests().len() == 8).then_some(()));
        fake.set_fault(None);
        fake.take_requests();
        get_with(at, &format!("{WEB}?stale&index=0"), &["X-Consul-Token: secret"]).unwrap();
        let recorded = fake.take_requests().remove(0);
        assert_eq!((recorded.path.as_str(), recorded.token.as_deref()), (WEB, Some("secret")));
        assert_eq!(
            (recorded.parameter("stale"), recorded.parameter("index")),
            (Some(""), Some("0"))
        );
        assert_eq!(get(at, &format!("{WEB}?index=x")).unwrap().status, 400);
        fake.set_index_field(Some(""));
        fake.set_leader(false, Duration::from_secs(2));
        let answer = get(at, WEB).unwrap();
        assert_eq!((index(&answer), answer.field("x-consul-knownleader")), ("", Some("false")));
        assert_eq!(answer.field("x-consul-lastcontact"), Some("2000"));
        fake.stop();
        assert!(hung.is_closed_within(SOON));
        assert!(Connection::open(at).is_err(), "it refuses connections");
        fake.start_again();
        assert_eq!(ids(&get(at, WEB).unwrap()), ["a"]);
    }

    #[test]
    fn two_thousand_blocking_queries_are_held_by_one_thread() {
        let fake = fake();
        let open = |n: usize| {
            let mut connection = Connection::open(fake.address()).unwrap();
            let query = format!("GET {WEB}?index=1 HTTP/1.1\r\nHost: {n}\r\n\r\n");
            connection.send(query.as_bytes()).unwrap();
            connection
        };
        let mut all: Vec<_> = (0..2_000).map(open).collect();
        wait::until("all queries", SOON, || (fake.held() == all.len()).then_some(()));
        assert_eq!(fake.open_connections(), all.len());
        fake.set("web", &[instance("a")]);
        for connection in &mut all {
            assert_eq!(index(&connection.response(false).unwrap()), "2");
        }
        fake.disconnect();
        assert!(all.iter_mut().all(|one| one.is_closed_within(SOON)));
        wait::until("no connection", SOON, || (fake.open_connections() == 0).then_some(()));
    }
}
