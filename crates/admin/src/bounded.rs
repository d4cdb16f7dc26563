//! The API's connections, bounded in number and in idleness, so that a client that forgets to
//! close cannot use up what the data plane needs.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Connections at once; further ones wait in the kernel's backlog.
const CONNECTIONS_MAX: usize = 64;

/// A connection on which nothing moved for this long is closed.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// How long accepting pauses after it failed (no descriptor, no memory).
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A listener that holds at most [`CONNECTIONS_MAX`] connections.
pub(crate) struct Bounded {
    listener: TcpListener,
    free: Arc<Semaphore>,
    idle_max: Duration,
}

impl Bounded {
    pub(crate) fn new(listener: TcpListener) -> Bounded {
        let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Bounded { listener, free, idle_max: IDLE_MAX }
    }
}

impl Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let Ok(permit) = Arc::clone(&self.free).acquire_owned().await else {
                // Only a closed semaphore refuses, and nothing closes this one.
                return std::future::pending().await;
            };
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let timer = Box::pin(tokio::time::sleep(self.idle_max));
                    let idle_max = self.idle_max;
                    return (Connection { stream, timer, idle_max, _permit: permit }, peer);
                }
                Err(error) => {
                    tracing::warn!(%error, "the admin API cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails once nothing has moved on it for the listener's idle time.
pub(crate) struct Connection {
    stream: TcpStream,
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
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.timed(polled, cx)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.timed(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.timed(polled, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::AsyncReadExt;

    use super::*;

    async fn bounded(idle_max: Duration) -> (Bounded, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (Bounded { idle_max, ..Bounded::new(listener) }, address)
    }

    #[tokio::test]
    async fn a_silent_connection_ends() {
        let (mut bounded, address) = bounded(Duration::from_millis(5)).await;
        let _client = TcpStream::connect(address).await.unwrap();
        let (mut connection, _) = bounded.accept().await;
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
