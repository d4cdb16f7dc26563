//! Sources of a service's servers: what is asked where, and what happens when a source fails or lists
//! far fewer servers than before.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{HttpPeer, Moment};

/// Where a service's servers come from, besides those in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Discover {
    /// The source.
    pub source: ServerSource,
    /// Replaces the port that the source gives each server.
    pub port: Option<u16>,
    /// What a server's concurrency limit is when the source lists its address more than once.
    pub limits: ListedLimits,
    /// When servers that are no longer listed are kept.
    pub hold: Hold,
    /// Whether a start uses the servers of the last run until the source answers.
    pub saved: bool,
    /// How long the last good set is used while the source fails; `None`: without end.
    pub kept_max: Option<Duration>,
}

/// A source of servers.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerSource {
    /// The instances of a service in Consul's catalogue.
    Consul {
        /// The service's name there.
        service: Arc<str>,
        /// Only instances with this tag.
        tag: Option<Arc<str>>,
    },
    /// The registrations of a service in Nomad.
    Nomad {
        /// The service's name there.
        service: Arc<str>,
        /// Only registrations with this tag.
        tag: Option<Arc<str>>,
    },
    /// The keys below a prefix in etcd: each is a server.
    Etcd {
        /// The prefix; ends in a slash.
        prefix: Arc<str>,
    },
    /// The Pods of a Service's port in Kubernetes.
    Kubernetes {
        /// The namespace of the Service.
        namespace: Arc<str>,
        /// The name of the Service.
        service: Arc<str>,
        /// The name of the port in the Service; `None`: it has none.
        port: Option<Arc<str>>,
    },
    /// SRV records.
    DnsSrv {
        /// Their name, lower case: `_http._tcp.web.example`.
        name: Box<str>,
    },
    /// Files with rows in TOML.
    Files {
        /// Their folder, an absolute path.
        folder: PathBuf,
        /// Their names, in which `*` stands for any text.
        names: Box<str>,
    },
    /// Files in the format of Prometheus's file-based service discovery.
    FileSd {
        /// Their folder, an absolute path.
        folder: PathBuf,
        /// Their names, in which `*` stands for any text.
        names: Box<str>,
    },
    /// An HTTP server that answers in the format of Prometheus's HTTP-based service discovery.
    HttpSd {
        /// Where it is asked.
        peer: HttpPeer,
        /// The time between two requests.
        interval: Duration,
    },
}

impl ServerSource {
    /// Returns its kind.
    pub fn kind(&self) -> ServerSourceWord {
        match self {
            ServerSource::Consul { .. } => ServerSourceWord::Consul,
            ServerSource::Nomad { .. } => ServerSourceWord::Nomad,
            ServerSource::Etcd { .. } => ServerSourceWord::Etcd,
            ServerSource::Kubernetes { .. } => ServerSourceWord::Kubernetes,
            ServerSource::DnsSrv { .. } => ServerSourceWord::DnsSrv,
            ServerSource::Files { .. } => ServerSourceWord::Files,
            ServerSource::FileSd { .. } => ServerSourceWord::FileSd,
            ServerSource::HttpSd { .. } => ServerSourceWord::HttpSd,
        }
    }
}

/// Displays it as it is shown to people: `consul web, tag v2`, `file_sd /etc/weir/targets/*.json`.
impl fmt::Display for ServerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())?;
        match self {
            ServerSource::Consul { service, tag } | ServerSource::Nomad { service, tag } => {
                write!(f, " {service}")?;
                tag.as_ref().map_or(Ok(()), |tag| write!(f, ", tag {tag}"))
            }
            ServerSource::Etcd { prefix } => write!(f, " {prefix}"),
            ServerSource::Kubernetes { namespace, service, port } => {
                write!(f, " {namespace}/{service}")?;
                port.as_ref().map_or(Ok(()), |port| write!(f, ", port {port}"))
            }
            ServerSource::DnsSrv { name } => write!(f, " {name}"),
            ServerSource::Files { folder, names } | ServerSource::FileSd { folder, names } => {
                write!(f, " {}", folder.join(&**names).display())
            }
            ServerSource::HttpSd { peer, .. } => write!(f, " {}", peer.url.without_query()),
        }
    }
}

crate::word_of! {
    /// The configuration word of a [`ServerSource`].
    ServerSource as ServerSourceWord {
        Consul { .. } = "consul",
        Nomad { .. } = "nomad",
        Etcd { .. } = "etcd",
        Kubernetes { .. } = "kubernetes",
        DnsSrv { .. } = "dns_srv",
        Files { .. } = "files",
        FileSd { .. } = "file_sd",
        HttpSd { .. } = "http_sd",
    }
}

crate::words! {
    /// What a server's concurrency limit is when a source lists its address more than once.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ListedLimits {
        /// That of one entry: each entry describes the server.
        Each = "each",
        /// The sum over the entries that are ready, 1 for an entry without a limit: each entry is a
        /// worker.
        Added = "added",
    }
}

/// When servers that a source no longer lists are kept as servers of last resort.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hold {
    /// They are kept if one answer lists fewer than this share of the servers before, or none.
    pub share: f64,
    /// For how long.
    pub max: Duration,
}

crate::words! {
    /// What a source's answer, or its absence, makes of a server.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Standing {
        /// It is listed, and may receive requests.
        Listed = "listed",
        /// The source reports it as being in maintenance: it receives no new requests.
        Maintenance = "maintenance",
        /// The source reports it as failing: it receives no new requests.
        Critical = "critical",
        /// It is no longer listed, together with most others: it is kept for a while, and used like a backup.
        Held = "held",
        /// It was listed and removed again and again: it is used like a backup until that ends.
        Flapping = "flapping",
        /// The file has the same server; what the file says applies.
        Overridden = "overridden",
    }
}

impl Standing {
    /// Returns whether new requests may go to it as far as its source is concerned.
    pub fn is_ready(self) -> bool {
        !matches!(self, Standing::Maintenance | Standing::Critical)
    }

    /// Returns whether it is a server of last resort, which is used like a backup.
    pub fn is_last_resort(self) -> bool {
        matches!(self, Standing::Held | Standing::Flapping)
    }
}

/// How a source lists a server, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The kind of source.
    pub source: ServerSourceWord,
    /// What it is in the source: `node1/web-1`, a file's name, a URL.
    pub object: Arc<str>,
    /// The index (Consul) of the answer that made it as it is.
    pub index: Option<u64>,
    /// When that answer was applied.
    pub since: Moment,
    /// What the source makes of it.
    pub standing: Standing,
}
