//! The listener for other machines: metrics and health checks, nothing else. It changes nothing, so it
//! needs no protection from pages in browsers; everything that it shows, apart from metrics if a token
//! guards them, is public.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use model::{ListenerTls, MetricsListener};
use os::listen::ListenError;
use tokio::sync::watch;
use tokio_rustls::rustls::ServerConfig;

use crate::access::Access;
use crate::bounded::Socket;
use crate::context::Context;
use crate::door::{Token, TokenError};
use crate::problem::Problem;
use crate::{Exposed, access, api, guard, serve};

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
        let tls = asked.tls.as_ref().map(config).transpose()?;
        let listener = match handed {
            Some(listener) => listener,
            None => {
                os::listen::bind(asked.address, None, false).map_err(OpenError::Listen)?.listener
            }
        };
        Ok(Door { listener, token, tls })
    }

    /// Checks whether [`Door::open`] would succeed, without binding the address.
    ///
    /// # Errors
    /// As [`Door::open`].
    pub fn check(asked: &MetricsListener) -> Result<(), OpenError> {
        token(asked)?;
        asked.tls.as_ref().map(config).transpose()?;
        Ok(())
    }
}

fn token(asked: &MetricsListener) -> Result<Option<Token>, OpenError> {
    asked.token_file.as_deref().map(Token::read).transpose().map_err(OpenError::Token)
}

fn config(tls: &ListenerTls) -> Result<Arc<ServerConfig>, OpenError> {
    tls::server(tls, &[b"http/1.1"]).map_err(|mistake| OpenError::Tls(mistake.message))
}

/// For handing the socket over to another process.
impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Why the listener could not be opened. Prints as one line.
#[derive(Debug)]
pub enum OpenError {
    /// The address cannot be bound.
    Listen(ListenError),
    /// The file does not contain a valid token.
    Token(TokenError),
    /// The certificates cannot be used.
    Tls(String),
}

impl OpenError {
    /// Returns whether another process listens there.
    pub fn is_address_in_use(&self) -> bool {
        matches!(self, OpenError::Listen(error) if error.is_address_in_use())
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Listen(error) => error.fmt(f),
            OpenError::Token(error) => error.fmt(f),
            OpenError::Tls(error) => f.write_str(error),
        }
    }
}

impl std::error::Error for OpenError {}

/// The running listener.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    tls: watch::Sender<Option<Arc<ServerConfig>>>,
    thread: JoinHandle<()>,
}

impl Handle {
    /// Returns where it listens, with its real port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Uses these certificates for connections from now on. A listener without TLS stays so.
    ///
    /// # Errors
    /// The certificates cannot be used; the old ones stay.
    pub fn renew(&self, tls: &ListenerTls) -> Result<(), OpenError> {
        let new = config(tls)?;
        self.tls.send_if_modified(|current| current.as_mut().map(|old| *old = new).is_some());
        Ok(())
    }

    /// Stops accepting, lets requests under way finish, and returns when its thread has ended.
    pub fn stop(self) {
        self.stop.send_replace(true);
        if self.thread.join().is_err() {
            tracing::error!("the thread of the metrics listener panicked");
        }
    }
}

/// Starts the listener on a thread of its own.
///
/// # Errors
/// The system grants no thread, or no event loop.
pub fn start(door: Door, exposed: Exposed) -> io::Result<Handle> {
    let Door { listener, token, tls } = door;
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let inside = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener)?;
    drop(inside);
    let (tls, renewed) = watch::channel(tls);
    let (stop, stopped) = watch::channel(false);
    let app = router(exposed.into_context(stopped.clone()), Access::new(token));
    let thread = std::thread::Builder::new()
        .name("weir-metrics".to_owned())
        .spawn(move || runtime.block_on(serve(Socket::Tls(listener, renewed), app, stopped)))?;
    Ok(Handle { address, stop, tls, thread })
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
