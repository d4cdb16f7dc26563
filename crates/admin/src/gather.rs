//! Collects counters and gauges from where they are kept, for `/metrics` and for pushed metrics. `observe`
//! defines their names and formats.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use admin_api::fleet::Fleet;
use admin_api::status::Kubernetes;
use decide::{Published, ServiceView};
use model::{Address, FleetProblemKind, Health, Maintained, Moment};
use observe::exposition::protobuf::MetricFamily;
use observe::exposition::{
    CertificateGauges, FindingGauges, FleetGauges, FleetRateGauges, FleetSlotGauges,
    FleetTicketGauges, Format, Gauges, KubernetesGauges, ListenerGauges, ServerGauges,
    ServiceGauges, write,
};

use crate::Exposed;
use crate::process;

/// Returns all metrics in `format`.
pub(crate) fn exposition(exposed: &Exposed, format: Format, now: Moment) -> Vec<u8> {
    let published = exposed.registry.load_full();
    let views = views(&published, now);
    write(&exposed.counters.totals(), &gauges(exposed, &published, &views), format)
}

/// Returns all metrics.
pub(crate) fn families(exposed: &Exposed, now: Moment) -> Vec<MetricFamily> {
    let published = exposed.registry.load_full();
    let views = views(&published, now);
    observe::exposition::families(&exposed.counters.totals(), &gauges(exposed, &published, &views))
}

/// Returns all current values.
fn gauges<'a>(
    exposed: &'a Exposed,
    published: &'a Published,
    views: &'a [ServiceView],
) -> Gauges<'a> {
    // Both are in the order of the IDs.
    let services = views.iter().zip(&published.snapshot.services);
    let sources = &exposed.sources;
    let idle = sources.idle_connections.as_ref().map(|idle| idle());
    let wanted = sources.wanted_servers.as_ref().map(|all| all()).unwrap_or_default();
    Gauges {
        version: exposed.version,
        generation: published.generation,
        workers: exposed.workers as u64,
        worker_connections: sources.worker_connections.as_ref().map(|each| each()),
        request_buffers: sources.request_buffers.as_ref().map(|gauges| gauges()),
        compression: sources.compression.as_ref().map(|gauges| gauges()),
        mirrors: sources.mirrors.as_ref().map(|gauges| gauges()),
        process: process::gauges(),
        reloads: sources.reload_gauges.as_ref().map(|gauges| gauges()),
        listeners: published.snapshot.listeners.iter().map(listener).collect(),
        certificates: certificates(&published.snapshot),
        key_sets: sources.key_sets.as_ref().map(|sets| sets()).unwrap_or_default(),
        findings: findings(exposed),
        services: services
            .map(|(view, spec)| {
                let wanted = wanted.get(&spec.name);
                let calls = wanted.and_then(|wanted| wanted.calls.as_ref());
                ServiceGauges {
                    wanted_servers: wanted.and_then(|wanted| wanted.number),
                    scaling_calls: calls.map(|calls| [calls.succeeded, calls.failed]),
                    ..service(exposed, view, spec)
                }
            })
            .collect(),
        routes_in_maintenance: routes_in_maintenance(exposed, published),
        servers: views.iter().flat_map(|view| servers(view, idle.as_ref())).collect(),
        server_histograms: published.snapshot.metrics.server_histograms,
        probes: (sources.probes)(),
        sources: sources.server_source_gauges.as_ref().map(|all| all()).unwrap_or_default(),
        fleet: sources.fleet.as_ref().and_then(|fleet| fleet()).map(fleet_gauges),
        kubernetes: sources.kubernetes.as_ref().map(|state| kubernetes_gauges(&state())),
        telemetry: sources.telemetry.as_ref().map(|counts| counts()).unwrap_or_default(),
    }
}

/// Returns how many findings are present, by rule and severity.
fn findings(exposed: &Exposed) -> Vec<FindingGauges> {
    let report = exposed.sources.findings.as_ref().map(|findings| findings()).unwrap_or_default();
    let mut present = BTreeMap::new();
    for seen in report.findings.into_iter().filter(|seen| seen.is_present) {
        *present.entry((seen.finding.severity, seen.finding.rule.into_owned())).or_insert(0) += 1;
    }
    let gauges = present.into_iter().map(|((severity, rule), present)| FindingGauges {
        rule,
        severity: severity.as_str(),
        present,
    });
    gauges.collect()
}

/// Returns the current state of every service.
pub(crate) fn views(published: &Published, now: Moment) -> Vec<ServiceView> {
    published.services.iter().map(|service| service.view(now)).collect()
}

fn listener(listener: &model::Listener) -> ListenerGauges<'_> {
    ListenerGauges { name: &listener.name, connections_max: u64::from(listener.connections_max) }
}

/// Returns when the certificates in force end. Parsing them again takes microseconds.
fn certificates(snapshot: &model::Snapshot) -> Vec<CertificateGauges<'_>> {
    let gauges = snapshot.certificates().filter_map(|(listener, certificate)| {
        let chain = &certificate.chain;
        let file = chain.path.to_str().unwrap_or("?");
        let not_after = tls::facts(chain).ok()?.not_after;
        Some(CertificateGauges { listener, file, not_after })
    });
    gauges.collect()
}

fn service<'a>(
    exposed: &Exposed,
    service: &'a ServiceView,
    spec: &model::Service,
) -> ServiceGauges<'a> {
    let switched = exposed.registry.maintenance();
    let maintenance = switched.in_force(Maintained::Service, &spec.name, spec.maintenance);
    ServiceGauges {
        maintenance: maintenance.is_some(),
        name: &service.name,
        queue_length: u64::from(service.queue_length),
        queue_length_max: u64::from(service.queue_length_max),
        wanted_servers: None,
        scaling_calls: None,
    }
}

fn routes_in_maintenance<'a>(exposed: &Exposed, published: &'a Published) -> Vec<&'a str> {
    let switched = exposed.registry.maintenance();
    let is_in = |route: &&Arc<model::Route>| {
        switched.in_force(Maintained::Route, &route.name, route.maintenance).is_some()
    };
    let routes = published.snapshot.routes.iter().filter(is_in);
    let names: BTreeSet<&str> = routes.map(|route| &*route.name).collect();
    names.into_iter().collect()
}

fn servers<'a>(
    service: &'a ServiceView,
    idle: Option<&HashMap<Address, u32>>,
) -> impl Iterator<Item = ServerGauges<'a>> {
    service.endpoints.iter().map(move |endpoint| {
        let idle = idle.map(|idle| idle.get(&endpoint.address).copied().unwrap_or(0));
        ServerGauges {
            service: &service.name,
            name: &endpoint.name,
            address: endpoint.address,
            zone: endpoint.zone.as_deref().unwrap_or_default(),
            up: endpoint.health != Health::Down,
            ejected: endpoint.ejected_for.is_some(),
            ready: endpoint.ready,
            in_flight: endpoint.in_flight,
            in_flight_max: endpoint.in_flight_max,
            weight: endpoint.weight,
            requests: endpoint.requests,
            failures: endpoint.failures,
            idle_connections: idle,
            tcp: endpoint.tcp,
            latency: &endpoint.state.latency,
        }
    })
}

fn kubernetes_gauges(state: &Kubernetes) -> KubernetesGauges {
    KubernetesGauges {
        is_connected: state.running && state.connected,
        is_leading: state.running && state.leading,
        failing: state.failing.len(),
        unreadable: state.unreadable.len(),
        writes_waiting: state.writes_waiting,
    }
}

/// Problems of the fleet count from this age on: a rolling restart does not raise an alert.
const PROBLEM_FOR_S_MIN: u64 = 60;

fn fleet_gauges(fleet: Fleet) -> FleetGauges {
    let members = fleet.summary().members;
    let Fleet { probes, ignored, slots, orders, rates, tickets, datagrams, problems, .. } = fleet;
    let of_datagrams = [
        ("accepted", datagrams.accepted),
        ("unread", datagrams.unread),
        ("sent", datagrams.sent),
        ("send_error", datagrams.send_errors),
    ];
    let of_datagrams = of_datagrams.map(|(result, count)| (result.to_owned(), count));
    FleetGauges {
        members,
        probes: [
            ("assigned", probes.assigned),
            ("stood_in", probes.stood_in),
            ("relied", probes.relied),
        ],
        ignored: ignored.len(),
        orders: [("drain", orders.drain), ("maintenance", orders.maintenance)],
        slots: (slots.servers > 0).then_some(FleetSlotGauges {
            servers: slots.servers,
            is_settled: slots.is_settled,
            slots: [("share", slots.share), ("lent", slots.lent), ("borrowed", slots.borrowed)],
        }),
        rates: (rates.limits > 0).then_some(FleetRateGauges {
            limits: rates.limits,
            keys: rates.keys,
            part: rates.part,
            untracked: rates.untracked,
        }),
        tickets: tickets.map(|tickets| FleetTicketGauges {
            keys: tickets.keys,
            sealing_age_s: tickets.sealing_age_s,
            behind: tickets.behind.len(),
            not_sharing: tickets.not_sharing.len(),
            failed: tickets.fetches_failed,
            refused: tickets.connections_refused,
        }),
        problems: FleetProblemKind::ALL
            .iter()
            .map(|kind| {
                let of_kind = problems.iter().filter(|one| {
                    one.kind.known() == Some(*kind) && one.for_s >= PROBLEM_FOR_S_MIN
                });
                (kind.as_str(), of_kind.count())
            })
            .collect(),
        datagrams: of_datagrams.into_iter().chain(datagrams.refused).collect(),
        received_bytes: datagrams.received_bytes,
        sent_bytes: datagrams.sent_bytes,
    }
}
