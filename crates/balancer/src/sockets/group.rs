//! The sockets of one address: bound, taken over, and passed to the proxy.

use std::error::Error;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use model::Listener;

use super::shortfall::Shortfall;

/// The sockets of one address: one per worker at the time they were created.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The listener's name.
    pub(crate) name: Arc<str>,
    /// The address as configured; its port may be 0.
    pub(crate) address: SocketAddr,
    /// As configured: its connections do not outlive a change of its security settings.
    settings: Listener,
    pub(super) backlog: Option<u32>,
    /// Never reduced: the connections in a closed socket's queue would be lost.
    pub(crate) sockets: Arc<Vec<TcpListener>>,
}

impl Group {
    pub(super) fn of(listener: &Listener, sockets: Arc<Vec<TcpListener>>) -> Group {
        Group {
            name: Arc::clone(&listener.name),
            address: listener.address,
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

    /// Adopts sockets that were handed over: all of them, even if there are fewer workers now.
    pub(super) fn adopt(
        listener: &Listener,
        sockets: Vec<TcpListener>,
        shortfalls: &mut Vec<Shortfall>,
    ) -> Result<Group, Box<dyn Error>> {
        let (mut asked, mut granted) = (0, 0);
        for socket in &sockets {
            socket.set_nonblocking(true)?;
            (asked, granted) = os::listen::set_backlog(socket, listener.backlog)?;
        }
        if granted < asked {
            let listener = Arc::clone(&listener.name);
            shortfalls.push(Shortfall::Backlog { listener, asked, granted });
        }
        Ok(Group::of(listener, Arc::new(sockets)))
    }

    /// Adds sockets until there is one for each of `workers`, as far as the system permits: only
    /// the user that bound the first may add one, and a low port needs a privilege. A worker
    /// without a socket gets its connections from the others.
    pub(super) fn grow(&mut self, workers: usize) {
        let missing = workers.saturating_sub(self.sockets.len());
        let Some(Ok(address)) = self.sockets.first().map(TcpListener::local_addr) else {
            return;
        };
        let more: Result<Vec<_>, _> = (0..missing)
            .map(|_| Ok(os::listen::bind_more(address, self.backlog)?.listener))
            .collect::<Result<_, os::listen::ListenError>>();
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

    /// Binds one socket per worker, all on the listener's address.
    pub(super) fn bind(
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
        // With port 0, the first socket's port becomes the listener's.
        let address = first.listener.local_addr()?;
        let mut sockets = vec![first.listener];
        for _ in 1..workers {
            sockets.push(os::listen::bind_more(address, listener.backlog)?.listener);
        }
        Ok(Group::of(listener, Arc::new(sockets)))
    }
}
