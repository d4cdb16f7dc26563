//! A check: the definition of a probe and of what its results mean to one service.

use std::net::SocketAddr;
use std::time::Duration;

/// What a service asks to be checked, and how it reads the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is sent and what is expected.
    pub kind: CheckKind,
    /// Port to probe when it is not the server's own.
    pub port: Option<u16>,
    /// Time between the starts of two probes.
    pub interval: Duration,
    /// How long this service waits for a result before it counts as failed.
    pub timeout: Duration,
    /// Successes in a row that bring a server up.
    pub rise: u32,
    /// Failures in a row that take a server down.
    pub fall: u32,
}

/// The layer a check works on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CheckKind {
    /// Connect, then close at once without leaving `TIME_WAIT`.
    Tcp,
    /// An HTTP/1.1 request whose status must be expected.
    Http {
        /// Request method, upper case.
        method: String,
        /// Request target in origin form.
        path: String,
        /// The Host field; `None` means the server's address.
        host: Option<String>,
        /// Further request fields, in order.
        fields: Vec<(String, String)>,
        /// The statuses that count as success.
        expect: ExpectStatus,
        /// Whether probes share a kept connection (false for pre-fork servers, where a kept
        /// connection holds a worker).
        reuse: bool,
    },
}

/// A set of expected statuses: inclusive ranges, sorted, not overlapping.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExpectStatus(pub Vec<(u16, u16)>);

impl ExpectStatus {
    /// Whether `status` is one of the expected.
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|&(low, high)| (low..=high).contains(&status))
    }
}

/// The whole of a probe. Two checks with equal identity are one probe, however many services ask;
/// anything that could change the answer is part of it, since merging checks that differ lets one
/// virtual host's outage take out another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProbeIdentity {
    /// Where it connects to (the check's port already applied).
    pub address: SocketAddr,
    /// What it sends and expects; Host is resolved, never `None`, for HTTP.
    pub kind: CheckKind,
}

impl Check {
    /// The probe that this check makes of a server at `address`.
    pub fn identity(&self, address: SocketAddr) -> ProbeIdentity {
        let mut target = address;
        if let Some(port) = self.port {
            target.set_port(port);
        }
        let mut kind = self.kind.clone();
        if let CheckKind::Http { host, .. } = &mut kind {
            host.get_or_insert_with(|| address.to_string());
        }
        ProbeIdentity { address: target, kind }
    }
}
