//! Ingresses and IngressClasses (`networking.k8s.io/v1`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use super::Meta;

/// The API group of Ingresses.
pub const NETWORKING_GROUP: &str = "networking.k8s.io";

/// An Ingress: hosts and paths, and the Services behind them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Ingress {
    /// Its metadata. Its annotations are settings.
    pub metadata: Meta,
    /// What it states.
    pub spec: IngressSpec,
}

/// See [`Ingress`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressSpec {
    /// Its IngressClass; absent: the default one.
    pub ingress_class_name: Option<Arc<str>>,
    /// Where requests go that no rule matches.
    pub default_backend: Option<IngressBackend>,
    /// The hosts that are served with TLS.
    #[serde(deserialize_with = "list")]
    pub tls: Vec<IngressTls>,
    /// Hosts and paths.
    #[serde(deserialize_with = "list")]
    pub rules: Vec<IngressRule>,
}

/// Reads a list that may be `null`.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Hosts with one certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressTls {
    /// The hosts; empty: all hosts of the Ingress.
    #[serde(deserialize_with = "list")]
    pub hosts: Vec<String>,
    /// The Secret with the certificate.
    pub secret_name: Option<Arc<str>>,
}

/// The paths of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IngressRule {
    /// The host; absent or empty: any.
    pub host: Option<String>,
    /// Its paths.
    pub http: Option<HttpIngress>,
}

/// See [`IngressRule`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HttpIngress {
    /// The paths.
    #[serde(deserialize_with = "list")]
    pub paths: Vec<HttpIngressPath>,
}

/// A path, and the backend of its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpIngressPath {
    /// The path; absent: all paths.
    pub path: Option<String>,
    /// `Exact`, `Prefix` or `ImplementationSpecific`.
    pub path_type: Option<String>,
    /// Where its requests go.
    pub backend: IngressBackend,
}

/// Where requests go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IngressBackend {
    /// A Service of the same namespace.
    pub service: Option<IngressService>,
}

/// A port of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IngressService {
    /// The Service's name.
    pub name: Arc<str>,
    /// The port.
    pub port: IngressPort,
}

/// The name or the number of a Service's port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IngressPort {
    /// Its name.
    pub name: Option<Arc<str>>,
    /// Its number.
    pub number: Option<u16>,
}

/// An IngressClass: which controller serves its Ingresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IngressClass {
    /// Its metadata.
    pub metadata: Meta,
    /// What it states.
    pub spec: IngressClassSpec,
}

/// See [`IngressClass`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IngressClassSpec {
    /// The name of the controller.
    pub controller: Arc<str>,
    /// An object with parameters, which Weir has none of.
    pub parameters: Option<IngressParameters>,
}

/// A reference to an object with parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct IngressParameters {
    /// Its kind.
    pub kind: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl IngressClass {
    /// Returns whether Ingresses without a class are of this one.
    pub fn is_default(&self) -> bool {
        let annotations: &BTreeMap<String, String> = &self.metadata.annotations;
        annotations
            .get("ingressclass.kubernetes.io/is-default-class")
            .is_some_and(|text| text == "true")
    }
}
