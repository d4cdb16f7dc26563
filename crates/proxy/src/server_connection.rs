//! One connection to a server: how it is opened, and the state that an exchange keeps about it.

use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use decide::Endpoint;
use decide::reuse::Busy;
use model::{Address, Cause, HttpVersion, ProxyVersion, Service};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use transport::Stream;
use transport::dial::{self, DialOptions};
use wire::http1::RequestHead;
use wire::proxy_protocol::{self, Header, Origin, Ssl};

use crate::buffer::{Buffer, BufferPool};
use crate::carrier::Carrier;
use crate::tcp_sample::{self, Counts};

/// Minimum of how long the kernel retransmits to a server that acknowledges nothing, beyond the
/// response timeout. A server whose host vanished is detected by `TCP_USER_TIMEOUT`, not by
/// keep-alives.
const USER_TIMEOUT_MIN: Duration = Duration::from_secs(5);

/// An open connection to a server. Boxed where it is passed on.
pub(crate) struct ServerConnection {
    pub(crate) stream: Stream,
    pub(crate) buffer: Buffer,
    /// What the learner needs to know about it.
    pub(crate) busy: Busy,
    /// Whether it carried an exchange before this one, or carries others.
    pub(crate) reused: bool,
    /// Whether its last response was bulk data, as the next one may be.
    pub(crate) brought_bulk: bool,
    /// Which of its TCP statistics have been counted.
    pub(crate) counted: Counts,
    /// The HTTP/2 connection that this is a stream of.
    pub(crate) carrier: Option<Rc<Carrier>>,
}

/// The request that a connection is needed for.
#[derive(Clone, Copy)]
pub(crate) struct Want<'a> {
    pub(crate) request: &'a RequestHead,
    /// It may be sent again.
    pub(crate) repeatable: bool,
    /// It must not share the connection with others.
    pub(crate) private: bool,
}

/// What a pooled connection can be reused for: a server, with certain TLS settings and protocol.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    address: Address,
    /// Includes the name that was verified: one address may answer for several.
    tls: Option<(ByPointer, Option<ServerName<'static>>)>,
    http: HttpVersion,
    /// For requests with long fields, which share connections only with each other.
    long_fields: bool,
}

impl Key {
    /// Returns the key of the connections for requests with long fields.
    pub(crate) fn for_long_fields(self) -> Key {
        Key { long_fields: true, ..self }
    }
}

/// Two configurations are equal if they are the same object (`crate::tls`).
#[derive(Clone)]
struct ByPointer(Arc<ClientConfig>);

impl PartialEq for ByPointer {
    fn eq(&self, other: &ByPointer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ByPointer {}

impl Hash for ByPointer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// How the servers of a service are reached, for a client.
#[derive(Clone, Copy)]
pub(crate) struct Reach<'a> {
    pub(crate) service: &'a Service,
    pub(crate) tls: Option<&'a Arc<ClientConfig>>,
    /// The client that a PROXY header describes.
    pub(crate) client: Introduced<'a>,
}

/// The client's address, as sent to a server.
#[derive(Clone, Copy)]
pub(crate) struct Introduced<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) stream: &'a Stream,
}

impl Reach<'_> {
    /// Returns the key of connections to `endpoint`.
    pub(crate) fn key(&self, endpoint: &Endpoint) -> Key {
        let tls =
            self.tls.map(|config| (ByPointer(Arc::clone(config)), self.server_name(endpoint).ok()));
        Key { address: endpoint.row.address, tls, http: self.service.http, long_fields: false }
    }

    /// Returns whether a connection can be used for other clients, too.
    pub(crate) fn is_shared(&self) -> bool {
        self.service.send_proxy.is_none()
    }

    /// Returns the PROXY header that starts a connection; empty if none is sent.
    fn header(&self) -> Vec<u8> {
        let Introduced { address, stream } = self.client;
        let mut out = Vec::new();
        let Some(version) = self.service.send_proxy else { return out };
        let origin = stream
            .local()
            .map_or(Origin::Unknown, |destination| Origin::Tcp { source: address, destination });
        match version {
            ProxyVersion::V1 => proxy_protocol::write_v1(&mut out, origin),
            ProxyVersion::V2 => {
                let tls = stream.tls();
                let shown = tls.is_some_and(|tls| tls.peer_certificate.is_some());
                let name = tls.and_then(|tls| tls.peer_certificate.as_deref());
                let name = name.and_then(tls::common_name);
                let ssl = tls.map(|tls| Ssl {
                    tls: true,
                    certificate_in_connection: shown && !tls.resumed,
                    certificate_in_session: shown,
                    verify: 0,
                    version: Some(tls.version),
                    cipher: Some(tls.cipher),
                    common_name: name.as_deref().map(str::as_bytes),
                });
                let header = Header {
                    origin,
                    authority: tls.and_then(|tls| tls.server_name.as_deref()),
                    alpn: tls.and_then(|tls| tls.alpn.as_deref()),
                    unique_id: None,
                    ssl,
                };
                proxy_protocol::write_v2(&mut out, &header);
            }
        }
        out
    }

    /// Returns the name that TLS verifies for `endpoint`: as configured, else the server's host
    /// name or address, or `localhost` for a Unix socket.
    fn server_name(&self, endpoint: &Endpoint) -> Result<ServerName<'static>, Cause> {
        let configured = self.service.tls.as_ref().and_then(|tls| tls.name.as_deref());
        let host = match (configured, endpoint.row.address) {
            (Some(name), _) => Some(name),
            (None, Address::Ip(_)) => endpoint.row.name.rsplit_once(':').map(|(host, _)| host),
            (None, Address::Unix(_)) => None,
        };
        match host.map(|host| ServerName::try_from(host.to_owned())) {
            Some(Ok(name)) => Ok(name),
            Some(Err(_)) if configured.is_some() => Err(Cause::ProxyInternalError),
            _ => Ok(dial::server_name(endpoint.row.address)),
        }
    }
}

/// Why there is no connection.
pub(crate) struct NoConnection {
    pub(crate) cause: Cause,
    /// Another request waited for the same connection, and its failure has already been counted.
    pub(crate) judged: bool,
}

impl From<Cause> for NoConnection {
    fn from(cause: Cause) -> NoConnection {
        NoConnection { cause, judged: false }
    }
}

/// Returns how long a server may leave data unacknowledged (`TCP_USER_TIMEOUT`, tcp(7)).
fn user_timeout(service: &Service) -> Duration {
    service.timeouts.response.max(USER_TIMEOUT_MIN)
}

/// Returns whether a connection that the kernel gave up belongs to a server that does not read, not
/// to one that is gone: the kernel gives up in the same way. A server that does not read has closed
/// its window and has acknowledged the last probe but one, which is sent within half of the time,
/// since the probe intervals double.
pub(crate) fn is_unread(connection: &ServerConnection, service: &Service) -> bool {
    connection.stream.tcp_info().is_ok_and(|info| {
        info.snd_wnd_bytes == Some(0) && info.last_ack_recv < user_timeout(service) * 3 / 4
    })
}

/// Opens a connection.
pub(crate) async fn dial(
    reach: &Reach<'_>,
    endpoint: &Endpoint,
    buffers: &Rc<BufferPool>,
) -> Result<Box<ServerConnection>, Cause> {
    let timeouts = &reach.service.timeouts;
    let tls = match (reach.tls, &reach.service.tls) {
        (Some(config), _) => Some((Arc::clone(config), reach.server_name(endpoint)?)),
        (None, None) => None,
        // Its settings cannot be used. Clear text would be worse than no connection.
        (None, Some(_)) => return Err(Cause::ProxyInternalError),
    };
    let options = DialOptions {
        connect_timeout: timeouts.connect,
        user_timeout: Some(user_timeout(reach.service)),
        tls,
    };
    let begun = os::clock::now();
    let dialled = dial::dial_with(endpoint.row.address, &options, &reach.header()).await;
    let now = os::clock::now();
    let learner = &endpoint.slots.learner;
    match dialled {
        Ok(stream) => {
            let buffer = Buffer::new(Rc::clone(buffers));
            let counted = tcp_sample::connected(&stream, endpoint, now - begun);
            let busy = learner.connected(now - begun);
            Ok(Box::new(ServerConnection {
                stream,
                buffer,
                busy,
                reused: false,
                brought_bulk: false,
                counted,
                carrier: None,
            }))
        }
        Err(error) => {
            if error.cause == Cause::ConnectionRefused {
                learner.restarted(now);
            }
            endpoint.state.tcp.note_dial(error.syn_retries);
            Err(error.cause)
        }
    }
}
