//! The TCP socket under every kind of stream.

use std::cell::{Ref, RefCell, RefMut};
use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use os::socket::Idle;
use os::splice::Pipe;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// A connected socket, shared by both directions: each borrow lasts for one call.
pub(super) struct Tcp(RefCell<Socket>);

enum Socket {
    /// No task has had to wait for it. A connection whose request arrives with it and which ends
    /// after the response is never registered, which saves two system calls.
    Unwatched { tcp: std::net::TcpStream, was_asked: bool },
    /// Registered with the runtime.
    Watched(TcpStream),
    /// Registration failed: the kernel has no room for more.
    Lost,
}

impl Tcp {
    pub(super) fn new(tcp: TcpStream) -> Tcp {
        Tcp(RefCell::new(Socket::Watched(tcp)))
    }

    /// Wraps a non-blocking socket that need not be waited for yet.
    pub(super) fn unwatched(tcp: std::net::TcpStream) -> Tcp {
        Tcp(RefCell::new(Socket::Unwatched { tcp, was_asked: false }))
    }

    /// Runs a call that queries or configures the socket itself.
    pub(super) fn with<T>(
        &self,
        ask: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        match &*self.0.borrow() {
            Socket::Unwatched { tcp, .. } => ask(tcp.as_fd()),
            Socket::Watched(tcp) => ask(tcp.as_fd()),
            Socket::Lost => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub(super) fn is_watched(&self) -> bool {
        matches!(&*self.0.borrow(), Socket::Watched(_))
    }

    pub(super) fn is_first_wait(&self) -> bool {
        match &mut *self.0.borrow_mut() {
            Socket::Unwatched { was_asked, .. } => !std::mem::replace(was_asked, true),
            _ => false,
        }
    }

    /// Returns the socket, registering it with the runtime.
    fn watched(&self) -> io::Result<Ref<'_, TcpStream>> {
        self.watch()?;
        Ref::filter_map(self.0.borrow(), |socket| match socket {
            Socket::Watched(tcp) => Some(tcp),
            _ => None,
        })
        .map_err(|_| io::ErrorKind::NotConnected.into())
    }

    fn watched_mut(&self) -> io::Result<RefMut<'_, TcpStream>> {
        self.watch()?;
        // Every borrow ends within its own call, and none of those calls re-enters.
        RefMut::filter_map(self.0.borrow_mut(), |socket| match socket {
            Socket::Watched(tcp) => Some(tcp),
            _ => None,
        })
        .map_err(|_| io::ErrorKind::NotConnected.into())
    }

    fn watch(&self) -> io::Result<()> {
        if self.is_watched() {
            return Ok(());
        }
        let mut socket = self.0.borrow_mut();
        if let Socket::Unwatched { tcp, .. } = std::mem::replace(&mut *socket, Socket::Lost) {
            *socket = Socket::Watched(TcpStream::from_std(tcp)?);
        }
        Ok(())
    }

    /// Deregisters it from the runtime, until a task has to wait for it.
    pub(super) fn unwatch(&self) -> io::Result<()> {
        let mut socket = self.0.borrow_mut();
        match std::mem::replace(&mut *socket, Socket::Lost) {
            Socket::Watched(tcp) => {
                *socket = Socket::Unwatched { tcp: tcp.into_std()?, was_asked: false };
            }
            Socket::Lost => return Err(io::ErrorKind::NotConnected.into()),
            unwatched @ Socket::Unwatched { .. } => *socket = unwatched,
        }
        Ok(())
    }

    /// Returns what `call` yields at once on a socket that is not registered; `None` if it is, or
    /// has to wait.
    fn at_once<T>(
        &self,
        call: impl FnOnce(&mut std::net::TcpStream) -> io::Result<T>,
    ) -> Option<io::Result<T>> {
        let Socket::Unwatched { tcp, .. } = &mut *self.0.borrow_mut() else { return None };
        match call(tcp) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            result => Some(result),
        }
    }

    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(read) = self.at_once(|tcp| tcp.read(buf.initialize_unfilled())) {
            return Poll::Ready(read.map(|count| buf.advance(count)));
        }
        // `AsyncRead` and not `try_read`: only it clears the readiness after a short read.
        Pin::new(&mut *self.watched_mut()?).poll_read(cx, buf)
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watched()?.poll_read_ready(cx)
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(written) = self.at_once(|tcp| tcp.write(bytes)) {
            return Poll::Ready(written);
        }
        Pin::new(&mut *self.watched_mut()?).poll_write(cx, bytes)
    }

    pub(super) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(written) = self.at_once(|tcp| tcp.write_vectored(slices)) {
            return Poll::Ready(written);
        }
        Pin::new(&mut *self.watched_mut()?).poll_write_vectored(cx, slices)
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watched()?.poll_write_ready(cx)
    }

    pub(super) fn poll_splice_in(
        &self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        max: usize,
    ) -> Poll<io::Result<usize>> {
        if !pipe.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        let tcp = self.watched()?;
        loop {
            ready!(tcp.poll_read_ready(cx))?;
            match tcp.try_io(Interest::READABLE, || os::splice::splice_in(&*tcp, pipe, max)) {
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
        let tcp = self.watched()?;
        loop {
            ready!(tcp.poll_write_ready(cx))?;
            match tcp.try_io(Interest::WRITABLE, || os::splice::splice_out(pipe, &*tcp, more)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// Shuts down the sending side. A connection that is already gone is no error. Never waits.
    pub(super) fn poll_close_write(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = match self.at_once(|tcp| tcp.shutdown(Shutdown::Write)) {
            Some(closed) => closed,
            None => ready!(Pin::new(&mut *self.watched_mut()?).poll_shutdown(cx)),
        };
        match closed {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            result => Poll::Ready(result),
        }
    }

    pub(super) fn reset(self) {
        // Only fails if the descriptor is not a socket; dropping closes it either way.
        let _ = self.with(|tcp| os::socket::set_linger_zero(&tcp));
    }

    pub(super) fn closed_or_readable_hint(&self) -> bool {
        if !self.is_watched() {
            return self.peek() != Idle::Silent;
        }
        match now(|cx| self.poll_read_ready(cx)) {
            Poll::Pending => false,
            Poll::Ready(Err(_)) => true,
            Poll::Ready(Ok(())) => {
                let Ok(tcp) = self.watched() else { return true };
                let peeked = tcp.try_io(Interest::READABLE, || match os::socket::peek(&*tcp) {
                    Idle::Silent => Err(io::ErrorKind::WouldBlock.into()),
                    Idle::Data | Idle::Closed => Ok(()),
                });
                !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
            }
        }
    }

    /// Returns what the kernel has to read, whatever the runtime knows. One system call.
    pub(super) fn peek(&self) -> Idle {
        self.with(|tcp| Ok(os::socket::peek(&tcp))).unwrap_or(Idle::Closed)
    }

    /// Reads without waiting, and without asking the runtime. For data that [`Tcp::peek`] has
    /// found: going through a second descriptor costs system calls.
    pub(super) fn read_now(&self, into: &mut [u8]) -> io::Result<usize> {
        let descriptor = self.with(|tcp| tcp.try_clone_to_owned())?;
        std::net::TcpStream::from(descriptor).read(into)
    }
}

/// Returns what `poll` yields at once, with a no-op waker. The scheduler's budget for a task must
/// not turn the answer into "nothing happened".
pub(super) fn now<T>(poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    let polled = tokio::task::coop::unconstrained(std::future::poll_fn(poll));
    Future::poll(std::pin::pin!(polled), &mut Context::from_waker(Waker::noop()))
}
