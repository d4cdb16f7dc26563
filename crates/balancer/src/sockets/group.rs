//! The sockets of one address: bound, taken over, and passed to the proxy.

use std::error::Error;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use model::{Address, Listener};
use os::privileges::SwitchError;
use os::unix_socket::{Access, NewFile, NewSocket, SocketFile};

use super::shortfall::Shortfall;

/// What the opening of sockets needs besides the listener.
pub(super) struct Start<'a> {
    pub(super) workers: usize,
    /// The user and group that Weir switches to.
    pub(super) owner: Option<(u32, u32)>,
    pub(super) shortfalls: &'a mut Vec<Shortfall>,
    /// Files of new Unix sockets, to be published once all sockets are open.
    pub(super) new_files: &'a mut Vec<NewFile>,
}

impl Start<'_> {
    /// Returns who may connect to a listener's Unix socket.
    fn access(&self, listener: &Listener) -> Result<Access, SwitchError> {
        let own_group = self.owner.map(|(_, group)| group);
        Ok(Access {
            mode: listener.socket.mode,
            user: self.owner.map(|(user, _)| user),
            group: match &listener.socket.group {
                Some(name) => Some(os::privileges::group_id(name)?),
                None => own_group,
            },
        })
    }

    fn note_backlog(&mut self, listener: &Listener, (asked, granted): (u32, u32)) {
        if granted < asked {
            let listener = Arc::clone(&listener.name);
            self.shortfalls.push(Shortfall::Backlog { listener, asked, granted });
        }
    }
}

/// The sockets of one address: one per worker at the time they were created.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The listener's name.
    pub(crate) name: Arc<str>,
    /// The address as configured; its port may be 0.
    pub(crate) address: Address,
    /// That of a Unix socket, to be removed with it.
    pub(super) file: Option<SocketFile>,
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

    /// Returns whether its sockets are for those that may connect to `next`.
    pub(super) fn has_access_of(&self, next: &Listener) -> bool {
        self.file.is_none() || self.settings.socket == next.socket
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
        sockets: Vec<TcpListener>,
        start: &mut Start<'_>,
    ) -> Result<Group, Box<dyn Error>> {
        let file = match listener.address {
            Address::Ip(_) => None,
            Address::Unix(path) => {
                let file = SocketFile::find(path).ok();
                let access = start.access(listener)?;
                if !file.is_some_and(|file| file.has(access)) {
                    return Group::bind(listener, file, start);
                }
                file
            }
        };
        let mut backlog = (0, 0);
        for socket in &sockets {
            socket.set_nonblocking(true)?;
            backlog = os::listen::set_backlog(socket, listener.backlog)?;
        }
        start.note_backlog(listener, backlog);
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

    /// Binds one socket per worker, all on the listener's address. A Unix socket takes the place of
    /// `replaced`, if that is its file.
    pub(super) fn bind(
        listener: &Listener,
        replaced: Option<SocketFile>,
        start: &mut Start<'_>,
    ) -> Result<Group, Box<dyn Error>> {
        let (first, file) = match listener.address {
            Address::Ip(address) => {
                (os::listen::bind(address, listener.backlog, true)?.listener, None)
            }
            Address::Unix(path) => {
                let (backlog, _) = os::listen::asked_and_granted(listener.backlog);
                let access = start.access(listener)?;
                let NewSocket { listener, file } =
                    NewSocket::bind(path, access, backlog, replaced)?;
                let known = file.file();
                start.new_files.push(file);
                (TcpListener::from(OwnedFd::from(listener)), Some(known))
            }
        };
        start.note_backlog(listener, os::listen::asked_and_granted(listener.backlog));
        let mut sockets = vec![first];
        for _ in 1..start.workers {
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
        // A path belongs to one socket, which several workers can accept from.
        Address::Unix(_) => first.try_clone()?,
    })
}
