//! Metric families of the process: its version and resources, reloads, memory budgets, certificates and
//! key sets.

use super::families::{Families, Kind};
use super::{
    CertificateGauges, FindingGauges, Gauges, KeySetGauges, ProcessGauges, ReloadGauges,
    TelemetryGauges,
};

pub(super) fn write_process(gauges: &Gauges<'_>, families: &mut Families) {
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

fn write_budgets(gauges: &Gauges<'_>, families: &mut Families) {
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
fn write_resources(process: ProcessGauges, families: &mut Families) {
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

fn write_reloads(reloads: ReloadGauges, families: &mut Families) {
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

/// Writes what a collector was sent.
pub(super) fn write_telemetry(telemetry: &[TelemetryGauges], families: &mut Families) {
    if telemetry.is_empty() {
        return;
    }
    let mut sent = families.family(
        "weir_otlp_sent",
        Kind::Counter,
        None,
        "Spans, data points and log records that the OpenTelemetry collector has accepted.",
    );
    for one in telemetry {
        sent.sample(&[("signal", &one.signal)], one.sent);
    }
    let mut dropped = families.family(
        "weir_otlp_dropped",
        Kind::Counter,
        None,
        "Spans, data points and log records (before they are in a message: requests and lines) that the \
         collector did not get, by reason: queue_full (more waited than 8 MB), refused (the collector does not \
         want it), unreachable (for 5 minutes), unreadable.",
    );
    for one in telemetry {
        for (reason, count) in &one.dropped {
            dropped.sample(&[("signal", &one.signal), ("reason", reason)], *count);
        }
    }
}

/// Writes what the doctor finds.
pub(super) fn write_findings(findings: &[FindingGauges], families: &mut Families) {
    let mut family = families.family(
        "weir_findings",
        Kind::Gauge,
        None,
        "Findings of the doctor that are present, by severity (critical, warning, advice, note) and rule; \
         docs/rules.md describes the rules.",
    );
    for FindingGauges { rule, severity, present } in findings {
        family.sample(&[("severity", severity), ("rule", rule)], *present);
    }
}

/// Writes how the key sets of authentications are fetched.
pub(super) fn write_key_sets(sets: &[KeySetGauges], families: &mut Families) {
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
pub(super) fn write_certificates(gauges: &Gauges<'_>, families: &mut Families) {
    let mut ends = families.family(
        "weir_certificate_not_after_timestamp_seconds",
        Kind::Gauge,
        Some("seconds"),
        "Expiry time of a certificate, since 1970-01-01 UTC. Without the label listener: the certificate of [fleet.tls].",
    );
    for CertificateGauges { listener, file, not_after } in &gauges.certificates {
        let not_after = *not_after as f64;
        match listener {
            Some(listener) => ends.sample(&[("listener", listener), ("file", file)], not_after),
            None => ends.sample(&[("file", file)], not_after),
        }
    }
}
