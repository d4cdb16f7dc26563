//! What has changed about each service: versions of its servers, and reloads that changed it. For each change, what
//! its servers did in the minute before it, to compare with the present.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use decide::{Endpoints, LiveService, Published};
use diagnose::facts::{ServerSpan, TrafficChange};
use history::{History, Key};
use model::{Address, ServerVersion};

use super::spans::{all_servers, server_span};

/// A change is forgotten after this.
const KEPT_S: u64 = 3_600;

/// The newest changes of a service that are kept. Each takes a few kB.
const KEPT_MAX: usize = 4;

/// What is compared: the minute before a change, and the minute after it.
const COMPARED_S: u64 = 60;

/// How long after a change a service is compared with what it did before. As in the rule.
const BEFORE_COMPARED_S: u64 = 600;

/// Whether something was so already just before a change.
const JUST_BEFORE_S: u64 = 5;
/// With fewer responses of a server, which may just have been restarted, these seconds say too little.
const RESPONSES_MIN: u64 = 50;

/// Seconds between two moments at which a window of the history may begin.
const WINDOW_STEP_S: u64 = 5;

/// All services, with their changes.
#[derive(Debug, Default)]
pub(super) struct Deploys {
    second: u64,
    generation: u64,
    services: HashMap<Arc<str>, Service>,
}

#[derive(Debug)]
struct Service {
    spec: Arc<model::Service>,
    /// The servers, if any of them has a version.
    servers: HashMap<Address, Server>,
    /// Newest first.
    changes: VecDeque<Change>,
}

#[derive(Clone, Debug, Default)]
struct Server {
    /// It has joined since the service is watched, and its version is not known yet.
    is_new: bool,
    version: Option<ServerVersion>,
    /// What it did before it got this version, if that was seen.
    before: ServerSpan,
}

#[derive(Debug)]
struct Change {
    what: What,
    /// When it was seen; of a version, when its last server got it.
    second: u64,
    before: ServerSpan,
    just_before: ServerSpan,
    onset: Option<ServerSpan>,
    onset_sides: Option<[ServerSpan; 2]>,
}

#[derive(Debug)]
enum What {
    Version { version: ServerVersion, before: Option<ServerVersion> },
    Reload { generation: u64, before: Arc<model::Service> },
}

/// Where to read what a service did.
struct Look<'a> {
    history: &'a History,
    live: &'a LiveService,
    endpoints: &'a Endpoints,
}

impl Deploys {
    /// Takes in the state of the history's last second.
    pub(super) fn update(&mut self, history: &History, published: &Published) {
        self.second = history.second();
        let is_reloaded = self.generation != published.generation;
        self.generation = published.generation;
        if self.services.len() > published.services.len() {
            let names: HashSet<&Arc<str>> =
                published.services.iter().map(|service| service.name()).collect();
            self.services.retain(|name, _| names.contains(name));
        }
        for live in &published.services {
            let endpoints = live.endpoints();
            let look = Look { history, live, endpoints: &endpoints };
            if let Some(service) = self.services.get_mut(live.name()) {
                if is_reloaded {
                    service.reload(&look, published.generation);
                }
                service.update(&look);
            } else {
                self.services.insert(Arc::clone(live.name()), Service::new(&look));
            }
        }
    }

    /// Returns what has changed about a service, newest first.
    pub(super) fn changes(
        &self,
        history: &History,
        service: &Arc<str>,
        endpoints: &Endpoints,
    ) -> Vec<TrafficChange> {
        let changes = self.services.get(service).into_iter().flat_map(|one| &one.changes);
        let facts = changes.map(|change| {
            let seconds = self.window_since(change.second);
            let since_s = self.second.saturating_sub(change.second);
            // Later it is not compared with what was before.
            let seconds = seconds.filter(|_| since_s <= BEFORE_COMPARED_S);
            let since = seconds.map(|seconds| all_servers(history, service, endpoints, seconds));
            change.facts(since_s, since.unwrap_or_default())
        });
        facts.collect()
    }

    /// Returns the longest window, of at most a minute, in which no server of a service got another version;
    /// `None`: none has done so, or that was too recently.
    pub(super) fn since_version_s(&self, service: &str) -> Option<u64> {
        let changes = self.services.get(service).into_iter().flat_map(|one| &one.changes);
        let versions = changes.filter(|one| matches!(one.what, What::Version { .. }));
        self.window_since(versions.map(|one| one.second).max()?)
    }

    /// Returns what a server did before its version changed.
    pub(super) fn before_version(&self, service: &str, server: Address) -> ServerSpan {
        let server = self.services.get(service).and_then(|one| one.servers.get(&server));
        server.map(|one| one.before.clone()).unwrap_or_default()
    }

    /// Returns the length of the longest window that begins after a second.
    fn window_since(&self, second: u64) -> Option<u64> {
        let first = second.next_multiple_of(WINDOW_STEP_S);
        let seconds = self.second.checked_sub(first).filter(|&seconds| seconds > 0)?;
        Some(if seconds > COMPARED_S { COMPARED_S - WINDOW_STEP_S + 1 } else { seconds })
    }
}

impl Service {
    /// What there is now is no change.
    fn new(look: &Look<'_>) -> Service {
        let spec = look.live.spec();
        let servers = look
            .versions(&spec)
            .into_iter()
            .map(|(address, version)| (address, Server { version, ..Server::default() }));
        Service { servers: servers.collect(), spec, changes: VecDeque::new() }
    }

    /// Takes in another configuration.
    fn reload(&mut self, look: &Look<'_>, generation: u64) {
        let spec = look.live.spec();
        let before = std::mem::replace(&mut self.spec, Arc::clone(&spec));
        if before.version_field != spec.version_field {
            // Versions of another field are not comparable.
            let Service { servers, .. } = Service::new(look);
            self.servers = servers;
            self.changes.retain(|change| matches!(change.what, What::Reload { .. }));
        }
        if Arc::ptr_eq(&before, &spec) || unlabelled(&before) == unlabelled(&spec) {
            return;
        }
        let is_undone = |change: &Change| match &change.what {
            What::Reload { before, .. } => unlabelled(before) == unlabelled(&spec),
            What::Version { .. } => false,
        };
        match self.changes.iter().position(is_undone) {
            // It undoes the reloads after that one, too.
            Some(place) => {
                let earlier = self.changes.split_off(place + 1);
                self.changes.retain(|change| matches!(change.what, What::Version { .. }));
                self.changes.extend(earlier);
            }
            None => self.add(look, What::Reload { generation, before }),
        }
    }

    /// Takes in the versions of the servers.
    fn update(&mut self, look: &Look<'_>) {
        let second = look.history.second();
        self.changes.retain(|change| second.saturating_sub(change.second) < KEPT_S);
        for change in &mut self.changes {
            if change.onset.is_none() && second.saturating_sub(change.second) >= COMPARED_S {
                change.onset = Some(look.all_servers(COMPARED_S));
                if let What::Version { version, .. } = &change.what {
                    let has_it = |server| {
                        let known = self.servers.get(&server).and_then(|one| one.version);
                        known == Some(*version)
                    };
                    change.onset_sides = Some(look.sides(COMPARED_S, has_it));
                }
            }
        }
        let versions = look.versions(&self.spec);
        // Servers of which no version was known until now are not new.
        let is_first = self.servers.is_empty();
        let mut servers = HashMap::with_capacity(versions.len());
        for (address, version) in versions {
            let new = Server { is_new: !is_first, ..Server::default() };
            let known = self.servers.remove(&address).unwrap_or(new);
            // Without a label, and if the field is no longer read, none is known any more.
            let kept = version.and(known.version);
            servers.insert(address, Server { version: kept, ..known });
            if let Some(version) = version {
                self.has_version(look, &mut servers, address, version);
            }
        }
        self.servers = servers;
        self.forget_undone();
    }

    /// Takes in a server's version. The servers that are not among `servers` are still in `self`.
    fn has_version(
        &mut self,
        look: &Look<'_>,
        servers: &mut HashMap<Address, Server>,
        address: Address,
        version: ServerVersion,
    ) {
        let Some(server) = servers.get_mut(&address).filter(|one| one.version != Some(version))
        else {
            return;
        };
        let is_new = std::mem::take(&mut server.is_new);
        let before = server.version.replace(version);
        let others = || servers.iter().chain(&self.servers).filter(|(other, _)| **other != address);
        let mut versions = others().filter_map(|(_, other)| other.version);
        let is_change = if is_new {
            // With the version of others, it is more of the same; if theirs are unknown, nothing shows that it is new.
            versions.next().is_some_and(|first| first != version)
                && versions.all(|other| other != version)
        } else {
            // What a server states first it may have run before, but a label has been written.
            before.is_some() || look.has_label(address)
        };
        if is_change {
            let before = before.or_else(|| others().find_map(|(_, other)| other.version));
            let span = if is_new { ServerSpan::default() } else { look.server(address) };
            if let Some(server) = servers.get_mut(&address) {
                server.before = span;
            }
            self.got_version(look, version, before);
        }
    }

    /// Forgets the changes to versions that no server has any more.
    fn forget_undone(&mut self) {
        let held: HashSet<ServerVersion> =
            self.servers.values().filter_map(|server| server.version).collect();
        self.changes.retain(|change| match &change.what {
            What::Version { version, .. } => held.contains(version),
            What::Reload { .. } => true,
        });
        if !self.changes.iter().any(|change| matches!(change.what, What::Version { .. })) {
            self.servers.values_mut().for_each(|server| server.before = ServerSpan::default());
        }
    }

    /// A server has got a version: the first one, a further one, or one that goes back.
    fn got_version(
        &mut self,
        look: &Look<'_>,
        version: ServerVersion,
        before: Option<ServerVersion>,
    ) {
        let place = self.changes.iter().position(
            |change| matches!(&change.what, What::Version { version: known, .. } if *known == version),
        );
        if let Some(mut change) = place.and_then(|place| self.changes.remove(place)) {
            (change.second, change.onset) = (look.history.second(), None);
            change.onset_sides = None;
            return self.changes.push_front(change);
        }
        let is_back = self.changes.iter().any(|change| match &change.what {
            What::Version { version: known, before: earlier } => {
                before == Some(*known) && *earlier == Some(version)
            }
            What::Reload { .. } => false,
        });
        if !is_back {
            self.add(look, What::Version { version, before });
        }
    }

    fn add(&mut self, look: &Look<'_>, what: What) {
        // Of more changes in one second, none is a deployment; and each reads the windows of all servers.
        let second = look.history.second();
        if self.changes.iter().filter(|change| change.second == second).count() >= KEPT_MAX {
            return;
        }
        self.changes.push_front(Change {
            what,
            second,
            before: look.all_servers(COMPARED_S),
            just_before: look.all_servers(JUST_BEFORE_S),
            onset: None,
            onset_sides: None,
        });
        self.changes.truncate(KEPT_MAX);
    }
}

impl Change {
    fn facts(&self, since_s: u64, since: ServerSpan) -> TrafficChange {
        let change = TrafficChange {
            since_s,
            before: self.before.clone(),
            just_before: self.just_before.clone(),
            onset: self.onset.clone(),
            onset_sides: self.onset_sides.clone(),
            since,
            ..TrafficChange::default()
        };
        match &self.what {
            What::Version { version, before } => TrafficChange {
                version: Some(version.to_string()),
                version_before: before.map(|before| before.to_string()),
                ..change
            },
            What::Reload { generation, .. } => TrafficChange { generation: *generation, ..change },
        }
    }
}

impl Look<'_> {
    /// Returns the version of each server; nothing if none has one.
    fn versions(&self, spec: &model::Service) -> Vec<(Address, Option<ServerVersion>)> {
        let has_label = || self.endpoints.all.iter().any(|one| one.row.version.is_some());
        if spec.version_field.is_none() && !has_label() {
            return Vec::new();
        }
        let all = self.endpoints.all.iter();
        all.map(|one| (one.row.address, one.version(spec))).collect()
    }

    fn has_label(&self, server: Address) -> bool {
        self.endpoints.by_address(server).is_some_and(|one| one.row.version.is_some())
    }

    fn all_servers(&self, seconds: u64) -> ServerSpan {
        all_servers(self.history, self.live.name(), self.endpoints, seconds)
    }

    /// Returns what some servers did, and what the others did.
    fn sides(&self, seconds: u64, is_first: impl Fn(Address) -> bool) -> [ServerSpan; 2] {
        let mut sides = [ServerSpan::default(), ServerSpan::default()];
        for endpoint in &self.endpoints.all {
            let address = endpoint.row.address;
            let key = Key::Server(Arc::clone(self.live.name()), address);
            if let Some(window) = self.history.window(&key, seconds) {
                sides[usize::from(!is_first(address))].add(&server_span(&window));
            }
        }
        sides
    }

    fn server(&self, server: Address) -> ServerSpan {
        let key = Key::Server(Arc::clone(self.live.name()), server);
        let span = |seconds| self.history.window(&key, seconds).map(|window| server_span(&window));
        let says_enough = |span: &ServerSpan| span.first_byte.count() >= RESPONSES_MIN;
        span(JUST_BEFORE_S).filter(says_enough).or_else(|| span(COMPARED_S)).unwrap_or_default()
    }
}

/// Returns a service's settings without versions: these are changes of their own.
fn unlabelled(service: &model::Service) -> model::Service {
    let mut service = model::Service { version_field: None, ..service.clone() };
    service.servers.iter_mut().for_each(|server| server.version = None);
    service
}

#[cfg(test)]
mod tests {
    use decide::Registry;
    use model::Moment;

    use super::*;

    /// A service, its servers and its changes, second by second.
    struct Scene {
        registry: Registry,
        history: History,
        deploys: Deploys,
        second: u64,
    }

    impl Scene {
        fn new(servers: &str) -> Scene {
            let mut scene = Scene {
                registry: Registry::with_seed(1),
                history: History::new(1 << 20),
                deploys: Deploys::default(),
                second: 100,
            };
            scene.reload(servers);
            scene
        }

        fn reload(&mut self, servers: &str) {
            let text = format!(
                "admin = {{ address = \"off\" }}\nlistener = [{{ address = \"127.0.0.1:8080\" }}]\n\
                 route = [{{ service = \"app\" }}]\nservice.app = {{ version_field = \"v\", server = [{servers}] }}\n"
            );
            let checked = config::check(&text, "test.toml", &()).unwrap();
            self.registry.publish(Arc::new(checked.snapshot), Moment::from_millis(1));
            self.look();
        }

        /// A second passes, after these servers, by their port, have stated versions.
        fn state(&mut self, versions: &[(u16, &str)]) {
            let published = self.registry.load_full();
            for endpoint in &published.services[0].endpoints().all {
                let port = endpoint.row.address.to_string();
                for (_, version) in
                    versions.iter().filter(|(of, _)| port.ends_with(&format!(":{of}")))
                {
                    endpoint.state.version.note(version.as_bytes());
                }
            }
            self.look();
        }

        fn look(&mut self) {
            self.second += 1;
            self.history.begin(self.second, 1_000);
            self.deploys.update(&self.history, &self.registry.load_full());
        }

        /// Returns the changes, newest first: `2.8.0 > 2.8.1`, `reload 2`.
        fn changes(&self) -> Vec<String> {
            let service: Arc<str> = "app".into();
            let endpoints = self.registry.load_full().services[0].endpoints();
            let shown = |change: TrafficChange| match change.version {
                Some(version) => {
                    format!("{} > {version}", change.version_before.unwrap_or_default())
                }
                None => format!("reload {}", change.generation),
            };
            let changes = self.deploys.changes(&self.history, &service, &endpoints);
            changes.into_iter().map(shown).collect()
        }
    }

    const TWO: &str = "{ address = \"10.0.0.1:1\" }, { address = \"10.0.0.1:2\" }";
    const NONE: [&str; 0] = [];

    #[test]
    fn a_first_statement_is_no_change_and_another_one_is() {
        let mut scene = Scene::new(TWO);
        scene.state(&[(1, "2.8.0")]);
        scene.state(&[(2, "2.8.0")]);
        assert_eq!(scene.changes(), NONE);
        scene.state(&[(1, "2.8.1")]);
        scene.state(&[(2, "2.8.1")]);
        assert_eq!(scene.changes(), ["2.8.0 > 2.8.1"]);
        assert_eq!(scene.deploys.since_version_s("app"), None);
        (0..6).for_each(|_| scene.look());
        assert!(scene.deploys.since_version_s("app").is_some_and(|seconds| seconds <= 6));
    }

    #[test]
    fn what_is_undone_or_old_is_forgotten() {
        let mut scene = Scene::new(TWO);
        scene.state(&[(1, "2.8.0"), (2, "2.8.0")]);
        scene.state(&[(1, "2.8.1")]);
        scene.state(&[(1, "2.8.0")]);
        assert_eq!(scene.changes(), NONE);
        // A server that states another version each time leaves one change.
        (0..50).for_each(|n| scene.state(&[(1, format!("3.{n}").as_str())]));
        assert_eq!(scene.changes(), ["3.48 > 3.49"]);
        scene.second += KEPT_S;
        scene.look();
        assert_eq!(scene.changes(), NONE);
    }

    #[test]
    fn a_server_that_joins_with_a_new_version_is_a_change() {
        let mut scene = Scene::new(TWO);
        scene.state(&[(1, "2.8.0"), (2, "2.8.0")]);
        scene.reload(&format!("{TWO}, {{ address = \"10.0.0.1:3\" }}"));
        scene.state(&[(3, "2.8.0")]);
        assert_eq!(scene.changes(), ["reload 2"], "more of the same");
        scene.reload(&format!("{TWO}, {{ address = \"10.0.0.1:4\" }}"));
        scene.state(&[(4, "2.8.1")]);
        assert_eq!(scene.changes(), ["2.8.0 > 2.8.1", "reload 3", "reload 2"]);
        scene.reload(TWO);
        assert_eq!(scene.changes(), NONE, "all of it is undone");
    }

    #[test]
    fn labels_are_versions_and_no_reload_of_settings() {
        let mut scene = Scene::new(TWO);
        let labelled = TWO.replace(":2\"", ":2\", version = \"2.8.1\"");
        scene.reload(&labelled);
        assert_eq!(scene.changes(), [" > 2.8.1"]);
        scene.reload(&labelled.replace("2.8.1", "2.8.2"));
        assert_eq!(scene.changes(), ["2.8.1 > 2.8.2"]);
        scene.reload(TWO);
        assert_eq!(scene.changes(), NONE);
    }
}
