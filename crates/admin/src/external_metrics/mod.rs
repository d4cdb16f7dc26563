//! The listener for the external metrics API of Kubernetes. [`autoscaler`] answers; the API server says who may ask
//! ([`Delegate`]).

mod admission;

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use autoscaler::access::{FrontProxy, Review, Verdict};
use autoscaler::external::{self, Asked, DISCOVERY_TYPE, Discovery, PATH_MAX_BYTES};
use axum::Router;
use axum::extract::{ConnectInfo, Query, Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use model::{AutoscalerListener, ListenerTls};
use observe::TimestampCache;
use serde_json::Value;
use tokio::sync::watch;
use tokio_rustls::rustls::ServerConfig;

use crate::bounded::{Seat, Socket};
use crate::numbers::{self, Numbers};
use crate::side_listener::{self, Handle, OpenError};
use crate::{Exposed, api, serve as serve_http};
use admission::Admission;

/// Asks the API server. The error says why there is no answer.
pub type Ask = Arc<
    dyn Fn(Review) -> Pin<Box<dyn Future<Output = Result<Verdict, String>> + Send>> + Send + Sync,
>;

/// The API server, to which authentication and authorization are delegated.
#[derive(Clone)]
pub struct Delegate {
    /// Asks it a question.
    pub ask: Ask,
    /// How its front proxy authenticates, as last read; `None`: unknown.
    pub front_proxy: watch::Receiver<Option<Arc<FrontProxy>>>,
}

/// The listening socket. Opened while the program may still be root.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
}

impl Door {
    /// Opens the listener of a configuration.
    ///
    /// # Errors
    /// The certificates cannot be used, or the address cannot be bound.
    pub fn open(asked: &AutoscalerListener) -> Result<Door, OpenError> {
        let tls = side_listener::configured(asked.tls.as_ref(), config)?;
        Ok(Door { listener: side_listener::bind(asked.address, None)?, tls })
    }

    /// Checks whether [`Door::open`] would succeed, without binding the address.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub fn check(asked: &AutoscalerListener) -> Result<(), OpenError> {
        side_listener::configured(asked.tls.as_ref(), config).map(drop)
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

fn config(tls: &ListenerTls) -> Result<Arc<ServerConfig>, tls::Mistake> {
    tls::server_asking_any_client(tls, &[b"http/1.1"])
}

/// Starts the listener on its own thread.
///
/// # Errors
/// The system grants no thread, or no event loop.
pub fn start(door: Door, exposed: Exposed, delegate: Delegate) -> io::Result<Handle> {
    let Door { listener, tls } = door;
    let work = move |socket, stopped| serve(socket, exposed, delegate, stopped);
    side_listener::start("weir-external", (listener, tls), config, work)
}

struct Shared {
    exposed: Exposed,
    numbers: watch::Receiver<Numbers>,
    admission: Admission,
}

async fn serve(
    socket: Socket,
    exposed: Exposed,
    delegate: Delegate,
    stopped: watch::Receiver<bool>,
) {
    let (sender, numbers) = watch::channel(Arc::new(numbers::read(&exposed)));
    let admission = Admission::new(delegate);
    let shared = Shared { exposed: exposed.clone(), numbers, admission };
    let app =
        Router::new().fallback(answer).with_state(Arc::new(shared)).layer(from_fn(api::harden));
    let serving = serve_http("the listener for external metrics", socket, app, stopped);
    tokio::pin!(serving);
    tokio::select! {
        () = &mut serving => return,
        // It ends when nothing reads the numbers any more.
        () = numbers::follow(exposed, sender) => {}
    }
    serving.await;
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let seat = head.extensions.get::<ConnectInfo<Seat>>().map(|ConnectInfo(seat)| seat.clone());
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return failure(405, "only GET is allowed");
    }
    let path = head.uri.path();
    // Before the API server is asked, since its answers are remembered by the path.
    if path.len() > PATH_MAX_BYTES {
        return not_found();
    }
    let asked = external::asked(path);
    // Until the answer is there, so that the connection is not evicted.
    let working = match (asked.wish(path), &seat) {
        (None, _) => {
            seat.iter().for_each(Seat::note_public);
            None
        }
        (Some(wish), Some(seat)) => match shared.admission.admit(&head.headers, seat, wish).await {
            Ok(working) => Some(working),
            Err((code, message)) => return failure(code, &message),
        },
        // All connections have one.
        (Some(_), None) => return failure(401, "the connection is unknown"),
    };
    let response = match asked {
        Asked::Health => health(path, &shared.exposed),
        Asked::Discovery(of) => discovery(of, &head.headers),
        Asked::Metric { namespace, name } => values((namespace, name), &head.uri, &shared),
        Asked::Nothing => not_found(),
    };
    drop(working);
    response
}

fn health(path: &str, exposed: &Exposed) -> Response {
    if path == "/readyz" && !exposed.ready.load(Relaxed) {
        return (StatusCode::SERVICE_UNAVAILABLE, "not ready").into_response();
    }
    "ok".into_response()
}

fn discovery(of: Discovery, fields: &HeaderMap) -> Response {
    let accepted = fields.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut accepted = accepted.flat_map(|value| value.split(','));
    let is_aggregated = of == Discovery::Groups
        && accepted.any(|one| {
            one.contains("g=apidiscovery.k8s.io")
                && one.contains("v=v2;")
                && one.trim_start().starts_with("application/json")
        });
    let media_type = if is_aggregated { DISCOVERY_TYPE } else { "application/json" };
    json(StatusCode::OK, &external::discovery(of, is_aggregated), media_type)
}

fn values(metric: (&str, &str), uri: &Uri, shared: &Shared) -> Response {
    let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else {
        return failure(400, "the query cannot be decoded");
    };
    let mut selectors = pairs.iter().filter(|(key, _)| key == "labelSelector");
    let selector = selectors.next().map(|(_, value)| value.as_str());
    if selectors.next().is_some() {
        return failure(400, "there are several labelSelector");
    }
    let numbers = Arc::clone(&shared.numbers.borrow());
    let time = TimestampCache::default().at(os::clock::wall());
    let time = String::from_utf8_lossy(time.as_bytes());
    match external::values(metric, selector, &numbers, &time) {
        Ok(list) => json(StatusCode::OK, &list, "application/json"),
        Err((code, status)) => json(status_of(code), &status, "application/json"),
    }
}

fn not_found() -> Response {
    failure(404, "the server could not find the requested resource")
}

fn failure(code: u16, message: &str) -> Response {
    json(status_of(code), &external::status(code, message), "application/json")
}

fn status_of(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::FORBIDDEN)
}

fn json(code: StatusCode, value: &Value, media_type: &'static str) -> Response {
    let media_type = HeaderValue::from_static(media_type);
    (code, [(CONTENT_TYPE, media_type)], value.to_string()).into_response()
}
