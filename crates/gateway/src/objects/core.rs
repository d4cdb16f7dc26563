//! Objects of Kubernetes itself: Services with their EndpointSlices, Secrets, ConfigMaps, namespaces.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Deserializer};

use super::{Key, Meta};

/// A namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Its metadata: its labels choose it.
    pub metadata: Meta,
}

/// A Service: a name for a set of Pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Service {
    /// Its metadata.
    pub metadata: Meta,
    /// What it states.
    pub spec: ServiceSpec,
}

/// See [`Service`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpec {
    /// `ClusterIP` (also if absent), `NodePort`, `LoadBalancer` or `ExternalName`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// For `ExternalName`: the name that it stands for.
    pub external_name: Option<String>,
}

/// A port of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Its name; absent if it is the only one. EndpointSlices have it, too.
    pub name: Option<Arc<str>>,
    /// The port.
    pub port: u16,
    /// `TCP` (also if absent), `UDP` or `SCTP`.
    pub protocol: Option<String>,
    /// The protocol that its Pods speak: `kubernetes.io/h2c`, `kubernetes.io/ws`, `https` and so on.
    pub app_protocol: Option<String>,
}

impl ServicePort {
    /// Returns whether it is a port of TCP, which is the default.
    pub fn is_tcp(&self) -> bool {
        self.protocol.as_deref().unwrap_or("TCP") == "TCP"
    }
}

/// A part of a Service's addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointSlice {
    /// Its metadata: the label `kubernetes.io/service-name` has the Service.
    pub metadata: Meta,
    /// `IPv4`, `IPv6` or `FQDN`.
    pub address_type: String,
    /// The addresses.
    #[serde(deserialize_with = "list")]
    pub endpoints: Vec<Endpoint>,
    /// The ports of each of them.
    #[serde(deserialize_with = "list")]
    pub ports: Vec<EndpointPort>,
}

/// Reads a list. The API server writes an empty list of an EndpointSlice as `null`.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl EndpointSlice {
    /// Returns the name of its Service, if it belongs to one.
    pub fn service(&self) -> Option<&str> {
        self.metadata.labels.get("kubernetes.io/service-name").map(String::as_str)
    }
}

/// An address of a Service, usually of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    /// Its address; of several only the first is used (as the API demands).
    #[serde(deserialize_with = "list")]
    pub addresses: Vec<String>,
    /// Its state.
    pub conditions: EndpointConditions,
    /// Its zone.
    pub zone: Option<Arc<str>>,
    /// Which zones are to use it.
    pub hints: Option<Hints>,
    /// The Pod.
    pub target_ref: Option<TargetRef>,
}

/// The state of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EndpointConditions {
    /// Whether it takes new work; absent: it does.
    pub ready: Option<bool>,
    /// Whether it can serve, terminating or not; absent: like `ready`.
    pub serving: Option<bool>,
    /// Whether it is ending.
    pub terminating: Option<bool>,
}

/// See [`Endpoint::hints`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hints {
    /// The zones.
    pub for_zones: Vec<ForZone>,
}

/// A zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ForZone {
    /// Its name.
    pub name: Arc<str>,
}

/// The object that an endpoint is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct TargetRef {
    /// `Pod`, as a rule.
    pub kind: String,
    /// Its name.
    pub name: Arc<str>,
    /// Its UID: an address that returns with another one is another Pod.
    pub uid: Arc<str>,
}

/// A port of endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct EndpointPort {
    /// The name of the Service's port.
    pub name: Option<Arc<str>>,
    /// The port; absent: none. The API server does not check its range.
    pub port: Option<i64>,
    /// `TCP` (also if absent), `UDP` or `SCTP`.
    pub protocol: Option<String>,
}

/// A Secret.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Secret {
    /// Its metadata.
    pub metadata: Meta,
    /// Its type, such as `kubernetes.io/tls`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its values, in base64.
    pub data: BTreeMap<String, String>,
    /// Why its contents are unknown, as the rest of a sentence that begins with the Secret. `None`: they are known.
    #[serde(skip)]
    pub unknown: Option<Arc<str>>,
    /// The certificate in them, or what is wrong with it.
    #[serde(skip)]
    pub certificate: Read<Result<Certificate, String>>,
    /// The users in them (`auth`), or what is wrong with them.
    #[serde(skip)]
    pub users: Read<Result<Arc<[u8]>, String>>,
}

/// Without the values.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret {} ({})", self.metadata.key(), self.kind)
    }
}

/// A ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigMap {
    /// Its metadata.
    pub metadata: Meta,
    /// Its values that are text.
    pub data: BTreeMap<String, String>,
    /// Why its contents are unknown, as the rest of a sentence that begins with the ConfigMap. `None`: they are known.
    #[serde(skip)]
    pub unknown: Option<Arc<str>>,
    /// The authorities in them, or what is wrong with them.
    #[serde(skip)]
    pub authorities: Read<Result<Authorities, String>>,
    /// The key set in them (`jwks.json`), or what is wrong with it.
    #[serde(skip)]
    pub keys: Read<Result<Arc<[u8]>, String>>,
}

/// A certificate with its private key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The Secret that has it.
    pub secret: Key,
    /// The chain (`tls.crt`).
    pub chain: Arc<[u8]>,
    /// The private key (`tls.key`).
    pub private_key: Arc<[u8]>,
}

/// Without the private key.
impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate of Secret {}", self.secret)
    }
}

/// Certificates of authorities, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorities {
    /// The ConfigMap that has them.
    pub source: Key,
    /// The certificates (`ca.crt`).
    pub pem: Arc<[u8]>,
}

/// What the contents of an object mean, read at most once. Objects are equal whether they have been read or not.
#[derive(Clone, Debug)]
pub struct Read<T>(OnceLock<T>);

impl<T> Read<T> {
    /// Returns it; `read` is called only the first time.
    pub fn or(&self, read: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(read)
    }
}

impl<T> Default for Read<T> {
    fn default() -> Read<T> {
        Read(OnceLock::new())
    }
}

impl<T> PartialEq for Read<T> {
    fn eq(&self, _: &Read<T>) -> bool {
        true
    }
}

impl<T> Eq for Read<T> {}

/// What an object means together with something else, read again only if that is not the same as the last time. Objects
/// are equal whether they have been read or not.
#[derive(Debug)]
pub struct ReadOf<K, T>(Mutex<Option<(K, T)>>);

impl<K: PartialEq, T: Clone> ReadOf<K, T> {
    /// Returns it; `read` is called only if `of` is another one than the last time.
    pub fn or(&self, of: K, read: impl FnOnce(&K) -> T) -> T {
        // A read that panicked has left the one before it.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, found)) = &*known
            && *before == of
        {
            return found.clone();
        }
        let found = read(&of);
        *known = Some((of, found.clone()));
        found
    }
}

impl<K, T> Default for ReadOf<K, T> {
    fn default() -> ReadOf<K, T> {
        ReadOf(Mutex::new(None))
    }
}

impl<K, T> Clone for ReadOf<K, T> {
    fn clone(&self) -> ReadOf<K, T> {
        ReadOf::default()
    }
}

impl<K, T> PartialEq for ReadOf<K, T> {
    fn eq(&self, _: &ReadOf<K, T>) -> bool {
        true
    }
}

impl<K, T> Eq for ReadOf<K, T> {}
