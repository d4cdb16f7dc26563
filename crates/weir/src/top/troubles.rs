//! What is wrong at present, the worst first, each in one sentence: what the services' own states say, and
//! the doctor's findings. This program judges no traffic.

use std::collections::HashSet;

use admin_api::findings::SeenFinding;
use admin_api::services::{Server, Service};
use diagnose::finding::Severity;
use diagnose::words::{list, plural};
use model::{Administrative, Health};

use super::picture::Picture;
use super::table::{Id, TroubleKind};

/// Servers that are named in a sentence.
const NAMED_MAX: usize = 2;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// It stays selected while its text changes.
    pub(crate) id: Id,
    pub(crate) severity: Severity,
    /// The service that it is about, if it is about one.
    pub(crate) service: Option<String>,
    /// Its servers that are at fault, if some are.
    pub(crate) servers: Vec<String>,
    /// What is wrong, with the subject.
    pub(crate) text: String,
    /// For how long the doctor has found it, in seconds.
    pub(crate) lasts_s: Option<u64>,
}

/// Returns everything that is wrong, the worst first.
pub(crate) fn troubles(picture: &Picture) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    for service in &picture.services {
        // A service in maintenance is as its operator wants it.
        if picture.maintenance(&service.name).is_none() {
            of_service(picture, service, &mut troubles);
        }
    }
    let is_wanted = |seen: &&SeenFinding| {
        let service = seen.finding.service.as_deref();
        service.is_none_or(|service| picture.maintenance(service).is_none())
    };
    troubles.extend(picture.weighty().filter(is_wanted).map(of_finding));
    // Stable: services in their order, then findings in the doctor's.
    troubles.sort_by_key(|trouble| std::cmp::Reverse(trouble.severity));
    troubles
}

fn of_finding(seen: &SeenFinding) -> Trouble {
    let finding = &seen.finding;
    let what = finding.what.trim_end_matches('.');
    Trouble {
        id: Id::of(finding),
        severity: finding.severity,
        service: finding.service.clone(),
        servers: finding.servers.clone(),
        text: what.to_owned(),
        lasts_s: Some(lasts_s(seen)),
    }
}

/// Returns for how long the doctor has found something, in seconds.
pub(crate) fn lasts_s(seen: &SeenFinding) -> u64 {
    seen.last_seen_unix_ms.saturating_sub(seen.first_seen_unix_ms) / 1_000
}

/// What the state of a service says. What a finding explains is left out.
fn of_service(picture: &Picture, service: &Service, troubles: &mut Vec<Trouble>) {
    let name = &service.name;
    let mut add = |severity, kind, servers: Vec<String>, text: String| {
        troubles.push(Trouble {
            id: Id::Trouble { service: name.clone(), kind },
            severity,
            service: Some(name.clone()),
            servers,
            text: format!("{name}: {text}"),
            lasts_s: None,
        });
    };
    let about = || picture.weighty().filter(|seen| seen.finding.service.as_ref() == Some(name));
    let named: HashSet<&String> = about().flat_map(|seen| &seen.finding.servers).collect();
    let all = service.servers.len() + service.unresolved.len();
    let left = format!("{} of {} receive requests", service.eligible, plural(all as u64, "server"));
    if service.eligible == 0 && all > 0 {
        let text = format!("no server receives requests: {}", service.why);
        add(Severity::Critical, TroubleKind::NoServer, Vec::new(), text);
    }
    let out = |is_out: fn(&Server) -> bool| -> Vec<String> {
        let ready = service.servers.iter().filter(|server| {
            server.state.known() == Some(Administrative::Ready) && !named.contains(&server.address)
        });
        ready.filter(|server| is_out(server)).map(|server| server.address.clone()).collect()
    };
    let down = out(is_down);
    if !down.is_empty() {
        let fail =
            if down.len() == 1 { "fails its health check" } else { "fail their health checks" };
        let text = format!("{} {fail}; {left}", list(&down, NAMED_MAX));
        add(Severity::Warning, TroubleKind::Down, down, text);
    }
    let ejected = out(|server| server.ejected_for_ms.is_some() && !is_down(server));
    if !ejected.is_empty() {
        let is = if ejected.len() == 1 { "is" } else { "are" };
        let text =
            format!("{} {is} ejected, because requests failed; {left}", list(&ejected, NAMED_MAX));
        add(Severity::Warning, TroubleKind::Ejected, ejected, text);
    }
    let unresolved: Vec<String> =
        service.unresolved.iter().map(|server| server.name.clone()).collect();
    if !unresolved.is_empty() {
        let text = format!("no address for {}; {left}", list(&unresolved, NAMED_MAX));
        add(Severity::Warning, TroubleKind::Unresolved, Vec::new(), text);
    }
    if service.queue.length > 0 && about().next().is_none() {
        let waiting = plural(u64::from(service.queue.length), "request");
        let text = format!("{waiting} in the queue, of at most {}", service.queue.length_max);
        add(Severity::Warning, TroubleKind::Queue, Vec::new(), text);
    }
}

fn is_down(server: &Server) -> bool {
    server.health.known() == Some(Health::Down)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(picture: Value) -> Vec<String> {
        let picture: Picture = serde_json::from_value(picture).unwrap();
        troubles(&picture).into_iter().map(|trouble| trouble.text).collect()
    }

    fn server(address: &str, health: &str, eligible: bool) -> Value {
        json!({ "address": address, "health": health, "state": "ready", "eligible": eligible })
    }

    fn finding(rule: &str, service: &str, servers: &[&str]) -> Value {
        json!({
            "rule": rule, "subject": service, "service": service, "servers": servers,
            "severity": "critical", "certainty": "certain", "what": format!("{rule} of {service}."),
            "evidence": [], "why": "", "verify": "", "source": [], "is_present": true,
            "first_seen_unix_ms": 10_000, "last_seen_unix_ms": 71_000,
        })
    }

    #[test]
    fn the_worst_comes_first() {
        let said = said(json!({ "services": [
            {
                "name": "a", "eligible": 1, "queue": { "length": 3, "length_max": 10 },
                "servers": [server("x", "up", true), server("y", "down", false)],
            },
            {
                "name": "b", "eligible": 0, "why": "no server is ready",
                "servers": [server("x", "unknown", false)],
            },
            { "name": "c" },
        ] }));
        assert_eq!(
            said,
            [
                "b: no server receives requests: no server is ready",
                "a: y fails its health check; 1 of 2 servers receive requests",
                "a: 3 requests in the queue, of at most 10",
            ]
        );
    }

    #[test]
    fn what_a_finding_explains_is_said_once() {
        let said = said(json!({
            "services": [{
                "name": "a", "eligible": 1, "queue": { "length": 3, "length_max": 10 },
                "servers": [server("x", "up", true), server("y", "down", true), server("z", "down", true)],
            }],
            "findings": { "enabled": true, "findings": [
                finding("checks_blind", "a", &["y"]),
                finding("server_slow", "maintained", &["y"]),
            ] },
            "status": { "maintenance": [{ "kind": "service", "name": "maintained", "on": true }] },
        }));
        assert_eq!(
            said,
            ["checks_blind of a", "a: z fails its health check; 1 of 3 servers receive requests"]
        );
    }

    #[test]
    fn a_service_in_maintenance_is_no_trouble() {
        let picture = json!({
            "services": [{ "name": "a", "servers": [server("x", "down", false)] }],
            "status": { "maintenance": [{ "kind": "service", "name": "a", "on": true }] },
        });
        assert_eq!(said(picture), [""; 0]);
    }
}
