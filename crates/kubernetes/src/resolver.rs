//! Known objects → what is served and written. Pure. Results of routes are kept between changes.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use gateway::ir;
use gateway::objects::Key;
use gateway::objects::gateway::{Address, Gateway};
use gateway::pods::ServicePortKey;
use gateway::resolve::incremental::{Changes, Routes};
use gateway::resolve::ingress::Ingresses;
use gateway::resolve::status::{Notice, Statuses};
use gateway::resolve::{Outcome, Surroundings, World, assemble};

use crate::expose::{pool, service};
use crate::settings::{Exposure, Settings};
use crate::store::Store;

/// Resolves objects.
#[derive(Debug)]
pub(crate) struct Resolver {
    settings: gateway::resolve::Settings,
    features: Vec<&'static str>,
    /// Those with the CRDs of the experimental channel.
    experimental_features: Vec<&'static str>,
    /// Whether the CRDs are of that channel.
    is_experimental: bool,
    exposure: Exposure,
    routes: Routes,
    ingresses: Ingresses,
    /// The Gateways of the last result.
    gateways: Arc<BTreeMap<Key, Arc<ir::Gateway>>>,
    /// See [`Resolution::ports`].
    ports: Arc<PortLimits>,
    /// The addresses of the pool that Gateways had in the last result.
    assigned: BTreeMap<Key, IpAddr>,
}

/// A result.
#[derive(Debug)]
pub(crate) struct Resolution {
    /// The accepted Gateways. The same `Arc` as before if none has changed.
    pub(crate) gateways: Arc<BTreeMap<Key, Arc<ir::Gateway>>>,
    pub(crate) bindings: BTreeMap<(Key, u16), SocketAddr>,
    pub(crate) statuses: Statuses,
    /// What users should know about objects without conditions.
    pub(crate) notices: Arc<[Notice]>,
    /// The ports of Services that Gateways use. The same `Arc` as before if they have not changed.
    pub(crate) ports: Arc<PortLimits>,
}

/// Ports of Services, with the most that their Pods may state as their concurrency limits. `None`: they may state none.
pub(crate) type PortLimits = BTreeMap<ServicePortKey, Option<u32>>;

impl Resolver {
    pub(crate) fn new(settings: &Settings) -> Resolver {
        Resolver {
            settings: gateway::resolve::Settings {
                controller_name: Arc::clone(&settings.controller_name),
                ingress_controller_name: Arc::clone(&settings.ingress_controller_name),
                allow_external_names: settings.allow_external_names,
                checks: settings.checks,
            },
            features: settings.features.clone(),
            experimental_features: [&*settings.features, &*settings.experimental_features].concat(),
            is_experimental: false,
            exposure: settings.exposure.clone(),
            routes: Routes::default(),
            ingresses: Ingresses::default(),
            gateways: Arc::default(),
            ports: Arc::default(),
            assigned: BTreeMap::new(),
        }
    }

    /// Returns how objects are resolved.
    pub(crate) fn settings(&self) -> &gateway::resolve::Settings {
        &self.settings
    }

    /// Sets whether the CRDs are of the experimental channel. Returns whether that is news.
    pub(crate) fn set_experimental(&mut self, is_experimental: bool) -> bool {
        std::mem::replace(&mut self.is_experimental, is_experimental) != is_experimental
    }

    /// Returns whether a change can change the result.
    pub(crate) fn is_concerned(&self, store: &Store, changes: &Changes) -> bool {
        self.routes.are_concerned(&store.objects, changes) || self.ingresses.are_concerned(changes)
    }

    /// Resolves what a change concerns.
    pub(crate) fn resolve(&mut self, store: &Store, changes: &Changes) -> Resolution {
        let world = World::new(&store.objects, &self.settings);
        self.routes.update(&world, changes);
        self.ingresses.update(&world, changes);
        let exposed = match &self.exposure {
            Exposure::Services { listen, .. } => Exposed::by_services(store, *listen),
            Exposure::Pool { addresses } => {
                let implied = self.ingresses.implied();
                self.assigned = assign(store, &world, implied, addresses, &self.assigned);
                Exposed::by_pool(&self.assigned)
            }
        };
        let addresses = &exposed.addresses;
        let features =
            if self.is_experimental { &self.experimental_features } else { &self.features };
        let surroundings = Surroundings { features, addresses };
        let mut outcome = assemble(&world, &self.routes, surroundings);
        self.ingresses.add(&world, &mut outcome, surroundings);
        self.share(std::mem::take(&mut outcome.gateways));
        let gateways = Arc::clone(&self.gateways);
        let bindings = gateways.iter().flat_map(|(key, gateway)| {
            let ports = gateway.ports.keys();
            let exposed = &exposed;
            ports.filter_map(move |port| {
                let address = exposed.binding(key, *port)?;
                Some(((key.clone(), *port), address))
            })
        });
        let bindings = bindings.collect();
        let Outcome { statuses, notices, .. } = outcome;
        Resolution { gateways, bindings, statuses, notices, ports: Arc::clone(&self.ports) }
    }

    /// Keeps Gateways that have not changed, so that the caller sees by the pointer that it need not build them again.
    fn share(&mut self, gateways: BTreeMap<Key, Arc<ir::Gateway>>) {
        let mut is_changed = gateways.len() != self.gateways.len();
        let mut has_other_services = is_changed;
        let shared = gateways.into_iter().map(|(key, gateway)| {
            let before = self.gateways.get(&key);
            let is_same =
                |one: &&Arc<ir::Gateway>| Arc::ptr_eq(one, &gateway) || one.is_same(&gateway);
            if let Some(before) = before.filter(is_same) {
                return (key, Arc::clone(before));
            }
            is_changed = true;
            has_other_services |= before.is_none_or(|one| one.services != gateway.services);
            (key, gateway)
        });
        let shared: BTreeMap<_, _> = shared.collect();
        if is_changed {
            self.gateways = Arc::new(shared);
        }
        if has_other_services {
            let used = self.gateways.values().flat_map(|gateway| gateway.services.values());
            let used = used.filter(|port| port.external_name.is_none());
            let ports =
                used.map(|port| ((port.service.clone(), port.name.clone()), port.pod_limit_max));
            self.ports = Arc::new(ports.collect());
        }
    }
}

/// Where Gateways can be reached.
struct Exposed {
    /// The addresses in their statuses.
    addresses: BTreeMap<Key, Vec<Address>>,
    listen: Listen,
}

enum Listen {
    /// At one address, at the port of Weir's Pods for each port of a Gateway.
    Targets(IpAddr, BTreeMap<Key, service::OwnService>),
    /// At an address for each Gateway, at its own ports.
    Own(BTreeMap<Key, IpAddr>),
}

impl Exposed {
    fn by_services(store: &Store, listen: IpAddr) -> Exposed {
        let existing = service::one_per_gateway(store.own_services.values());
        let addresses = existing.iter().map(|(key, one)| (key.clone(), one.addresses.clone()));
        Exposed { addresses: addresses.collect(), listen: Listen::Targets(listen, existing) }
    }

    fn by_pool(assigned: &BTreeMap<Key, IpAddr>) -> Exposed {
        let addresses =
            assigned.iter().map(|(key, address)| (key.clone(), vec![pool::stated(*address)]));
        Exposed { addresses: addresses.collect(), listen: Listen::Own(assigned.clone()) }
    }

    fn binding(&self, gateway: &Key, port: u16) -> Option<SocketAddr> {
        match &self.listen {
            Listen::Targets(address, existing) => {
                let target = existing.get(gateway)?.targets.get(&port)?;
                Some(SocketAddr::new(*address, *target))
            }
            Listen::Own(assigned) => Some(SocketAddr::new(*assigned.get(gateway)?, port)),
        }
    }
}

/// Returns the address of each Gateway. `before`: those of the last result.
fn assign<'k>(
    store: &Store,
    world: &World<'_>,
    implied: impl Iterator<Item = &'k Key>,
    pool: &[IpAddr],
    before: &BTreeMap<Key, IpAddr>,
) -> BTreeMap<Key, IpAddr> {
    let accepted = world.plans.gateways.values().filter(|plan| plan.rejected.is_none());
    let classes = implied.filter_map(|key| world.cluster.objects.ingress_classes.get(key));
    let implied: Vec<Gateway> = classes.map(|class| service::implied(class)).collect();
    let mut present = store.addresses.clone();
    let classes: Vec<Key> = implied.iter().map(|one| one.metadata.key()).collect();
    present.extend(pool::of_classes(&classes, before, |class| {
        store.ingress_addresses(&world.ingress_classes, Arc::clone(&class.name)).flatten()
    }));
    let accepted: Vec<&Gateway> = accepted.map(|plan| plan.gateway).chain(&implied).collect();
    pool::assign(pool, &accepted, &present)
}
