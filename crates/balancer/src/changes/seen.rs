//! The state of everything whose changes are recorded, at one moment, and what differs between two moments.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use admin_api::changes::{Change, Changed, Effect, FindingName};
use decide::{Endpoint, LiveService, Registry};
use diagnose::words::plural;
use model::{Address, Administrative, Health, Maintained, Moment, ServerVersion};

use crate::findings::Findings;

/// More servers of a service than this with the same change at one moment are one change.
const APART_MAX: usize = 5;

/// More changes of servers at one moment than this are summed up over all services, so that they do not displace
/// what else is kept.
const AT_ONCE_MAX: usize = 50;

/// A server's next change of version is not recorded earlier, since its responses may state another one each
/// second.
const VERSION_KEPT_MIN: Duration = Duration::from_mins(1);

/// The state at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    generation: u64,
    services: BTreeMap<Arc<str>, Servers>,
    maintenance: BTreeSet<(&'static str, Arc<str>)>,
    /// Those that are present, by rule and subject.
    findings: BTreeMap<Name, Finding>,
    /// Whether the doctor runs.
    is_examined: bool,
}

/// Rule and subject of a finding.
pub(super) type Name = (String, String);

/// The servers of a service. As long as they are the same, moments share them.
#[derive(Clone, Debug)]
struct Servers {
    hash: u64,
    states: Arc<BTreeMap<Address, Server>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Server {
    health: Health,
    state: Administrative,
    weight: Option<u16>,
    is_ejected: bool,
    version: Version,
}

/// The version of a server, and when it last changed; zero: it has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Version {
    name: Option<ServerVersion>,
    changed: Moment,
}

#[derive(Clone, Debug)]
struct Finding {
    service: Option<String>,
    server: Option<String>,
    what: String,
}

impl Seen {
    /// Returns the state now; `before`: the one of the look before.
    pub(super) fn now(registry: &Registry, findings: &Findings, before: &Seen) -> Seen {
        let (published, now) = (registry.load_full(), os::clock::now());
        let services = published.services.iter().map(|service| {
            let earlier = before.services.get(service.name());
            (Arc::clone(service.name()), Servers::of(service, earlier, now))
        });
        let maintenance = registry.maintenance().rows().into_iter().map(|(kind, name, _)| {
            let kind = match kind {
                Maintained::Service => "Service",
                Maintained::Route => "Route",
            };
            (kind, name)
        });
        let report = findings.report();
        let present = report.findings.into_iter().filter(|one| one.is_present);
        let present = present.filter(|one| one.finding.has_weight()).map(|one| {
            let mut servers = one.finding.servers;
            let server = if servers.len() == 1 { servers.pop() } else { None };
            let (service, what) = (one.finding.service, one.finding.what);
            let key = (one.finding.rule.into_owned(), one.finding.subject);
            (key, Finding { service, server, what })
        });
        Seen {
            generation: published.generation,
            services: services.collect(),
            maintenance: maintenance.collect(),
            findings: present.collect(),
            is_examined: report.enabled,
        }
    }

    /// Adds the findings that these changes have begun and not ended. Returns their names.
    pub(super) fn with_findings_of(&mut self, earlier: &[Change]) -> BTreeSet<Name> {
        for change in earlier {
            let Some(FindingName { rule, subject }) = change.finding.clone() else { continue };
            if change.effect.known() == Some(Effect::Trouble) {
                let (service, server) = (change.service.clone(), change.server.clone());
                let finding = Finding { service, server, what: change.what.clone() };
                self.findings.insert((rule, subject), finding);
            } else {
                self.findings.remove(&(rule, subject));
            }
        }
        self.findings.keys().cloned().collect()
    }

    /// Keeps the findings of these names as they were `before`. Those that are present are taken from `names`.
    pub(super) fn keep(&mut self, before: &Seen, names: &mut BTreeSet<Name>) {
        names.retain(|name| !self.findings.contains_key(name));
        for name in &*names {
            if let Some(finding) = before.findings.get(name) {
                self.findings.insert(name.clone(), finding.clone());
            }
        }
    }

    /// Returns what has changed since `before`.
    pub(super) fn since(&self, before: &Seen, at_unix_ms: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut add = |kind, effect, what| changes.push(change(at_unix_ms, kind, effect, what));
        if self.generation != before.generation {
            let what = format!("Configuration {} came into force.", self.generation);
            add(Changed::Configuration, Effect::Neutral, what);
        }
        for (kind, name) in self.maintenance.difference(&before.maintenance) {
            let what = format!("{kind} {name} was put into maintenance.");
            add(Changed::Maintenance, Effect::Neutral, what);
        }
        for (kind, name) in before.maintenance.difference(&self.maintenance) {
            let what = format!("{kind} {name} is no longer in maintenance.");
            add(Changed::Maintenance, Effect::Neutral, what);
        }
        // The change of the configuration covers added and removed services.
        let services = self.services.iter().filter_map(|(name, servers)| {
            let earlier = before.services.get(name).filter(|one| one.hash != servers.hash)?;
            Some((name, differences(&servers.states, &earlier.states)))
        });
        let mut of_each: Vec<Change> = Vec::new();
        let mut all = Together::new();
        for (name, differences) in services {
            for (wording, addresses) in differences {
                let (servers, services) = all.entry(wording.clone()).or_default();
                (*servers, *services) = (*servers + addresses.len(), *services + 1);
                of_each.extend(of_servers(at_unix_ms, name, wording, addresses));
            }
        }
        if of_each.len() > AT_ONCE_MAX {
            of_each = of_many(at_unix_ms, all).collect();
        }
        changes.extend(of_each);
        for (name, finding) in new(&self.findings, &before.findings) {
            let what = finding.what.clone();
            changes.push(of_finding(at_unix_ms, name, finding, Effect::Trouble, what));
        }
        // Without the doctor it is not known whether they have ended.
        let ended = new(&before.findings, &self.findings).filter(|_| self.is_examined);
        for (name, finding) in ended {
            let what = format!("{} about {} has ended.", name.0, name.1);
            changes.push(of_finding(at_unix_ms, name, finding, Effect::Recovery, what));
        }
        changes
    }
}

/// Returns a change that is about no server and no finding.
pub(super) fn change(at_unix_ms: u64, kind: Changed, effect: Effect, what: String) -> Change {
    let (kind, effect) = (kind.into(), effect.into());
    Change { at_unix_ms, kind, effect, service: None, server: None, finding: None, what }
}

impl Servers {
    fn of(service: &LiveService, earlier: Option<&Servers>, now: Moment) -> Servers {
        let (endpoints, spec) = (service.endpoints(), service.spec());
        let states = || {
            endpoints.all.iter().map(|one| {
                let address = one.row.address;
                // Few services have versions.
                let version = one.version(&spec).map_or_else(Version::default, |name| {
                    let earlier = earlier.and_then(|earlier| earlier.states.get(&address));
                    Version::after(earlier.map(|server| server.version), name, now)
                });
                (address, Server::of(one, version))
            })
        };
        let mut hasher = DefaultHasher::new();
        states().for_each(|state| state.hash(&mut hasher));
        let hash = hasher.finish();
        match earlier.filter(|earlier| earlier.hash == hash) {
            Some(same) => same.clone(),
            None => Servers { hash, states: Arc::new(states().collect()) },
        }
    }
}

impl Server {
    fn of(endpoint: &Arc<Endpoint>, version: Version) -> Server {
        let state = &endpoint.state;
        Server {
            health: state.health(),
            state: state.administrative(),
            weight: state.weight_set(),
            is_ejected: state.ejected_until().is_some(),
            version,
        }
    }
}

impl Version {
    /// Returns the version to record, when `name` is the one at present.
    fn after(earlier: Option<Version>, name: ServerVersion, now: Moment) -> Version {
        let Some(earlier) = earlier.filter(|earlier| earlier.name.is_some()) else {
            return Version { name: Some(name), changed: Moment::ZERO };
        };
        let may_change =
            earlier.changed == Moment::ZERO || now.since(earlier.changed) >= VERSION_KEPT_MIN;
        if earlier.name == Some(name) || !may_change {
            return earlier;
        }
        Version { name: Some(name), changed: now }
    }
}

/// Returns what `all` has and `others` has not.
fn new<'a, K: Ord, V>(
    all: &'a BTreeMap<K, V>,
    others: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, &'a V)> {
    all.iter().filter(|(key, _)| !others.contains_key(key))
}

/// A change of servers: its kind, its effect, and the words for one server and for several.
type Wording = (Changed, Effect, &'static str, &'static str);

const JOINED: Wording =
    (Changed::Servers, Effect::Neutral, "joined the service", "joined the service");
const LEFT: Wording = (Changed::Servers, Effect::Neutral, "left the service", "left the service");
const DOWN: Wording = (Changed::Health, Effect::Trouble, "is down", "are down");
const UP: Wording = (Changed::Health, Effect::Recovery, "is up again", "are up again");
const UNCHECKED: Wording =
    (Changed::Health, Effect::Neutral, "is no longer checked", "are no longer checked");
const READY: Wording = (Changed::State, Effect::Neutral, "is ready again", "are ready again");
const DRAIN: Wording = (Changed::State, Effect::Neutral, "is being drained", "are being drained");
const MAINTENANCE: Wording =
    (Changed::State, Effect::Neutral, "is in maintenance", "are in maintenance");
const WEIGHT: Wording = (Changed::Weight, Effect::Neutral, "has weight", "have weight");
const VERSION: Wording = (Changed::Version, Effect::Neutral, "runs version", "run version");
const EJECTED: Wording = (
    Changed::Ejection,
    Effect::Trouble,
    "was ejected for its responses",
    "were ejected for their responses",
);
const READMITTED: Wording =
    (Changed::Ejection, Effect::Recovery, "is no longer ejected", "are no longer ejected");

/// The servers with each change. The text follows the words: a weight, versions.
type Differences = BTreeMap<(Wording, String), Vec<Address>>;

fn differences(
    servers: &BTreeMap<Address, Server>,
    earlier: &BTreeMap<Address, Server>,
) -> Differences {
    let mut found = Differences::new();
    let mut add = |wording: Wording, more: String, address: &Address| {
        found.entry((wording, more)).or_default().push(*address);
    };
    new(servers, earlier).for_each(|(address, _)| add(JOINED, String::new(), address));
    new(earlier, servers).for_each(|(address, _)| add(LEFT, String::new(), address));
    for (address, now) in servers {
        let Some(before) = earlier.get(address) else { continue };
        let health = match (before.health, now.health) {
            (before, now) if before == now => None,
            (_, Health::Down) => Some(DOWN),
            (Health::Down, Health::Up) => Some(UP),
            (Health::Down, Health::Unknown) => Some(UNCHECKED),
            // The first verdict, or no check any more.
            _ => None,
        };
        let state = (now.state != before.state).then_some(match now.state {
            Administrative::Ready => READY,
            Administrative::Drain => DRAIN,
            Administrative::Maintenance => MAINTENANCE,
        });
        let ejection = (now.is_ejected != before.is_ejected).then_some(if now.is_ejected {
            EJECTED
        } else {
            READMITTED
        });
        for wording in [health, state, ejection].into_iter().flatten() {
            add(wording, String::new(), address);
        }
        if now.weight != before.weight {
            let weight = now.weight.map_or("as configured".to_owned(), |set| set.to_string());
            add(WEIGHT, format!(" {weight}"), address);
        }
        // The first one that becomes known is no change.
        if let (Some(before), Some(now)) = (before.version.name, now.version.name)
            && before != now
        {
            add(VERSION, format!(" {now}, before {before}"), address);
        }
    }
    found
}

/// Returns the changes of a service's servers that changed in the same way: many of them are one change.
fn of_servers(
    at_unix_ms: u64,
    service: &str,
    ((kind, effect, one, several), more): (Wording, String),
    addresses: Vec<Address>,
) -> Vec<Change> {
    let about = |server: Option<Address>, what| Change {
        service: Some(service.to_owned()),
        server: server.map(|address| address.to_string()),
        ..change(at_unix_ms, kind, effect, what)
    };
    if addresses.len() > APART_MAX {
        let what = format!("{} servers of {service} {several}{more}.", addresses.len());
        return vec![about(None, what)];
    }
    let each = addresses
        .into_iter()
        .map(|address| about(Some(address), format!("{address} of {service} {one}{more}.")));
    each.collect()
}

/// How many servers, of how many services, changed in the same way.
type Together = BTreeMap<(Wording, String), (usize, usize)>;

fn of_many(at_unix_ms: u64, all: Together) -> impl Iterator<Item = Change> {
    all.into_iter().map(move |(((kind, effect, one, several), more), (servers, services))| {
        let verb = if servers == 1 { one } else { several };
        let (servers, services) =
            (plural(servers as u64, "server"), plural(services as u64, "service"));
        change(at_unix_ms, kind, effect, format!("{servers} of {services} {verb}{more}."))
    })
}

fn of_finding(
    at_unix_ms: u64,
    (rule, subject): &(String, String),
    finding: &Finding,
    effect: Effect,
    what: String,
) -> Change {
    Change {
        service: finding.service.clone(),
        server: finding.server.clone(),
        finding: Some(FindingName { rule: rule.clone(), subject: subject.clone() }),
        ..change(at_unix_ms, Changed::Finding, effect, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Server = Server {
        health: Health::Up,
        state: Administrative::Ready,
        weight: None,
        is_ejected: false,
        version: Version { name: None, changed: Moment::ZERO },
    };

    fn seen(servers: impl IntoIterator<Item = (u16, Server)>) -> Seen {
        let servers = servers.into_iter().map(|(port, server)| {
            let address: std::net::SocketAddr = ([10, 0, 0, 1], port).into();
            (Address::from(address), server)
        });
        let states: BTreeMap<_, _> = servers.collect();
        let mut hasher = DefaultHasher::new();
        states.hash(&mut hasher);
        let servers = Servers { hash: hasher.finish(), states: Arc::new(states) };
        Seen { services: BTreeMap::from([(Arc::from("shop"), servers)]), ..Seen::default() }
    }

    fn recorded(after: &Seen, before: &Seen) -> Vec<String> {
        after.since(before, 7).into_iter().map(|change| change.what).collect()
    }

    #[test]
    fn each_change_of_a_server_is_a_sentence() {
        let before = seen([(1, SERVER), (2, SERVER)]);
        assert_eq!(recorded(&before, &before), [""; 0]);
        let changed = [
            (Server { health: Health::Down, ..SERVER }, "is down", "is up again"),
            (
                Server { state: Administrative::Drain, ..SERVER },
                "is being drained",
                "is ready again",
            ),
            (
                Server { state: Administrative::Maintenance, ..SERVER },
                "is in maintenance",
                "is ready again",
            ),
            (Server { weight: Some(0), ..SERVER }, "has weight 0", "has weight as configured"),
            (
                Server { is_ejected: true, ..SERVER },
                "was ejected for its responses",
                "is no longer ejected",
            ),
        ];
        for (server, one, back) in changed {
            let after = seen([(1, server), (2, SERVER)]);
            assert_eq!(recorded(&after, &before), [format!("10.0.0.1:1 of shop {one}.")]);
            assert_eq!(recorded(&before, &after), [format!("10.0.0.1:1 of shop {back}.")]);
        }
        let change = &seen([(2, SERVER)]).since(&before, 7)[0];
        assert_eq!(change.what, "10.0.0.1:1 of shop left the service.");
        assert_eq!((change.at_unix_ms, change.service.as_deref()), (7, Some("shop")));
        assert_eq!(change.server.as_deref(), Some("10.0.0.1:1"));
    }

    #[test]
    fn a_first_verdict_is_no_change() {
        let unknown = seen([(1, Server { health: Health::Unknown, ..SERVER })]);
        assert_eq!(recorded(&seen([(1, SERVER)]), &unknown), [""; 0]);
    }

    #[test]
    fn a_change_of_version_is_recorded_at_most_once_a_minute() {
        let name = |text: &str| ServerVersion::parse(text.as_bytes()).unwrap();
        let at = |second: u64| Moment::from_millis(second * 1_000);
        let server = |version| Server { version, ..SERVER };
        let first = Version::after(None, name("2.8.0"), at(1));
        assert_eq!(recorded(&seen([(1, server(first))]), &seen([(1, SERVER)])), [""; 0]);
        let changed = Version::after(Some(first), name("2.8.1"), at(2));
        let what = ["10.0.0.1:1 of shop runs version 2.8.1, before 2.8.0."];
        assert_eq!(recorded(&seen([(1, server(changed))]), &seen([(1, server(first))])), what);
        // A server that alternates is recorded at most once a minute.
        assert_eq!(Version::after(Some(changed), name("2.8.0"), at(3)), changed);
        let back = Version { name: Some(name("2.8.0")), changed: at(62) };
        assert_eq!(Version::after(Some(changed), name("2.8.0"), at(62)), back);
    }

    #[test]
    fn many_servers_with_the_same_change_are_one() {
        let before = seen((1..=40).map(|port| (port, SERVER)));
        let down = Server { health: Health::Down, ..SERVER };
        let after = seen((1..=30).map(|port| (port, down)));
        let expected = ["10 servers of shop left the service.", "30 servers of shop are down."];
        assert_eq!(recorded(&after, &before), expected);
    }

    #[test]
    fn very_many_changes_at_once_are_summed_up_over_services() {
        let all = |server: Server| {
            let services = (0..100).map(|service| {
                let one = seen([(1, server), (2, SERVER)]).services.remove("shop").unwrap();
                (Arc::from(format!("s{service}")), one)
            });
            Seen { services: services.collect(), ..Seen::default() }
        };
        let down = all(Server { health: Health::Down, ..SERVER });
        assert_eq!(recorded(&down, &all(SERVER)), ["100 servers of 100 services are down."]);
    }

    #[test]
    fn configurations_maintenance_and_findings_are_recorded() {
        let before = Seen { generation: 1, is_examined: true, ..seen([]) };
        let finding = Finding {
            service: Some("shop".to_owned()),
            server: None,
            what: "It fails.".to_owned(),
        };
        let after = Seen {
            generation: 2,
            maintenance: [("Service", Arc::from("shop"))].into(),
            findings: [(("server_slow".to_owned(), "shop".to_owned()), finding)].into(),
            ..seen([])
        };
        let expected = [
            "Configuration 2 came into force.",
            "Service shop was put into maintenance.",
            "It fails.",
        ];
        assert_eq!(recorded(&after, &before), expected);
        let change = &after.since(&before, 7)[2];
        assert_eq!(change.finding.as_ref().unwrap().rule, "server_slow");
        assert_eq!(change.effect.known(), Some(Effect::Trouble));
        let expected = [
            "Configuration 1 came into force.",
            "Service shop is no longer in maintenance.",
            "server_slow about shop has ended.",
        ];
        assert_eq!(recorded(&before, &after), expected);
    }

    #[test]
    fn a_doctor_that_is_switched_off_ends_no_finding() {
        let finding = Finding { service: None, server: None, what: "It fails.".to_owned() };
        let name = ("sack_off".to_owned(), "tcp_sack".to_owned());
        let before =
            Seen { findings: [(name, finding)].into(), is_examined: true, ..Seen::default() };
        assert_eq!(recorded(&Seen::default(), &before), [""; 0]);
        let examined = Seen { is_examined: true, ..Seen::default() };
        assert_eq!(recorded(&examined, &before), ["sack_off about tcp_sack has ended."]);
    }

    #[test]
    fn findings_of_the_process_before_neither_begin_again_nor_end_before_they_were_looked_for() {
        let finding = |what: &str| Finding { service: None, server: None, what: what.to_owned() };
        let name = |rule: &str| (rule.to_owned(), "x".to_owned());
        let all = Seen {
            findings: ["a", "b", "c"].map(|rule| (name(rule), finding(rule))).into(),
            is_examined: true,
            ..Seen::default()
        };
        let mut earlier = all.since(&Seen::default(), 1);
        let without_b = Seen {
            findings: ["a", "c"].map(|rule| (name(rule), finding(rule))).into(),
            ..all.clone()
        };
        earlier.extend(without_b.since(&all, 2));
        let mut before = Seen::default();
        let mut kept = before.with_findings_of(&earlier);
        assert_eq!(kept, [name("a"), name("c")].into());

        // The first look finds only one of them.
        let examined = Seen { is_examined: true, ..Seen::default() };
        let mut now = Seen { findings: [(name("a"), finding("a"))].into(), ..examined.clone() };
        now.keep(&before, &mut kept);
        assert_eq!(recorded(&now, &before), [""; 0]);
        assert_eq!(kept, [name("c")].into());
        // What was seen and is gone has ended; the other one ends when it is no longer kept.
        let mut later = examined.clone();
        later.keep(&now, &mut kept);
        assert_eq!(recorded(&later, &now), ["a about x has ended."]);
        assert_eq!(recorded(&examined, &later), ["c about x has ended."]);
    }
}
