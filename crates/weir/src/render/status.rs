//! A running balancer as a person reads it: the process, then each service with its servers by zone and
//! how its requests ended. A member that an older balancer does not send is shown as nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use admin_api::Word;
use admin_api::causes::Cause;
use admin_api::findings::{Findings, SeenFinding};
use admin_api::maintenance::Maintenance;
use admin_api::published::TagSource;
use admin_api::requests::{Request, Requests};
use admin_api::services::{
    RefusedEntry, ScalingCalls, Server, Service, ServiceSource, UnresolvedServer, WantedServers,
};
use admin_api::status::{Kubernetes, Registration, Status};
use admin_api::traffic::{ServerWindow, ServiceTraffic, Traffic};
use diagnose::finding::Finding;
use diagnose::kinds::{grouped, others};
use diagnose::words::thousands;
use model::units::show_duration;
use model::{Fault, Standing};
use serde::{Deserialize, Serialize};

use super::acme;
use super::columns::Columns;
use super::fleet;
use super::traffic;

/// Causes named per service; the rest is one number.
const CAUSES_SHOWN_MAX: usize = 8;

/// Everything that `weir status` shows, and prints with `--json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Look {
    #[serde(flatten)]
    pub(crate) status: Status,
    pub(crate) services: Vec<Service>,
    /// Requests that have ended.
    pub(crate) requests: u64,
    pub(crate) causes: Vec<CauseCount>,
    /// What the built-in doctor sees, if the balancer has one.
    pub(crate) doctor: Option<Findings>,
    /// Rates and latencies, if the balancer keeps a history.
    pub(crate) traffic: Option<Traffic>,
    /// The oldest requests in flight, if the balancer can list them.
    pub(crate) under_way: Option<Requests>,
}

/// How many requests ended with a cause; its page is `weir explain`'s.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CauseCount {
    pub(crate) name: String,
    pub(crate) fault: Word<Fault>,
    pub(crate) count: u64,
    pub(crate) services: BTreeMap<String, u64>,
}

impl From<Cause> for CauseCount {
    fn from(cause: Cause) -> CauseCount {
        let Cause { name, fault, count, services, .. } = cause;
        CauseCount { name, fault, count, services }
    }
}

/// Renders everything, with the services' names in bold if `colour`.
pub(crate) fn text(look: &Look, colour: bool) -> String {
    let (strong, weak) = if colour { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    let mut out = process(&look.status);
    for listener in &look.status.listeners {
        if let Some(entry) = &listener.registration {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}: {}", listener.name, registration(entry));
        }
    }
    if let Some(source) = &look.status.published_routes {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "routes from tags in Consul: {}", tag_source(source));
    }
    if let Some(state) = &look.status.kubernetes {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "Kubernetes: {}", kubernetes(state));
    }
    out.push_str(&look.status.fleet.as_ref().map(fleet::text).unwrap_or_default());
    for row in &look.status.maintenance {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", maintenance(row));
    }
    out.push_str(&look.doctor.as_ref().map(findings).unwrap_or_default());
    let own_zone = look.status.zone.as_deref();
    let traffic = |service: &Service| {
        let all = look.traffic.as_ref()?.services.iter();
        all.clone().find(|traffic| traffic.name == service.name)
    };
    let spans_s = look.traffic.as_ref().map(|traffic| &*traffic.spans_s).unwrap_or_default();
    // Those in trouble first, the others in the order of the configuration.
    let mut services: Vec<&Service> = look.services.iter().collect();
    services.sort_by_key(|service| std::cmp::Reverse(traffic::trouble(service, traffic(service))));
    for service in services {
        let Service { name, eligible, why, queue, servers, unresolved, .. } = service;
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "\n{strong}{name}{weak}: {eligible} of {} servers take new work, {why}; {} of {} wait",
            servers.len() + unresolved.len(),
            queue.length,
            queue.length_max,
        );
        if let Some(source) = &service.source {
            let _ = writeln!(out, "  from {}", self::source(source));
        }
        if let Some(wanted) = &service.wanted {
            let _ = writeln!(out, "  {}", self::wanted(wanted));
        }
        let traffic = traffic(service);
        let rates = traffic.map(|traffic| traffic::windows(traffic, spans_s)).unwrap_or_default();
        let servers = table(servers, unresolved, own_zone, traffic);
        for line in rates.lines().chain(servers.lines()) {
            let _ = writeln!(out, "  {line}");
        }
        let ended = ended(&look.causes, |cause| cause.services.get(name).copied().unwrap_or(0));
        let _ = writeln!(out, "  ended: {ended}");
    }
    let without =
        ended(&look.causes, |cause| cause.count.saturating_sub(cause.services.values().sum()));
    if without != NOTHING {
        let _ = writeln!(out, "\nwithout a service: {without}");
    }
    out.push_str(&look.status.acme.as_ref().map(acme::text).unwrap_or_default());
    out.push_str(&look.under_way.as_ref().map(slowest).unwrap_or_default());
    out
}

/// Returns one line on the number of servers that a service should have.
fn wanted(wanted: &WantedServers) -> String {
    let WantedServers { number, why, calls, .. } = wanted;
    let mut out = match number {
        Some(number) => format!("wanted servers: {number}; {why}"),
        None => format!("wanted servers: unknown; {why}"),
    };
    if let Some(ScalingCalls { servers, error, .. }) = calls {
        if let Some(servers) = servers {
            // Writing to a String cannot fail.
            let _ = write!(out, "; last asked for {servers}");
        }
        if let Some(error) = error {
            let _ = write!(out, "; the last call failed: {error}");
        }
    }
    out
}

/// Returns one line on the routes that services publish.
fn tag_source(source: &TagSource) -> String {
    let TagSource { published, held, refused, refused_examples, .. } = source;
    let mut out = format!("{published} published");
    if *held > 0 {
        let _ = write!(out, ", {held} of services no longer listed but kept");
    }
    put_refused(&mut out, *refused, refused_examples);
    let answered = source.answered_ms_ago.map(|ms| format!("answered {} ago", ago(ms)));
    let _ = write!(out, "; {}", answered.as_deref().unwrap_or("no answer yet, earlier routes"));
    put_index(&mut out, source.index);
    put_failure(&mut out, source.error.as_deref(), source.failing_for_ms);
    out
}

fn ago(ms: f64) -> String {
    traffic::elapsed((ms / 1e3) as u64)
}

fn put_refused(out: &mut String, refused: u64, examples: &[RefusedEntry]) {
    if refused > 0 {
        // Writing to a String cannot fail.
        let _ = write!(out, ", {refused} refused");
        if let Some(first) = examples.first() {
            let _ = write!(out, " ({}: {})", first.object, first.why);
        }
    }
}

fn put_index(out: &mut String, index: Option<u64>) {
    if let Some(index) = index {
        // Writing to a String cannot fail.
        let _ = write!(out, ", index {index}");
    }
}

fn put_failure(out: &mut String, error: Option<&str>, failing_for_ms: Option<f64>) {
    if let Some(error) = error {
        let since = failing_for_ms.map(|ms| format!(" for {}", ago(ms))).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = write!(out, "; FAILING{since}: {error}");
    }
}

/// Returns one line on where a service's servers come from.
fn source(source: &ServiceSource) -> String {
    let ServiceSource { source: name, listed, not_ready, held, flapping, refused, .. } = source;
    let mut out = format!("{name}: {listed} listed");
    let others = [
        (*not_ready, "not ready there"),
        (*held, "no longer listed but kept"),
        (*flapping, "coming and going"),
    ];
    for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
        let _ = write!(out, ", {count} {what}");
    }
    put_refused(&mut out, *refused, &source.refused_examples);
    let answered = source.answered_ms_ago.map(|ms| format!("answered {} ago", ago(ms)));
    let none =
        if source.restored { "no answer yet, servers of the last run" } else { "no answer yet" };
    let _ = write!(out, "; {}", answered.as_deref().unwrap_or(none));
    put_index(&mut out, source.index);
    put_failure(&mut out, source.error.as_deref(), source.failing_for_ms);
    out
}

/// Describes the connection to Kubernetes in one line.
fn kubernetes(state: &Kubernetes) -> String {
    if !state.running {
        return "its thread has ended; changes are not seen until Weir is restarted".to_owned();
    }
    let mut parts = Vec::new();
    match state.disconnected_for_ms {
        None => parts.push("connected".to_owned()),
        Some(millis) => {
            let since = ago(millis);
            let why = state.error.as_deref().unwrap_or("reason unknown");
            parts.push(format!("not connected for {since} ({why})"));
        }
    }
    if state.leading {
        parts.push(format!("writes statuses ({} waiting)", state.writes_waiting));
    }
    for (what, names) in [
        ("waits for", state.awaited.clone()),
        ("cannot read", state.failing.keys().cloned().collect()),
        ("may not", state.forbidden.clone()),
        ("ignores", state.unreadable.keys().take(CAUSES_SHOWN_MAX).cloned().collect()),
    ] {
        if !names.is_empty() {
            parts.push(format!("{what} {}", names.join(", ")));
        }
    }
    parts.join("; ")
}

/// Returns what there is to say of a listener's entry in Consul, on one line.
fn registration(entry: &Registration) -> String {
    let Registration { service, address, check, registered_for_ms, failing_for_ms, error, .. } =
        entry;
    let mut out = match registered_for_ms {
        Some(ms) => format!("registered as {service} at {address} for {}", ago(*ms)),
        None => format!("not registered yet as {service} at {address}"),
    };
    if let Some(check) = check {
        let _ = write!(out, ", check {check}");
    }
    put_failure(&mut out, error.as_deref(), *failing_for_ms);
    out
}

/// Returns one line on a service or route in maintenance.
pub(crate) fn maintenance(row: &Maintenance) -> String {
    let Maintenance { kind, name, in_file, by_operator, retry_after_ms, .. } = row;
    let who = match (in_file, by_operator) {
        (true, true) => "the configuration file and an operator",
        (true, false) => "the configuration file",
        (false, _) => "an operator",
    };
    let time = retry_after_ms.map(|ms| show_duration(Duration::from_millis(ms)));
    let until = time.map(|time| format!(", Retry-After {time}")).unwrap_or_default();
    format!("{} {name}: in maintenance ({who}){until}", kind.as_str())
}

/// Lists the findings that are present now and need attention.
fn findings(doctor: &Findings) -> String {
    let weighs = |seen: &&SeenFinding| seen.is_present && seen.finding.has_weight();
    let present: Vec<&Finding> =
        doctor.findings.iter().filter(weighs).map(|seen| &seen.finding).collect();
    if present.is_empty() {
        return String::new();
    }
    let mut out = "\nthe doctor found (`weir doctor` says more):\n".to_owned();
    // Findings of one rule are one line: a fault of the network shows at every server.
    let kinds = grouped(
        present.into_iter().map(|finding| ((finding.severity.as_str(), &*finding.rule), finding)),
    );
    for ((severity, rule), alike) in kinds {
        let what = alike.first().map(|first| first.what.as_str()).unwrap_or_default();
        let subjects = alike.iter().skip(1).map(|finding| finding.subject.clone());
        let others = others(&subjects.collect::<Vec<_>>());
        let more = others.map(|others| format!("; and {others}")).unwrap_or_default();
        let _ = writeln!(out, "  {severity}: {what} ({rule}{more})");
    }
    out
}

/// Lists the requests that have been in flight for long.
fn slowest(under_way: &Requests) -> String {
    let Requests { in_flight, matching, requests, .. } = under_way;
    if requests.is_empty() {
        return String::new();
    }
    let mut out = format!("\nunder way for a second or more: {matching} of {in_flight}\n");
    let mut columns =
        Columns::headed(["AGE", "STAGE", "REQUEST", "SERVICE", "SERVER", "ATTEMPTS", "CLIENT"]);
    for request in requests {
        let word = |text: &Option<String>| text.clone().unwrap_or_default();
        columns.row([
            format!("{:.1} s", request.age_ms / 1e3),
            request.stage.as_str().to_owned(),
            asked_for(request),
            word(&request.service),
            word(&request.server),
            request.attempts.to_string(),
            request.client.clone(),
        ]);
    }
    for line in columns.text().lines() {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// One line on the process and one on its connections.
fn process(status: &Status) -> String {
    let Status { version, pid, workers, generation, connections, .. } = status;
    let ready = if status.ready { "ready" } else { "NOT READY" };
    let zone = status.zone.as_ref().map(|zone| format!(", zone {zone}")).unwrap_or_default();
    let up = traffic::elapsed(status.uptime_s);
    let mut out = format!(
        "weir {version}: {ready}, up {up}, process {pid}, {workers} workers, configuration \
         {generation}{zone}\n"
    );
    let listeners: Vec<String> = status
        .listeners
        .iter()
        .map(|listener| {
            let (name, address, open) =
                (&listener.name, &listener.address, listener.connections.open);
            if name == address {
                format!("{address} {open}")
            } else {
                format!("{name} ({address}) {open}")
            }
        })
        .collect();
    let (open, open_max) = (connections.open, connections.open_max);
    let _ = writeln!(out, "{open} of {open_max} connections: {}", listeners.join(", "));
    out
}

/// The servers by zone, the balancer's own first; last those whose names have no address. Their
/// rates are those of the last minute, if the balancer keeps a history.
fn table(
    servers: &[Server],
    unresolved: &[UnresolvedServer],
    own_zone: Option<&str>,
    traffic: Option<&ServiceTraffic>,
) -> String {
    let mut zones: Vec<(Option<&str>, Vec<&Server>)> = Vec::new();
    for server in servers {
        let zone = server.zone.as_deref();
        match zones.iter_mut().find(|(of, _)| *of == zone) {
            Some((_, members)) => members.push(server),
            None => zones.push((zone, vec![server])),
        }
    }
    zones.sort_by_key(|(zone, _)| (zone.is_none() || *zone != own_zone, zone.is_none(), *zone));
    let mut columns = Columns::headed([
        "ZONE",
        "SERVER",
        "NEW WORK",
        "HEALTH",
        "STATE",
        "IN FLIGHT",
        "WEIGHT",
        "VERSION",
        "REQ/S",
        "FAILED",
        "P50",
        "P99",
        "REQUESTS",
        "FAILURES",
        "LATENCY",
    ])
    .numbers(8..);
    for (zone, members) in zones {
        for server in members {
            let known = traffic.into_iter().flat_map(|traffic| &traffic.servers);
            let rates = known.clone().find(|rates| rates.address == server.address);
            columns.row(row(zone, server, rates.and_then(|rates| rates.windows.last())));
        }
    }
    for server in unresolved {
        let backup = if server.backup { ", backup" } else { "" };
        let none = String::new;
        columns.row([
            server.zone.clone().unwrap_or_default(),
            format!("{}{backup}", server.name),
            "no".to_owned(),
            "name not resolved".to_owned(),
            none(),
            none(),
            server.weight_configured.to_string(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
        ]);
    }
    columns.text()
}

fn row(zone: Option<&str>, server: &Server, rates: Option<&ServerWindow>) -> [String; 15] {
    let Server { name, address, in_flight, .. } = server;
    let shown = if name == address { address.clone() } else { format!("{name} ({address})") };
    let backup = if server.backup { ", backup" } else { "" };
    let health = match server.ejected_for_ms {
        Some(ms) => format!("ejected {} s", (ms / 1e3).ceil()),
        None => server.health.as_str().to_owned(),
    };
    // What it is in its source, and what that makes of it unless it is simply listed.
    let listing = server.listing.as_ref();
    let object = listing.map(|listing| format!(", {}", listing.object)).unwrap_or_default();
    let standing = listing.map(|listing| listing.standing.as_str());
    let standing = standing.filter(|standing| *standing != Standing::Listed.as_str());
    let leaving = server.leaving.then_some("leaving");
    let state = [Some(server.state.as_str()), leaving, standing];
    let state = state.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let in_flight = match server.in_flight_max {
        Some(max) => format!("{in_flight} of {max}"),
        None => in_flight.to_string(),
    };
    let [rate, failed, p50, p99] = traffic::server(rates);
    // Without a history, what was counted since the start is all there is.
    let [requests, failures, latency] = match rates {
        Some(_) => Default::default(),
        None => [
            thousands(server.requests),
            thousands(server.failures),
            traffic::time(server.latency_ms),
        ],
    };
    [
        zone.unwrap_or_default().to_owned(),
        format!("{shown}{backup}{object}"),
        if server.eligible { "yes" } else { "no" }.to_owned(),
        health,
        state,
        in_flight,
        weight(server),
        server.version.clone().unwrap_or_default(),
        rate,
        failed,
        p50,
        p99,
        requests,
        failures,
        latency,
    ]
}

const NOTHING: &str = "nothing yet";

/// How exchanges ended, most frequent first, as shares of all that `of` counts.
fn ended(causes: &[CauseCount], of: impl Fn(&CauseCount) -> u64) -> String {
    let mut counted: Vec<(&str, u64)> = causes
        .iter()
        .map(|cause| (cause.name.as_str(), of(cause)))
        .filter(|(_, count)| *count > 0)
        .collect();
    counted.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let all: u64 = counted.iter().map(|(_, count)| count).sum();
    if all == 0 {
        return NOTHING.to_owned();
    }
    let mut shown: Vec<String> = counted
        .iter()
        .take(CAUSES_SHOWN_MAX)
        .map(|(name, count)| format!("{name} {}", share(*count, all)))
        .collect();
    let more: u64 = counted.iter().skip(CAUSES_SHOWN_MAX).map(|(_, count)| count).sum();
    if more > 0 {
        shown.push(format!("others {}", share(more, all)));
    }
    shown.join(", ")
}

/// A share that is all only if it is all, and nothing only if it is nothing.
fn share(count: u64, all: u64) -> String {
    let percent = count as f64 / all as f64 * 1e2;
    let percent = match percent {
        percent if count == all => format!("{percent:.0} %"),
        percent if percent > 99.9 => ">99.9 %".to_owned(),
        percent if percent < 0.1 => "<0.1 %".to_owned(),
        percent => format!("{percent:.1} %"),
    };
    format!("{percent} ({count})")
}

/// Returns what a request asks for, as far as its head was read: `GET api.example.com/listings`.
pub(crate) fn asked_for(request: &Request) -> String {
    let word = |text: &Option<String>| text.clone().unwrap_or_default();
    let (method, host, path) = (word(&request.method), word(&request.host), word(&request.path));
    format!("{method} {host}{path}").trim().to_owned()
}

/// Returns a server's weight, with that of the configuration file if it differs.
pub(crate) fn weight(server: &Server) -> String {
    match (server.weight, server.weight_configured) {
        (weight, configured) if weight == configured => weight.to_string(),
        (weight, configured) => format!("{weight} (file: {configured})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_connection_to_kubernetes_is_one_line() {
        let connected = Kubernetes { running: true, connected: true, ..Kubernetes::default() };
        let leading = Kubernetes {
            leading: true,
            writes_waiting: 3,
            failing: [("httproutes".to_owned(), "403".to_owned())].into(),
            forbidden: vec!["list httproutes".to_owned()],
            ..connected.clone()
        };
        let away = Kubernetes {
            disconnected_for_ms: Some(90_000.0),
            error: Some("refused".to_owned()),
            ..connected.clone()
        };
        for (state, expected) in [
            (connected, "connected".to_owned()),
            (
                leading,
                "connected; writes statuses (3 waiting); cannot read httproutes; may not list \
                 httproutes"
                    .to_owned(),
            ),
            (away, format!("not connected for {} (refused)", ago(90_000.0))),
            (
                Kubernetes::default(),
                "its thread has ended; changes are not seen until Weir is restarted".to_owned(),
            ),
        ] {
            assert_eq!(kubernetes(&state), expected);
        }
    }

    /// What an API answered, as `weir status` reads it.
    fn look(value: serde_json::Value) -> Look {
        serde_json::from_value(value).unwrap()
    }

    /// A balancer with one service of three servers.
    fn example() -> Look {
        let server = |address: &str, zone: &str| {
            json!({
                "name": address, "address": address, "zone": zone, "eligible": zone == "b",
                "health": "up", "state": "ready", "ejected_for_ms": null, "weight": 1,
                "weight_configured": 1, "backup": false, "in_flight": 3, "in_flight_max": 4,
                "requests": 1204, "failures": 0, "latency_ms": 12.345,
            })
        };
        let mut third = server("10.0.0.3:80", "b");
        third["name"] = json!("app.internal:80");
        third["ejected_for_ms"] = json!(7_200.0);
        third["weight"] = json!(5);
        third["in_flight_max"] = json!(null);
        third["backup"] = json!(true);
        look(json!({
            "version": "1.2.3", "ready": true, "uptime_s": 90_061, "pid": 12, "workers": 2,
            "generation": 3, "zone": "b", "connections": { "open": 5, "open_max": 100 },
            "listeners": [
                { "name": "public", "address": "0.0.0.0:80", "connections": { "open": 5 } },
            ],
            "services": [{
                "name": "list/ings", "eligible": 2, "why": "enough of the own zone is ready",
                "queue": { "length": 0, "length_max": 200 },
                "servers": [server("10.0.0.1:80", "a"), server("10.0.0.2:80", "b"), third],
            }],
            "requests": 1004,
            "causes": [
                { "name": "completed", "count": 999, "services": { "list/ings": 999 } },
                { "name": "queue_full", "count": 1, "services": { "list/ings": 1 } },
                { "name": "destination_not_found", "count": 4, "services": {} },
            ],
            "traffic": { "spans_s": [10, 60, 3_600], "services": [{
                "name": "list/ings",
                "windows": [
                    {
                        "seconds": 12, "requests": 26_213, "failed": 8, "refused": 0,
                        "client_faults": 262,
                        "total": { "p50_ms": 21.2, "p90_ms": 48.0, "p99_ms": 1_508.0 },
                    },
                    { "seconds": 62, "requests": 132_122, "total": { "p50_ms": 20.0 } },
                    { "seconds": 600, "requests": 601_200 },
                ],
                "servers": [
                    {
                        "address": "10.0.0.2:80",
                        "windows": [{}, {
                            "seconds": 62, "requests": 14_880, "failed": 15,
                            "first_byte": { "p50_ms": 20.0, "p99_ms": 47.0 },
                        }],
                    },
                    { "address": "10.0.0.1:80", "windows": [{}, { "seconds": 62 }] },
                    { "address": "10.0.0.3:80", "windows": [{}, { "seconds": 62 }] },
                ],
            }] },
            "under_way": { "in_flight": 17, "matching": 2, "requests": [
                {
                    "age_ms": 12_345.678, "stage": "response", "method": "POST",
                    "host": "api.example.com", "path": "/listings", "service": "list/ings",
                    "server": "10.0.0.2:80", "attempts": 2, "client": "192.0.2.1:40000",
                },
                {
                    "age_ms": 1_050.0, "stage": "tunnel", "method": null, "host": null,
                    "path": null, "service": "list/ings", "server": null, "attempts": 0,
                    "client": "192.0.2.1:40001",
                },
            ] },
        }))
    }

    #[test]
    fn a_balancer_is_read_at_a_glance() {
        let look = example();
        let expected = "\
weir 1.2.3: ready, up 1d 1h, process 12, 2 workers, configuration 3, zone b
5 of 100 connections: public (0.0.0.0:80) 5

list/ings: 2 of 3 servers take new work, enough of the own zone is ready; 0 of 200 wait
  LAST    REQ/S  FAILED  REFUSED  CLIENT FAULT    P50    P90       P99
  10 s    2,184  0.03 %        0        1.00 %  21 ms  48 ms  1,508 ms
  minute  2,131       0        0             0  20 ms
  10 min  1,002       0        0             0
  ZONE  SERVER                                 NEW WORK  HEALTH       STATE  IN FLIGHT  WEIGHT       REQ/S  FAILED    P50    P99
  b     10.0.0.2:80                            yes       up           ready  3 of 4     1              240  0.10 %  20 ms  47 ms
  b     app.internal:80 (10.0.0.3:80), backup  yes       ejected 8 s  ready  3          5 (file: 1)      0       0
  a     10.0.0.1:80                            no        up           ready  3 of 4     1                0       0
  ended: completed 99.9 % (999), queue_full 0.1 % (1)

without a service: destination_not_found 100 % (4)

under way for a second or more: 2 of 17
  AGE     STAGE     REQUEST                        SERVICE    SERVER       ATTEMPTS  CLIENT
  12.3 s  response  POST api.example.com/listings  list/ings  10.0.0.2:80  2         192.0.2.1:40000
  1.1 s   tunnel                                   list/ings               0         192.0.2.1:40001
";
        assert_eq!(text(&look, false), expected);
        assert!(text(&look, true).contains("\u{1b}[1mlist/ings\u{1b}[0m"));
    }

    #[test]
    fn versions_are_a_column_if_a_server_has_one() {
        let mut look = example();
        assert!(!text(&look, false).contains("VERSION"));
        look.services[0].servers[0].version = Some("2.8.1".to_owned());
        let text = text(&look, false);
        assert!(text.contains("WEIGHT       VERSION") && text.contains("2.8.1"), "{text}");
    }

    #[test]
    fn without_a_history_the_counts_since_the_start_are_shown() {
        let text = text(&Look { traffic: None, ..example() }, false);
        assert!(
            !text.contains("REQ/S") && text.contains("  REQUESTS  FAILURES  LATENCY\n"),
            "{text}"
        );
        assert!(text.contains("     1,204         0    12 ms\n"), "{text}");
    }

    #[test]
    fn servers_without_an_address_are_shown() {
        let look = look(json!({ "services": [{
            "name": "app", "eligible": 0, "why": "no server takes new work", "servers": [],
            "unresolved": [
                { "name": "app.internal:80", "zone": "a", "weight_configured": 2, "backup": false },
                { "name": "spare.internal:80", "zone": null, "weight_configured": 1, "backup": true },
            ],
        }] }));
        let expected = "\
app: 0 of 2 servers take new work, no server takes new work; 0 of 0 wait
  ZONE  SERVER                     NEW WORK  HEALTH             WEIGHT
  a     app.internal:80            no        name not resolved  2
        spare.internal:80, backup  no        name not resolved  1
";
        let text = text(&look, false);
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn findings_of_one_kind_share_a_line() {
        let finding = |rule: &str, subject: &str, what: &str| {
            json!({
                "is_present": true, "severity": "warning", "certainty": "likely", "rule": rule,
                "subject": subject, "what": what, "why": "", "verify": "", "evidence": [], "source": [],
            })
        };
        let doctor = json!({ "findings": [
            finding("server_loss", "10.0.0.1:80", "10.0.0.1:80 loses 8 %"),
            finding("listener_overflow", "0.0.0.0:80", "a queue overflows"),
            finding("server_loss", "10.0.0.2:80", "10.0.0.2:80 loses 9 %"),
            finding("server_loss", "10.0.0.3:80", "10.0.0.3:80 loses 7 %"),
        ] });
        let expected = "\
  warning: 10.0.0.1:80 loses 8 % (server_loss; and 2 more of this kind: 10.0.0.2:80 and 10.0.0.3:80)
  warning: a queue overflows (listener_overflow)
";
        let text = findings(&serde_json::from_value(doctor).unwrap());
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_balancer_that_says_nothing_is_shown_all_the_same() {
        assert!(text(&look(json!({})), false).starts_with("weir : NOT READY"));
        assert!(text(&look(json!({ "services": [{}] })), false).contains("ended: nothing yet"));
    }

    #[test]
    fn shares_are_told_without_rounding_to_nothing() {
        assert_eq!(share(1, 1_000_000), "<0.1 % (1)");
        assert_eq!(share(999_999, 1_000_000), ">99.9 % (999999)");
        assert_eq!(share(5, 5), "100 % (5)");
        assert_eq!(share(1, 8), "12.5 % (1)");
    }
}
