//! What precedes the protocol on a client's connection: a PROXY header from peers that send one,
//! the choice by server name, and the TLS handshake.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use decide::route;
use model::{Cause, ListenerTls, Moment, Protocol, ServiceId, TcpSplit, TlsMode};
use rustls::ServerConfig;
use transport::{Stream, TlsError};
use wire::proxy_protocol::{self, Origin, Parsed};
use wire::tls::client_hello::{self, ClientHello, Peeked};

use crate::account;
use crate::buffer::Buffer;
use crate::client;
use crate::failure::Reason;
use crate::linger::{Patience, linger};
use crate::via::{Accepted, Via};
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// How long Weir keeps reading from a client whose TLS handshake failed.
const ALERT_MAX: Duration = Duration::from_secs(1);
/// How much such a client may send meanwhile.
const ALERT_UNREAD_MAX_BYTES: u64 = 1 << 20;

/// The result of greeting a connection.
pub(crate) enum Greeted {
    /// Requests may begin.
    Http(Accepted),
    /// Its bytes go to a server of this service.
    Tcp(Accepted, ServiceId),
    /// The client speaks clear text where TLS is spoken, and can be answered with HTTP.
    ClearText(Accepted),
    /// The connection failed and has been recorded.
    Gone,
}

/// What a connection carries, after TLS if there is some.
#[derive(Clone, Copy)]
enum Carries {
    /// HTTP.
    Requests,
    /// Bytes for this service.
    Bytes(ServiceId),
}

impl Greeted {
    fn ready(accepted: Accepted, carries: Carries) -> Greeted {
        match carries {
            Carries::Requests => Greeted::Http(accepted),
            Carries::Bytes(service) => Greeted::Tcp(accepted, service),
        }
    }
}

/// Reads the PROXY header, decides what the connection is for, and performs the TLS handshake, within the listener's
/// timeout for a request head.
pub(crate) async fn greet(
    worker: &Rc<Worker>,
    mut accepted: Accepted,
    watchdog: &mut Watchdog,
) -> Greeted {
    let until = os::clock::now() + accepted.via.settings().timeouts.head;
    if accepted.via.settings().proxy_protocol.contains(accepted.peer.ip()) {
        let Accepted { stream, buffer, .. } = &mut accepted;
        match origin(stream, buffer, watchdog, until).await {
            Ok(introduced) => {
                accepted.peer = introduced.client.unwrap_or(accepted.peer);
                accepted.tls_before = introduced.tls;
            }
            Err(detail) => {
                let reason = Reason { cause: Cause::ProxyProtocolError, detail };
                return gone(worker, &accepted.via, accepted.peer, reason);
            }
        }
    }
    match purpose(worker, &mut accepted, watchdog, until).await {
        Ok((carries, true)) => handshake(worker, accepted, carries, watchdog, until).await,
        Ok((carries, false)) => Greeted::ready(accepted, carries),
        Err(reason) => gone(worker, &accepted.via, accepted.peer, reason),
    }
}

/// Records that a connection failed.
fn gone(worker: &Worker, via: &Via, peer: SocketAddr, reason: Reason) -> Greeted {
    account::ended_before_exchange(worker, via, peer, reason);
    Greeted::Gone
}

/// Decides what a connection carries, and whether TLS is decrypted: by its listener, or by the server name (SNI) in
/// the client's first TLS message, which stays in the buffer.
async fn purpose(
    worker: &Worker,
    accepted: &mut Accepted,
    watchdog: &mut Watchdog,
    until: Moment,
) -> Result<(Carries, bool), Reason> {
    let Accepted { stream, buffer, via, .. } = accepted;
    let settings = via.settings();
    let bytes = |split: &TcpSplit| match route::split_tcp(split, &mut worker.rng.borrow_mut()) {
        Some(service) => Ok(Carries::Bytes(service)),
        None if split.branches.is_empty() => {
            let detail = "the listener has no route";
            Err(Reason { cause: Cause::DestinationNotFound, detail })
        }
        None => {
            let detail = "the route has no valid backend";
            Err(Reason { cause: Cause::ProxyConfigurationError, detail })
        }
    };
    let names = match &settings.protocol {
        Protocol::Http => return Ok((Carries::Requests, settings.tls.is_some())),
        Protocol::Tcp(split) => return Ok((bytes(split)?, settings.tls.is_some())),
        Protocol::Tls(names) => names,
    };
    let read = watchdog.until(until, client_hello(stream, buffer)).await;
    let hello = read
        .unwrap_or(Err("the ClientHello did not come in time"))
        .map_err(|detail| Reason { cause: Cause::ClientTlsError, detail })?;
    let asked = hello.server_name();
    match names.mode(asked) {
        Some(TlsMode::Passthrough(split)) => Ok((bytes(split)?, false)),
        Some(TlsMode::Terminate(split)) => Ok((bytes(split)?, true)),
        Some(TlsMode::Http) => Ok((Carries::Requests, true)),
        Some(TlsMode::Refuse) | None => {
            let detail = match asked {
                Some(_) => "no route has the server name asked for (SNI)",
                None => "the client asked for no server name (SNI)",
            };
            Err(Reason { cause: Cause::DestinationNotFound, detail })
        }
    }
}

/// Performs the TLS handshake.
async fn handshake(
    worker: &Rc<Worker>,
    accepted: Accepted,
    carries: Carries,
    watchdog: &mut Watchdog,
    until: Moment,
) -> Greeted {
    let Accepted { stream, peer, tls_before, mut buffer, via } = accepted;
    let configs = via.plane.tls.listeners.get(via.listener.0 as usize);
    let config = configs.and_then(|configs| match carries {
        Carries::Requests => configs.http.clone(),
        Carries::Bytes(_) => configs.bytes.clone(),
    });
    let Some(config) = config else {
        let detail = "no TLS configuration";
        let reason = Reason { cause: Cause::ProxyInternalError, detail };
        return gone(worker, &via, peer, reason);
    };
    let challenges = &worker.shared.challenges;
    let (config, validates) = if challenges.tls_pending() {
        let read = watchdog.until(until, client_hello(&stream, &mut buffer)).await;
        // What is wrong with it, the handshake finds as well.
        match read {
            Some(Ok(hello)) => config_for(challenges, &hello, config),
            Some(Err(_)) | None => (config, false),
        }
    } else {
        (config, false)
    };
    let before = buffer.to_vec();
    buffer.release();
    match watchdog.until(until, Box::pin(stream.accept_tls(config, &before))).await {
        Some(Ok(mut stream)) => {
            // From here on, a certificate that is known is a verified one, whatever a reload changes.
            if !via.settings().tls.as_ref().is_some_and(ListenerTls::verifies_clients) {
                stream.forget_peer_certificate();
            }
            via.counters().tls_handshakes.increment();
            if stream.tls().is_some_and(|tls| tls.resumed) {
                via.counters().tls_handshakes_resumed.increment();
            }
            if validates {
                // The certificate was all that the authority wanted to see (RFC 8737 section 3).
                client::close(&stream);
                return Greeted::Gone;
            }
            Greeted::ready(Accepted { stream, peer, tls_before, buffer, via }, carries)
        }
        Some(Err(refused)) if matches!(refused.error, TlsError::NotTls) => match carries {
            Carries::Requests => Greeted::ClearText(Accepted {
                stream: refused.stream,
                peer,
                tls_before,
                buffer,
                via,
            }),
            Carries::Bytes(_) => {
                let detail = "clear text where TLS is spoken";
                gone(worker, &via, peer, Reason { cause: Cause::ClientTlsError, detail })
            }
        },
        Some(Err(refused)) => {
            let detail = refused.error.text();
            let reason = Reason { cause: Cause::ClientTlsError, detail };
            account::ended_before_exchange(worker, &via, peer, reason);
            // The alert has been sent. Closing with unread bytes would reset the connection, and
            // the client might never read it.
            let until = os::clock::now() + ALERT_MAX;
            let patience =
                Patience { until, quiet_max: ALERT_MAX, bytes_max: ALERT_UNREAD_MAX_BYTES };
            linger(&refused.stream, &mut buffer, watchdog, patience).await;
            Greeted::Gone
        }
        None => {
            let detail = "the TLS handshake was not complete in time";
            gone(worker, &via, peer, Reason { cause: Cause::ClientTlsError, detail })
        }
    }
}

/// Reads until the `ClientHello` is complete, and leaves it in the buffer. Fails with the reason.
fn client_hello(
    stream: &Stream,
    buffer: &mut Buffer,
) -> impl Future<Output = Result<ClientHello, &'static str>> + Unpin {
    poll_fn(move |cx| {
        loop {
            match client_hello::peek(buffer) {
                Ok(Peeked::Complete(hello)) => return Poll::Ready(Ok(hello)),
                Ok(Peeked::Partial) if buffer.has_room() || buffer.grow() => {}
                Ok(Peeked::Partial) => return Poll::Ready(Err("the ClientHello does not end")),
                Err(error) => return Poll::Ready(Err(error.detail())),
            }
            match ready!(buffer.poll_fill(stream, cx)) {
                Ok(count) if count > 0 => {}
                _ => return Poll::Ready(Err("the connection ended before its ClientHello")),
            }
        }
    })
}

/// Returns the configuration for a handshake that starts with `hello`, and whether it is one in
/// which a certificate authority validates a name (TLS-ALPN-01).
fn config_for(
    challenges: &tls::Challenges,
    hello: &ClientHello,
    normal: Arc<ServerConfig>,
) -> (Arc<ServerConfig>, bool) {
    match challenges.config_for(hello.alpn(), &normal) {
        Ok(config) => {
            let validates = !Arc::ptr_eq(&config, &normal);
            (config, validates)
        }
        Err(mistake) => {
            tracing::error!(?mistake, "cannot answer an ACME challenge over TLS");
            (normal, false)
        }
    }
}

/// What a PROXY header says about the client.
struct Introduction {
    /// The client's address, if given.
    client: Option<SocketAddr>,
    /// Whether the client spoke TLS, terminated by the proxy before Weir.
    tls: bool,
}

/// Reads a PROXY header.
async fn origin(
    stream: &Stream,
    buffer: &mut Buffer,
    watchdog: &mut Watchdog,
    until: Moment,
) -> Result<Introduction, &'static str> {
    let reading = poll_fn(|cx| {
        loop {
            match proxy_protocol::parse(buffer) {
                Ok(Parsed::Complete { consumed, header }) => {
                    let client = match header.origin {
                        Origin::Tcp { source, .. } => Some(source),
                        Origin::Local | Origin::Unknown => None,
                    };
                    let tls = header.ssl.is_some_and(|ssl| ssl.tls);
                    buffer.consume(consumed);
                    return Poll::Ready(Ok(Introduction { client, tls }));
                }
                Ok(Parsed::Partial) => {}
                Err(error) => return Poll::Ready(Err(error.detail())),
            }
            match ready!(buffer.poll_fill(stream, cx)) {
                Ok(count) if count > 0 => {}
                _ => return Poll::Ready(Err("the connection ended before its PROXY header")),
            }
        }
    });
    let read = watchdog.until(until, reading).await;
    read.unwrap_or(Err("the PROXY header did not come in time"))
}
