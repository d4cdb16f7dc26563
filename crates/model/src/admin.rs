//! Management settings: the admin API, and where metrics are pushed.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::{ListenerTls, ServerTarget};

/// The admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Where it listens.
    pub address: AdminAddress,
    /// The file with its token; `None`: no token is required.
    pub token_file: Option<PathBuf>,
}

/// Where the admin API listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Displays it as written in the configuration.
impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdminAddress::Tcp(address) => address.fmt(f),
            AdminAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Where metrics are fetched or pushed, and how. (They can always be fetched from the admin API.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Where they are fetched from other machines.
    pub listener: Option<MetricsListener>,
    /// A statsd server, by UDP.
    pub statsd: Option<ServerTarget>,
    /// A graphite (carbon) server, by TCP, in the plaintext protocol.
    pub graphite: Option<ServerTarget>,
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

impl Metrics {
    /// Returns settings without a push target.
    pub fn none() -> Metrics {
        Metrics {
            listener: None,
            statsd: None,
            graphite: None,
            interval: Duration::from_secs(10),
            prefix: "weir".to_owned(),
        }
    }
}
