//! A server gets much more of its service's requests than its weight says.
//!
//! **When.** The servers that receive new requests, and their weights, have been the same for a minute, and it is
//! proved that a server got more than 1.5 times its share of at least 100 requests in that minute; in TCP mode,
//! that it has more than 1.5 times its share of at least 50 open connections. With
//! `balance = "least-connections"`, `"peak-ewma"` or `"random"` faster servers get more by design, so only
//! requests that are bound to a server count there.
//!
//! **Why.** The server reaches its limit while others have room. The finding splits the share: by configured
//! weights; after zones, health and slow start; requests bound by affinity or a hash key; open
//! connections that stay where they were opened. What remains went there because other servers were at their
//! limit, or was retried.
//!
//! **What to do.** If few keys or clients make most of the requests, choose another `hash` key or bound its load
//! (`hash.load_factor`); shorten the life of affinity cookies or sessions. If connections stay for hours, limit their
//! lifetime. Otherwise correct the weights.

use crate::evidence::Units;
use crate::facts::{Traffic, TrafficServer, TrafficService};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

const TIMES: f64 = 1.5;
/// If so many of its requests are bound to it by a cookie, the cookie is the reason.
const BOUND_SHARE: f64 = 0.5;
const REQUESTS_MIN: u64 = 100;
const CONNECTIONS_MIN: u64 = 50;
/// Algorithms that give faster servers more.
const ADAPTIVE: [&str; 3] = ["least-connections", "peak-ewma", "random"];

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let judged = traffic.judged();
    for service in &traffic.services {
        let worst = service
            .servers
            .iter()
            .filter_map(|server| Skew::of(service, server, judged))
            .max_by(|a, b| a.times().total_cmp(&b.times()));
        if let Some(skew) = worst {
            push(out, service, &skew);
        }
    }
}

/// Why a server gets more than its share.
enum Reason {
    Connections,
    Keys,
    Cookie,
    Others,
}

impl Reason {
    fn of(service: &TrafficService, bound: Units) -> Reason {
        if service.is_tcp {
            Reason::Connections
        } else if service.balance == "hash" {
            Reason::Keys
        } else if bound.share() > BOUND_SHARE {
            Reason::Cookie
        } else {
            Reason::Others
        }
    }

    fn why(&self) -> &'static str {
        match self {
            Reason::Connections => {
                "Connections stay where they were opened, whatever the weights are: servers that came later have few."
            }
            Reason::Keys => {
                "Requests choose their server by a key here: few keys make many of the requests."
            }
            Reason::Cookie => "Affinity (a cookie or header) binds most of its requests to it.",
            Reason::Others => {
                "Other servers were at their limit, so it was chosen instead, or requests were retried there."
            }
        }
    }

    /// What to do, a command or setting, and its risk.
    fn remedy(&self) -> (&'static str, &'static str, &'static str) {
        const CACHE: &str =
            "a request that goes to another server than before may miss its cache or session";
        match self {
            Reason::Connections => (
                "Let clients open new connections now and then, or drain the server until its connections have moved",
                "weir status",
                "connections that are open when the drain timeout ends are closed",
            ),
            Reason::Keys => (
                "Bound how much more than the average a server may get, or hash another part of the request",
                "hash = { on = \"path\", load_factor = 1.25 }",
                CACHE,
            ),
            Reason::Cookie => (
                "Let cookies expire earlier, so that clients are distributed again",
                "affinity = { cookie = \"server\", max_age = \"1h\" }",
                CACHE,
            ),
            Reason::Others => (
                "Compare the servers' limits and failures, and correct weights or limits",
                "weir status",
                "none",
            ),
        }
    }
}

/// A server's shares.
struct Skew<'a> {
    server: &'a TrafficServer,
    expected: f64,
    observed: Units,
}

impl<'a> Skew<'a> {
    fn of(service: &TrafficService, server: &'a TrafficServer, judged: usize) -> Option<Skew<'a>> {
        let eligible = || service.servers.iter().filter(|one| one.is_eligible);
        let is_settled = service.settled_s >= server.minute.seconds && server.minute.seconds > 0;
        if !server.is_eligible || !is_settled || eligible().nth(1).is_none() {
            return None;
        }
        let expected = server.weight / eligible().map(|one| one.weight).sum::<f64>();
        let (count, min): (fn(&TrafficServer) -> u64, u64) = if service.is_tcp {
            (|one| one.waiting, CONNECTIONS_MIN)
        } else if ADAPTIVE.contains(&&*service.balance) {
            (|one| one.minute.bound, REQUESTS_MIN)
        } else {
            (|one| one.minute.sent, REQUESTS_MIN)
        };
        let observed = Units::new(count(server), words::sum(eligible().map(count)));
        // Open connections are all there are, not a sample.
        let exceeds = |share: f64| {
            if service.is_tcp { observed.share() > share } else { observed.exceeds(share, judged) }
        };
        let is_skewed = observed.of >= min && exceeds(TIMES * expected);
        is_skewed.then_some(Skew { server, expected, observed })
    }

    fn times(&self) -> f64 {
        self.observed.share() / self.expected.max(f64::MIN_POSITIVE)
    }
}

fn push(out: &mut Out, service: &TrafficService, skew: &Skew<'_>) {
    let Skew { server, expected, observed } = skew;
    let all = service.servers.iter().map(|one| one.weight_configured);
    let by_weight = server.weight_configured / all.sum::<f64>().max(f64::MIN_POSITIVE);
    let bound = Units::new(server.minute.bound, server.minute.sent);
    let reason = Reason::of(service, bound);
    let of = if service.is_tcp { "open connections" } else { "requests" };
    let (action, command, risk) = reason.remedy();
    let is_full = server.in_flight_max.is_some_and(|max| server.in_flight >= max);
    let group = service.alone(server);
    let finding = out.finding(
        group.name.clone(),
        if is_full { Severity::Warning } else { Severity::Advice },
        if service.is_bound { Certainty::Likely } else { Certainty::Certain },
        format!(
            "{} has {} of the service's {of}; its weight says {}.",
            group.name,
            words::percent(observed.share()),
            words::percent(*expected)
        ),
    );
    let percent = |name: &str, share: f64| Evidence::number(name, share * 100.0, "%");
    out.push(
        group
            .mark(finding, service)
            .evidence(percent("share by configured weights", by_weight))
            .evidence(percent("share after zones, health and slow start", *expected))
            .evidence(percent("observed share", observed.share()))
            .evidence(percent("of its requests, bound by a cookie", bound.share()))
            .evidence(Evidence::count(of, observed.of, "of the service"))
            .why(reason.why())
            .remedy(action, &[command], risk)
            .verify("weir status shows shares that follow the weights")
            .source(&["the balancer's counters by server, and its weights in effect"]),
    );
}
