//! Service discovery for servers given by name: when each name is looked up, and the results.
//!
//! Lookups are started here and run as local tasks; their answers come back to the control loop,
//! which passes them to [`Discovery::on_answer`]. One lookup serves every service that names the
//! host, whatever the port. Each source of addresses is a separate file; currently there is only
//! `dns`.

mod dns;
mod known;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use model::{Address, EndpointRow, EndpointSet, Moment, ServerTarget, Service, Snapshot};
use tokio::sync::mpsc;

use dns::Dns;
pub(crate) use known::Answer;
use known::Known;
pub use known::Source;

/// Maximum number of concurrent lookups; further names wait.
const LOOKUPS_RUNNING_MAX: usize = 64;

/// An answer on its way to the control loop: the name and its result.
pub(crate) type Answered = (String, Answer);

/// The state of one name, for status pages.
#[derive(Clone, Debug)]
pub struct Discovered {
    /// The host name.
    pub host: String,
    /// The last good set.
    pub addresses: Vec<IpAddr>,
    /// Where it came from; `None` while there was no good answer.
    pub source: Option<Source>,
    /// When the set last changed.
    pub changed_at: Option<Moment>,
    /// When an answer last confirmed it.
    pub confirmed_at: Option<Moment>,
    /// When it is looked up next.
    pub next_at: Moment,
    /// Why the last lookup was not fully successful, if it was not.
    pub error: Option<String>,
}

/// Every name in use.
pub(crate) struct Discovery {
    nameserver: Option<SocketAddr>,
    dns: Dns,
    names: BTreeMap<String, Entry>,
    running: usize,
    answers: mpsc::Sender<Answered>,
}

struct Entry {
    known: Known,
    due: Moment,
    running: bool,
    /// Whether a lookup has ended, successful or not.
    tried: bool,
}

impl Discovery {
    /// Returns a discovery without names. Answers are sent to `answers`.
    pub(crate) fn new(
        nameserver: Option<SocketAddr>,
        answers: mpsc::Sender<Answered>,
    ) -> Discovery {
        Discovery {
            nameserver,
            dns: Dns::new(nameserver),
            names: BTreeMap::new(),
            running: 0,
            answers,
        }
    }

    /// Applies a changed configuration: new names are looked up at once, unused ones are dropped,
    /// the state of the others stays.
    pub(crate) fn follow(&mut self, snapshot: &Snapshot, now: Moment) {
        if self.nameserver != snapshot.resolver {
            self.nameserver = snapshot.resolver;
            self.dns = Dns::new(snapshot.resolver);
            for entry in self.names.values_mut() {
                entry.due = now;
            }
        }
        let wanted: BTreeSet<&str> =
            snapshot.services.iter().flat_map(|service| hosts(service)).collect();
        self.names.retain(|host, _| wanted.contains(host.as_str()));
        self.expect(snapshot, now);
    }

    /// Starts looking up the names of a configuration that may come into force; those of the
    /// current one stay.
    pub(crate) fn expect(&mut self, snapshot: &Snapshot, now: Moment) {
        let wanted: BTreeSet<&str> =
            snapshot.services.iter().flat_map(|service| hosts(service)).collect();
        for host in wanted {
            self.names.entry(host.to_owned()).or_insert_with(|| Entry {
                known: Known::default(),
                due: now,
                running: false,
                tried: false,
            });
        }
    }

    /// Starts the lookups that are due.
    pub(crate) fn start_due(&mut self, now: Moment) {
        for (host, entry) in &mut self.names {
            if self.running >= LOOKUPS_RUNNING_MAX {
                break;
            }
            if entry.running || entry.due > now {
                continue;
            }
            entry.running = true;
            self.running += 1;
            let lookup = self.dns.lookup(host);
            let (host, answers) = (host.clone(), self.answers.clone());
            tokio::task::spawn_local(async move {
                let answer = lookup.await;
                // The loop is gone only when the process stops.
                let _ = answers.send((host, answer)).await;
            });
        }
    }

    /// Returns when [`Discovery::start_due`] next has work to do.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        if self.running >= LOOKUPS_RUNNING_MAX {
            return None;
        }
        self.names.values().filter(|entry| !entry.running).map(|entry| entry.due).min()
    }

    /// Merges an answer. Returns whether the name's addresses changed.
    pub(crate) fn on_answer(&mut self, host: &str, answer: Answer, now: Moment) -> bool {
        self.running = self.running.saturating_sub(1);
        let Some(entry) = self.names.get_mut(host) else {
            return false;
        };
        entry.running = false;
        entry.tried = true;
        let error_before = entry.known.error().map(str::to_owned);
        let (changed, again) = entry.known.fold(answer, now);
        entry.due = now + again;
        log(host, &entry.known, changed, error_before.as_deref(), again);
        changed
    }

    /// Returns whether `host` has been looked up at least once, successfully or not.
    pub(crate) fn is_tried(&self, host: &str) -> bool {
        self.names.get(host).is_some_and(|entry| entry.tried)
    }

    /// Returns whether every name has been tried at least once.
    pub(crate) fn all_tried(&self) -> bool {
        self.names.values().all(|entry| entry.tried)
    }

    /// Returns the state of each name.
    pub(crate) fn status(&self) -> Vec<Discovered> {
        let entries = self.names.iter();
        entries
            .map(|(host, Entry { known, due, .. })| Discovered {
                host: host.clone(),
                addresses: known.addresses().collect(),
                source: known.source(),
                changed_at: known.changed_at(),
                confirmed_at: known.confirmed_at(),
                next_at: *due,
                error: known.error().map(str::to_owned),
            })
            .collect()
    }

    /// Returns the servers of `service` with the addresses of its names: in order of configuration,
    /// then of address; an address that two of its servers share is listed where it occurs first.
    pub(crate) fn endpoints(&self, service: &Service) -> EndpointSet {
        endpoints(service, |host| {
            let known = self.names.get(host).map(|entry| &entry.known);
            known.into_iter().flat_map(Known::addresses).collect()
        })
    }
}

/// Returns the host names among a service's servers.
pub(crate) fn hosts(service: &Service) -> impl Iterator<Item = &str> {
    service.servers.iter().filter_map(|server| match &server.target {
        ServerTarget::Name { host, .. } => Some(host.as_str()),
        ServerTarget::Address(_) => None,
    })
}

fn endpoints(service: &Service, resolve: impl Fn(&str) -> Vec<IpAddr>) -> EndpointSet {
    let mut seen = HashSet::new();
    let mut rows = Vec::new();
    for server in &service.servers {
        let addresses: Vec<Address> = match &server.target {
            ServerTarget::Address(address) => vec![*address],
            ServerTarget::Name { host, port } => {
                resolve(host).into_iter().map(|ip| SocketAddr::new(ip, *port).into()).collect()
            }
        };
        let name: std::sync::Arc<str> = server.target.to_string().into();
        rows.extend(addresses.into_iter().filter(|address| seen.insert(*address)).map(|address| {
            EndpointRow {
                name: name.clone(),
                address,
                zone: server.zone.clone(),
                weight: server.weight,
                backup: server.backup,
                in_flight_max: server.in_flight_max,
                version: server.version,
            }
        }));
    }
    EndpointSet { rows }
}

/// Logs changes once, not at every lookup.
fn log(host: &str, known: &Known, changed: bool, error_before: Option<&str>, again: Duration) {
    let again_s = again.as_secs();
    if changed {
        let addresses: Vec<_> = known.addresses().map(|address| address.to_string()).collect();
        let source = known.source().map_or("none", |source| source.as_str());
        tracing::info!(host, addresses = addresses.join(","), source, again_s, "name resolved");
    }
    match known.error() {
        error if error == error_before => {}
        Some(error) => {
            let kept = known.addresses().count();
            tracing::warn!(
                host,
                error,
                kept,
                again_s,
                "cannot resolve name; the known addresses stay in use"
            );
        }
        None => tracing::info!(host, again_s, "name resolves again"),
    }
}

#[cfg(test)]
mod tests;
