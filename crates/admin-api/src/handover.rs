//! What an upgrade hands to the next process, and what that process answers.

use std::net::SocketAddr;

use model::{Address, Administrative, Health, Maintained};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Word;
use crate::changes::Change;

/// Form of [`Manifest`]; a process that knows only another form refuses to take over.
pub const FORM: u64 = 1;

/// The members that every form has, so that a process can refuse a form that it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Opening {
    /// The form of all the rest; 0 if there is none.
    pub form: u64,
    /// Descriptor of the pipe that takes one [`Message`].
    pub says: Option<i32>,
}

/// Everything that is handed over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORM`].
    pub form: u64,
    /// Descriptor of the pipe that takes one [`Message`].
    pub says: i32,
    /// Listening sockets for clients.
    #[serde(default)]
    pub listeners: Vec<Listener>,
    /// The admin API's listening socket, if there is one.
    #[serde(default)]
    pub admin: Option<Admin>,
    /// The listening socket for metrics, if there is one. Absent from versions without it.
    #[serde(default)]
    pub metrics: Option<Metrics>,
    /// The listening socket for KEDA, if there is one. Absent from versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keda: Option<Metrics>,
    /// The socket on which the fleet's other members are heard, if there is a fleet. Absent from versions without it.
    #[serde(default)]
    pub fleet: Option<FleetSocket>,
    /// State of servers. On reading, rows that are not understood are left out: the new process
    /// finds out for itself.
    #[serde(default, deserialize_with = "understood")]
    pub servers: Vec<Server>,
    /// What operators have put into maintenance. Rows that are not understood are left out. Absent
    /// from versions without it.
    #[serde(default, deserialize_with = "understood")]
    pub maintenance: Vec<Maintenance>,
    /// States of servers that are set for the whole fleet. Rows that are not understood are left out. Absent from
    /// versions without it.
    #[serde(default, deserialize_with = "understood")]
    pub orders: Vec<FleetOrder>,
    /// The process's id in `CDN-Loop`. Absent from versions before that.
    #[serde(default)]
    pub instance: Option<String>,
    /// Descriptor of a file in memory with the history of traffic. Absent from versions without it.
    #[serde(default)]
    pub history: Option<i32>,
    /// The latest changes. Rows that are not understood are left out. Absent from versions without it.
    #[serde(default, deserialize_with = "understood")]
    pub changes: Vec<Change>,
    /// The process's own key for affinity cookies, a secret; absent or null without one.
    #[serde(default)]
    pub affinity_key: Option<String>,
}

/// The sockets of one listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub address: Address,
    /// Descriptors.
    #[serde(default)]
    pub sockets: Vec<i32>,
    /// Device and inode of a Unix socket's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<(u64, u64)>,
}

/// The admin API's socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admin {
    /// Where it listens, as configured.
    pub address: String,
    /// Its descriptor.
    pub socket: i32,
}

/// The socket for metrics, or for KEDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// Where it listens, as configured.
    pub address: SocketAddr,
    /// Its descriptor.
    pub socket: i32,
}

/// The socket on which the fleet's other members are heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetSocket {
    /// Where it listens, as configured.
    pub address: SocketAddr,
    /// Its descriptor.
    pub socket: i32,
}

/// The state of one server of one service. Times are durations, since each process has a clock of
/// its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// The service's name.
    pub service: String,
    /// The server's address.
    pub address: Address,
    /// What health checks found.
    pub health: Word<Health>,
    /// What an operator set.
    pub state: Word<Administrative>,
    /// It is about to be removed because its service needs fewer servers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
    /// The weight that a person set.
    #[serde(default)]
    pub weight: Option<u16>,
    /// How much longer it stays ejected, in milliseconds.
    #[serde(default)]
    pub ejected_for_ms: Option<u64>,
    /// How often it was ejected.
    #[serde(default)]
    pub ejections: u32,
    /// Its average latency in microseconds; null if that is no number.
    #[serde(default)]
    pub latency_us: Option<f64>,
    /// The version that its responses have stated last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The maintenance of one service or route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maintenance {
    /// What it is.
    pub kind: Word<Maintained>,
    /// Its name.
    pub name: String,
    /// When clients are asked to come back, in milliseconds.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
}

/// The state of a server that is set for the whole fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetOrder {
    /// The service's name.
    pub service: String,
    /// The server's address.
    pub address: SocketAddr,
    /// The state.
    pub state: Word<Administrative>,
    /// Its version: the counter.
    pub counter: u64,
    /// Its version: the start of the process that made it, as 32 hexadecimal digits.
    pub start: String,
    /// The name of the member that made it.
    pub member: String,
    /// How old it is, in seconds.
    pub age_s: u64,
    /// It has taken effect in the process that hands it over.
    pub is_applied: bool,
}

/// The one line that the new process says: [`Message::Ready`] or [`Message::Failed`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Message {
    /// It serves.
    Ready {
        /// Its id.
        ready: u32,
        /// Its version.
        #[serde(default)]
        version: Option<String>,
    },
    /// It does not serve.
    Failed {
        /// Why.
        failed: String,
    },
}

/// The rows of an array that can be read; none if it is no array.
fn understood<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let rows = match Value::deserialize(deserializer)? {
        Value::Array(rows) => rows,
        _ => Vec::new(),
    };
    Ok(rows.into_iter().filter_map(|row| serde_json::from_value(row).ok()).collect())
}
