//! Objects of the cluster → what to serve ([`crate::ir`]) and the status of each object.
//!
//! [`World::new`] checks and indexes everything but routes. [`route`] resolves one route at a time against it, and
//! [`assemble`] puts the results together. After a change, [`incremental`] reuses the results of routes that do not refer
//! to the changed objects. [`ingress`] does the same for Ingresses.

pub mod assemble;
pub mod attach;
pub mod attached;
pub mod cluster;
pub mod decode;
pub mod gateway;
pub mod incremental;
pub mod ingress;
pub mod ingress_classes;
pub mod listener;
pub mod namespaces;
pub mod pem;
pub mod policy;
pub mod ports;
pub mod references;
pub mod route;
pub mod route_policy;
pub mod route_targets;
pub mod secret;
pub mod status;
pub mod world;

pub use assemble::{Outcome, Surroundings, assemble};
pub use cluster::{Checks, INGRESS_CONTROLLER, Objects, Settings};
use incremental::{Changes, Routes};
pub use world::World;

/// Resolves all objects at once.
pub fn resolve(objects: &Objects, settings: &Settings, surroundings: Surroundings<'_>) -> Outcome {
    let world = World::new(objects, settings);
    let mut routes = Routes::default();
    routes.update(&world, &Changes::all());
    let mut outcome = assemble(&world, &routes, surroundings);
    let mut ingresses = ingress::Ingresses::default();
    ingresses.update(&world, &Changes::all());
    ingresses.add(&world, &mut outcome, surroundings);
    outcome
}
