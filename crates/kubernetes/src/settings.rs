//! What the caller decides.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// At most this many namespaces can be watched one by one: each needs a dozen connections to the API server.
pub(crate) const NAMESPACES_MAX: usize = 64;

/// How Weir reads a cluster and writes to it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A kubeconfig file. `None`: the file in `$KUBECONFIG` or `~/.kube/config`, else the Pod's ServiceAccount.
    pub kubeconfig: Option<PathBuf>,
    /// Weir's name in GatewayClasses, such as [`model::GATEWAY_CONTROLLER`].
    pub controller_name: Arc<str>,
    /// Weir's name in IngressClasses.
    pub ingress_controller_name: Arc<str>,
    /// The namespaces to watch, at most 64. `None`: all of the cluster. GatewayClasses and Namespaces have no namespace,
    /// and are always watched.
    pub namespaces: Option<Vec<Arc<str>>>,
    /// This instance, as the Lease names it: the name of its Pod or host. [`start`](crate::start) adds a random suffix,
    /// since two processes may have the same name.
    pub identity: Arc<str>,
    /// The namespace of Weir's Pods: the Lease and the Services for Gateways are in it.
    pub namespace: Arc<str>,
    /// The Lease of the instance that writes.
    pub lease: Arc<str>,
    /// The zone of this instance. Servers of the same zone are preferred where the cluster asks for it.
    pub zone: Option<Arc<str>>,
    /// How clients reach Gateways.
    pub exposure: Exposure,
    /// The features of the Gateway API that Weir supports.
    pub features: Vec<&'static str>,
    /// Those that it supports besides with the CRDs of the experimental channel.
    pub experimental_features: Vec<&'static str>,
    /// Whether Services of type `ExternalName` are allowed (CVE-2021-25740).
    pub allow_external_names: bool,
    /// Whether clients of an aggregated API are to be reviewed.
    pub has_reviews: bool,
    /// Which certificates and authorities can be used.
    pub checks: gateway::resolve::Checks,
}

/// How clients reach Gateways. Each Gateway has an address of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// By a Service of type LoadBalancer for each Gateway, in the namespace of Weir's Pods.
    Services {
        /// Labels that select Weir's Pods.
        selector: BTreeMap<String, String>,
        /// The first port that Weir's Pods may listen on for a Gateway.
        port_first: u16,
        /// The last port.
        port_last: u16,
        /// The address to listen on: usually `::`.
        listen: IpAddr,
    },
    /// By an address of this host for each Gateway, for Weir outside of a cluster.
    Pool {
        /// The addresses.
        addresses: Vec<IpAddr>,
    },
}
