//! A TLS connection whose handshake takes place when it is first read or written, so that a slow client
//! does not hold up the accepting of others.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

/// Such a connection.
pub(crate) enum Handshaking {
    Under(Accept<TcpStream>),
    Done(TlsStream<TcpStream>),
}

impl Handshaking {
    pub(crate) fn begin(config: Arc<ServerConfig>, stream: TcpStream) -> Handshaking {
        Handshaking::Under(TlsAcceptor::from(config).accept(stream))
    }

    /// Returns the stream once the handshake is over.
    fn poll_stream(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Pin<&mut TlsStream<TcpStream>>>> {
        if let Handshaking::Under(accept) = self {
            *self = Handshaking::Done(ready!(Pin::new(accept).poll(cx))?);
        }
        match self {
            Handshaking::Done(stream) => Poll::Ready(Ok(Pin::new(stream))),
            Handshaking::Under(_) => Poll::Pending,
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
