//! A check: the definition of a probe and of what its results mean to one service.

use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::{HttpVersion, ProxyVersion, Service, ServiceTls};

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
    /// Connect, and where the service speaks TLS complete its handshake; then close at once
    /// without leaving `TIME_WAIT`.
    Tcp,
    /// An HTTP request whose status must be expected.
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
    /// The gRPC health checking protocol, `grpc.health.v1.Health/Check`, over HTTP/2: the answer
    /// must be SERVING.
    Grpc {
        /// The service that is asked about; empty: the server as a whole.
        service: String,
        /// `:authority`; `None` means the server's address.
        host: Option<String>,
    },
}

crate::word_of! {
    /// The word for a [`CheckKind`].
    CheckKind as CheckWord {
        Http { .. } = "http",
        Tcp = "tcp",
        Grpc { .. } = "grpc",
    }
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
    /// What it does there.
    pub spec: ProbeSpec,
}

/// What a probe does, wherever it goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProbeSpec {
    /// What it sends and expects; Host is resolved, never `None`.
    pub kind: CheckKind,
    /// TLS, as the service speaks it to its servers.
    pub tls: Option<ProbeTls>,
    /// The version of HTTP. Of a probe that neither sends HTTP nor agrees on it (ALPN) always
    /// HTTP/1.1, so that it is shared.
    pub http: HttpVersion,
    /// The PROXY protocol header that begins the connection, which says that it is a proxy's own.
    pub send_proxy: Option<ProxyVersion>,
}

/// A probe's TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeTls {
    /// The name that is asked for (SNI) and verified: a host name or an IP address.
    pub name: Arc<str>,
    /// All else; no name stands in it.
    pub settings: Arc<ServiceTls>,
}

/// Of the settings only what is short: they hold whole files, of which there are few.
impl Hash for ProbeTls {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.settings.verify.hash(state);
        self.settings.ca.path.hash(state);
    }
}

impl Service {
    /// The probe that the check of this service makes of its server at `address`, which is called
    /// `server` in the configuration (`name:port`, or the address). `None`: there is no check.
    pub fn probe(&self, server: &str, address: SocketAddr) -> Option<ProbeIdentity> {
        let check = self.check.as_ref()?;
        let mut target = address;
        if let Some(port) = check.port {
            target.set_port(port);
        }
        let spec = self.probe_spec(check, server, &address.to_string());
        Some(ProbeIdentity { address: target, spec })
    }

    /// The same for a server that is given by name, before the name is resolved.
    pub fn probe_by_name(&self, server: &str) -> Option<ProbeSpec> {
        Some(self.probe_spec(self.check.as_ref()?, server, server))
    }

    fn probe_spec(&self, check: &Check, server: &str, default_host: &str) -> ProbeSpec {
        let mut kind = check.kind.clone();
        if let CheckKind::Http { host, .. } | CheckKind::Grpc { host, .. } = &mut kind {
            host.get_or_insert_with(|| default_host.to_owned());
        }
        let speaks_http = kind != CheckKind::Tcp || self.tls.is_some();
        ProbeSpec {
            kind,
            tls: self.tls.as_ref().map(|tls| probe_tls(tls, server)),
            http: if speaks_http { self.http } else { HttpVersion::Http11 },
            send_proxy: self.send_proxy,
        }
    }
}

/// A service that says the very name which another leaves to the server's shares its probe.
fn probe_tls(tls: &Arc<ServiceTls>, server: &str) -> ProbeTls {
    match &tls.name {
        None => ProbeTls { name: host_of(server).into(), settings: Arc::clone(tls) },
        Some(name) => {
            let settings = Arc::new(ServiceTls { name: None, ..(**tls).clone() });
            ProbeTls { name: Arc::clone(name), settings }
        }
    }
}

/// The host of `host:port`, without the brackets of IPv6.
fn host_of(server: &str) -> String {
    match server.parse::<SocketAddr>() {
        Ok(address) => address.ip().to_string(),
        Err(_) => server.rsplit_once(':').map_or(server, |(host, _)| host).to_owned(),
    }
}
