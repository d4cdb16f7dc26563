//! What is asked of the kernel before the first connection: descriptors and listening sockets.
//!
//! Whoever starts a balancer learns here, in one line each, what is missing. What the sockets are
//! used for is the proxy's.

use std::error::Error;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use model::{Listener, Protocol, Snapshot};
use os::listen::ListenError;

/// Descriptors for what is neither a client nor a server: standard streams, logs, the admin API's
/// connections, name resolution, probes under way.
const RESERVE_FILES: u64 = 512;

/// Every listening socket of a balancer, and where the system granted less than was asked for.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// One row per worker; in it one socket per listener, in order of configuration.
    pub(crate) clients: Vec<Vec<TcpListener>>,
    /// The admin API's, unless it is off.
    pub(crate) admin: Option<TcpListener>,
    shortfalls: Vec<Shortfall>,
}

/// Less was granted than asked for. It works, but not up to what the configuration promises.
#[derive(Debug)]
enum Shortfall {
    Backlog { listener: Arc<str>, asked: u32, granted: u32 },
    Files { wanted: u64, granted: u64, hard: u64 },
}

/// What cannot be bound.
#[derive(Debug, Default)]
pub(crate) struct OpenError {
    /// One line per address: what, why, how to mend it.
    pub(crate) lines: Vec<String>,
    /// Those of the addresses on which somebody else listens.
    pub(crate) in_use: Vec<SocketAddr>,
}

impl OpenError {
    fn add(&mut self, whose: &str, address: SocketAddr, error: &(dyn Error + 'static)) {
        self.lines.push(format!("{whose}: {error}"));
        if error.downcast_ref().is_some_and(ListenError::is_address_in_use) {
            self.in_use.push(address);
        }
    }
}

/// Raises the limit of open files and binds everything, a socket of each listener for each worker;
/// or says of every address that cannot be bound why.
pub(crate) fn open(snapshot: &Snapshot) -> Result<Sockets, OpenError> {
    let workers = snapshot.workers.map_or_else(os::cpu::cores, |n| usize::from(n.get()));
    let mut errors = OpenError::default();
    let mut shortfalls = Vec::new();
    // First, since the sockets themselves may be more than the limit that a shell sets.
    raise_open_files(files_wanted(snapshot, workers as u64), &mut shortfalls);
    let mut clients: Vec<Vec<TcpListener>> = (0..workers).map(|_| Vec::new()).collect();
    for listener in &snapshot.listeners {
        if let Err(error) = bind_listener(listener, &mut clients, &mut shortfalls) {
            errors.add(&format!("listener {:?}", listener.name), listener.address, &*error);
        }
    }
    let mut admin = None;
    if let Some(address) = snapshot.admin {
        match bind_admin(address) {
            Ok(listener) => admin = Some(listener),
            Err(error) => errors.add("admin", address, &*error),
        }
    }
    if errors.lines.is_empty() { Ok(Sockets { clients, admin, shortfalls }) } else { Err(errors) }
}

impl Sockets {
    /// Says where less was granted than asked for, with both numbers.
    pub(crate) fn say_shortfalls(&self) {
        for shortfall in &self.shortfalls {
            match shortfall {
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
    }
}

fn raise_open_files(wanted: u64, shortfalls: &mut Vec<Shortfall>) {
    // Refused altogether: then what there is counts.
    let (granted, hard) = os::limits::raise_nofile(wanted).unwrap_or_else(|_| os::limits::nofile());
    if granted < wanted {
        shortfalls.push(Shortfall::Files { wanted, granted, hard });
    }
}

/// One socket per worker, all on the listener's address.
fn bind_listener(
    listener: &Listener,
    workers: &mut [Vec<TcpListener>],
    shortfalls: &mut Vec<Shortfall>,
) -> Result<(), Box<dyn Error>> {
    let Some((first_worker, others)) = workers.split_first_mut() else {
        return Ok(());
    };
    let first = os::listen::bind(listener.address, listener.backlog, true)?;
    if first.backlog_granted < first.backlog_asked {
        shortfalls.push(Shortfall::Backlog {
            listener: Arc::clone(&listener.name),
            asked: first.backlog_asked,
            granted: first.backlog_granted,
        });
    }
    // With port 0 the first socket's port is the listener's.
    let address = first.listener.local_addr()?;
    first_worker.push(first.listener);
    for worker in others {
        worker.push(os::listen::bind_more(address, listener.backlog)?.listener);
    }
    Ok(())
}

fn bind_admin(address: SocketAddr) -> Result<TcpListener, Box<dyn Error>> {
    admin::check_address(address)?;
    Ok(os::listen::bind(address, None, false)?.listener)
}

/// How many descriptors a balancer may come to hold at once.
fn files_wanted(snapshot: &Snapshot, workers: u64) -> u64 {
    let sum = |tcp: bool| -> u64 {
        let listeners = snapshot.listeners.iter();
        listeners
            .filter(|listener| matches!(listener.protocol, Protocol::Tcp(_)) == tcp)
            .map(|listener| u64::from(listener.connections_max))
            .sum()
    };
    let all = u64::from(snapshot.connections_max);
    let tunnels = sum(true).min(all);
    let exchanges = sum(false).min(all - tunnels);
    // A client and its server; a tunnel holds a pipe each way beside them.
    let connections = exchanges * 2 + tunnels * 6;
    let services = snapshot.services.iter();
    let kept: u64 = services
        .map(|service| u64::from(service.idle_connections_max) * service.servers.len() as u64)
        .sum();
    // A listening socket each, and what a runtime needs to wait and be woken.
    let workers_own = workers * (snapshot.listeners.len() as u64 + 8);
    connections + kept * workers + workers_own + RESERVE_FILES
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use super::*;

    /// A configuration with an HTTP listener on `public` and the admin API on `admin`.
    fn snapshot(public: SocketAddr, admin: SocketAddr) -> Snapshot {
        let text = format!(
            "connections_max = 1000\n\
             admin = {{ address = \"{admin}\" }}\n\
             listener = [{{ name = \"public\", address = \"{public}\", backlog = 4000000 }}]\n\
             route = [{{ service = \"s\" }}]\n\
             service.s = {{ server = [{{ address = \"127.0.0.1:5999\" }}] }}\n"
        );
        match config::check(&text, "test.toml", &()) {
            Ok(checked) => checked.snapshot,
            Err(errors) => panic!("{}", config::render(&errors, &text, "test.toml", false)),
        }
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn taken() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind(address(0)).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn every_worker_has_a_socket_of_every_listener() {
        let mut snapshot = snapshot(address(1), address(2));
        snapshot.listeners[0].address.set_port(0);
        snapshot.admin = Some(address(0));
        snapshot.workers = NonZeroU16::new(3);
        let sockets = open(&snapshot).unwrap();
        let ports = sockets.clients.iter().flatten().map(|s| s.local_addr().unwrap().port());
        let ports: Vec<u16> = ports.collect();
        assert_eq!(ports, [ports[0]; 3]);
        assert_ne!(sockets.admin.as_ref().unwrap().local_addr().unwrap().port(), ports[0]);
        let small = sockets.shortfalls.iter().find_map(|shortfall| match shortfall {
            Shortfall::Backlog { asked, granted, .. } => Some((*asked, *granted)),
            Shortfall::Files { .. } => None,
        });
        assert_eq!(small, Some((4_000_000, os::listen::somaxconn())));
    }

    #[test]
    fn every_address_that_is_taken_is_told() {
        let ((_held, public), (_held_too, admin)) = (taken(), taken());
        let OpenError { lines, in_use } = open(&snapshot(public, admin)).unwrap_err();
        assert_eq!(in_use, [public, admin]);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("listener \"public\": cannot listen on"), "{lines:?}");
        assert!(lines[1].starts_with("admin: cannot listen on"), "{lines:?}");
        assert!(lines.iter().all(|line| line.lines().count() == 1));
    }

    #[test]
    fn tunnels_need_more_files_than_exchanges() {
        let mut snapshot = snapshot(address(1), address(2));
        snapshot.services[0].idle_connections_max = 0;
        let http = files_wanted(&snapshot, 1);
        snapshot.listeners[0].protocol = Protocol::Tcp(model::ServiceId(0));
        assert_eq!(files_wanted(&snapshot, 1) - http, 4 * 1000);
        snapshot.services[0].idle_connections_max = 10;
        assert_eq!(files_wanted(&snapshot, 2) - files_wanted(&snapshot, 1), 10 + 9);
    }
}
