//! Health checks and requests disagree about a server.
//!
//! **When.** Checks pass while requests fail: it is proved that more than 5 % of the attempts at a server fail,
//! in the last seconds and in those before them (critical: more than 30 %), while probes of it passed and
//! none failed. With a check interval above 10 s, the finding is present only after probes. Or checks fail while requests succeed: no ready server is left, so all
//! of them are tried (`when_all_down`); at least 3 probes of a server failed in the last minute and none passed,
//! while at least 20 requests were sent there in 10 seconds and less than 5 % of them failed.
//!
//! **Why.** The check does not test what requests need. If it passes, the balancer continues to send
//! requests that fail: the check only connects, or requests a page that needs no database, or it reaches
//! the server over another path. If it fails, capacity is lost that works: a path or status that the
//! server no longer has, a timeout that is too short.
//!
//! **What to do.** Let the check request something that needs what real requests need
//! (`check.path`), and enable passive health checks (outlier ejection), so that failures of real
//! requests count. If the failures are resets or unanswered SYNs, examine the network: probes are
//! few and often get through.

use super::server_failing::with_causes;
use crate::evidence::Units;
use crate::facts::{ServerSpan, Traffic, TrafficServer, TrafficService};
use crate::finding::{Certainty, Evidence, Finding, Severity};
use crate::traffic::{Group, SpanOf};
use crate::view::Out;
use crate::words;

const WARNING_SHARE: f64 = 0.05;
const CRITICAL_SHARE: f64 = 0.3;
const FAILED_MIN: u64 = 5;
const SENT_MIN: u64 = 20;
const PROBES_FAILED_MIN: u64 = 3;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let judged = traffic.judged();
    for service in &traffic.services {
        for server in &service.servers {
            if let Some(span) = passes_blindly(server, judged) {
                out.push(passing(out, service, server, span));
            }
        }
        let failing: Vec<&TrafficServer> =
            service.servers.iter().filter(|one| service.tries_all && fails_blindly(one)).collect();
        if !failing.is_empty() {
            out.push(self::failing(out, service, failing));
        }
    }
}

/// Returns the seconds in which a server's probes passed although its requests failed, and had failed
/// before.
fn passes_blindly(server: &TrafficServer, judged: usize) -> Option<SpanOf> {
    let fails =
        |span: &ServerSpan| span.failed() >= FAILED_MIN && attempts(span).share() > WARNING_SHARE;
    let spans: [(SpanOf, SpanOf); 2] =
        [(|one| &one.fresh, |one| &one.recent), (|one| &one.recent, |one| &one.minute)];
    spans.into_iter().find_map(|(newer, all)| {
        let (newest, whole) = (newer(server), all(server));
        let is_blind = newest.checks_passed > 0
            && whole.checks_failed == 0
            && attempts(whole).exceeds(WARNING_SHARE, judged)
            && fails(newest)
            && fails(&whole.before(newest));
        is_blind.then_some(newer)
    })
}

/// Attempts, and how many of them failed. Those that began before the span can fail in it.
fn attempts(span: &ServerSpan) -> Units {
    Units::new(span.failed(), span.sent.max(span.failed()))
}

fn passing(out: &Out, service: &TrafficService, server: &TrafficServer, span: SpanOf) -> Finding {
    let counted = span(server);
    let share = attempts(counted).share();
    let group = service.alone(server);
    let finding = out.finding(
        group.name.clone(),
        if share > CRITICAL_SHARE { Severity::Critical } else { Severity::Warning },
        Certainty::Certain,
        format!(
            "{} of the attempts at {} fail while its check passes.",
            words::percent(share),
            group.name
        ),
    );
    let drains = group.drains(service, 1);
    let drains: Vec<&str> = drains.iter().map(String::as_str).collect();
    with_causes(group.mark(finding, service), &[server], span)
        .evidence(Evidence::count("probes passed", server.recent.checks_passed, "none failed"))
        .why("The balancer continues to send requests to it: the check does not test what fails.")
        .remedy(
            "Let the check request what real requests need",
            &["check = { path = \"/health\", expect = 200 }"],
            "a deeper check also removes all servers when a shared dependency fails, such as a database",
        )
        .remedy("Drain the server until then", &drains, "the other servers take its load")
        .verify("its probes fail when its requests fail")
        .source(&["the balancer's counters by server, probes and cause"])
}

/// Whether a server's probes fail although its requests succeed.
fn fails_blindly(server: &TrafficServer) -> bool {
    let sent = server.recent.sent;
    server.minute.checks_failed >= PROBES_FAILED_MIN
        && server.minute.checks_passed == 0
        && sent >= SENT_MIN
        && server.recent.first_byte.count() >= SENT_MIN
        && Units::new(server.recent.failed(), sent).share() < WARNING_SHARE
}

fn failing(out: &Out, service: &TrafficService, servers: Vec<&TrafficServer>) -> Finding {
    let names: Vec<String> = servers.iter().map(|one| one.address.to_string()).collect();
    let what = format!(
        "The checks of {} of {} fail, but requests to {} succeed.",
        words::list(&names, 2),
        service.name,
        if names.len() == 1 { "it" } else { "them" },
    );
    let (sent, probes) = servers.iter().fold((0, 0_u64), |(sent, probes), one| {
        (one.recent.sent.saturating_add(sent), one.minute.checks_failed.saturating_add(probes))
    });
    let group = Group { name: format!("checks of {}", service.name), servers };
    let finding = out.finding(group.name.clone(), Severity::Warning, Certainty::Certain, what);
    group
        .mark(finding, service)
        .evidence(Evidence::count("probes failed", probes, "in the last minute, none passed"))
        .evidence(Evidence::count("requests sent there", sent, "in the last 10 s"))
        .why("No server counts as ready, so requests go to all of them whether they work or not: a server that really fails would not be noticed.")
        .remedy(
            "Correct the check: its path, expected status, port or timeout",
            &["weir status", "check = { path = \"/health\", expect = 200, timeout = \"2s\" }"],
            "none",
        )
        .verify("weir status shows the servers as up")
        .source(&["the balancer's counters by server, and probes"])
}
