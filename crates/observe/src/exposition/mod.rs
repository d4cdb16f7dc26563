//! Metrics for a scraper: the Prometheus text format 0.0.4, `OpenMetrics` 1.0, and Prometheus's protobuf
//! format.
//!
//! All metrics that Weir exposes are named here and nowhere else. Counters are passed in as
//! [`Totals`], current values as [`Gauges`].

mod families;
mod fleet;
mod gauges;
mod kubernetes;
mod program;
pub mod protobuf;
mod servers;
mod sources;
mod tcp;

use std::time::Duration;

use model::histogram::{CLASSIC_BOUNDS_US, HistogramTotals};
use model::{AddressFound, Cause, Mirrored};

use crate::registry::{ExchangeTotals, ListenerTotals, ServiceTotals, Totals};

pub use families::Format;
use families::{Distribution, Families, Kind, Label};
pub use gauges::{
    BudgetGauges, CertificateGauges, FindingGauges, FleetGauges, FleetRateGauges, FleetSlotGauges,
    FleetTicketGauges, Gauges, KeySetGauges, KubernetesGauges, ListenerGauges, ProbeGauges,
    ProcessGauges, RegistrationGauges, ReloadGauges, ServerGauges, ServiceGauges, SourceGauges,
    SourcesGauges, TagGauges, TelemetryGauges,
};
use protobuf::MetricFamily;

/// Returns everything in `format`.
pub fn write(totals: &Totals, gauges: &Gauges<'_>, format: Format) -> Vec<u8> {
    collect(totals, gauges, format).end()
}

/// Returns everything as the messages of [`Format::Protobuf`], with native histograms. Families without
/// metrics are left out.
pub fn families(totals: &Totals, gauges: &Gauges<'_>) -> Vec<MetricFamily> {
    collect(totals, gauges, Format::Protobuf).into_messages()
}

fn collect(totals: &Totals, gauges: &Gauges<'_>, format: Format) -> Families {
    let mut families = Families::new(format);
    program::write_process(gauges, &mut families);
    write_listeners(totals, gauges, &mut families);
    program::write_certificates(gauges, &mut families);
    program::write_key_sets(&gauges.key_sets, &mut families);
    program::write_findings(&gauges.findings, &mut families);
    write_services(totals, gauges, &mut families);
    write_durations(totals, &mut families);
    servers::write_servers(gauges, &mut families);
    servers::write_durations(gauges, &mut families);
    tcp::write_tcp(gauges, &mut families);
    servers::write_probes(gauges, &mut families);
    program::write_telemetry(&gauges.telemetry, &mut families);
    sources::write_sources(&gauges.sources, &mut families);
    if let Some(of_fleet) = &gauges.fleet {
        fleet::write_fleet(of_fleet, &mut families);
    }
    if let Some(of_cluster) = &gauges.kubernetes {
        kubernetes::write_kubernetes(of_cluster, &mut families);
    }
    families
}

/// A listener's metric: family, kind, help, value.
type ListenerMetric = (&'static str, Kind, &'static str, fn(&ListenerTotals) -> u64);

const LISTENER_METRICS: [ListenerMetric; 5] = [
    (
        "weir_listener_tls_handshakes",
        Kind::Counter,
        "Completed TLS handshakes with clients. Failed ones are counted as requests with the cause \
         client_tls_error.",
        |listener| listener.tls_handshakes,
    ),
    (
        "weir_listener_tls_handshakes_resumed",
        Kind::Counter,
        "Completed TLS handshakes that resumed an earlier session.",
        |listener| listener.tls_handshakes_resumed,
    ),
    (
        "weir_listener_connections_accepted",
        Kind::Counter,
        "Client connections accepted.",
        |listener| listener.connections_accepted,
    ),
    (
        "weir_listener_connections_open",
        Kind::Gauge,
        "Client connections open.",
        ListenerTotals::connections_open,
    ),
    (
        "weir_listener_accept_pauses",
        Kind::Counter,
        "Pauses of accepting because connections_max was reached; clients waited in the listen queue.",
        |listener| listener.accept_pauses,
    ),
];

fn write_listeners(totals: &Totals, gauges: &Gauges<'_>, families: &mut Families) {
    for (name, kind, help, value) in LISTENER_METRICS {
        let mut family = families.family(name, kind, None, help);
        for (name, listener) in &totals.listeners {
            family.sample(&[("listener", name)], value(listener));
        }
    }
    let mut max = families.family(
        "weir_listener_connections_max",
        Kind::Gauge,
        None,
        "Maximum number of open client connections.",
    );
    for listener in &gauges.listeners {
        max.sample(&[("listener", &listener.name)], listener.connections_max);
    }
    let mut addresses = families.family(
        "weir_listener_client_addresses",
        Kind::Counter,
        None,
        "Requests of trusted peers by how the client's address was found: found, only_trusted (all \
         addresses are of trusted networks; the first is taken), missing (no field), invalid (an \
         entry that is not an address), too_few (less than hops). With the last three the client is \
         a proxy's address.",
    );
    for (name, listener) in &totals.listeners {
        let with_any = listener.client_addresses.iter().any(|count| *count > 0);
        for (found, count) in AddressFound::ALL.iter().zip(listener.client_addresses) {
            if with_any {
                addresses.sample(&[("listener", name), ("result", &found.as_str())], count);
            }
        }
    }
    let mut exchanges = families.family(
        "weir_listener_requests",
        Kind::Counter,
        None,
        "Finished requests (in tcp mode: connections) of a listener, by cause and \
         class of the status sent, including those that matched no service.",
    );
    for (name, listener) in &totals.listeners {
        write_exchanges(("listener", name), &listener.exchanges, &mut exchanges);
    }
    families.single(
        "weir_access_log_lines_dropped",
        Kind::Counter,
        None,
        "Access log lines lost because their reader was too slow or could not be written to.",
        totals.access_lines_dropped,
    );
}

/// A service's counter: family, unit, help, value.
type ServiceCounter = (&'static str, Option<&'static str>, &'static str, fn(&ServiceTotals) -> u64);

const SERVICE_COUNTERS: [ServiceCounter; 7] = [
    ("weir_attempts", None, "Requests sent to servers, including retries.", |service| {
        service.attempts
    }),
    ("weir_retries", None, "Attempts after a request's first.", |service| service.retries),
    (
        "weir_request_body_bytes",
        Some("bytes"),
        "Bytes of request bodies (in tcp mode: from clients) forwarded to servers.",
        |service| service.request_body_bytes,
    ),
    (
        "weir_response_body_bytes",
        Some("bytes"),
        "Bytes of response bodies (in tcp mode: from servers) forwarded to clients.",
        |service| service.response_body_bytes,
    ),
    (
        "weir_server_connections_opened",
        None,
        "Connections opened to servers for requests, without those of health checks.",
        |service| service.connections_opened,
    ),
    ("weir_server_connections_reused", None, "Requests sent on a reused connection.", |service| {
        service.connections_reused
    }),
    ("weir_queued", None, "Requests that entered the queue.", |service| service.queued),
];

fn write_services(totals: &Totals, gauges: &Gauges<'_>, families: &mut Families) {
    let mut exchanges = families.family(
        "weir_requests",
        Kind::Counter,
        None,
        "Finished requests (in tcp mode: connections) of a service, by cause and class of the \
         status sent.",
    );
    for (name, service) in &totals.services {
        write_exchanges(("service", name), &service.exchanges, &mut exchanges);
    }
    for (name, unit, help, value) in SERVICE_COUNTERS {
        let mut family = families.family(name, Kind::Counter, unit, help);
        for (name, service) in &totals.services {
            family.sample(&[("service", name)], value(service));
        }
    }
    let mut mirrored = families.family(
        "weir_mirrored_requests",
        Kind::Counter,
        None,
        "Requests that were to be copied to this service (mirror), by result: same_status as the \
         request itself, other_status, failed (no complete response), or not sent: no_body (too long, \
         or incomplete when the response began), overloaded.",
    );
    for (name, service) in &totals.services {
        if service.mirrored.iter().all(|count| *count == 0) {
            continue;
        }
        for (result, count) in Mirrored::ALL.iter().zip(service.mirrored) {
            mirrored.sample(&[("service", name), ("result", &result.as_str())], count);
        }
    }
    write_service_gauges(gauges, families);
}

fn write_service_gauges(gauges: &Gauges<'_>, families: &mut Families) {
    let mut length =
        families.family("weir_queue_length", Kind::Gauge, None, "Requests waiting for a slot.");
    for service in &gauges.services {
        length.sample(&[("service", &service.name)], service.queue_length);
    }
    let mut length_max = families.family(
        "weir_queue_length_max",
        Kind::Gauge,
        None,
        "Maximum number of requests in the queue.",
    );
    for service in &gauges.services {
        length_max.sample(&[("service", &service.name)], service.queue_length_max);
    }
    let mut maintenance = families.family(
        "weir_service_maintenance",
        Kind::Gauge,
        None,
        "Whether the service is in maintenance (1), or not (0).",
    );
    for service in &gauges.services {
        maintenance.sample(&[("service", &service.name)], u64::from(service.maintenance));
    }
    let mut wanted = families.family(
        "weir_service_wanted_servers",
        Kind::Gauge,
        None,
        "How many servers the service should have, computed from its load over the whole fleet (scaling).",
    );
    for service in &gauges.services {
        if let Some(number) = service.wanted_servers {
            wanted.sample(&[("service", &service.name)], u64::from(number));
        }
    }
    let mut calls = families.family(
        "weir_service_scaling_calls",
        Kind::Counter,
        None,
        "Calls of the webhook or command that starts and stops the service's servers, by result. In a fleet, of the member that decides now.",
    );
    for service in &gauges.services {
        let counts = service
            .scaling_calls
            .iter()
            .flat_map(|counts| ["succeeded", "failed"].into_iter().zip(counts));
        for (result, count) in counts {
            calls.sample(&[("service", &service.name), ("result", &result)], *count);
        }
    }
    let mut maintenance = families.family(
        "weir_route_maintenance",
        Kind::Gauge,
        None,
        "1 for each route that is in maintenance.",
    );
    for route in &gauges.routes_in_maintenance {
        maintenance.sample(&[("route", route)], 1_u64);
    }
}

/// Writes all causes that have occurred, and successful exchanges with 2xx in any case, so that a
/// rate can be computed from the first scrape on.
fn write_exchanges(
    whose: Label<'_>,
    exchanges: &ExchangeTotals,
    family: &mut families::Family<'_>,
) {
    const CLASSES: [&str; crate::counters::STATUS_CLASSES] =
        ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];
    for &cause in Cause::ALL {
        for (class, status) in CLASSES.iter().enumerate() {
            let count = exchanges.get(cause, class);
            if count > 0 || (cause == Cause::Completed && *status == "2xx") {
                let fault = cause.fault().as_str();
                let labels =
                    [whose, ("cause", &cause.name()), ("fault", &fault), ("status", status)];
                family.sample(&labels, count);
            }
        }
    }
}

/// A histogram: family, help, values.
type ServiceHistogram = (&'static str, &'static str, fn(&ServiceTotals) -> &HistogramTotals);

const SERVICE_HISTOGRAMS: [ServiceHistogram; 6] = [
    (
        "weir_request_duration_seconds",
        "Time from the complete request head to the end of the response, of requests that a server answered.",
        |service| &service.total,
    ),
    (
        "weir_unanswered_request_duration_seconds",
        "Time from the complete request head to the end, of requests that no server answered: refused, timed out, or aborted by the client.",
        |service| &service.unanswered,
    ),
    (
        "weir_first_byte_seconds",
        "Time from the complete request head to the first byte of the response head.",
        |service| &service.first_byte,
    ),
    ("weir_queue_wait_seconds", "Time in the queue, of requests that waited there.", |service| {
        &service.queue
    }),
    ("weir_server_connect_seconds", "Time to establish connections to servers.", |service| {
        &service.connect
    }),
    (
        "weir_client_tcp_round_trip_seconds",
        "TCP round-trip times to clients, one for each sampled request; see log.tcp_info.",
        |service| &service.client_round_trip,
    ),
];

fn write_durations(totals: &Totals, families: &mut Families) {
    for (name, help, values) in SERVICE_HISTOGRAMS {
        let mut family = families.family(name, Kind::Histogram, Some("seconds"), help);
        for (service, totals) in &totals.services {
            write_histogram(&[("service", service)], values(totals), true, &mut family);
        }
    }
}

/// Writes durations as a native histogram, where the format has them, and `with_classic` buckets.
fn write_histogram(
    labels: &[Label<'_>],
    values: &HistogramTotals,
    with_classic: bool,
    family: &mut families::Family<'_>,
) {
    let classic = CLASSIC_BOUNDS_US.iter().filter(|_| with_classic).map(|&bound_us| {
        let count = values.count_at_most(Duration::from_micros(bound_us));
        (bound_us as f64 / 1e6, count)
    });
    let classic: &[(f64, u64)] = &classic.collect::<Vec<_>>();
    let (count, sum) = (values.count(), values.sum().as_secs_f64());
    let native = Some(&values.native());
    family.histogram(labels, &Distribution { classic, count, sum, native });
}

#[cfg(test)]
mod tests;
