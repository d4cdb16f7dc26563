//! Where requests and connections are forwarded to.

use std::sync::Arc;

use config::policy::ServiceTerms;

use super::Authorities;
use super::app_protocol::AppProtocol;
use super::headers::HeaderChanges;
use super::settings::ServiceSettings;
use crate::objects::Key;

/// A backend of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Backend {
    /// Its share of the requests, in proportion to the sum of all weights of the rule. At most
    /// [`Backend::WEIGHT_MAX`], so that sums fit.
    pub weight: u32,
    /// Where its requests go.
    pub target: Target,
    /// Changes to requests for this backend, after those of the rule.
    pub request_headers: HeaderChanges,
    /// Changes to responses of this backend, before those of the rule.
    pub response_headers: HeaderChanges,
}

impl Backend {
    /// The API's limit.
    pub const WEIGHT_MAX: u32 = 1_000_000;

    /// Creates a backend that changes nothing. A weight above the limit becomes the limit.
    pub fn new(weight: u32, target: Target) -> Backend {
        Backend {
            weight: weight.min(Self::WEIGHT_MAX),
            target,
            request_headers: HeaderChanges::default(),
            response_headers: HeaderChanges::default(),
        }
    }
}

/// Where requests go.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// To the Pods of a Service's port.
    Service(Arc<ServicePort>),
    /// Nowhere: its share of the requests receives the status 500, its share of the connections is closed.
    Invalid {
        /// The reason, as in the route's `ResolvedRefs` condition.
        reason: &'static str,
    },
}

impl Target {
    /// Returns the Service's port, if the target is valid.
    pub fn service(&self) -> Option<&Arc<ServicePort>> {
        match self {
            Target::Service(port) => Some(port),
            Target::Invalid { .. } => None,
        }
    }
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServicePort {
    /// The Service.
    pub service: Key,
    /// The number of the port in the Service.
    pub port: u16,
    /// The name of the port in the Service: EndpointSlices refer to it. `None`: the port has no name.
    pub name: Option<Arc<str>>,
    /// The host that a Service of type `ExternalName` stands for: it has no EndpointSlices.
    pub external_name: Option<String>,
    /// The protocol that the Service states. `None`: it states none.
    pub protocol: Option<AppProtocol>,
    /// Whether connections to its Pods use TLS. Does not apply to TCPRoutes and to TLS passthrough.
    pub tls: ServerTls,
    /// What a ServicePolicy states.
    pub terms: Option<Arc<ServiceTerms>>,
    /// Pods may state concurrency limits of their own, at most this. `None`: they may not.
    pub pod_limit_max: Option<u32>,
    /// How requests to it are balanced, if an Ingress states that. That precedes the policy.
    pub settings: Option<Arc<ServiceSettings>>,
}

/// Whether connections to servers use TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTls {
    /// No BackendTLSPolicy has the Service as a target.
    None,
    /// As a BackendTLSPolicy states.
    Verified(Arc<ServerVerification>),
    /// A BackendTLSPolicy applies, but is invalid: connections must fail.
    Invalid {
        /// The policy.
        policy: Key,
    },
}

/// How the certificates of servers are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerVerification {
    /// The BackendTLSPolicy.
    pub policy: Key,
    /// The authorities.
    pub trust: Trust,
    /// The server name that is sent (SNI). Without `names`, also the name that is verified.
    pub hostname: String,
    /// The certificate must have one of these names.
    pub names: Vec<CertificateName>,
}

/// The authorities that issue certificates of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those of the machine.
    System,
    /// Those of ConfigMaps.
    Authorities(Vec<Authorities>),
}

/// A name in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateName {
    /// A DNS name.
    Host(String),
    /// A URI, such as a SPIFFE ID.
    Uri(String),
}
