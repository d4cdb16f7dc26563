//! Starts the tasks that ask a source: what each kind of source needs for that.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use discovery::{consul as from_consul, etcd as from_etcd, nomad as from_nomad};
use gateway::objects::Key;
use model::{Consul, Discover, Etcd, Nomad, Registries, ServerSource, Snapshot};
use tokio::task::{JoinHandle, spawn_local};

use super::queries::Client;
use super::report::Sink;
use super::{consul, dns_srv, etcd, files, http_sd, kubernetes, nomad};

/// What a source depends on, besides its policy.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Settings {
    /// Everything is in its policy.
    Policy,
    Consul(Arc<Consul>),
    Nomad(Arc<Nomad>),
    Etcd(Arc<Etcd>),
    /// The DNS servers; empty: the system's.
    Resolver(Arc<Vec<SocketAddr>>),
}

impl Settings {
    pub(super) fn of(source: &ServerSource, snapshot: &Snapshot) -> Settings {
        let Registries { consul, nomad, etcd } = &snapshot.registries;
        let of_registry = match source {
            ServerSource::Consul { .. } => consul.clone().map(Settings::Consul),
            ServerSource::Nomad { .. } => nomad.clone().map(Settings::Nomad),
            ServerSource::Etcd { .. } => etcd.clone().map(Settings::Etcd),
            ServerSource::DnsSrv { .. } => {
                Some(Settings::Resolver(Arc::new(snapshot.resolver.clone())))
            }
            ServerSource::Kubernetes { .. }
            | ServerSource::Files { .. }
            | ServerSource::FileSd { .. }
            | ServerSource::HttpSd { .. } => None,
        };
        // A checked configuration has the registries that its services name.
        of_registry.unwrap_or(Settings::Policy)
    }

    /// Returns the parts that answer on their own: datacenters; at least one.
    pub(super) fn parts(&self) -> Vec<Option<Box<str>>> {
        match self {
            Settings::Consul(settings) => consul::datacenters(settings),
            _ => vec![None],
        }
    }

    /// Returns what is asked where. The query of a URL may hold a secret, so only its hash is part of it.
    pub(super) fn identity(&self, source: &ServerSource) -> Arc<str> {
        let place = match (self, source) {
            (Settings::Consul(consul), _) => {
                format!(" at {} {}", consul.peer.url, consul.datacenters.join(" "))
            }
            (Settings::Nomad(nomad), _) => {
                let or_none = |text: &Option<Box<str>>| text.as_deref().unwrap_or("-").to_owned();
                let (namespace, region) = (or_none(&nomad.namespace), or_none(&nomad.region));
                format!(" at {} {namespace} {region}", nomad.peer.url)
            }
            (_, ServerSource::HttpSd { peer, .. }) => {
                let mut hasher = DefaultHasher::new();
                peer.url.target().hash(&mut hasher);
                format!(" {:016x}", hasher.finish())
            }
            // The members of a cluster come and go, and a DNS server does not change the name.
            (Settings::Policy | Settings::Etcd(_) | Settings::Resolver(_), _) => String::new(),
        };
        format!("{source}{place}").into()
    }
}

/// The connections to registries, by settings: those in force, and those of a configuration that may come into force.
#[derive(Default)]
pub(super) struct Clients {
    consul: Vec<(Arc<Consul>, Rc<Client>)>,
    nomad: Vec<(Arc<Nomad>, Rc<Client>)>,
    etcd: Vec<(Arc<Etcd>, Rc<etcd::Client>)>,
    dns: Vec<(Arc<Vec<SocketAddr>>, Rc<dns_srv::Client>)>,
    /// The Pods that are known.
    pods: Option<kubernetes::Pods>,
}

impl Clients {
    /// Returns no connections. `pods`: where the Pods of Kubernetes come from; `None`: it is not used.
    pub(super) fn new(pods: Option<kubernetes::Pods>) -> Clients {
        Clients { pods, ..Clients::default() }
    }

    pub(super) fn consul(&mut self, settings: &Arc<Consul>) -> Rc<Client> {
        client(&mut self.consul, settings, consul::client)
    }

    /// Drops those of other settings.
    pub(super) fn retain(&mut self, snapshot: &Snapshot) {
        let Registries { consul, nomad, etcd } = &snapshot.registries;
        self.consul.retain(|(settings, _)| Some(settings) == consul.as_ref());
        self.nomad.retain(|(settings, _)| Some(settings) == nomad.as_ref());
        self.etcd.retain(|(settings, _)| Some(settings) == etcd.as_ref());
        self.dns.retain(|(resolver, _)| **resolver == snapshot.resolver);
    }
}

/// Returns the client for `settings`, which is made if there is none.
fn client<S: PartialEq, C>(
    known: &mut Vec<(Arc<S>, Rc<C>)>,
    settings: &Arc<S>,
    new: impl FnOnce(&S) -> C,
) -> Rc<C> {
    if let Some((_, client)) = known.iter().find(|(other, _)| other == settings) {
        return Rc::clone(client);
    }
    let client = Rc::new(new(settings));
    known.push((Arc::clone(settings), Rc::clone(&client)));
    client
}

/// Starts the tasks that ask a source. `sink` returns where the task for a part reports.
pub(super) fn tasks(
    policy: &Discover,
    settings: &Settings,
    clients: &mut Clients,
    sink: impl Fn(usize) -> Sink,
) -> Vec<JoinHandle<()>> {
    let (port, limits) = (policy.port, policy.limits);
    let task = match (&policy.source, settings) {
        (ServerSource::Consul { service, tag }, Settings::Consul(consul)) => {
            let client = clients.consul(consul);
            let watches = settings.parts().into_iter().enumerate().map(|(part, datacenter)| {
                let asked = consul::Asked {
                    service: Arc::clone(service),
                    tag: tag.clone(),
                    datacenter,
                    stale: consul.queries.stale,
                    reading: from_consul::Reading { limits, port },
                };
                spawn_local(consul::watch(Rc::clone(&client), asked, sink(part)))
            });
            return watches.collect();
        }
        (ServerSource::Nomad { service, tag }, Settings::Nomad(nomad)) => {
            let client = client(&mut clients.nomad, nomad, nomad::client);
            let reading = from_nomad::Reading { limits, port, tag: tag.clone() };
            let (nomad, service) = (Arc::clone(nomad), Arc::clone(service));
            spawn_local(nomad::watch(client, nomad, service, reading, sink(0)))
        }
        (ServerSource::Etcd { prefix }, Settings::Etcd(etcd)) => {
            let client = client(&mut clients.etcd, etcd, etcd::Client::new);
            let reading = from_etcd::Reading { limits, port };
            spawn_local(etcd::watch(client, Arc::clone(prefix), reading, sink(0)))
        }
        (ServerSource::Kubernetes { namespace, service, port: name }, _) => {
            let Some(pods) = clients.pods.clone() else { return Vec::new() };
            let of = (Key::new(Arc::clone(namespace), Arc::clone(service)), name.clone());
            spawn_local(kubernetes::watch(pods, of, port, sink(0)))
        }
        (ServerSource::DnsSrv { name }, Settings::Resolver(resolver)) => {
            let client = client(&mut clients.dns, resolver, |it| dns_srv::Client::new(it));
            spawn_local(dns_srv::watch(client, name.clone(), port, sink(0)))
        }
        (ServerSource::Files { folder, names }, _) => {
            let (folder, names) = (folder.clone(), names.clone());
            spawn_local(files::watch(folder, names, files::rows, port, sink(0)))
        }
        (ServerSource::FileSd { folder, names }, _) => {
            let (folder, names) = (folder.clone(), names.clone());
            spawn_local(files::watch(folder, names, files::prometheus, port, sink(0)))
        }
        (ServerSource::HttpSd { peer, interval }, _) => {
            spawn_local(http_sd::watch(peer.clone(), *interval, port, sink(0)))
        }
        // A checked configuration has the settings of each source.
        (
            ServerSource::Consul { .. }
            | ServerSource::Nomad { .. }
            | ServerSource::Etcd { .. }
            | ServerSource::DnsSrv { .. },
            _,
        ) => return Vec::new(),
    };
    vec![task]
}
