//! What is asked of the kernel before the first connection: descriptors and listening sockets; and
//! how the sockets change with the configuration.
//!
//! Whoever starts a balancer learns here, in one line each, what is missing. A descriptor of every
//! socket stays here as well as with the worker that accepts on it, so that a listener can take
//! over the socket of another one, and another process all of them. What the sockets are used for
//! is the proxy's.

use std::error::Error;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use model::{Admin, AdminAddress, Listener, Protocol, Snapshot};
use os::listen::ListenError;

/// Descriptors for what is neither a client nor a server: standard streams, logs, the admin API's
/// connections, name resolution, probes under way.
const RESERVE_FILES: u64 = 512;

/// Every listening socket of a balancer, and where the system granted less than was asked for.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    /// In order of configuration.
    groups: Vec<Group>,
    /// The admin API's address and socket, unless it is off.
    admin: Option<(AdminAddress, OwnedFd)>,
    shortfalls: Vec<Shortfall>,
}

/// The sockets on one address: one per worker, when they were made.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The listener's name.
    pub(crate) name: Arc<str>,
    /// The address as configured; its port may be 0.
    pub(crate) address: SocketAddr,
    /// Connections in tcp mode do not outlive a change to http, and the other way round.
    is_tcp: bool,
    backlog: Option<u32>,
    /// Their number never shrinks: with one, those in its queue would be lost.
    pub(crate) sockets: Arc<Vec<TcpListener>>,
}

/// Sockets that another process of this program has handed over.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    /// Listeners' sockets: name, address as configured, sockets.
    pub(crate) groups: Vec<(Arc<str>, SocketAddr, Vec<TcpListener>)>,
    /// The admin API's address as configured, and its socket.
    pub(crate) admin: Option<(String, OwnedFd)>,
}

/// What becomes of the sockets with the next configuration. Everything is bound already.
#[derive(Debug)]
pub(crate) struct Change {
    groups: Vec<Group>,
    /// Begin to accept on these.
    pub(crate) added: Vec<proxy::ListenerSockets>,
    /// End on these; one that moved is removed and added.
    pub(crate) removed: Vec<Arc<str>>,
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

/// How many workers a configuration asks for.
pub(crate) fn workers(snapshot: &Snapshot) -> usize {
    snapshot.workers.map_or_else(os::cpu::cores, |n| usize::from(n.get()))
}

/// Raises the limit of open files and binds everything that was not handed over, a socket of each
/// listener for each worker; or says of every address that cannot be bound why. Beside the sockets,
/// the way in to the admin API, unless it is off.
pub(crate) fn open(
    snapshot: &Snapshot,
    handed: Handed,
) -> Result<(Sockets, Option<admin::Door>), OpenError> {
    let workers = workers(snapshot);
    let mut errors = OpenError::default();
    let mut sockets = Sockets::default();
    // First, since the sockets themselves may be more than the limit that a shell sets.
    raise_open_files(files_wanted(snapshot, workers as u64), &mut sockets.shortfalls);
    let mut groups = handed.groups;
    for listener in &snapshot.listeners {
        let opened = match take_handed(listener, &mut groups) {
            Some(handed) => adopt(listener, handed, workers, &mut sockets.shortfalls),
            None => bind_group(listener, workers, &mut sockets.shortfalls),
        };
        match opened {
            Ok(group) => sockets.groups.push(group),
            Err(error) => errors.add(&whose(listener), listener.address, &*error),
        }
    }
    let mut door = None;
    if let Some(asked) = &snapshot.admin {
        match open_door(asked, handed.admin, owner(snapshot)) {
            Ok(opened) => door = Some(opened),
            Err(error) => {
                errors.lines.push(format!("admin: {error}"));
                if let AdminAddress::Tcp(address) = asked.address
                    && error.is_address_in_use()
                {
                    errors.in_use.push(address);
                }
            }
        }
    }
    if let (Some(door), Some(asked)) = (&door, &snapshot.admin) {
        match door.as_fd().try_clone_to_owned() {
            Ok(descriptor) => sockets.admin = Some((asked.address.clone(), descriptor)),
            Err(error) => errors.lines.push(format!("admin: {error}")),
        }
    }
    if errors.lines.is_empty() { Ok((sockets, door)) } else { Err(errors) }
}

impl Sockets {
    /// Listeners' sockets, as the proxy takes them.
    pub(crate) fn for_proxy(&self) -> io::Result<Vec<proxy::ListenerSockets>> {
        self.groups.iter().map(Group::for_proxy).collect()
    }

    /// Every listener's sockets.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The admin API's address as configured, and its socket.
    pub(crate) fn admin(&self) -> Option<&(AdminAddress, OwnedFd)> {
        self.admin.as_ref()
    }

    /// Binds what `next` needs and is not there, or says of every address why it cannot be bound.
    /// Nothing has changed yet, and nothing has if the result is dropped.
    pub(crate) fn prepare(&self, next: &Snapshot, workers: usize) -> Result<Change, OpenError> {
        let mut errors = OpenError::default();
        let mut change = Change {
            groups: Vec::with_capacity(next.listeners.len()),
            added: Vec::new(),
            removed: Vec::new(),
            shortfalls: Vec::new(),
        };
        raise_open_files(files_wanted(next, workers as u64), &mut change.shortfalls);
        for listener in &next.listeners {
            match self.group_for(listener, workers, &mut change.shortfalls) {
                Ok(group) => change.groups.push(group),
                Err(error) => errors.add(&whose(listener), listener.address, &*error),
            }
        }
        if !errors.lines.is_empty() {
            return Err(errors);
        }
        for group in &change.groups {
            if !self.groups.iter().any(|old| old.is_unchanged_in(group)) {
                let sockets = group.for_proxy();
                change.added.push(sockets.map_err(|error| OpenError {
                    lines: vec![format!("listener {:?}: {error}", group.name)],
                    in_use: Vec::new(),
                })?);
            }
        }
        let gone = |old: &&Group| !change.groups.iter().any(|new| old.is_unchanged_in(new));
        change.removed = self.groups.iter().filter(gone).map(|old| Arc::clone(&old.name)).collect();
        Ok(change)
    }

    /// Goes over to what was prepared. Yields what the proxy is to be told: what was added and what
    /// was removed. Our own descriptors of sockets that are gone are closed here, so that the
    /// workers' are the last ones: they empty the queues before they close them.
    pub(crate) fn adopt(&mut self, change: Change) -> (Vec<proxy::ListenerSockets>, Vec<Arc<str>>) {
        let Change { groups, added, removed, shortfalls } = change;
        for group in &groups {
            let before = self.groups.iter().find(|old| old.name == group.name);
            if before.is_some_and(|before| before.backlog != group.backlog) {
                group.set_backlog();
            }
        }
        self.groups = groups;
        self.shortfalls = shortfalls;
        (added, removed)
    }

    /// Closes our own descriptors; the workers' are the last ones then.
    pub(crate) fn close(&mut self) {
        self.groups.clear();
        self.admin = None;
    }

    /// The sockets that a listener has in the next configuration: its own, those of a listener
    /// that had its address before, or new ones.
    fn group_for(
        &self,
        listener: &Listener,
        workers: usize,
        shortfalls: &mut Vec<Shortfall>,
    ) -> Result<Group, Box<dyn Error>> {
        let there = |group: &&Group| group.address == listener.address;
        let same_name = |group: &&Group| group.name == listener.name;
        let mut groups = self.groups.iter().filter(there);
        let taken = match groups.clone().find(same_name) {
            Some(own) => Some(own),
            // Port 0 is not an address yet.
            None if listener.address.port() == 0 => None,
            None => groups.next(),
        };
        if let Some(taken) = taken {
            let sockets = Arc::clone(&taken.sockets);
            return Ok(Group::of(listener, sockets));
        }
        bind_group(listener, workers, shortfalls).map_err(|error| match self.in_the_way(listener) {
            Some(own) => format!(
                "cannot listen on {}: this balancer itself listens on {} (listener {:?}), which \
                 includes it, until the next configuration is in force; remove that listener \
                 first, and add this one after it",
                listener.address, own.address, own.name
            )
            .into(),
            None => error,
        })
    }

    /// One of our own addresses that overlaps with a new one.
    fn in_the_way(&self, listener: &Listener) -> Option<&Group> {
        let wanted = listener.address;
        self.groups.iter().find(|group| {
            let any = group.address.ip().is_unspecified() || wanted.ip().is_unspecified();
            group.address.port() == wanted.port() && (any || group.address.ip() == wanted.ip())
        })
    }

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

impl Group {
    fn of(listener: &Listener, sockets: Arc<Vec<TcpListener>>) -> Group {
        Group {
            name: Arc::clone(&listener.name),
            address: listener.address,
            is_tcp: matches!(listener.protocol, Protocol::Tcp(_)),
            backlog: listener.backlog,
            sockets,
        }
    }

    /// Whether whoever accepts on this group need not notice that `next` stands in its place.
    fn is_unchanged_in(&self, next: &Group) -> bool {
        self.name == next.name
            && self.is_tcp == next.is_tcp
            && Arc::ptr_eq(&self.sockets, &next.sockets)
    }

    fn for_proxy(&self) -> io::Result<proxy::ListenerSockets> {
        let sockets = self.sockets.iter().map(TcpListener::try_clone).collect::<Result<_, _>>()?;
        Ok(proxy::ListenerSockets { name: Arc::clone(&self.name), sockets })
    }

    fn set_backlog(&self) {
        for socket in &*self.sockets {
            match os::listen::set_backlog(socket, self.backlog) {
                Ok((asked, granted)) if granted < asked => {
                    tracing::warn!(
                        listener = %self.name,
                        asked,
                        granted,
                        "the listen backlog is smaller than asked for"
                    );
                    return;
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(listener = %self.name, %error, "the listen backlog stays");
                    return;
                }
            }
        }
    }
}

fn whose(listener: &Listener) -> String {
    format!("listener {:?}", listener.name)
}

/// Takes a listener's sockets out of those that were handed over: by address, and where port 0
/// leaves that open, by name.
fn take_handed(
    listener: &Listener,
    groups: &mut Vec<(Arc<str>, SocketAddr, Vec<TcpListener>)>,
) -> Option<Vec<TcpListener>> {
    let found = groups.iter().position(|(name, address, _)| {
        *address == listener.address && (address.port() != 0 || *name == listener.name)
    })?;
    let (_, _, sockets) = groups.swap_remove(found);
    (!sockets.is_empty()).then_some(sockets)
}

/// Makes sockets that were handed over ours: all of them, even if there are fewer workers now. If
/// there are more, further sockets are added where the system lets us; a worker without one gets
/// its connections from the others.
fn adopt(
    listener: &Listener,
    mut sockets: Vec<TcpListener>,
    workers: usize,
    shortfalls: &mut Vec<Shortfall>,
) -> Result<Group, Box<dyn Error>> {
    let address = sockets[0].local_addr()?;
    let (mut asked, mut granted) = (0, 0);
    for socket in &sockets {
        socket.set_nonblocking(true)?;
        (asked, granted) = os::listen::set_backlog(socket, listener.backlog)?;
    }
    if granted < asked {
        let listener = Arc::clone(&listener.name);
        shortfalls.push(Shortfall::Backlog { listener, asked, granted });
    }
    while sockets.len() < workers {
        match os::listen::bind_more(address, listener.backlog) {
            Ok(more) => sockets.push(more.listener),
            // Only who bound the first may add to them, and a low port needs a privilege.
            Err(error) => {
                tracing::debug!(listener = %listener.name, %error, "no socket for every worker");
                break;
            }
        }
    }
    Ok(Group::of(listener, Arc::new(sockets)))
}

/// One socket per worker, all on the listener's address.
fn bind_group(
    listener: &Listener,
    workers: usize,
    shortfalls: &mut Vec<Shortfall>,
) -> Result<Group, Box<dyn Error>> {
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
    let mut sockets = vec![first.listener];
    for _ in 1..workers {
        sockets.push(os::listen::bind_more(address, listener.backlog)?.listener);
    }
    Ok(Group::of(listener, Arc::new(sockets)))
}

/// Opens the admin API's door: on the socket that was handed over, if it is the one asked for.
fn open_door(
    asked: &Admin,
    handed: Option<(String, OwnedFd)>,
    owner: Option<(u32, u32)>,
) -> Result<admin::Door, admin::OpenError> {
    match handed {
        Some((address, socket)) if address == asked.address.to_string() => {
            let token = match &asked.token_file {
                Some(path) => Some(admin::Token::read(path).map_err(admin::OpenError::Token)?),
                None => None,
            };
            match &asked.address {
                AdminAddress::Tcp(_) => {
                    let listener = admin::Listener::Tcp(TcpListener::from(socket));
                    Ok(admin::Door::of(listener, token))
                }
                AdminAddress::Unix(path) => match admin::UnixSocket::adopt(socket, path) {
                    Ok(socket) => Ok(admin::Door::of(admin::Listener::Unix(socket), token)),
                    // Its file is gone: nobody could reach it.
                    Err(_) => admin::Door::open(asked, owner),
                },
            }
        }
        _ => admin::Door::open(asked, owner),
    }
}

fn raise_open_files(wanted: u64, shortfalls: &mut Vec<Shortfall>) {
    // Refused altogether: then what there is counts.
    let (granted, hard) = os::limits::raise_nofile(wanted).unwrap_or_else(|_| os::limits::nofile());
    if granted < wanted {
        shortfalls.push(Shortfall::Files { wanted, granted, hard });
    }
}

/// Whose the admin API's Unix socket shall be: whom the balancer becomes. Who that is, is said with
/// what is wrong about it when it becomes so.
fn owner(snapshot: &Snapshot) -> Option<(u32, u32)> {
    let (user, group) = snapshot.run_as.as_ref()?;
    os::privileges::ids(user, group.as_deref()).ok()
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
    // A listening socket each, here and with the worker, and what a runtime needs to wait and be
    // woken.
    let workers_own = workers * (snapshot.listeners.len() as u64 * 2 + 8);
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

    fn ports(group: &Group) -> Vec<u16> {
        group.sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect()
    }

    /// Listeners on free ports, by name.
    fn opened(names: &[&str]) -> (Sockets, Snapshot) {
        let mut snapshot = snapshot(address(1), address(2));
        snapshot.admin = None;
        snapshot.workers = NonZeroU16::new(2);
        let first = snapshot.listeners.remove(0);
        for &name in names {
            // Found free, and free again: nobody else takes them in the meantime but by chance.
            let (free, address) = taken();
            drop(free);
            snapshot.listeners.push(Listener { name: name.into(), address, ..first.clone() });
        }
        let (sockets, _) = open(&snapshot, Handed::default()).unwrap();
        (sockets, snapshot)
    }

    fn names(change: &Change) -> (Vec<&str>, Vec<&str>) {
        let added = change.added.iter().map(|added| &*added.name).collect();
        (added, change.removed.iter().map(|removed| &**removed).collect())
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
        let admin_address = AdminAddress::Tcp(address(0));
        snapshot.admin = Some(Admin { address: admin_address, token_file: None });
        snapshot.workers = NonZeroU16::new(3);
        let (sockets, door) = open(&snapshot, Handed::default()).unwrap();
        let ports = ports(&sockets.groups[0]);
        assert_eq!(ports, [ports[0]; 3]);
        assert!(sockets.admin().is_some() && door.is_some());
        assert_eq!(sockets.for_proxy().unwrap()[0].sockets.len(), 3);
        let small = sockets.shortfalls.iter().find_map(|shortfall| match shortfall {
            Shortfall::Backlog { asked, granted, .. } => Some((*asked, *granted)),
            Shortfall::Files { .. } => None,
        });
        assert_eq!(small, Some((4_000_000, os::listen::somaxconn())));
    }

    #[test]
    fn every_address_that_is_taken_is_told() {
        let ((_held, public), (_held_too, admin)) = (taken(), taken());
        let OpenError { lines, in_use } =
            open(&snapshot(public, admin), Handed::default()).unwrap_err();
        assert_eq!(in_use, [public, admin]);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("listener \"public\": cannot listen on"), "{lines:?}");
        assert!(lines[1].starts_with("admin: cannot listen on"), "{lines:?}");
        assert!(lines.iter().all(|line| line.lines().count() == 1));
    }

    #[test]
    fn what_is_unchanged_keeps_its_sockets_and_the_rest_is_told() {
        let (mut sockets, mut next) = opened(&["one", "two", "three"]);
        let before: Vec<_> = sockets.groups().iter().map(ports).collect();
        // Settings that the next request reads; another order.
        next.listeners[0].connections_max = 7;
        next.listeners[0].backlog = Some(9);
        next.listeners.reverse();
        let change = sockets.prepare(&next, 2).unwrap();
        assert_eq!(names(&change), (vec![], vec![]));
        sockets.adopt(change);
        let after: Vec<_> = sockets.groups().iter().rev().map(ports).collect();
        assert_eq!(before, after);

        // One goes, one comes, one becomes tcp.
        let (free, new_address) = taken();
        drop(free);
        next.listeners[0] =
            Listener { name: "four".into(), address: new_address, ..next.listeners[0].clone() };
        next.listeners[1].protocol = Protocol::Tcp(model::ServiceId(0));
        let change = sockets.prepare(&next, 2).unwrap();
        assert_eq!(names(&change), (vec!["four", "two"], vec!["three", "two"]));
        assert_eq!(change.added[0].sockets.len(), 2);
        let gone = sockets.groups()[0].address;
        sockets.adopt(change);
        assert!(std::net::TcpStream::connect(gone).is_err(), "the last descriptor is closed");
    }

    #[test]
    fn listeners_exchange_addresses_without_closing_a_socket() {
        let (mut sockets, mut next) = opened(&["one", "two"]);
        let (one, two) = (next.listeners[0].address, next.listeners[1].address);
        let clients: Vec<_> =
            [one, two].map(|at| std::net::TcpStream::connect(at).unwrap()).into_iter().collect();
        (next.listeners[0].address, next.listeners[1].address) = (two, one);
        let change = sockets.prepare(&next, 2).unwrap();
        assert_eq!(names(&change), (vec!["one", "two"], vec!["one", "two"]));
        let (added, _) = sockets.adopt(change);
        // Those who came before are still in the queues.
        let in_queue = |added: &proxy::ListenerSockets| {
            added.sockets.iter().filter(|socket| os::accept::accept(socket).is_ok()).count()
        };
        assert_eq!(added.iter().map(in_queue).collect::<Vec<_>>(), [1, 1]);
        drop(clients);
    }

    #[test]
    fn what_cannot_be_bound_changes_nothing_and_says_when_we_are_in_the_way_ourselves() {
        let (sockets, mut next) = opened(&["one"]);
        let ((_held, elsewhere), mine) = (taken(), next.listeners[0].address);
        let second =
            Listener { name: "second".into(), address: elsewhere, ..next.listeners[0].clone() };
        next.listeners[0].address.set_ip([0, 0, 0, 0].into());
        next.listeners.push(second);
        let OpenError { lines, .. } = sockets.prepare(&next, 2).unwrap_err();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].contains("this balancer itself") && lines[0].contains("\"one\""),
            "{lines:?}"
        );
        assert!(lines[1].contains("another program"), "{lines:?}");
        assert!(std::net::TcpStream::connect(mine).is_ok());
    }

    #[test]
    fn sockets_that_were_handed_over_are_all_kept() {
        let (sockets, mut next) = opened(&["one", "gone"]);
        let handed = |sockets: &Sockets| {
            let groups = sockets.groups().iter().map(|group| {
                let copies = group.sockets.iter().map(|socket| socket.try_clone().unwrap());
                (Arc::clone(&group.name), group.address, copies.collect())
            });
            Handed { groups: groups.collect(), admin: None }
        };
        // Fewer workers, another name.
        next.workers = NonZeroU16::new(1);
        next.listeners.truncate(1);
        next.listeners[0].name = "other".into();
        let (fewer, _) = open(&next, handed(&sockets)).unwrap();
        assert_eq!(ports(&fewer.groups()[0]), ports(&sockets.groups()[0]));
        // More workers.
        next.workers = NonZeroU16::new(5);
        let (more, _) = open(&next, handed(&sockets)).unwrap();
        assert_eq!(ports(&more.groups()[0]), [next.listeners[0].address.port(); 5]);
    }

    #[test]
    fn tunnels_need_more_files_than_exchanges() {
        let mut snapshot = snapshot(address(1), address(2));
        snapshot.services[0].idle_connections_max = 0;
        let http = files_wanted(&snapshot, 1);
        snapshot.listeners[0].protocol = Protocol::Tcp(model::ServiceId(0));
        assert_eq!(files_wanted(&snapshot, 1) - http, 4 * 1000);
        snapshot.services[0].idle_connections_max = 10;
        assert_eq!(files_wanted(&snapshot, 2) - files_wanted(&snapshot, 1), 10 + 10);
    }
}
