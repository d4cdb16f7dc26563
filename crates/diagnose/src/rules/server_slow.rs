//! One server, or the servers of one zone, respond much more slowly than their peers.
//!
//! **When.** In the last 5, 10 or 60 seconds the median time to the response head was at least twice that of
//! the peers and 5 ms longer, and the two distributions differ for certain: there is a duration that more
//! than a share (40, 15 or 5 %) of the server's responses exceed, and fewer of its peers' do, with at
//! most one false alarm a month. 20 responses are enough if all of them are slow. Also reported: a server
//! that has not responded for ten seconds though requests wait there, if its peers respond.
//!
//! **Why.** Only this server's share of the requests is slow, which averages over the service hide. It
//! works, so health checks pass. Usual reasons: its processor or disk is busy with something else, its
//! cache is empty, it runs another version, it swaps or collects garbage.
//!
//! **What to do.** Drain the server, and compare it with its peers: version, load of its host, logs. If the
//! round-trip time explains the difference, the path to the server is at fault. If requests choose their
//! server (`balance = "hash"`, an affinity cookie), this server may get other requests than its peers:
//! compare these first; the finding is only *possible* then.

use std::time::Duration;

use model::histogram::HistogramTotals;

use crate::facts::{Traffic, TrafficServer, TrafficService};
use crate::finding::{Certainty, Evidence, Finding, Severity};
use crate::traffic::{Group, Separation, SpanOf, separation, together};
use crate::view::Out;
use crate::words;

/// How much slower than its peers' a median must be to matter.
const TIMES_MIN: u32 = 2;
const LONGER_MIN: Duration = Duration::from_millis(5);
/// With fewer responses a median says too little.
const RESPONSES_MIN: u64 = 5;
/// So many responses in the last five seconds decide whether it is still slow.
const FRESH_MIN: u64 = 10;
/// A server that does not respond for so long, while its peers do, hangs.
const SILENT_S: u64 = 10;
/// Peers' responses are that many times faster than the silence has lasted.
const SILENT_TIMES: u32 = 3;
const DRAINED_MAX: usize = 3;
/// A part of the difference that the network explains, from which on it is named as its cause.
const NETWORK_SHARE: f64 = 0.5;

const SPANS: [SpanOf; 3] = [|one| &one.fresh, |one| &one.recent, |one| &one.minute];

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    for service in &traffic.services {
        let mut slow: Vec<Slow<'_>> = Vec::new();
        for span in SPANS {
            for found in find(service, span, traffic.servers()) {
                let is_known = |one: &&TrafficServer| {
                    slow.iter().any(|slow| slow.group.servers.iter().any(|had| had == one))
                };
                if !found.group.servers.iter().any(is_known) {
                    slow.push(found);
                }
            }
        }
        for one in &slow {
            out.push(finding(out, service, one));
        }
        for server in service.servers.iter().filter(|one| is_silent(one, service)) {
            out.push(silent(out, service, server));
        }
    }
}

/// A group that is slower than its peers.
struct Slow<'a> {
    group: Group<'a>,
    span: SpanOf,
    durations: HistogramTotals,
    peers: HistogramTotals,
    separation: Separation,
}

/// Returns the servers that are slower than their peers by what happened in one span.
fn find<'a>(service: &'a TrafficService, span: SpanOf, judged: usize) -> Vec<Slow<'a>> {
    let median = |one: &TrafficServer| {
        let durations = &span(one).first_byte;
        (durations.count() >= RESPONSES_MIN).then(|| durations.quantile(0.5)).flatten()
    };
    let medians: Vec<(&TrafficServer, Duration)> =
        service.servers.iter().filter_map(|one| Some((one, median(one)?))).collect();
    let mut sorted: Vec<Duration> = medians.iter().map(|(_, median)| *median).collect();
    sorted.sort_unstable();
    // Half of the servers, or more, are not slower than this.
    let Some(&usual) = sorted.get(sorted.len().saturating_sub(1) / 2) else { return Vec::new() };
    let is_slower = |median: Duration, than: Duration| {
        median >= than * TIMES_MIN && median >= than + LONGER_MIN
    };
    let (suspects, peers): (Vec<_>, Vec<_>) =
        medians.into_iter().partition(|(_, median)| is_slower(*median, usual));
    if suspects.is_empty() {
        return Vec::new();
    }
    let peers = together(peers.iter().map(|(server, _)| server), span);
    let peers_median = peers.quantile(0.5).unwrap_or_default();
    let proved = |group: Group<'a>| {
        let durations = together(&group.servers, span);
        let separation = separation(&durations, &peers, judged)?;
        let is_still = group.servers.iter().all(|one| is_still_slow(one, peers_median));
        let is_slow = is_slower(durations.quantile(0.5)?, peers_median) && is_still;
        is_slow.then(|| Slow { group, span, durations, peers: peers.clone(), separation })
    };
    let is_suspect =
        |server: &&TrafficServer| suspects.iter().any(|(suspect, _)| suspect == server);
    // A zone whose servers are all slow says more than each of them.
    let zones = service.zones().into_iter().filter(|zone| zone.servers.iter().all(is_suspect));
    let mut found: Vec<Slow<'_>> = zones.filter_map(proved).collect();
    let in_zones: Vec<&TrafficServer> =
        found.iter().flat_map(|slow| slow.group.servers.clone()).collect();
    let alone = suspects.iter().map(|(server, _)| *server).filter(|one| !in_zones.contains(one));
    found.extend(alone.map(|one| service.alone(one)).filter_map(proved));
    found
}

/// Whether it still gets requests, and the last seconds do not show that it has recovered.
fn is_still_slow(server: &TrafficServer, peers_median: Duration) -> bool {
    let fresh = &server.fresh.first_byte;
    let is_unknown = fresh.count() < FRESH_MIN;
    let is_slow = || fresh.quantile(0.5).is_some_and(|median| median >= peers_median * TIMES_MIN);
    server.recent.sent > 0 && (is_unknown || is_slow())
}

fn finding(out: &Out, service: &TrafficService, slow: &Slow<'_>) -> Finding {
    let Slow { group, span, durations, peers, separation } = slow;
    let time = |of: &HistogramTotals, q: f64| of.quantile(q).unwrap_or_default();
    let (median, peers_median) = (time(durations, 0.5), time(peers, 0.5));
    let shown = |time: Duration| words::duration(time);
    let what = format!(
        "{} is slow: the median response takes {}, at its peers {}.",
        group.name,
        shown(median),
        shown(peers_median),
    );
    let bound = shown(Duration::from_micros(separation.bound_us));
    let exceeding = |name: &str, units: crate::evidence::Units| {
        Evidence::number(name, units.share() * 100.0, "%")
    };
    let certainty = if service.is_bound { Certainty::Possible } else { Certainty::Certain };
    let [first, ..] = group.servers.as_slice() else {
        return out.finding("", Severity::Note, certainty, what);
    };
    let network = network_us(first, *span);
    let finding = out.finding(group.name.clone(), Severity::Warning, certainty, what);
    let drains = group.drains(service, DRAINED_MAX);
    let drains: Vec<&str> = drains.iter().map(String::as_str).collect();
    let is_network = network.is_some_and(|us| {
        us as f64 >= NETWORK_SHARE * median.saturating_sub(peers_median).as_micros() as f64
    });
    group
        .mark(finding, service)
        .evidence(Evidence::count(
            "responses",
            durations.count(),
            format!("in {} s", span(first).seconds),
        ))
        .evidence(exceeding(&format!("slower than {bound}"), separation.slower))
        .evidence(exceeding(&format!("peers' responses slower than {bound}"), separation.others))
        .evidence(Evidence::text(
            "99th percentile",
            format!("{}, peers {}", shown(time(durations, 0.99)), shown(time(peers, 0.99))),
        ))
        .evidences(
            network.map(|us| Evidence::text("TCP round trip", shown(Duration::from_micros(us)))),
        )
        .why(why(service, network.map(|_| is_network)))
        .remedy(
            "Drain it, and compare it with its peers: version, load of its host, logs",
            &drains,
            "the other servers take its load",
        )
        .verify("weir status shows its p50 near that of its peers")
        .source(&["the balancer's histograms of response times by server, second by second"])
}

/// The network's part of a response: a round trip, in microseconds.
fn network_us(server: &TrafficServer, span: SpanOf) -> Option<u64> {
    span(server).round_trip_us.or(server.minute.round_trip_us)
}

/// `is_network`: whether round trips take the time, if they were measured.
fn why(service: &TrafficService, is_network: Option<bool>) -> &'static str {
    if service.is_bound {
        return "Only its share of the requests is slow, which averages hide. Requests choose their server here, so it may get others than its peers do.";
    }
    match is_network {
        Some(true) => {
            "Only its share of the requests is slow, which averages hide. The round trip takes most of the time: the path to it is at fault, or its host."
        }
        Some(false) => {
            "Only its share of the requests is slow, which averages hide. The network does not take the time, and other servers handle the same requests."
        }
        None => {
            "Only its share of the requests is slow, which averages hide. Other servers handle the same requests."
        }
    }
}

/// Whether requests wait for a server that sends nothing, though its peers respond.
fn is_silent(server: &TrafficServer, service: &TrafficService) -> bool {
    if server.silent_s < SILENT_S || server.waiting == 0 {
        return false;
    }
    let others = || service.servers.iter().filter(|one| one.address != server.address);
    if others().any(|one| one.silent_s >= SILENT_S) {
        return false;
    }
    let others: Vec<&TrafficServer> = others().collect();
    let peers = together(&others, |one| &one.recent);
    let longest = peers.quantile(1.0).unwrap_or(Duration::MAX);
    peers.count() >= FRESH_MIN
        && longest.saturating_mul(SILENT_TIMES) <= Duration::from_secs(server.silent_s)
}

fn silent(out: &Out, service: &TrafficService, server: &TrafficServer) -> Finding {
    let group = service.alone(server);
    let what = format!(
        "{} has not responded for {} s, though {} there; its peers respond.",
        group.name,
        server.silent_s,
        if server.waiting == 1 {
            "a request waits".to_owned()
        } else {
            format!("{} requests wait", words::thousands(server.waiting))
        },
    );
    let finding = out.finding(group.name.clone(), Severity::Critical, Certainty::Certain, what);
    let drains = group.drains(service, 1);
    let drains: Vec<&str> = drains.iter().map(String::as_str).collect();
    group
        .mark(finding, service)
        .evidence(Evidence::count("requests without a response", server.waiting, ""))
        .evidence(Evidence::count("no response for", server.silent_s, "s"))
        .why("Requests sent there wait until a timeout ends them. It accepts connections, so a check that only connects passes.")
        .remedy("Drain it, and find out where its process hangs", &drains, "the other servers take its load")
        .remedy("Limit the wait for a response, and check with a request", &["timeouts = { response = \"10s\" }", "check = { path = \"/health\" }"], "a response that takes longer than the limit fails")
        .verify("weir status shows responses from it")
        .source(&["the balancer's counters of requests and responses by server"])
}
