//! Service discovery: where the servers of services come from, besides addresses in the file.
//!
//! [`names`] resolves servers given by name. [`sources`] follows sources that list a service's servers:
//! one file for each kind of source reads its answers (`consul`, `nomad`, `etcd`, `kubernetes`, `dns_srv`,
//! `files`, `http_sd`), the crate `discovery` converts them to rows and decides which apply. Both together give each service its
//! [`EndpointSet`], and change nothing else.

mod backoff;
mod consul;
mod dns_srv;
mod etcd;
mod files;
mod followed;
mod http_sd;
mod kubernetes;
mod names;
mod nomad;
mod queries;
mod report;
mod saved;
mod sources;
mod start;
mod tags;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use model::{
    Address, EndpointRow, EndpointSet, Fleet, Listing, Moment, ServerSpec, ServerTarget, Service,
    Snapshot, Standing,
};
use tokio::sync::mpsc;

pub(crate) use backoff::Backoff;
pub(crate) use kubernetes::Pods;
use names::Names;
pub(crate) use names::{Answer, Answered};
pub use names::{Discovered, Source};
pub(crate) use report::Reported;
pub(crate) use sources::FLEET;
pub use sources::SourceState;
use sources::Sources;
use tags::Tags;
pub(crate) use tags::{Shared as SharedTags, TagsReport};
pub use tags::{TagsState, saved_routes};

/// Every name and every source in use.
pub(crate) struct Discovery {
    names: Names,
    sources: Sources,
    tags: Tags,
    resolver: Vec<SocketAddr>,
    /// The services of the configuration in force.
    services: Vec<Arc<Service>>,
    /// Those of a configuration that may come into force.
    expected: Vec<Arc<Service>>,
    /// The fleet of the configuration in force, and that of one that may come into force.
    fleet: Option<Arc<Fleet>>,
    expected_fleet: Option<Arc<Fleet>>,
    /// Servers of a source have changed since the names were updated.
    names_are_old: bool,
    /// No further configuration was expected yet.
    is_first: bool,
}

impl Discovery {
    /// Returns a discovery without services. Answers are sent to `answers`, `reports` and, about routes, to `tags`, with
    /// where these are shown; sources keep their last servers and routes in `state_file`.
    /// `pods`: the Pods of Kubernetes.
    pub(crate) fn new(
        answers: mpsc::Sender<Answered>,
        reports: mpsc::Sender<Reported>,
        tags: (mpsc::Sender<TagsReport>, Arc<SharedTags>),
        (state_file, pods): (Option<PathBuf>, Option<Pods>),
    ) -> Discovery {
        Discovery {
            names: Names::new(&[], answers),
            sources: Sources::new(reports, state_file, pods),
            tags: Tags::new(tags.0, tags.1),
            resolver: Vec::new(),
            services: Vec::new(),
            expected: Vec::new(),
            fleet: None,
            expected_fleet: None,
            names_are_old: false,
            is_first: true,
        }
    }

    /// Applies a changed configuration: new names and sources are asked at once, unused ones are
    /// dropped, the state of the others stays.
    pub(crate) fn follow(&mut self, snapshot: &Snapshot, now: Moment) {
        let saved = self.sources.saved_routes();
        self.sources.follow(snapshot, now);
        let sources = &mut self.sources;
        let consul = snapshot.registries.consul.as_ref();
        self.tags.follow(consul, &saved, |consul| sources.consul_client(consul), now);
        self.sources.set_routes(self.tags.saved(now), now);
        self.services.clone_from(&snapshot.services);
        self.expected.clear();
        self.fleet.clone_from(&snapshot.fleet);
        self.expected_fleet = None;
        self.resolver.clone_from(&snapshot.resolver);
        self.follow_names(now);
    }

    /// Starts to ask what a configuration needs that may come into force; the current one stays.
    pub(crate) fn expect(&mut self, snapshot: &Snapshot, now: Moment) {
        self.is_first = false;
        self.sources.expect(snapshot, now);
        self.expected.clone_from(&snapshot.services);
        self.expected_fleet.clone_from(&snapshot.fleet);
        self.follow_names(now);
    }

    /// Starts the lookups that are due.
    pub(crate) fn start_due(&mut self, now: Moment) {
        if self.names_are_old {
            self.follow_names(now);
        }
        self.names.start_due(now);
    }

    /// Returns when [`Discovery::start_due`] or [`Discovery::tick`] next has work to do.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        let due = [self.names.next_due(), self.sources.next_due(), self.tags.next_due()];
        due.into_iter().flatten().min()
    }

    /// Does what is due for sources: servers that were held leave, and so on. Returns the services whose
    /// servers changed.
    pub(crate) fn tick(&mut self, now: Moment) -> Vec<Arc<str>> {
        if self.tags.tick(now) {
            self.sources.set_routes(self.tags.saved(now), now);
        }
        let changed = self.sources.tick(now);
        self.names_are_old |= !changed.is_empty();
        changed
    }

    /// Merges the answer for a name. Returns whether its addresses changed.
    pub(crate) fn on_answer(&mut self, host: &str, answer: Answer, now: Moment) -> bool {
        self.names.on_answer(host, answer, now)
    }

    /// Applies what a source reports. Returns whether its service's servers changed. The names among them are
    /// looked up with the next [`Discovery::start_due`].
    pub(crate) fn on_report(&mut self, report: Reported, now: Moment) -> bool {
        let service = Arc::clone(report.service());
        let had_names = self.sources.has_names(&service);
        let changed = self.sources.on_report(report, now);
        self.names_are_old |= had_names || self.sources.has_names(&service);
        changed
    }

    /// Applies what a query for the routes in tags has found.
    pub(crate) fn on_tags(&mut self, report: TagsReport, now: Moment) {
        self.tags.on_report(report, now);
        self.sources.set_routes(self.tags.saved(now), now);
    }

    /// Saves the servers of sources for the next process.
    pub(crate) fn save(&mut self) {
        self.sources.save();
    }

    /// Returns whether each of the service's names, and its source, has been asked at least once.
    pub(crate) fn is_tried(&self, service: &Service) -> bool {
        self.sources.is_tried(&service.name)
            && self.hosts_of(service).all(|host| self.names.is_tried(host))
    }

    /// Returns whether everything has been asked at least once that the next configuration needs: at the start
    /// everything, later what the one in force does not need. A change does not wait for what an earlier one has waited
    /// for in vain.
    pub(crate) fn is_next_tried(&self) -> bool {
        if self.is_first {
            return self.names.all_tried() && self.sources.all_tried() && self.tags.is_tried();
        }
        let known: HashSet<&str> = hosts_in(&self.services, self.fleet.as_deref()).collect();
        let expected = hosts_in(&self.expected, self.expected_fleet.as_deref());
        self.sources.are_expected_tried()
            && expected
                .chain(self.sources.expected_names())
                .all(|host| known.contains(host) || self.names.is_tried(host))
    }

    /// Returns whether the addresses of a service change with those of names for which `is_changed` holds.
    pub(crate) fn uses_names(&self, service: &Service, is_changed: impl Fn(&str) -> bool) -> bool {
        self.hosts_of(service).any(is_changed)
    }

    /// Returns whether the addresses of a service's servers are not all in the file.
    pub(crate) fn is_needed_by(service: &Service) -> bool {
        service.discover.is_some() || hosts(&service.servers).next().is_some()
    }

    /// Returns the state of each name.
    pub(crate) fn names(&self) -> Vec<Discovered> {
        self.names.status()
    }

    /// Returns the state of a service's source.
    pub(crate) fn source(&self, service: &str) -> Option<SourceState> {
        self.sources.state(service)
    }

    /// Returns the servers of `service`: those in the file in their order, then those that its source
    /// lists, by address. An address that two of them share is listed where it occurs first.
    pub(crate) fn endpoints(&self, service: &Service) -> EndpointSet {
        let listed = self.sources.servers(&service.name);
        endpoints(service, listed, |host| self.names.addresses(host).collect())
    }

    /// Returns the addresses at which members of the fleet may be.
    pub(crate) fn fleet_addresses(&self) -> Vec<MemberAddress> {
        let Some(fleet) = &self.fleet else { return Vec::new() };
        let is_held = |listing: &Listing| listing.standing == Standing::Held;
        let listed = self.sources.servers(FLEET);
        let listed = listed.map(|(server, listing)| (&server.target, is_held(listing)));
        let targets = fleet.members.iter().map(|target| (target, false)).chain(listed);
        let all = targets.flat_map(|(target, is_held)| {
            let all = addresses(target, |host| self.names_of_member(host, fleet.advertise));
            let all = all.into_iter().filter_map(Address::ip);
            all.map(move |address| MemberAddress { address, is_held })
        });
        all.collect()
    }

    /// Returns the addresses of a name, of one family if it has both: a member has one address only.
    fn names_of_member(&self, host: &str, advertise: SocketAddr) -> Vec<IpAddr> {
        let is_alike = |ip: &IpAddr| ip.is_ipv4() == advertise.is_ipv4();
        let (alike, others): (Vec<_>, Vec<_>) = self.names.addresses(host).partition(is_alike);
        if alike.is_empty() { others } else { alike }
    }

    fn hosts_of<'a>(&'a self, service: &'a Service) -> impl Iterator<Item = &'a str> {
        hosts(&service.servers).chain(self.sources.names(&service.name))
    }

    fn follow_names(&mut self, now: Moment) {
        self.names_are_old = false;
        let in_files = hosts_in(&self.services, self.fleet.as_deref());
        let in_files = in_files.chain(hosts_in(&self.expected, self.expected_fleet.as_deref()));
        let names = self.services.iter().map(|service| &*service.name).chain([FLEET]);
        let listed = names.flat_map(|name| self.sources.names(name));
        let wanted: BTreeSet<&str> =
            in_files.chain(listed).chain(self.sources.expected_names()).collect();
        self.names.follow(&self.resolver, &wanted, now);
    }
}

/// Parses a body; a large one on a thread for that, so that other services do not wait.
async fn parsed<T: Send + 'static>(
    body: Vec<u8>,
    parse: impl FnOnce(&[u8]) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    const SMALL_MAX_BYTES: usize = 64 * 1024;
    if body.len() <= SMALL_MAX_BYTES {
        return parse(&body);
    }
    let parsed = tokio::task::spawn_blocking(move || parse(&body)).await;
    parsed.unwrap_or_else(|_| Err("the answer could not be read: a bug".to_owned()))
}

/// Returns the host names among the servers and members that a configuration lists itself.
fn hosts_in<'a>(
    services: &'a [Arc<Service>],
    fleet: Option<&'a Fleet>,
) -> impl Iterator<Item = &'a str> {
    let members = fleet.into_iter().flat_map(|fleet| fleet.members.iter().filter_map(host));
    services.iter().flat_map(|service| hosts(&service.servers)).chain(members)
}

/// Returns the host names among servers.
fn hosts(servers: &[ServerSpec]) -> impl Iterator<Item = &str> {
    servers.iter().filter_map(|server| host(&server.target))
}

/// Returns the host name of a server that has one.
fn host(target: &ServerTarget) -> Option<&str> {
    match target {
        ServerTarget::Name { host, .. } => Some(host.as_str()),
        ServerTarget::Address(_) => None,
    }
}

/// An address at which a member of the fleet may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberAddress {
    pub(crate) address: SocketAddr,
    /// Whether the source no longer lists it: it has lost most members at once.
    pub(crate) is_held: bool,
}

/// Returns the addresses of a server, of which `resolve` gives those of a name.
fn addresses(target: &ServerTarget, resolve: impl Fn(&str) -> Vec<IpAddr>) -> Vec<Address> {
    match target {
        ServerTarget::Address(address) => vec![*address],
        ServerTarget::Name { host, port } => {
            resolve(host).into_iter().map(|ip| SocketAddr::new(ip, *port).into()).collect()
        }
    }
}

/// Returns the servers of `service` with the addresses that `resolve` gives for names, and those that a
/// source lists.
fn endpoints<'a>(
    service: &Service,
    listed: impl Iterator<Item = (&'a ServerSpec, &'a Arc<Listing>)>,
    resolve: impl Fn(&str) -> Vec<IpAddr>,
) -> EndpointSet {
    let addresses = |target: &ServerTarget| addresses(target, &resolve);
    let mut rows = Vec::with_capacity(service.servers.len());
    let mut seen = HashSet::new();
    let mut add = |server: &ServerSpec, listing: Option<&Arc<Listing>>| {
        let name: Arc<str> = server.target.to_string().into();
        let new = addresses(&server.target).into_iter().filter(|address| seen.insert(*address));
        rows.extend(
            new.map(|address| EndpointRow::of(server, name.clone(), address, listing.cloned())),
        );
    };
    service.servers.iter().for_each(|server| add(server, None));
    let in_file = service.servers.len();
    let mut overridden = HashMap::new();
    for (server, listing) in listed {
        if in_file > 0 {
            for address in addresses(&server.target) {
                overridden.insert(address, listing);
            }
        }
        add(server, Some(listing));
    }
    for row in rows.iter_mut().filter(|row| row.listing.is_none()) {
        let listing = overridden.get(&row.address).map(|listing| Listing::clone(listing));
        row.listing =
            listing.map(|listing| Arc::new(Listing { standing: Standing::Overridden, ..listing }));
    }
    EndpointSet { rows }
}

#[cfg(test)]
mod tests;
