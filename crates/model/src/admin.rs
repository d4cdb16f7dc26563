//! Management settings: the admin API, where metrics are pushed, and from where autoscalers read.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Address, HostPort, ListenerTls};

/// The admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Where it listens.
    pub address: Address,
    /// The file with its token; `None`: no token is required.
    pub token_file: Option<PathBuf>,
}

/// Where metrics are fetched or pushed, and how. (They can always be fetched from the admin API.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Where they are fetched from other machines.
    pub listener: Option<MetricsListener>,
    /// Whether each server's durations are exposed as classic histograms, too.
    pub server_histograms: bool,
    /// A statsd server, by UDP.
    pub statsd: Option<HostPort>,
    /// A graphite (carbon) server, by TCP, in the plaintext protocol.
    pub graphite: Option<HostPort>,
    /// Time between two pushes, over which counts and quantiles are taken.
    pub interval: Duration,
    /// Prefix of every metric name.
    pub prefix: String,
}

/// A listener for metrics and health checks, which changes nothing and shows nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsListener {
    /// Where it listens.
    pub address: SocketAddr,
    /// The file with the token that `/metrics` requires; `None`: none is required.
    pub token_file: Option<PathBuf>,
    /// TLS; `None`: clear text.
    pub tls: Option<ListenerTls>,
}

/// A listener from which autoscalers read how many servers services should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoscalerListener {
    /// Where it listens.
    pub address: SocketAddr,
    /// TLS; `None`: clear text.
    pub tls: Option<ListenerTls>,
}

impl Metrics {
    /// Returns settings without a push target.
    pub fn none() -> Metrics {
        Metrics {
            listener: None,
            server_histograms: false,
            statsd: None,
            graphite: None,
            interval: Duration::from_secs(10),
            prefix: "weir".to_owned(),
        }
    }
}
