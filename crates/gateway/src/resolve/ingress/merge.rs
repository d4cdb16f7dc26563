//! The Ingresses of each class together: the listeners of the Gateway that the class implies, and the status of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use model::HostPattern;

use super::rules::Resolved;
use super::site::{Sites, shown_host};
use crate::ir::backend::{Backend, ServicePort, Target};
use crate::ir::ingress::implied_key;
use crate::ir::{
    AttachedRoute, Certificate, ConnectionRule, Gateway, Listener, ListenerId, Protocol, Route,
    RouteKind, Rules, ServicePorts,
};
use crate::objects::Key;
use crate::resolve::assemble::{Outcome, Surroundings};
use crate::resolve::attached;
use crate::resolve::ingress_classes as classes;
use crate::resolve::status::{IngressStatus, Notice, Problem};
use crate::resolve::world::World;

/// The port without TLS.
const PORT: u16 = 80;
/// The port with TLS.
const TLS_PORT: u16 = 443;

/// What the Ingresses of all classes serve together.
#[derive(Debug, Default)]
pub struct Merged {
    gateways: BTreeMap<Key, Arc<Gateway>>,
    /// About Ingresses and IngressClasses, in order of the objects.
    notices: Arc<[Notice]>,
    /// The Ingresses of each Gateway, with the generation that was read.
    members: BTreeMap<Key, Vec<(Key, i64)>>,
}

impl Merged {
    /// Merges Ingresses: there is a Gateway for each class with an Ingress. What is as it was in `before` stays where it is
    /// in memory.
    pub fn new<'r>(
        world: &World<'_>,
        ingresses: impl IntoIterator<Item = &'r Resolved>,
        before: &Merged,
    ) -> Merged {
        let mut classes: BTreeMap<&Arc<str>, Vec<&Resolved>> = BTreeMap::new();
        let mut notices = classes::notices(world.cluster.objects, world.cluster.settings);
        let mut merged = Merged::default();
        for ingress in ingresses {
            classes.entry(&ingress.class).or_default().push(ingress);
            notices.extend(ingress.notices.iter().cloned());
        }
        for (class, mut members) in classes {
            members.sort_by(|a, b| a.metadata.age_order().cmp(&b.metadata.age_order()));
            let key = implied_key(Arc::clone(class));
            let mut gateway = gateway(class, &key, &members, &mut notices);
            if let Some(before) = before.gateways.get(&key) {
                keep_routes(&mut gateway, before);
            }
            let generations =
                members.iter().map(|one| (one.metadata.key(), one.metadata.generation));
            merged.members.insert(key.clone(), generations.collect());
            merged.gateways.insert(key, Arc::new(gateway));
        }
        // Stable: those about one object stay in their order.
        notices.sort_by(|a, b| (a.kind, &a.key).cmp(&(b.kind, &b.key)));
        merged.notices = notices.into();
        merged
    }

    /// Returns the keys of the Gateways.
    pub fn gateways(&self) -> impl Iterator<Item = &Key> {
        self.gateways.keys()
    }

    /// Adds it to what Gateways serve.
    pub fn add(&self, outcome: &mut Outcome, surroundings: Surroundings<'_>) {
        for (key, gateway) in &self.gateways {
            let addresses = surroundings.addresses.get(key).cloned().unwrap_or_default();
            let ports: Vec<u16> = gateway.ports.keys().copied().collect();
            let members = self.members.get(key).into_iter().flatten();
            let statuses = members.map(|(ingress, generation)| {
                let (generation, gateway) = (*generation, key.clone());
                let (addresses, ports) = (addresses.clone(), ports.clone());
                (ingress.clone(), IngressStatus { generation, gateway, addresses, ports })
            });
            outcome.statuses.ingresses.extend(statuses);
            outcome.gateways.insert(key.clone(), Arc::clone(gateway));
        }
        outcome.notices = Arc::clone(&self.notices);
    }
}

/// Replaces routes by those of `before` that are equal.
fn keep_routes(gateway: &mut Gateway, before: &Gateway) {
    fn source(one: &AttachedRoute) -> (&Key, u32, &[Option<HostPattern>]) {
        (&one.route.key, one.route.rank, &one.hosts)
    }
    let known = before.ports.values().flatten().map(|listener| (&listener.id, &listener.routes));
    let known: HashMap<_, _> = known.collect();
    for listener in gateway.ports.values_mut().flatten() {
        let Some(before) = known.get(&listener.id) else { continue };
        let known: HashMap<_, _> = before.iter().map(|one| (source(one), one)).collect();
        for one in Arc::make_mut(&mut listener.routes) {
            if let Some(known) = known.get(&source(one)).filter(|known| **known == one) {
                *one = Arc::clone(known);
            }
        }
        if listener.routes == **before {
            listener.routes = Arc::clone(before);
        }
    }
}

fn gateway(
    class: &Arc<str>,
    key: &Key,
    members: &[&Resolved],
    notices: &mut Vec<Notice>,
) -> Gateway {
    let sites = Sites::new(members, notices);
    let hosts = TlsHosts::new(members, notices);
    let mut plain = listener(key, "http".into(), Protocol::Http, None);
    let mut tls: Vec<Listener> = hosts.all.iter().map(|host| host.listener(key)).collect();
    let mut with_tls = Vec::with_capacity(sites.all.len());
    for site in &sites.all {
        let host = site.host.as_ref();
        let routes = site.routes(false);
        let of_tls = if site.redirects() { site.routes(true) } else { routes.clone() };
        attach(&mut plain, &routes, host);
        if let Some(at) = hosts.of(host) {
            attach(&mut tls[at], &of_tls, host);
        }
        with_tls.push(of_tls);
    }
    for (host, listener) in hosts.all.iter().zip(&mut tls) {
        // A host without paths of its own has those of a wider one.
        if let (Served::Requests(_), None) = (host.served, sites.of(host.host.as_ref())) {
            let wider = sites.of(wildcard(host.host.as_ref()).as_ref()).or_else(|| sites.of(None));
            let routes = wider.map_or(&[][..], |at| &with_tls[at]);
            attach(listener, routes, host.host.as_ref());
        }
    }
    let mut ports = BTreeMap::from([(PORT, vec![plain])]);
    if !tls.is_empty() {
        ports.insert(TLS_PORT, tls);
    }
    let routes = ports.values().flatten().flat_map(|listener| &*listener.routes);
    let mut services = ServicePorts::new();
    for port in routes.flat_map(|attached| attached.route.ports()) {
        services.entry(attached::key(port)).or_insert_with(|| Arc::clone(port));
    }
    Gateway {
        key: key.clone(),
        class: Arc::clone(class),
        addresses: Vec::new(),
        ports,
        client_certificate: None,
        services,
    }
}

fn listener(
    gateway: &Key,
    name: Arc<str>,
    protocol: Protocol,
    host: Option<HostPattern>,
) -> Listener {
    Listener {
        id: ListenerId { gateway: gateway.clone(), set: None, name },
        protocol,
        host,
        certificates: Vec::new(),
        client_validation: None,
        routes: Arc::default(),
    }
}

fn attach(listener: &mut Listener, routes: &[Arc<Route>], host: Option<&HostPattern>) {
    let attached = routes.iter().map(|route| {
        Arc::new(AttachedRoute { route: Arc::clone(route), hosts: vec![host.cloned()] })
    });
    Arc::make_mut(&mut listener.routes).extend(attached);
}

/// What is served for a host at the port with TLS.
#[derive(Clone, Copy, Debug)]
enum Served<'r> {
    Requests(&'r Certificate),
    Bytes(&'r Arc<ServicePort>),
}

#[derive(Debug)]
struct TlsHost<'r> {
    host: Option<HostPattern>,
    owner: &'r Resolved,
    served: Served<'r>,
}

/// The hosts with TLS. Of several Ingresses, the oldest decides.
#[derive(Debug, Default)]
struct TlsHosts<'r> {
    all: Vec<TlsHost<'r>>,
    at: HashMap<Option<HostPattern>, usize>,
}

impl<'r> TlsHosts<'r> {
    fn new(members: &[&'r Resolved], notices: &mut Vec<Notice>) -> TlsHosts<'r> {
        let mut hosts = TlsHosts::default();
        for owner in members {
            let mut lost = None;
            let requests =
                owner.certificates.iter().map(|(host, one)| (host.clone(), Served::Requests(one)));
            let bytes = owner.passthrough.iter();
            let bytes = bytes.map(|(host, port)| (Some(host.clone()), Served::Bytes(port)));
            for (host, served) in requests.chain(bytes) {
                let at = *hosts.at.entry(host.clone()).or_insert(hosts.all.len());
                let Some(winner) = hosts.all.get(at) else {
                    hosts.all.push(TlsHost { host, owner, served });
                    continue;
                };
                let is_same = match (winner.served, served) {
                    (Served::Requests(one), Served::Requests(other)) => one == other,
                    (Served::Requests(_) | Served::Bytes(_), _) => false,
                };
                if !is_same {
                    lost.get_or_insert((host, winner.owner.metadata.key()));
                }
            }
            if let Some((host, winner)) = lost {
                let host = shown_host(host.as_ref());
                let message = format!(
                    "Ingress {winner} is older and has another certificate for {host}, or serves it \
                     with TLS passthrough. It counts. Use one Secret for the host."
                );
                let problem = Problem::new("CertificateConflict", message);
                notices.push(Notice::new("Ingress", &owner.metadata, problem));
            }
        }
        hosts
    }

    /// Returns the listener for requests with TLS of exactly this host, or of a wider one.
    fn of(&self, host: Option<&HostPattern>) -> Option<usize> {
        let at = |host: Option<HostPattern>| self.at.get(&host).copied();
        let found = at(host.cloned()).or_else(|| at(wildcard(host))).or_else(|| at(None))?;
        match self.all[found].served {
            Served::Requests(_) => Some(found),
            Served::Bytes(_) => None,
        }
    }
}

/// Returns the wildcard that covers a host.
fn wildcard(host: Option<&HostPattern>) -> Option<HostPattern> {
    match host? {
        HostPattern::Exact(name) => Some(HostPattern::Wildcard(name.split_once('.')?.1.to_owned())),
        HostPattern::Wildcard(_) => None,
    }
}

impl TlsHost<'_> {
    fn listener(&self, gateway: &Key) -> Listener {
        let name = match &self.host {
            Some(host) => format!("https-{host}").into(),
            None => "https".into(),
        };
        match self.served {
            Served::Requests(certificate) => Listener {
                certificates: vec![certificate.clone()],
                ..listener(gateway, name, Protocol::Https, self.host.clone())
            },
            Served::Bytes(port) => {
                let backends = vec![Backend::new(1, Target::Service(Arc::clone(port)))];
                let rule = ConnectionRule { index: 0, name: None, backends };
                let route = Route {
                    kind: RouteKind::Ingress,
                    key: self.owner.metadata.key(),
                    rank: 0,
                    age: Arc::new(self.owner.metadata.age()),
                    rules: Rules::Connections(vec![rule]),
                };
                let mut listener =
                    listener(gateway, name, Protocol::TlsPassthrough, self.host.clone());
                attach(&mut listener, &[Arc::new(route)], self.host.as_ref());
                listener
            }
        }
    }
}
