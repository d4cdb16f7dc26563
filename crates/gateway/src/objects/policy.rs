//! ReferenceGrant, BackendTLSPolicy, and Weir's own ServicePolicy and RoutePolicy.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::policy::{Mistake, RouteTerms, ServiceTerms};
use model::Material;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Meta;
use super::core::{Read, ReadOf};
use super::reference::ObjectRef;

/// Permits references from objects of other namespaces to those of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReferenceGrant {
    /// Its metadata.
    pub metadata: Meta,
    /// What it states.
    pub spec: ReferenceGrantSpec,
}

/// See [`ReferenceGrant`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReferenceGrantSpec {
    /// The objects that may refer…
    pub from: Vec<GrantFrom>,
    /// …to these.
    pub to: Vec<GrantTo>,
}

/// Objects that may refer to others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GrantFrom {
    /// Their API group.
    pub group: Arc<str>,
    /// Their kind.
    pub kind: Arc<str>,
    /// Their namespace.
    pub namespace: Arc<str>,
}

/// Objects that may be referred to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GrantTo {
    /// Their API group.
    pub group: Arc<str>,
    /// Their kind.
    pub kind: Arc<str>,
    /// Their name; absent: all of this kind.
    pub name: Option<Arc<str>>,
}

/// How connections to a Service's Pods use TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BackendTlsPolicy {
    /// Its metadata.
    pub metadata: Meta,
    /// What it states.
    pub spec: BackendTlsPolicySpec,
}

/// See [`BackendTlsPolicy`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendTlsPolicySpec {
    /// Services of its namespace, or ports of them by name.
    pub target_refs: Vec<ObjectRef>,
    /// How the servers' certificates are verified.
    pub validation: ServerValidation,
    /// Settings of an implementation; Weir has none.
    pub options: BTreeMap<String, String>,
}

/// How servers' certificates are verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerValidation {
    /// ConfigMaps with authorities, in the key `ca.crt`.
    pub ca_certificate_refs: Vec<ObjectRef>,
    /// `System`: the authorities of the machine.
    #[serde(rename = "wellKnownCACertificates")]
    pub well_known_ca_certificates: Option<String>,
    /// The server name that is sent; without `subject_alt_names` also the one that is verified.
    pub hostname: String,
    /// The certificate must have one of these names.
    pub subject_alt_names: Vec<SubjectAltName>,
}

/// A name in a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SubjectAltName {
    /// `Hostname` or `URI`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A DNS name.
    pub hostname: String,
    /// A URI.
    pub uri: String,
}

/// How requests to Services are balanced: keys of `[service.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ServicePolicy {
    /// Its metadata.
    pub metadata: Meta,
    /// What it states.
    pub spec: PolicySpec,
    /// What that means, or what is wrong with it.
    #[serde(skip)]
    pub stated: Read<Result<Stated, Vec<Mistake>>>,
}

/// What a ServicePolicy means.
#[derive(Clone, Debug, PartialEq)]
pub struct Stated {
    /// What it states for the service.
    pub terms: Arc<ServiceTerms>,
    /// Pods may state concurrency limits of their own, at most this. `None`: they may not.
    pub pod_limit_max: Option<u32>,
    /// What of it does not apply to ports with HTTP/2.
    pub http2_misfit: Option<Mistake>,
}

/// What is required of requests to routes: keys of `[[route]]` and `[authentication.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct RoutePolicy {
    /// Its metadata.
    pub metadata: Meta,
    /// What it states.
    pub spec: PolicySpec,
    /// What that means with the contents of the objects that it refers to, or what is wrong with it.
    #[serde(skip)]
    pub terms: ReadOf<Vec<Contents>, TermsOrMistakes>,
}

/// What a policy refers to, or why there is nothing: a sentence without its end.
#[derive(Clone, Debug)]
pub struct Contents(pub Result<Material, String>);

/// Bytes are compared by their place: an object keeps them until it changes.
impl PartialEq for Contents {
    fn eq(&self, other: &Contents) -> bool {
        match (&self.0, &other.0) {
            (Ok(a), Ok(b)) => a.path == b.path && Arc::ptr_eq(&a.bytes, &b.bytes),
            (Err(a), Err(b)) => a == b,
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
        }
    }
}

impl RoutePolicy {
    /// Creates a policy for an object that could not be read, with as much of it as was readable. It is invalid, and the
    /// requests for its targets are refused: it may state authentication. `reason` says what is wrong, as a part of a
    /// sentence.
    pub fn unreadable(
        metadata: Meta,
        target_refs: Vec<ObjectRef>,
        reason: impl Into<String>,
    ) -> RoutePolicy {
        let spec = PolicySpec { target_refs, terms: Map::new(), unreadable: Some(reason.into()) };
        RoutePolicy { metadata, spec, terms: ReadOf::default() }
    }

    /// Returns whether it states authentication, or may do so because it could not be read.
    pub fn states_authentication(&self) -> bool {
        let stated = self.spec.terms.get("authentication");
        self.spec.unreadable.is_some() || stated.is_some_and(|stated| !stated.is_null())
    }
}

/// What a RoutePolicy means, or what is wrong with it.
pub type TermsOrMistakes = Result<Arc<RouteTerms>, Vec<Mistake>>;

/// What a policy of Weir's own kinds states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PolicySpec {
    /// Objects of its namespace, or parts of them by name.
    #[serde(rename = "targetRefs")]
    pub target_refs: Vec<ObjectRef>,
    /// Everything else: `config::policy` reads it.
    #[serde(flatten)]
    pub terms: Map<String, Value>,
    /// Why the rest could not be read: see [`RoutePolicy::unreadable`]. `None`: it was read.
    #[serde(skip)]
    pub unreadable: Option<String>,
}
