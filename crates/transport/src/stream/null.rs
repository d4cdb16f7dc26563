//! A stream that leads nowhere.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::task::{Context, Poll};

use tokio::io::ReadBuf;

/// Takes everything that is written and discards it, and never has anything to read.
pub(super) struct Null {
    /// What `Stream::local` returns.
    pub(super) local: Option<SocketAddr>,
}

#[allow(clippy::unused_self, reason = "called like the other kinds")]
impl Null {
    pub(super) fn poll_read(
        &self,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    pub(super) fn poll_read_ready(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    pub(super) fn poll_write(&self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    pub(super) fn poll_write_vectored(
        &self,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()))
    }

    pub(super) fn poll_close_write(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    pub(super) fn closed_or_readable_hint(&self) -> bool {
        false
    }
}
