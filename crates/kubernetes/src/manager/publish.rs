//! A result → the caller, and what is written for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway::ir;
use gateway::ir::ingress::is_implied;
use gateway::objects::Key;
use gateway::pods::PodSets;
use gateway::resolve::status::{Notice, Statuses};
use gateway::served::{InForce, Served};
use os::clock::now;

use super::Manager;
use crate::absence::standing;
use crate::event::Event;
use crate::expose::ports::{PORTS_MAX, Targets};
use crate::expose::service::{self, Shared};
use crate::failure::{Cause, Failure};
use crate::kinds::{Kind, Source};
use crate::resolver::Resolution;
use crate::settings::Exposure;
use crate::unserved::{self, Unserved, Why};

/// What is written once its generation is in force.
pub(super) struct Outcome {
    generation: u64,
    statuses: Arc<Statuses>,
    gateways: Arc<BTreeMap<Key, Arc<ir::Gateway>>>,
    /// Ports without a binding.
    unserved: Unserved,
}

impl Manager {
    pub(super) fn publish(&mut self, resolution: Resolution, in_force: &InForce) {
        let unserved = self.set_services(&resolution);
        self.report_not_exposed(&unserved);
        let Resolution { gateways, bindings, statuses, notices, ports } = resolution;
        self.set_notices(notices, &unserved);
        let has_other_services = !Arc::ptr_eq(&self.used, &ports);
        if has_other_services {
            let is_other = |(port, max): &(_, &Option<u32>)| self.used.get(*port) != Some(*max);
            let other = ports.iter().filter(is_other).map(|((service, _), _)| service.clone());
            self.store.dirty.slices.extend(other);
        }
        self.used = ports;
        if has_other_services {
            let before = Arc::clone(&self.outputs.pods.borrow());
            let gone = before.iter().filter(|(port, _)| !self.used.contains_key(*port));
            self.leaving.extend(gone.map(|(port, pods)| (port.clone(), pods.clone())));
        }
        // Pods first: a reader of a Service must find its Pods.
        if has_other_services || !self.store.dirty.slices.is_empty() {
            self.publish_pods();
        }
        let before = Arc::clone(&self.outputs.served.borrow());
        let bindings = if *before.bindings == bindings {
            Arc::clone(&before.bindings)
        } else {
            Arc::new(bindings)
        };
        let is_same =
            Arc::ptr_eq(&before.gateways, &gateways) && Arc::ptr_eq(&before.bindings, &bindings);
        let mut generation = before.generation;
        if !is_same || !before.is_complete {
            generation += 1;
            let gateways = Arc::clone(&gateways);
            let served = Served { generation, is_complete: true, gateways, bindings };
            self.outputs.served.send_replace(Arc::new(served));
        }
        let statuses = Arc::new(statuses);
        self.latest = Some(Outcome { generation, statuses, gateways, unserved });
        self.in_force(in_force);
    }

    /// Decides which events there should be.
    fn set_notices(&mut self, notices: Arc<[Notice]>, unserved: &Unserved) {
        let classes = &self.store.objects.ingress_classes;
        let mut further = unserved::notices(unserved, classes).peekable();
        if further.peek().is_none() {
            self.recorder.set(&notices, now());
        } else {
            let all = notices.iter().cloned().chain(further).collect();
            self.recorder.set(&all, now());
        }
    }

    /// Passes the statuses on whose generation is in force: what a status says is true when it is written. Ports that
    /// the balancer does not listen on may change without a new generation.
    pub(super) fn in_force(&mut self, in_force: &InForce) {
        let newest = self.outputs.served.borrow().generation;
        if !self.leaving.is_empty() && newest <= in_force.generation {
            self.leaving.clear();
            self.publish_pods();
        }
        let is_ready = |one: &Option<Outcome>| {
            one.as_ref().is_some_and(|one| one.generation <= in_force.generation)
        };
        let ready = if is_ready(&self.latest) {
            self.pending = None;
            self.latest.take()
        } else if is_ready(&self.pending) {
            // The next ones follow, even if there is always a newer generation than the one in force.
            std::mem::replace(&mut self.pending, self.latest.take())
        } else {
            if self.pending.is_none() {
                self.pending = self.latest.take();
            }
            None
        };
        self.passed = ready.or_else(|| self.passed.take());
        let Some(Outcome { statuses, gateways, unserved, .. }) = &self.passed else { return };
        let mut unserved = unserved.clone();
        for (port, why) in &in_force.not_bound {
            unserved.entry(port.clone()).or_insert_with(|| Why::NotBound(Arc::clone(why)));
        }
        self.writer.set_statuses(unserved::mark(statuses, gateways, &unserved));
        if !self.is_leading {
            self.writer.clear();
        }
    }

    /// Publishes Pods that have changed, and those of Services that are newly used. Pods that were listed after an outage
    /// wait for the rest of that state: a Service that exists no more has no Pods.
    pub(super) fn publish_pods(&mut self) {
        let all = std::mem::take(&mut self.store.dirty.slices);
        let is_kept = |service: &Key| {
            let source = |namespace| Source { kind: Kind::EndpointSlice, namespace };
            self.relists.is_of_next_state(&source(None))
                || self.relists.is_of_next_state(&source(Some(Arc::clone(&service.namespace))))
        };
        let (kept, dirty): (BTreeSet<Key>, BTreeSet<Key>) = all.into_iter().partition(is_kept);
        self.store.dirty.slices = kept;
        let before = Arc::clone(&self.outputs.pods.borrow());
        let zone = self.settings.zone.as_deref();
        let mut is_changed = false;
        let pods = self.used.iter().map(|(port, limit_max)| {
            let known = before.get(port).filter(|_| !dirty.contains(&port.0));
            let pods = known.cloned().unwrap_or_else(|| self.store.pods(port, *limit_max, zone));
            is_changed |= before
                .get(port)
                .is_none_or(|before| !Arc::ptr_eq(before, &pods) && *before != pods);
            (port.clone(), pods)
        });
        let mut pods: PodSets = pods.collect();
        // Until the next generation is in force, requests go to Services that it uses no more.
        for (port, leaving) in &self.leaving {
            pods.entry(port.clone()).or_insert_with(|| leaving.clone());
        }
        if is_changed || before.len() != pods.len() {
            self.outputs.pods.send_replace(Arc::new(pods));
        }
    }

    /// Decides which Services are deleted. Only the leader deletes; the others observe, so that another leader does not
    /// begin again.
    pub(super) fn set_unwanted(&mut self) {
        let is_listed = |gateway: &Key| {
            let kind = if is_implied(gateway) { Kind::IngressClass } else { Kind::Gateway };
            let source = |namespace| Source { kind, namespace };
            let all = self.watches.get(&source(None));
            let watch = all.or_else(|| self.watches.get(&source(Some(gateway.namespace.clone()))));
            // A server that ends watches early still lists all Gateways.
            let is_known = |failure: &Failure| failure.cause == Cause::Gone;
            let is_hidden = self.hidden.contains(&gateway.namespace);
            !is_hidden
                && watch
                    .is_some_and(|one| one.is_listed && one.failure.as_ref().is_none_or(is_known))
        };
        let names = (&*self.settings.controller_name, &*self.settings.ingress_controller_name);
        let standings = self.store.own_services.values().map(|one| {
            let gateway = &one.gateway;
            let is_listed = is_listed(gateway);
            (gateway.clone(), standing(&self.store, names, gateway, is_listed))
        });
        let gone = self.absences.observe(standings, now());
        if !self.is_leading || !self.is_complete {
            return;
        }
        let unwanted =
            self.store.own_services.iter().filter(|(_, one)| gone.contains(&one.gateway));
        self.writer.set_unwanted(unwanted.map(|(key, _)| key.clone()).collect());
    }

    /// Decides which Services there should be, if this instance leads. Returns the ports of Gateways without a binding.
    fn set_services(&mut self, resolution: &Resolution) -> Unserved {
        let Exposure::Services { selector, .. } = &self.settings.exposure else {
            return unbound(resolution, |_, _| Why::NoAddress);
        };
        let mut own = self.watches.iter().filter(|(source, _)| source.kind == Kind::OwnService);
        let are_known = own.all(|(_, running)| running.is_listed);
        if !self.is_leading || !are_known {
            self.set_unwanted();
            return unbound(resolution, |_, _| Why::Awaited);
        }
        let shared = Shared {
            controller_name: Arc::clone(&self.settings.controller_name),
            namespace: Arc::clone(&self.settings.namespace),
            selector: selector.clone(),
        };
        let chosen = service::one_per_gateway(self.store.own_services.values());
        let existing: BTreeMap<Key, Targets> =
            chosen.iter().map(|(key, one)| (key.clone(), one.targets.clone())).collect();
        let ports = |gateway: &ir::Gateway| gateway.ports.keys().copied().collect();
        let wanted = resolution.gateways.iter().map(|(key, one)| (key.clone(), ports(one)));
        let wanted: BTreeMap<Key, BTreeSet<u16>> = wanted.collect();
        let allocated = self.ports.allocate(&existing, &wanted);
        let mut services = BTreeMap::new();
        for (key, targets) in allocated.iter().filter(|(_, targets)| !targets.is_empty()) {
            let objects = &self.store.objects;
            let service = if is_implied(key) {
                let class = objects.ingress_classes.get(key);
                class.map(|one| service::wanted(&shared, &service::implied(one), targets))
            } else {
                let gateway = objects.gateways.get(key);
                gateway.map(|one| service::wanted(&shared, one, targets))
            };
            services.extend(service.map(|service| (key.clone(), service)));
        }
        self.writer.set_services(services);
        self.set_unwanted();
        self.writer.touch_services();
        unbound(resolution, |gateway, port| {
            if allocated.get(gateway).is_some_and(|targets| targets.contains_key(&port)) {
                return Why::Awaited;
            }
            let place = wanted.get(gateway).map_or(0, |ports| ports.range(..port).count());
            if place < PORTS_MAX { Why::NoPort } else { Why::TooMany }
        })
    }

    /// Reports Gateways that have newly become unreachable, as far as waiting does not help.
    fn report_not_exposed(&mut self, unserved: &Unserved) {
        let lasting =
            unserved.iter().filter_map(|((gateway, _), why)| Some((gateway, why.advice()?)));
        let not_exposed: BTreeMap<Key, &'static str> =
            lasting.map(|(gateway, why)| (gateway.clone(), why)).collect();
        for (gateway, why) in &not_exposed {
            if !self.not_exposed.contains(gateway) {
                (self.events)(Event::NotExposed { what: service::owner(gateway), why });
            }
        }
        self.not_exposed = not_exposed.into_keys().collect();
    }
}

/// Returns the ports of Gateways for which there is nowhere to listen.
fn unbound(resolution: &Resolution, why: impl Fn(&Key, u16) -> Why) -> Unserved {
    let ports = resolution
        .gateways
        .iter()
        .flat_map(|(key, gateway)| gateway.ports.keys().map(move |port| (key.clone(), *port)));
    let unbound = ports.filter(|port| !resolution.bindings.contains_key(port));
    unbound.map(|(key, port)| ((key.clone(), port), why(&key, port))).collect()
}
