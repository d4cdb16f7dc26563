//! Resources of which the system grants less than a configuration requests.

use std::sync::Arc;

use model::{Protocol, Snapshot};

/// Descriptors for everything but clients and servers: standard streams, logs, admin connections,
/// name resolution, running probes.
const RESERVE_FILES: u64 = 512;

/// Less was granted than requested. Weir works, but not up to the configured limits.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shortfall {
    Backlog { listener: Arc<str>, asked: u32, granted: u32 },
    Files { wanted: u64, granted: u64, hard: u64 },
}

impl Shortfall {
    /// Logs it, with both numbers.
    pub(super) fn log(&self) {
        match self {
            Shortfall::Backlog { listener, asked, granted } => tracing::warn!(
                %listener,
                asked,
                granted,
                "the listen backlog is smaller than asked for: net.core.somaxconn limits it; \
                 `sysctl -w net.core.somaxconn={asked}` raises that"
            ),
            Shortfall::Files { wanted, granted, hard } => tracing::warn!(
                wanted,
                granted,
                hard,
                "fewer open files than connections_max may need, so that accepting may pause \
                 before it is reached; raise the hard limit (LimitNOFILE= in the systemd unit, \
                 or `ulimit -Hn`), or lower connections_max"
            ),
        }
    }

    /// Returns whether logging `said` has already covered this one.
    pub(super) fn is_known_from(&self, said: &Shortfall) -> bool {
        match (self, said) {
            // The limit is unchanged; the number wanted changes with every server.
            (Shortfall::Files { granted, .. }, Shortfall::Files { granted: said, .. }) => {
                granted == said
            }
            _ => self == said,
        }
    }
}

/// Raises the limit of open files as far as the system permits.
pub(super) fn raise_open_files(wanted: u64, shortfalls: &mut Vec<Shortfall>) {
    // If refused altogether, the current limit counts.
    let (granted, hard) = os::limits::raise_nofile(wanted).unwrap_or_else(|_| os::limits::nofile());
    if granted < wanted {
        shortfalls.push(Shortfall::Files { wanted, granted, hard });
    }
}

/// Returns the maximum number of descriptors that a balancer may hold at once.
pub(super) fn files_wanted(snapshot: &Snapshot, workers: u64) -> u64 {
    let sum = |tcp: bool| -> u64 {
        let listeners = snapshot.listeners.iter();
        listeners
            .filter(|listener| !matches!(listener.protocol, Protocol::Http) == tcp)
            .map(|listener| u64::from(listener.connections_max))
            .sum()
    };
    let all = u64::from(snapshot.connections_max);
    let tunnels = sum(true).min(all);
    let exchanges = sum(false).min(all - tunnels);
    // A client and its server; a tunnel also holds a pipe in each direction.
    let connections = exchanges * 2 + tunnels * 6;
    let services = snapshot.services.iter();
    let kept: u64 = services
        .map(|service| u64::from(service.idle_connections_max) * service.servers.len() as u64)
        .sum();
    // One listening socket each, here and with the worker, the runtime's own descriptors, and pipes
    // for large bodies.
    let pipes = proxy::BODY_PIPES_MAX as u64 * 2;
    let workers_own = workers * (snapshot.listeners.len() as u64 * 2 + 8 + pipes);
    // Each copy of a request has a connection to a server.
    let has_mirrors = snapshot.routes.iter().any(|route| !route.mirrors().is_empty());
    let copies = if has_mirrors { workers * proxy::COPIES_MAX as u64 } else { 0 };
    // However many servers there are, workers keep no more than connections_max in total.
    connections + (kept * workers).min(all) + copies + workers_own + RESERVE_FILES
}
