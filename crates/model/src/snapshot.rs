//! A configuration, already valid and immutable.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use crate::{Admin, HostPattern, ListenerTls, Metrics, Route, Service};

/// Index of a service in [`Snapshot::services`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceId(pub u32);

/// Index of a listener in [`Snapshot::listeners`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(pub u32);

/// A whole configuration: what `config` yields once everything in the file is valid. Every id in
/// it points at something.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The zone this balancer runs in.
    pub zone: Option<Arc<str>>,
    /// Worker threads; `None`: one per core.
    pub workers: Option<NonZeroU16>,
    /// Client connections in all listeners together.
    pub connections_max: u32,
    /// Memory for request bodies that are read before a server is chosen, of all requests together,
    /// in bytes; 0: none is read ahead.
    pub request_buffers_max_bytes: u64,
    /// Memory for compressing responses, of all together; 0: nothing is compressed.
    pub compression_memory_max_bytes: u64,
    /// How long running requests may take after SIGTERM.
    pub drain_max: Duration,
    /// Where Weir keeps what must survive a restart; `None`: as the environment says.
    pub state_directory: Option<PathBuf>,
    /// Whom to become after binding, when started as root: user and group names.
    pub run_as: Option<(String, Option<String>)>,
    /// The admin API; `None`: off.
    pub admin: Option<Admin>,
    /// Where metrics are pushed to.
    pub metrics: Metrics,
    /// The DNS server asked for servers' names; `None`: those of /etc/resolv.conf.
    pub resolver: Option<SocketAddr>,
    /// Logs.
    pub log: Log,
    /// When the file is read again by itself.
    pub reload: Reload,
    /// Whether this host is looked at, and how often.
    pub doctor: Doctor,
    /// In order of the file.
    pub listeners: Vec<Listener>,
    /// In the order in which they match: the first that matches is the route.
    pub routes: Vec<Route>,
    /// In order of name.
    pub services: Vec<Service>,
}

impl Snapshot {
    /// The configuration before the first: nothing listens, nothing is served.
    pub fn empty() -> Snapshot {
        Snapshot {
            zone: None,
            workers: None,
            connections_max: 0,
            request_buffers_max_bytes: 0,
            compression_memory_max_bytes: 0,
            drain_max: Duration::ZERO,
            state_directory: None,
            run_as: None,
            admin: None,
            metrics: Metrics::none(),
            resolver: None,
            log: Log::none(),
            reload: Reload { watch: false },
            doctor: Doctor { interval: None },
            listeners: Vec::new(),
            routes: Vec::new(),
            services: Vec::new(),
        }
    }

    /// The service that `id` stands for.
    pub fn service(&self, id: ServiceId) -> &Service {
        // Ids are made by `config::build` for this very vector.
        &self.services[id.0 as usize]
    }
}

/// When the file is read again without being asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reload {
    /// When it has changed.
    pub watch: bool,
}

/// How this host is looked at while the balancer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doctor {
    /// Time between two looks; `None`: it is not looked at.
    pub interval: Option<Duration>,
}

/// What is logged and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// A line per request.
    pub access: AccessLog,
    /// Form of the lines.
    pub format: LogFormat,
    /// The share of exchanges, 0.0 to 1.0, for which the kernel is asked about the TCP connections
    /// on both sides.
    pub tcp_info: f64,
    /// Whether servers with little traffic are asked about more often, for metrics and findings only:
    /// where the file does not set `tcp_info`.
    pub tcp_info_raised: bool,
    /// The share of exchanges, 0.0 to 1.0, whose line says why they got their server.
    pub decisions: f64,
    /// The file that holds the token by which a request may ask for the same; `None`: the admin
    /// API's.
    pub explain_token_file: Option<PathBuf>,
}

impl Log {
    /// No lines, and nothing that would stand in them.
    pub fn none() -> Log {
        Log {
            access: AccessLog::Off,
            format: LogFormat::Json,
            tcp_info: 0.0,
            tcp_info_raised: false,
            decisions: 0.0,
            explain_token_file: None,
        }
    }
}

/// Where access lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// Appended to a file.
    File(PathBuf),
}

crate::word_of! {
    AccessLog {
        Off = "off",
        Stdout = "stdout",
        File(_) = "file",
    }
}

/// Writes the destination as a configuration has it: `off`, `stdout`, or the file's path.
impl fmt::Display for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessLog::Off | AccessLog::Stdout => f.write_str(self.as_str()),
            AccessLog::File(path) => path.display().fmt(f),
        }
    }
}

crate::words! {
    /// Form of log lines.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LogFormat {
        /// One JSON object a line.
        Json = "json",
        /// For people.
        Text = "text",
    }
}

/// An address on which clients are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Unique within a configuration.
    pub name: Arc<str>,
    /// Address and port.
    pub address: SocketAddr,
    /// What is spoken.
    pub protocol: Protocol,
    /// The listen backlog asked for; `None`: net.core.somaxconn.
    pub backlog: Option<u32>,
    /// Connections at once on this listener.
    pub connections_max: u32,
    /// Peers whose forwarding fields (X-Forwarded-*, Forwarded, X-Request-Id, traceparent) are
    /// believed and extended; those of all others are replaced.
    pub trusted: Vec<IpNet>,
    /// Which of these fields are sent to servers.
    pub forward_fields: ForwardFields,
    /// Time limits towards clients.
    pub timeouts: ClientTimeouts,
    /// The largest request head, in bytes.
    pub head_max_bytes: u32,
    /// The largest request body, in bytes; `None`: no limit.
    pub body_max_bytes: Option<u64>,
    /// Whether answers that Weir makes name their cause in `Proxy-Status` (RFC 9209).
    pub proxy_status: bool,
    /// TLS; `None`: cleartext.
    pub tls: Option<ListenerTls>,
    /// HTTP/2 (RFC 9113) towards clients; `None`: not spoken.
    pub http2: Option<ClientHttp2>,
    /// Protocols that a request may upgrade its connection to; `h2c` is never among them.
    pub upgrade_protocols: Vec<Box<str>>,
    /// Peers whose connections begin with a PROXY protocol header. Those of others must not.
    pub proxy_protocol: Vec<IpNet>,
}

impl Listener {
    /// Whether a connection that was accepted under `self` meets the rules of `other` as well: both
    /// speak clear text or both TLS, with the same oldest version, cipher suites and clients'
    /// authorities, and believe PROXY headers of the same peers. Certificates may differ: a renewed
    /// certificate does not change who may connect.
    pub fn has_security_of(&self, other: &Listener) -> bool {
        let is_http = |listener: &Listener| matches!(listener.protocol, Protocol::Http);
        is_http(self) == is_http(other)
            && self.proxy_protocol == other.proxy_protocol
            && match (&self.tls, &other.tls) {
                (None, None) => true,
                (Some(tls), Some(other)) => tls.has_security_of(other),
                _ => false,
            }
    }
}

/// What a listener speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP, routed by request.
    Http,
    /// Bytes, all to one service.
    Tcp(ServiceId),
    /// TLS that is not decrypted: bytes, to a service by the server name (SNI) asked for.
    TlsPassthrough {
        /// Exact names before wildcards, longer wildcards first.
        names: Vec<(HostPattern, ServiceId)>,
        /// For any other name, or none; `None`: refused.
        otherwise: Option<ServiceId>,
    },
}

crate::words! {
    /// The word for a [`Protocol`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProtocolWord {
        /// HTTP, routed by request.
        Http = "http",
        /// Bytes, TLS that is passed through among them.
        Tcp = "tcp",
    }
}

impl Protocol {
    /// Its word.
    pub fn word(&self) -> ProtocolWord {
        match self {
            Protocol::Http => ProtocolWord::Http,
            Protocol::Tcp(_) | Protocol::TlsPassthrough { .. } => ProtocolWord::Tcp,
        }
    }
}

/// Limits on HTTP/2 towards clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientHttp2 {
    /// Requests at once on one connection.
    pub streams_max: u32,
}

/// Which fields Weir adds to what it forwards.
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
    /// Via (RFC 9110 section 7.6.3).
    pub via: bool,
}

/// Time limits towards clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTimeouts {
    /// From the first byte of a request head to its last.
    pub head: Duration,
    /// Between requests on a kept connection, and before the first.
    pub idle: Duration,
    /// Between two bytes of a body, either way.
    pub body: Duration,
}
