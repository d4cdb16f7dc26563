//! What is asked of the kernel before the first connection: descriptors and listening sockets.
//!
//! Whoever starts a balancer learns here, in one line each, what is missing. What the sockets are
//! used for is the proxy's.

use std::net::TcpListener;

use model::{Protocol, Snapshot};

/// Descriptors for what is neither a client nor a server: standard streams, logs, the admin API's
/// connections, name resolution, probes under way.
const RESERVE_FILES: u64 = 512;

/// Every listening socket of a balancer.
pub(crate) struct Sockets {
    /// One row per worker; in it one socket per listener, in order of configuration.
    pub(crate) clients: Vec<Vec<TcpListener>>,
    /// The admin API's, unless it is off.
    pub(crate) admin: Option<TcpListener>,
}

/// Raises the limit of open files to what the configuration may come to use, and says so when the
/// system grants less.
pub(crate) fn raise_open_files(snapshot: &Snapshot, workers: usize) {
    let wanted = files_wanted(snapshot, workers as u64);
    match os::limits::raise_nofile(wanted) {
        Ok((granted, _)) if granted >= wanted => {
            tracing::debug!(wanted, granted, "limit of open files");
        }
        Ok((granted, hard)) => tracing::warn!(
            wanted,
            granted,
            hard,
            "too few open files for connections_max: accepting will pause before it is reached; \
             raise the hard limit (LimitNOFILE= in the systemd unit, or `ulimit -Hn`), or lower \
             connections_max"
        ),
        Err(error) => {
            tracing::warn!(%error, wanted, "the limit of open files could not be raised");
        }
    }
}

/// Binds everything, or says of each address that cannot be bound why, and how to mend it.
pub(crate) fn bind(snapshot: &Snapshot, workers: usize) -> Result<Sockets, Vec<String>> {
    let mut errors = Vec::new();
    let mut clients: Vec<Vec<TcpListener>> = (0..workers).map(|_| Vec::new()).collect();
    for listener in &snapshot.listeners {
        if let Err(error) = bind_listener(listener, &mut clients) {
            errors.push(format!("listener {:?}: {error}", listener.name));
        }
    }
    let admin = match snapshot.admin.map(bind_admin).transpose() {
        Ok(admin) => admin,
        Err(error) => {
            errors.push(format!("admin: {error}"));
            None
        }
    };
    if errors.is_empty() { Ok(Sockets { clients, admin }) } else { Err(errors) }
}

/// One socket per worker, all on the listener's address.
fn bind_listener(
    listener: &model::Listener,
    workers: &mut [Vec<TcpListener>],
) -> Result<(), Box<dyn std::error::Error>> {
    let Some((first_worker, others)) = workers.split_first_mut() else { return Ok(()) };
    let first = os::listen::bind(listener.address, listener.backlog, true)?;
    if first.backlog_granted < first.backlog_asked {
        tracing::warn!(
            listener = %listener.name,
            asked = first.backlog_asked,
            granted = first.backlog_granted,
            "the listen backlog is smaller than asked for, since net.core.somaxconn is its limit; \
             `sysctl -w net.core.somaxconn={}` raises it",
            first.backlog_asked
        );
    }
    // With port 0 the first socket's port is the listener's.
    let address = first.listener.local_addr()?;
    first_worker.push(first.listener);
    for worker in others {
        worker.push(os::listen::bind_more(address, listener.backlog)?.listener);
    }
    Ok(())
}

fn bind_admin(address: std::net::SocketAddr) -> Result<TcpListener, Box<dyn std::error::Error>> {
    admin::check_address(address)?;
    Ok(os::listen::bind(address, None, false)?.listener)
}

/// How many descriptors a balancer may come to hold at once.
fn files_wanted(snapshot: &Snapshot, workers: u64) -> u64 {
    let sum = |tcp: bool| -> u64 {
        snapshot
            .listeners
            .iter()
            .filter(|listener| matches!(listener.protocol, Protocol::Tcp(_)) == tcp)
            .map(|listener| u64::from(listener.connections_max))
            .sum()
    };
    let all = u64::from(snapshot.connections_max);
    let tunnels = sum(true).min(all);
    let exchanges = sum(false).min(all - tunnels);
    // A client and its server; a tunnel holds a pipe each way beside them.
    let connections = exchanges * 2 + tunnels * 6;
    let kept: u64 = snapshot
        .services
        .iter()
        .map(|service| u64::from(service.idle_connections_max) * service.servers.len() as u64)
        .sum();
    // A listening socket each, and what a runtime needs to wait and be woken.
    let workers_own = workers * (snapshot.listeners.len() as u64 + 8);
    connections + kept * workers + workers_own + RESERVE_FILES
}
