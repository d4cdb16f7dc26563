//! A connected stream of bytes, for use from both directions at once by one task.
//!
//! Every request passes through here: nothing is allocated, and system calls are as few as the
//! readiness model permits.

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use os::socket::Idle;
use os::splice::Pipe;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// A connection. All methods take `&self`, so that one task can read and write at the same time;
/// the borrow inside lasts for one poll, never across an await.
///
/// It belongs to the runtime on which it was made. One task reads and one writes: of two tasks
/// polling the same direction only the last is woken.
pub struct Stream {
    tcp: RefCell<TcpStream>,
    peer: SocketAddr,
}

impl Stream {
    /// From a connected, **non-blocking** socket; asks the kernel for the peer's address. Must be
    /// called within a runtime.
    pub fn from_std(tcp: std::net::TcpStream) -> io::Result<Stream> {
        let peer = tcp.peer_addr()?;
        Stream::with_peer(tcp, peer)
    }

    /// As [`Stream::from_std`], when the peer's address is known already (from accept).
    pub fn with_peer(tcp: std::net::TcpStream, peer: SocketAddr) -> io::Result<Stream> {
        Ok(Stream { tcp: RefCell::new(TcpStream::from_std(tcp)?), peer })
    }

    pub(crate) fn from_tokio(tcp: TcpStream, peer: SocketAddr) -> Stream {
        Stream { tcp: RefCell::new(tcp), peer }
    }

    /// The peer's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// This end's address. One system call.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.tcp.borrow().local_addr()
    }

    /// Reads into `buf`; nothing filled is the end of the stream. A read that leaves room in `buf`
    /// has emptied the receive queue: the next one waits for the kernel without asking it first.
    pub fn poll_read(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // `AsyncRead` and not `try_read`: only it clears the readiness after a short read.
        Pin::new(&mut *self.tcp_mut()).poll_read(cx, buf)
    }

    /// Ready when a read would probably not wait: bytes, the end of the stream, or an error.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.borrow().poll_read_ready(cx)
    }

    /// Writes some of `bytes`; yields how many.
    pub fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.tcp_mut()).poll_write(cx, bytes)
    }

    /// Writes some of the bytes of all `slices`, in order, with one system call (writev).
    pub fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.tcp_mut()).poll_write_vectored(cx, slices)
    }

    /// Ready when a write would probably not wait.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.borrow().poll_write_ready(cx)
    }

    /// Moves bytes from this connection into an **empty** pipe, inside the kernel; yields how
    /// many, 0 at the end of the stream.
    ///
    /// # Errors
    /// `InvalidInput` when the pipe is not empty: the kernel would then not tell a full pipe from
    /// a silent connection.
    pub fn poll_splice_in(&self, cx: &mut Context<'_>, pipe: &mut Pipe) -> Poll<io::Result<usize>> {
        if !pipe.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::InvalidInput.into()));
        }
        let tcp = self.tcp.borrow();
        loop {
            ready!(tcp.poll_read_ready(cx))?;
            match tcp.try_io(Interest::READABLE, || os::splice::splice_in(&*tcp, pipe)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// Moves bytes from the pipe to this connection, inside the kernel; yields how many, 0 only
    /// when the pipe is empty. `more`: further bytes follow soon.
    pub fn poll_splice_out(
        &self,
        cx: &mut Context<'_>,
        pipe: &mut Pipe,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let tcp = self.tcp.borrow();
        loop {
            ready!(tcp.poll_write_ready(cx))?;
            match tcp.try_io(Interest::WRITABLE, || os::splice::splice_out(pipe, &*tcp, more)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// Ends the direction towards the peer, after everything written: it reads the end of the
    /// stream, and may still send. A connection that is gone already is no error. Never waits.
    pub fn poll_close_write(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut *self.tcp_mut()).poll_shutdown(cx)) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            result => Poll::Ready(result),
        }
    }

    /// Closes with a reset: nothing unsent is sent, the peer notices at once, and no `TIME_WAIT` is
    /// left on this machine.
    pub fn reset(self) {
        // The only error is that of a socket which is none; dropping closes it either way.
        let _ = os::socket::set_linger_zero(&self.tcp.into_inner());
    }

    /// For an idle connection: whether its peer has closed it, or sent something that nobody asked
    /// for; either way it is no longer fit for a request. No system call while nothing has
    /// happened; one (a peek) when something has, or when the last read just filled its buffer.
    ///
    /// A hint, because it knows what the runtime's last look at the kernel brought: a close that
    /// arrives just then is found by the write or read that follows. It takes the place of a task
    /// that waits for reading; an idle connection has none.
    pub fn closed_or_readable_hint(&self) -> bool {
        let tcp = self.tcp.borrow();
        // The scheduler's budget for a task must not turn the answer into "nothing happened".
        let looked =
            tokio::task::coop::unconstrained(std::future::poll_fn(|cx| tcp.poll_read_ready(cx)));
        let mut context = Context::from_waker(Waker::noop());
        match Future::poll(std::pin::pin!(looked), &mut context) {
            Poll::Pending => false,
            Poll::Ready(Err(_)) => true,
            Poll::Ready(Ok(())) => {
                let peeked = tcp.try_io(Interest::READABLE, || match os::socket::peek(&*tcp) {
                    Idle::Silent => Err(io::ErrorKind::WouldBlock.into()),
                    Idle::Data | Idle::Closed => Ok(()),
                });
                !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
            }
        }
    }

    /// Sets how long sent data may stay unacknowledged; see [`os::socket::set_user_timeout`].
    pub fn set_user_timeout(&self, timeout: std::time::Duration) -> io::Result<()> {
        os::socket::set_user_timeout(&*self.tcp.borrow(), timeout)
    }

    /// Sends each write at once; see [`os::socket::set_nodelay`].
    pub fn set_nodelay(&self) -> io::Result<()> {
        os::socket::set_nodelay(&*self.tcp.borrow())
    }

    /// Whether an idle connection is open and has nothing to read, by the kernel's word. One
    /// system call.
    pub fn is_silent(&self) -> bool {
        os::socket::peek(&*self.tcp.borrow()) == Idle::Silent
    }

    /// Whether each write is sent at once. One system call.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.tcp.borrow().nodelay()
    }

    /// What the kernel knows about this connection. One system call.
    pub fn tcp_info(&self) -> io::Result<os::tcp_info::TcpInfo> {
        os::tcp_info::read(&*self.tcp.borrow())
    }

    fn tcp_mut(&self) -> RefMut<'_, TcpStream> {
        // Every borrow above ends within its own call, and none of those calls comes back here.
        self.tcp.borrow_mut()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Two ends of one connection.
    async fn pair() -> (Stream, Stream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (dialed, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let std = accepted.unwrap().0.into_std().unwrap();
        (Stream::from_tokio(dialed.unwrap(), address), Stream::from_std(std).unwrap())
    }

    async fn read_ready(stream: &Stream) {
        poll_fn(|cx| stream.poll_read_ready(cx)).await.unwrap();
    }

    fn is_read_ready(stream: &Stream) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        stream.poll_read_ready(&mut cx).is_ready()
    }

    #[tokio::test]
    async fn it_knows_its_ends() {
        let (near, far) = pair().await;
        assert_eq!(near.peer(), far.local().unwrap());
        assert_eq!(far.peer(), near.local().unwrap());
        assert_eq!(near.tcp_info().unwrap().state, os::tcp_info::TcpState::Established);
    }

    #[tokio::test]
    async fn half_close_ends_one_direction_and_leaves_the_other() {
        let (near, far) = pair().await;
        (&near).write_all(b"question").await.unwrap();
        poll_fn(|cx| near.poll_close_write(cx)).await.unwrap();
        let mut question = Vec::new();
        (&far).read_to_end(&mut question).await.unwrap();
        assert_eq!(question, b"question");
        (&far).write_all(b"answer").await.unwrap();
        drop(far);
        let mut answer = Vec::new();
        (&near).read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"answer");
    }

    #[tokio::test]
    async fn a_reset_is_an_error_and_closing_afterwards_is_none() {
        let (near, far) = pair().await;
        far.reset();
        let error = (&near).read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        poll_fn(|cx| near.poll_close_write(cx)).await.unwrap();
        assert!((&near).write_all(b"late").await.is_err());
    }

    #[tokio::test]
    async fn both_directions_flow_at_once_through_one_shared_stream() {
        const BYTES: usize = 8 << 20;
        let (near, far) = pair().await;
        let send = |stream| async move {
            let mut stream: &Stream = stream;
            stream.write_all(&vec![5; BYTES]).await.unwrap();
            stream.shutdown().await.unwrap();
        };
        let receive = |stream| async move {
            let mut stream: &Stream = stream;
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.unwrap();
            all.len()
        };
        let ((), (), at_near, at_far) =
            tokio::join!(send(&near), send(&far), receive(&near), receive(&far));
        assert_eq!((at_near, at_far), (BYTES, BYTES));
    }

    #[tokio::test]
    async fn a_short_read_makes_the_next_wait_without_asking_the_kernel() {
        let (near, far) = pair().await;
        (&far).write_all(b"abc").await.unwrap();
        let mut buffer = [0; 16];
        assert_eq!((&near).read(&mut buffer).await.unwrap(), 3);
        assert!(!is_read_ready(&near), "the readiness is gone although nobody saw EAGAIN");
        (&far).write_all(b"d").await.unwrap();
        assert_eq!((&near).read(&mut buffer).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn slices_are_written_in_order_in_one_go() {
        let (near, far) = pair().await;
        let slices = [IoSlice::new(b"head "), IoSlice::new(b""), IoSlice::new(b"body")];
        let written = poll_fn(|cx| near.poll_write_vectored(cx, &slices)).await.unwrap();
        assert_eq!(written, 9);
        let mut all = [0; 9];
        (&far).read_exact(&mut all).await.unwrap();
        assert_eq!(&all, b"head body");
    }

    #[tokio::test]
    async fn an_idle_connection_tells_when_it_is_no_longer_fit() {
        let (near, far) = pair().await;
        assert!(!near.closed_or_readable_hint());
        (&far).write_all(b"full").await.unwrap();
        read_ready(&near).await;
        assert!(near.closed_or_readable_hint(), "bytes nobody asked for");
        // Fills the buffer exactly: the runtime cannot know that nothing is left.
        (&near).read_exact(&mut [0; 4]).await.unwrap();
        assert!(!near.closed_or_readable_hint(), "the peek found nothing");
        assert!(!is_read_ready(&near), "and was needed once only");
        drop(far);
        read_ready(&near).await;
        assert!(near.closed_or_readable_hint(), "closed");

        let (near, far) = pair().await;
        far.reset();
        read_ready(&near).await;
        assert!(near.closed_or_readable_hint(), "reset");
    }

    #[tokio::test]
    async fn splicing_carries_bytes_and_the_end() {
        const BYTES: usize = 4 << 20;
        let (source, inlet) = pair().await;
        let (outlet, sink) = pair().await;
        let send = async {
            let bytes: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
            (&source).write_all(&bytes).await.unwrap();
            (&source).shutdown().await.unwrap();
        };
        let tunnel = async {
            let mut pipe = Pipe::new(1 << 18).unwrap();
            while poll_fn(|cx| inlet.poll_splice_in(cx, &mut pipe)).await.unwrap() > 0 {
                while !pipe.is_empty() {
                    poll_fn(|cx| outlet.poll_splice_out(cx, &mut pipe, false)).await.unwrap();
                }
            }
            poll_fn(|cx| outlet.poll_close_write(cx)).await.unwrap();
        };
        let receive = async {
            let mut all = Vec::new();
            (&sink).read_to_end(&mut all).await.unwrap();
            all
        };
        let ((), (), all) = tokio::join!(send, tunnel, receive);
        assert_eq!(all.len(), BYTES);
        assert!(all.iter().enumerate().all(|(n, &byte)| byte == (n % 251) as u8));
    }
}
