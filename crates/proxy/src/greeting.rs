//! What precedes the protocol on a client's connection: a PROXY header from peers that send one,
//! and the TLS handshake.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use model::{Cause, Moment};
use rustls::ServerConfig;
use transport::{Stream, TlsError};
use wire::proxy_protocol::{self, Origin, Parsed};
use wire::tls::client_hello::{self, ClientHello, Peeked};

use crate::account;
use crate::buffer::Buffer;
use crate::client;
use crate::failure::Reason;
use crate::linger::{Patience, linger};
use crate::via::Accepted;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// How long Weir keeps reading from a client whose TLS handshake failed.
const ALERT_MAX: Duration = Duration::from_secs(1);
/// How much such a client may send meanwhile.
const ALERT_UNREAD_MAX_BYTES: u64 = 1 << 20;

/// The result of greeting a connection.
pub(crate) enum Greeted {
    /// The application protocol may begin.
    Ready(Accepted),
    /// The client speaks clear text on a TLS port, and can be answered.
    ClearText(Accepted),
    /// The connection failed and has been recorded.
    Gone,
}

/// Reads the PROXY header and performs the TLS handshake, within the listener's timeout for a
/// request head.
pub(crate) async fn greet(
    worker: &Rc<Worker>,
    mut accepted: Accepted,
    watchdog: &mut Watchdog,
) -> Greeted {
    let settings = accepted.via.settings();
    let proxied = settings.proxy_protocol.contains(accepted.peer.ip());
    let is_tls = settings.tls.is_some();
    if !proxied && !is_tls {
        return Greeted::Ready(accepted);
    }
    let until = os::clock::now() + settings.timeouts.head;
    if proxied {
        let Accepted { stream, buffer, .. } = &mut accepted;
        match origin(stream, buffer, watchdog, until).await {
            Ok(introduced) => {
                accepted.peer = introduced.client.unwrap_or(accepted.peer);
                accepted.tls_before = introduced.tls;
            }
            Err(detail) => {
                let reason = Reason { cause: Cause::ProxyProtocolError, detail };
                account::ended_before_exchange(worker, &accepted.via, accepted.peer, reason);
                return Greeted::Gone;
            }
        }
    }
    if !is_tls {
        return Greeted::Ready(accepted);
    }
    handshake(worker, accepted, watchdog, until).await
}

/// Performs the TLS handshake.
async fn handshake(
    worker: &Rc<Worker>,
    accepted: Accepted,
    watchdog: &mut Watchdog,
    until: Moment,
) -> Greeted {
    let Accepted { stream, peer, tls_before, mut buffer, via } = accepted;
    let config = via.plane.tls.listeners.get(via.listener.0 as usize).cloned().flatten();
    let Some(config) = config else {
        let detail = "no TLS configuration";
        let reason = Reason { cause: Cause::ProxyInternalError, detail };
        account::ended_before_exchange(worker, &via, peer, reason);
        return Greeted::Gone;
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
        Some(Ok(stream)) => {
            via.counters().tls_handshakes.increment();
            if stream.tls().is_some_and(|tls| tls.resumed) {
                via.counters().tls_handshakes_resumed.increment();
            }
            if validates {
                // The certificate was all that the authority wanted to see (RFC 8737 section 3).
                client::close(&stream);
                return Greeted::Gone;
            }
            Greeted::Ready(Accepted { stream, peer, tls_before, buffer, via })
        }
        Some(Err(refused)) if matches!(refused.error, TlsError::NotTls) => {
            Greeted::ClearText(Accepted { stream: refused.stream, peer, tls_before, buffer, via })
        }
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
            let reason = Reason { cause: Cause::ClientTlsError, detail };
            account::ended_before_exchange(worker, &via, peer, reason);
            Greeted::Gone
        }
    }
}

/// Reads until the `ClientHello` is complete, and leaves it in the buffer. Fails with the reason.
pub(crate) fn client_hello(
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
