//! Tests of the exposition, parsed by a small parser that accepts only what the formats allow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use model::histogram::SharedHistogram;
use model::{Cause, ServerLatency, TcpPath, TcpSample, Timings};
use prost::Message as _;

use super::*;
use crate::Registry;

/// One sample: its name, its labels in order, its value.
type Sample = (String, Vec<(String, String)>, f64);

#[derive(Debug, Default)]
struct Family {
    kind: String,
    help: String,
    unit: Option<String>,
    samples: Vec<Sample>,
}

/// Parses a whole exposition by the rules of its format; panics with the line that violates one.
fn parse(text: &str, format: Format) -> BTreeMap<String, Family> {
    let open = format == Format::OpenMetrics;
    assert!(text.ends_with('\n'), "ends with a line feed");
    let mut lines: Vec<&str> = text.lines().collect();
    if open {
        assert_eq!(lines.pop(), Some("# EOF"));
    }
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    let mut seen = BTreeSet::new();
    for line in lines {
        if let Some(metadata) = line.strip_prefix("# ") {
            let mut words = metadata.splitn(3, ' ');
            let (keyword, name, rest) =
                (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            assert_name(name);
            if keyword == "TYPE" {
                assert!(
                    !families.contains_key(name),
                    "a family stands once and in one piece: {line}"
                );
                current = name.to_owned();
                families.insert(current.clone(), Family::default());
            }
            assert_eq!(name, current, "metadata stands with its family: {line}");
            let family = families.get_mut(name).unwrap();
            assert!(family.samples.is_empty(), "metadata stands before samples: {line}");
            match keyword {
                "TYPE" => rest.clone_into(&mut family.kind),
                "HELP" => rest.clone_into(&mut family.help),
                "UNIT" => family.unit = Some(rest.to_owned()),
                _ => panic!("{line}"),
            }
            continue;
        }
        let sample = parse_sample(line);
        let family = families.get_mut(&current).unwrap();
        let suffix = sample.0.strip_prefix(current.as_str()).unwrap_or_else(|| panic!("{line}"));
        let allowed: &[&str] = match (family.kind.as_str(), open) {
            ("gauge", _) | ("counter", false) => &[""],
            ("counter", true) => &["_total"],
            ("histogram", _) => &["_bucket", "_sum", "_count"],
            _ => panic!("{line}"),
        };
        assert!(allowed.contains(&suffix), "{line}");
        assert!(family.kind == "gauge" || sample.2 >= 0.0, "{line}");
        assert!(seen.insert((sample.0.clone(), sample.1.clone())), "stands twice: {line}");
        family.samples.push(sample);
    }
    for (name, family) in &families {
        assert!(!family.help.is_empty(), "{name}");
        assert_eq!(family.kind == "counter" && !open, name.ends_with("_total"), "{name}");
        assert!(
            family.unit.as_ref().is_none_or(|unit| open && name.ends_with(&format!("_{unit}")))
        );
        if family.kind == "histogram" {
            assert_histogram(name, family);
        }
    }
    families
}

fn assert_name(name: &str) {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    assert!(!name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(valid), "{name}");
}

fn parse_sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(end);
    assert_name(name);
    let mut labels = Vec::new();
    while let Some(inside) = rest.strip_prefix(['{', ',']) {
        let (label, after) = inside.split_once("=\"").unwrap();
        assert_name(label);
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next().unwrap_or_else(|| panic!("unterminated value: {line}")) {
                (at, '"') => break at,
                (_, '\\') => value.push(match characters.next().unwrap().1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    c => panic!("unknown escape {c}: {line}"),
                }),
                (_, c) => value.push(c),
            }
        };
        labels.push((label.to_owned(), value));
        rest = &after[end + 1..];
        if let Some(behind) = rest.strip_prefix('}') {
            rest = behind;
            break;
        }
        assert!(rest.starts_with(','), "{line}");
    }
    let number = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
    assert!(!number.contains(' '), "{line}");
    let value = number.parse().unwrap_or_else(|_| panic!("{line}"));
    (name.to_owned(), labels, value)
}

/// Checks that buckets increase with their bounds and end at the count.
fn assert_histogram(name: &str, family: &Family) {
    let mut by_service: BTreeMap<Vec<&(String, String)>, Vec<&Sample>> = BTreeMap::new();
    for sample in &family.samples {
        by_service.entry(series(sample)).or_default().push(sample);
    }
    for (labels, samples) in by_service {
        let (mut bound_before, mut count_before) = (f64::MIN, 0.0);
        for (_, with_bound, count) in samples.iter().filter(|s| s.0.ends_with("_bucket")) {
            let bound: f64 = with_bound.iter().find(|(n, _)| n == "le").unwrap().1.parse().unwrap();
            assert!(bound > bound_before && *count >= count_before, "{name} {labels:?}");
            (bound_before, count_before) = (bound, *count);
        }
        assert!(bound_before.is_infinite(), "{name} {labels:?}: +Inf is the last");
        let count = samples.iter().find(|s| s.0.ends_with("_count")).unwrap().2;
        assert!((count - count_before).abs() < 0.5, "{name} {labels:?}");
        assert!(samples.iter().any(|s| s.0.ends_with("_sum")), "{name} {labels:?}");
    }
}

/// Returns a sample's labels but for `le`.
fn series(sample: &Sample) -> Vec<&(String, String)> {
    sample.1.iter().filter(|(name, _)| name != "le").collect()
}

/// Returns two workers' counters of a service whose name needs escaping.
fn totals() -> Totals {
    let registry = Registry::new();
    for _ in 0..2 {
        let shard = registry.add_shard();
        let service = shard.service(&Arc::from("list\"ings\\\n"));
        for millis in [1, 500, 501, 3_600_000] {
            let timings = Timings { total: Duration::from_millis(millis), ..Timings::default() };
            service.exchange_ended(Cause::Completed, Some(200), 1, &timings);
        }
        service.exchange_ended(Cause::QueueFull, Some(429), 0, &Timings::default());
        service.response_body_bytes.add(50_000);
        service.mirrored[Mirrored::OtherStatus as usize].add(2);
        let listener = shard.listener(&Arc::from("public"));
        listener.connections_accepted.add(2);
        listener.connections_closed.add(1);
        listener.exchanges.count(Cause::DestinationNotFound, Some(404));
    }
    registry.totals()
}

fn server() -> ServerGauges<'static> {
    let way = TcpPath::default();
    for round_trip in [Duration::from_micros(250), Duration::from_micros(251)] {
        way.note(&TcpSample { round_trip, sent: 100, sent_again: 3, reordered: 2 });
    }
    way.note_dial(1);
    ServerGauges {
        service: "listings",
        name: "listings.internal:8080",
        address: "[2001:db8::1]:8080".parse().unwrap(),
        zone: "eu-west-1a",
        up: true,
        ejected: false,
        ready: true,
        in_flight: 3,
        in_flight_max: 4,
        weight: 1,
        requests: 12,
        failures: 1,
        idle_connections: Some(2),
        tcp: way.totals(),
        latency: latency(),
    }
}

fn latency() -> &'static ServerLatency {
    static LATENCY: LazyLock<ServerLatency> = LazyLock::new(|| {
        let latency = ServerLatency::default();
        latency.first_byte.record(Duration::from_millis(20));
        latency
    });
    &LATENCY
}

fn fleet() -> FleetGauges {
    FleetGauges {
        members: 8,
        probes: [("assigned", 70), ("stood_in", 2), ("relied", 208)],
        ignored: 1,
        slots: Some(FleetSlotGauges {
            servers: 12,
            is_settled: true,
            slots: [("share", 16), ("lent", 3), ("borrowed", 2)],
        }),
        rates: Some(FleetRateGauges { limits: 2, keys: 35, part: 0.75, untracked: 0 }),
        tickets: Some(FleetTicketGauges {
            keys: 2,
            sealing_age_s: Some(4_321),
            behind: 1,
            not_sharing: 2,
            failed: 3,
            refused: 4,
        }),
        orders: [("drain", 2), ("maintenance", 1)],
        problems: vec![("missing", 2), ("ignored", 1)],
        datagrams: vec![("accepted".into(), 900), ("unknown_key".into(), 3), ("sent".into(), 800)],
        received_bytes: 90_000,
        sent_bytes: 80_000,
    }
}

fn sources() -> SourcesGauges {
    SourcesGauges {
        services: vec![SourceGauges {
            service: "listings".into(),
            servers: [("listed", 3), ("not_ready", 1), ("held", 0), ("flapping", 0)],
            age: Some(Duration::from_millis(2_500)),
            is_failing: true,
            refused: 2,
        }],
        tags: Some(TagGauges { published: 3, held: 1, refused: 2, is_failing: false }),
        registrations: vec![RegistrationGauges { listener: "public".into(), is_failing: true }],
        propagation: {
            let took = SharedHistogram::default();
            took.record(Duration::from_micros(300));
            took.totals()
        },
    }
}

fn certificates() -> Vec<CertificateGauges<'static>> {
    let of = |listener, file, not_after| CertificateGauges { listener, file, not_after };
    vec![
        of(Some("public"), "/etc/weir/a.pem", 1_800_000_000),
        of(None, "/etc/weir/member.pem", 1_800_000_001),
    ]
}

fn scaled_service() -> ServiceGauges<'static> {
    ServiceGauges {
        wanted_servers: Some(13),
        scaling_calls: Some([3, 1]),
        name: "listings",
        queue_length: 7,
        queue_length_max: 200,
        maintenance: true,
    }
}

fn gauges() -> Gauges<'static> {
    Gauges {
        version: "0.1.0",
        generation: 1,
        workers: 2,
        worker_connections: Some(vec![3, 4]),
        request_buffers: Some(BudgetGauges { used_bytes: 4096, exhausted: 1 }),
        compression: Some(BudgetGauges { used_bytes: 500_000, exhausted: 2 }),
        mirrors: Some(BudgetGauges { used_bytes: 64_000, exhausted: 3 }),
        process: Some(ProcessGauges {
            start_time: Duration::from_secs(1_763_619_180),
            cpu: Duration::from_millis(1_500),
            resident_bytes: 1 << 24,
            open_fds: 40,
            fds_max: 1 << 16,
        }),
        reloads: Some(ReloadGauges {
            applied: 3,
            unchanged: 2,
            refused: 1,
            last_refused: true,
            last_at: Some(Duration::from_secs(1_763_619_999)),
        }),
        listeners: vec![ListenerGauges { name: "public", connections_max: 20_000 }],
        certificates: certificates(),
        telemetry: vec![TelemetryGauges {
            signal: "traces",
            sent: 7,
            dropped: vec![("queue_full", 1), ("refused", 0)],
        }],
        sources: sources(),
        fleet: Some(fleet()),
        kubernetes: Some(KubernetesGauges {
            is_connected: true,
            is_leading: true,
            failing: 1,
            unreadable: 2,
            writes_waiting: 3,
        }),
        key_sets: vec![KeySetGauges {
            authentication: "api".to_owned(),
            keys: 2,
            fetched: 5,
            failed: 1,
            fetched_at: Some(Duration::from_secs(1_763_619_500)),
        }],
        findings: vec![FindingGauges {
            rule: "server_slow".to_owned(),
            severity: "warning",
            present: 2,
        }],
        services: vec![scaled_service()],
        routes_in_maintenance: vec!["checkout"],
        servers: vec![server(), ServerGauges { name: "other", ready: false, zone: "", ..server() }],
        server_histograms: true,
        probes: vec![ProbeGauges {
            address: "10.0.1.5:8080".parse().unwrap(),
            per_second: 0.5,
            per_second_unshared: 35.0,
            ended: 10,
            failed: 2,
            time: Duration::from_millis(35),
            last: Duration::from_micros(2_500),
        }],
    }
}

fn text(totals: &Totals, gauges: &Gauges<'_>, format: Format) -> String {
    String::from_utf8(write(totals, gauges, format)).unwrap()
}

fn exposed(format: Format) -> BTreeMap<String, Family> {
    parse(&text(&totals(), &gauges(), format), format)
}

/// Returns the value of the sample with that name whose labels include all of `labels`.
fn value(families: &BTreeMap<String, Family>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let mut samples = families.values().flat_map(|family| &family.samples).filter(|sample| {
        sample.0 == name
            && labels.iter().all(|(n, v)| sample.1.iter().any(|l| (&*l.0, &*l.1) == (*n, *v)))
    });
    let found = samples.next().unwrap_or_else(|| panic!("no {name} {labels:?}")).2;
    assert!(samples.next().is_none(), "several {name} {labels:?}");
    found
}

#[test]
fn both_formats_agree_and_follow_their_rules() {
    let prometheus = exposed(Format::Prometheus);
    let open = exposed(Format::OpenMetrics);
    let names = |families: &BTreeMap<String, Family>| -> BTreeSet<String> {
        families.keys().map(|name| name.trim_end_matches("_total").to_owned()).collect()
    };
    assert_eq!(names(&prometheus), names(&open));
    let units = open.iter().filter(|(_, family)| family.unit.is_some()).count();
    assert_eq!(units, 27, "families with a unit");
    let service = ("service", "list\"ings\\\n");
    for families in [&prometheus, &open] {
        for (name, labels, expected) in [
            ("weir_requests_total", &[service, ("cause", "completed"), ("status", "2xx")][..], 8.0),
            (
                "weir_requests_total",
                &[service, ("cause", "queue_full"), ("status", "4xx"), ("fault", "server")],
                2.0,
            ),
            ("weir_response_body_bytes_total", &[service], 100_000.0),
            ("weir_mirrored_requests_total", &[service, ("result", "other_status")], 4.0),
            ("weir_mirrored_requests_total", &[service, ("result", "failed")], 0.0),
            ("weir_request_duration_seconds_bucket", &[service, ("le", "0.5")], 4.0),
            ("weir_request_duration_seconds_bucket", &[service, ("le", "1.0")], 6.0),
            ("weir_request_duration_seconds_bucket", &[service, ("le", "+Inf")], 8.0),
            ("weir_unanswered_request_duration_seconds_count", &[service], 2.0),
            ("weir_request_duration_seconds_sum", &[service], 7_202.004),
            ("weir_listener_requests_total", &[("cause", "destination_not_found")], 2.0),
            ("weir_listener_requests_total", &[("cause", "completed")], 0.0),
            ("weir_listener_connections_open", &[("listener", "public")], 2.0),
            ("weir_listener_connections_max", &[("listener", "public")], 20_000.0),
            ("weir_queue_length", &[("service", "listings")], 7.0),
            (
                "weir_server_ready",
                &[("server", "other"), ("address", "[2001:db8::1]:8080"), ("zone", "")],
                0.0,
            ),
            ("weir_server_in_flight", &[("server", "listings.internal:8080")], 3.0),
            ("weir_probes_per_second", &[("address", "10.0.1.5:8080")], 0.5),
            ("weir_probes_failed_total", &[], 2.0),
            ("weir_probe_seconds_total", &[("address", "10.0.1.5:8080")], 0.035),
            ("weir_probe_last_seconds", &[("address", "10.0.1.5:8080")], 0.0025),
            ("weir_server_idle_connections", &[("server", "other")], 2.0),
            ("weir_server_tcp_segments_retransmitted_total", &[("server", "other")], 6.0),
            ("weir_server_tcp_samples_total", &[("server", "other")], 2.0),
            (
                "weir_zone_tcp_round_trip_seconds_bucket",
                &[("zone", "eu-west-1a"), ("le", "0.00025")],
                1.0,
            ),
            ("weir_zone_tcp_round_trip_seconds_count", &[("zone", "")], 2.0),
            ("weir_zone_syn_retries_total", &[("zone", "eu-west-1a")], 1.0),
            ("process_cpu_seconds_total", &[], 1.5),
            ("weir_build_info", &[("version", "0.1.0")], 1.0),
        ] {
            let found = value(families, name, labels);
            assert!((found - expected).abs() < 1e-9, "{name} {labels:?}: {found}");
        }
    }
}

#[test]
fn unknown_values_are_not_exposed() {
    let mut gauges = gauges();
    for server in &mut gauges.servers {
        server.idle_connections = None;
    }
    for format in [Format::Prometheus, Format::OpenMetrics] {
        let families = parse(&text(&totals(), &gauges, format), format);
        assert!(!families.contains_key("weir_server_idle_connections"));
        assert_eq!(families["weir_server_ready"].samples.len(), 2);
    }
}

/// Returns the families of a protobuf exposition by name.
fn decoded(mut bytes: &[u8]) -> BTreeMap<String, MetricFamily> {
    let mut families = BTreeMap::new();
    while !bytes.is_empty() {
        let family = MetricFamily::decode_length_delimited(&mut bytes).unwrap();
        assert!(!family.metric.is_empty() && !family.help().is_empty(), "{}", family.name());
        let twice = families.insert(family.name().to_owned(), family);
        assert!(twice.is_none(), "a family occurs twice");
    }
    families
}

#[test]
fn protobuf_has_the_same_families_and_native_histograms() {
    let (totals, gauges) = (totals(), gauges());
    let families = decoded(&write(&totals, &gauges, Format::Protobuf));
    let classic = exposed(Format::Prometheus);
    let with_samples = classic.iter().filter(|(_, family)| !family.samples.is_empty());
    let names: BTreeSet<&String> = with_samples.map(|(name, _)| name).collect();
    assert_eq!(families.keys().collect::<BTreeSet<_>>(), names);
    let messages = super::families(&totals, &gauges);
    assert_eq!(
        messages.iter().map(|f| (f.name().to_owned(), f.clone())).collect::<BTreeMap<_, _>>(),
        families
    );

    let durations = &families["weir_request_duration_seconds"];
    assert_eq!(durations.kind(), protobuf::MetricType::Histogram);
    let metric = &durations.metric[0];
    assert_eq!((metric.label[0].name(), metric.label[0].value()), ("service", "list\"ings\\\n"));
    let histogram = metric.histogram.as_ref().unwrap();
    assert_eq!((histogram.sample_count(), histogram.schema()), (8, 3));
    let half_a_second =
        histogram.bucket.iter().find(|one| (0.49..0.51).contains(&one.upper_bound())).unwrap();
    assert_eq!(half_a_second.cumulative_count(), 4);
    let (mut sum, mut count) = (0, 0);
    for delta in &histogram.positive_delta {
        count += delta;
        sum += count;
    }
    assert_eq!(sum + histogram.zero_count().cast_signed(), 8);

    // Of each server, without classic buckets unless they are configured.
    let of_servers = &families["weir_server_latency_seconds"];
    assert_eq!(of_servers.metric.len(), 8);
    let histogram = of_servers.metric[2].histogram.as_ref().unwrap();
    assert_eq!((histogram.sample_count(), histogram.bucket.len()), (1, 17));
    let gauges = Gauges { server_histograms: false, ..gauges };
    let families = decoded(&write(&totals, &gauges, Format::Protobuf));
    let histogram = families["weir_server_latency_seconds"].metric[2].histogram.clone().unwrap();
    assert_eq!((histogram.sample_count(), histogram.bucket.len()), (1, 0));
    let text = parse(&text(&totals, &gauges, Format::OpenMetrics), Format::OpenMetrics);
    assert!(!text.contains_key("weir_server_latency_seconds"));
}

#[test]
fn nothing_counted_yet_is_valid_too() {
    for format in [Format::Prometheus, Format::OpenMetrics] {
        let families = parse(&text(&Totals::default(), &Gauges::default(), format), format);
        assert!(families["weir_queue_length"].samples.is_empty());
    }
}
