//! A connection as the `h2` crate wants it, while its streams keep a hand on it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::window::SendWindow;
use crate::Stream;

/// Reads what had been read already, then the connection.
pub(super) struct Io {
    pub(super) stream: Rc<Stream>,
    pub(super) before: Bytes,
    /// Towards a server: learns what arrives about the connection's window.
    pub(super) window: Option<Rc<SendWindow>>,
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.before.is_empty() {
            let before = buf.filled().len();
            let read = self.stream.poll_read(cx, buf);
            if let Some(window) = &self.window {
                window.received(&buf.filled()[before..]);
            }
            return read;
        }
        let count = self.before.len().min(buf.remaining());
        buf.put_slice(&self.before[..count]);
        self.before.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.poll_write_vectored(cx, slices)
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
