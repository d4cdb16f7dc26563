//! The configuration of the files, and what Gateways serve, as one.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use model::{
    Action, Address, Authentication, AuthenticationScheme, Listener, ListenerId, Protocol, Respond,
    Route, Service, ServiceId, Snapshot, SplitTarget,
};

use super::authentication::Authentications;
use super::route::{self, Port};
use super::service::{self, Services};
use super::{Bindings, Templates, listener};
use crate::ir::Gateway;
use crate::objects::Key;

/// The configuration of the files with what Gateways serve.
#[derive(Debug)]
pub struct Joined {
    /// The configuration.
    pub snapshot: Snapshot,
    /// The ports of Gateways by the names of their listeners.
    pub ports: BTreeMap<Arc<str>, (Key, u16)>,
    /// The ports that are left out, and why, one line.
    pub left_out: BTreeMap<(Key, u16), Arc<str>>,
}

/// Converts what Gateways serve, and joins it with the configuration of the files.
///
/// It keeps what it has made: a change costs what it touches, and little for each route that stays.
#[derive(Debug, Default)]
pub struct Joiner {
    services: service::Kept,
    routes: route::Kept,
    /// The last files, their services with those of the Gateways, and their routes among those of the Gateways.
    files: Option<OfFiles>,
}

/// What is kept of files.
#[derive(Debug)]
struct OfFiles {
    files: Arc<Snapshot>,
    services: Vec<Arc<Service>>,
    ids: Ids,
    routes: Vec<Arc<Route>>,
}

impl Joiner {
    /// Returns the configuration of the files with what these Gateways serve.
    ///
    /// Routes of the files that name no listener are for the listeners of the files. A listener or service of a Gateway
    /// with the name of one of the files gets a longer name. A listener of a Gateway is left out, with its routes, if a
    /// listener of the files would get some of its connections, or if it is to decrypt TLS and has no certificate.
    pub fn join<'a>(
        &mut self,
        files: &Arc<Snapshot>,
        gateways: impl IntoIterator<Item = &'a Gateway>,
        bindings: &Bindings,
        templates: Templates<'_>,
    ) -> Joined {
        let gateways: Vec<&Gateway> = gateways.into_iter().collect();
        let is_changed = self.services.update(&gateways, templates);
        let of_files = match self.files.take().filter(|one| Arc::ptr_eq(&one.files, files)) {
            Some(known) if !is_changed => known,
            known => {
                let (services, ids) = merged(&files.services, self.services.services());
                let routes = known.filter(|one| one.ids.files == ids.files).map(|one| one.routes);
                let routes = routes.unwrap_or_else(|| routes_of_files(files, &ids));
                OfFiles { files: Arc::clone(files), services, ids, routes }
            }
        };
        let OfFiles { services, ids, routes, .. } = self.files.insert(of_files);
        let mut joined = Snapshot::clone(files);
        joined.services.clone_from(services);
        joined.routes.clone_from(routes);
        let services = Services::new(&self.services, &ids.parts);
        for listener in &mut joined.listeners {
            services_of_protocol(&mut listener.protocol, |id| *id = ids.of_files(*id));
        }
        for authentication in &mut joined.authentications {
            services_of_authentication(authentication, |id| *id = ids.of_files(*id));
        }
        let authentications =
            Authentications::add(&gateways, (services, templates), &mut joined.authentications);
        let mut added = Added::default();
        for gateway in gateways {
            for (number, listeners) in &gateway.ports {
                let key = (gateway.key.clone(), *number);
                let Some(address) = bindings.get(&key) else { continue };
                let at = (gateway, *number);
                let made =
                    listener::listener(at, listeners, (*address).into(), services, templates);
                if let Some(id) = added.add(key, made, &files.listeners, &mut joined.listeners) {
                    added.served.push(Port { gateway, number: *number, id, listeners });
                }
            }
        }
        let of_gateways = self.routes.update(&added.served, (services, &authentications));
        if joined.routes.is_empty() {
            joined.routes = of_gateways;
        } else {
            joined.routes.extend(of_gateways);
            joined.routes.sort_by(|one, other| one.matches.precedence(&other.matches));
        }
        Joined { snapshot: joined, ports: added.ports, left_out: added.left_out }
    }
}

/// Returns the routes of files, for their own listeners.
fn routes_of_files(files: &Snapshot, ids: &Ids) -> Vec<Arc<Route>> {
    let with_requests = (0..).map(ListenerId).zip(&files.listeners);
    let with_requests = with_requests.filter(|(_, listener)| listener.protocol.has_requests());
    let of_files: Vec<ListenerId> = with_requests.map(|(id, _)| id).collect();
    let routes = files.routes.iter().map(|route| {
        let mut route = Route::clone(route);
        if route.matches.listeners.is_empty() {
            route.matches.listeners.clone_from(&of_files);
        }
        services_of_route(&mut route, |id| *id = ids.of_files(*id));
        Arc::new(route)
    });
    routes.collect()
}

/// The IDs of services among those of files and parts together.
#[derive(Clone, Debug)]
struct Ids {
    files: Vec<ServiceId>,
    parts: Vec<ServiceId>,
}

impl Ids {
    fn of_files(&self, id: ServiceId) -> ServiceId {
        self.files[id.0 as usize]
    }
}

/// Returns all services in order of name, as a configuration has them.
fn merged<'a>(
    files: &[Arc<Service>],
    parts: impl Iterator<Item = &'a Arc<Service>>,
) -> (Vec<Arc<Service>>, Ids) {
    let names: HashSet<&str> = files.iter().map(|service| &*service.name).collect();
    let mut all: Vec<(Arc<Service>, Option<usize>, Option<usize>)> = Vec::new();
    all.extend(files.iter().enumerate().map(|(at, one)| (Arc::clone(one), Some(at), None)));
    for (at, mut service) in parts.map(Arc::clone).enumerate() {
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

/// The listeners of Gateways among those of the files.
#[derive(Default)]
struct Added<'a> {
    served: Vec<Port<'a>>,
    ports: BTreeMap<Arc<str>, (Key, u16)>,
    left_out: BTreeMap<(Key, u16), Arc<str>>,
}

impl Added<'_> {
    /// Adds the listener for a port, and returns its ID; `None`: it is left out.
    fn add(
        &mut self,
        port: (Key, u16),
        mut listener: Listener,
        of_files: &[Listener],
        all: &mut Vec<Listener>,
    ) -> Option<ListenerId> {
        if let Some(why) = obstacle(&listener, of_files) {
            self.left_out.insert(port, why.into());
            return None;
        }
        let is_taken = |name: &str| of_files.iter().any(|one| *one.name == *name);
        if is_taken(&listener.name) {
            listener.name = distinct(&listener.name, is_taken);
        }
        let id = ListenerId(all.len() as u32);
        self.ports.insert(Arc::clone(&listener.name), port);
        all.push(listener);
        Some(id)
    }
}

/// Returns why a listener of a Gateway cannot be served beside those of the files.
fn obstacle(listener: &Listener, of_files: &[Listener]) -> Option<String> {
    if listener.tls.as_ref().is_some_and(|tls| tls.certificates.is_empty()) {
        return Some("it has no certificate that can be used".to_owned());
    }
    let of_file = of_files.iter().find(|one| overlap(one.address, listener.address));
    of_file.map(|Listener { name, address, .. }| {
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
