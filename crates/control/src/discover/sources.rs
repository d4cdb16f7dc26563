//! Follows the sources of all services: starts and stops the tasks that ask them, and passes what they
//! report to `discovery`, which decides what applies.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use discovery::consul::tags::SavedRoute;
use discovery::{Saved, ServiceSource, SetState};
use model::{Consul, Discover, Listing, Moment, ServerSpec, Snapshot};
use tokio::sync::mpsc;

use super::followed::Followed;
use super::kubernetes::Pods;
use super::queries::Client;
use super::report::{Origin, Reported, Sink};
use super::saved::StateFile;
use super::start::{self, Clients, Settings};

/// What stands for the fleet among the services that have a source: no service has such a name.
pub(crate) const FLEET: &str = "[fleet]";

/// The state of a service's source, for status pages.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceState {
    /// The service.
    pub service: Arc<str>,
    /// The source, as it is shown.
    pub source: String,
    /// Its servers, and how fresh they are.
    pub set: SetState,
    /// The servers in use were saved by an earlier process: the source has not answered since the start.
    pub is_restored: bool,
}

/// The sources of all services.
pub(crate) struct Sources {
    /// Of the configuration in force, by service.
    current: BTreeMap<Arc<str>, Followed>,
    /// Of a configuration that may come into force.
    expected: BTreeMap<Arc<str>, Followed>,
    /// The connections to registries.
    clients: Clients,
    reports: mpsc::Sender<Reported>,
    watches: u64,
    /// When the sets of services have something to do; those that have.
    due: BTreeMap<Arc<str>, Moment>,
    state_file: StateFile,
    /// Published routes, which are saved with the servers.
    routes: Vec<SavedRoute>,
}

impl Sources {
    pub(crate) fn new(
        reports: mpsc::Sender<Reported>,
        state_file: Option<PathBuf>,
        pods: Option<Pods>,
    ) -> Sources {
        Sources {
            current: BTreeMap::new(),
            expected: BTreeMap::new(),
            clients: Clients::new(pods),
            reports,
            watches: 0,
            due: BTreeMap::new(),
            state_file: StateFile::read(state_file),
            routes: Vec::new(),
        }
    }

    /// Follows the sources of this configuration, and no others. Sources that are in both configurations keep
    /// their state; a service with another source keeps its servers until that has answered.
    pub(crate) fn follow(&mut self, snapshot: &Snapshot, now: Moment) {
        self.expect(snapshot, now);
        let mut expected = std::mem::take(&mut self.expected);
        let mut before = std::mem::take(&mut self.current);
        let had_sources = !before.is_empty();
        for (name, policy) in sources(snapshot) {
            let is_same = |followed: &Followed| followed.is_for(policy, snapshot);
            let known = before.remove(&name);
            let followed = match (expected.remove(&name).filter(is_same), known) {
                (Some(mut new), Some(known)) => {
                    new.source.inherit(&known.source, now);
                    new.note_names();
                    Some(new)
                }
                (new, known) => new.or_else(|| known.filter(is_same)),
            };
            if let Some(followed) = followed {
                self.current.insert(name, followed);
            }
        }
        self.clients.retain(snapshot);
        // What services had at the start is of no use later; what they have now is.
        self.state_file.forget();
        if !self.current.is_empty() || had_sources {
            self.state_file.changed(now);
        }
        self.due.clear();
        let names: Vec<_> = self.current.keys().cloned().collect();
        for name in &names {
            self.note_due(name);
        }
    }

    fn note_due(&mut self, service: &Arc<str>) {
        match self.current.get(service).and_then(|one| one.source.next_due()) {
            Some(due) => _ = self.due.insert(Arc::clone(service), due),
            None => _ = self.due.remove(service),
        }
    }

    /// Starts to follow sources of a configuration that may come into force. Those in force stay as they are.
    pub(crate) fn expect(&mut self, snapshot: &Snapshot, now: Moment) {
        // Those of a configuration that has not come into force.
        let wanted: BTreeMap<_, _> = sources(snapshot).collect();
        self.expected.retain(|name, followed| {
            wanted.get(name).is_some_and(|policy| followed.is_for(policy, snapshot))
        });
        for (name, policy) in sources(snapshot) {
            let known = self.current.get(&name).into_iter().chain(self.expected.get(&name));
            if !known.into_iter().any(|followed| followed.is_for(policy, snapshot)) {
                let followed = self.start(&name, policy, snapshot, now);
                self.expected.insert(name, followed);
            }
        }
    }

    fn start(
        &mut self,
        name: &Arc<str>,
        policy: &Arc<Discover>,
        snapshot: &Snapshot,
        now: Moment,
    ) -> Followed {
        self.watches += 1;
        let watch = self.watches;
        let settings = Settings::of(&policy.source, snapshot);
        let sink = |part| Sink {
            origin: Origin { service: Arc::clone(name), watch, part },
            reports: self.reports.clone(),
        };
        let tasks = start::tasks(policy, &settings, &mut self.clients, sink);
        let identity = settings.identity(&policy.source);
        let mut source = ServiceSource::new(Arc::clone(policy), identity, settings.parts());
        match (self.current.get(name), self.state_file.saved(name)) {
            (Some(known), _) => source.inherit(&known.source, now),
            (None, Some(saved)) if policy.saved => source.restore(saved, now),
            (None, _) => {}
        }
        if source.is_restored() {
            let (service, source, servers) = (name, &policy.source, source.servers().count());
            tracing::info!(
                %service, %source, servers, "using the saved servers until the source answers"
            );
        }
        let mut followed = Followed { source, settings, watch, has_names: false, tasks };
        followed.note_names();
        followed
    }

    /// Applies a report. Returns whether the servers of a service in force changed.
    pub(crate) fn on_report(&mut self, report: Reported, now: Moment) -> bool {
        let Reported { from, result, .. } = report;
        let is_it = |followed: &&mut Followed| followed.watch == from.watch;
        if let Some(followed) = self.current.get_mut(&from.service).filter(is_it) {
            let changed = followed.on_report(&from, result, now);
            if changed {
                self.state_file.changed(now);
            }
            self.note_due(&from.service);
            return changed;
        }
        if let Some(followed) = self.expected.get_mut(&from.service).filter(is_it) {
            followed.on_report(&from, result, now);
        }
        false
    }

    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.due.values().copied().chain(self.state_file.next_due()).min()
    }

    pub(crate) fn tick(&mut self, now: Moment) -> Vec<Arc<str>> {
        let mut changed = Vec::new();
        let due: Vec<Arc<str>> =
            self.due.iter().filter(|(_, due)| **due <= now).map(|(name, _)| name.clone()).collect();
        for name in due {
            if let Some(followed) = self.current.get_mut(&name)
                && followed.tick(&name, now)
            {
                changed.push(Arc::clone(&name));
            }
            self.note_due(&name);
        }
        if !changed.is_empty() {
            self.state_file.changed(now);
        }
        if self.state_file.next_due().is_some_and(|due| due <= now) {
            let saved = self.saved();
            self.state_file.write(saved, now);
        }
        changed
    }

    /// Returns the connections to Consul.
    pub(crate) fn consul_client(&mut self, consul: &Arc<Consul>) -> Rc<Client> {
        self.clients.consul(consul)
    }

    /// Returns the routes that an earlier process has saved; none after the first configuration.
    pub(crate) fn saved_routes(&self) -> Vec<SavedRoute> {
        self.state_file.saved_routes().to_vec()
    }

    /// Sets the routes to be saved with the servers.
    pub(crate) fn set_routes(&mut self, routes: Vec<SavedRoute>, now: Moment) {
        if self.routes != routes {
            self.routes = routes;
            self.state_file.changed(now);
        }
    }

    /// Writes the state file now, unless it is up to date. For the end of the process, and for an upgrade.
    pub(crate) fn save(&mut self) {
        if self.state_file.is_behind() {
            let saved = self.saved();
            self.state_file.write_now(&saved);
        }
    }

    fn saved(&self) -> Saved {
        let mut saved = Saved::default();
        saved.routes.clone_from(&self.routes);
        for (name, followed) in self.current.iter().filter(|(_, one)| one.source.policy().saved) {
            let service = followed.source.saved();
            saved.services.extend(service.map(|service| (name.to_string(), service)));
        }
        saved
    }

    pub(crate) fn is_tried(&self, service: &str) -> bool {
        self.current.get(service).is_none_or(|followed| followed.source.is_tried())
    }

    /// Returns whether each source in force was asked at least once.
    pub(crate) fn all_tried(&self) -> bool {
        self.current.values().all(|one| one.source.is_tried())
    }

    /// Returns whether each source that only the expected configuration has was asked at least once.
    pub(crate) fn are_expected_tried(&self) -> bool {
        self.expected.values().all(|one| one.source.is_tried())
    }

    /// Returns whether a server of a service's source is given by name, in either configuration.
    pub(crate) fn has_names(&self, service: &str) -> bool {
        let all = [self.current.get(service), self.expected.get(service)];
        all.into_iter().flatten().any(|followed| followed.has_names)
    }

    /// Returns the host names among the servers of a service's source.
    pub(crate) fn names(&self, service: &str) -> impl Iterator<Item = &str> {
        self.current.get(service).into_iter().flat_map(Followed::names)
    }

    /// Returns the host names among the servers of a configuration that may come into force.
    pub(crate) fn expected_names(&self) -> impl Iterator<Item = &str> {
        self.expected.values().flat_map(Followed::names)
    }

    /// Returns the servers of a service's source.
    pub(crate) fn servers(
        &self,
        service: &str,
    ) -> impl Iterator<Item = (&ServerSpec, &Arc<Listing>)> {
        let followed = self.current.get(service);
        let servers = followed.into_iter().flat_map(|one| one.source.servers());
        servers.map(|one| (&one.server, &one.listing))
    }

    /// Returns the state of a service's source.
    pub(crate) fn state(&self, service: &str) -> Option<SourceState> {
        let (service, followed) = self.current.get_key_value(service)?;
        Some(SourceState {
            service: Arc::clone(service),
            source: followed.source.policy().source.to_string(),
            set: followed.source.state(),
            is_restored: followed.source.is_restored(),
        })
    }
}

/// Returns the services of a configuration that have a source, and the fleet if it has one.
fn sources(snapshot: &Snapshot) -> impl Iterator<Item = (Arc<str>, &Arc<Discover>)> {
    let services = snapshot.services.iter();
    let of_services =
        services.filter_map(|one| Some((Arc::clone(&one.name), one.discover.as_ref()?)));
    let of_fleet =
        snapshot.fleet.iter().filter_map(|fleet| Some((FLEET.into(), fleet.discover.as_ref()?)));
    of_services.chain(of_fleet)
}
