//! A connected stream of bytes, for use from both directions at once by one task.
//!
//! Every request passes through here: over plain TCP nothing is allocated, and system calls are as
//! few as the readiness model permits. What kind of stream it is concerns nobody who reads and
//! writes; each kind has a file of its own, and this one says what they have in common.

mod tcp;
#[cfg(test)]
mod tests;
mod tls;

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use os::socket::Idle;
use os::splice::Pipe;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::http2::Exchange;
use tcp::Tcp;
use tls::Tls;
pub use tls::{TlsError, TlsFacts, TlsRefused};

/// A connection. All methods take `&self`, so that one task can read and write at the same time;
/// the borrow inside lasts for one poll, never across an await.
///
/// It belongs to the runtime on which it was made. One task reads and one writes: of two tasks
/// polling the same direction only the last is woken.
pub struct Stream {
    kind: Kind,
    peer: SocketAddr,
}

enum Kind {
    Tcp(Tcp),
    Tls(Box<Tls>),
    /// A stream of HTTP/2, on a connection that is shared.
    Http2(Box<Exchange>),
}

/// Calls the method of the kind at hand.
macro_rules! of_kind {
    ($stream:expr, $kind:ident => $call:expr) => {
        match &$stream.kind {
            Kind::Tcp($kind) => $call,
            Kind::Tls($kind) => $call,
            Kind::Http2($kind) => $call,
        }
    };
}

impl Stream {
    /// From a connected, **non-blocking** socket; asks the kernel for the peer's address. Must be
    /// called within a runtime.
    ///
    /// # Errors
    /// The socket is not connected any more.
    pub fn from_std(tcp: std::net::TcpStream) -> io::Result<Stream> {
        let peer = tcp.peer_addr()?;
        Stream::with_peer(tcp, peer)
    }

    /// As [`Stream::from_std`], when the peer's address is known already (from accept). The runtime
    /// begins to watch it when somebody has to wait for it.
    ///
    /// # Errors
    /// Does not fail today: later calls report what is wrong with the socket.
    pub fn with_peer(tcp: std::net::TcpStream, peer: SocketAddr) -> io::Result<Stream> {
        Ok(Stream { kind: Kind::Tcp(Tcp::unwatched(tcp)), peer })
    }

    pub(crate) fn from_tokio(tcp: TcpStream, peer: SocketAddr) -> Stream {
        Stream { kind: Kind::Tcp(Tcp::new(tcp)), peer }
    }

    /// Speaks TLS as the server; done when the handshake is. `prefix` is what has been read from
    /// the connection already, such as what came with a PROXY header. There is no time limit in
    /// here, and dropping the future closes the connection.
    ///
    /// # Errors
    /// What went wrong, and the connection as it was before, for a last word and a lingering
    /// close: what TLS has to say about it (an alert) has been sent, as far as there was room.
    pub async fn accept_tls(
        self,
        config: Arc<rustls::ServerConfig>,
        prefix: &[u8],
    ) -> Result<Stream, Box<TlsRefused>> {
        let session = rustls::ServerConnection::new(config).map(rustls::Connection::from);
        self.handshake(session, prefix).await
    }

    /// Speaks TLS as a client, with the server that `name` says, which is also what its
    /// certificate is held against if the configuration verifies it. Otherwise as
    /// [`Stream::accept_tls`].
    ///
    /// # Errors
    /// The handshake failed, or the connection ended in it.
    pub async fn connect_tls(
        self,
        config: Arc<rustls::ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Stream, Box<TlsRefused>> {
        let session = rustls::ClientConnection::new(config, name).map(rustls::Connection::from);
        self.handshake(session, &[]).await
    }

    async fn handshake(
        self,
        session: Result<rustls::Connection, rustls::Error>,
        prefix: &[u8],
    ) -> Result<Stream, Box<TlsRefused>> {
        let Stream { kind, peer } = self;
        let refused = |kind, error| Box::new(TlsRefused { error, stream: Stream { kind, peer } });
        let tcp = match kind {
            Kind::Tcp(tcp) => tcp,
            // TLS within something else has no user here.
            kind @ (Kind::Tls(_) | Kind::Http2(_)) => {
                return Err(refused(kind, TlsError::Io(io::ErrorKind::Unsupported.into())));
            }
        };
        let session = match session {
            Ok(session) => session,
            Err(error) => return Err(refused(Kind::Tcp(tcp), error.into())),
        };
        match Tls::handshake(tcp, session, prefix).await {
            Ok(tls) => Ok(Stream { kind: Kind::Tls(Box::new(tls)), peer }),
            Err((tcp, error)) => Err(refused(Kind::Tcp(tcp), error)),
        }
    }

    /// What was agreed on in the TLS handshake; `None`: this is not TLS.
    pub fn tls(&self) -> Option<&TlsFacts> {
        match &self.kind {
            Kind::Tcp(_) => None,
            Kind::Tls(tls) => Some(tls.facts()),
            Kind::Http2(exchange) => exchange.connection().tls(),
        }
    }

    pub(crate) fn from_exchange(exchange: Exchange) -> Stream {
        let peer = exchange.connection().peer();
        Stream { kind: Kind::Http2(Box::new(exchange)), peer }
    }

    /// Whether it is a stream of HTTP/2: it carries one exchange, whose bodies end with the stream
    /// whatever the heads say.
    pub fn is_exchange(&self) -> bool {
        matches!(self.kind, Kind::Http2(_))
    }

    /// The peer's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// This end's address. One system call.
    ///
    /// # Errors
    /// The socket has been closed by the kernel.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.tcp().with(|tcp| os::socket::local_addr(&tcp))
    }

    /// Whether the runtime knows when it is ready. Until then, asking for readiness alone is dearer
    /// than reading, which says as much.
    pub fn is_watched(&self) -> bool {
        match &self.kind {
            Kind::Tcp(tcp) => tcp.is_watched(),
            Kind::Tls(tls) => tls.tcp().is_watched(),
            Kind::Http2(_) => true,
        }
    }

    /// The runtime watches it no more, until somebody has to wait for it. For a connection that
    /// waits beside a poller of the caller's own, by its descriptor. Not for streams of HTTP/2, whose
    /// connection is shared.
    ///
    /// # Errors
    /// The runtime's, when it would not let go of it; everything afterwards is then `NotConnected`.
    pub fn unwatch(&self) -> io::Result<()> {
        self.tcp().unwatch()
    }

    /// Its descriptor, for a poller. What TLS has read and not yet handed out it does not tell of.
    ///
    /// # Errors
    /// What `ask` returns.
    pub fn with_descriptor<T>(
        &self,
        ask: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.tcp().with(ask)
    }

    /// Whether nobody has had to wait for this connection, and asks so for the first time. Whoever
    /// waits for something else and only wants to notice that the peer leaves may then do without,
    /// provided that it asks again soon.
    pub fn is_first_wait(&self) -> bool {
        matches!(&self.kind, Kind::Tcp(tcp) if tcp.is_first_wait())
    }

    /// Reads into `buf`; nothing filled is the end of the stream. A read that leaves room in `buf`
    /// has emptied the receive queue, or nearly: the next one waits for the kernel without asking
    /// it first.
    ///
    /// # Errors
    /// `UnexpectedEof` when TLS ends without saying so (`close_notify`): what was read may have
    /// been cut off (RFC 8446 section 6.1).
    pub fn poll_read(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        of_kind!(self, kind => kind.poll_read(cx, buf))
    }

    /// Ready when a read would probably not wait: bytes, the end of the stream, or an error.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_kind!(self, kind => kind.poll_read_ready(cx))
    }

    /// Writes some of `bytes`; yields how many. Those are the kernel's: nobody has to flush.
    ///
    /// A write that is `Pending` is to be repeated with the same bytes, or more behind them, or to
    /// be the last: over TLS they may be encrypted and partly sent already, and are reported as
    /// written once they are sent whole. How they are divided into slices does not matter.
    pub fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        of_kind!(self, kind => kind.poll_write(cx, bytes))
    }

    /// Writes some of the bytes of all `slices`, in order, with one system call (writev).
    /// Otherwise as [`Stream::poll_write`].
    pub fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        of_kind!(self, kind => kind.poll_write_vectored(cx, slices))
    }

    /// Writes some of `bytes`, after which nothing follows: if all are taken, a stream of HTTP/2
    /// ends with them. On any other, and for the rest, as [`Stream::poll_write`].
    pub fn poll_write_last(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &self.kind {
            Kind::Http2(exchange) => exchange.poll_write_last(cx, bytes),
            _ => self.poll_write(cx, bytes),
        }
    }

    /// Ends what is sent on a stream of HTTP/2, with these lines of trailers. On any other it does
    /// nothing: there, messages end by their framing.
    ///
    /// # Errors
    /// The stream was reset, or has ended already.
    pub fn finish(&self, trailers: &[u8]) -> io::Result<()> {
        match &self.kind {
            Kind::Http2(exchange) => exchange.finish(trailers),
            Kind::Tcp(_) | Kind::Tls(_) => Ok(()),
        }
    }

    /// Whether a stream of HTTP/2 is known to bring nothing more, not even trailers. On any other
    /// that shows in reading.
    pub fn is_ended(&self) -> bool {
        match &self.kind {
            Kind::Http2(exchange) => exchange.is_ended(),
            Kind::Tcp(_) | Kind::Tls(_) => false,
        }
    }

    /// The lines of the trailers of a stream of HTTP/2 that was read to its end.
    pub fn take_trailers(&self) -> Vec<u8> {
        match &self.kind {
            Kind::Http2(exchange) => exchange.take_trailers(),
            Kind::Tcp(_) | Kind::Tls(_) => Vec::new(),
        }
    }

    /// Ready when the peer of a stream of HTTP/2 has lost interest in it, with how that is told
    /// (RFC 9113 section 5.4.2). On any other connection that shows in reading.
    pub fn poll_abandoned(&self, cx: &mut Context<'_>) -> Poll<io::ErrorKind> {
        match &self.kind {
            Kind::Http2(exchange) => exchange.poll_abandoned(cx),
            Kind::Tcp(_) | Kind::Tls(_) => Poll::Pending,
        }
    }

    /// Ready when a write would probably not wait.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp().poll_write_ready(cx)
    }

    /// Whether bytes can be moved inside the kernel: only where they are carried as they are.
    pub fn can_splice(&self) -> bool {
        matches!(self.kind, Kind::Tcp(_))
    }

    /// Moves at most `max` bytes (more than 0) from this connection into an **empty** pipe, inside
    /// the kernel; yields how many, 0 at the end of the stream.
    ///
    /// # Errors
    /// `InvalidInput` when the pipe is not empty: the kernel would then not tell a full pipe from
    /// a silent connection. `Unsupported` unless [`Stream::can_splice`].
    pub fn poll_splice_in(
        &self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        max: usize,
    ) -> Poll<io::Result<usize>> {
        match &self.kind {
            Kind::Tcp(tcp) => tcp.poll_splice_in(cx, pipe, max),
            Kind::Tls(_) | Kind::Http2(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Moves bytes from the pipe to this connection, inside the kernel; yields how many, 0 only
    /// when the pipe is empty. `more`: further bytes follow soon.
    ///
    /// # Errors
    /// `Unsupported` unless [`Stream::can_splice`].
    pub fn poll_splice_out(
        &self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        match &self.kind {
            Kind::Tcp(tcp) => tcp.poll_splice_out(cx, pipe, more),
            Kind::Tls(_) | Kind::Http2(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Ends the direction towards the peer, after everything written: it reads the end of the
    /// stream, and may still send. A connection that is gone already is no error. Over TCP it
    /// never waits; TLS says so first (`close_notify`), and waits for room to say it, so whoever
    /// calls it bounds it.
    pub fn poll_close_write(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_kind!(self, kind => kind.poll_close_write(cx))
    }

    /// Closes with a reset: nothing unsent is sent, the peer notices at once, and no `TIME_WAIT` is
    /// left on this machine.
    pub fn reset(self) {
        match self.kind {
            Kind::Tcp(tcp) => tcp.reset(),
            Kind::Tls(tls) => tls.reset(),
            Kind::Http2(exchange) => exchange.reset(),
        }
    }

    /// As [`Stream::reset`], once whoever else holds the connection has dropped it.
    pub fn reset_when_dropped(&self) {
        // The only error is that of a socket which is none.
        let _ = self.tcp().with(|tcp| os::socket::set_linger_zero(&tcp));
    }

    /// For an idle connection: whether its peer has closed it, or sent something that nobody asked
    /// for; either way it is no longer fit for a request. No system call while nothing has
    /// happened; one (a peek, or over TLS a read) when something has, or when the last read just
    /// filled its buffer. What TLS has to say for itself, such as session tickets, is no reason.
    ///
    /// A hint, because it knows what the runtime's last look at the kernel brought: a close that
    /// arrives just then is found by the write or read that follows. It takes the place of a task
    /// that waits for reading; an idle connection has none.
    pub fn closed_or_readable_hint(&self) -> bool {
        of_kind!(self, kind => kind.closed_or_readable_hint())
    }

    /// Whether an idle connection is open and has nothing to read, by the kernel's word. One
    /// system call; a few over TLS, when something has arrived.
    pub fn is_silent(&self) -> bool {
        match &self.kind {
            Kind::Tcp(tcp) => tcp.peek() == Idle::Silent,
            Kind::Tls(tls) => tls.is_silent(),
            Kind::Http2(_) => !self.closed_or_readable_hint(),
        }
    }

    /// Sets how long sent data may stay unacknowledged; see [`os::socket::set_user_timeout`].
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_user_timeout(&self, timeout: std::time::Duration) -> io::Result<()> {
        self.tcp().with(|tcp| os::socket::set_user_timeout(&tcp, timeout))
    }

    /// Sends each write at once; see [`os::socket::set_nodelay`].
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_nodelay(&self) -> io::Result<()> {
        self.tcp().with(|tcp| os::socket::set_nodelay(&tcp))
    }

    /// Whether each write is sent at once. One system call.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.tcp().with(|tcp| os::socket::nodelay(&tcp))
    }

    /// What the kernel knows about this connection. One system call.
    ///
    /// # Errors
    /// The kernel refuses, or this is not TCP.
    pub fn tcp_info(&self) -> io::Result<os::tcp_info::TcpInfo> {
        self.tcp().with(|tcp| os::tcp_info::read(&tcp))
    }

    /// The socket under it.
    fn tcp(&self) -> &Tcp {
        match &self.kind {
            Kind::Tcp(tcp) => tcp,
            Kind::Tls(tls) => tls.tcp(),
            Kind::Http2(exchange) => exchange.connection().tcp(),
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// So that tokio's extension methods (`read_buf`, `write_all`, …) work on a shared stream.
impl AsyncRead for &Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Stream::poll_read(&self, cx, buf)
    }
}

impl AsyncWrite for &Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Stream::poll_write(&self, cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Stream::poll_write_vectored(&self, cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Written bytes are the kernel's at once.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_close_write(cx)
    }
}
