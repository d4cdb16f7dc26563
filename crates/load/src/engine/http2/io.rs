//! The bytes of a connection that `h2` reads and writes: per turn only a bounded number, so that
//! other connections do not wait.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::engine::link::Link;

/// The connection's bytes.
pub(super) struct Bytes {
    pub(super) link: RefCell<Link>,
    /// Whether a write found no room since the last look.
    pub(super) blocked: Cell<bool>,
    pub(super) read: Cell<usize>,
    pub(super) written: Cell<usize>,
    /// What may still be read in this turn.
    pub(super) left: Cell<usize>,
}

impl Bytes {
    pub(super) fn new(link: Link) -> Bytes {
        Bytes {
            link: RefCell::new(link),
            blocked: Cell::new(false),
            read: Cell::new(0),
            written: Cell::new(0),
            left: Cell::new(0),
        }
    }
}

/// What `h2` reads and writes. Pending means: when the worker polls again.
pub(super) struct Io(pub(super) Rc<Bytes>);

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (mut link, unfilled) = (self.0.link.borrow_mut(), buffer.initialize_unfilled());
        // What TLS has opened already shows on no socket: it must be read now, since no event will
        // announce it.
        let read = match self.0.left.get() {
            0 => link.read_held(unfilled)?,
            _ => link.read(unfilled)?,
        };
        match read {
            None => Poll::Pending,
            Some(count) => {
                buffer.advance(count);
                self.0.read.update(|bytes| bytes + count);
                self.0.left.update(|bytes| bytes.saturating_sub(count));
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = self.0.link.borrow_mut().write(bytes)?;
        if count == 0 && !bytes.is_empty() {
            self.0.blocked.set(true);
            return Poll::Pending;
        }
        self.0.written.update(|bytes| bytes + count);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut link = self.0.link.borrow_mut();
        link.flush()?;
        if link.is_blocked() {
            self.0.blocked.set(true);
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}
