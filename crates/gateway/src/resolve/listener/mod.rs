//! One listener of a Gateway or a ListenerSet: whether it is valid, and its status without the routes.

pub mod conflict;
pub mod kinds;
pub mod tls;

use std::sync::Arc;

use model::HostPattern;

use super::cluster::Cluster;
use super::namespaces;
use super::status::{Condition, Problem};
use crate::grants::GroupKind;
use crate::hosts;
use crate::ir::{Certificate, ClientValidation, ListenerId, Protocol, RouteKind};
use crate::objects::gateway::{Gateway, Listener};
use crate::objects::{GATEWAY_GROUP, Key};
use crate::resolve::secret::Referrer;

/// A listener, and what is wrong with it.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// Identifies it.
    pub id: ListenerId,
    /// The listener.
    pub spec: &'a Listener,
    /// The namespace of the object that defines it.
    pub home: &'a Arc<str>,
    /// Its protocol. `None`: not supported.
    pub protocol: Option<Protocol>,
    /// Its host. `None`: any.
    pub host: Option<HostPattern>,
    /// The kinds of routes that may attach.
    pub kinds: Vec<RouteKind>,
    /// Its valid certificates.
    pub certificates: Vec<Certificate>,
    /// How it verifies certificates of clients.
    pub client_validation: Option<ClientValidation>,
    /// Why it is not accepted.
    pub rejected: Option<Problem>,
    /// Why it is not distinct from another listener; also a reason for not being accepted.
    pub conflict: Option<Problem>,
    /// References that are invalid.
    pub unresolved: Vec<Problem>,
    /// Why it is not served although it is accepted.
    pub unusable: Option<String>,
    /// Whether its host overlaps with that of another TLS listener of the port.
    pub is_overlapping: bool,
}

impl<'a> Plan<'a> {
    /// Checks a listener on its own. `gateway` is the Gateway that serves it, `set` the ListenerSet that defines it.
    pub fn new(
        cluster: &Cluster<'_>,
        gateway: &'a Gateway,
        set: Option<Key>,
        home: &'a Arc<str>,
        spec: &'a Listener,
    ) -> Plan<'a> {
        let kind = if set.is_some() { "ListenerSet" } else { "Gateway" };
        let from = Referrer { kind: GroupKind { group: GATEWAY_GROUP, kind }, home };
        let gateway_key = gateway.metadata.key();
        let mut plan = Plan {
            id: ListenerId { gateway: gateway_key, set, name: Arc::clone(&spec.name) },
            spec,
            home,
            protocol: None,
            host: None,
            kinds: Vec::new(),
            certificates: Vec::new(),
            client_validation: None,
            rejected: None,
            conflict: None,
            unresolved: Vec::new(),
            unusable: None,
            is_overlapping: false,
        };
        match kinds::protocol(spec) {
            Ok(protocol) => plan.protocol = Some(protocol),
            Err(problem) => {
                plan.rejected = Some(problem);
                return plan;
            }
        }
        plan.read_host();
        if let Some(word) = namespaces::unknown(spec.allowed_routes.namespaces.as_ref()) {
            plan.reject(
                "UnsupportedValue",
                format!("allowedRoutes.namespaces.from {word} is not supported."),
            );
        }
        plan.read_certificates(cluster, from);
        plan.read_client_validation(cluster, gateway);
        plan.read_kinds();
        plan
    }

    /// Returns whether it is served if its Gateway is accepted.
    pub fn is_valid(&self) -> bool {
        self.rejected.is_none() && self.conflict.is_none() && self.unusable.is_none()
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.spec.port
    }

    fn reject(&mut self, reason: &'static str, message: String) {
        self.rejected.get_or_insert_with(|| Problem::new(reason, message));
    }

    fn read_host(&mut self) {
        let has_host = self.protocol.is_some_and(|protocol| protocol != Protocol::Tcp);
        let text = self.spec.hostname.as_deref().filter(|text| has_host && !text.is_empty());
        let Some(text) = text else { return };
        match hosts::host(text) {
            Ok(host) => self.host = Some(host),
            Err(why) => self.reject("UnsupportedValue", format!("hostname {text} {why}.")),
        }
    }

    fn read_certificates(&mut self, cluster: &Cluster<'_>, from: Referrer<'_>) {
        if !self.protocol.is_some_and(Protocol::terminates_tls) {
            return;
        }
        let (certificates, problems) = tls::certificates(cluster, from, self.spec);
        if certificates.is_empty() {
            self.unusable =
                Some("It has no valid certificate, see the condition ResolvedRefs.".to_owned());
        }
        self.certificates = certificates;
        self.unresolved.extend(problems);
    }

    fn read_client_validation(&mut self, cluster: &Cluster<'_>, gateway: &Gateway) {
        if self.protocol != Some(Protocol::Https) {
            return;
        }
        let Some(stated) = tls::client_validation_of(gateway, self.spec.port) else { return };
        let (validation, problems) = tls::client_validation(cluster, gateway, stated);
        self.unresolved.extend(problems);
        match validation {
            Ok(validation) => self.client_validation = Some(validation),
            Err(problem) => self.reject(problem.reason, problem.message),
        }
    }

    fn read_kinds(&mut self) {
        let Some(protocol) = self.protocol else { return };
        let (kinds, problem) = kinds::supported(protocol, &self.spec.allowed_routes.kinds);
        if kinds.is_empty() && self.unusable.is_none() {
            self.unusable =
                Some("No route can attach to it, see the condition ResolvedRefs.".to_owned());
        }
        self.kinds = kinds;
        self.unresolved.extend(problem);
    }

    /// Returns its conditions. `gateway_problem`: why its Gateway is not accepted.
    pub fn conditions(&self, gateway_problem: Option<&str>) -> Vec<Condition> {
        let name = &self.id.name;
        let rejected = self.conflict.as_ref().or(self.rejected.as_ref());
        let supported = || format!("Weir supports all settings of listener {name}.");
        let accepted = match rejected {
            Some(problem) => Condition::no("Accepted", problem),
            None => Condition::yes("Accepted", "Accepted", supported()),
        };
        let why = self.unusable.as_deref().or(gateway_problem);
        let programmed = match (&self.conflict, rejected, why) {
            (Some(conflict), _, _) => Condition::no("Programmed", conflict),
            (None, Some(problem), _) => {
                Condition::no("Programmed", &Problem::new("Invalid", problem.message.clone()))
            }
            (None, None, Some(why)) => {
                let message = format!("Listener {name} is not served. {why}");
                Condition::no("Programmed", &Problem::new("Invalid", message))
            }
            (None, None, None) => {
                Condition::yes("Programmed", "Programmed", format!("Listener {name} is served."))
            }
        };
        let resolved = match Problem::first(&self.unresolved) {
            Some(problem) => Condition::no("ResolvedRefs", &problem),
            None => Condition::yes(
                "ResolvedRefs",
                "ResolvedRefs",
                format!("All references of listener {name} are valid."),
            ),
        };
        let conflicted = match &self.conflict {
            Some(problem) => Condition::yes("Conflicted", problem.reason, problem.message.clone()),
            None => Condition::no(
                "Conflicted",
                &Problem::new("NoConflicts", format!("Listener {name} conflicts with no other.")),
            ),
        };
        let overlapping = self.is_overlapping.then(|| {
            Condition::yes(
                "OverlappingTLSConfig",
                "OverlappingHostnames",
                format!(
                    "The hostname of listener {name} overlaps with that of another TLS listener of \
                     port {}. A request on a reused connection for the other hostname receives the \
                     status 421.",
                    self.spec.port
                ),
            )
        });
        [accepted, programmed, resolved, conflicted].into_iter().chain(overlapping).collect()
    }
}
