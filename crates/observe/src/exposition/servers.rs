//! Metric families of servers, and of probed addresses.

use model::ServerLatency;
use model::histogram::SharedHistogram;

use super::families::{Families, Kind, Label, Number};
use super::{Gauges, ProbeGauges, ServerGauges, write_histogram};

/// A server's metric: family, kind, help, value.
type ServerMetric = (&'static str, Kind, &'static str, fn(&ServerGauges<'_>) -> u64);

const SERVER_METRICS: [ServerMetric; 8] = [
    (
        "weir_server_up",
        Kind::Gauge,
        "0 while checks say that the server is down, else 1.",
        |server| u64::from(server.up),
    ),
    (
        "weir_server_ejected",
        Kind::Gauge,
        "1 while passive health keeps the server out, else 0.",
        |server| u64::from(server.ejected),
    ),
    (
        "weir_server_ready",
        Kind::Gauge,
        "1 while new work may go to the server: up, not ejected, not drained by a person.",
        |server| u64::from(server.ready),
    ),
    (
        "weir_server_in_flight",
        Kind::Gauge,
        "Requests or connections in flight at the server's address, over all services.",
        |server| u64::from(server.in_flight),
    ),
    (
        "weir_server_in_flight_max",
        Kind::Gauge,
        "Concurrency limit of the server's address; 0: no limit.",
        |server| u64::from(server.in_flight_max),
    ),
    (
        "weir_server_weight",
        Kind::Gauge,
        "Share of the traffic relative to the service's other servers.",
        |server| u64::from(server.weight),
    ),
    (
        "weir_server_requests",
        Kind::Counter,
        "Requests or connections sent to the server.",
        |server| server.requests,
    ),
    (
        "weir_server_failures",
        Kind::Counter,
        "Requests or connections that failed because of the server: before a response, or with a 5xx response if passive health checks count those.",
        |server| server.failures,
    ),
];

pub(super) fn write_servers(gauges: &Gauges<'_>, families: &mut Families) {
    for (name, kind, help, value) in SERVER_METRICS {
        let mut family = families.family(name, kind, None, help);
        for server in &gauges.servers {
            family.sample(&server_labels(server), value(server));
        }
    }
    let mut known = gauges.servers.iter().filter(|server| server.idle_connections.is_some());
    if known.next().is_none() {
        // An unknown number is not zero.
        return;
    }
    let mut idle = families.family(
        "weir_server_idle_connections",
        Kind::Gauge,
        None,
        "Idle connections to the server's address.",
    );
    for server in &gauges.servers {
        if let Some(connections) = server.idle_connections {
            idle.sample(&server_labels(server), u64::from(connections));
        }
    }
}

/// The stages of a server's requests, and their durations.
type Stage = (&'static str, fn(&ServerLatency) -> &SharedHistogram);

const STAGES: [Stage; 4] = [
    ("queue", |latency| &latency.queue),
    ("connect", |latency| &latency.connect),
    ("first_byte", |latency| &latency.first_byte),
    ("whole", |latency| &latency.whole),
];

/// Writes how long requests to each server took: native histograms where the format has them, classic
/// ones if they are configured (20 series for each server and stage).
pub(super) fn write_durations(gauges: &Gauges<'_>, families: &mut Families) {
    if !gauges.server_histograms && !families.has_native() {
        return;
    }
    let mut family = families.family(
        "weir_server_latency_seconds",
        Kind::Histogram,
        Some("seconds"),
        "Durations of a server's requests by stage: queue (waiting for a slot, if the request waited), \
         connect (establishing a connection, if there was none to reuse), first_byte (from the choice of \
         the server to its response head), whole (to the end of the response; in tcp mode, of the \
         connection). Each includes those before it but for queue.",
    );
    for server in &gauges.servers {
        let [service, name, address, zone] = server_labels(server);
        for (stage, values) in STAGES {
            let labels = [service, name, address, zone, ("stage", &stage)];
            let values = values(server.latency).totals();
            write_histogram(&labels, &values, gauges.server_histograms, &mut family);
        }
    }
}

pub(super) fn server_labels<'a>(server: &'a ServerGauges<'_>) -> [Label<'a>; 4] {
    [
        ("service", &server.service),
        ("server", &server.name),
        ("address", &server.address),
        ("zone", &server.zone),
    ]
}

/// A probe's metric: family, kind, unit, help, value.
type ProbeMetric =
    (&'static str, Kind, Option<&'static str>, &'static str, fn(&ProbeGauges) -> Number);

const PROBE_METRICS: [ProbeMetric; 6] = [
    (
        "weir_probes_per_second",
        Kind::Gauge,
        None,
        "Scheduled probes per second and address.",
        |probe| probe.per_second.into(),
    ),
    (
        "weir_probes_per_second_unshared",
        Kind::Gauge,
        None,
        "Probes per second and address if services did not share probes.",
        |probe| probe.per_second_unshared.into(),
    ),
    ("weir_probes", Kind::Counter, None, "Finished probes.", |probe| probe.ended.into()),
    ("weir_probes_failed", Kind::Counter, None, "Failed probes.", |probe| probe.failed.into()),
    (
        "weir_probe_seconds",
        Kind::Counter,
        Some("seconds"),
        "Total duration of finished probes.",
        |probe| probe.time.as_secs_f64().into(),
    ),
    (
        "weir_probe_last_seconds",
        Kind::Gauge,
        Some("seconds"),
        "Duration of the last finished probe.",
        |probe| probe.last.as_secs_f64().into(),
    ),
];

pub(super) fn write_probes(gauges: &Gauges<'_>, families: &mut Families) {
    for (name, kind, unit, help, value) in PROBE_METRICS {
        let mut family = families.family(name, kind, unit, help);
        for probe in &gauges.probes {
            family.sample(&[("address", &probe.address)], value(probe));
        }
    }
}
