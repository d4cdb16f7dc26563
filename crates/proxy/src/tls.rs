//! The TLS configurations in use, shared by all workers.

use std::sync::{Arc, Mutex, PoisonError};

use model::{HttpVersion, ListenerTls, ServiceTls, Snapshot};
use rustls::{ClientConfig, ServerConfig};
use tls::{Kept, Mistake, SharedTickets};

/// ALPN protocol names in order of preference.
type Alpn = &'static [&'static [u8]];

/// All configurations in use.
pub(crate) struct TlsConfigs {
    /// What listeners seal session tickets with.
    tickets: Arc<SharedTickets>,
    servers: Mutex<Kept<(ListenerTls, Alpn), ServerConfig>>,
    clients: Mutex<Kept<(Arc<ServiceTls>, HttpVersion), ClientConfig>>,
    /// Those of the configuration that was prepared last, which no worker may use yet.
    prepared: Mutex<Option<InUse>>,
}

/// The configurations that a snapshot needs, in its order of listeners and services.
pub(crate) struct InUse {
    pub(crate) listeners: Vec<ListenerConfigs>,
    pub(crate) services: Vec<Option<Arc<ClientConfig>>>,
}

/// The configurations of a listener.
pub(crate) struct ListenerConfigs {
    /// For connections that carry HTTP.
    pub(crate) http: Option<Arc<ServerConfig>>,
    /// For connections whose bytes are forwarded.
    pub(crate) bytes: Option<Arc<ServerConfig>>,
}

impl TlsConfigs {
    pub(crate) fn new(tickets: Arc<SharedTickets>) -> TlsConfigs {
        TlsConfigs {
            tickets,
            servers: Mutex::default(),
            clients: Mutex::default(),
            prepared: Mutex::default(),
        }
    }

    /// Builds the configurations of a snapshot before it is published, so that workers find them: those of
    /// thousands of certificates take longer than a request should wait.
    pub(crate) fn prepare(&self, snapshot: &Snapshot) {
        let in_use = self.of(snapshot);
        *self.prepared.lock().unwrap_or_else(PoisonError::into_inner) = Some(in_use);
    }

    /// Returns the configurations of a snapshot; those no longer in use are dropped.
    pub(crate) fn of(&self, snapshot: &Snapshot) -> InUse {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let listeners = snapshot.listeners.iter().map(|listener| {
            let mut config = |alpn: Alpn| {
                let key = (listener.tls.clone()?, alpn);
                made(
                    servers
                        .get(key, |(tls, alpn)| tls::server_with_tickets(tls, alpn, &self.tickets)),
                )
            };
            ListenerConfigs {
                http: if listener.protocol.has_requests() {
                    config(tls::listener_alpn(listener))
                } else {
                    None
                },
                bytes: if listener.protocol.terminates() { config(&[]) } else { None },
            }
        });
        let listeners = listeners.collect();
        let services = snapshot.services.iter().map(|service| {
            let key = (service.tls.clone()?, service.http);
            made(clients.get(key, |(tls, http)| tls::client(tls, tls::service_alpn(*http))))
        });
        let services = services.collect();
        servers.forget_unused();
        clients.forget_unused();
        InUse { listeners, services }
    }
}

/// A checked configuration has been built before, so a failure is a bug.
fn made<T>(config: Result<T, Mistake>) -> Option<T> {
    config.inspect_err(|mistake| tracing::error!(?mistake, "cannot set up TLS")).ok()
}
