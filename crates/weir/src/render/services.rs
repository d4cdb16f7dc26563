//! Services in groups: services on the same servers are listed together, and services with the same
//! settings share a line, so that seventy services on four servers fit on a screen.

use std::fmt::Write as _;
use std::sync::Arc;

use diagnose::kinds::grouped;
use model::{Balance, CheckKind, HashOn, LimitScope, ServerSpec, ServerTarget, Service, Snapshot};

use super::columns::Columns;
use super::few;

/// Names on one line; the JSON form has all.
const NAMES_SHOWN_MAX: usize = 4;

pub(super) fn text(snapshot: &Snapshot) -> String {
    if snapshot.services.is_empty() {
        return "none\n".to_owned();
    }
    let mut columns = Columns::headed(["SERVICE", "BALANCE", "AT ONCE PER SERVER", "CHECK"]);
    // What stands below a line of the table.
    let mut below: Vec<(usize, String)> = Vec::new();
    let mut height = 1;
    // Services on the same servers together.
    let services = snapshot.services.iter();
    let from = |service: &Service| service.discover.as_ref().map(|it| it.source.to_string());
    let keyed = services.map(|service| ((&*service.servers, from(service)), &**service));
    for ((on, from), group) in grouped(keyed) {
        height += settings(&group, &mut columns);
        let from = from.map(|source| format!("from {source}\n"));
        let servers = servers(on, snapshot.zone.as_ref());
        below.push((height, servers + from.as_deref().unwrap_or_default()));
    }
    let mut out = String::new();
    let mut below = below.into_iter().peekable();
    for (index, line) in columns.text().lines().enumerate() {
        // Writing into a String cannot fail.
        _ = writeln!(out, "{line}");
        if let Some((_, servers)) = below.next_if(|(height, _)| *height == index + 1) {
            for server in servers.lines() {
                _ = writeln!(out, "    {server}");
            }
        }
    }
    let in_maintenance = snapshot.services.iter().filter(|service| service.maintenance.is_some());
    let in_maintenance: Vec<_> = in_maintenance.map(|service| &service.name).collect();
    if !in_maintenance.is_empty() {
        let names = few(in_maintenance.into_iter(), NAMES_SHOWN_MAX);
        _ = writeln!(out, "in maintenance: {names}");
    }
    out
}

/// A row for each set of settings; how many.
fn settings(group: &[&Service], columns: &mut Columns<4>) -> usize {
    let cells = |service: &Service| [balance(service), limit(service), check(service)];
    let rows = grouped(group.iter().map(|service| (cells(service), &service.name)));
    let count = rows.len();
    for ([balance, limit, check], names) in rows {
        columns.row([few(names.into_iter(), NAMES_SHOWN_MAX), balance, limit, check]);
    }
    count
}

fn balance(service: &Service) -> String {
    match &service.balance {
        balance @ (Balance::RoundRobin
        | Balance::LeastConnections
        | Balance::PeakEwma
        | Balance::Random) => balance.as_str().to_owned(),
        Balance::Hash(hash) => match &hash.on {
            HashOn::Client => "hash of client".to_owned(),
            HashOn::Field(name) => format!("hash of {name}"),
            HashOn::Cookie(name) => format!("hash of cookie {name}"),
            HashOn::Path => "hash of path".to_owned(),
            HashOn::Parameter(name) => format!("hash of parameter {name}"),
        },
    }
}

fn limit(service: &Service) -> String {
    let mut max = match service.in_flight_max {
        Some(max) => max.to_string(),
        None if service.is_limited() => "per server".to_owned(),
        None => return "no limit".to_owned(),
    };
    match service.in_flight_scope {
        LimitScope::Balancer => {}
        LimitScope::Fleet => max.push_str(" over the fleet"),
    }
    let status = service.when_full;
    match service.queue.length_max {
        0 => format!("{max}, then {status}"),
        length => {
            let wait = model::units::show_duration(service.queue.wait_max);
            format!("{max}, {length} wait up to {wait}, then {status}")
        }
    }
}

fn check(service: &Service) -> String {
    let Some(check) = &service.check else { return "none".to_owned() };
    let interval = model::units::show_duration(check.interval);
    let mut port = check.port.map(|port| format!(" on port {port}")).unwrap_or_default();
    if check.clear_text {
        port.push_str(" without TLS");
    }
    match &check.kind {
        CheckKind::Tcp if service.tls.is_some() && !check.clear_text => {
            format!("tcp and TLS{port} every {interval}")
        }
        CheckKind::Tcp => format!("tcp{port} every {interval}"),
        CheckKind::Http { method, path, host, .. } => {
            let host = host.as_ref().map(|host| format!(" of {host}")).unwrap_or_default();
            format!("{method} {path}{host}{port} every {interval}")
        }
        CheckKind::Grpc { service, .. } => {
            let of = if service.is_empty() { String::new() } else { format!(" of {service}") };
            format!("gRPC health{of}{port} every {interval}")
        }
    }
}

/// A line per zone, the balancer's own first.
fn servers(servers: &[ServerSpec], own: Option<&Arc<str>>) -> String {
    let mut zones = grouped(servers.iter().map(|server| (server.zone.as_ref(), server)));
    let is_own = |zone: Option<&Arc<str>>| zone.is_some() && zone == own;
    zones.sort_by_key(|(zone, _)| (!is_own(*zone), zone.is_none(), *zone));
    let mut columns = Columns::plain();
    for (zone, members) in zones {
        let label = match zone {
            Some(zone) if is_own(Some(zone)) => format!("zone {zone} (this one)"),
            Some(zone) => format!("zone {zone}"),
            None if members.len() == 1 => "server".to_owned(),
            None => "servers".to_owned(),
        };
        let shown: Vec<_> = members.into_iter().map(server).collect();
        columns.row([label, shown.join("  ")]);
    }
    columns.text()
}

fn server(server: &ServerSpec) -> String {
    let mut remarks: Vec<String> = Vec::new();
    if let ServerTarget::Name { .. } = &server.target {
        remarks.push("name, not resolved here".to_owned());
    }
    if server.weight != 1 {
        remarks.push(format!("weight {}", server.weight));
    }
    if server.backup {
        remarks.push("backup".to_owned());
    }
    if let Some(max) = server.in_flight_max {
        remarks.push(format!("limit {max}"));
    }
    if let Some(version) = server.version {
        remarks.push(format!("version {version}"));
    }
    match remarks.as_slice() {
        [] => server.target.to_string(),
        remarks => format!("{} ({})", server.target, remarks.join(", ")),
    }
}
