//! The sockets of one address: bound, taken over, and passed to the proxy.

use std::error::Error;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use model::{Address, Listener};
use os::privileges::SwitchError;
use os::unix_socket::{Access, NewFile, NewSocket, SocketFile};

use super::HandedGroup;
use super::shortfall::Shortfall;

/// The opening of a configuration's sockets: what it needs besides the listeners, and what it has found.
#[derive(Debug)]
pub(super) struct Opening {
    workers: usize,
    /// The user and group that Weir switches to.
    owner: Option<(u32, u32)>,
    pub(super) shortfalls: Vec<Shortfall>,
    /// Files of new Unix sockets, to be published once everything is open.
    pub(super) new_files: Vec<NewFile>,
    /// Files of Unix sockets for which others will have access.
    pub(super) access_changes: Vec<(SocketFile, Access)>,
}

impl Opening {
    pub(super) fn new(workers: usize, owner: Option<(u32, u32)>) -> Opening {
        let (shortfalls, new_files, access_changes) = Default::default();
        Opening { workers, owner, shortfalls, new_files, access_changes }
    }

    /// Returns who may connect to a listener's Unix socket.
    fn access(&self, listener: &Listener) -> Result<Access, String> {
        Ok(Access {
            mode: listener.socket.mode,
            user: self.owner.map(|(user, _)| user),
            group: group_of(listener)?.or(self.owner.map(|(_, group)| group)),
        })
    }

    fn note_backlog(&mut self, listener: &Listener, (asked, granted): (u32, u32)) {
        if granted < asked {
            let listener = Arc::clone(&listener.name);
            self.shortfalls.push(Shortfall::Backlog { listener, asked, granted });
        }
    }
}

/// Returns the group that a listener names for its Unix socket.
pub(super) fn group_of(listener: &Listener) -> Result<Option<u32>, String> {
    let Some(name) = &listener.socket.group else { return Ok(None) };
    os::privileges::group_id(name).map(Some).map_err(|error| match error {
        SwitchError::UnknownGroup(_) => {
            format!("/etc/group has no group {name:?} for its socket")
        }
        other => other.to_string(),
    })
}

/// The sockets of one address: one per worker at the time they were created.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The listener's name.
    pub(crate) name: Arc<str>,
    /// The address as configured; its port may be 0.
    pub(crate) address: Address,
    /// That of a Unix socket, to be removed with it.
    pub(crate) file: Option<SocketFile>,
    /// As configured: its connections do not outlive a change of its security settings.
    settings: Listener,
    pub(super) backlog: Option<u32>,
    /// Never reduced: the connections in a closed socket's queue would be lost.
    pub(crate) sockets: Arc<Vec<TcpListener>>,
}

impl Group {
    /// Returns the group of a listener on these sockets.
    pub(super) fn of(
        listener: &Listener,
        sockets: Arc<Vec<TcpListener>>,
        file: Option<SocketFile>,
    ) -> Group {
        Group {
            name: Arc::clone(&listener.name),
            address: listener.address,
            file,
            settings: listener.clone(),
            backlog: listener.backlog,
            sockets,
        }
    }

    /// Returns whether the proxy keeps accepting on this group when `next` replaces it: same name,
    /// same sockets, same security settings.
    pub(super) fn is_unchanged_in(&self, next: &Group) -> bool {
        self.name == next.name
            && Arc::ptr_eq(&self.sockets, &next.sockets)
            && self.has_security_of(next)
    }

    /// Returns whether `next` replaces this listener: it has its name, or accepts on its sockets.
    /// Either is enough, so that neither a new name nor a new address lets connections outlive a
    /// change of the security settings.
    pub(super) fn is_replaced_by(&self, next: &Group) -> bool {
        self.name == next.name || Arc::ptr_eq(&self.sockets, &next.sockets)
    }

    /// Returns whether clients can connect to its sockets: a Unix socket still has its file.
    pub(crate) fn is_reachable(&self) -> bool {
        self.file.is_none_or(SocketFile::exists)
    }

    /// Notes the change of who may connect, if its Unix socket becomes that of `next`.
    ///
    /// # Errors
    /// Its file cannot be given to the new group: a new socket could not.
    pub(super) fn change_access(
        &self,
        next: &Listener,
        opening: &mut Opening,
    ) -> Result<(), Box<dyn Error>> {
        let (Some(file), Address::Unix(path)) = (self.file, next.address) else { return Ok(()) };
        if self.settings.socket != next.socket {
            let access = opening.access(next)?;
            drop(NewSocket::bind(path, access, 1, Some(file))?);
            opening.access_changes.push((file, access));
        }
        Ok(())
    }

    /// Returns whether the security settings are those of `next`.
    pub(super) fn has_security_of(&self, next: &Group) -> bool {
        self.settings.has_security_of(&next.settings)
    }

    pub(super) fn for_proxy(&self) -> io::Result<proxy::ListenerSockets> {
        let sockets = self.sockets.iter().map(TcpListener::try_clone).collect::<Result<_, _>>()?;
        Ok(proxy::ListenerSockets { name: Arc::clone(&self.name), sockets })
    }

    pub(super) fn set_backlog(&self) {
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
                    tracing::warn!(listener = %self.name, %error, "cannot change the listen backlog; the old one stays in force");
                    return;
                }
            }
        }
    }

    /// Adopts sockets that were handed over: all of them, even if there are fewer workers now. Those of
    /// a Unix socket whose file is gone, or has other permissions than are asked for now, are replaced.
    pub(super) fn adopt(
        listener: &Listener,
        handed: HandedGroup,
        opening: &mut Opening,
    ) -> Result<Group, Box<dyn Error>> {
        let HandedGroup { sockets, file, .. } = handed;
        let file = match listener.address {
            Address::Ip(_) => None,
            Address::Unix(path) => {
                let file = file.map(|numbers| SocketFile::of(path, numbers));
                let access = opening.access(listener)?;
                if !file.is_some_and(|file| file.has(access)) {
                    return Group::bind(listener, file, opening);
                }
                file
            }
        };
        let mut backlog = (0, 0);
        for socket in &sockets {
            socket.set_nonblocking(true)?;
            backlog = os::listen::set_backlog(socket, listener.backlog)?;
        }
        opening.note_backlog(listener, backlog);
        Ok(Group::of(listener, Arc::new(sockets), file))
    }

    /// Adds sockets until there is one for each of `workers`, as far as the system permits: only
    /// the user that bound the first may add one, and a low port needs a privilege. A worker
    /// without a socket gets its connections from the others.
    pub(super) fn grow(&mut self, workers: usize) {
        let Some(first) = self.sockets.first() else { return };
        let more: Result<Vec<_>, Box<dyn Error>> = (self.sockets.len()..workers)
            .map(|_| another(first, self.address, self.backlog))
            .collect();
        match more {
            Ok(more) if more.is_empty() => {}
            Ok(more) => {
                let copies = self.sockets.iter().map(TcpListener::try_clone);
                if let Ok(mut all) = copies.collect::<io::Result<Vec<_>>>() {
                    all.extend(more);
                    self.sockets = Arc::new(all);
                }
            }
            Err(error) => {
                tracing::debug!(listener = %self.name, %error, "no socket for every worker");
            }
        }
    }

    /// Binds one socket per worker, all on the listener's address. A path belongs to one socket, so all
    /// workers accept from the one Unix socket, each through a descriptor of its own; it will take the
    /// place of `replaced`, if that is its file.
    pub(super) fn bind(
        listener: &Listener,
        replaced: Option<SocketFile>,
        opening: &mut Opening,
    ) -> Result<Group, Box<dyn Error>> {
        let (first, file) = match listener.address {
            Address::Ip(address) => {
                (os::listen::bind(address, listener.backlog, true)?.listener, None)
            }
            Address::Unix(path) => {
                let (backlog, _) = os::listen::asked_and_granted(listener.backlog);
                let access = opening.access(listener)?;
                let NewSocket { listener, file } =
                    NewSocket::bind(path, access, backlog, replaced)?;
                let known = file.file();
                opening.new_files.push(file);
                (TcpListener::from(OwnedFd::from(listener)), Some(known))
            }
        };
        opening.note_backlog(listener, os::listen::asked_and_granted(listener.backlog));
        let mut sockets = vec![first];
        for _ in 1..opening.workers {
            sockets.push(another(&sockets[0], listener.address, listener.backlog)?);
        }
        Ok(Group::of(listener, Arc::new(sockets), file))
    }
}

/// Returns another socket for the address of `first`; with port 0, that is the port which it has got.
fn another(
    first: &TcpListener,
    address: Address,
    backlog: Option<u32>,
) -> Result<TcpListener, Box<dyn Error>> {
    Ok(match address {
        Address::Ip(_) => os::listen::bind_more(first.local_addr()?, backlog)?.listener,
        Address::Unix(_) => first.try_clone()?,
    })
}
