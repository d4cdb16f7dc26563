//! Tests of TLS streams, both ends in one process, over loopback.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

mod dialing;
mod flow;
mod handshake;
mod idle;
mod pki;

use std::net::TcpStream;
use std::sync::Arc;

use os::listen::bind;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use transport::{Stream, TlsRefused};

use pki::NAME;

/// Returns two ends of one TCP connection, as sockets: client, server.
pub(crate) fn sockets() -> [TcpStream; 2] {
    let bound = bind("127.0.0.1:0".parse().unwrap(), None, false).unwrap();
    bound.listener.set_nonblocking(false).unwrap();
    let near = TcpStream::connect(bound.listener.local_addr().unwrap()).unwrap();
    let (far, _) = bound.listener.accept().unwrap();
    for end in [&near, &far] {
        end.set_nonblocking(true).unwrap();
        end.set_nodelay(true).unwrap();
    }
    [near, far]
}

/// The same as streams.
pub(crate) fn tcp() -> (Stream, Stream) {
    let [near, far] = sockets().map(|end| Stream::from_std(end).unwrap());
    (near, far)
}

type Shaken = Result<Stream, Box<TlsRefused>>;

/// Performs the handshake; returns the results of the client and of the server.
pub(crate) async fn shake(
    client: &Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
) -> (Shaken, Shaken) {
    let (near, far) = tcp();
    let name = ServerName::try_from(NAME).unwrap();
    tokio::join!(
        near.connect_tls(Arc::clone(client), name),
        far.accept_tls(Arc::clone(server), &[])
    )
}

/// Returns the client's end and the server's.
pub(crate) async fn pair() -> (Stream, Stream) {
    let pki = pki::pki();
    let (client, server) = shake(&pki.client(), &pki.server()).await;
    (client.unwrap(), server.unwrap())
}

/// Returns bytes that differ by position, so that a swap or a loss shows.
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n ^ (n >> 8) ^ (n >> 16)) as u8).collect()
}
