//! A connected byte stream that one task can use in both directions at once.
//!
//! Every request passes through here: over plain TCP nothing is allocated, and system calls are as
//! few as the readiness model permits. Readers and writers need not know the kind of stream; each
//! kind has its own file, and this one has what they share.

mod null;
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

use crate::http2::{Exchange, StreamError};
use null::Null;
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
    /// An HTTP/2 stream, on a shared connection.
    Http2(Exchange),
    Null(Null),
}

/// Calls a method of the actual kind.
macro_rules! of_kind {
    ($stream:expr, $kind:ident => $call:expr) => {
        match &$stream.kind {
            Kind::Tcp($kind) => $call,
            Kind::Tls($kind) => $call,
            Kind::Http2($kind) => $call,
            Kind::Null($kind) => $call,
        }
    };
}

impl Stream {
    /// Wraps a connected, **non-blocking** socket; asks the kernel for the peer's address. Must be
    /// called within a runtime.
    ///
    /// # Errors
    /// The socket is no longer connected.
    pub fn from_std(tcp: std::net::TcpStream) -> io::Result<Stream> {
        let peer = tcp.peer_addr()?;
        Stream::with_peer(tcp, peer)
    }

    /// As [`Stream::from_std`], if the peer's address is already known (from accept). The socket is
    /// registered with the runtime only when a task has to wait for it.
    ///
    /// # Errors
    /// Does not fail today: later calls report errors of the socket.
    pub fn with_peer(tcp: std::net::TcpStream, peer: SocketAddr) -> io::Result<Stream> {
        Ok(Stream { kind: Kind::Tcp(Tcp::unwatched(tcp)), peer })
    }

    pub(crate) fn from_tokio(tcp: TcpStream, peer: SocketAddr) -> Stream {
        Stream { kind: Kind::Tcp(Tcp::new(tcp)), peer }
    }

    /// Returns a stream that leads nowhere, with the addresses of another: what is written is discarded, and
    /// there is never anything to read. It stands for a client that does not wait for its response.
    pub fn null(peer: SocketAddr, local: Option<SocketAddr>) -> Stream {
        Stream { kind: Kind::Null(Null { local }), peer }
    }

    /// Performs a TLS handshake as the server. `prefix` is what has already been read from the
    /// connection, such as bytes after a PROXY header. Has no time limit of its own; dropping the
    /// future closes the connection.
    ///
    /// # Errors
    /// The TLS error, and the connection as it was before, for a last message and a lingering
    /// close: the TLS alert has been sent, as far as there was room.
    pub async fn accept_tls(
        self,
        config: Arc<rustls::ServerConfig>,
        prefix: &[u8],
    ) -> Result<Stream, Box<TlsRefused>> {
        let session = rustls::ServerConnection::new(config).map(rustls::Connection::from);
        self.handshake(session, prefix).await
    }

    /// Performs a TLS handshake as the client, with `name` as the server name, which is also what
    /// the certificate is verified against if the configuration verifies it. Otherwise as
    /// [`Stream::accept_tls`].
    ///
    /// # Errors
    /// The handshake failed, or the connection ended during it.
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
            // TLS inside another layer is not needed.
            kind @ (Kind::Tls(_) | Kind::Http2(_) | Kind::Null(_)) => {
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

    /// Returns what the TLS handshake negotiated; `None`: this is not TLS.
    pub fn tls(&self) -> Option<&TlsFacts> {
        match &self.kind {
            Kind::Tcp(_) | Kind::Null(_) => None,
            Kind::Tls(tls) => Some(tls.facts()),
            Kind::Http2(exchange) => exchange.connection().tls(),
        }
    }

    /// Forgets the certificate of the other end, which has not been verified.
    pub fn forget_peer_certificate(&mut self) {
        if let Kind::Tls(tls) = &mut self.kind {
            tls.forget_peer_certificate();
        }
    }

    pub(crate) fn from_exchange(exchange: Exchange) -> Stream {
        let peer = exchange.connection().peer();
        Stream { kind: Kind::Http2(exchange), peer }
    }

    /// Returns whether it is an HTTP/2 stream: it carries one exchange, whose bodies end with the
    /// stream whatever the heads say.
    pub fn is_exchange(&self) -> bool {
        matches!(self.kind, Kind::Http2(_))
    }

    /// Returns the peer's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns the local address. One system call.
    ///
    /// # Errors
    /// The socket has been closed by the kernel, or there is none.
    pub fn local(&self) -> io::Result<SocketAddr> {
        match &self.kind {
            Kind::Null(null) => null.local.ok_or_else(|| io::ErrorKind::NotConnected.into()),
            _ => self.tcp()?.with(|tcp| os::socket::local_addr(&tcp)),
        }
    }

    /// Returns whether it is registered with the runtime. Until then, asking for readiness alone is
    /// more expensive than reading, which gives the same information.
    pub fn is_watched(&self) -> bool {
        match &self.kind {
            Kind::Tcp(tcp) => tcp.is_watched(),
            Kind::Tls(tls) => tls.tcp().is_watched(),
            Kind::Http2(_) | Kind::Null(_) => true,
        }
    }

    /// Deregisters it from the runtime, until a task has to wait for it. For a connection that
    /// waits in the caller's own poller, by its descriptor. Not for HTTP/2 streams, whose
    /// connection is shared.
    ///
    /// # Errors
    /// The runtime failed to deregister it; everything afterwards is then `NotConnected`.
    pub fn unwatch(&self) -> io::Result<()> {
        self.tcp()?.unwatch()
    }

    /// Passes its descriptor to `ask`, for a poller. Data that TLS has read and not yet returned
    /// does not show on the descriptor.
    ///
    /// # Errors
    /// What `ask` returns.
    pub fn with_descriptor<T>(
        &self,
        ask: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.tcp()?.with(ask)
    }

    /// Returns whether no task has had to wait for this connection, and this is the first call. A
    /// caller that waits for something else and only wants to notice that the peer leaves may then
    /// skip registering, provided that it asks again soon.
    pub fn is_first_wait(&self) -> bool {
        matches!(&self.kind, Kind::Tcp(tcp) if tcp.is_first_wait())
    }

    /// Reads into `buf`; an empty read is the end of the stream. A read that leaves room in `buf`
    /// has emptied the receive queue, or nearly: the next one waits for the kernel without asking
    /// it first.
    ///
    /// # Errors
    /// `UnexpectedEof` when TLS ends without `close_notify`: what was read may have been truncated
    /// (RFC 8446 section 6.1).
    pub fn poll_read(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        of_kind!(self, kind => kind.poll_read(cx, buf))
    }

    /// Ready when a read would probably not block: bytes, the end of the stream, or an error.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_kind!(self, kind => kind.poll_read_ready(cx))
    }

    /// Writes some of `bytes`; returns how many. They have been handed to the kernel: no flush is
    /// needed.
    ///
    /// A write that is `Pending` must be repeated with the same bytes, or more after them, or be
    /// the last: over TLS they may be encrypted and partly sent already, and are reported as
    /// written once they are completely sent. How they are divided into slices does not matter.
    pub fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        of_kind!(self, kind => kind.poll_write(cx, bytes))
    }

    /// Writes some of the bytes of all `slices`, in order, with one system call (writev). Otherwise
    /// as [`Stream::poll_write`].
    pub fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        of_kind!(self, kind => kind.poll_write_vectored(cx, slices))
    }

    /// Writes some of `bytes`, after which nothing follows: if all are taken, an HTTP/2 stream ends
    /// with them. On any other, and otherwise, as [`Stream::poll_write`].
    pub fn poll_write_last(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &self.kind {
            Kind::Http2(exchange) => exchange.poll_write_last(cx, bytes),
            _ => self.poll_write(cx, bytes),
        }
    }

    /// Ends the sending side of an HTTP/2 stream, with these trailer lines. Does nothing on others:
    /// there, messages end by their framing.
    ///
    /// # Errors
    /// The stream was reset, or has ended already.
    pub fn finish(&self, trailers: &[u8]) -> io::Result<()> {
        match &self.kind {
            Kind::Http2(exchange) => exchange.finish(trailers),
            Kind::Tcp(_) | Kind::Tls(_) | Kind::Null(_) => Ok(()),
        }
    }

    /// Returns whether an HTTP/2 stream will yield nothing more, not even trailers. On others,
    /// reading shows that.
    pub fn is_ended(&self) -> bool {
        match &self.kind {
            Kind::Http2(exchange) => exchange.is_ended(),
            Kind::Tcp(_) | Kind::Tls(_) | Kind::Null(_) => false,
        }
    }

    /// Returns the trailer lines of an HTTP/2 stream that was read to its end.
    pub fn take_trailers(&self) -> Vec<u8> {
        match &self.kind {
            Kind::Http2(exchange) => exchange.take_trailers(),
            Kind::Tcp(_) | Kind::Tls(_) | Kind::Null(_) => Vec::new(),
        }
    }

    /// Ready when an HTTP/2 stream has ended early, mostly because its peer has cancelled it (RFC
    /// 9113 section 5.4.2), with the reason. On others, reading shows that.
    pub fn poll_abandoned(&self, cx: &mut Context<'_>) -> Poll<StreamError> {
        match &self.kind {
            Kind::Http2(exchange) => exchange.poll_abandoned(cx),
            Kind::Tcp(_) | Kind::Tls(_) | Kind::Null(_) => Poll::Pending,
        }
    }

    /// Returns why an HTTP/2 stream has ended early, if it has.
    pub fn abandoned(&self) -> Option<StreamError> {
        match &self.kind {
            Kind::Http2(exchange) => exchange.abandoned(),
            Kind::Tcp(_) | Kind::Tls(_) | Kind::Null(_) => None,
        }
    }

    /// Ready when a write would probably not block.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp()?.poll_write_ready(cx)
    }

    /// Returns whether bytes can be moved inside the kernel: only if they are sent unchanged.
    pub fn can_splice(&self) -> bool {
        matches!(self.kind, Kind::Tcp(_))
    }

    /// Moves at most `max` bytes (more than 0) from this connection into an **empty** pipe, inside
    /// the kernel; returns how many, 0 at the end of the stream.
    ///
    /// # Errors
    /// `InvalidInput` when the pipe is not empty: the kernel could then not distinguish a full pipe
    /// from a silent connection. `Unsupported` unless [`Stream::can_splice`].
    pub fn poll_splice_in(
        &self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        max: usize,
    ) -> Poll<io::Result<usize>> {
        match &self.kind {
            Kind::Tcp(tcp) => tcp.poll_splice_in(cx, pipe, max),
            _ => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Moves bytes from the pipe to this connection, inside the kernel; returns how many, 0 only
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
            _ => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Shuts down the sending side after everything written: the peer reads the end of the stream,
    /// and may still send. A connection that is already gone is no error. Over TCP it never waits;
    /// TLS sends `close_notify` first and waits for room for it, so the caller must bound it.
    pub fn poll_close_write(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_kind!(self, kind => kind.poll_close_write(cx))
    }

    /// Closes with a reset: unsent data is discarded, the peer notices at once, and no `TIME_WAIT`
    /// is left on this machine.
    pub fn reset(self) {
        match self.kind {
            Kind::Tcp(tcp) => tcp.reset(),
            Kind::Tls(tls) => tls.reset(),
            // Dropping it resets the stream.
            Kind::Http2(_) | Kind::Null(_) => {}
        }
    }

    /// As [`Stream::reset`], once all other holders of the connection have dropped it.
    pub fn reset_when_dropped(&self) {
        // Only fails if there is no socket.
        let _ = self.tcp().and_then(|tcp| tcp.with(|tcp| os::socket::set_linger_zero(&tcp)));
    }

    /// For an idle connection: returns whether its peer has closed it, or sent unsolicited data;
    /// either way it can no longer be used for a request. No system call while nothing has
    /// happened; one (a peek, or over TLS a read) when something has, or when the last read exactly
    /// filled its buffer. TLS messages such as session tickets do not count.
    ///
    /// A hint, because it is based on the runtime's last poll: a close that arrives just then is
    /// found by the write or read that follows. It replaces the waker of a task that waits for
    /// reading; an idle connection has none.
    pub fn closed_or_readable_hint(&self) -> bool {
        of_kind!(self, kind => kind.closed_or_readable_hint())
    }

    /// Returns whether an idle connection is open and has nothing to read, according to the kernel.
    /// One system call; a few over TLS, when something has arrived.
    pub fn is_silent(&self) -> bool {
        match &self.kind {
            Kind::Tcp(tcp) => tcp.peek() == Idle::Silent,
            Kind::Tls(tls) => tls.is_silent(),
            Kind::Http2(_) | Kind::Null(_) => !self.closed_or_readable_hint(),
        }
    }

    /// Sets how long sent data may stay unacknowledged; see [`os::socket::set_user_timeout`].
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_user_timeout(&self, timeout: std::time::Duration) -> io::Result<()> {
        self.tcp()?.with(|tcp| os::socket::set_user_timeout(&tcp, timeout))
    }

    /// Sends each write at once; see [`os::socket::set_nodelay`].
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_nodelay(&self) -> io::Result<()> {
        self.tcp()?.with(|tcp| os::socket::set_nodelay(&tcp))
    }

    /// Returns whether each write is sent at once. One system call.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.tcp()?.with(|tcp| os::socket::nodelay(&tcp))
    }

    /// Returns the kernel's TCP statistics of this connection. One system call.
    ///
    /// # Errors
    /// The kernel refuses, or this is not TCP.
    pub fn tcp_info(&self) -> io::Result<os::tcp_info::TcpInfo> {
        self.tcp()?.with(|tcp| os::tcp_info::read(&tcp))
    }

    /// Returns the underlying socket.
    fn tcp(&self) -> io::Result<&Tcp> {
        match &self.kind {
            Kind::Tcp(tcp) => Ok(tcp),
            Kind::Tls(tls) => Ok(tls.tcp()),
            Kind::Http2(exchange) => exchange.connection().tcp(),
            Kind::Null(_) => Err(io::ErrorKind::NotConnected.into()),
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

    /// Written bytes are handed to the kernel at once.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_close_write(cx)
    }
}
