//! The condition of a server: in one word, for a table, and in sentences that say why it does or does not
//! receive requests.

use admin_api::services::{Server, Service};
use decide::Tier;
use diagnose::finding::Finding;
use diagnose::words::plural;
use model::{Administrative, Health};

use super::picture::Picture;
use crate::render::traffic::time;

/// The word for it, and how serious it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) word: &'static str,
    /// 0: no trouble.
    pub(crate) trouble: u8,
}

/// Returns the condition of a server in a word of at most eight letters. `found`: the worst finding about it.
pub(crate) fn condition(server: &Server, found: Option<&Finding>) -> Condition {
    let is_full = server.in_flight_max.is_some_and(|max| server.in_flight >= max);
    let (word, trouble) = match (server.state.known(), server.health.known()) {
        (Some(Administrative::Drain), _) => ("drain", 0),
        (Some(Administrative::Maintenance), _) => ("maint", 0),
        _ if server.leaving => ("leaving", 0),
        _ if server.ejected_for_ms.is_some() => ("ejected", 3),
        (_, Some(Health::Down)) => ("down", 3),
        _ if server.weight == 0 => ("weight 0", 0),
        // A finding of the last seconds is no trouble while it receives nothing.
        _ if !server.eligible && server.backup => ("backup", 0),
        _ if !server.eligible => ("standby", 0),
        _ if found.is_some() => (found.map_or("", word), 2),
        _ if is_full => ("full", 1),
        (_, Some(Health::Up)) => ("up", 0),
        _ => ("ready", 0),
    };
    Condition { word, trouble }
}

fn word(finding: &Finding) -> &'static str {
    match &*finding.rule {
        "server_slow" => "slow",
        "server_failing" | "checks_blind" => "failing",
        _ => "finding",
    }
}

/// Explains whether and why a server receives new requests.
pub(crate) fn why(picture: &Picture, service: &Service, server: &Server) -> String {
    let in_flight = plural(u64::from(server.in_flight), "request");
    match server.state.known() {
        Some(Administrative::Drain) => {
            return format!(
                "no: an operator drained it. {in_flight} in flight at its address may finish; r puts it back"
            );
        }
        Some(Administrative::Maintenance) => {
            return "no: an operator put it into maintenance, without health checks; r puts it back"
                .to_owned();
        }
        _ => {}
    }
    if server.leaving {
        return format!(
            "no: its service needs fewer servers. {in_flight} in flight at its address may finish before it is removed"
        );
    }
    if picture.maintenance(&service.name).is_some() {
        return "no: its service is in maintenance, so Weir answers in its place".to_owned();
    }
    if server.weight == 0 {
        return "no: its weight is 0".to_owned();
    }
    if !server.eligible {
        return standing_by(picture, service, server);
    }
    let why = &service.why;
    let tier = service.tier.known();
    if tier == Some(Tier::TryAll) {
        return format!("yes, although it is not ready: {why}, so every server is tried");
    }
    if server.in_flight_max.is_some_and(|max| server.in_flight >= max) {
        return format!(
            "only when one of its {in_flight} ends: it is at its limit, other servers or the queue take \
             the rest"
        );
    }
    let health = match server.health.known() {
        Some(Health::Up) => "its health check passes",
        _ => "it has no result of a health check, and counts as healthy",
    };
    let start = if server.slow_start_share > 0.0 && server.slow_start_share < 1.0 {
        format!("; in slow start, at {:.0} % of its weight", server.slow_start_share * 1e2)
    } else {
        String::new()
    };
    format!("yes: {health}{start}")
}

/// Why a server that an operator left alone receives nothing.
fn standing_by(picture: &Picture, service: &Service, server: &Server) -> String {
    if let Some(ms) = server.ejected_for_ms {
        return format!(
            "no: passive health ejected it because its requests failed; it is tried again in {}",
            time(Some(ms))
        );
    }
    if server.health.known() == Some(Health::Down) {
        return "no: its health check fails".to_owned();
    }
    let why = &service.why;
    if server.backup {
        return format!("no: it is a backup, and {why}");
    }
    match (server.zone.as_deref(), picture.own_zone()) {
        (zone, Some(own)) if zone != Some(own) => {
            format!("no: it is not in this balancer's zone {own}, and {why}")
        }
        _ => format!("no: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use diagnose::finding::{Certainty, Severity};

    use super::*;

    fn finding(rule: &'static str) -> Finding {
        Finding::new(rule, "x", Severity::Warning, Certainty::Certain, "what")
    }

    #[test]
    fn a_condition_is_what_matters_most() {
        let server = Server { eligible: true, weight: 1, ..Server::default() };
        let full = Server { in_flight: 4, in_flight_max: Some(4), ..server.clone() };
        let down = Server { health: Health::Down.into(), ..full.clone() };
        let drained = Server { state: Administrative::Drain.into(), ..down.clone() };
        let standby = Server { eligible: false, ..server.clone() };
        let slow = finding("server_slow");
        let word = |server: &Server, found: Option<&Finding>| condition(server, found).word;
        assert_eq!((word(&server, None), word(&full, None)), ("ready", "full"));
        assert_eq!((word(&full, Some(&slow)), word(&standby, Some(&slow))), ("slow", "standby"));
        assert_eq!((word(&down, Some(&slow)), word(&drained, Some(&slow))), ("down", "drain"));
        let words = ["checks_blind", "server_failing", "balance_skewed"].map(finding);
        assert_eq!(
            words.each_ref().map(|found| word(&server, Some(found))),
            ["failing", "failing", "finding"]
        );
    }
}
