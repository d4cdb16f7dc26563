//! How Weir is connected to Kubernetes.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// The `controllerName` of the GatewayClasses that Weir serves, unless the configuration names another one.
pub const GATEWAY_CONTROLLER: &str = "weir.dev/gateway-controller";

/// How Weir is connected to Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubernetes {
    /// The file with the address of the API server and credentials. `None`: in a Pod those of its service account;
    /// elsewhere the file that `$KUBECONFIG` names, or `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// The `controllerName` of the GatewayClasses that this balancer serves.
    pub controller: Arc<str>,
    /// The namespaces that are read; empty: all.
    pub namespaces: Vec<Arc<str>>,
    /// The namespace of Weir's own objects. `None`: that of its Pod; outside of a cluster `default`.
    pub namespace: Option<Arc<str>>,
    /// Whether Services of type `ExternalName` may be backends (CVE-2021-25740).
    pub external_names: bool,
    /// How clients reach Gateways.
    pub exposure: GatewayExposure,
}

/// How clients reach Gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayExposure {
    /// Each Gateway has a Service of type `LoadBalancer`, which forwards each port to another one of Weir's Pods.
    Services {
        /// The labels of Weir's Pods, by which the Services select them.
        pods: Vec<(String, String)>,
        /// The first port of the Pods that a Gateway may use.
        port_first: u16,
        /// The last one.
        port_last: u16,
    },
    /// Each Gateway has one of these addresses, which are this machine's.
    Addresses(Vec<IpAddr>),
}
