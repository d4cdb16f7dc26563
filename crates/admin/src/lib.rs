//! The admin API: metrics, the state of services and servers, the probe plan, causes, and operations
//! that drain a server, change its weight or reload the configuration. Also pushes metrics to statsd
//! and graphite ([`push`]).
//!
//! It runs on its own thread and runtime, so that API clients never slow down a request. It is served
//! only to this machine ([`Door`]), with a token if one is configured. Its data come from `decide`
//! (services), `observe` (metrics) and the caller's [`Sources`].

mod access;
mod api;
mod bounded;
mod context;
mod door;
mod explain_route;
pub mod external_metrics;
mod feed;
mod gather;
mod guard;
mod handshake;
pub mod keda;
mod not_ordered;
mod numbers;
mod page;
mod problem;
pub mod process;
pub mod push;
pub mod scrape;
mod side_listener;
mod switches;
#[cfg(test)]
mod testing;
mod ui;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use admin_api::changes::Change;
use admin_api::checks::Plan;
use admin_api::findings::Findings;
use admin_api::fleet::{Fleet, FleetConfirmation};
use admin_api::published::PublishedRoutes;
use admin_api::receipt;
use admin_api::services::{ServiceSource, WantedServers};
use admin_api::status::{Acme, Kubernetes, Registration};
use decide::Registry;
use history::History;
use model::{Address, Snapshot};
use observe::exposition::protobuf::MetricFamily;
use observe::exposition::{
    BudgetGauges, KeySetGauges, ProbeGauges, ReloadGauges, SourcesGauges, TelemetryGauges,
};
use observe::{InFlightFilter, InFlightReport};
use orders::FleetOrder;
use os::unix_socket::SocketFile;
use serde_json::Value;
use tokio::sync::watch;

pub use door::{Door, Listener, NotLoopback, OpenError, Token, TokenError, check_address};
pub use explain_route::{RouteQuery, explain_route};
pub use not_ordered::NotOrdered;
pub use switches::Switches;

/// How long requests under way may take once the API is to stop.
const STOP_MAX: Duration = Duration::from_secs(1);

/// What is shown, and where it is found.
#[derive(Clone)]
pub struct Exposed {
    /// Services and servers as they live.
    pub registry: Arc<Registry>,
    /// What is counted.
    pub counters: Arc<observe::Registry>,
    /// What others know.
    pub sources: Sources,
    /// Whether new work is taken: false while starting and while draining.
    pub ready: Arc<AtomicBool>,
    /// Worker threads at work.
    pub workers: usize,
    /// The program's version.
    pub version: &'static str,
}

/// Sets the state of servers at all members of the fleet.
pub type FleetOrderer =
    Arc<dyn Fn(FleetOrder) -> Result<FleetConfirmation, NotOrdered> + Send + Sync>;

/// Asks another part of the program for something to show.
pub type Source<T> = Arc<dyn Fn() -> T + Send + Sync>;

/// What the API shows and does through others. What is `None` is not there: its route says so.
#[derive(Clone)]
pub struct Sources {
    /// The probe plan, for `/api/v1/checks`.
    pub plan: Source<Plan>,
    /// A configuration with every default filled in, for `/api/v1/configuration`.
    pub configuration: Arc<dyn Fn(&Snapshot) -> Value + Send + Sync>,
    /// Probes by address, for `/metrics`.
    pub probes: Source<Vec<ProbeGauges>>,
    /// Client connections that each worker serves.
    pub worker_connections: Option<Source<Vec<u64>>>,
    /// The memory for request bodies that wait for a server.
    pub request_buffers: Option<Source<BudgetGauges>>,
    /// The memory for compressing responses.
    pub compression: Option<Source<BudgetGauges>>,
    /// Memory for the bodies of copies of requests.
    pub mirrors: Option<Source<BudgetGauges>>,
    /// Key sets that are fetched.
    pub key_sets: Option<Source<Vec<KeySetGauges>>>,
    /// Kept connections that wait for a request, of all workers together, by server.
    pub idle_connections: Option<Source<HashMap<Address, u32>>>,
    /// Requests and connections under way. May take its time: it is called on a thread that
    /// nothing else waits for.
    pub in_flight: Option<Arc<dyn Fn(InFlightFilter) -> InFlightReport + Send + Sync>>,
    /// Reloads the configuration; the receipt says what changed. May take its time, too, and
    /// is never called twice at once.
    pub reload: Option<Source<Result<receipt::Reload, ReloadError>>>,
    /// Lets a new process take over; the receipt says which.
    pub upgrade: Option<Source<Result<receipt::Upgrade, ReloadError>>>,
    /// The last reloads' receipts, for `/api/v1/reloads`.
    pub reloads: Option<Source<receipt::Reloads>>,
    /// What the doctor found, for `/api/v1/findings`.
    pub findings: Option<Source<Findings>>,
    /// The history of traffic, for `/api/v1/traffic` and `/api/v1/history`.
    pub history: Option<Arc<Mutex<History>>>,
    /// What has changed, the latest first, for `/api/v1/changes`.
    pub changes: Option<Source<Vec<Change>>>,
    /// How reloads ended, for `/metrics`.
    pub reload_gauges: Option<Source<ReloadGauges>>,
    /// What the collector was sent, for `/metrics`.
    pub telemetry: Option<Source<Vec<TelemetryGauges>>>,
    /// The sources that services take their servers from, by service, for `/api/v1/services`.
    pub server_sources: Option<Source<HashMap<Arc<str>, ServiceSource>>>,
    /// The same, for `/metrics`.
    pub server_source_gauges: Option<Source<SourcesGauges>>,
    /// The entries of listeners in Consul, by listener, for `/api/v1/status`.
    pub registrations: Option<Source<HashMap<Arc<str>, Registration>>>,
    /// The routes that services publish in Consul's tags, for `/api/v1/routes/published`.
    pub published_routes: Option<Source<PublishedRoutes>>,
    /// The fleet of balancers; `None`: it belongs to none.
    pub fleet: Option<Source<Option<Fleet>>>,
    /// Sets states of servers at all members of the fleet and waits up to a few seconds for their confirmations. Blocks.
    /// `None`: this process does not support it.
    pub fleet_order: Option<FleetOrderer>,
    /// Certificates by ACME, for `/api/v1/status`.
    pub acme: Option<Source<Option<Acme>>>,
    /// The connection to Kubernetes, for `/api/v1/status` and `/metrics`; `None`: there is none.
    pub kubernetes: Option<Source<Kubernetes>>,
    /// How many servers services should have, by service.
    pub wanted_servers: Option<Source<HashMap<Arc<str>, WantedServers>>>,
    /// Whether servers may be changed now.
    pub switches: Switches,
}

/// Nothing to show.
impl Default for Sources {
    fn default() -> Sources {
        Sources {
            plan: Arc::new(Plan::default),
            configuration: Arc::new(|_| Value::Null),
            probes: Arc::new(Vec::new),
            worker_connections: None,
            request_buffers: None,
            compression: None,
            mirrors: None,
            key_sets: None,
            idle_connections: None,
            in_flight: None,
            reload: None,
            upgrade: None,
            reloads: None,
            findings: None,
            history: None,
            changes: None,
            reload_gauges: None,
            telemetry: None,
            server_sources: None,
            server_source_gauges: None,
            registrations: None,
            published_routes: None,
            fleet: None,
            fleet_order: None,
            acme: None,
            kubernetes: None,
            wanted_servers: None,
            switches: Switches::default(),
        }
    }
}

/// Why a configuration was not loaded. The old one serves on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadError {
    /// The file holds mistakes, or asks for what a running process cannot change: what is wrong,
    /// for people.
    Refused(String),
    /// It could not be done now: why.
    Failed(String),
}

impl Exposed {
    /// `stopped` becomes true when the listener is to stop.
    fn into_context(self, stopped: watch::Receiver<bool>) -> context::Context {
        context::Context {
            exposed: self,
            reloading: tokio::sync::Mutex::new(()),
            stopped,
            feed: feed::Feed::new(),
        }
    }

    /// Returns all metrics at this moment.
    pub fn metrics(&self) -> Vec<MetricFamily> {
        gather::families(self, os::clock::now())
    }
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReloadError::Refused(why) | ReloadError::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ReloadError {}

/// The running API.
#[derive(Debug)]
pub struct Handle {
    address: Address,
    file: Option<SocketFile>,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Handle {
    /// Where it listens, with its real port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Stops accepting, lets requests under way finish (for a second at most), and returns when
    /// its thread has ended. Removes the Unix socket's file, unless another process listens on it.
    pub fn stop(self) {
        self.stop.send_replace(true);
        if self.thread.join().is_err() {
            tracing::error!("the admin API's thread panicked");
        }
        if let Some(Err(error)) = self.file.map(SocketFile::remove_if_unused) {
            tracing::debug!(%error, address = %self.address, "the socket's file stays");
        }
    }
}

/// Starts the API on its own thread. Fails on a listener that is not on loopback
/// ([`check_address`] tells before binding) and when the system grants no thread.
///
/// # Errors
/// The listener is not on loopback, or the system grants no thread.
pub fn start(door: Door, exposed: Exposed) -> io::Result<Handle> {
    let (listener, token) = door.into_parts();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let inside = runtime.enter();
    let (address, port, socket, file) = match listener {
        Listener::Tcp(listener) => {
            let address = listener.local_addr()?;
            check_address(address)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            listener.set_nonblocking(true)?;
            let socket = bounded::Socket::Tcp(tokio::net::TcpListener::from_std(listener)?);
            (Address::Ip(address), Some(address.port()), socket, None)
        }
        Listener::Unix(socket) => {
            let (listener, file) = socket.into_parts();
            listener.set_nonblocking(true)?;
            let socket = bounded::Socket::Unix(tokio::net::UnixListener::from_std(listener)?);
            (Address::Unix(file.path()), None, socket, Some(file))
        }
    };
    drop(inside);
    let (stop, stopped) = watch::channel(false);
    let access = access::Access::new(token);
    let app = api::router(exposed.into_context(stopped.clone()), port, access);
    let thread = std::thread::Builder::new()
        .name("weir-admin".to_owned())
        .spawn(move || runtime.block_on(serve("the admin API", socket, app, stopped)))?;
    Ok(Handle { address, file, stop, thread })
}

/// Serves requests until it shall stop. `name` is what the listener is, for the log.
async fn serve(
    name: &'static str,
    socket: bounded::Socket,
    app: axum::Router,
    stopped: watch::Receiver<bool>,
) {
    let stop_requested = |mut stopped: watch::Receiver<bool>| async move {
        // An error means that the handle is gone, which is the same wish.
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    let until_stopped = stop_requested(stopped.clone());
    let app = app.into_make_service_with_connect_info::<bounded::Seat>();
    let serving =
        axum::serve(bounded::Bounded::new(socket, name), app).with_graceful_shutdown(until_stopped);
    let too_long = async {
        stop_requested(stopped).await;
        tokio::time::sleep(STOP_MAX).await;
    };
    tokio::select! {
        result = serving => if let Err(error) = result {
            tracing::error!(%error, "{name} ended");
        },
        () = too_long => tracing::debug!("{name} left requests unfinished"),
    }
}
