//! GatewayClass, Gateway and ListenerSet: where traffic is accepted.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::reference::ObjectRef;
use super::{Condition, LabelSelector, Meta};

/// A class of Gateways, and the controller that implements it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GatewayClass {
    /// Its metadata.
    pub metadata: Meta,
    /// What it states.
    pub spec: GatewayClassSpec,
}

/// See [`GatewayClass`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayClassSpec {
    /// Which controller implements it: a name like `weir.example/controller`.
    pub controller_name: String,
    /// Parameters; Weir has none.
    pub parameters_ref: Option<ObjectRef>,
}

/// Addresses and listeners.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Gateway {
    /// Its metadata.
    pub metadata: Meta,
    /// What it states.
    pub spec: GatewaySpec,
}

/// See [`Gateway`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewaySpec {
    /// Its class.
    pub gateway_class_name: Arc<str>,
    /// Where traffic is accepted; names are unique.
    pub listeners: Vec<Listener>,
    /// Addresses that it should have; empty: any.
    pub addresses: Vec<Address>,
    /// For the objects that are made for it.
    pub infrastructure: Option<Infrastructure>,
    /// Which ListenerSets may add listeners; absent: none.
    pub allowed_listeners: Option<AllowedListeners>,
    /// TLS of all listeners.
    pub tls: Option<GatewayTls>,
}

/// An address of a Gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Address {
    /// `IPAddress`, `Hostname`, or a name with a domain.
    #[serde(rename = "type")]
    pub kind: String,
    /// Absent: any address of this type.
    pub value: Option<String>,
}

impl Default for Address {
    fn default() -> Address {
        Address { kind: "IPAddress".to_owned(), value: None }
    }
}

/// Labels and annotations for the objects that are made for a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Infrastructure {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Parameters; Weir has none.
    pub parameters_ref: Option<ObjectRef>,
}

/// Which ListenerSets may add listeners to a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AllowedListeners {
    /// The namespaces that they are in; absent: none.
    pub namespaces: Option<Namespaces>,
}

/// A set of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Namespaces {
    /// `All`, `Same`, `Selector` or `None`; absent: as the field that has the set says.
    pub from: Option<String>,
    /// For `Selector`: by their labels.
    pub selector: Option<LabelSelector>,
}

/// Where traffic is accepted, and from which routes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Listener {
    /// Its name, unique in its Gateway.
    pub name: Arc<str>,
    /// The requests that it is for, by their host (or server name); absent: all. `*.` at the start is a wildcard.
    pub hostname: Option<String>,
    /// Its port.
    pub port: u16,
    /// `HTTP`, `HTTPS`, `TLS`, `TCP` or `UDP`, or a name with a domain.
    pub protocol: String,
    /// TLS.
    pub tls: Option<ListenerTls>,
    /// Which routes may attach.
    pub allowed_routes: AllowedRoutes,
}

/// TLS of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerTls {
    /// `Terminate` (also if absent) or `Passthrough`.
    pub mode: Option<String>,
    /// Secrets with certificates; a reference without a kind is to a Secret.
    pub certificate_refs: Vec<ObjectRef>,
    /// Settings of an implementation; Weir has none.
    pub options: BTreeMap<String, String>,
}

/// Which routes may attach to a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AllowedRoutes {
    /// The namespaces that they are in; absent: the listener's own.
    pub namespaces: Option<Namespaces>,
    /// Their kinds; empty: those that fit the protocol.
    pub kinds: Vec<RouteGroupKind>,
}

/// A kind of route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteGroupKind {
    /// Its API group; absent: that of the Gateway API.
    pub group: Option<String>,
    /// Its kind.
    pub kind: String,
}

impl Default for RouteGroupKind {
    fn default() -> RouteGroupKind {
        RouteGroupKind { group: Some(super::GATEWAY_GROUP.to_owned()), kind: String::new() }
    }
}

/// TLS of all listeners of a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GatewayTls {
    /// Towards servers.
    pub backend: Option<BackendTls>,
    /// Towards clients.
    pub frontend: Option<FrontendTls>,
}

/// TLS of a Gateway towards servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendTls {
    /// The Secret with the certificate that it presents.
    pub client_certificate_ref: Option<ObjectRef>,
}

/// TLS of a Gateway towards clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FrontendTls {
    /// For all ports that `per_port` does not have.
    pub default: ClientTls,
    /// For single ports.
    pub per_port: Vec<PortTls>,
}

/// TLS towards the clients of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PortTls {
    /// The port of HTTPS listeners.
    pub port: u16,
    /// The settings.
    pub tls: ClientTls,
}

/// TLS towards clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClientTls {
    /// How clients' certificates are verified; absent: none is requested.
    pub validation: Option<ClientValidation>,
}

/// How clients' certificates are verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientValidation {
    /// ConfigMaps or Secrets with authorities, in the key `ca.crt`.
    pub ca_certificate_refs: Vec<ObjectRef>,
    /// `AllowValidOnly` (also if absent) or `AllowInsecureFallback`.
    pub mode: Option<String>,
}

/// Further listeners of a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ListenerSet {
    /// Its metadata.
    pub metadata: Meta,
    /// What it states.
    pub spec: ListenerSetSpec,
}

/// See [`ListenerSet`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerSetSpec {
    /// The Gateway; a reference without a group and kind is to one.
    pub parent_ref: ObjectRef,
    /// The listeners.
    pub listeners: Vec<Listener>,
}

/// The status of a GatewayClass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayClassStatus {
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// The features of the Gateway API that Weir has, sorted.
    pub supported_features: Vec<Feature>,
}

/// A feature of the Gateway API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Feature {
    /// Its name.
    pub name: String,
}

/// The status of a Gateway; that of a ListenerSet has its conditions and listeners only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayStatus {
    /// The addresses that it has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// The state of each listener.
    pub listeners: Vec<ListenerStatus>,
    /// How many ListenerSets add listeners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached_listener_sets: Option<u32>,
}

/// The state of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerStatus {
    /// The listener.
    pub name: Arc<str>,
    /// The kinds of routes that may attach.
    pub supported_kinds: Vec<RouteGroupKind>,
    /// How many routes are attached.
    pub attached_routes: u32,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}
