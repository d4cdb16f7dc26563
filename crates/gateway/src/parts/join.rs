//! The configuration of the files, and what Gateways serve, as one.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use model::{
    Action, Address, Authentication, AuthenticationScheme, Listener, ListenerId, Protocol, Respond,
    Route, Service, ServiceId, Snapshot, SplitTarget,
};

use super::{Parts, PortListener};
use crate::objects::Key;

/// The configuration of the files with parts.
#[derive(Debug)]
pub struct Joined {
    /// The configuration.
    pub snapshot: Snapshot,
    /// The ports of Gateways by the names of their listeners.
    pub ports: BTreeMap<Arc<str>, (Key, u16)>,
    /// The ports that are left out, and why, one line.
    pub left_out: BTreeMap<(Key, u16), Arc<str>>,
}

/// Returns the configuration with the parts added.
///
/// Routes of the files that name no listener are for the listeners of the files. A listener or service of the parts
/// with the name of one of the files gets a longer name; names of parts are distinct. A listener of the parts is left
/// out, with its routes, if a listener of the files would get some of its connections, or if it is to decrypt TLS and
/// has no certificate.
pub fn join(files: &Snapshot, parts: Parts) -> Joined {
    let mut joined = files.clone();
    let Parts { listeners, routes, services } = parts;
    let with_requests = (0..).map(ListenerId).zip(&files.listeners);
    let with_requests = with_requests.filter(|(_, listener)| listener.protocol.has_requests());
    let of_files: Vec<ListenerId> = with_requests.map(|(id, _)| id).collect();
    let (services, ids) = merged(&files.services, services);
    joined.services = services;

    for listener in &mut joined.listeners {
        services_of_protocol(&mut listener.protocol, |id| *id = ids.of_files(*id));
    }
    for authentication in &mut joined.authentications {
        services_of_authentication(authentication, |id| *id = ids.of_files(*id));
    }
    for route in &mut joined.routes {
        if route.matches.listeners.is_empty() {
            route.matches.listeners.clone_from(&of_files);
        }
        services_of_route(route, |id| *id = ids.of_files(*id));
    }

    let Added { ids: new_ids, ports, left_out } =
        add_listeners(&mut joined.listeners, listeners, &ids);
    for mut route in routes {
        let new = |id: &ListenerId| new_ids.get(id.0 as usize).copied().flatten();
        let Some(listeners) = route.matches.listeners.iter().map(new).collect() else { continue };
        route.matches.listeners = listeners;
        services_of_route(&mut route, |id| *id = ids.of_parts(*id));
        joined.routes.push(route);
    }
    joined.routes.sort_by(|one, other| one.matches.precedence(&other.matches));
    Joined { snapshot: joined, ports, left_out }
}

/// The IDs of services among those of files and parts together.
struct Ids {
    files: Vec<ServiceId>,
    parts: Vec<ServiceId>,
}

impl Ids {
    fn of_files(&self, id: ServiceId) -> ServiceId {
        self.files[id.0 as usize]
    }

    fn of_parts(&self, id: ServiceId) -> ServiceId {
        self.parts[id.0 as usize]
    }
}

/// Returns all services in order of name, as a configuration has them.
fn merged(files: &[Arc<Service>], parts: Vec<Arc<Service>>) -> (Vec<Arc<Service>>, Ids) {
    let names: HashSet<&str> = files.iter().map(|service| &*service.name).collect();
    let mut all: Vec<(Arc<Service>, Option<usize>, Option<usize>)> = Vec::new();
    all.extend(files.iter().enumerate().map(|(at, one)| (Arc::clone(one), Some(at), None)));
    for (at, mut service) in parts.into_iter().enumerate() {
        if names.contains(&*service.name) {
            let name = distinct(&service.name, |name| names.contains(name));
            Arc::make_mut(&mut service).name = name;
        }
        all.push((service, None, Some(at)));
    }
    all.sort_by(|(one, ..), (other, ..)| one.name.cmp(&other.name));
    let mut ids = Ids {
        files: vec![ServiceId(0); files.len()],
        parts: vec![ServiceId(0); all.len() - files.len()],
    };
    let mut services = Vec::with_capacity(all.len());
    for (new, (service, of_files, of_parts)) in (0..).map(ServiceId).zip(all) {
        if let Some(at) = of_files {
            ids.files[at] = new;
        }
        if let Some(at) = of_parts {
            ids.parts[at] = new;
        }
        services.push(service);
    }
    (services, ids)
}

/// Returns a name that is not taken, and shows whose it is.
fn distinct(name: &str, is_taken: impl Fn(&str) -> bool) -> Arc<str> {
    let mut name = format!("{name}/kubernetes");
    while is_taken(&name) {
        name.push('/');
    }
    name.into()
}

/// The listeners of the parts among those of the files.
struct Added {
    /// Their IDs; `None` for those that are left out.
    ids: Vec<Option<ListenerId>>,
    ports: BTreeMap<Arc<str>, (Key, u16)>,
    left_out: BTreeMap<(Key, u16), Arc<str>>,
}

fn add_listeners(listeners: &mut Vec<Listener>, parts: Vec<PortListener>, ids: &Ids) -> Added {
    let of_files: Vec<(Address, Arc<str>)> =
        listeners.iter().map(|one| (one.address, Arc::clone(&one.name))).collect();
    let names: HashSet<Arc<str>> = of_files.iter().map(|(_, name)| Arc::clone(name)).collect();
    let mut added = Added {
        ids: Vec::with_capacity(parts.len()),
        ports: BTreeMap::new(),
        left_out: BTreeMap::new(),
    };
    for PortListener { port, mut listener } in parts {
        if let Some(why) = obstacle(&listener, &of_files) {
            added.left_out.insert(port, why.into());
            added.ids.push(None);
            continue;
        }
        if names.contains(&listener.name) {
            listener.name = distinct(&listener.name, |name| names.contains(name));
        }
        services_of_protocol(&mut listener.protocol, |id| *id = ids.of_parts(*id));
        added.ids.push(Some(ListenerId(listeners.len() as u32)));
        added.ports.insert(Arc::clone(&listener.name), port);
        listeners.push(listener);
    }
    added
}

/// Returns why a listener of a Gateway cannot be served beside those of the files.
fn obstacle(listener: &Listener, of_files: &[(Address, Arc<str>)]) -> Option<String> {
    if listener.tls.as_ref().is_some_and(|tls| tls.certificates.is_empty()) {
        return Some("it has no certificate that can be used".to_owned());
    }
    let of_file = of_files.iter().find(|(address, _)| overlap(*address, listener.address));
    of_file.map(|(address, name)| {
        format!(
            "listener {name:?} of Weir's configuration listens on {address}; give it another port, or change the \
             ports in [kubernetes]"
        )
    })
}

/// Returns whether one of two addresses includes the other one. `[::]` includes IPv4.
fn overlap(one: Address, other: Address) -> bool {
    let (Some(one), Some(other)) = (one.ip(), other.ip()) else { return one == other };
    let includes = |one: SocketAddr, other: SocketAddr| {
        one.ip() == other.ip() || one.ip().is_unspecified() && (one.is_ipv6() || other.is_ipv4())
    };
    one.port() == other.port() && (includes(one, other) || includes(other, one))
}

fn services_of_route(route: &mut Route, mut change: impl FnMut(&mut ServiceId)) {
    match &mut route.action {
        Action::Forward(forward) => {
            for branch in &mut forward.to {
                match &mut branch.to {
                    SplitTarget::Service(id) => change(id),
                    SplitTarget::Deny(_) => {}
                }
            }
            forward.mirrors.iter_mut().for_each(|mirror| change(&mut mirror.service));
        }
        Action::Respond(Respond::Ready(services)) => services.iter_mut().for_each(change),
        Action::Respond(Respond::Fixed { .. }) | Action::Redirect(_) | Action::Deny(_) => {}
    }
}

fn services_of_protocol(protocol: &mut Protocol, mut change: impl FnMut(&mut ServiceId)) {
    match protocol {
        Protocol::Http => {}
        Protocol::Tcp(split) => split.services_mut().for_each(change),
        Protocol::Tls(names) => {
            let splits = names.modes_mut().iter_mut().filter_map(|mode| mode.split_mut());
            splits.for_each(|split| split.services_mut().for_each(&mut change));
        }
    }
}

fn services_of_authentication(
    authentication: &mut Authentication,
    change: impl FnOnce(&mut ServiceId),
) {
    match &mut authentication.scheme {
        AuthenticationScheme::Forward(rules) => change(&mut rules.service),
        AuthenticationScheme::Basic { .. } | AuthenticationScheme::Token(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_overlap_if_one_includes_the_other() {
        for (one, other, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("[::]:80", "127.0.0.1:80", true),
            ("[::]:80", "0.0.0.0:80", true),
            ("[::]:80", "[::1]:80", true),
            ("0.0.0.0:80", "[::1]:80", false),
            ("[::1]:80", "127.0.0.1:80", false),
        ] {
            let [one, other] = [one, other].map(|text| Address::find(text).unwrap());
            assert_eq!(
                (overlap(one, other), overlap(other, one)),
                (expected, expected),
                "{one} {other}"
            );
        }
    }
}
