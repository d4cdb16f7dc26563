//! What accepted Gateways serve, in the terms of Weir's configuration.
//!
//! Each port of a Gateway becomes one listener. Its routes are in force there only. Ports of Services become
//! services, which routes share.

mod authentication;
mod ingress;
mod isolation;
mod join;
mod listener;
mod route;
mod rule;
mod service;
mod session;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use model::{Listener, Material, Service};

use crate::objects::Key;

pub use join::{Joined, Joiner};
pub use service::{authorities, certificate};

/// What the parts take from the configuration file.
#[derive(Clone, Copy, Debug)]
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
