//! A whole balancer: the order of a start and of a configuration change, top to bottom.
//!
//! Each step is implemented elsewhere; this file contains the order and the reasons for it, and `stop`
//! those of a stop.

mod stop;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use admin_api::changes::Change;
use admin_api::handover;
use config::Diff;
use decide::Published;
use gateway::served::{InForce, Served};
use model::{AccessLog, Address, AffinityKey, PublishedRoute, Snapshot};
use tokio::sync::watch;

use crate::affinity_key;
use crate::certificates::{self, Certificates};
use crate::cluster::Cluster;
use crate::departing::Departing;
use crate::explain_token::ExplainToken;
use crate::exporter::Exporter;
use crate::fixed_settings::FixedSettings;
use crate::fleet_orders;
use crate::garbage::Garbage;
use crate::maintenance;
use crate::management::{Managed, Management, SideListeners};
use crate::not_admitted::SharedNotAdmitted;
use crate::preflight;
use crate::preserved::{Before, Preserved};
use crate::server_states::ServerStates;
use crate::service_manager;
use crate::sockets::{self, Doors, Group, Handed, OpenError, Sockets};
use crate::state_directory;
use crate::traffic_history;

/// How long a start or a reload waits for the first resolution of server names.
pub(crate) const RESOLVE_MAX: Duration = Duration::from_secs(5);

/// What a balancer needs to start: everything that can fail for external reasons is already open.
pub struct StartOptions {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) sockets: Sockets,
    pub(crate) doors: Doors,
    /// What the predecessor knew of servers and maintenance.
    pub(crate) known: Known,
    /// The predecessor's key for affinity cookies.
    pub(crate) affinity_key: Option<AffinityKey>,
    /// The predecessor's ID in `CDN-Loop`; `None`: generate a new one.
    pub(crate) identity: Option<proxy::Identity>,
    /// Published routes that the file does not admit.
    pub(crate) not_admitted: SharedNotAdmitted,
    /// What the admin API shows and does beyond the balancer itself, such as reloads.
    pub(crate) sources: admin::Sources,
}

/// The state that a process takes over from its predecessor.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// `None`: there is no predecessor.
    pub(crate) servers: Option<ServerStates>,
    /// What operators have put into maintenance.
    pub(crate) maintenance: Vec<handover::Maintenance>,
    /// States of servers that are set for the whole fleet.
    pub(crate) orders: Vec<handover::FleetOrder>,
    /// The latest changes.
    pub(crate) changes: Vec<Change>,
}

impl StartOptions {
    /// Opens the sockets of a balancer that does not take over from another process.
    ///
    /// # Errors
    /// Every address that cannot be bound.
    pub fn open(snapshot: Arc<Snapshot>) -> Result<StartOptions, OpenError> {
        let (sockets, doors) = sockets::open(&snapshot, Handed::default())?;
        Ok(StartOptions::with(snapshot, sockets, doors))
    }

    /// Returns how a balancer starts that knows nothing from another process but its sockets.
    fn with(snapshot: Arc<Snapshot>, sockets: Sockets, doors: Doors) -> StartOptions {
        StartOptions {
            snapshot,
            sockets,
            doors,
            known: Known::default(),
            affinity_key: None,
            identity: None,
            not_admitted: SharedNotAdmitted::default(),
            sources: admin::Sources::default(),
        }
    }
}

/// A running balancer.
pub struct Balancer {
    /// Its services, servers and their state.
    pub registry: Arc<decide::Registry>,
    /// Its counters.
    pub counters: Arc<observe::Registry>,
    /// The settings that apply until the process ends.
    started_with: FixedSettings,
    garbage: Garbage,
    identity: proxy::Identity,
    workers: usize,
    sockets: Sockets,
    ready: Arc<AtomicBool>,
    explain_token: ExplainToken,
    control: control::Control,
    proxy: proxy::Handle,
    certificates: Certificates,
    management: Management,
    switches: admin::Switches,
    /// A predecessor that still keeps the listeners' entries in Consul.
    departing: Option<Departing>,
    access: proxy::AccessSink,
    access_writer: proxy::AccessWriter,
    exporter: Exporter,
    /// The connection to Kubernetes, if there is one.
    cluster: Option<Cluster>,
}

/// The result of applying a configuration.
pub(crate) struct Applied {
    /// What changed.
    pub(crate) diff: Diff,
    /// What was preserved.
    pub(crate) preserved: Preserved,
    /// Changed settings that take effect only in a new process.
    pub(crate) waiting: Vec<String>,
    /// The configuration's generation number.
    pub(crate) generation: u64,
    /// When a worker first served by it.
    pub(crate) first_use: Arc<decide::FirstUse>,
}

/// Why a configuration was not applied. Displays as one line per reason.
#[derive(Debug)]
pub(crate) struct Refused {
    lines: Vec<String>,
    /// The listeners that cannot be opened, with their lines, if that is the only reason.
    pub(crate) listeners: BTreeMap<Arc<str>, String>,
}

impl From<Vec<String>> for Refused {
    fn from(lines: Vec<String>) -> Refused {
        Refused { lines, listeners: BTreeMap::new() }
    }
}

impl From<OpenError> for Refused {
    fn from(error: OpenError) -> Refused {
        let OpenError { lines, listeners, in_use: _ } = error;
        let is_all = listeners.len() == lines.len();
        Refused { lines, listeners: if is_all { listeners } else { BTreeMap::new() } }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

impl Balancer {
    /// Starts a balancer on its sockets.
    ///
    /// # Errors
    /// What prevents the start, one line each.
    pub fn start(options: StartOptions) -> Result<Balancer, Vec<String>> {
        Balancer::start_with(options, |_| None)
    }

    /// As [`Balancer::start`]. Before clients are accepted, `with_routes` may return the configuration with the routes
    /// that services publish by then.
    pub(crate) fn start_with(
        options: StartOptions,
        with_routes: impl FnOnce(Arc<Vec<PublishedRoute>>) -> Option<Arc<Snapshot>>,
    ) -> Result<Balancer, Vec<String>> {
        let StartOptions { mut snapshot, mut sockets, doors, mut known, .. } = options;
        let StartOptions { affinity_key, identity, not_admitted, sources, .. } = options;
        let identity = identity.unwrap_or_else(new_identity);
        let workers = sockets::workers(&snapshot);

        // Everything that only root may do comes first.
        let owner = sockets::owner(&snapshot);
        let mut exporter = Exporter::new();
        let (access, access_writer) = start_access_log(&snapshot, owner, &exporter)?;
        let registry = new_registry(&snapshot, owner, affinity_key)?;
        let (explain_token, may_explain) = explanations(&snapshot, doors.admin.as_ref())?;
        let certificates = become_user(&mut snapshot, owner, known.servers.is_some())?;
        let cluster = start_senders(&snapshot, &mut exporter)?;
        sockets.log_shortfalls();

        // Then the configuration comes into force, and probes and lookups start. Clients wait in
        // the listen queue until every name has been looked up.
        let switches = sources.switches.clone();
        let (options, alarm) =
            control_options(&snapshot, &sockets, &sources, (&certificates, &cluster), &mut known)?;
        let control = start_control(&registry, &mut snapshot, with_routes, options, &mut known)?;
        let counters = new_counters(&registry.current());

        let options = proxy::Options {
            registry: Arc::clone(&registry),
            counters: Arc::clone(&counters),
            workers,
            access: access.clone(),
            spans: exporter.telemetry().spans(),
            may_explain,
            identity: identity.clone(),
            challenges: certificates.challenges(),
            tickets: control.tickets(),
        };
        let proxy = start_workers(options, &alarm)?;

        // The API shows everything that exists by now.
        // With Kubernetes, Weir is ready once it serves the Gateways.
        let ready = Arc::new(AtomicBool::new(cluster.is_none()));
        let managed = Managed {
            snapshot: &snapshot,
            registry: &registry,
            counters: &counters,
            control: control.status(),
            orderer: control.orderer(),
            ready: &ready,
            workers,
            in_flight: proxy.in_flight_reader(),
            certificates: certificates.thread(),
            kubernetes: cluster.as_ref().map(|one| (one.status(), one.delegate())),
            earlier: known.changes,
            not_admitted,
            exporter: &exporter,
            sources,
        };
        let management = Management::start(managed, doors)?;

        // Last, since a process that cannot start would take what it has accepted with it: the workers
        // accept the waiting clients. Only descriptors for the workers' sockets can still be missing.
        proxy.apply(sockets.for_proxy(workers)?, &[], os::clock::now());
        announce(&snapshot, workers, &management);
        Ok(Balancer {
            registry,
            counters,
            started_with: FixedSettings::of(&snapshot),
            garbage: Garbage::new(),
            identity,
            workers,
            sockets,
            ready,
            explain_token,
            control,
            proxy,
            certificates,
            management,
            switches,
            departing: None,
            access,
            access_writer,
            exporter,
            cluster,
        })
    }

    /// Returns whether clients can connect to every listener: no file of a Unix socket was removed.
    pub(crate) fn is_reachable(&self) -> bool {
        self.sockets.groups().iter().all(Group::is_reachable)
    }

    /// Registers the listeners in Consul, if they are to be: once `predecessor`, if there is one, has left them to this
    /// process. [`Balancer::tend_registration`] waits for that.
    pub(crate) fn register(&mut self, predecessor: Option<Departing>) {
        self.departing = predecessor;
        if self.departing.is_none() {
            self.control.announce(true);
        }
    }

    /// Registers the listeners if the predecessor has left since the last call. A predecessor that goes on ends this
    /// process instead, which then has registered nothing. Call it often.
    pub(crate) fn tend_registration(&mut self) {
        if self.departing.take_if(|predecessor| predecessor.has_left()).is_some() {
            self.control.announce(true);
        }
    }

    /// Gives the Unix sockets that a predecessor did not have their names: this process serves.
    pub(crate) fn publish_files(&mut self) {
        self.sockets.publish_files_or_log();
    }

    /// Returns how many replaced configurations are still in use.
    pub(crate) fn replaced_configurations(&self) -> usize {
        self.garbage.replaced()
    }

    /// Returns the routes that services publish at present.
    pub(crate) fn published_routes(&self) -> Arc<Vec<PublishedRoute>> {
        self.control.status().published_routes()
    }

    /// Returns what Gateways of Kubernetes serve, as it changes.
    pub(crate) fn gateways(&self) -> Option<watch::Receiver<Arc<Served>>> {
        self.cluster.as_ref().map(Cluster::served)
    }

    /// Returns what Gateways of Kubernetes are to serve now.
    pub(crate) fn served(&self) -> Option<Arc<Served>> {
        self.cluster.as_ref().map(|cluster| Arc::clone(&cluster.served().borrow()))
    }

    /// Notes what is in force of what Gateways serve.
    pub(crate) fn serves_gateways(&self, in_force: InForce) {
        if let Some(cluster) = &self.cluster {
            cluster.in_force(in_force);
            self.ready.store(true, Relaxed);
        }
    }

    /// Applies another configuration completely, or returns what prevents it and changes nothing.
    /// `resolve_max`: how long new names and sources may take.
    pub(crate) fn apply(
        &mut self,
        snapshot: Arc<Snapshot>,
        resolve_max: Duration,
    ) -> Result<Applied, Refused> {
        let before = self.registry.load_full();
        // Everything that can fail comes first: new sockets are bound and files opened, and not
        // used yet.
        let change = self.sockets.prepare(&snapshot, self.workers)?;
        let log = (snapshot.log.access != before.snapshot.log.access)
            .then(|| open_access_log(&snapshot.log.access, None, &self.exporter))
            .transpose()
            .map_err(|error| vec![error.to_string()])?;
        if let Some(otlp) = &snapshot.otlp {
            telemetry::check(otlp).map_err(|error| vec![format!("otlp: {error}")])?;
        }
        let may_explain =
            self.explain_token.of(&snapshot).map_err(|error| vec![error.to_string()])?;
        affinity_key::ensure(&snapshot, &self.registry, None, None).map_err(|line| vec![line])?;
        self.control.prepare(Arc::clone(&snapshot)).map_err(unavailable)?;
        self.proxy.prepare(&snapshot);
        wait_resolved(&self.control, resolve_max);
        let to_preserve = Before::of(&before);
        self.proxy.set_may_explain(may_explain);

        // One pointer is exchanged: requests from here on are served by the new configuration.
        let published = self.control.publish(Arc::clone(&snapshot)).map_err(unavailable)?;
        if let Some(log) = log {
            self.redirect_access_log(log);
        }
        let (added, removed) = self.sockets.adopt(change);
        self.proxy.apply(added, &removed, os::clock::now() + snapshot.drain_max);
        self.sockets.log_shortfalls();

        // Counters no longer in use are dropped.
        configure(&self.counters, &published);
        if before.snapshot.otlp != snapshot.otlp
            && let Err(error) = self.exporter.apply(&snapshot)
        {
            tracing::error!(%error, "nothing is sent to the OpenTelemetry collector; reload again");
        }
        self.management.apply(&before.snapshot, &snapshot, &self.registry, &self.counters);
        let applied = Applied {
            diff: config::diff(&before.snapshot, &snapshot),
            preserved: to_preserve.kept_in(&published, self.proxy.connections()),
            waiting: self.started_with.waiting(&snapshot),
            generation: published.generation,
            first_use: published.first_use(),
        };
        self.garbage.add(before);
        Ok(applied)
    }

    /// Runs the thread that obtains certificates, if it `may` run now, and puts those that it has
    /// obtained into the listeners; their connections stay. Call it often.
    pub(crate) fn tend_certificates(&mut self, may: bool) {
        let before = self.published();
        self.certificates.tend(&before.snapshot, may);
        let Some(renewed) = self.certificates.renewed(&before.snapshot) else { return };
        self.proxy.prepare(&renewed);
        match self.control.publish(renewed) {
            Ok(published) => {
                configure(&self.counters, &published);
                // Nothing is added or removed; listeners follow the new configuration.
                self.proxy.apply(Vec::new(), &[], os::clock::now());
                self.garbage.add(before);
            }
            Err(error) => {
                tracing::error!(%error, "a new certificate takes effect only with a restart");
            }
        }
    }

    /// Frees what reading and replacing configurations has left.
    pub(crate) fn free_garbage(&mut self) {
        self.garbage.free();
    }

    /// Reopens the access log, if it is a file: the old one may have been rotated.
    pub(crate) fn reopen_access_log(&self) {
        let access = self.registry.current().snapshot.log.access.clone();
        if matches!(access, AccessLog::File(_)) {
            match open_access_log(&access, None, &self.exporter) {
                Ok(target) => {
                    if self.redirect_access_log(target) {
                        tracing::info!("the access log was reopened");
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "cannot reopen the access log; writing to the old one");
                }
            }
        }
    }

    /// Returns the configuration in force.
    pub(crate) fn published(&self) -> Arc<Published> {
        self.registry.load_full()
    }

    /// Saves the servers of sources, for the process that takes over.
    pub(crate) fn save_servers(&self) {
        if let Err(error) = self.control.save() {
            tracing::warn!(%error, "the servers of sources are not saved");
        }
    }

    /// Returns the states of servers that are set for the whole fleet, for the process that takes over.
    pub(crate) fn fleet_orders(&self) -> Vec<handover::FleetOrder> {
        let orders = self.control.orders().inspect_err(|error| {
            tracing::warn!(%error, "states of servers for the whole fleet are not handed over");
        });
        fleet_orders::to_handover(orders.unwrap_or_default(), os::clock::now())
    }

    /// Returns the history of traffic, for the process that takes over.
    pub(crate) fn history(&self) -> Vec<u8> {
        traffic_history::lock(&self.management.history).save()
    }

    /// Returns the latest changes, for the process that takes over.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.management.changes.to_handover()
    }

    /// Returns its ID in `CDN-Loop`.
    pub(crate) fn identity(&self) -> &proxy::Identity {
        &self.identity
    }

    /// Returns its sockets.
    pub(crate) fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    /// Returns the switch that holds back operators' changes of servers.
    pub(crate) fn switches(&self) -> &admin::Switches {
        &self.switches
    }

    /// Returns the number of open client connections.
    pub(crate) fn connections(&self) -> usize {
        self.proxy.connections()
    }

    /// Returns whether the file is to be watched.
    pub(crate) fn watches(&self) -> bool {
        self.registry.current().snapshot.reload.watch
    }

    fn redirect_access_log(&self, target: proxy::AccessTarget) -> bool {
        let redirected = self.access.redirect(target);
        if !redirected {
            tracing::error!("the access log's writer is stuck; lines go where they went before");
        }
        redirected
    }
}

/// Returns who may request explanations, now and with later configurations.
fn explanations(
    snapshot: &Snapshot,
    door: Option<&admin::Door>,
) -> Result<(ExplainToken, Option<proxy::MayExplain>), Vec<String>> {
    let token = ExplainToken::new(door);
    let may_explain = token.of(snapshot).map_err(one_line)?;
    Ok((token, may_explain))
}

#[allow(clippy::needless_pass_by_value, reason = "what `map_err` passes")]
fn one_line(error: impl ToString) -> Vec<String> {
    vec![error.to_string()]
}

/// Makes the services and listeners of a configuration those that are counted.
fn configure(counters: &observe::Registry, published: &Published) {
    let services = published.services.iter().map(|service| Arc::clone(service.name()));
    let listeners = published.snapshot.listeners.iter();
    let listeners = listeners.map(|listener| Arc::clone(&listener.name));
    counters.configure(published.generation, services, listeners);
}

/// Returns an ID that no other instance has.
fn new_identity() -> proxy::Identity {
    // Keyed by the system's random numbers; the keys differ from call to call.
    proxy::Identity::new(RandomState::new().hash_one(std::process::id()))
}

/// Returns a registry with the key for affinity cookies, which only root may read.
fn new_registry(
    snapshot: &Snapshot,
    owner: Option<(u32, u32)>,
    key: Option<AffinityKey>,
) -> Result<Arc<decide::Registry>, Vec<String>> {
    let registry = Arc::new(decide::Registry::new());
    affinity_key::ensure(snapshot, &registry, owner, key).map_err(one_line)?;
    Ok(registry)
}

fn new_counters(published: &Published) -> Arc<observe::Registry> {
    let counters = Arc::new(observe::Registry::new());
    configure(&counters, published);
    counters
}

fn start_workers(
    options: proxy::Options,
    alarm: &OnceLock<proxy::Alarm>,
) -> Result<proxy::Handle, Vec<String>> {
    let proxy = proxy::start(options)
        .map_err(|error| vec![format!("cannot start the workers: {error}")])?;
    // From here on, requests that wait for a server that is marked down go elsewhere.
    let _ = alarm.set(proxy.alarm());
    Ok(proxy)
}

/// Returns the settings of the control thread, and where the workers' alarm goes that it raises.
fn control_options(
    snapshot: &Snapshot,
    sockets: &Sockets,
    sources: &admin::Sources,
    (certificates, cluster): (&Certificates, &Option<Cluster>),
    known: &mut Known,
) -> Result<(control::Options, Arc<OnceLock<proxy::Alarm>>), Vec<String>> {
    let alarm = Arc::new(OnceLock::new());
    let switches = sources.switches.clone();
    let orders = std::mem::take(&mut known.orders);
    let options = control::Options {
        gate: Arc::new(move |change| switches.turn(change).is_some()),
        orders: fleet_orders::from_handover(orders, os::clock::now()),
        server_down: ring(&alarm),
        state_file: Some(state_directory::servers_file(snapshot)),
        challenges: certificates.challenges(),
        certificates: certificates.shared(),
        fleet: sockets.copy_of_fleet().map_err(|error| vec![format!("fleet: {error}")])?,
        pods: cluster.as_ref().map(Cluster::pods),
        ..control::Options::default()
    };
    Ok((options, alarm))
}

/// Publishes the configuration with what is known from a predecessor, starts probes and name lookups,
/// and waits for the latter.
fn start_control(
    registry: &Arc<decide::Registry>,
    snapshot: &mut Arc<Snapshot>,
    with_routes: impl FnOnce(Arc<Vec<PublishedRoute>>) -> Option<Arc<Snapshot>>,
    options: control::Options,
    known: &mut Known,
) -> Result<control::Control, Vec<String>> {
    if let Some(states) = &mut known.servers {
        // Before the first probe, so that its verdict starts with the known health.
        let now = os::clock::now();
        states.restore(&registry.publish(Arc::clone(snapshot), now), now);
    }
    let control = control::start(Arc::clone(registry), Arc::clone(snapshot), options)
        .map_err(|error| vec![format!("cannot start the control thread: {error}")])?;
    wait_resolved(&control, RESOLVE_MAX);
    if let Some(with_routes) = with_routes(control.status().published_routes()) {
        *snapshot = publish_routes(with_routes, snapshot, registry, &control)?;
    }
    if let Some(states) = &mut known.servers {
        // Those whose address is only known now.
        states.restore(&registry.load_full(), os::clock::now());
    }
    maintenance::restore(registry, &known.maintenance);
    Ok(control)
}

/// Publishes the configuration with the routes that services publish, in place of `before`. Returns it.
fn publish_routes(
    mut snapshot: Arc<Snapshot>,
    before: &Snapshot,
    registry: &Arc<decide::Registry>,
    control: &control::Control,
) -> Result<Arc<Snapshot>, Vec<String>> {
    certificates::fill(&mut snapshot, Some(before), None).map_err(one_line)?;
    affinity_key::ensure(&snapshot, registry, None, None).map_err(one_line)?;
    control.prepare(Arc::clone(&snapshot)).map_err(unavailable)?;
    wait_resolved(control, RESOLVE_MAX);
    control.publish(Arc::clone(&snapshot)).map_err(unavailable)?;
    Ok(snapshot)
}

fn unavailable(error: control::Unavailable) -> Vec<String> {
    vec![format!("nothing has changed: {error}")]
}

/// Waits for names and sources, so that new servers given by name receive requests from the start if their
/// names resolve in time.
fn wait_resolved(control: &control::Control, max: Duration) {
    if !control.status().wait_resolved(max) {
        tracing::warn!(
            "some server names are not resolved yet, or some sources of servers have not answered; \
             starting without these servers"
        );
    }
}

/// Returns what control calls when it has marked a server down; without workers it does nothing.
fn ring(alarm: &Arc<OnceLock<proxy::Alarm>>) -> Box<dyn Fn() + Send> {
    let alarm = Arc::clone(alarm);
    Box::new(move || {
        if let Some(alarm) = alarm.get() {
            alarm.ring();
        }
    })
}

/// Opens the access log and starts its writer.
fn start_access_log(
    snapshot: &Snapshot,
    owner: Option<(u32, u32)>,
    exporter: &Exporter,
) -> Result<(proxy::AccessSink, proxy::AccessWriter), Vec<String>> {
    open_access_log(&snapshot.log.access, owner, exporter)
        .and_then(proxy::AccessSink::start)
        .map_err(one_line)
}

/// Opens the log; at startup, while the program may still be root, for the `owner` that it will
/// switch to.
fn open_access_log(
    access: &AccessLog,
    owner: Option<(u32, u32)>,
    exporter: &Exporter,
) -> io::Result<proxy::AccessTarget> {
    let to_collector = || exporter.telemetry().access_log();
    proxy::AccessTarget::open(access, owner, to_collector).map_err(|error| {
        let why = match access {
            AccessLog::File(path) => preflight::access_log_error(path, &error),
            AccessLog::Syslog(syslog) => {
                format!("cannot send the access log to {}: {error}", syslog.to)
            }
            AccessLog::Stdout | AccessLog::Off | AccessLog::Otlp => {
                format!("cannot write the access log to standard output: {error}")
            }
        };
        io::Error::new(error.kind(), why)
    })
}

/// Opens the state directory of certificates by ACME for the configured user, becomes that user, and
/// checks that it can write there. `taken_over`: as of [`Certificates::open`].
fn become_user(
    snapshot: &mut Arc<Snapshot>,
    owner: Option<(u32, u32)>,
    taken_over: bool,
) -> Result<Certificates, Vec<String>> {
    let certificates = Certificates::open(snapshot, owner, taken_over).map_err(one_line)?;
    drop_privileges(snapshot).map_err(one_line)?;
    certificates::reopen(snapshot).map_err(one_line)?;
    Ok(certificates)
}

/// Starts what is connected to others from now on: the thread of `telemetry`, and that of Kubernetes.
fn start_senders(
    snapshot: &Snapshot,
    exporter: &mut Exporter,
) -> Result<Option<Cluster>, Vec<String>> {
    exporter.begin(snapshot)?;
    Cluster::start(snapshot).map_err(one_line)
}

/// Switches to the configured user. Only root can; otherwise it must already be that user.
fn drop_privileges(snapshot: &Snapshot) -> Result<(), String> {
    let Some((user, group)) = &snapshot.run_as else {
        return Ok(());
    };
    os::privileges::switch(user, group.as_deref()).map_err(|error| error.to_string())?;
    tracing::info!(user, "privileges dropped");
    Ok(())
}

/// Announces readiness in the log and to the service manager.
fn announce(snapshot: &Snapshot, workers: usize, management: &Management) {
    for listener in &snapshot.listeners {
        tracing::info!(listener = %listener.name, address = %listener.address, "listening");
    }
    let SideListeners { scrape, keda, external_metrics } = &management.side;
    for (what, listener) in [
        ("metrics and health checks", scrape),
        ("numbers for KEDA", keda),
        ("external metrics", external_metrics),
    ] {
        if let Some(listener) = listener {
            tracing::info!("{what} at {}", listener.address());
        }
    }
    if let Some(admin) = &management.admin {
        match admin.address() {
            Address::Ip(address) => tracing::info!("admin API at http://{address}/"),
            unix @ Address::Unix(_) => tracing::info!("admin API at {unix}"),
        }
    }
    let (routes, services) = (snapshot.routes.len(), snapshot.services.len());
    tracing::info!(version = env!("CARGO_PKG_VERSION"), workers, routes, services, "ready");
    service_manager::notify(os::notify::status(&format!(
        "{workers} workers, {routes} routes, {services} services"
    )));
    service_manager::notify(os::notify::ready());
}
