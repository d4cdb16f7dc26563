//! What accepted Gateways serve, in the terms of Weir's configuration.
//!
//! Each port of a Gateway becomes one listener. Its routes are in force there only. Ports of Services become
//! services, which routes share.

mod isolation;
mod join;
mod listener;
mod route;
mod rule;
mod service;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use model::{Listener, Material, Route, Service};

use crate::ir::Gateway;
use crate::objects::Key;

pub use join::{Joined, join};
pub use service::{authorities, certificate};

/// Listeners, routes and services. The IDs in them are indices of the lists here.
#[derive(Debug, Default)]
pub struct Parts {
    /// One for each port of each Gateway that has an address to listen on.
    pub listeners: Vec<PortListener>,
    /// Each names its listener.
    pub routes: Vec<Route>,
    /// In order of name. Their servers are the Pods that EndpointSlices list.
    pub services: Vec<Arc<Service>>,
}

/// The listener for a port of a Gateway.
#[derive(Debug)]
pub struct PortListener {
    /// The Gateway and the port.
    pub port: (Key, u16),
    /// What listens for it.
    pub listener: Listener,
}

/// What the parts take from the configuration file.
#[derive(Debug)]
pub struct Templates<'a> {
    /// A listener with the defaults of the file.
    pub listener: &'a Listener,
    /// A service with the defaults of the file.
    pub service: &'a Service,
    /// The authorities that this machine trusts, PEM.
    pub authorities: &'a Material,
}

/// The addresses to listen on, by Gateway and port. A Gateway serves only ports that have one.
pub type Bindings = BTreeMap<(Key, u16), SocketAddr>;

/// Converts what Gateways serve.
pub fn parts<'a>(
    gateways: impl IntoIterator<Item = &'a Gateway>,
    bindings: &Bindings,
    templates: &Templates<'_>,
) -> Parts {
    let gateways: Vec<&Gateway> = gateways.into_iter().collect();
    let services = service::collect(&gateways, templates);
    let mut parts = Parts::default();
    for gateway in gateways {
        for (port, listeners) in &gateway.ports {
            let key = (gateway.key.clone(), *port);
            let Some(address) = bindings.get(&key) else { continue };
            let id = model::ListenerId(parts.listeners.len() as u32);
            let listener = listener::listener(
                (gateway, *port),
                listeners,
                (*address).into(),
                &services,
                templates,
            );
            parts.listeners.push(PortListener { port: key, listener });
            route::add((gateway, *port), listeners, id, &services, &mut parts.routes);
        }
    }
    parts.services = services.into_services();
    parts
}
