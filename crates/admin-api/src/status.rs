//! `/api/v1/status`: one process.

use std::collections::BTreeMap;

use model::ProtocolWord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Word;
use crate::fleet::FleetSummary;
use crate::maintenance::Maintenance;
use crate::published::TagSource;

/// The state of a balancer's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Status {
    /// Whether the balancer accepts new work; false during startup and while draining.
    pub ready: bool,
    /// Weir's version.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Seconds since the process started.
    pub uptime_s: u64,
    /// Number of configurations since the start, including the current one.
    pub generation: u64,
    /// The zone in which the balancer runs, if configured.
    pub zone: Option<String>,
    /// Worker threads.
    pub workers: usize,
    /// Client connections of all listeners.
    pub connections: Connections,
    /// In order of the configuration.
    pub listeners: Vec<Listener>,
    /// The services and routes that are in maintenance, in order of kind and name.
    pub maintenance: Vec<Maintenance>,
    /// Certificates that are obtained by ACME, if there are any.
    pub acme: Option<Acme>,
    /// The source of routes that services publish in Consul's tags; null: they publish none.
    pub published_routes: Option<TagSource>,
    /// The fleet of balancers that this one belongs to; null: there is none, or this process has not joined it yet or
    /// has left it.
    pub fleet: Option<FleetSummary>,
    /// The connection to Kubernetes; null: there is none.
    pub kubernetes: Option<Kubernetes>,
}

/// The connection to the API server of Kubernetes. What was read stays in use, whatever happens to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Kubernetes {
    /// Whether the thread runs that reads the cluster. Without it, changes are not seen until Weir is restarted.
    pub running: bool,
    /// Whether the API server answers.
    pub connected: bool,
    /// Milliseconds for which it has not answered; null if it answers.
    pub disconnected_for_ms: Option<f64>,
    /// The last failure; null if there was none.
    pub error: Option<String>,
    /// What has not been read yet at the start. Gateways are served once it is empty.
    pub awaited: Vec<String>,
    /// How long, in milliseconds, something in `failing` or `awaited` has been there without interruption; null if
    /// everything is followed. The Lease does not count.
    pub not_followed_for_ms: Option<f64>,
    /// Whether this instance writes statuses and Services.
    pub leading: bool,
    /// Writes that wait or are under way.
    pub writes_waiting: usize,
    /// What cannot be read at the moment, with the reason: `httproutes`, `Secret namespace/name`, `the Lease`.
    pub failing: BTreeMap<String, String>,
    /// What the API server forbids, such as `list secrets`.
    pub forbidden: Vec<String>,
    /// The kinds of the Gateway API that are not installed.
    pub absent: Vec<String>,
    /// Objects that Weir cannot read and ignores, as `Kind namespace/name`, with the reason. At most 100, besides
    /// Gateways.
    pub unreadable: BTreeMap<String, String>,
}

/// Certificates that are obtained and renewed by ACME.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Acme {
    /// URL of the certificate authority's directory.
    pub directory: String,
    /// Whether the thread runs that obtains them. Without it nothing is renewed.
    pub running: bool,
    /// In order of the configuration, each once.
    pub certificates: Vec<AcmeCertificate>,
}

/// A certificate that is obtained and renewed by ACME.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AcmeCertificate {
    /// Its names.
    pub names: Vec<String>,
    /// When it expires (RFC 3339); absent if none has been issued.
    pub not_after: Option<String>,
    /// When it is ordered or renewed next (RFC 3339), as far as is known now.
    pub next_attempt: Option<String>,
    /// Whether the certificate authority chose that moment (RFC 9773).
    pub renewal_by_authority: bool,
    /// The other member of the fleet that orders it, by name; null: this balancer does, certificates are not
    /// shared, or it is not decided yet.
    pub ordered_by: Option<String>,
    /// The last failure, unless an attempt has succeeded since.
    pub failure: Option<AcmeFailure>,
}

/// A failed attempt to obtain a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AcmeFailure {
    /// What failed.
    pub what: String,
    /// Names that the certificate authority could not validate.
    pub refused: Vec<AcmeRefusal>,
    /// Failed attempts since the last success.
    pub count: u32,
}

/// A name that the certificate authority could not validate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AcmeRefusal {
    /// The name.
    pub name: String,
    /// The authority's reason.
    pub why: String,
}

/// Client connections and their limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Connections {
    /// Open connections.
    pub open: u64,
    /// Maximum number of open connections.
    pub open_max: u64,
}

/// A listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// The address on which it listens.
    pub address: String,
    /// Its protocol.
    pub protocol: Word<ProtocolWord>,
    /// Its client connections.
    pub connections: Connections,
    /// Its entry in Consul, if it is registered there; null before the process serves.
    pub registration: Option<Registration>,
}

/// The entry of a listener in Consul.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Registration {
    /// The name of the service.
    pub service: String,
    /// The ID of the entry.
    pub id: String,
    /// Where clients find it; without an address of its own, Consul uses the node's.
    pub address: String,
    /// What its check says, as the agent has accepted it last: `passing`, or `critical` while Weir stops. Null if the
    /// agent does not have the entry.
    pub check: Option<String>,
    /// Milliseconds since the agent accepted it last; null if it has not yet, or has lost it.
    pub registered_for_ms: Option<f64>,
    /// Milliseconds for which the agent has not accepted check updates; null if it accepts them.
    pub failing_for_ms: Option<f64>,
    /// The last failure; null if the agent accepts check updates.
    pub error: Option<String>,
}
