//! A listener for other machines that is not for clients of services: its socket, its certificates, its thread.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use model::ListenerTls;
use os::listen::ListenError;
use tokio::sync::watch;
use tokio_rustls::rustls::ServerConfig;

use crate::bounded::Socket;
use crate::door::TokenError;

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

/// How certificates become what rustls uses.
pub(crate) type Configure = fn(&ListenerTls) -> Result<Arc<ServerConfig>, tls::Mistake>;

/// Prepares certificates for connections.
pub(crate) fn configured(
    tls: Option<&ListenerTls>,
    configure: Configure,
) -> Result<Option<Arc<ServerConfig>>, OpenError> {
    let configured = tls.map(configure).transpose();
    configured.map_err(|mistake| OpenError::Tls(mistake.message))
}

/// Binds an address, unless another process handed its socket over.
pub(crate) fn bind(
    address: SocketAddr,
    handed: Option<TcpListener>,
) -> Result<TcpListener, OpenError> {
    match handed {
        Some(listener) => Ok(listener),
        None => Ok(os::listen::bind(address, None, false).map_err(OpenError::Listen)?.listener),
    }
}

/// The running listener.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    tls: watch::Sender<Option<Arc<ServerConfig>>>,
    configure: Configure,
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
        let Some(new) = configured(Some(tls), self.configure)? else { return Ok(()) };
        self.tls.send_if_modified(|current| current.as_mut().map(|old| *old = new).is_some());
        Ok(())
    }

    /// Stops accepting, lets requests under way finish, and returns when its thread has ended.
    pub fn stop(self) {
        self.stop.send_replace(true);
        if self.thread.join().is_err() {
            tracing::error!(address = %self.address, "the thread of this listener panicked");
        }
    }
}

/// Starts the listener on its own thread with this name. `serve` gets its socket, and when to stop.
///
/// # Errors
/// The system grants no thread, or no event loop.
pub(crate) fn start<F: Future<Output = ()>>(
    name: &str,
    (listener, tls): (TcpListener, Option<Arc<ServerConfig>>),
    configure: Configure,
    serve: impl FnOnce(Socket, watch::Receiver<bool>) -> F + Send + 'static,
) -> io::Result<Handle> {
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let inside = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener)?;
    drop(inside);
    let (tls, renewed) = watch::channel(tls);
    let (stop, stopped) = watch::channel(false);
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || runtime.block_on(serve(Socket::Tls(listener, renewed), stopped)))?;
    Ok(Handle { address, stop, tls, configure, thread })
}
