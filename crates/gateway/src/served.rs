//! What passes between the watcher of a cluster and the balancer: what is to be served, and what is served.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::ir;
use crate::objects::Key;

/// What is to be served.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// Increases with every change.
    pub generation: u64,
    /// Whether all objects have been read once. Until then nothing else is set, and no traffic may be accepted: it could
    /// be misrouted.
    pub is_complete: bool,
    /// The accepted Gateways. Those that have not changed are shared with the previous value.
    pub gateways: Arc<BTreeMap<Key, Arc<ir::Gateway>>>,
    /// Where to listen for each port of a Gateway. A port without an entry has no address yet. No two ports have the
    /// same.
    pub bindings: Arc<BTreeMap<(Key, u16), SocketAddr>>,
}

/// What the balancer serves of a [`Served`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    /// The generation of the [`Served`].
    pub generation: u64,
    /// The ports of Gateways that it does not listen on although they have an address, and why, one line.
    pub not_bound: BTreeMap<(Key, u16), Arc<str>>,
}
