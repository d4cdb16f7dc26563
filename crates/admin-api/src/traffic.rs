//! `/api/v1/traffic`: requests and latencies of the last ten seconds, minute and hour.

use history::{Mean, Window};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rounded;

/// What happens now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Traffic {
    /// When it was counted, in milliseconds since 1970 (UTC).
    pub at_unix_ms: u64,
    /// The spans that were asked for, in seconds, and the order of every `windows`.
    pub spans_s: Vec<u64>,
    /// The CPU time of the process, as a share of one core, in each window.
    pub cpu: Vec<Option<f64>>,
    /// In order of name.
    pub listeners: Vec<ListenerTraffic>,
    /// In order of name.
    pub services: Vec<ServiceTraffic>,
}

/// The traffic of a listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ListenerTraffic {
    /// Its name.
    pub name: String,
    /// One for each span.
    pub windows: Vec<Ended>,
}

/// The traffic of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServiceTraffic {
    /// Its name.
    pub name: String,
    /// One for each span.
    pub windows: Vec<ServiceWindow>,
    /// In order of address. Empty if only services were asked for.
    pub servers: Vec<ServerTraffic>,
}

/// Requests (in TCP mode: connections) that ended in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ended {
    /// The span that was asked for, in seconds.
    pub span_s: u64,
    /// The seconds that were counted: up to five more than the span (of an hour: a minute more), and
    /// fewer if the process has not run for so long.
    pub seconds: u64,
    /// How many ended.
    pub requests: u64,
    /// How many of them failed: because of a server, the network, the balancer or the configuration,
    /// or with a 5xx from a server.
    pub failed: u64,
    /// How many of them Weir refused, because of a limit or maintenance.
    pub refused: u64,
    /// How many of them failed because of the client.
    pub client_faults: u64,
}

/// A service in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServiceWindow {
    #[allow(missing_docs)]
    #[serde(flatten)]
    pub ended: Ended,
    /// Retries.
    pub retries: u64,
    /// Requests that entered the queue.
    pub queued: u64,
    /// Their average time there; null if there were none.
    pub queue_mean_ms: Option<f64>,
    /// Bytes of request bodies.
    pub request_bytes: u64,
    /// Bytes of response bodies.
    pub response_bytes: u64,
    /// From the complete request head to the end, of requests that a server answered.
    pub total: Quantiles,
    /// From the complete request head to the first byte of the response head.
    pub first_byte: Quantiles,
    /// Average time to establish a connection to a server; null if none was.
    pub connect_mean_ms: Option<f64>,
    /// Average TCP round-trip time to clients, of sampled requests.
    pub client_round_trip_ms: Option<f64>,
}

/// Quantiles of durations; null if there were none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Quantiles {
    /// The median.
    pub p50_ms: Option<f64>,
    /// 90 % took at most this long.
    pub p90_ms: Option<f64>,
    /// 99 % took at most this long.
    pub p99_ms: Option<f64>,
}

/// The traffic of a server of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerTraffic {
    /// Its address.
    pub address: String,
    /// One for each span, the hour excepted.
    pub windows: Vec<ServerWindow>,
}

/// A server in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerWindow {
    /// The span that was asked for, in seconds.
    pub span_s: u64,
    /// The seconds that were counted.
    pub seconds: u64,
    /// Requests (in TCP mode: connections) sent to it.
    pub requests: u64,
    /// Those that failed because of it or the network, or got a 5xx. They may have been sent before.
    pub failed: u64,
    /// From the choice of the server to its response head.
    pub first_byte: Quantiles,
    /// Average time to establish a connection; null if none was.
    pub connect_mean_ms: Option<f64>,
    /// Average TCP round-trip time, of sampled requests.
    pub round_trip_ms: Option<f64>,
}

impl From<&Window> for Ended {
    fn from(window: &Window) -> Ended {
        Ended {
            span_s: window.span,
            seconds: window.seconds,
            requests: window.count("requests"),
            failed: window.count("failed"),
            refused: window.count("refused"),
            client_faults: window.count("client_faults"),
        }
    }
}

impl From<&Window> for ServiceWindow {
    fn from(window: &Window) -> ServiceWindow {
        ServiceWindow {
            ended: Ended::from(window),
            retries: window.count("retries"),
            queued: window.count("queued"),
            queue_mean_ms: mean_ms(window.mean("queue_mean_us")),
            request_bytes: window.count("request_bytes"),
            response_bytes: window.count("response_bytes"),
            total: quantiles(window, "total_p50_us"),
            first_byte: quantiles(window, "first_byte_p50_us"),
            connect_mean_ms: mean_ms(window.mean("connect_mean_us")),
            client_round_trip_ms: mean_ms(window.mean("client_round_trip_mean_us")),
        }
    }
}

impl From<&Window> for ServerWindow {
    fn from(window: &Window) -> ServerWindow {
        ServerWindow {
            span_s: window.span,
            seconds: window.seconds,
            requests: window.count("requests"),
            failed: window.count("failed"),
            first_byte: quantiles(window, "first_byte_p50_us"),
            connect_mean_ms: mean_ms(window.mean("connect_mean_us")),
            round_trip_ms: mean_ms(window.mean("round_trip_mean_us")),
        }
    }
}

fn mean_ms(mean: Mean) -> Option<f64> {
    mean.average().map(|average| rounded(average.as_secs_f64() * 1e3))
}

fn quantiles(window: &Window, column: &str) -> Quantiles {
    let at = |q: f64| {
        let quantile = window.durations(column).and_then(|durations| durations.quantile(q));
        quantile.map(|quantile| rounded(quantile.as_secs_f64() * 1e3))
    };
    Quantiles { p50_ms: at(0.5), p90_ms: at(0.9), p99_ms: at(0.99) }
}
