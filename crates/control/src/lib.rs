//! Control loop: publishes configurations, resolves names, runs health checks, and readmits ejected
//! servers.
//!
//! An I/O shell: one thread with a current-thread runtime, started by [`start`]. `health` decides
//! what is due and what a result means; `decide` chooses servers. Requests never pass through here.

mod comeback;
mod discover;
mod fleet;
pub mod load;
mod order;
mod orderer;
mod probe;
mod register;
mod run;
mod status;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod watch;

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use decide::{Published, Registry, Tier, TierChange};
use gateway::pods::PodSets;
use model::Snapshot;
use tokio::sync::mpsc;
use tokio::sync::watch as latest;

pub use discover::{Discovered, Source, SourceState, TagsState, saved_routes};
pub use discovery::consul::register::CheckStatus;
pub use fleet::{
    DatagramCounts, FleetMember, FleetProblem, FleetState, Gate, Leaving, Loads, OrdersState,
    RatesState, ShownOrder, SlotsState, TicketsState,
};
pub use order::{Confirmed, HandedOrder, NotOrdered};
pub use orderer::Orderer;
pub use register::RegistrationState;
pub use status::{Probed, Status};

use run::{Command, Loop};
use tls::{Challenges, SharedCertificates, SharedTickets};

/// Maximum number of commands that wait for the loop.
const COMMANDS_WAITING_MAX: usize = 16;

/// Maximum time until the thread answers, beyond what its work may take.
const ANSWER_MARGIN: Duration = Duration::from_secs(1);

/// Maximum time for lookups of the system's resolver that are in progress when the thread ends.
const LOOKUPS_END_MAX: Duration = Duration::from_millis(100);

/// Settings of the control thread.
pub struct Options {
    /// Maximum number of concurrent probes; further ones start late. Each holds a descriptor.
    pub probes_running_max: usize,
    /// Called on the control thread when checks have marked a server down, or servers are gone, after
    /// balancing knows it: requests that still wait for them may go elsewhere.
    pub server_down: Box<dyn Fn() + Send>,
    /// Where the servers of sources are saved, for a start while a source does not answer; `None`: nowhere.
    pub state_file: Option<PathBuf>,
    /// The socket on which the fleet's other members are heard, and its address; `None`: bound when it is needed.
    pub fleet: Option<(SocketAddr, UdpSocket)>,
    /// Makes the changes of servers that are ordered for the whole fleet, unless servers may not be changed now.
    pub gate: Gate,
    /// The orders for the whole fleet that the process before this one knew.
    pub orders: Vec<HandedOrder>,
    /// The challenges that the listeners answer.
    pub challenges: Arc<Challenges>,
    /// The certificates that the process obtains by ACME, for the fleet to share.
    pub certificates: Arc<SharedCertificates>,
    /// The Pods of Kubernetes, which are watched elsewhere; `None`: Weir is not connected to Kubernetes.
    pub pods: Option<latest::Receiver<Arc<PodSets>>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            probes_running_max: 1024,
            server_down: Box::new(|| ()),
            state_file: None,
            fleet: None,
            gate: Arc::new(|change| {
                change();
                true
            }),
            orders: Vec::new(),
            challenges: Arc::default(),
            certificates: Arc::default(),
            pods: None,
        }
    }
}

/// The control thread. Dropping it stops the thread without waiting for it.
#[derive(Debug)]
pub struct Control {
    commands: mpsc::Sender<Command>,
    /// What Consul is to show; never lost, unlike a command.
    announced: latest::Sender<Option<CheckStatus>>,
    status: Arc<Status>,
    tickets: Arc<SharedTickets>,
    thread: Option<JoinHandle<()>>,
}

/// The control thread has ended, or does not keep up with its commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable;

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the control thread does not answer")
    }
}

impl std::error::Error for Unavailable {}

/// Starts the control thread and publishes `snapshot`; when this returns, `registry` serves it.
/// Names are still being resolved then: [`Status::wait_resolved`] waits for them.
///
/// # Errors
/// The system cannot create a thread.
pub fn start(
    registry: Arc<Registry>,
    snapshot: Arc<Snapshot>,
    options: Options,
) -> io::Result<Control> {
    let status = Arc::new(Status::default());
    let (commands, received) = mpsc::channel(COMMANDS_WAITING_MAX);
    let (announced, announcements) = latest::channel(None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = status.clone();
    let tickets: Arc<SharedTickets> = Arc::default();
    let for_listeners = Arc::clone(&tickets);
    let thread = std::thread::Builder::new().name("weir-control".into()).spawn(move || {
        let control = Loop::new(registry, options, shared, for_listeners);
        tokio::task::LocalSet::new().block_on(&runtime, control.run(received, announcements));
        runtime.shutdown_timeout(LOOKUPS_END_MAX);
    })?;
    let control = Control { commands, announced, status, tickets, thread: Some(thread) };
    control.publish(snapshot).map_err(io::Error::other)?;
    Ok(control)
}

impl Control {
    /// Starts looking up the names that `snapshot` adds, so that it can be published with their
    /// addresses: [`Status::wait_resolved`] waits for them. Nothing else changes.
    ///
    /// # Errors
    /// The control thread has ended or is overloaded.
    pub fn prepare(&self, snapshot: Arc<Snapshot>) -> Result<(), Unavailable> {
        let (reply, begun) = std::sync::mpsc::sync_channel(1);
        let command = Command::Prepare(snapshot, reply);
        self.commands.try_send(command).map_err(|_| Unavailable)?;
        begun.recv().map_err(|_| Unavailable)
    }

    /// Publishes a checked configuration, and updates probes and names to match. The state of
    /// servers that stay is kept. Blocks until it is published (not until names are resolved),
    /// which needs no network.
    ///
    /// # Errors
    /// The control thread has ended or is overloaded.
    pub fn publish(&self, snapshot: Arc<Snapshot>) -> Result<Arc<Published>, Unavailable> {
        let (reply, published) = std::sync::mpsc::sync_channel(1);
        let command = Command::Publish(snapshot, reply);
        self.commands.try_send(command).map_err(|_| Unavailable)?;
        published.recv().map_err(|_| Unavailable)
    }

    /// Saves what the next process needs of sources, and waits until that is written. For an upgrade.
    ///
    /// # Errors
    /// The control thread has ended or is overloaded.
    pub fn save(&self) -> Result<(), Unavailable> {
        let (reply, saved) = std::sync::mpsc::sync_channel(1);
        self.commands.try_send(Command::Save(reply)).map_err(|_| Unavailable)?;
        saved.recv().map_err(|_| Unavailable)
    }

    /// Returns what listeners seal session tickets with: the fleet's keys, if it shares some.
    pub fn tickets(&self) -> Arc<SharedTickets> {
        Arc::clone(&self.tickets)
    }

    /// Returns what makes orders for the whole fleet.
    pub fn orderer(&self) -> Orderer {
        Orderer::new(self.commands.downgrade())
    }

    /// Returns the orders for the whole fleet that this process knows, for the one that takes its place.
    ///
    /// # Errors
    /// The control thread has ended or is overloaded.
    pub fn orders(&self) -> Result<Vec<HandedOrder>, Unavailable> {
        let (reply, orders) = std::sync::mpsc::sync_channel(1);
        self.commands.try_send(Command::Orders(reply)).map_err(|_| Unavailable)?;
        orders.recv().map_err(|_| Unavailable)
    }

    /// Joins the fleet and registers the listeners in Consul, as ready or not, or reports the change: this process
    /// serves. Returns at once.
    pub fn announce(&self, is_ready: bool) {
        let status = if is_ready { CheckStatus::Passing } else { CheckStatus::Critical };
        self.announced.send_replace(Some(status));
    }

    /// Leaves the fleet and removes the listeners from Consul, and waits for that, for `max` at most.
    ///
    /// # Errors
    /// The control thread has ended or is overloaded.
    pub fn deregister(&self, max: Duration) -> Result<(), Unavailable> {
        let (reply, removed) = std::sync::mpsc::sync_channel(1);
        self.commands.try_send(Command::Deregister(max, reply)).map_err(|_| Unavailable)?;
        removed.recv_timeout(max + ANSWER_MARGIN).map_err(|_| Unavailable)
    }

    /// Reports no more to Consul and sends nothing to the fleet, where another process takes this one's place, and
    /// waits until that is so: a second for requests in flight.
    ///
    /// # Errors
    /// The control thread has ended or is overloaded.
    pub fn hand_over(&self) -> Result<(), Unavailable> {
        let (reply, ended) = std::sync::mpsc::sync_channel(1);
        self.commands.try_send(Command::HandOver(reply)).map_err(|_| Unavailable)?;
        ended.recv_timeout(register::HANDED_OVER_MAX + ANSWER_MARGIN).map_err(|_| Unavailable)
    }

    /// Returns what the admin API shows about probes, names and sources.
    pub fn status(&self) -> Arc<Status> {
        self.status.clone()
    }

    /// Returns whether the thread is running. Without it no server's health changes.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Stops probes and lookups and waits for the thread.
    pub fn shutdown(mut self) {
        // Full or closed: then dropping the sender below ends the loop as well.
        let _ = self.commands.try_send(Command::Stop);
        let thread = self.thread.take();
        drop(self);
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the control thread panicked");
        }
    }
}

/// Logs that a service failed over to other servers (another zone, backups), or back.
fn log_tier(change: &TierChange) {
    let (service, from, to) = (&change.service, change.from.as_str(), change.to.as_str());
    let (why, evidence) = (change.reason.as_str(), change.reason.text());
    let (eligible, servers) = (change.eligible, change.total);
    if change.to == Tier::Nobody {
        tracing::error!(%service, from, to, why, evidence, eligible, servers, "service has no server");
    } else if change.from == Tier::Nobody {
        tracing::info!(%service, from, to, why, evidence, eligible, servers, "service has servers again");
    } else if change.to > change.from {
        tracing::warn!(%service, from, to, why, evidence, eligible, servers, "service is failing over");
    } else {
        tracing::info!(%service, from, to, why, evidence, eligible, servers, "service has recovered");
    }
}
