//! Adapts a connection for the `h2` crate, while its streams keep a reference to it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::watch::Watch;
use super::window::SendWindow;
use crate::Stream;

/// Reads what had been read already, then from the connection.
pub(super) struct Io {
    pub(super) stream: Rc<Stream>,
    pub(super) before: Bytes,
    /// Observes the bytes in both directions.
    pub(super) onlooker: Option<Onlooker>,
}

/// Extracts from a connection's bytes what the `h2` crate does not expose.
pub(super) enum Onlooker {
    /// Towards a client: which requests were refused.
    Refusals(Rc<Watch>),
    /// Towards a server: the remaining send window.
    Window(Rc<SendWindow>),
}

impl Onlooker {
    /// Processes bytes from the peer.
    fn came(&self, bytes: &[u8]) {
        match self {
            Onlooker::Refusals(watch) => watch.came(bytes),
            Onlooker::Window(window) => window.received(bytes),
        }
    }

    /// Processes bytes sent to the peer.
    fn went(&self, bytes: &[u8]) {
        match self {
            Onlooker::Refusals(watch) => watch.went(bytes),
            Onlooker::Window(window) => window.sent(bytes),
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = buf.filled().len();
        if self.before.is_empty() {
            ready!(self.stream.poll_read(cx, buf))?;
            if let Some(onlooker) = &self.onlooker {
                onlooker.came(&buf.filled()[filled..]);
            }
            return Poll::Ready(Ok(()));
        }
        let count = self.before.len().min(buf.remaining());
        buf.put_slice(&self.before[..count]);
        self.before.advance(count);
        if let Some(onlooker) = &self.onlooker {
            onlooker.came(&buf.filled()[filled..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = ready!(self.stream.poll_write(cx, bytes))?;
        if let Some(onlooker) = &self.onlooker {
            onlooker.went(&bytes[..sent]);
        }
        Poll::Ready(Ok(sent))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = ready!(self.stream.poll_write_vectored(cx, slices))?;
        if let Some(onlooker) = &self.onlooker {
            let mut left = sent;
            for slice in slices {
                let of_it = left.min(slice.len());
                onlooker.went(&slice[..of_it]);
                left -= of_it;
            }
        }
        Poll::Ready(Ok(sent))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_close_write(cx)
    }
}
