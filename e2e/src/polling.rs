//! A server inside the test that answers blocking queries (long polling) as Consul and Nomad do: with the rows that
//! the test sets, and it fails on demand. [`Api`] says what differs between the two.
//!
//! As an agent does, it answers a query with an index above the current one only after the whole wait. It has no
//! other path, and it knows no ACLs: a test chooses what a token gets with a [`Fault`]. A service that was never set
//! has the index 1 and no rows.

mod serve;
mod state;

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serve::serve;
use state::State;
pub use state::{Api, Fault, Query, Recorded, Services};

/// A running one. It ends when it is dropped.
pub struct LongPolling<A: Api> {
    address: SocketAddr,
    state: Arc<Mutex<State<A>>>,
    /// The thread that serves all connections, and what wakes it.
    server: Option<(JoinHandle<()>, UnixStream)>,
}

impl<A: Api> LongPolling<A> {
    /// Starts one at `address`.
    pub fn start(address: SocketAddr) -> LongPolling<A> {
        let state = Arc::new(Mutex::new(State::new()));
        let mut fake = LongPolling { address, state, server: None };
        fake.start_again();
        fake
    }

    /// Listens again, after [`LongPolling::stop`], with the same services.
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

    /// Closes all connections and refuses further ones until [`LongPolling::start_again`].
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

    /// Sets the rows of a service, which increases the index and ends its blocking queries. Returns when
    /// that was.
    pub fn set(&self, service: &str, rows: &[A::Row]) -> Instant {
        self.change(|state| {
            state.services.set(service, rows.to_vec());
            Instant::now()
        })
    }

    /// The rows of a service at present.
    pub fn rows(&self, service: &str) -> Vec<A::Row> {
        self.lock().services.rows(service).to_vec()
    }

    /// Forgets all services, as an agent without data that starts again.
    pub fn forget(&self) {
        self.change(|state| {
            state.services.clear();
            state.resets += 1;
        });
    }

    /// Sets the index of everything and answers all blocking queries, as the real server does when its state is restored from
    /// a snapshot.
    pub fn set_index(&self, index: u64) {
        self.change(|state| {
            state.services.set_index(index);
            state.resets += 1;
        });
    }

    /// The index of a service.
    pub fn index(&self, service: &str) -> u64 {
        self.lock().services.index_of(service)
    }

    /// Sends this as the index in the header field, whatever the index is; no such field if it is empty. `None` ends
    /// that.
    pub fn set_index_field(&self, text: Option<&str>) {
        self.change(|state| state.index_field = text.map(str::to_owned));
    }

    /// What the header fields say about a leader and the last contact with it.
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

    fn lock(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the thread that serves.
    fn change<T>(&self, change: impl FnOnce(&mut State<A>) -> T) -> T {
        let result = change(&mut self.lock());
        if let Some((_, waker)) = &self.server {
            // If the socket is full, the thread is about to wake anyway.
            let mut waker = waker;
            drop(waker.write(&[0]));
        }
        result
    }
}

impl<A: Api> Drop for LongPolling<A> {
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
