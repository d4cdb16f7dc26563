//! The Services that an Ingress refers to: its backends, and those in URLs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::grants::GroupKind;
use crate::ir::backend::ServicePort;
use crate::objects::Key;
use crate::objects::core::ServicePort as PortSpec;
use crate::objects::ingress::{IngressBackend, IngressPort, NETWORKING_GROUP};
use crate::resolve::ports::Ports;
use crate::resolve::route::syntax;
use crate::resolve::secret::Referrer;
use crate::resolve::world::World;

/// Looks up Services for one Ingress.
#[derive(Debug)]
pub struct Backends<'w> {
    world: &'w World<'w>,
    home: &'w Arc<str>,
    /// The Services that the Ingress may refer to, those that do not exist included.
    pub services: BTreeSet<Key>,
}

/// A Service in a URL.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// The Service's port.
    pub port: ServicePort,
    /// The host in the URL.
    pub host: String,
    /// What follows the host and port: empty, or a path and a query.
    pub rest: String,
}

impl<'w> Backends<'w> {
    /// Begins with an Ingress in the namespace `home`.
    pub fn new(world: &'w World<'w>, home: &'w Arc<str>) -> Backends<'w> {
        Backends { world, home, services: BTreeSet::new() }
    }

    /// Returns the port of a backend.
    ///
    /// # Errors
    ///
    /// Why there is none, as sentences.
    pub fn of(&mut self, stated: &IngressBackend) -> Result<ServicePort, String> {
        let Some(service) = &stated.service else {
            return Err("A backend names no Service. Other resources are not supported.".to_owned());
        };
        let key = Key::new(Arc::clone(self.home), Arc::clone(&service.name));
        self.port(&key, &service.port)
    }

    /// Returns the Service in a URL like `http://auth.tools.svc.cluster.local:4180/verify`. Only Services are reached,
    /// and those of other namespaces only if a ReferenceGrant permits it.
    ///
    /// # Errors
    ///
    /// Why it cannot be reached, as the rest of a sentence that begins with what has the URL.
    pub fn of_url(&mut self, url: &str) -> Result<Located, String> {
        const FORM: &str = "a form like http://NAME.NAMESPACE.svc.cluster.local:PORT/PATH";
        let Some(rest) = url.strip_prefix("http://") else {
            return Err(format!(
                "does not begin with http://. Use a Service of the cluster, in {FORM}"
            ));
        };
        let end = rest.find(['/', '?', '$']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().ok().filter(|port| *port != 0)),
            None => (authority, Some(80)),
        };
        let host = syntax::exact_host("The host", &host.to_ascii_lowercase())
            .map_err(|_| format!("has no host that is a name. Use {FORM}"))?;
        let Some(number) = port else { return Err(format!("has an invalid port. Use {FORM}")) };
        let labels: Vec<&str> = host.split('.').collect();
        let key = match labels[..] {
            [name] => Key::new(Arc::clone(self.home), name),
            [name, namespace, "svc"] | [name, namespace, "svc", "cluster", "local"] => {
                Key::new(namespace, name)
            }
            _ => {
                return Err(format!(
                    "is for {host}, which is not a Service of the cluster. Use {FORM}"
                ));
            }
        };
        let kind = GroupKind { group: NETWORKING_GROUP, kind: "Ingress" };
        let from = Referrer { kind, home: self.home };
        let sentence = |message: String| {
            let message = message.trim_end_matches('.');
            format!("cannot be used: {message}")
        };
        from.check_grant(&self.world.cluster, "Service", &key)
            .map_err(|problem| sentence(problem.message))?;
        let port = self.port(&key, &IngressPort { name: None, number: Some(number) });
        let port = port.map_err(sentence)?;
        Ok(Located { port, host, rest: rest.to_owned() })
    }

    fn port(&mut self, key: &Key, stated: &IngressPort) -> Result<ServicePort, String> {
        self.services.insert(key.clone());
        let Some(service) = self.world.cluster.objects.services.get(key) else {
            return Err(format!("Service {key} does not exist. Create it or change the backend."));
        };
        let ports = self.world.ports();
        if let Some(message) = ports.refused(key, service) {
            return Err(message);
        }
        let is_stated = |port: &&PortSpec| match (&stated.name, stated.number) {
            (Some(name), _) => port.name.as_ref() == Some(name),
            (None, Some(number)) => port.port == number,
            (None, None) => false,
        };
        let mut of_service = service.spec.ports.iter().filter(|port| port.is_tcp());
        let Some(port) = of_service.find(is_stated) else {
            let shown = match (&stated.name, stated.number) {
                (Some(name), _) => name.to_string(),
                (None, Some(number)) => number.to_string(),
                (None, None) => return Err(format!("The backend {key} has no port. State one.")),
            };
            return Err(format!(
                "Service {key} has no TCP port {shown}. Change the backend or the Service."
            ));
        };
        Ports::usable(ports.of(key, service, port)).map_err(|problem| problem.message)
    }
}
