//! The admin API: metrics, what every service and server is doing, the probe plan, and the switch
//! that puts a server aside.
//!
//! It runs on a thread and a runtime of its own, so that nobody who looks slows down a request. It
//! has no authentication yet and therefore serves loopback only. What it shows is made elsewhere:
//! in `decide` (services), `observe` (metrics) and by whoever starts it (probe plan, configuration).

mod api;
mod bounded;
mod guard;
mod metrics;
mod page;
mod problem;
mod process;
mod services;

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use decide::Registry;
use model::Snapshot;
use observe::exposition::ProbeGauges;
use serde_json::Value;
use tokio::sync::watch;

/// How long requests under way may take once the API is told to stop.
const STOP_MAX: Duration = Duration::from_secs(1);

/// What the API listens on and where it finds what it shows.
pub struct Options {
    /// A bound socket on a loopback address.
    pub listener: TcpListener,
    /// Services and servers as they live.
    pub registry: Arc<Registry>,
    /// What is counted.
    pub counters: Arc<observe::Registry>,
    /// The probe plan, for `/api/v1/checks`.
    pub plan: Arc<dyn Fn() -> Value + Send + Sync>,
    /// A configuration with every default filled in, for `/api/v1/configuration`.
    pub configuration: Arc<dyn Fn(&Snapshot) -> Value + Send + Sync>,
    /// Probes by address, for `/metrics`.
    pub probes: Arc<dyn Fn() -> Vec<ProbeGauges> + Send + Sync>,
    /// Whether new work is taken: false while starting and while draining.
    pub ready: Arc<AtomicBool>,
    /// Worker threads at work.
    pub workers: usize,
    /// The program's version.
    pub version: &'static str,
}

/// The running API.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Handle {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, lets requests under way finish (for a second at most), and returns when
    /// its thread has ended.
    pub fn stop(self) {
        self.stop.send_replace(true);
        if self.thread.join().is_err() {
            tracing::error!("the admin API's thread ended by a panic");
        }
    }
}

/// An address that the API must not listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotLoopback(SocketAddr);

impl fmt::Display for NotLoopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not a loopback address, and the admin API has no authentication yet; use \
             127.0.0.1:{} and an SSH tunnel",
            self.0,
            self.0.port()
        )
    }
}

impl std::error::Error for NotLoopback {}

/// Whether the API may listen on `address`: only loopback, as long as it has no authentication.
pub fn check_address(address: SocketAddr) -> Result<(), NotLoopback> {
    if address.ip().to_canonical().is_loopback() { Ok(()) } else { Err(NotLoopback(address)) }
}

/// Starts the API on a thread of its own. Fails on a listener that is not on loopback
/// ([`check_address`] tells before binding) and when the system grants no thread.
pub fn start(options: Options) -> io::Result<Handle> {
    let address = options.listener.local_addr()?;
    check_address(address).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    options.listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(options.listener.try_clone()?)?
    };
    let (stop, stopped) = watch::channel(false);
    let app = api::router(options, address.port());
    let thread = std::thread::Builder::new()
        .name("weir-admin".to_owned())
        .spawn(move || runtime.block_on(serve(listener, app, stopped)))?;
    Ok(Handle { address, stop, thread })
}

async fn serve(
    listener: tokio::net::TcpListener,
    app: axum::Router,
    stopped: watch::Receiver<bool>,
) {
    let told = |mut stopped: watch::Receiver<bool>| async move {
        // An error means that the handle is gone, which is the same wish.
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    let until_told = told(stopped.clone());
    let serving =
        axum::serve(bounded::Bounded::new(listener), app).with_graceful_shutdown(until_told);
    let too_long = async {
        told(stopped).await;
        tokio::time::sleep(STOP_MAX).await;
    };
    tokio::select! {
        result = serving => if let Err(error) = result {
            tracing::error!(%error, "the admin API ended");
        },
        () = too_long => tracing::debug!("the admin API left requests unfinished"),
    }
}
