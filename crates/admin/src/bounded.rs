//! Limits the API's connections: their number, their idle time, and the time until their first allowed
//! request. When all are in use, a new connection evicts an idle one, so that idle connections cannot
//! lock out active clients.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, Sleep};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::handshake::{Handshaking, Presented};

/// Maximum number of connections. One more may have been accepted and wait; further ones wait in the
/// listen backlog.
const CONNECTIONS_MAX: usize = 64;

/// Time limits of a connection.
#[derive(Clone, Copy)]
struct Times {
    /// A connection without any I/O for this long is closed.
    idle_max: Duration,
    /// Maximum time from accepting a connection until a request on it has been allowed (right Host
    /// and Origin, and the token if there is one). With requests for what is public: maximum time without I/O.
    unknown_max: Duration,
    /// A connection without an allowed request is not evicted before this time, since its first
    /// request may be on its way.
    unknown_evicted_after: Duration,
    /// A connection with an allowed request is not evicted before it has been idle for this long,
    /// since its response may still be on its way.
    evicted_after: Duration,
    /// The same while a response is being sent, since its client may read slowly.
    sending_evicted_after: Duration,
}

const TIMES: Times = Times {
    idle_max: Duration::from_mins(1),
    unknown_max: Duration::from_secs(3),
    unknown_evicted_after: Duration::from_millis(500),
    evicted_after: Duration::from_secs(1),
    sending_evicted_after: Duration::from_secs(10),
};

/// Interval at which a waiting connection looks for one that can be evicted.
const EVICT_EVERY: Duration = Duration::from_millis(50);

/// How long accepting pauses after it failed (no descriptor, no memory).
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// A listening socket of either kind.
pub(crate) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
    /// With TLS as configured last, or in clear text.
    Tls(TcpListener, watch::Receiver<Option<Arc<ServerConfig>>>),
}

impl Socket {
    /// Accepts a connection. `presented` gets the certificates of its client.
    async fn accept(&self, presented: &Presented) -> io::Result<Stream> {
        match self {
            Socket::Tcp(listener) => Ok(Box::pin(listener.accept().await?.0)),
            Socket::Unix(listener) => Ok(Box::pin(listener.accept().await?.0)),
            Socket::Tls(listener, config) => {
                let stream = listener.accept().await?.0;
                let config = config.borrow().clone();
                Ok(match config {
                    Some(config) => {
                        Box::pin(Handshaking::begin(config, stream, Arc::clone(presented)))
                    }
                    None => Box::pin(stream),
                })
            }
        }
    }
}

/// A connection's stream, of either kind.
type Stream = Pin<Box<dyn ReadWrite>>;

pub(crate) trait ReadWrite: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> ReadWrite for T {}

/// State of a connection, shared by the connection, its requests, and the listener, which may evict it.
#[derive(Clone, Debug)]
pub(crate) struct Seat(Arc<Mutex<State>>, Presented);

#[derive(Debug)]
struct State {
    accepted: Instant,
    /// Time of the last I/O or of the end of the last request.
    moved: Instant,
    /// Whether a request on it has been allowed.
    allowed: bool,
    /// Whether it has asked for what is public.
    has_public: bool,
    /// Whether its client has begun with the protocol, and may wait before its first request.
    has_begun: bool,
    /// Number of allowed requests in progress.
    requests: u32,
    /// Whether a write waits for the client to read.
    sending: bool,
    evicted: bool,
    /// Whether bytes that arrived during its eviction have saved it once.
    reprieved: bool,
    /// Wakes the connection's task.
    waker: Option<Waker>,
}

impl Seat {
    fn new(now: Instant, presented: Presented) -> Seat {
        let state = Arc::new(Mutex::new(State {
            accepted: now,
            moved: now,
            allowed: false,
            has_public: false,
            has_begun: false,
            requests: 0,
            sending: false,
            evicted: false,
            reprieved: false,
            waker: None,
        }));
        Seat(state, presented)
    }

    /// Returns the certificates that the client has presented, leaf first, and whose key it has proved to have.
    pub(crate) fn presented(&self) -> &[CertificateDer<'static>] {
        self.1.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Counts an allowed request until the returned guard is dropped.
    pub(crate) fn request(&self) -> Working {
        let mut state = self.state();
        state.allowed = true;
        state.requests += 1;
        Working(self.clone())
    }

    /// Notes a request for something public. It keeps the connection open while it sends and receives, but it
    /// is evicted like one without an allowed request.
    pub(crate) fn note_public(&self) {
        self.state().has_public = true;
    }

    /// Notes that the client has begun with the protocol. The connection may then be idle as long as one with
    /// an allowed request, but it is evicted like one without.
    pub(crate) fn note_begun(&self) {
        self.state().has_begun = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn evict(&self) {
        let mut state = self.state();
        state.evicted = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl State {
    /// Returns when the connection is closed unless there is I/O first.
    fn ends(&self, times: &Times) -> Instant {
        match (self.allowed || self.has_begun, self.has_public) {
            (true, _) => self.moved + times.idle_max,
            (false, true) => self.moved + times.unknown_max,
            (false, false) => self.accepted + times.unknown_max,
        }
    }

    /// Returns its rank for eviction: connections without an allowed request first, then those that
    /// have been idle for longest. `None`: it is not idle.
    fn eviction_order(&self, times: &Times, now: Instant) -> Option<(bool, Instant)> {
        let (since, after) = match (self.allowed, self.sending) {
            (true, true) => (self.moved, times.sending_evicted_after),
            (true, false) => (self.moved, times.evicted_after),
            (false, _) => (self.accepted, times.unknown_evicted_after),
        };
        let is_idle = self.requests == 0 && now.duration_since(since) >= after;
        (is_idle && !self.evicted).then_some((self.allowed, since))
    }
}

/// A request in progress.
pub(crate) struct Working(Seat);

impl Drop for Working {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        state.moved = Instant::now();
    }
}

impl Connected<IncomingStream<'_, Bounded>> for Seat {
    fn connect_info(stream: IncomingStream<'_, Bounded>) -> Seat {
        stream.remote_addr().clone()
    }
}

/// A listener that holds at most [`CONNECTIONS_MAX`] connections.
pub(crate) struct Bounded {
    listener: Socket,
    free: Arc<Semaphore>,
    seats: Vec<Seat>,
    times: Times,
    /// What it is, for the log.
    name: &'static str,
}

impl Bounded {
    /// `name` is what it is, for the log.
    pub(crate) fn new(listener: Socket, name: &'static str) -> Bounded {
        let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Bounded { listener, free, seats: Vec::new(), times: TIMES, name }
    }

    /// Returns a slot for one more connection, evicting an idle one if all are in use. Waits while all
    /// are active.
    async fn place(&mut self) -> OwnedSemaphorePermit {
        loop {
            if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
                return permit;
            }
            // A connection holds its permit until it ends.
            self.seats.retain(|seat| Arc::strong_count(&seat.0) > 1);
            let now = Instant::now();
            let idle = self.seats.iter().filter_map(|seat| {
                let order = seat.state().eviction_order(&self.times, now)?;
                Some((order, seat))
            });
            if let Some((_, seat)) = idle.min_by_key(|(order, _)| *order) {
                seat.evict();
            }
            let freed = Arc::clone(&self.free).acquire_owned();
            if let Ok(Ok(permit)) = tokio::time::timeout(EVICT_EVERY, freed).await {
                return permit;
            }
        }
    }
}

impl Listener for Bounded {
    type Io = Connection;
    // Handlers need the connection's state, and not the peer's address.
    type Addr = Seat;

    async fn accept(&mut self) -> (Connection, Seat) {
        loop {
            let presented = Presented::default();
            match self.listener.accept(&presented).await {
                Ok(stream) => {
                    let permit = self.place().await;
                    let seat = Seat::new(Instant::now(), presented);
                    self.seats.retain(|seat| Arc::strong_count(&seat.0) > 1);
                    self.seats.push(seat.clone());
                    let times = self.times;
                    let timer = Box::pin(tokio::time::sleep(times.unknown_max));
                    let held = seat.clone();
                    return (
                        Connection { stream, timer, times, seat: held, _permit: permit },
                        seat,
                    );
                }
                Err(error) => {
                    tracing::warn!(%error, "{} cannot accept a connection", self.name);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Seat> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A connection whose I/O fails once its time is over or it is evicted.
pub(crate) struct Connection {
    stream: Stream,
    timer: Pin<Box<Sleep>>,
    times: Times,
    seat: Seat,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    /// Returns `polled`; progress defers the time at which an idle connection is closed.
    fn timed<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        let mut state = self.seat.state();
        if polled.is_ready() {
            state.moved = Instant::now();
            // Bytes that arrive during its eviction show that it was not idle, so it is served. Only
            // once without an allowed request: otherwise trickling bytes would keep its slot.
            if state.evicted && (state.allowed || !state.reprieved) {
                (state.evicted, state.reprieved) = (false, !state.allowed);
            }
        } else if state.evicted {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let ends = state.ends(&self.times);
        if Instant::now() >= ends {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if polled.is_ready() {
            return polled;
        }
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        drop(state);
        if self.timer.deadline() != ends {
            self.timer.as_mut().reset(ends);
        }
        self.timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Does the same for a write.
    fn sent(
        &mut self,
        polled: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.seat.state().sending = polled.is_pending();
        self.timed(polled, cx)
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = self.stream.as_mut().poll_read(cx, buf);
        self.timed(polled, cx)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = self.stream.as_mut().poll_write(cx, bytes);
        self.sent(polled, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = self.stream.as_mut().poll_write_vectored(cx, slices);
        self.sent(polled, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    const NEVER: Times = Times {
        idle_max: Duration::from_hours(1),
        unknown_max: Duration::from_hours(1),
        unknown_evicted_after: Duration::from_hours(1),
        evicted_after: Duration::from_hours(1),
        sending_evicted_after: Duration::from_hours(1),
    };

    async fn bounded(times: Times) -> (Bounded, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (Bounded { times, ..Bounded::new(Socket::Tcp(listener), "a test") }, address)
    }

    /// As many connections as there may be, and their clients.
    async fn full(bounded: &mut Bounded, address: SocketAddr) -> Vec<(Connection, TcpStream)> {
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            let client = TcpStream::connect(address).await.unwrap();
            held.push((bounded.accept().await.0, client));
        }
        held
    }

    /// What a pending read of a connection ends with, now.
    async fn read_now(connection: &mut Connection) -> Option<io::ErrorKind> {
        let mut byte = [0; 1];
        let mut read = std::pin::pin!(connection.read(&mut byte));
        poll_fn(|cx| match read.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(result.err().map(|error| error.kind())),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    #[tokio::test]
    async fn a_connection_without_an_allowed_request_ends_even_if_bytes_trickle_in() {
        let times = Times { unknown_max: Duration::from_millis(50), ..NEVER };
        let (mut bounded, address) = bounded(times).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut connection, _seat) = bounded.accept().await;
        // Bounded: a byte a millisecond would go on for ever.
        for _ in 0..10_000 {
            client.write_all(b"x").await.unwrap();
            if let Err(error) = connection.read_u8().await {
                assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("it never ended");
    }

    #[tokio::test]
    async fn a_silent_connection_ends_and_later_after_an_allowed_request() {
        let short = Times { unknown_max: Duration::from_millis(5), ..NEVER };
        let (mut strict, address) = bounded(short).await;
        let _client = TcpStream::connect(address).await.unwrap();
        let (mut unknown, _seat) = strict.accept().await;
        assert_eq!(unknown.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);

        let idle_max = Duration::from_millis(100);
        let (mut bounded, address) = bounded(Times { idle_max, ..short }).await;
        let _client = TcpStream::connect(address).await.unwrap();
        let (mut known, seat) = bounded.accept().await;
        let begun = Instant::now();
        drop(seat.request());
        assert_eq!(known.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= idle_max, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn a_new_connection_evicts_the_oldest_without_a_request_and_no_other() {
        let times = Times { unknown_evicted_after: Duration::ZERO, ..NEVER };
        let (mut bounded, address) = bounded(times).await;
        let mut held = full(&mut bounded, address).await;
        let working = held[0].0.seat.request();
        let _client = TcpStream::connect(address).await.unwrap();
        let mut evicted = Vec::new();
        {
            let mut accept = std::pin::pin!(bounded.accept());
            let pending = poll_fn(|cx| Poll::Ready(accept.as_mut().poll(cx).is_pending())).await;
            assert!(pending);
            for (index, (connection, _)) in held.iter_mut().enumerate() {
                if read_now(connection).await == Some(io::ErrorKind::ConnectionAborted) {
                    evicted.push(index);
                }
            }
            assert_eq!(evicted, [1]);
            // As hyper does with a connection that failed.
            held.remove(1);
            accept.await;
        }
        drop(working);
    }

    #[test]
    fn a_connection_for_public_files_lasts_while_it_moves_and_is_evicted_first() {
        let begun = Instant::now();
        let seat = Seat::new(begun, Presented::default());
        seat.note_public();
        let later = begun + 2 * TIMES.unknown_max;
        seat.state().moved = later;
        assert_eq!(seat.state().ends(&TIMES), later + TIMES.unknown_max);
        let order = seat.state().eviction_order(&TIMES, later);
        assert_eq!(order, Some((false, begun)), "as one without an allowed request");
    }

    #[test]
    fn a_client_that_has_begun_may_wait_and_is_evicted_as_one_without_a_request() {
        let begun = Instant::now();
        let seat = Seat::new(begun, Presented::default());
        seat.note_begun();
        assert_eq!(seat.state().ends(&TIMES), begun + TIMES.idle_max);
        let later = begun + TIMES.unknown_evicted_after;
        assert_eq!(seat.state().eviction_order(&TIMES, later), Some((false, begun)));
        let working = seat.request();
        assert_eq!(seat.state().eviction_order(&TIMES, later + TIMES.idle_max), None);
        drop(working);
    }

    #[test]
    fn a_response_that_its_client_is_slow_to_read_is_no_idle_connection() {
        let begun = Instant::now();
        let seat = Seat::new(begun, Presented::default());
        drop(seat.request());
        let moved = seat.state().moved;
        let later = moved + TIMES.evicted_after;
        assert!(seat.state().eviction_order(&TIMES, later).is_some());
        seat.state().sending = true;
        assert!(seat.state().eviction_order(&TIMES, later).is_none());
        let later = moved + TIMES.sending_evicted_after;
        assert!(seat.state().eviction_order(&TIMES, later).is_some());
    }

    #[tokio::test]
    async fn while_all_are_at_work_a_new_connection_waits_and_then_the_idle_make_room() {
        let times = Times { evicted_after: Duration::from_millis(1), ..NEVER };
        let (mut bounded, address) = bounded(times).await;
        let mut held = full(&mut bounded, address).await;
        let mut working: Vec<_> = held.iter().map(|(one, _)| one.seat.request()).collect();
        let _client = TcpStream::connect(address).await.unwrap();
        let mut accept = std::pin::pin!(bounded.accept());
        tokio::select! {
            _ = &mut accept => panic!("accepted beside {CONNECTIONS_MAX} at work"),
            () = tokio::time::sleep(3 * EVICT_EVERY) => {}
        }
        for (connection, _) in &mut held {
            assert_eq!(read_now(connection).await, None);
        }
        drop(working.pop());
        let last = held.len() - 1;
        tokio::select! {
            _ = &mut accept => panic!("accepted before the idle one is gone"),
            () = tokio::time::sleep(3 * EVICT_EVERY) => {}
        }
        assert_eq!(read_now(&mut held[last].0).await, Some(io::ErrorKind::ConnectionAborted));
        held.pop();
        accept.await;
    }
}
