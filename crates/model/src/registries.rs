//! How the registries of servers are reached: Consul, Nomad, etcd. One of each for all services.

use std::sync::Arc;
use std::time::Duration;

use crate::{HostPattern, HttpPeer, Text};

/// The registries that services use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registries {
    /// Consul; `None`: no service comes from there.
    pub consul: Option<Arc<Consul>>,
    /// Nomad; `None`: no service comes from there.
    pub nomad: Option<Arc<Nomad>>,
    /// etcd; `None`: no service comes from there.
    pub etcd: Option<Arc<Etcd>>,
}

/// How Consul is reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Consul {
    /// An agent or a server; its URL has no path.
    pub peer: HttpPeer,
    /// The ACL token (`X-Consul-Token`).
    pub token: Option<Text>,
    /// The datacenters that are asked: servers of the first are primaries, those of the others backups. Empty:
    /// the agent's own.
    pub datacenters: Vec<Box<str>>,
    /// How it is asked.
    pub queries: BlockingQueries,
    /// The routes that services may publish in their tags; `None`: none.
    pub routes: Option<TagRoutes>,
}

/// Which routes services may publish in their tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagRoutes {
    /// Each route has one of these hosts, or one below a wildcard among them. Not empty.
    pub hosts: Vec<HostPattern>,
    /// The formats of tags that are read.
    pub formats: Vec<RouteTagFormat>,
    /// The http listeners that routes may be for, by name; empty: all.
    pub listeners: Vec<Arc<str>>,
    /// How long the routes of a service that is no longer listed stay.
    pub hold_max: Duration,
}

crate::words! {
    /// A format of tags in Consul by which a service publishes routes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum RouteTagFormat {
        /// Weir's own: `weir.route=web.example/api strip`.
        Weir = "weir",
        /// Fabio's: `urlprefix-web.example/api strip=/api`.
        Fabio = "fabio",
        /// Traefik's: ``traefik.http.routers.web.rule=Host(`web.example`) && PathPrefix(`/api`)``.
        Traefik = "traefik",
    }
}

/// How Nomad is reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Nomad {
    /// An agent or a server; its URL has no path.
    pub peer: HttpPeer,
    /// The ACL token (`X-Nomad-Token`).
    pub token: Option<Text>,
    /// The namespace of the services; `None`: `default`.
    pub namespace: Option<Box<str>>,
    /// The region that is asked; `None`: the agent's own.
    pub region: Option<Box<str>>,
    /// How it is asked.
    pub queries: BlockingQueries,
}

/// How blocking queries are made: requests that are answered when something changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockingQueries {
    /// Whether servers other than the leader may answer.
    pub stale: bool,
    /// How long a query is held while nothing changes.
    pub wait: Duration,
    /// Connections at the same time. More services than that share them.
    pub connections_max: u32,
}

/// How etcd is reached.
#[derive(Clone, Debug, PartialEq)]
pub struct Etcd {
    /// Members of the cluster; at least one. Their URLs have no path.
    pub endpoints: Vec<HttpPeer>,
    /// The user's name and password.
    pub user: Option<(Text, Text)>,
}
