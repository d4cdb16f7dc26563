//! Who looks in from outside: the admin API, and the places that metrics are pushed to.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::ServerTarget;

/// The admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Where it listens.
    pub address: AdminAddress,
    /// The file that holds the token it asks for; `None`: it asks for none.
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

/// As it is written in the configuration.
impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdminAddress::Tcp(address) => address.fmt(f),
            AdminAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Where metrics are pushed to, and how. (That they can be fetched from the admin API is its own
/// affair.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// A statsd server, by UDP.
    pub statsd: Option<ServerTarget>,
    /// A graphite (carbon) server, by TCP, in the plaintext protocol.
    pub graphite: Option<ServerTarget>,
    /// Time between two pushes, which is what counts and quantiles are taken over.
    pub interval: Duration,
    /// What every name begins with.
    pub prefix: String,
}

impl Metrics {
    /// Pushed nowhere.
    pub fn none() -> Metrics {
        Metrics {
            statsd: None,
            graphite: None,
            interval: Duration::from_secs(10),
            prefix: "weir".to_owned(),
        }
    }
}
