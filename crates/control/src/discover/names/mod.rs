//! Servers given by name: when each name is looked up, and the results.
//!
//! Lookups are started here and run as local tasks; their answers come back to the control loop,
//! which passes them to [`Names::on_answer`]. One lookup serves every service that names the
//! host, whatever the port.

mod known;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use model::Moment;
use tokio::sync::mpsc;
pub(crate) use transport::names::Answer;
use transport::names::Dns;
pub use transport::names::Source;

use known::Known;
pub(super) use known::{TTL_MAX, TTL_MIN};

/// Maximum number of concurrent lookups; further names wait.
pub(super) const LOOKUPS_RUNNING_MAX: usize = 64;

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
pub(crate) struct Names {
    nameservers: Vec<SocketAddr>,
    dns: Dns,
    entries: BTreeMap<String, Entry>,
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

impl Names {
    /// Returns an empty set of names. Answers are sent to `answers`.
    pub(crate) fn new(nameservers: &[SocketAddr], answers: mpsc::Sender<Answered>) -> Names {
        Names {
            nameservers: nameservers.to_vec(),
            dns: Dns::new(nameservers),
            entries: BTreeMap::new(),
            running: 0,
            answers,
        }
    }

    /// Applies changed names or other DNS servers: new names are looked up at once, unused ones are
    /// dropped, the state of the others stays.
    pub(crate) fn follow(
        &mut self,
        nameservers: &[SocketAddr],
        wanted: &BTreeSet<&str>,
        now: Moment,
    ) {
        if self.nameservers != nameservers {
            self.nameservers = nameservers.to_vec();
            self.dns = Dns::new(nameservers);
            for entry in self.entries.values_mut() {
                entry.due = now;
            }
        }
        self.entries.retain(|host, _| wanted.contains(host.as_str()));
        self.expect(wanted, now);
    }

    /// Starts looking up these names, too.
    pub(crate) fn expect(&mut self, wanted: &BTreeSet<&str>, now: Moment) {
        for host in wanted {
            self.entries.entry((*host).to_owned()).or_insert_with(|| Entry {
                known: Known::default(),
                due: now,
                running: false,
                tried: false,
            });
        }
    }

    /// Starts the lookups that are due.
    pub(crate) fn start_due(&mut self, now: Moment) {
        for (host, entry) in &mut self.entries {
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

    /// Returns when [`Names::start_due`] next has work to do.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        if self.running >= LOOKUPS_RUNNING_MAX {
            return None;
        }
        self.entries.values().filter(|entry| !entry.running).map(|entry| entry.due).min()
    }

    /// Merges an answer. Returns whether the name's addresses changed.
    pub(crate) fn on_answer(&mut self, host: &str, answer: Answer, now: Moment) -> bool {
        self.running = self.running.saturating_sub(1);
        let Some(entry) = self.entries.get_mut(host) else {
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
        self.entries.get(host).is_some_and(|entry| entry.tried)
    }

    /// Returns whether every name has been tried at least once.
    pub(crate) fn all_tried(&self) -> bool {
        self.entries.values().all(|entry| entry.tried)
    }

    /// Returns the state of each name.
    pub(crate) fn status(&self) -> Vec<Discovered> {
        let entries = self.entries.iter();
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

    /// Returns the known addresses of a name.
    pub(crate) fn addresses(&self, host: &str) -> impl Iterator<Item = IpAddr> {
        let known = self.entries.get(host).map(|entry| &entry.known);
        known.into_iter().flat_map(Known::addresses)
    }
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
