//! A validated, immutable configuration.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Acme, AcmeCertificate, Address, Admin, AffinityKeyFile, Authentication, AuthenticationId,
    AutoscalerListener, Certificate, ClientAddress, ErrorPage, Fleet, Hosts, Kubernetes,
    ListenerTls, Log, Metrics, Networks, Otlp, Registration, Registries, Route, ServerNames,
    Service, SocketAccess, TcpSplit, TlsMode,
};

/// Index of a service in [`Snapshot::services`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceId(pub u32);

/// Index of a listener in [`Snapshot::listeners`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(pub u32);

/// A whole configuration: the result of `config` once everything in the file is valid. Every ID in
/// it is valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The zone this balancer runs in.
    pub zone: Option<Arc<str>>,
    /// Worker threads; `None`: one per core.
    pub workers: Option<NonZeroU16>,
    /// Maximum number of client connections over all listeners.
    pub connections_max: u32,
    /// Memory for request bodies that are buffered before a server is chosen, over all requests, in
    /// bytes; 0: none is buffered.
    pub request_buffers_max_bytes: u64,
    /// Memory for compressing responses, over all responses; 0: nothing is compressed.
    pub compression_memory_max_bytes: u64,
    /// Memory for the bodies of copies of requests, over all copies.
    pub mirror_memory_max_bytes: u64,
    /// Memory for the history of traffic; 0: none is kept.
    pub history_memory_max_bytes: u64,
    /// How long connections are still accepted after SIGTERM.
    pub drain_delay: Duration,
    /// How long requests in progress may take after that.
    pub drain_max: Duration,
    /// The directory for state that must survive a restart; `None`: as the environment says.
    pub state_directory: Option<PathBuf>,
    /// The file with this instance's key of affinities; `None`: a key in the state directory.
    pub affinity_key_file: Option<AffinityKeyFile>,
    /// User and group to switch to after binding, when started as root.
    pub run_as: Option<(String, Option<String>)>,
    /// The admin API; `None`: off.
    pub admin: Option<Admin>,
    /// Where metrics are pushed.
    pub metrics: Metrics,
    /// Where traces, metrics and logs are sent by OTLP.
    pub otlp: Option<Otlp>,
    /// How certificates are obtained by ACME; `None`: no listener uses it.
    pub acme: Option<Arc<Acme>>,
    /// The DNS servers for servers' names and SRV records; empty: those of /etc/resolv.conf.
    pub resolver: Vec<SocketAddr>,
    /// Where KEDA's operator asks for numbers of servers.
    pub keda: Option<AutoscalerListener>,
    /// Where the API server of Kubernetes asks for external metrics: with TLS, and `kubernetes`.
    pub external_metrics: Option<AutoscalerListener>,
    /// How Weir is connected to Kubernetes; `None`: it is not.
    pub kubernetes: Option<Arc<Kubernetes>>,
    /// How the registries of servers are reached.
    pub registries: Registries,
    /// The fleet that this balancer is a member of; `None`: it is alone.
    pub fleet: Option<Arc<Fleet>>,
    /// Logs.
    pub log: Log,
    /// Automatic reload.
    pub reload: Reload,
    /// Whether and how often this host is checked.
    pub doctor: Doctor,
    /// In order of the file.
    pub listeners: Vec<Listener>,
    /// In the order in which they match: the first that matches is used.
    pub routes: Vec<Arc<Route>>,
    /// In order of name. Shared with the services at run time.
    pub services: Vec<Arc<Service>>,
    /// In order of name.
    pub authentications: Vec<Authentication>,
}

impl Snapshot {
    /// Returns all certificates: those of listeners, each with the listener's name, and that of `[fleet.tls]`, with `None`.
    pub fn certificates(&self) -> impl Iterator<Item = (Option<&str>, &Certificate)> {
        let of_listeners = self.listeners.iter().flat_map(|listener| {
            let certificates = listener.tls.iter().flat_map(|tls| &tls.certificates);
            certificates.map(|one| (Some(&*listener.name), one))
        });
        let of_fleet = self.fleet.iter().filter_map(|fleet| fleet.tls.as_ref());
        of_listeners.chain(of_fleet.map(|tls| (None, &tls.certificate)))
    }

    /// Returns the configuration before the first: no listeners, no services.
    pub fn empty() -> Snapshot {
        Snapshot {
            zone: None,
            workers: None,
            connections_max: 0,
            request_buffers_max_bytes: 0,
            compression_memory_max_bytes: 0,
            mirror_memory_max_bytes: 0,
            history_memory_max_bytes: 0,
            drain_delay: Duration::ZERO,
            drain_max: Duration::ZERO,
            state_directory: None,
            affinity_key_file: None,
            run_as: None,
            admin: None,
            metrics: Metrics::none(),
            otlp: None,
            acme: None,
            resolver: Vec::new(),
            registries: Registries::default(),
            keda: None,
            external_metrics: None,
            kubernetes: None,
            fleet: None,
            log: Log::none(),
            reload: Reload { watch: false },
            doctor: Doctor { interval: None },
            listeners: Vec::new(),
            routes: Vec::new(),
            services: Vec::new(),
            authentications: Vec::new(),
        }
    }

    /// Replaces services by those of `before` that are equal, so that unchanged ones exist once,
    /// and comparing them takes one step.
    pub fn share_services(&mut self, before: &Snapshot) {
        // Both are in order of name.
        let mut known = before.services.iter().peekable();
        for service in &mut self.services {
            while known.next_if(|known| known.name < service.name).is_some() {}
            if let Some(known) = known.next_if(|known| **known == *service) {
                *service = Arc::clone(known);
            }
        }
    }

    /// Returns the authentication with this ID.
    pub fn authentication(&self, id: AuthenticationId) -> &Authentication {
        // IDs are created by `config::build` for this very vector.
        &self.authentications[id.0 as usize]
    }

    /// Replaces chain and key of each listener's certificates by ACME with those that `material`
    /// returns for its names; `None` leaves them as they are.
    pub fn fill_acme(&mut self, mut material: impl FnMut(&AcmeCertificate) -> Option<Certificate>) {
        let tls = self.listeners.iter_mut().filter_map(|listener| listener.tls.as_mut());
        for certificate in tls.flat_map(|tls| &mut tls.certificates) {
            let Some(acme) = &certificate.acme else { continue };
            if let Some(Certificate { chain, key, .. }) = material(acme) {
                (certificate.chain, certificate.key) = (chain, key);
            }
        }
    }

    /// Returns whether a listener or a service uses TLS.
    pub fn uses_tls(&self) -> bool {
        self.listeners.iter().any(|listener| listener.tls.is_some())
            || self.services.iter().any(|service| service.tls.is_some())
    }

    /// Returns the service with this ID.
    pub fn service(&self, id: ServiceId) -> &Service {
        // IDs are created by `config::build` for this very vector.
        &self.services[id.0 as usize]
    }
}

/// When the file is reloaded automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reload {
    /// Whenever it has changed.
    pub watch: bool,
}

/// How this host is checked while the balancer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doctor {
    /// Interval between checks; `None`: off.
    pub interval: Option<Duration>,
}

/// An address on which clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Unique within a configuration.
    pub name: Arc<str>,
    /// Where.
    pub address: Address,
    /// Who may connect, if it is a Unix socket.
    pub socket: SocketAccess,
    /// The protocol.
    pub protocol: Protocol,
    /// The listen backlog; `None`: net.core.somaxconn.
    pub backlog: Option<u32>,
    /// Maximum number of connections on this listener.
    pub connections_max: u32,
    /// Peers whose forwarding fields (X-Forwarded-*, Forwarded, X-Request-Id, traceparent) are
    /// trusted and extended; those of all others are replaced.
    pub trusted: Networks,
    /// How the client's address is found in their requests.
    pub client_address: ClientAddress,
    /// Which of these fields are sent to servers.
    pub forward_fields: ForwardFields,
    /// Timeouts towards clients.
    pub timeouts: ClientTimeouts,
    /// The largest request head, in bytes.
    pub head_max_bytes: u32,
    /// The largest request body, in bytes; `None`: no limit.
    pub body_max_bytes: Option<u64>,
    /// Whether answers that Weir generates contain their cause in `Proxy-Status` (RFC 9209).
    pub proxy_status: bool,
    /// Pages in place of the answers to errors that Weir generates.
    pub error_pages: Vec<ErrorPage>,
    /// TLS; `None`: clear text.
    pub tls: Option<ListenerTls>,
    /// HTTP/2 (RFC 9113) towards clients; `None`: disabled.
    pub http2: Option<ClientHttp2>,
    /// The hosts that it serves; `None`: any.
    pub hosts: Option<Hosts>,
    /// Protocols that a request may upgrade its connection to; `h2c` is never among them.
    pub upgrade_protocols: Vec<Box<str>>,
    /// Peers whose connections must start with a PROXY protocol header. Those of others must not.
    pub proxy_protocol: Networks,
    /// Its entry in Consul; `None`: it has none.
    pub register: Option<Arc<Registration>>,
}

impl Listener {
    /// Returns whether a connection accepted under `self` also satisfies the rules of `other`: both
    /// use clear text or both TLS, with the same minimum version, cipher suites and client
    /// authorities, and accept PROXY headers from the same peers. Certificates may differ: a
    /// renewed certificate does not change who may connect.
    pub fn has_security_of(&self, other: &Listener) -> bool {
        self.protocol.word() == other.protocol.word()
            && self.protocol.has_requests() == other.protocol.has_requests()
            && self.proxy_protocol == other.proxy_protocol
            && match (&self.tls, &other.tls) {
                (None, None) => true,
                (Some(tls), Some(other)) => tls.has_security_of(other),
                _ => false,
            }
    }

    /// Returns whether a request may have a body of this length, in bytes.
    pub fn allows_body(&self, length: u64) -> bool {
        self.body_max_bytes.is_none_or(|max| length <= max)
    }
}

/// The protocol of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP, routed per request.
    Http,
    /// Bytes.
    Tcp(TcpSplit),
    /// TLS, by the requested server name (SNI).
    Tls(ServerNames),
}

crate::words! {
    /// The configuration word of a [`Protocol`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProtocolWord {
        /// HTTP, routed per request.
        Http = "http",
        /// Bytes, or TLS by server name.
        Tcp = "tcp",
    }
}

impl Protocol {
    /// Returns its word.
    pub fn word(&self) -> ProtocolWord {
        match self {
            Protocol::Http => ProtocolWord::Http,
            Protocol::Tcp(_) | Protocol::Tls(_) => ProtocolWord::Tcp,
        }
    }

    /// Returns whether some of its connections carry HTTP, which Weir reads.
    pub fn has_requests(&self) -> bool {
        match self {
            Protocol::Http => true,
            Protocol::Tcp(_) => false,
            Protocol::Tls(names) => names.modes().contains(&TlsMode::Http),
        }
    }

    /// Returns whether the bytes of some of its connections are forwarded after they were decrypted, if the
    /// listener has `tls`.
    pub fn terminates(&self) -> bool {
        match self {
            Protocol::Http => false,
            Protocol::Tcp(_) => true,
            Protocol::Tls(names) => {
                names.modes().iter().any(|mode| matches!(mode, TlsMode::Terminate(_)))
            }
        }
    }

    /// Returns the services that its connections go to. Those that requests go to are in the routes.
    pub fn services(&self) -> impl Iterator<Item = ServiceId> {
        let (split, names) = match self {
            Protocol::Http => (None, &[][..]),
            Protocol::Tcp(split) => (Some(split), &[][..]),
            Protocol::Tls(names) => (None, names.modes()),
        };
        let splits = split.into_iter().chain(names.iter().filter_map(TlsMode::split));
        splits.flat_map(TcpSplit::services)
    }
}

/// Limits on HTTP/2 towards clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientHttp2 {
    /// Maximum concurrent requests on one connection.
    pub streams_max: u32,
}

/// Which fields Weir adds to forwarded requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardFields {
    /// X-Forwarded-For, -Proto and -Host.
    pub x_forwarded: bool,
    /// Forwarded (RFC 7239).
    pub forwarded: bool,
    /// X-Request-Id.
    pub request_id: bool,
    /// traceparent (W3C Trace Context).
    pub traceparent: bool,
    /// X-Real-IP: the client's address as Weir determines it.
    pub real_ip: bool,
    /// Via (RFC 9110 section 7.6.3).
    pub via: bool,
}

/// Timeouts towards clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTimeouts {
    /// From the first byte of a request head to its last.
    pub head: Duration,
    /// Between requests on a connection, and before the first.
    pub idle: Duration,
    /// Between two bytes of a body, in either direction.
    pub body: Duration,
}
