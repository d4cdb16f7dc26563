//! The page about a server: whether and why it receives requests, its load, its latency and its failures.

use admin_api::checks::Plan;
use admin_api::history::{History, Series};
use admin_api::services::{Server, Service};
use admin_api::traffic::{ServerTraffic, ServerWindow};
use diagnose::words::{list, plural, thousands};

use super::sheet::Sheet;
use crate::render::status::weight;
use crate::render::traffic::{rate, share, time};
use crate::top::condition::{condition, why};
use crate::top::endings::Endings;
use crate::top::past::{Of, cells};
use crate::top::picture::{Part, Picture};
use crate::top::tone::{Line, Tone, bar, sparkline};

/// Cells of the bar of requests in flight.
const BAR: u16 = 16;

/// Causes that are named.
const CAUSES_MAX: usize = 4;

pub(super) fn page(picture: &Picture, service: &str, address: &str, width: u16) -> Vec<Line> {
    let mut sheet = Sheet::new(width);
    let Some((service, server)) = picture.server(service, address) else {
        sheet.heading(&format!("{address} is not a server of {service} at present."));
        return sheet.lines();
    };
    let traffic = picture.server_traffic(&service.name, address);
    let name = if server.name == *address { String::new() } else { format!(" ({})", server.name) };
    let zone = server.zone.as_ref().map(|zone| format!(", zone {zone}")).unwrap_or_default();
    let backup = if server.backup { ", backup" } else { "" };
    sheet.heading(&format!("{address}{name} of {}{zone}{backup}", service.name));
    let condition = condition(server, picture.finding_about(&service.name, address));
    let tone = if condition.trouble > 1 { Tone::Trouble } else { Tone::Strong };
    sheet.labelled("State", tone, condition.word);
    sheet.labelled("Receives requests", Tone::Plain, &why(picture, service, server));
    for finding in picture.findings_about(&service.name, address) {
        let text = format!("{} ({})", finding.what, finding.rule);
        sheet.labelled("Finding", Tone::Trouble, &text);
    }
    sheet.labelled("Health", Tone::Plain, &health(server, &picture.checks));
    load(&mut sheet, service, server);
    sheet.blank();
    match (traffic, picture.traffic.missing()) {
        (Some(traffic), _) => windows(&mut sheet, traffic, spans(picture)),
        (None, Some(why)) => sheet.labelled("Requests", Tone::Quiet, &format!("not known: {why}")),
        (None, None) => sheet.labelled("Requests", Tone::Quiet, "none has been counted"),
    }
    let failures = share(server.failures, server.requests);
    let since = format!("{}, failed {failures}", plural(server.requests, "request"));
    sheet.labelled("Since the start", Tone::Plain, &since);
    if let Some((past, series)) = picture.past_of(&service.name, address) {
        sheet.blank();
        pictures(&mut sheet, past, series);
    }
    sheet.blank();
    failures_of(&mut sheet, &picture.service_endings, &service.name);
    sheet.lines()
}

fn health(server: &Server, plan: &Part<Plan>) -> String {
    let verdict = match server.health.as_str() {
        "" | "unknown" => "no result",
        word => word,
    };
    if let Some(why) = plan.missing() {
        return format!("{verdict}; its checks are not known: {why}");
    }
    let mut endpoints = plan.known().into_iter().flat_map(|plan| &plan.endpoints);
    let endpoint = endpoints
        .find(|endpoint| endpoint.endpoint == server.address || endpoint.endpoint == server.name);
    let Some(endpoint) = endpoint else { return format!("{verdict}; no check is configured") };
    let probes: Vec<String> = endpoint
        .probes
        .iter()
        .map(|probe| {
            let every = std::time::Duration::from_millis(probe.interval_ms);
            format!("{} every {}", probe.what, model::units::show_duration(every))
        })
        .collect();
    let results = endpoint.results.map(|results| {
        let last = results.last_ms.map(|ms| format!(", the last in {}", time(Some(ms))));
        let failed = share(results.failed, results.ended);
        let ended = plural(results.ended, "probe");
        format!("; {ended}, failed {failed}{}", last.unwrap_or_default())
    });
    format!("{verdict}; {}{}", list(&probes, 2), results.unwrap_or_default())
}

fn load(sheet: &mut Sheet, service: &Service, server: &Server) {
    let in_flight = match server.in_flight_max {
        Some(max) => {
            let bar = bar(server.in_flight, max, BAR);
            let max = thousands(u64::from(max));
            format!("{} of {max} (at its address, of all services)  {bar}", server.in_flight)
        }
        None => format!("{} (at its address, of all services); no limit", server.in_flight),
    };
    sheet.labelled("In flight", Tone::Plain, &in_flight);
    let all: u64 = service
        .servers
        .iter()
        .filter(|server| server.eligible)
        .map(|server| u64::from(server.weight))
        .sum();
    let part = if server.eligible {
        format!(", {} of those that receive requests", share(u64::from(server.weight), all))
    } else {
        String::new()
    };
    sheet.labelled("Weight", Tone::Plain, &format!("{}{part}", weight(server)));
}

/// The spans of a server's windows.
fn spans(picture: &Picture) -> &[u64] {
    picture.traffic.known().map(|traffic| &*traffic.spans_s).unwrap_or_default()
}

/// Figures of each window, side by side.
fn windows(sheet: &mut Sheet, traffic: &ServerTraffic, spans_s: &[u64]) {
    let windows = &traffic.windows;
    let each = |of: &dyn Fn(&ServerWindow) -> String| windows.iter().map(of).collect::<Vec<_>>();
    let heads: Vec<String> = windows
        .iter()
        .zip(spans_s)
        // A process that has just started has counted less.
        .map(|(window, span_s)| format!("last {} s", window.seconds.min(*span_s)))
        .collect();
    sheet.figures("", Tone::Quiet, &heads);
    let mut row = |label: &str, of: &dyn Fn(&ServerWindow) -> String| {
        sheet.figures(label, Tone::Plain, &each(of));
    };
    let dash = |ms: Option<f64>| if ms.is_some() { time(ms) } else { "–".to_owned() };
    row("Requests/s", &|window| rate(window.requests, window.seconds));
    row("Failed or 5xx", &|window| share(window.failed, window.requests));
    row("First byte, p50", &|window| dash(window.first_byte.p50_ms));
    row("First byte, p90", &|window| dash(window.first_byte.p90_ms));
    row("First byte, p99", &|window| dash(window.first_byte.p99_ms));
    row("To connect", &|window| dash(window.connect_mean_ms));
    row("Round trip", &|window| dash(window.round_trip_ms));
}

/// The last minute, second by second.
fn pictures(sheet: &mut Sheet, past: &History, series: &Series) {
    const CELLS: u16 = 30;
    let largest = |cells: &[Option<f64>]| cells.iter().flatten().copied().reduce(f64::max);
    let requests = cells(past, series, "requests", CELLS, Of::Rate);
    let most =
        format!("up to {} requests/s", rate(largest(&requests).unwrap_or(0.0).round() as u64, 1));
    sheet.picture("Requests, 60 s", sparkline(&requests), &most);
    let first_byte = cells(past, series, "first_byte_p50_us", CELLS, Of::Largest);
    let most = match largest(&first_byte) {
        Some(us) => format!("p50 up to {}", time(Some(us / 1e3))),
        None => "no response".to_owned(),
    };
    sheet.picture("First byte, 60 s", sparkline(&first_byte), &most);
}

/// How the service's requests failed in the last minute. Causes are not counted by server.
fn failures_of(sheet: &mut Sheet, endings: &Part<History>, service: &str) {
    const LABEL: &str = "Failures by cause";
    let Some(endings) = endings.known().map(Endings::of) else {
        let why = endings.missing().unwrap_or_default();
        return sheet.labelled(LABEL, Tone::Quiet, &format!("not known: {why}"));
    };
    let mut failed: Vec<(&str, u64)> = endings.failures().collect();
    if endings.server_errors > 0 {
        failed.push((endings.server_errors_name(), endings.server_errors));
    }
    failed.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let named: Vec<String> =
        failed.iter().map(|(name, count)| format!("{name} {}", thousands(*count))).collect();
    let text = if named.is_empty() {
        format!("none in the last minute, at all servers of {service}")
    } else {
        let named = list(&named, CAUSES_MAX);
        format!("{named} in the last minute, at all servers of {service}")
    };
    sheet.labelled(LABEL, Tone::Plain, &text);
}
