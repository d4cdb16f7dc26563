//! A health check: the definition of a probe and how a service interprets its results.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Address, HttpVersion, Pattern, ProxyVersion, Service, ServiceTls, StatusSet, Text, UnixPath,
};

/// A service's health check settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is sent and expected.
    pub kind: CheckKind,
    /// Port to probe if it differs from the server's.
    pub port: Option<u16>,
    /// Whether probes use no TLS, although the service does.
    pub clear_text: bool,
    /// The version of HTTP if it differs from the service's.
    pub http: Option<HttpVersion>,
    /// Time between the starts of two probes.
    pub interval: Duration,
    /// How long this service waits for a result before the probe counts as failed.
    pub timeout: Duration,
    /// Successes in a row that bring a server up.
    pub rise: u32,
    /// Failures in a row that mark a server down.
    pub fall: u32,
}

/// The protocol of a check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CheckKind {
    /// Connect, and complete the handshake if the service uses TLS; then close at once without
    /// leaving `TIME_WAIT`.
    Tcp,
    /// An HTTP request whose status must be as expected.
    Http {
        /// Request method, upper case.
        method: String,
        /// Request target in origin form.
        path: String,
        /// The Host field; `None` means the server's address.
        host: Option<String>,
        /// Further request fields, in order.
        fields: Vec<(String, Text)>,
        /// The statuses that count as success.
        expect: StatusSet,
        /// What the body must be to count as success.
        body: BodyExpectation,
        /// Whether probes share a kept connection (false for pre-fork servers, where a kept
        /// connection holds a worker).
        reuse: bool,
    },
    /// The gRPC health checking protocol, `grpc.health.v1.Health/Check`, over HTTP/2: the response
    /// must be SERVING.
    Grpc {
        /// The service to query; empty: the server as a whole.
        service: String,
        /// `:authority`; `None` means the server's address.
        host: Option<String>,
    },
}

/// What the body of a response to a probe must be. Without any of it, the body does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BodyExpectation {
    /// It must match anywhere in the body.
    pub pattern: Option<Pattern>,
    /// Members of a JSON object by path, and the text that each must be, or that must be in its list.
    pub json: Vec<(String, String)>,
}

crate::word_of! {
    /// The configuration word of a [`CheckKind`].
    CheckKind as CheckWord {
        Http { .. } = "http",
        Tcp = "tcp",
        Grpc { .. } = "grpc",
    }
}

/// The complete definition of a probe. Two checks with equal identity share one probe, however many
/// services use it; anything that could change the result is part of it, since merging checks that
/// differ would let one virtual host's outage take out another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProbeIdentity {
    /// The probed address (with the check's own port applied).
    pub address: Address,
    /// What is sent there.
    pub spec: ProbeSpec,
}

/// What a probe does, whatever its target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProbeSpec {
    /// What it sends and expects; Host is resolved, never `None`.
    pub kind: CheckKind,
    /// TLS, as the service uses it towards its servers.
    pub tls: Option<ProbeTls>,
    /// The HTTP version. HTTP/1.1 for a probe that neither sends HTTP nor negotiates it (ALPN), so
    /// that it is shared.
    pub http: HttpVersion,
    /// The PROXY protocol header that starts the connection, of type LOCAL: it names no client.
    pub send_proxy: Option<ProxyVersion>,
}

/// A probe's TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeTls {
    /// The server name that is sent (SNI) and verified: a host name or an IP address.
    pub name: Arc<str>,
    /// All other settings; their name is not used.
    pub settings: Arc<ServiceTls>,
}

/// Hashes only the short settings: the others contain whole files, of which there are few.
impl Hash for ProbeTls {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.settings.verify.hash(state);
        self.settings.ca.path.hash(state);
    }
}

impl Service {
    /// Returns the probe of this service's check for its server at `address`, which is called
    /// `server` in the configuration (`name:port`, or the address). `None`: there is no check.
    pub fn probe(&self, server: &str, address: Address) -> Option<ProbeIdentity> {
        let check = self.check.as_ref()?;
        let mut target = address;
        if let (Address::Ip(target), Some(port)) = (&mut target, check.port) {
            target.set_port(port);
        }
        let spec = self.probe_spec(check, server, &address.authority());
        Some(ProbeIdentity { address: target, spec })
    }

    /// Returns the probe of a server given by name, before the name is resolved.
    pub fn probe_by_name(&self, server: &str) -> Option<ProbeSpec> {
        Some(self.probe_spec(self.check.as_ref()?, server, server))
    }

    fn probe_spec(&self, check: &Check, server: &str, default_host: &str) -> ProbeSpec {
        let mut kind = check.kind.clone();
        if let CheckKind::Http { host, .. } | CheckKind::Grpc { host, .. } = &mut kind {
            host.get_or_insert_with(|| default_host.to_owned());
        }
        let tls = self.tls.as_ref().filter(|_| !check.clear_text);
        let speaks_http = kind != CheckKind::Tcp || tls.is_some();
        let http = check.http.unwrap_or(self.http);
        ProbeSpec {
            kind,
            tls: tls.map(|tls| probe_tls(tls, server)),
            http: if speaks_http { http } else { HttpVersion::Http11 },
            send_proxy: self.send_proxy,
        }
    }
}

/// A service that configures the name which another derives from its server shares its probe.
fn probe_tls(tls: &Arc<ServiceTls>, server: &str) -> ProbeTls {
    match &tls.name {
        None => ProbeTls { name: host_of(server).into(), settings: Arc::clone(tls) },
        Some(name) => {
            let settings = Arc::new(ServiceTls { name: None, ..(**tls).clone() });
            ProbeTls { name: Arc::clone(name), settings }
        }
    }
}

/// Returns the host of `host:port`, without the brackets of IPv6.
fn host_of(server: &str) -> String {
    match server.parse() {
        Ok(Address::Ip(address)) => address.ip().to_string(),
        Ok(Address::Unix(_)) => UnixPath::HOST.to_owned(),
        Err(_) => server.rsplit_once(':').map_or(server, |(host, _)| host).to_owned(),
    }
}
