//! TLS over a socket, using rustls, with the same interface as plain TCP.
//!
//! System calls are as few as over plain TCP: one read fetches up to a buffer full of records, one
//! write sends all records of a piece. An idle connection holds no buffer of this file.
//!
//! ## Writing
//! Callers treat written bytes as sent, and do not flush after the last write. So bytes are
//! reported as written only when all of their records have been handed to the kernel. Until then
//! the write is `Pending`, and a repeated call with the same bytes returns the count.

mod error;
mod facts;
mod session;

use std::cell::{RefCell, RefMut};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use os::socket::Idle;
use tokio::io::ReadBuf;

use super::tcp::{Tcp, now};
pub use error::{TlsError, TlsRefused};
pub use facts::TlsFacts;
use session::Session;

/// Maximum number of reads of an idle connection for TLS messages: session tickets are a few
/// hundred bytes. More than this counts as data.
const IDLE_READS_MAX: usize = 8;

/// A connection whose handshake is done.
pub(super) struct Tls {
    tcp: Tcp,
    session: RefCell<Session>,
    facts: TlsFacts,
}

impl Tls {
    /// Performs the handshake over `tcp`, `prefix` of which has already been read.
    pub(super) async fn handshake(
        tcp: Tcp,
        rustls: rustls::Connection,
        prefix: &[u8],
    ) -> Result<Tls, (Tcp, TlsError)> {
        let mut session = Session::new(rustls);
        session.begin_with(prefix);
        match poll_fn(|cx| session.poll_handshake(&tcp, cx)).await {
            Ok(()) => {
                let facts = TlsFacts::of(session.rustls());
                Ok(Tls { tcp, session: RefCell::new(session), facts })
            }
            Err(error) => Err((tcp, error)),
        }
    }

    pub(super) fn forget_peer_certificate(&mut self) {
        self.facts.peer_certificate = None;
    }

    pub(super) fn facts(&self) -> &TlsFacts {
        &self.facts
    }

    pub(super) fn tcp(&self) -> &Tcp {
        &self.tcp
    }

    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let session = &mut *self.borrow_mut();
        while buf.remaining() > 0 {
            session.take(buf);
            if buf.filled().len() > before {
                break;
            }
            if let Some(end) = session.end() {
                return Poll::Ready(end);
            }
            let filled = session.poll_fill(&self.tcp, cx, buf);
            session.speak(&self.tcp, cx);
            ready!(filled);
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.borrow_mut().is_readable() {
            return Poll::Ready(Ok(()));
        }
        self.tcp.poll_read_ready(cx)
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    pub(super) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.borrow_mut().poll_write(&self.tcp, cx, slices)
    }

    /// Sends `close_notify` (RFC 8446 section 6.1), then shuts down the sending side of TCP too.
    pub(super) fn poll_close_write(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(self.borrow_mut().poll_close(&self.tcp, cx)) {
            Err(error) if !is_gone(&error) => Poll::Ready(Err(error)),
            _ => self.tcp.poll_close_write(cx),
        }
    }

    pub(super) fn reset(self) {
        self.tcp.reset();
    }

    /// As for plain TCP, but TLS messages have to be read to find out.
    pub(super) fn closed_or_readable_hint(&self) -> bool {
        let session = &mut *self.borrow_mut();
        for _ in 0..IDLE_READS_MAX {
            if session.is_readable() {
                return true;
            }
            let nothing = &mut ReadBuf::new(&mut []);
            if now(|cx| session.poll_fill(&self.tcp, cx, nothing)).is_pending() {
                return false;
            }
        }
        true
    }

    /// As for plain TCP, likewise.
    pub(super) fn is_silent(&self) -> bool {
        let session = &mut *self.borrow_mut();
        for _ in 0..IDLE_READS_MAX {
            if session.is_readable() {
                return false;
            }
            match self.tcp.peek() {
                Idle::Silent => return true,
                Idle::Closed => return false,
                Idle::Data => session.fill_now(&self.tcp),
            }
        }
        false
    }

    fn borrow_mut(&self) -> RefMut<'_, Session> {
        // Every borrow ends within its own call, and nothing in it re-enters.
        self.session.borrow_mut()
    }
}

/// Returns whether the connection is gone, so that there is no peer to notify.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(error.kind(), Kind::NotConnected | Kind::BrokenPipe | Kind::ConnectionReset)
}
