//! What must be watched from one second to the next: since when shares are the same, and since when a
//! server is silent.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use decide::{Endpoints, Published};
use model::{Address, ServerState};

/// All services that are watched.
#[derive(Debug, Default)]
pub(super) struct Watched {
    second: u64,
    services: HashMap<Arc<str>, Service>,
}

#[derive(Debug, Default)]
struct Service {
    /// A hash of which servers receive new requests, with their weights.
    shares: u64,
    settled_since: u64,
    /// The servers at which requests wait.
    servers: HashMap<Address, Server>,
}

/// A server at which requests wait for their response.
#[derive(Clone, Copy, Debug)]
struct Server {
    waiting: u64,
    responses: u64,
    /// Since when no response has come.
    silent_since: u64,
}

impl Watched {
    /// Takes in the state of a second.
    pub(super) fn update(&mut self, second: u64, published: &Published) {
        self.second = second;
        if self.services.len() > published.services.len() {
            let names: HashSet<&Arc<str>> =
                published.services.iter().map(|service| service.name()).collect();
            self.services.retain(|name, _| names.contains(name));
        }
        for service in &published.services {
            let watched = self.services.entry(Arc::clone(service.name())).or_default();
            watched.update(second, &service.endpoints());
        }
    }

    /// Returns for how many seconds a service's shares have been the same.
    pub(super) fn settled_s(&self, service: &str) -> u64 {
        let since = self.services.get(service).map_or(self.second, |one| one.settled_since);
        self.second.saturating_sub(since)
    }

    /// Returns how many requests wait for a server's response, and for how many seconds none has come.
    pub(super) fn waiting(&self, service: &str, server: Address) -> (u64, u64) {
        let server = self.services.get(service).and_then(|one| one.servers.get(&server));
        server.map_or((0, 0), |one| (one.waiting, self.second.saturating_sub(one.silent_since)))
    }
}

impl Service {
    fn update(&mut self, second: u64, endpoints: &Endpoints) {
        let shares = shares(endpoints);
        // During a slow start they change all the time.
        if shares != self.shares || endpoints.refresh_due.is_some() {
            (self.shares, self.settled_since) = (shares, second);
        }
        let servers = endpoints.all.iter().filter_map(|endpoint| {
            let address = endpoint.row.address;
            Some((address, Server::after(self.servers.get(&address), &endpoint.state, second)?))
        });
        self.servers = servers.collect();
    }
}

impl Server {
    /// Returns `None` if no request waits. Counters of other workers may be a moment apart.
    fn after(before: Option<&Server>, state: &ServerState, second: u64) -> Option<Server> {
        let responses = state.latency.first_byte.count_and_sum_us().0;
        let ended = responses + state.unanswered.load(Relaxed);
        let waiting = state.requests.load(Relaxed).checked_sub(ended).filter(|&count| count > 0)?;
        let same = before.filter(|before| before.responses == responses);
        let silent_since = same.map_or(second, |before| before.silent_since);
        Some(Server { waiting, responses, silent_since })
    }
}

fn shares(endpoints: &Endpoints) -> u64 {
    let mut hasher = DefaultHasher::new();
    for endpoint in endpoints.eligible() {
        (endpoint.row.address, endpoint.weight()).hash(&mut hasher);
    }
    hasher.finish()
}
