//! Metrics as text for a scraper: the Prometheus text format 0.0.4 and `OpenMetrics` 1.0.
//!
//! All metrics that Weir exposes are named here and nowhere else. Counters are passed in as
//! [`Totals`], current values as [`Gauges`].

mod families;
mod gauges;
mod servers;
mod tcp;

use std::time::Duration;

use model::{AddressFound, Cause, Mirrored};

use crate::histogram::HistogramTotals;
use crate::registry::{ExchangeTotals, ListenerTotals, ServiceTotals, Totals};

pub use families::Format;
use families::{Families, Kind, Label};
pub use gauges::{
    BudgetGauges, CertificateGauges, Gauges, KeySetGauges, ListenerGauges, ProbeGauges,
    ProcessGauges, ReloadGauges, ServerGauges, ServiceGauges,
};

/// Appends everything in `format` to `out`.
pub fn write(totals: &Totals, gauges: &Gauges<'_>, format: Format, out: &mut String) {
    let mut families = Families::new(out, format);
    write_process(gauges, &mut families);
    write_listeners(totals, gauges, &mut families);
    write_certificates(gauges, &mut families);
    write_key_sets(&gauges.key_sets, &mut families);
    write_services(totals, gauges, &mut families);
    write_durations(totals, &mut families);
    servers::write_servers(gauges, &mut families);
    tcp::write_tcp(gauges, &mut families);
    servers::write_probes(gauges, &mut families);
    families.end();
}

fn write_process(gauges: &Gauges<'_>, families: &mut Families<'_>) {
    let mut build = families.family(
        "weir_build_info",
        Kind::Gauge,
        None,
        "Version of Weir as a label; always 1.",
    );
    build.sample(&[("version", &gauges.version)], 1_u64);
    families.single(
        "weir_config_generation",
        Kind::Gauge,
        None,
        "Configurations applied since startup, including the current one.",
        gauges.generation,
    );
    if let Some(reloads) = gauges.reloads {
        write_reloads(reloads, families);
    }
    families.single("weir_workers", Kind::Gauge, None, "Worker threads.", gauges.workers);
    if let Some(connections) = &gauges.worker_connections {
        let mut family = families.family(
            "weir_worker_connections",
            Kind::Gauge,
            None,
            "Open client connections of a worker.",
        );
        for (worker, &count) in connections.iter().enumerate() {
            family.sample(&[("worker", &worker.to_string())], count);
        }
    }
    write_budgets(gauges, families);
    if let Some(process) = gauges.process {
        write_resources(process, families);
    }
}

/// The use of one budget: its gauge of bytes and the help, and the counter of those beyond it and the help.
type BudgetFamilies = [(&'static str, &'static str); 2];

const REQUEST_BUFFERS: BudgetFamilies = [
    (
        "weir_request_buffers_bytes",
        "Memory used by request bodies that wait for a server (limit: request_buffers_max).",
    ),
    (
        "weir_request_buffers_exhausted",
        "Request bodies that were not read completely before a server was chosen because \
         request_buffers_max was reached.",
    ),
];
const COMPRESSION_MEMORY: BudgetFamilies = [
    (
        "weir_compression_memory_bytes",
        "Memory reserved for compressing responses (limit: compression_memory_max).",
    ),
    (
        "weir_compression_memory_exhausted",
        "Responses left uncompressed because compression_memory_max was reached.",
    ),
];
const MIRROR_MEMORY: BudgetFamilies = [
    (
        "weir_mirror_memory_bytes",
        "Memory for the bodies of copies of requests (limit: mirror_memory_max).",
    ),
    ("weir_mirror_memory_exhausted", "Requests not copied because mirror_memory_max was reached."),
];

fn write_budgets(gauges: &Gauges<'_>, families: &mut Families<'_>) {
    for (budget, [(used, used_help), (exhausted, exhausted_help)]) in [
        (gauges.request_buffers, REQUEST_BUFFERS),
        (gauges.compression, COMPRESSION_MEMORY),
        (gauges.mirrors, MIRROR_MEMORY),
    ] {
        let Some(budget) = budget else { continue };
        families.single(used, Kind::Gauge, Some("bytes"), used_help, budget.used_bytes);
        families.single(exhausted, Kind::Counter, None, exhausted_help, budget.exhausted);
    }
}

/// Writes what the operating system counts for the process, by the names that Prometheus's client
/// libraries use.
fn write_resources(process: ProcessGauges, families: &mut Families<'_>) {
    families.single(
        "process_start_time_seconds",
        Kind::Gauge,
        Some("seconds"),
        "Start time of the process since 1970-01-01 UTC.",
        process.start_time.as_secs_f64(),
    );
    families.single(
        "process_cpu_seconds",
        Kind::Counter,
        Some("seconds"),
        "User and system CPU time of the process.",
        process.cpu.as_secs_f64(),
    );
    families.single(
        "process_resident_memory_bytes",
        Kind::Gauge,
        Some("bytes"),
        "Resident memory size.",
        process.resident_bytes,
    );
    families.single(
        "process_open_fds",
        Kind::Gauge,
        None,
        "Open file descriptors.",
        process.open_fds,
    );
    families.single(
        "process_max_fds",
        Kind::Gauge,
        None,
        "Maximum number of open file descriptors (RLIMIT_NOFILE).",
        process.fds_max,
    );
}

fn write_reloads(reloads: ReloadGauges, families: &mut Families<'_>) {
    let ReloadGauges { applied, unchanged, refused, last_refused, last_at } = reloads;
    let mut ended = families.family(
        "weir_reloads",
        Kind::Counter,
        None,
        "Reloads of the configuration by result: applied, unchanged (same as the configuration in \
         force), refused (the old configuration stays in force).",
    );
    for (result, count) in [("applied", applied), ("unchanged", unchanged), ("refused", refused)] {
        ended.sample(&[("result", &result)], count);
    }
    families.single(
        "weir_reload_last_refused",
        Kind::Gauge,
        None,
        "1 if the last reload was refused: what runs is not what the file says.",
        u64::from(last_refused),
    );
    if let Some(at) = last_at {
        families.single(
            "weir_reload_last_timestamp_seconds",
            Kind::Gauge,
            Some("seconds"),
            "Time of the last reload, successful or not, since 1970-01-01 UTC.",
            at.as_secs_f64(),
        );
    }
}

/// Writes how the key sets of authentications are fetched.
fn write_key_sets(sets: &[KeySetGauges], families: &mut Families<'_>) {
    let mut fetches = families.family(
        "weir_key_set_fetches",
        Kind::Counter,
        None,
        "Fetches of the key set of an authentication (keys_url) by result: fetched, failed (the keys in \
         use stay in use).",
    );
    for KeySetGauges { authentication, fetched, failed, .. } in sets {
        for (result, count) in [("fetched", *fetched), ("failed", *failed)] {
            fetches.sample(&[("authentication", authentication), ("result", &result)], count);
        }
    }
    let mut keys = families.family(
        "weir_key_set_keys",
        Kind::Gauge,
        None,
        "Usable keys in the key set of an authentication; 0: none was fetched, and requests are refused.",
    );
    for KeySetGauges { authentication, keys: count, .. } in sets {
        keys.sample(&[("authentication", authentication)], *count);
    }
    let mut last = families.family(
        "weir_key_set_last_fetched_timestamp_seconds",
        Kind::Gauge,
        Some("seconds"),
        "Time of the last successful fetch of a key set, since 1970-01-01 UTC.",
    );
    for KeySetGauges { authentication, fetched_at, .. } in sets {
        if let Some(at) = fetched_at {
            last.sample(&[("authentication", authentication)], at.as_secs_f64());
        }
    }
}

/// Writes when certificates expire, so that alerts can fire before they do.
fn write_certificates(gauges: &Gauges<'_>, families: &mut Families<'_>) {
    let mut ends = families.family(
        "weir_certificate_not_after_timestamp_seconds",
        Kind::Gauge,
        Some("seconds"),
        "Expiry time of a listener's certificate, since 1970-01-01 UTC.",
    );
    for CertificateGauges { listener, file, not_after } in &gauges.certificates {
        ends.sample(&[("listener", listener), ("file", file)], *not_after as f64);
    }
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

fn write_listeners(totals: &Totals, gauges: &Gauges<'_>, families: &mut Families<'_>) {
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

fn write_services(totals: &Totals, gauges: &Gauges<'_>, families: &mut Families<'_>) {
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
    family: &mut families::Family<'_, '_>,
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

const SERVICE_HISTOGRAMS: [ServiceHistogram; 5] = [
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
];

/// Upper bounds of exposed histogram buckets, with their text in seconds. Each is a bound of an
/// internal bucket, so that the counts are exact.
const BOUNDS: [(u64, &str); 17] = [
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1.0"),
    (2_500_000, "2.5"),
    (5_000_000, "5.0"),
    (10_000_000, "10.0"),
    (30_000_000, "30.0"),
    (60_000_000, "60.0"),
    (300_000_000, "300.0"),
];

fn write_durations(totals: &Totals, families: &mut Families<'_>) {
    for (name, help, values) in SERVICE_HISTOGRAMS {
        let mut family = families.family(name, Kind::Histogram, Some("seconds"), help);
        for (service, totals) in &totals.services {
            let values = values(totals);
            let label: Label<'_> = ("service", service);
            for (bound_us, text) in BOUNDS {
                let count = values.count_at_most(Duration::from_micros(bound_us));
                family.sample_of("_bucket", &[label, ("le", &text)], count);
            }
            let count = values.count();
            family.sample_of("_bucket", &[label, ("le", &"+Inf")], count);
            family.sample_of("_sum", &[label], values.sum().as_secs_f64());
            family.sample_of("_count", &[label], count);
        }
    }
}

#[cfg(test)]
mod tests;
