//! `/api/v1/services`: services and their servers, and the changes that a person may make to a server.
//! Times are in milliseconds.

use decide::{Reason, Tier};
use model::{Administrative, Health, ServerSourceWord, Standing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Word;
use crate::fleet::FleetConfirmation;
use crate::word::known_word;

/// All services.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Services {
    /// Sorted by name.
    pub services: Vec<Service>,
}

/// A service (backend, upstream, pool) with its servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Number of servers that receive new requests.
    pub eligible: usize,
    /// Which servers are eligible: those of the balancer's zone, of all zones, or backups too.
    pub tier: Word<Tier>,
    /// Why this tier, for programs.
    pub reason: Word<Reason>,
    /// Why this tier, for people.
    pub why: String,
    /// Requests that wait for a server.
    pub queue: Queue,
    /// In order of the configuration.
    pub servers: Vec<Server>,
    /// Servers whose name does not resolve to an address at present.
    pub unresolved: Vec<UnresolvedServer>,
    /// Where further servers come from; null: all of them are in the file.
    pub source: Option<ServiceSource>,
    /// How many servers it should have; null: it has no `scaling`, or was not measured yet.
    pub wanted: Option<WantedServers>,
}

/// How many servers a service should have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WantedServers {
    /// The number; null: its servers have no concurrency limit.
    pub number: Option<u32>,
    /// Why, for programs: a reason of docs/scaling.md.
    pub reason: String,
    /// Why, for people, with the figures.
    pub why: String,
    /// What the program that starts and stops servers was told; null: Weir calls none, or another member of the fleet
    /// does.
    pub calls: Option<ScalingCalls>,
}

/// Calls to the program that starts and stops the servers of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ScalingCalls {
    /// The number of servers in the last call that succeeded; null: none has.
    pub servers: Option<u32>,
    /// Calls that succeeded.
    pub succeeded: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Why the last call failed; null: it did not.
    pub error: Option<String>,
}

/// The source of a service's servers (service discovery).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServiceSource {
    /// Its kind and name: `consul web, tag v2`.
    pub source: String,
    /// Servers that it lists and that may receive requests.
    pub listed: usize,
    /// Servers that it reports as failing or in maintenance.
    pub not_ready: usize,
    /// Servers that it no longer lists, together with most others, and that are kept and used last.
    pub held: usize,
    /// Servers that were listed and removed again and again, and are used last.
    pub flapping: usize,
    /// Entries of the last answer that are no valid servers.
    pub refused: u64,
    /// Some of them, each with the reason.
    pub refused_examples: Vec<RefusedEntry>,
    /// Time since the last answer; null: there was none since the start.
    #[schemars(range(min = 0))]
    pub answered_ms_ago: Option<f64>,
    /// Time since an answer last changed something; null: none did.
    #[schemars(range(min = 0))]
    pub changed_ms_ago: Option<f64>,
    /// For how long it has failed; null: the last answer was good.
    #[schemars(range(min = 0))]
    pub failing_for_ms: Option<f64>,
    /// Why it fails.
    pub error: Option<String>,
    /// The index of the last answer, if the source has one (`X-Consul-Index`).
    pub index: Option<u64>,
    /// Whether the servers are those of the last run: the source has not answered since the start.
    pub restored: bool,
}

/// An entry of a source that is no valid server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RefusedEntry {
    /// What it is in the source: `node1/web-1`.
    pub object: String,
    /// Why it is refused.
    pub why: String,
}

/// How a source lists a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Listing {
    /// The kind of source.
    pub source: Word<ServerSourceWord>,
    /// What the server is in the source: `node1/web-1`, the name of a file, a URL.
    pub object: String,
    /// The index (`X-Consul-Index`) of the answer that made it as it is.
    pub index: Option<u64>,
    /// What the source makes of it. overridden: the file has the same server, and its values apply.
    pub standing: Word<Standing>,
    /// For how long it has been so.
    #[schemars(range(min = 0))]
    pub for_ms: f64,
}

/// A service's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Queue {
    /// Requests in the queue.
    pub length: u32,
    /// Maximum number of requests in the queue.
    pub length_max: u32,
    /// Slots per second that became free for queued requests, as last measured.
    pub drain_rate_per_s: f64,
}

/// A server of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Server {
    /// The name or address in the configuration.
    pub name: String,
    /// Its address.
    pub address: String,
    /// Its zone, if configured.
    pub zone: Option<String>,
    /// Whether it receives new requests.
    pub eligible: bool,
    /// Result of health checks; unknown: no check is configured, or none has finished.
    pub health: Word<Health>,
    /// The state set by an operator.
    pub state: Word<Administrative>,
    /// Whether it is about to be removed because its service needs fewer servers: it finishes its requests and gets
    /// no new ones.
    pub leaving: bool,
    /// Remaining time of its ejection by passive health checks; null: not ejected.
    #[schemars(range(min = 0))]
    pub ejected_for_ms: Option<f64>,
    /// Its current weight, relative to the other servers.
    #[schemars(range(max = 1000))]
    pub weight: u16,
    /// Its configured weight.
    #[schemars(range(max = 1000))]
    pub weight_configured: u16,
    /// Share of its weight in effect during slow start; 1 after it.
    #[schemars(range(min = 0, max = 1))]
    pub slow_start_share: f64,
    /// Whether it is used only when the other servers are not enough.
    pub backup: bool,
    /// Requests (in TCP mode: connections) at its address now, of all services.
    pub in_flight: u32,
    /// Maximum number of requests at its address; null: no limit.
    #[schemars(range(min = 1))]
    pub in_flight_max: Option<u32>,
    /// Requests that this service sent to it.
    pub requests: u64,
    /// How many of these failed through the server's or the network's fault.
    pub failures: u64,
    /// Time to the response head: a moving average that rises at once and falls slowly; null:
    /// not known.
    #[schemars(range(min = 0))]
    pub latency_ms: Option<f64>,
    /// The version that it runs, as its responses state (`version_field`), else as its label says; null: not
    /// known.
    pub version: Option<String>,
    /// How the service's source lists it; null: only the file names it.
    pub listing: Option<Listing>,
}

/// A server whose name has no address at present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UnresolvedServer {
    /// The name in the configuration.
    pub name: String,
    /// Its zone, if configured.
    pub zone: Option<String>,
    /// Its configured weight.
    #[schemars(range(max = 1000))]
    pub weight_configured: u16,
    /// Whether it is a backup.
    pub backup: bool,
}

/// Sets a server's administrative state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateRequest {
    /// ready: receives requests if it is healthy. drain: finishes its requests and receives no new
    /// ones. maintenance: as drain, and it is not checked.
    #[serde(with = "known_word")]
    #[schemars(with = "Word<Administrative>")]
    pub state: Administrative,
    /// Changes nothing: the answer is the service as it would be, with health as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Sets the state at all members of the fleet. The answer comes when all have confirmed it, or after 3 seconds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fleet: bool,
}

/// The service after a change of a server's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StateChanged {
    /// The service as it is at this member.
    #[serde(flatten)]
    pub service: Service,
    /// Which members have confirmed the state; absent if it was set at this one only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetConfirmation>,
}

/// Sets a server's weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightRequest {
    /// 0: receives no new requests. null: the configured weight.
    // Not optional: an empty object asks for nothing.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schemars(range(max = 1000))]
    pub weight: Option<u16>,
    /// Changes nothing: the answer is the service as it would be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}
