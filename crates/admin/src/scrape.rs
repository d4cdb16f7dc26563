//! The listener for other machines: metrics and health checks, nothing else. It changes nothing, so it
//! needs no protection from pages in browsers; everything that it shows, apart from metrics if a token
//! guards them, is public.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use model::{ListenerTls, MetricsListener};
use tokio_rustls::rustls::ServerConfig;

use crate::access::Access;
use crate::context::Context;
use crate::door::Token;
use crate::problem::Problem;
use crate::{Exposed, access, api, guard, serve, side_listener};

pub use crate::side_listener::{Handle, OpenError};

/// The listening socket, and what it requires. Opened while the program may still be root.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    token: Option<Token>,
    tls: Option<Arc<ServerConfig>>,
}

impl Door {
    /// Opens the listener of a configuration, on a socket that another process handed over if there
    /// is one.
    ///
    /// # Errors
    /// The token cannot be read, the certificates cannot be used, or the address cannot be bound.
    pub fn open(asked: &MetricsListener, handed: Option<TcpListener>) -> Result<Door, OpenError> {
        let token = token(asked)?;
        let tls = side_listener::configured(asked.tls.as_ref(), config)?;
        let listener = side_listener::bind(asked.address, handed)?;
        Ok(Door { listener, token, tls })
    }

    /// Checks whether [`Door::open`] would succeed, without binding the address.
    ///
    /// # Errors
    /// As [`Door::open`].
    pub fn check(asked: &MetricsListener) -> Result<(), OpenError> {
        token(asked)?;
        side_listener::configured(asked.tls.as_ref(), config)?;
        Ok(())
    }
}

fn token(asked: &MetricsListener) -> Result<Option<Token>, OpenError> {
    asked.token_file.as_deref().map(Token::read).transpose().map_err(OpenError::Token)
}

fn config(tls: &ListenerTls) -> Result<Arc<ServerConfig>, tls::Mistake> {
    tls::server(tls, &[b"http/1.1"])
}

/// For handing the socket over to another process.
impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Starts the listener on its own thread.
///
/// # Errors
/// The system grants no thread, or no event loop.
pub fn start(door: Door, exposed: Exposed) -> io::Result<Handle> {
    let Door { listener, token, tls } = door;
    side_listener::start("weir-metrics", (listener, tls), config, move |socket, stopped| {
        let app = router(exposed.into_context(stopped.clone()), Access::new(token));
        serve("the listener for metrics", socket, app, stopped)
    })
}

fn router(context: Context, access: Option<Arc<Access>>) -> Router {
    let asks = from_fn_with_state(access, access::require);
    Router::new()
        // Allowed once the token was right.
        .route("/metrics", get(api::metrics).layer(from_fn(guard::note_allowed)).layer(asks))
        .route("/livez", get(async || "alive\n").layer(from_fn(guard::note_allowed)))
        .route("/readyz", get(ready).layer(from_fn(guard::note_allowed)))
        .fallback(nothing_here)
        .method_not_allowed_fallback(api::method_not_allowed)
        .with_state(Arc::new(context))
        .layer(from_fn(api::harden))
}

async fn nothing_here(request: Request) -> Problem {
    let path = request.uri().path();
    let message = format!("nothing is at {path}; here are /metrics, /livez and /readyz");
    Problem::not_found("not_found", message)
}

async fn ready(State(context): State<Arc<Context>>) -> (StatusCode, &'static str) {
    if context.ready.load(Relaxed) {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}
