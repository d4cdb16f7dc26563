//! The API's connections, bounded in number and in idleness, so that a client that forgets to
//! close cannot use up what the data plane needs.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Connections at once; further ones wait in the kernel's backlog.
const CONNECTIONS_MAX: usize = 64;

/// A connection on which nothing moved for this long is closed.
const IDLE_MAX: Duration = Duration::from_mins(1);

/// How long accepting pauses after it failed (no descriptor, no memory).
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A socket of either kind that listens.
pub(crate) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Socket {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Socket::Tcp(listener) => Ok(Box::pin(listener.accept().await?.0)),
            Socket::Unix(listener) => Ok(Box::pin(listener.accept().await?.0)),
        }
    }
}

/// A connection's stream, of either kind.
type Stream = Pin<Box<dyn ReadWrite>>;

pub(crate) trait ReadWrite: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> ReadWrite for T {}

/// A listener that holds at most [`CONNECTIONS_MAX`] connections.
pub(crate) struct Bounded {
    listener: Socket,
    free: Arc<Semaphore>,
    idle_max: Duration,
}

impl Bounded {
    pub(crate) fn new(listener: Socket) -> Bounded {
        let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Bounded { listener, free, idle_max: IDLE_MAX }
    }
}

impl Listener for Bounded {
    type Io = Connection;
    // Nobody asks who it was: all are of this machine.
    type Addr = ();

    async fn accept(&mut self) -> (Connection, ()) {
        loop {
            let Ok(permit) = Arc::clone(&self.free).acquire_owned().await else {
                // Only a closed semaphore refuses, and nothing closes this one.
                return std::future::pending().await;
            };
            match self.listener.accept().await {
                Ok(stream) => {
                    let timer = Box::pin(tokio::time::sleep(self.idle_max));
                    let idle_max = self.idle_max;
                    return (Connection { stream, timer, idle_max, _permit: permit }, ());
                }
                Err(error) => {
                    tracing::warn!(%error, "the admin API cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection that fails once nothing has moved on it for the listener's idle time.
pub(crate) struct Connection {
    stream: Stream,
    timer: Pin<Box<Sleep>>,
    idle_max: Duration,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    /// Passes `polled` on; progress sets the timer anew, its end makes an error of waiting.
    fn timed<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.timer.as_mut().reset(Instant::now() + self.idle_max);
            return polled;
        }
        self.timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = self.stream.as_mut().poll_read(cx, buf);
        self.timed(polled, cx)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = self.stream.as_mut().poll_write(cx, bytes);
        self.timed(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = self.stream.as_mut().poll_write_vectored(cx, slices);
        self.timed(polled, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::SocketAddr;

    use tokio::io::AsyncReadExt;
    use tokio::net::TcpStream;

    use super::*;

    async fn bounded(idle_max: Duration) -> (Bounded, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (Bounded { idle_max, ..Bounded::new(Socket::Tcp(listener)) }, address)
    }

    #[tokio::test]
    async fn a_silent_connection_ends() {
        let (mut bounded, address) = bounded(Duration::from_millis(5)).await;
        let _client = TcpStream::connect(address).await.unwrap();
        let (mut connection, ()) = bounded.accept().await;
        let error = connection.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn one_connection_too_many_waits_until_another_ends() {
        let (mut bounded, address) = bounded(IDLE_MAX).await;
        let mut held = Vec::new();
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            clients.push(TcpStream::connect(address).await.unwrap());
            held.push(bounded.accept().await.0);
        }
        let _waiting = TcpStream::connect(address).await.unwrap();
        let free = Arc::clone(&bounded.free);
        let mut accept = std::pin::pin!(bounded.accept());
        let before = poll_fn(|cx| Poll::Ready(accept.as_mut().poll(cx).is_pending())).await;
        assert!(before);
        assert_eq!(free.available_permits(), 0);
        held.pop();
        accept.await;
    }
}
