//! The listener for KEDA: its external scalers over gRPC, i.e. over HTTP/2. [`autoscaler`] answers; this is the
//! shell over `h2`, with its bounds.

use std::future::poll_fn;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use autoscaler::grpc::{self, BODY_MAX_BYTES, Code, Head, Refusal, Status};
use autoscaler::keda::{self, Answer, Method, Target};
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use axum::serve::Listener as _;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Ping, PingPong, Reason, RecvStream, SendStream};
use model::{AutoscalerListener, ListenerTls};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls::ServerConfig;

use crate::bounded::{Bounded, Connection, Seat, Socket, Working};
use crate::numbers::{self, Numbers};
use crate::side_listener::{self, Handle, OpenError};
use crate::{Exposed, STOP_MAX};

/// Maximum number of calls of `StreamIsActive` over all connections, and on one of them. KEDA uses one connection
/// for all objects that name one address.
const FOLLOWED_MAX: usize = 1_024;
const FOLLOWED_OF_CONNECTION_MAX: usize = 512;
/// Maximum number of other calls over all connections.
const CALLS_MAX: usize = 512;
/// Maximum number of streams of a connection: besides those that are followed, there is room for other calls.
const STREAMS_MAX: u32 = FOLLOWED_OF_CONNECTION_MAX as u32 + 128;
const FIELDS_MAX_BYTES: u32 = 8_192;
/// Maximum time from a call's head to the end of its body.
const BODY_MAX: Duration = Duration::from_secs(3);
/// Maximum time until a client has room for a message.
const SEND_MAX: Duration = Duration::from_secs(10);
/// Maximum time until a client has begun with HTTP/2.
const BEGIN_MAX: Duration = Duration::from_secs(3);
/// Interval between pings, so that a connection without calls is kept and one without a client is not.
const PING_EVERY: Duration = Duration::from_secs(20);
const PONG_MAX: Duration = Duration::from_secs(10);

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// The listening socket. Opened while the program may still be root.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
}

impl Door {
    /// Opens the listener of a configuration, on a socket that another process handed over if there is one.
    ///
    /// # Errors
    /// The certificates cannot be used, or the address cannot be bound.
    pub fn open(
        asked: &AutoscalerListener,
        handed: Option<TcpListener>,
    ) -> Result<Door, OpenError> {
        let tls = side_listener::configured(asked.tls.as_ref(), config)?;
        Ok(Door { listener: side_listener::bind(asked.address, handed)?, tls })
    }

    /// Checks whether [`Door::open`] would succeed, without binding the address.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub fn check(asked: &AutoscalerListener) -> Result<(), OpenError> {
        side_listener::configured(asked.tls.as_ref(), config).map(drop)
    }
}

/// For handing the socket over to another process.
impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

fn config(tls: &ListenerTls) -> Result<Arc<ServerConfig>, tls::Mistake> {
    tls::server(tls, &[b"h2"])
}

/// Starts the listener on its own thread.
///
/// # Errors
/// The system grants no thread, or no event loop.
pub fn start(door: Door, exposed: Exposed) -> io::Result<Handle> {
    let Door { listener, tls } = door;
    side_listener::start("weir-keda", (listener, tls), config, move |socket, stopped| {
        serve(socket, exposed, stopped)
    })
}

/// What calls share.
#[derive(Clone)]
struct Shared {
    numbers: watch::Receiver<Numbers>,
    /// For calls that follow a number: those of all connections, and those of this one.
    followed: [Arc<Semaphore>; 2],
    /// For other calls.
    calls: Arc<Semaphore>,
    stopped: watch::Receiver<bool>,
}

async fn serve(socket: Socket, exposed: Exposed, mut stopped: watch::Receiver<bool>) {
    let (sender, numbers) = watch::channel(Arc::new(numbers::read(&exposed)));
    let followed = Arc::new(Semaphore::new(FOLLOWED_MAX));
    let calls = Arc::new(Semaphore::new(CALLS_MAX));
    let stop = stopped.clone();
    let mut connections = JoinSet::new();
    let accepting = async {
        let mut listener = Bounded::new(socket, "the listener for KEDA");
        loop {
            let (stream, seat) = listener.accept().await;
            let of_connection = Arc::new(Semaphore::new(FOLLOWED_OF_CONNECTION_MAX));
            let shared = Shared {
                numbers: numbers.clone(),
                followed: [Arc::clone(&followed), of_connection],
                calls: Arc::clone(&calls),
                stopped: stop.clone(),
            };
            connections.spawn(connection(stream, seat, shared));
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accepting => {}
        () = numbers::follow(exposed, sender) => {}
        // An error means that the handle is gone, which is the same wish.
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    let ended = async { while connections.join_next().await.is_some() {} };
    if timeout(STOP_MAX, ended).await.is_err() {
        tracing::debug!("the listener for KEDA left calls unfinished");
    }
}

async fn connection(stream: Connection, seat: Seat, shared: Shared) {
    let mut settings = h2::server::Builder::new();
    settings
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(FIELDS_MAX_BYTES)
        .initial_window_size(BODY_MAX_BYTES as u32)
        .max_send_buffer_size(BODY_MAX_BYTES);
    let begun = timeout(BEGIN_MAX, settings.handshake::<_, Bytes>(stream)).await;
    let Ok(Ok(mut connection)) = begun else { return };
    // A client may wait for half a minute before its first call.
    seat.note_begun();
    let pings = connection.ping_pong();
    let alive = async {
        match pings {
            Some(pings) => keep_alive(pings).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(alive);
    let mut stopped = shared.stopped.clone();
    let mut is_stopping = false;
    // Dropped with the connection, which ends the calls.
    let mut calls = JoinSet::new();
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Some(Ok((request, respond))) = accepted else { return };
                calls.spawn(call(request, respond, shared.clone(), seat.request()));
                while calls.try_join_next().is_some() {}
            }
            _ = stopped.wait_for(|stop| *stop), if !is_stopping => {
                is_stopping = true;
                connection.graceful_shutdown();
            }
            () = &mut alive => return,
        }
    }
}

/// Pings the client until it does not answer.
async fn keep_alive(mut pings: PingPong) {
    loop {
        sleep(PING_EVERY).await;
        if !matches!(timeout(PONG_MAX, pings.ping(Ping::opaque())).await, Ok(Ok(_))) {
            return;
        }
    }
}

/// Serves one call. What fails in between is the end of the connection or of the stream.
/// `_working` counts it for its connection, which is not evicted meanwhile.
async fn call(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    shared: Shared,
    _working: Working,
) {
    let answer = if let Ok(_permit) = Arc::clone(&shared.calls).try_acquire_owned() {
        answer(request, &shared).await
    } else {
        let message = format!("more than {CALLS_MAX} calls");
        Err(Refusal::Grpc(Status::new(Code::ResourceExhausted, message)))
    };
    let answered = match answer {
        Ok(Answer::Once(message)) => once(&mut respond, message),
        Ok(Answer::Stream(target)) => match follow_permits(&shared) {
            Ok(permits) => follow(&mut respond, &target, shared, permits).await,
            Err(status) => fail(&mut respond, &status),
        },
        Err(Refusal::Grpc(status)) => fail(&mut respond, &status),
        Err(Refusal::Http(code)) => {
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
            respond.send_response(response, true).map(drop)
        }
    };
    if let Err(error) = answered {
        tracing::debug!(%error, "a call of KEDA ended early");
    }
}

/// Returns what a call that follows a number holds.
fn follow_permits(shared: &Shared) -> Result<[OwnedSemaphorePermit; 2], Status> {
    let [of_all, of_connection] = &shared.followed;
    let permit = |of: &Arc<Semaphore>, max: usize, on: &str| {
        Arc::clone(of).try_acquire_owned().map_err(|_| {
            let message = format!("more than {max} calls of StreamIsActive{on}");
            Status::new(Code::ResourceExhausted, message)
        })
    };
    Ok([
        permit(of_connection, FOLLOWED_OF_CONNECTION_MAX, " on one connection")?,
        permit(of_all, FOLLOWED_MAX, "")?,
    ])
}

async fn answer(request: Request<RecvStream>, shared: &Shared) -> Result<Answer, Refusal> {
    let (head, body) = request.into_parts();
    let field = |name: HeaderName| head.headers.get(name).map(HeaderValue::as_bytes);
    grpc::check(Head {
        method: head.method.as_str().as_bytes(),
        content_type: field(CONTENT_TYPE),
        encoding: field(GRPC_ENCODING),
    })?;
    let method = Method::of(head.uri.path()).map_err(Refusal::Grpc)?;
    // It may have thousands of bytes.
    drop(head);
    let body = timeout(BODY_MAX, collect(body)).await.unwrap_or_else(|_| {
        let message = format!("no whole request within {} s", BODY_MAX.as_secs());
        Err(Status::new(Code::DeadlineExceeded, message))
    });
    let body = body.map_err(Refusal::Grpc)?;
    let message = grpc::message(&body).map_err(Refusal::Grpc)?;
    let numbers = Arc::clone(&shared.numbers.borrow());
    keda::answer(method, message, &numbers).map_err(Refusal::Grpc)
}

/// Returns the whole body, unless it is too long.
async fn collect(mut body: RecvStream) -> Result<Vec<u8>, Status> {
    let mut collected = Vec::new();
    while let Some(data) = body.data().await {
        let cut_off = |_| Status::new(Code::InvalidArgument, "the request is cut off");
        let data = data.map_err(cut_off)?;
        if collected.len() + data.len() > BODY_MAX_BYTES {
            return Err(grpc::too_long());
        }
        collected.extend_from_slice(&data);
        body.flow_control().release_capacity(data.len()).map_err(cut_off)?;
    }
    Ok(collected)
}

fn response() -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    response
}

/// Adds the status that ends a call; `None`: success.
fn put_status(fields: &mut HeaderMap, status: Option<&Status>) {
    let code = status.map_or(0, |status| status.code.number());
    fields.insert(GRPC_STATUS, HeaderValue::from(code));
    let message = status.and_then(|status| HeaderValue::try_from(status.message_field()).ok());
    if let Some(message) = message {
        fields.insert(GRPC_MESSAGE, message);
    }
}

/// Ends a call without a message.
fn fail(respond: &mut SendResponse<Bytes>, status: &Status) -> Result<(), h2::Error> {
    let mut response = response();
    put_status(response.headers_mut(), Some(status));
    respond.send_response(response, true).map(drop)
}

/// Answers with one message.
fn once(respond: &mut SendResponse<Bytes>, message: Vec<u8>) -> Result<(), h2::Error> {
    let mut stream = respond.send_response(response(), false)?;
    stream.send_data(message.into(), false)?;
    end(&mut stream, None)
}

fn end(stream: &mut SendStream<Bytes>, status: Option<&Status>) -> Result<(), h2::Error> {
    let mut fields = HeaderMap::new();
    put_status(&mut fields, status);
    stream.send_trailers(fields)
}

/// Sends whether there should be any server, at once and whenever it changes.
async fn follow(
    respond: &mut SendResponse<Bytes>,
    target: &Target,
    mut shared: Shared,
    _permits: [OwnedSemaphorePermit; 2],
) -> Result<(), h2::Error> {
    let mut stream = respond.send_response(response(), false)?;
    let mut said = None;
    let status = loop {
        let numbers = Arc::clone(&shared.numbers.borrow_and_update());
        match keda::activity(target, &numbers) {
            Ok(active) if active.is_some() && active != said => {
                said = active;
                let Some(active) = active else { continue };
                let sending = timeout(SEND_MAX, send(&mut stream, keda::is_active(active)));
                tokio::select! {
                    sent = sending => {
                        let Ok(sent) = sent else {
                            stream.send_reset(Reason::CANCEL);
                            return Ok(());
                        };
                        if !sent? {
                            return Ok(());
                        }
                    }
                    _ = shared.stopped.wait_for(|stop| *stop) => break stopping(),
                }
            }
            Ok(_) => {}
            Err(status) => break status,
        }
        tokio::select! {
            changed = shared.numbers.changed() => if changed.is_err() {
                break stopping();
            },
            _ = shared.stopped.wait_for(|stop| *stop) => break stopping(),
            // The client has left.
            _ = poll_fn(|cx| stream.poll_reset(cx)) => return Ok(()),
        }
    };
    end(&mut stream, Some(&status))
}

fn stopping() -> Status {
    Status::new(Code::Unavailable, "Weir is stopping")
}

/// Sends a message once the client takes it, so that nothing collects here. Returns whether it was sent.
async fn send(stream: &mut SendStream<Bytes>, message: Vec<u8>) -> Result<bool, h2::Error> {
    stream.reserve_capacity(message.len());
    while stream.capacity() < message.len() {
        match poll_fn(|cx| stream.poll_capacity(cx)).await {
            Some(granted) => drop(granted?),
            None => return Ok(false),
        }
    }
    stream.send_data(message.into(), false)?;
    Ok(true)
}
