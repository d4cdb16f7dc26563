//! The socket under every kind of stream: bytes as TCP carries them.

use std::cell::{RefCell, RefMut};
use std::io::{self, IoSlice, Read};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use os::socket::Idle;
use os::splice::Pipe;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// A connected socket, shared by both directions: each borrow lasts for one call.
pub(super) struct Tcp(RefCell<TcpStream>);

impl Tcp {
    pub(super) fn new(tcp: TcpStream) -> Tcp {
        Tcp(RefCell::new(tcp))
    }

    /// What asks or sets something of the socket itself.
    pub(super) fn with<T>(&self, ask: impl FnOnce(&TcpStream) -> T) -> T {
        ask(&self.0.borrow())
    }

    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // `AsyncRead` and not `try_read`: only it clears the readiness after a short read.
        Pin::new(&mut *self.borrow_mut()).poll_read(cx, buf)
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow().poll_read_ready(cx)
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.borrow_mut()).poll_write(cx, bytes)
    }

    pub(super) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.borrow_mut()).poll_write_vectored(cx, slices)
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow().poll_write_ready(cx)
    }

    pub(super) fn poll_splice_in(
        &self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
    ) -> Poll<io::Result<usize>> {
        if !pipe.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        let tcp = self.0.borrow();
        loop {
            ready!(tcp.poll_read_ready(cx))?;
            match tcp.try_io(Interest::READABLE, || os::splice::splice_in(&*tcp, pipe)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    pub(super) fn poll_splice_out(
        &self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let tcp = self.0.borrow();
        loop {
            ready!(tcp.poll_write_ready(cx))?;
            match tcp.try_io(Interest::WRITABLE, || os::splice::splice_out(pipe, &*tcp, more)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// Ends the direction towards the peer. A connection that is gone already is no error. Never
    /// waits.
    pub(super) fn poll_close_write(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut *self.borrow_mut()).poll_shutdown(cx)) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            result => Poll::Ready(result),
        }
    }

    pub(super) fn reset(self) {
        // The only error is that of a socket which is none; dropping closes it either way.
        let _ = os::socket::set_linger_zero(&self.0.into_inner());
    }

    pub(super) fn closed_or_readable_hint(&self) -> bool {
        match now(|cx| self.poll_read_ready(cx)) {
            Poll::Pending => false,
            Poll::Ready(Err(_)) => true,
            Poll::Ready(Ok(())) => {
                let tcp = self.0.borrow();
                let peeked = tcp.try_io(Interest::READABLE, || match os::socket::peek(&*tcp) {
                    Idle::Silent => Err(io::ErrorKind::WouldBlock.into()),
                    Idle::Data | Idle::Closed => Ok(()),
                });
                !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
            }
        }
    }

    /// What the kernel has to read, whatever the runtime knows. One system call.
    pub(super) fn peek(&self) -> Idle {
        os::socket::peek(&*self.0.borrow())
    }

    /// Reads without waiting, and without asking the runtime whether there is something. For what
    /// [`Tcp::peek`] has found: the detour through a second descriptor costs system calls.
    pub(super) fn read_now(&self, into: &mut [u8]) -> io::Result<usize> {
        let descriptor = self.0.borrow().as_fd().try_clone_to_owned()?;
        std::net::TcpStream::from(descriptor).read(into)
    }

    fn borrow_mut(&self) -> RefMut<'_, TcpStream> {
        // Every borrow above ends within its own call, and none of those calls comes back here.
        self.0.borrow_mut()
    }
}

/// What `poll` says at once, with nobody to be woken. The scheduler's budget for a task must not
/// turn the answer into "nothing happened".
pub(super) fn now<T>(poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    let polled = tokio::task::coop::unconstrained(std::future::poll_fn(poll));
    Future::poll(std::pin::pin!(polled), &mut Context::from_waker(Waker::noop()))
}
