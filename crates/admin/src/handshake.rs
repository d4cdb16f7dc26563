//! A TLS connection whose handshake takes place when it is first read or written, so that a slow client
//! does not hold up the accepting of others.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

/// The certificates that a client has presented, leaf first; empty until the handshake is over, and without one.
pub(crate) type Presented = Arc<OnceLock<Vec<CertificateDer<'static>>>>;

/// Such a connection.
pub(crate) enum Handshaking {
    Under(Accept<TcpStream>, Presented),
    Done(TlsStream<TcpStream>),
}

impl Handshaking {
    pub(crate) fn begin(
        config: Arc<ServerConfig>,
        stream: TcpStream,
        presented: Presented,
    ) -> Handshaking {
        Handshaking::Under(TlsAcceptor::from(config).accept(stream), presented)
    }

    /// Returns the stream once the handshake is over.
    fn poll_stream(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Pin<&mut TlsStream<TcpStream>>>> {
        if let Handshaking::Under(accept, presented) = self {
            let stream = ready!(Pin::new(accept).poll(cx))?;
            if let Some(chain) = stream.get_ref().1.peer_certificates() {
                let chain = chain.iter().map(|one| one.clone().into_owned()).collect();
                // Set once, here.
                let _ = presented.set(chain);
            }
            *self = Handshaking::Done(stream);
        }
        match self {
            Handshaking::Done(stream) => Poll::Ready(Ok(Pin::new(stream))),
            Handshaking::Under(..) => Poll::Pending,
        }
    }
}

impl AsyncRead for Handshaking {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_stream(cx))?.poll_read(cx, buf)
    }
}

impl AsyncWrite for Handshaking {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_stream(cx))?.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_stream(cx))?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_stream(cx))?.poll_shutdown(cx)
    }
}
