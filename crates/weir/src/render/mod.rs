//! Renders a configuration's explanation for people (text) and programs (JSON).
//!
//! Nothing is decided and nothing is printed here; verbs do.

mod acme;
pub(crate) mod columns;
mod fleet;
mod plan;
mod routes;
mod services;
mod tls;

pub(crate) mod diagnostics;
pub(crate) mod doctor;
pub(crate) mod explained_route;
pub(crate) mod status;
pub(crate) mod traffic;

use std::fmt::Write as _;
use std::sync::Arc;

use health::report::Report;
use model::units::show_duration;
use model::{
    AccessLog, AutoscalerListener, Fleet, GatewayExposure, Kubernetes, Listener, LogFormat,
    Metrics, MetricsListener, Otlp, Protocol, RouteTagFormat, Snapshot, TagRoutes, TcpBranch,
    TcpSplit,
};

use columns::Columns;

/// What a configuration will do: listeners, routes in the order in which they match, services with
/// their servers by zone, and the probe plan.
pub(crate) fn explain(snapshot: &Snapshot, plan: &Report, colour: bool) -> String {
    let mut out = String::new();
    section(&mut out, "Balancer", &balancer(snapshot), colour);
    section(&mut out, "Listeners", &listeners(snapshot), colour);
    if let Some(tls) = tls::text(snapshot) {
        section(&mut out, "TLS", &tls, colour);
    }
    section(&mut out, "Routes, in the order in which they match", &routes::table(snapshot), colour);
    let consul = snapshot.registries.consul.as_ref();
    if let Some(routes) = consul.and_then(|consul| consul.routes.as_ref()) {
        section(&mut out, "Routes from tags in Consul", &published_routes(routes), colour);
    }
    section(&mut out, "Services", &services::text(snapshot), colour);
    section(&mut out, "Probe plan", &plan::text(plan), colour);
    out
}

fn published_routes(routes: &TagRoutes) -> String {
    let TagRoutes { hosts, formats, listeners, hold_max } = routes;
    let mut columns = Columns::plain();
    let mut row = |name: &str, value: String| columns.row([name.to_owned(), value]);
    row("hosts", hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    row("formats", formats.iter().map(RouteTagFormat::as_str).collect::<Vec<_>>().join(", "));
    row("listeners", if listeners.is_empty() { "all".to_owned() } else { listeners.join(", ") });
    let held = format!("for {} after a service is no longer listed", show_duration(*hold_max));
    row("kept", held);
    columns.text()
}

fn section(out: &mut String, heading: &str, body: &str, colour: bool) {
    if !out.is_empty() {
        out.push('\n');
    }
    // Writing into a String cannot fail.
    _ = if colour {
        writeln!(out, "\u{1b}[1m{heading}\u{1b}[0m")
    } else {
        writeln!(out, "{heading}")
    };
    for line in body.lines() {
        _ = writeln!(out, "{}", format!("  {line}").trim_end());
    }
}

fn balancer(snapshot: &Snapshot) -> String {
    let mut columns = Columns::plain();
    let mut row = |name: &str, value: String| columns.row([name.to_owned(), value]);
    row("zone", snapshot.zone.as_deref().unwrap_or("none").to_owned());
    row("workers", snapshot.workers.map_or("one per core".to_owned(), |n| n.to_string()));
    row("connections", format!("at most {}", snapshot.connections_max));
    let within = show_duration(snapshot.drain_max);
    let delay = Some(snapshot.drain_delay).filter(|delay| !delay.is_zero());
    let delay = delay.map(|delay| format!("after {}, ", show_duration(delay)));
    row("stopping", format!("{}within {within}", delay.unwrap_or_default()));
    if let Some((user, group)) = &snapshot.run_as {
        let group = group.as_ref().map(|group| format!(", group {group}"));
        row("runs as", format!("{user}{}", group.unwrap_or_default()));
    }
    let admin = snapshot.admin.as_ref().map(|admin| match admin.token_file {
        Some(_) => format!("{}, with a token", admin.address),
        None => admin.address.to_string(),
    });
    row("admin API", admin.unwrap_or("off".to_owned()));
    let Metrics { listener, server_histograms, statsd, graphite, interval, prefix } =
        &snapshot.metrics;
    if let Some(MetricsListener { address, token_file, tls }) = listener {
        let tls = tls.as_ref().map(|_| ", with TLS").unwrap_or_default();
        let token = token_file.as_ref().map(|_| ", with a token").unwrap_or_default();
        row("metrics", format!("{address}{tls}{token}"));
    }
    if *server_histograms {
        row("histograms", "also for each server".to_owned());
    }
    let every = show_duration(*interval);
    for (name, target) in [("statsd", statsd), ("graphite", graphite)] {
        if let Some(target) = target {
            row(name, format!("{target}, every {every}, as {prefix}.…"));
        }
    }
    if let Some(otlp) = &snapshot.otlp {
        row("OpenTelemetry", sent(otlp));
    }
    if !snapshot.resolver.is_empty() {
        let servers: Vec<_> = snapshot.resolver.iter().map(ToString::to_string).collect();
        row("DNS server", servers.join(", "));
    }
    if let Some(kubernetes) = &snapshot.kubernetes {
        row("Kubernetes", connected(kubernetes));
    }
    let autoscalers = [("KEDA", &snapshot.keda), ("external metrics", &snapshot.external_metrics)];
    for (name, listener) in autoscalers {
        let Some(AutoscalerListener { address, tls }) = listener else { continue };
        let tls = tls.as_ref().map(|_| ", with TLS").unwrap_or_default();
        row(name, format!("{address}{tls}"));
    }
    if let Some(settings) = &snapshot.fleet {
        row("fleet", fleet(settings));
    }
    let form = match snapshot.log.format {
        LogFormat::Json => "JSON",
        LogFormat::Text => "text",
        LogFormat::Combined => "combined format",
        LogFormat::Haproxy => "HAProxy's format",
    };
    let log = match &snapshot.log.access {
        AccessLog::Off => "off".to_owned(),
        AccessLog::Stdout => format!("{form} to standard output"),
        AccessLog::File(path) => format!("{form} to {}", path.display()),
        AccessLog::Syslog(syslog) => format!("{form} to syslog at {}", syslog.to),
        AccessLog::Otlp => "to the OpenTelemetry collector".to_owned(),
    };
    row("access log", log);
    columns.text()
}

/// Describes how this balancer joins its fleet.
fn fleet(fleet: &Fleet) -> String {
    const MEMBERS_SHOWN_MAX: usize = 4;
    let Fleet { address, advertise, name, members, discover, probers, tls, .. } = fleet;
    let name = name.as_deref().unwrap_or("named like the machine");
    let seen = if advertise == address { String::new() } else { format!(" as {advertise}") };
    let members: Vec<Arc<str>> = members.iter().map(|one| one.to_string().into()).collect();
    let members = (!members.is_empty()).then(|| few(members.iter(), MEMBERS_SHOWN_MAX));
    let source = discover.as_ref().map(|discover| discover.source.to_string());
    let joined: Vec<_> = members.into_iter().chain(source).collect();
    let joined = if joined.is_empty() { "no other".to_owned() } else { joined.join(", ") };
    let tickets = if tls.is_some() { "; shares session ticket keys" } else { "" };
    format!("{name}, on {address}{seen}; joins {joined}; {probers} of each zone probe{tickets}")
}

/// Says what a collector is sent.
fn sent(otlp: &Otlp) -> String {
    let traces = otlp.traces.as_ref().map(|_| "traces".to_owned());
    let metrics =
        otlp.metrics_interval.map(|every| format!("metrics every {}", show_duration(every)));
    let logs = otlp.logs.then(|| "the log".to_owned());
    let parts: Vec<String> = [traces, metrics, logs].into_iter().flatten().collect();
    let what = if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") };
    format!("{what} to {}", otlp.collector.url)
}

/// Returns which objects of Kubernetes are served, and how their clients reach Weir.
fn connected(kubernetes: &Kubernetes) -> String {
    let namespaces = match kubernetes.namespaces.as_slice() {
        [] => "all namespaces".to_owned(),
        several => format!("namespaces {}", several.join(", ")),
    };
    let reached = match &kubernetes.exposure {
        GatewayExposure::Services { port_first, port_last, .. } => {
            format!("a Service each, ports {port_first} to {port_last} of the Pods")
        }
        GatewayExposure::Addresses(addresses) => {
            let all: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            format!("addresses {}", all.join(", "))
        }
    };
    format!("Gateways of {}, {namespaces}, {reached}", kubernetes.controller)
}

fn listeners(snapshot: &Snapshot) -> String {
    let mut columns =
        Columns::headed(["NAME", "ADDRESS", "PROTOCOL", "TO", "CONNECTIONS", "TRUSTED"]);
    for listener in &snapshot.listeners {
        let to = match &listener.protocol {
            Protocol::Http => "routes".to_owned(),
            Protocol::Tcp(split) => services(split, snapshot),
            Protocol::Tls(names) => {
                let named = names.iter().filter(|(name, _)| name != "*").count();
                format!("{named} by server name")
            }
        };
        let trusted: Vec<_> = listener.trusted.iter().map(ToString::to_string).collect();
        columns.row([
            listener.name.to_string(),
            listener.address.to_string(),
            spoken(listener),
            to,
            format!("at most {}", listener.connections_max),
            if trusted.is_empty() { "none".to_owned() } else { trusted.join(" ") },
        ]);
    }
    let mut out = columns.text();
    for listener in &snapshot.listeners {
        if let Some(entry) = &listener.register {
            let (service, address) = (&entry.service, entry.shown_address());
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{} registers as {service} in Consul ({address})", listener.name);
        }
    }
    out
}

/// Returns where connections go: `service a`, or `services a 90%, b 10%`.
fn services(split: &TcpSplit, snapshot: &Snapshot) -> String {
    let name = |branch: &TcpBranch| {
        branch.to.map_or("none".to_owned(), |id| snapshot.service(id).name.to_string())
    };
    if let [only] = split.branches.as_slice() {
        return format!("service {}", name(only));
    }
    let sum: f64 = split.branches.iter().map(|branch| f64::from(branch.weight)).sum();
    let share = |branch: &TcpBranch| {
        let percent = plan::rate(f64::from(branch.weight) / sum.max(1.0) * 100.0);
        format!("{} {percent}%", name(branch))
    };
    let all: Vec<_> = split.branches.iter().map(share).collect();
    format!("services {}", all.join(", "))
}

/// In a word or two: `http over TLS`; `http/1.1` where HTTP/2 is off.
fn spoken(listener: &Listener) -> String {
    let protocol = match (&listener.protocol, listener.http2) {
        (Protocol::Http, None) => "http/1.1",
        (Protocol::Tls(_), _) if listener.tls.is_none() => {
            return "tcp, TLS passed through".to_owned();
        }
        (Protocol::Http, Some(_)) | (Protocol::Tcp(_) | Protocol::Tls(_), _) => {
            listener.protocol.word().as_str()
        }
    };
    match &listener.tls {
        None => protocol.to_owned(),
        Some(_) => format!("{protocol} over TLS"),
    }
}

/// The first few names, then how many more.
fn few<'a>(names: impl ExactSizeIterator<Item = &'a Arc<str>>, shown_max: usize) -> String {
    let count = names.len();
    // One more name is as short as "and 1 more".
    let shown = if count == shown_max + 1 { count } else { shown_max };
    let list: Vec<&str> = names.take(shown).map(AsRef::as_ref).collect();
    match count.saturating_sub(shown) {
        0 => list.join(", "),
        more => format!("{} and {more} more", list.join(", ")),
    }
}

#[cfg(test)]
mod tests;
