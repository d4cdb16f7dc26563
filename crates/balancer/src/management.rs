//! The management side of a running balancer: the admin API, metrics push, and the built-in doctor,
//! each with its data sources.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use admin::external_metrics::{self, Delegate};
use admin::scrape::Handle as SideHandle;
use admin::{keda, push, scrape};
use admin_api::changes::Change;
use admin_api::status::Kubernetes;
use model::{Address, AutoscalerListener, Metrics, Snapshot};

use crate::background::Background;
use crate::built_in_doctor;
use crate::changes::{Changes, Watch};
use crate::exporter::Exporter;
use crate::findings::Findings;
use crate::not_admitted::SharedNotAdmitted;
use crate::scaler::{Numbers, Scaler};
use crate::sockets::Doors;
use crate::traffic_history;
use crate::traffic_rules::TrafficRules;
use crate::{certificates, configuration, fleet_orders, fleet_report, probe_report, source_report};

/// The parts of a balancer that are managed.
pub(crate) struct Managed<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) registry: &'a Arc<decide::Registry>,
    pub(crate) counters: &'a Arc<observe::Registry>,
    pub(crate) control: Arc<control::Status>,
    /// Sets states of servers for the whole fleet.
    pub(crate) orderer: control::Orderer,
    pub(crate) ready: &'a Arc<AtomicBool>,
    pub(crate) workers: usize,
    /// Asks the workers for requests in flight.
    pub(crate) in_flight: proxy::InFlightReader,
    /// The changes that the process before this one has seen.
    pub(crate) earlier: Vec<Change>,
    /// What obtains certificates.
    pub(crate) certificates: certificates::Shared,
    /// Describes the connection to Kubernetes, if there is one, and decides about clients of the external metrics API.
    pub(crate) kubernetes: Option<(admin::Source<Kubernetes>, Option<Delegate>)>,
    /// Published routes that the file does not admit.
    pub(crate) not_admitted: SharedNotAdmitted,
    /// What receives the metrics.
    pub(crate) exporter: &'a Exporter,
    /// What the API shows and does through the workers; the rest is filled in here.
    pub(crate) sources: admin::Sources,
}

/// The admin API, metrics push and the doctor, as far as they are running.
pub(crate) struct Management {
    pub(crate) admin: Option<admin::Handle>,
    /// The listeners for metrics, KEDA and external metrics.
    pub(crate) side: SideListeners,
    push: Option<push::Handle>,
    doctor: Option<Background>,
    /// The history of traffic, and the thread that reads it while this process serves.
    pub(crate) history: traffic_history::Shared,
    history_reader: Option<Background>,
    pub(crate) changes: Changes,
}

/// Listeners that are not for clients of services, as far as they are running.
#[derive(Default)]
pub(crate) struct SideListeners {
    pub(crate) scrape: Option<SideHandle>,
    pub(crate) keda: Option<SideHandle>,
    pub(crate) external_metrics: Option<SideHandle>,
}

impl SideListeners {
    /// Uses the certificates of another configuration.
    fn renew(&self, after: &Snapshot) {
        let metrics = after.metrics.listener.as_ref().and_then(|one| one.tls.as_ref());
        let tls = |listener: &'_ Option<AutoscalerListener>| listener.as_ref()?.tls.clone();
        let (of_keda, of_external) = (tls(&after.keda), tls(&after.external_metrics));
        for (what, handle, certificates) in [
            ("metrics", &self.scrape, metrics),
            ("keda", &self.keda, of_keda.as_ref()),
            ("external_metrics", &self.external_metrics, of_external.as_ref()),
        ] {
            if let (Some(handle), Some(certificates)) = (handle, certificates)
                && let Err(error) = handle.renew(certificates)
            {
                tracing::error!(%error, "{what}: the old certificates stay in use");
            }
        }
    }

    fn stop(&mut self) {
        let SideListeners { scrape, keda, external_metrics } = std::mem::take(self);
        [scrape, keda, external_metrics].into_iter().flatten().for_each(SideHandle::stop);
    }
}

fn push(
    snapshot: &Snapshot,
    registry: &Arc<decide::Registry>,
    counters: &Arc<observe::Registry>,
) -> io::Result<Option<push::Handle>> {
    push::start(push::Options {
        metrics: snapshot.metrics.clone(),
        registry: Arc::clone(registry),
        counters: Arc::clone(counters),
    })
}

/// Adds what the workers know.
fn of_workers(in_flight: proxy::InFlightReader, sources: admin::Sources) -> admin::Sources {
    let in_flight = Arc::new(in_flight);
    let (spread, bodies) = (Arc::clone(&in_flight), Arc::clone(&in_flight));
    let (compressing, fetching) = (Arc::clone(&in_flight), Arc::clone(&in_flight));
    let mirroring = Arc::clone(&in_flight);
    admin::Sources {
        in_flight: Some(Arc::new(move |wanted| in_flight.in_flight(wanted))),
        worker_connections: Some(Arc::new(move || spread.connections_by_worker())),
        request_buffers: Some(Arc::new(move || budget(bodies.request_buffers()))),
        compression: Some(Arc::new(move || budget(compressing.compression()))),
        mirrors: Some(Arc::new(move || budget(mirroring.mirrors()))),
        key_sets: Some(Arc::new(move || fetching.key_sets())),
        ..sources
    }
}

/// Adds what the control thread knows.
fn of_control(
    control: &Arc<control::Status>,
    not_admitted: SharedNotAdmitted,
    sources: admin::Sources,
) -> admin::Sources {
    let [planned, probed, listed, measured, registered, tags, fleet] =
        [(); 7].map(|()| Arc::clone(control));
    let refused = not_admitted.clone();
    admin::Sources {
        plan: Arc::new(move || probe_report::running_plan(&planned)),
        probes: Arc::new(move || probe_report::probes(&probed)),
        server_sources: Some(Arc::new(move || source_report::by_service(&listed))),
        server_source_gauges: Some(Arc::new(move || {
            source_report::gauges(&measured, &refused.get())
        })),
        published_routes: Some(Arc::new(move || {
            source_report::published(&tags, &not_admitted.get())
        })),
        registrations: Some(Arc::new(move || source_report::registrations(&registered))),
        fleet: Some(Arc::new(move || fleet_report::fleet(&fleet))),
        ..sources
    }
}

/// Returns the idle connections over all workers, by server.
fn idle_connections(registry: &decide::Registry) -> HashMap<Address, u32> {
    let published = registry.load_full();
    let endpoints = published.services.iter().flat_map(|service| service.endpoints().all.clone());
    endpoints.map(|endpoint| (endpoint.row.address, endpoint.slots.idle())).collect()
}

/// Starts the API and the listeners for metrics and autoscalers, if they have addresses.
fn open(
    doors: Doors,
    exposed: admin::Exposed,
    delegate: Option<Delegate>,
) -> Result<(SideListeners, Option<admin::Handle>), Vec<String>> {
    let line = |what: &str, error: io::Error| vec![format!("{what}: {error}")];
    let scrape = doors.metrics.map(|door| scrape::start(door, exposed.clone()));
    let scrape = scrape.transpose().map_err(|error| line("metrics", error))?;
    let keda = doors.keda.map(|door| keda::start(door, exposed.clone()));
    let keda = keda.transpose().map_err(|error| line("keda", error))?;
    let external = doors.external_metrics.zip(delegate);
    let external_metrics = external
        .map(|(door, delegate)| external_metrics::start(door, exposed.clone(), delegate))
        .transpose()
        .map_err(|error| line("external_metrics", error))?;
    let admin = doors.admin.map(|door| admin::start(door, exposed));
    let admin = admin.transpose().map_err(|error| line("admin", error))?;
    Ok((SideListeners { scrape, keda, external_metrics }, admin))
}

impl Management {
    /// Starts the API and the listener for metrics if they have addresses, and metrics push if it has a
    /// target.
    pub(crate) fn start(managed: Managed<'_>, doors: Doors) -> Result<Management, Vec<String>> {
        let Managed { snapshot, registry, counters, control, ready, workers, .. } = managed;
        let Managed { in_flight, certificates, sources, earlier, exporter, not_admitted, .. } =
            managed;
        let (orderer, (kubernetes, delegate)) = (managed.orderer, managed.kubernetes.unzip());
        let findings = Findings::default();
        let watched = built_in_doctor::Sources {
            registry: Arc::clone(registry),
            counters: Arc::clone(counters),
        };
        let doctor = built_in_doctor::start(watched, findings.clone())
            .map_err(|error| vec![format!("doctor: {error}")])?;
        let history = sources.history.clone().unwrap_or_else(|| traffic_history::begin(None));
        let counted = traffic_history::Sources {
            registry: Arc::clone(registry),
            counters: Arc::clone(counters),
            control: Arc::clone(&control),
        };
        let changes = Changes::after(earlier);
        let numbers = Numbers::default();
        let mut rules = TrafficRules::new(
            Arc::clone(registry),
            Arc::clone(counters),
            findings.clone(),
            Arc::clone(&control),
            kubernetes.clone(),
        );
        let mut watch = Watch::begin(Arc::clone(registry), findings.clone(), changes.clone());
        let mut scaler = Scaler::new(counted.clone(), numbers.clone());
        let looks = move |history: &traffic_history::Shared| {
            rules.look(history);
            watch.look();
            scaler.look();
        };
        let history_reader = traffic_history::start(counted, Arc::clone(&history), looks)
            .map_err(|error| vec![format!("history: {error}")])?;
        let pools = Arc::clone(registry);
        let sources = admin::Sources {
            configuration: Arc::new(configuration::to_json),
            findings: Some(Arc::new(move || findings.report())),
            history: Some(Arc::clone(&history)),
            changes: Some(changes.source()),
            idle_connections: Some(Arc::new(move || idle_connections(&pools))),
            acme: Some(Arc::new(move || certificates::report(&certificates))),
            fleet_order: Some(Arc::new(move |wanted| fleet_orders::set(&orderer, wanted))),
            telemetry: Some(exporter.gauges(Arc::clone(registry))),
            kubernetes,
            wanted_servers: Some(Arc::new(move || numbers.shown())),
            ..of_control(&control, not_admitted, of_workers(in_flight, sources))
        };
        let exposed = admin::Exposed {
            registry: Arc::clone(registry),
            counters: Arc::clone(counters),
            sources,
            ready: Arc::clone(ready),
            workers,
            version: env!("CARGO_PKG_VERSION"),
        };
        exporter.expose(exposed.clone());
        let (side, admin) = open(doors, exposed, delegate.flatten())?;
        let push = push(snapshot, registry, counters)
            .map_err(|error| vec![format!("metrics: {error}")])?;
        Ok(Management {
            admin,
            side,
            push,
            doctor: Some(doctor),
            history,
            history_reader: Some(history_reader),
            changes,
        })
    }

    /// Applies another configuration: the certificates of the listeners for metrics and autoscalers, and the
    /// targets of metrics push, may have changed. The API stays as it is.
    pub(crate) fn apply(
        &mut self,
        before: &Snapshot,
        after: &Snapshot,
        registry: &Arc<decide::Registry>,
        counters: &Arc<observe::Registry>,
    ) {
        self.side.renew(after);
        let pushed = |metrics: &Metrics| Metrics { listener: None, ..metrics.clone() };
        if pushed(&before.metrics) == pushed(&after.metrics) {
            return;
        }
        // The old target gets a last push first; what is counted from here on goes to the new one.
        if let Some(push) = self.push.take() {
            push.stop();
        }
        match push(after, registry, counters) {
            Ok(push) => self.push = push,
            Err(error) => {
                tracing::error!(%error, "metrics push is disabled: cannot start its thread");
            }
        }
    }

    /// Stops the API, whose socket another process has now, and the doctor and the history, which
    /// run there.
    pub(crate) fn hand_over(&mut self) {
        if let Some(reader) = self.history_reader.take() {
            reader.stop();
        }
        if let Some(doctor) = self.doctor.take() {
            doctor.stop();
        }
        if let Some(admin) = self.admin.take() {
            admin.stop();
        }
        self.side.stop();
    }

    /// Stops everything. Metrics last, so that they include everything counted.
    pub(crate) fn stop(mut self) {
        if let Some(reader) = self.history_reader {
            reader.stop();
        }
        if let Some(doctor) = self.doctor {
            doctor.stop();
        }
        if let Some(admin) = self.admin {
            admin.stop();
        }
        self.side.stop();
        if let Some(push) = self.push {
            push.stop();
        }
    }
}

fn budget(budget: &proxy::Budget) -> observe::exposition::BudgetGauges {
    observe::exposition::BudgetGauges {
        used_bytes: budget.used_bytes(),
        exhausted: budget.exhausted(),
    }
}
