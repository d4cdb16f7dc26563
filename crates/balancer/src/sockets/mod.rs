//! The descriptors and listening sockets that a balancer opens before it serves, and how they
//! follow the configuration.
//!
//! Startup errors are reported here, one line each. A descriptor of every socket is kept here as
//! well as by the worker that accepts on it, so that a listener can take over another one's socket,
//! and another process all of them. The proxy uses the sockets.

mod activated;
mod group;
mod shortfall;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use model::{Address, Admin, Listener, Snapshot};
use os::listen::ListenError;
use os::unix_socket::{NewFile, SocketFile, UnixError, UnixSocket};

pub(crate) use activated::activated;
pub(crate) use group::Group;

use group::Opening;
use shortfall::{Shortfall, files_wanted, raise_open_files};

/// Every listening socket of a balancer, and the limits that the system granted only in part.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    /// In order of configuration.
    groups: Vec<Group>,
    /// The admin API's address and socket, unless it is off.
    admin: Option<(Address, OwnedFd)>,
    /// The address for metrics and its socket, if there is one.
    metrics: Option<(SocketAddr, OwnedFd)>,
    /// The address for KEDA and its socket, if there is one.
    keda: Option<(SocketAddr, OwnedFd)>,
    /// The address on which the fleet's other members are heard and its socket, if there is a fleet.
    fleet: Option<(SocketAddr, UdpSocket)>,
    /// Files of Unix sockets that do not have their names yet.
    new_files: Vec<NewFile>,
    /// The user and group that this process switches to, which own the files.
    owner: Option<(u32, u32)>,
    shortfalls: Vec<Shortfall>,
    /// Shortfalls that have been logged.
    said: Vec<Shortfall>,
}

/// Sockets handed over by another process of this program.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    /// Listeners' sockets.
    pub(crate) groups: Vec<HandedGroup>,
    /// The admin API's address as configured, and its socket.
    pub(crate) admin: Option<(String, OwnedFd)>,
    /// The address for metrics as configured, and its socket.
    pub(crate) metrics: Option<(SocketAddr, TcpListener)>,
    /// The address for KEDA as configured, and its socket.
    pub(crate) keda: Option<(SocketAddr, TcpListener)>,
    /// The address for the fleet as configured, and its socket.
    pub(crate) fleet: Option<(SocketAddr, UdpSocket)>,
}

/// The sockets of one listener.
#[derive(Debug)]
pub(crate) struct HandedGroup {
    pub(crate) name: Arc<str>,
    /// As configured.
    pub(crate) address: Address,
    pub(crate) sockets: Vec<TcpListener>,
    /// Device and inode of a Unix socket's file.
    pub(crate) file: Option<(u64, u64)>,
}

/// What the admin API, metrics and the listeners for autoscalers listen on.
#[derive(Debug, Default)]
pub(crate) struct Doors {
    pub(crate) admin: Option<admin::Door>,
    pub(crate) metrics: Option<admin::scrape::Door>,
    pub(crate) keda: Option<admin::keda::Door>,
    pub(crate) external_metrics: Option<admin::external_metrics::Door>,
}

/// The change of the sockets with the next configuration. Everything is already bound.
#[derive(Debug)]
pub(crate) struct Change {
    groups: Vec<Group>,
    /// Sockets to start accepting on.
    pub(crate) added: Vec<proxy::ListenerSockets>,
    /// Sockets to stop accepting on; one that moved is removed and added.
    pub(crate) removed: Vec<proxy::RemovedListener>,
    opening: Opening,
}

/// The addresses that cannot be bound.
#[derive(Debug, Default)]
pub struct OpenError {
    /// One line per address: what, why, and the remedy.
    pub lines: Vec<String>,
    /// The lines for listeners, by their names.
    pub listeners: BTreeMap<Arc<str>, String>,
    /// The IP addresses on which another process listens.
    pub in_use: Vec<SocketAddr>,
}

impl OpenError {
    fn add(&mut self, listener: &Listener, error: &(dyn Error + 'static)) {
        let line = format!("{}: {error}", label(&listener.name));
        self.lines.push(line.clone());
        self.listeners.insert(Arc::clone(&listener.name), line);
        if error.downcast_ref().is_some_and(ListenError::is_address_in_use) {
            self.in_use.extend(listener.address.ip());
        }
    }
}

impl OpenError {
    /// Takes what came of opening a listener for metrics or autoscalers, and keeps its socket.
    fn side<D: AsFd>(
        &mut self,
        what: &str,
        (address, kept): (SocketAddr, &mut Option<(SocketAddr, OwnedFd)>),
        opened: Result<D, admin::scrape::OpenError>,
    ) -> Option<D> {
        let door = opened.map_err(|error| {
            self.lines.push(format!("{what}: {error}"));
            self.in_use.extend(error.is_address_in_use().then_some(address));
        });
        let door = door.ok()?;
        match door.as_fd().try_clone_to_owned() {
            Ok(descriptor) => *kept = Some((address, descriptor)),
            Err(error) => self.lines.push(format!("{what}: {error}")),
        }
        Some(door)
    }
}

/// Returns how many workers a configuration requests.
pub(crate) fn workers(snapshot: &Snapshot) -> usize {
    snapshot.workers.map_or_else(os::cpu::cores, |n| usize::from(n.get()))
}

/// Raises the limit of open files and binds everything that was not handed over, one socket per
/// listener and worker, the admin API's listener unless it is off, that for metrics, and the fleet's
/// socket. New Unix
/// sockets of listeners do not have their names yet ([`Sockets::publish_files`]). Fails with every address
/// that cannot be bound, and why.
pub(crate) fn open(snapshot: &Snapshot, handed: Handed) -> Result<(Sockets, Doors), OpenError> {
    let workers = workers(snapshot);
    let mut errors = OpenError::default();
    let mut sockets = Sockets::default();
    let owner = owner(snapshot);
    let mut opening = Opening::new(workers, owner);
    // First, since the sockets alone may exceed the limit that a shell sets.
    raise_open_files(files_wanted(snapshot, workers as u64), &mut opening.shortfalls);
    let mut groups = handed.groups;
    for listener in &snapshot.listeners {
        let opened = match take_handed(listener, &mut groups) {
            Some(handed) => Group::adopt(listener, handed, &mut opening),
            None => Group::bind(listener, None, &mut opening),
        };
        match opened {
            Ok(group) => sockets.groups.push(group),
            Err(error) => errors.add(listener, &*error),
        }
    }
    let mut doors = Doors::default();
    if let Some(asked) = &snapshot.admin {
        match open_door(asked, handed.admin, owner) {
            Ok(opened) => doors.admin = Some(opened),
            Err(error) => {
                errors.lines.push(format!("admin: {error}"));
                if let Address::Ip(address) = asked.address
                    && error.is_address_in_use()
                {
                    errors.in_use.push(address);
                }
            }
        }
    }
    if let (Some(door), Some(asked)) = (&doors.admin, &snapshot.admin) {
        match door.as_fd().try_clone_to_owned() {
            Ok(descriptor) => sockets.admin = Some((asked.address, descriptor)),
            Err(error) => errors.lines.push(format!("admin: {error}")),
        }
    }
    if let Some(asked) = &snapshot.metrics.listener {
        let handed = handed.metrics.filter(|(address, _)| *address == asked.address);
        let opened = admin::scrape::Door::open(asked, handed.map(|(_, listener)| listener));
        let side = (asked.address, &mut sockets.metrics);
        doors.metrics = errors.side("metrics", side, opened);
    }
    if let Some(asked) = &snapshot.keda {
        let handed = handed.keda.filter(|(address, _)| *address == asked.address);
        let opened = admin::keda::Door::open(asked, handed.map(|(_, listener)| listener));
        doors.keda = errors.side("keda", (asked.address, &mut sockets.keda), opened);
    }
    if let Some(asked) = &snapshot.external_metrics {
        let opened = admin::external_metrics::Door::open(asked);
        // With Kubernetes, there is no upgrade to hand it over in.
        doors.external_metrics =
            errors.side("external_metrics", (asked.address, &mut None), opened);
    }
    if let Some(fleet) = &snapshot.fleet {
        let handed = handed.fleet.filter(|(address, _)| *address == fleet.address);
        match handed.map_or_else(|| UdpSocket::bind(fleet.address), |(_, socket)| Ok(socket)) {
            Ok(socket) => sockets.fleet = Some((fleet.address, socket)),
            Err(error) => {
                errors
                    .lines
                    .push(format!("fleet: cannot listen on {} (UDP): {error}", fleet.address));
            }
        }
    }
    sockets.new_files = opening.new_files;
    sockets.shortfalls = opening.shortfalls;
    sockets.owner = owner;
    if errors.lines.is_empty() { Ok((sockets, doors)) } else { Err(errors) }
}

impl Sockets {
    /// Returns the listeners' sockets for so many workers, and adds sockets to groups that were handed over with
    /// fewer. Must be called last, when nothing can fail any more: sockets that join such a group and are closed again
    /// lose the connections in their queues.
    pub(crate) fn for_proxy(
        &mut self,
        workers: usize,
    ) -> Result<Vec<proxy::ListenerSockets>, Vec<String>> {
        for group in &mut self.groups {
            group.grow(workers);
        }
        let sockets: io::Result<_> = self.groups.iter().map(Group::for_proxy).collect();
        sockets.map_err(|error| vec![format!("listeners: {error}")])
    }

    /// Returns every listener's sockets.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Returns the admin API's address as configured, and its socket.
    pub(crate) fn admin(&self) -> Option<&(Address, OwnedFd)> {
        self.admin.as_ref()
    }

    /// Returns the address for metrics as configured, and its socket.
    pub(crate) fn metrics(&self) -> Option<&(SocketAddr, OwnedFd)> {
        self.metrics.as_ref()
    }

    /// Returns the address for KEDA as configured, and its socket.
    pub(crate) fn keda(&self) -> Option<&(SocketAddr, OwnedFd)> {
        self.keda.as_ref()
    }

    /// Returns another descriptor of the fleet's socket, for the control thread.
    pub(crate) fn copy_of_fleet(&self) -> io::Result<Option<(SocketAddr, UdpSocket)>> {
        let copy =
            |(address, socket): &(SocketAddr, UdpSocket)| Ok((*address, socket.try_clone()?));
        self.fleet.as_ref().map(copy).transpose()
    }

    /// Returns the address for the fleet as configured, and its socket.
    pub(crate) fn fleet(&self) -> Option<&(SocketAddr, UdpSocket)> {
        self.fleet.as_ref()
    }

    /// Binds what `next` needs in addition, or returns why each address cannot be bound. Nothing
    /// has changed yet; dropping the result changes nothing.
    pub(crate) fn prepare(&self, next: &Snapshot, workers: usize) -> Result<Change, OpenError> {
        let mut errors = OpenError::default();
        let mut change = Change {
            groups: Vec::with_capacity(next.listeners.len()),
            added: Vec::new(),
            removed: Vec::new(),
            opening: Opening::new(workers, self.owner),
        };
        raise_open_files(files_wanted(next, workers as u64), &mut change.opening.shortfalls);
        for listener in &next.listeners {
            match self.group_for(listener, &mut change.opening) {
                Ok(group) => change.groups.push(group),
                Err(error) => errors.add(listener, &*error),
            }
        }
        if !errors.lines.is_empty() {
            return Err(errors);
        }
        for group in &change.groups {
            if !self.groups.iter().any(|old| old.is_unchanged_in(group)) {
                let sockets = group.for_proxy();
                change.added.push(sockets.map_err(|error| OpenError {
                    lines: vec![format!("{}: {error}", label(&group.name))],
                    ..OpenError::default()
                })?);
            }
        }
        let gone = |old: &&Group| !change.groups.iter().any(|new| old.is_unchanged_in(new));
        let removed = |old: &Group| {
            let next = || change.groups.iter().filter(|new| old.is_replaced_by(new));
            proxy::RemovedListener {
                name: Arc::clone(&old.name),
                next: next().map(|new| Arc::clone(&new.name)).collect(),
                security_changed: next().any(|new| !old.has_security_of(new)),
            }
        };
        change.removed = self.groups.iter().filter(gone).map(removed).collect();
        Ok(change)
    }

    /// Adopts what was prepared. Returns the changes for the proxy: what was added and what was
    /// removed. Our own descriptors of removed sockets are closed here, so that the workers' are
    /// the last ones: workers empty the queues before they close them.
    pub(crate) fn adopt(
        &mut self,
        change: Change,
    ) -> (Vec<proxy::ListenerSockets>, Vec<proxy::RemovedListener>) {
        let Change { groups, added, removed, opening } = change;
        let Opening { shortfalls, new_files, access_changes, .. } = opening;
        for (file, access) in access_changes {
            // Rare, since a new file could have this access.
            if let Err(error) = file.change(access) {
                tracing::error!(path = %file.path(), %error, "the socket's permissions stay");
            }
        }
        self.new_files = new_files;
        self.publish_files_or_log();
        for group in &groups {
            let before = self.groups.iter().find(|old| old.name == group.name);
            if before.is_some_and(|before| before.backlog != group.backlog) {
                group.set_backlog();
            }
        }
        let is_kept = |file: &SocketFile| groups.iter().any(|new| new.file == Some(*file));
        let gone = self.groups.iter().filter_map(|old| old.file).filter(|file| !is_kept(file));
        gone.for_each(|file| log_if_it_stays(file, file.remove()));
        self.groups = groups;
        self.shortfalls = shortfalls;
        (added, removed)
    }

    /// Gives new Unix sockets their names, from which on clients connect to them. Returns why it is
    /// impossible, for each.
    pub(crate) fn publish_files(&mut self) -> Vec<UnixError> {
        self.new_files.drain(..).filter_map(|file| file.publish().err()).collect()
    }

    /// As [`Sockets::publish_files`], when it is too late to give up: logs what is impossible. Rare, since
    /// the directory has just taken the file.
    pub(crate) fn publish_files_or_log(&mut self) {
        for error in self.publish_files() {
            tracing::error!(%error, "no client can connect to this listener");
        }
    }

    /// Returns the files of Unix sockets.
    pub(crate) fn files(&self) -> Vec<SocketFile> {
        self.groups.iter().filter_map(|group| group.file).collect()
    }

    /// Closes our own descriptors; the workers' are the last ones then. Returns the files of Unix sockets,
    /// to be removed once those are closed, too.
    pub(crate) fn close(&mut self) -> Vec<SocketFile> {
        let files = self.files();
        self.groups.clear();
        self.admin = None;
        self.metrics = None;
        self.keda = None;
        self.fleet = None;
        files
    }

    /// Returns the sockets that a listener has in the next configuration: its own, those of a
    /// listener that had its address before, or new ones, as if the file of a Unix socket is gone.
    fn group_for(
        &self,
        listener: &Listener,
        opening: &mut Opening,
    ) -> Result<Group, Box<dyn Error>> {
        let there = |group: &&Group| group.address == listener.address;
        let same_name = |group: &&Group| group.name == listener.name;
        let mut groups = self.groups.iter().filter(there);
        let taken = match groups.clone().find(same_name) {
            Some(own) => Some(own),
            // Port 0 is not an address yet.
            None if listener.address.is_any_port() => None,
            None => groups.next(),
        };
        if let Some(taken) = taken.filter(|taken| taken.is_reachable()) {
            taken.change_access(listener, opening)?;
            return Ok(Group::of(listener, Arc::clone(&taken.sockets), taken.file));
        }
        Group::bind(listener, None, opening).map_err(|error| match self.overlapping(listener) {
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

    /// Returns one of our own groups whose address overlaps with a new one.
    fn overlapping(&self, listener: &Listener) -> Option<&Group> {
        let wanted = listener.address.ip()?;
        self.groups.iter().find(|group| {
            group.address.ip().is_some_and(|own| {
                let any = own.ip().is_unspecified() || wanted.ip().is_unspecified();
                own.port() == wanted.port() && (any || own.ip() == wanted.ip())
            })
        })
    }

    /// Logs limits that were granted only in part, unless already logged.
    pub(crate) fn log_shortfalls(&mut self) {
        let shortfalls = std::mem::take(&mut self.shortfalls);
        for shortfall in &shortfalls {
            if !self.said.iter().any(|said| shortfall.is_known_from(said)) {
                shortfall.log();
            }
        }
        self.said = shortfalls;
    }
}

/// Returns what would keep a listener's Unix socket from being bound; what concerns IP addresses is known
/// only once they are bound.
pub(crate) fn obstacle(listener: &Listener) -> Option<String> {
    let Address::Unix(path) = listener.address else { return None };
    let error = match (UnixSocket::check(path), group::group_of(listener)) {
        (Err(error), _) => error.to_string(),
        (_, Err(error)) => error,
        (Ok(()), Ok(_)) => return None,
    };
    Some(format!("{}: {error}", label(&listener.name)))
}

/// Removes these files as far as no process listens on their sockets any more.
pub(crate) fn remove_unused(files: &[SocketFile]) {
    for file in files {
        log_if_it_stays(*file, file.remove_if_unused());
    }
}

fn log_if_it_stays(file: SocketFile, removed: io::Result<()>) {
    if let Err(error) = removed {
        // The next start replaces it.
        tracing::debug!(%error, path = %file.path(), "the socket's file stays");
    }
}

fn label(listener: &str) -> String {
    format!("listener {listener:?}")
}

/// Takes a listener's sockets out of those that were handed over: by address or, with port 0, by
/// name.
fn take_handed(listener: &Listener, groups: &mut Vec<HandedGroup>) -> Option<HandedGroup> {
    let found = groups.iter().position(|HandedGroup { name, address, .. }| {
        *address == listener.address && (!address.is_any_port() || *name == listener.name)
    })?;
    Some(groups.swap_remove(found)).filter(|group| !group.sockets.is_empty())
}

/// Opens the admin API's listener: on the socket that was handed over, if it matches.
fn open_door(
    asked: &Admin,
    handed: Option<(String, OwnedFd)>,
    owner: Option<(u32, u32)>,
) -> Result<admin::Door, admin::OpenError> {
    match handed {
        Some((address, socket)) if address == asked.address.to_string() => {
            admin::Door::adopt(socket, asked, owner)
        }
        _ => admin::Door::open(asked, owner),
    }
}

/// Returns the owner for the admin API's Unix socket and a new access log: the user that the
/// balancer switches to. Errors in the user are reported when it switches.
pub(crate) fn owner(snapshot: &Snapshot) -> Option<(u32, u32)> {
    let (user, group) = snapshot.run_as.as_ref()?;
    os::privileges::ids(user, group.as_deref()).ok()
}
