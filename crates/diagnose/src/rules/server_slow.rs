//! One server, or the servers of one zone, respond much more slowly than their peers.
//!
//! **When.** In the last 5, 10 or 60 seconds the median time to the response head, or in the last minute its 90th
//! percentile, was at least twice that of the peers and 5 ms longer, and it is proved that the distributions
//! differ: there is a duration that more than a share (40, 15 or 5 %) of the server's responses exceed, and
//! fewer of its peers' do, with at most one false alarm a month. About 20 responses are enough if all of them are slow. Servers in their slow
//! start are not judged. Also reported: a server that has not responded for ten seconds though at least five
//! requests, or as many as its limit allows, wait there, if its peers respond.
//!
//! **Why.** Only this server's share of the requests is slow, which averages over the service hide. It
//! works, so health checks pass. Usual reasons: its processor or disk is busy with something else, its
//! cache is empty, it runs another version, it swaps or collects garbage.
//!
//! **What to do.** Drain the server, and compare it with its peers: version, load of its host, logs. If its
//! round trips are longer than its peers' and explain the difference, the path to the server is at fault. If requests choose their
//! server (`balance = "hash"`, affinity), this server may get other requests than its peers:
//! compare these first; the finding is only *possible* then, and *likely* in a service of two servers, since
//! slow requests may alternate with others. Time after the response head (a slow body) is not judged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::Address;
use model::histogram::HistogramTotals;

use crate::evidence::{Units, alarm_chance};
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
/// So many requests that wait for one server's response are no coincidence.
const WAITING_MIN: u64 = 5;
/// A server that does not respond for so long, while its peers do, hangs.
const SILENT_S: u64 = 10;
/// Peers' responses are that many times faster than the silence has lasted.
const SILENT_TIMES: u32 = 3;
const DRAINED_MAX: usize = 3;
/// A part of the difference that the network explains, from which on it is named as its cause.
const NETWORK_SHARE: f64 = 0.5;

/// What is compared: a quantile of a span's responses.
#[derive(Clone, Copy)]
struct Measure {
    span: SpanOf,
    /// Shorter spans, of servers that have just been added, are not judged.
    seconds_min: u64,
    q: f64,
    /// As it is named in a sentence.
    name: &'static str,
    /// Shares at which the distributions are compared: many of the responses, and the tails, for which
    /// fewer responses are enough if all of them are slow.
    limits: &'static [f64],
}

const fn median(span: SpanOf) -> Measure {
    let (name, limits) = ("median response time", &[0.4, 0.15, 0.05]);
    Measure { span, seconds_min: 0, q: 0.5, name, limits }
}

/// A tail must last: a pause of a second or two is none.
const MEASURES: [Measure; 4] = [
    median(|one| &one.fresh),
    median(|one| &one.recent),
    median(|one| &one.minute),
    Measure {
        span: |one| &one.minute,
        seconds_min: 45,
        q: 0.9,
        name: "90th percentile of response times",
        limits: &[0.15],
    },
];

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let judged = traffic.judged();
    for service in &traffic.services {
        let mut known: BTreeSet<Address> = BTreeSet::new();
        for measure in MEASURES {
            for found in find(service, measure, judged) {
                let addresses: Vec<Address> =
                    found.group.servers.iter().map(|one| one.address).collect();
                if addresses.iter().all(|address| !known.contains(address)) {
                    known.extend(addresses);
                    out.push(finding(out, service, &found));
                }
            }
        }
        for server in service.servers.iter().filter(|one| is_silent(one, service)) {
            out.push(silent(out, service, server));
        }
    }
}

/// Whether a server or a zone of a service is slower than its peers.
pub(super) fn finds(service: &TrafficService, judged: usize) -> bool {
    MEASURES.iter().any(|&measure| !find(service, measure, judged).is_empty())
        || service.servers.iter().any(|one| is_silent(one, service))
}

/// A group that is slower than its peers.
struct Slow<'a> {
    group: Group<'a>,
    measure: Measure,
    durations: HistogramTotals,
    peers: HistogramTotals,
    separation: Separation,
    /// Average TCP round trips of both, in microseconds, if they were sampled.
    round_trips: Option<(u64, u64)>,
}

/// Returns the servers that are slower than their peers by one measure.
fn find<'a>(service: &'a TrafficService, measure: Measure, judged: usize) -> Vec<Slow<'a>> {
    let Measure { span, seconds_min, q, limits, .. } = measure;
    let time = |one: &TrafficServer| {
        let durations = &span(one).first_byte;
        (durations.count() >= RESPONSES_MIN).then(|| durations.quantile(q)).flatten()
    };
    // One that has just come back is allowed to be slower.
    let warm =
        service.servers.iter().filter(|one| !one.is_starting && span(one).seconds >= seconds_min);
    let times: Vec<(&TrafficServer, Duration)> =
        warm.filter_map(|one| Some((one, time(one)?))).collect();
    let mut sorted: Vec<Duration> = times.iter().map(|(_, time)| *time).collect();
    sorted.sort_unstable();
    // Half of the servers, or more, are not slower than this.
    let Some(&usual) = sorted.get(sorted.len().saturating_sub(1) / 2) else { return Vec::new() };
    let (suspects, peers): (Vec<_>, Vec<_>) =
        times.into_iter().partition(|(_, time)| is_slower(*time, usual));
    if suspects.is_empty() {
        return Vec::new();
    }
    let peers: Vec<&TrafficServer> = peers.into_iter().map(|(server, _)| server).collect();
    let peers_round_trip = round_trip_us(&peers);
    let peers_fresh = together(&peers, |one| &one.fresh).quantile(q);
    let peers = together(&peers, span);
    let peers_time = peers.quantile(q).unwrap_or_default();
    let proved = |group: Group<'a>| {
        let durations = together(&group.servers, span);
        let separation = separation(&durations, &peers, limits, alarm_chance(judged))?;
        let is_still = group
            .servers
            .iter()
            .all(|one| is_still_slow(one, q, peers_fresh.unwrap_or(peers_time)));
        let is_slow = is_slower(durations.quantile(q)?, peers_time) && is_still;
        let round_trips = round_trip_us(&group.servers).zip(peers_round_trip);
        let peers = peers.clone();
        is_slow.then_some(Slow { group, measure, durations, peers, separation, round_trips })
    };
    let suspects: BTreeMap<Address, &TrafficServer> =
        suspects.into_iter().map(|(server, _)| (server.address, server)).collect();
    let are_suspects =
        |zone: &Group<'_>| zone.servers.iter().all(|server| suspects.contains_key(&server.address));
    // A zone whose servers are all slow says more than each of them.
    let zones = service.zones().into_iter().filter(are_suspects);
    let mut found: Vec<Slow<'_>> = zones.filter_map(proved).collect();
    let in_zones: BTreeSet<Address> =
        found.iter().flat_map(|slow| &slow.group.servers).map(|server| server.address).collect();
    let alone = suspects.values().filter(|server| !in_zones.contains(&server.address));
    found.extend(alone.map(|server| service.alone(server)).filter_map(proved));
    found
}

fn is_slower(time: Duration, than: Duration) -> bool {
    time >= than * TIMES_MIN && time >= than + LONGER_MIN
}

/// Whether it still gets requests, and the last seconds do not show that it has recovered. `peers`: the same
/// quantile of its peers' in these seconds.
fn is_still_slow(server: &TrafficServer, q: f64, peers: Duration) -> bool {
    let fresh = &server.fresh.first_byte;
    let is_unknown = fresh.count() < FRESH_MIN;
    let is_slow = || fresh.quantile(q).is_some_and(|time| is_slower(time, peers));
    server.recent.sent > 0 && (is_unknown || is_slow())
}

fn finding(out: &Out, service: &TrafficService, slow: &Slow<'_>) -> Finding {
    let Slow { group, measure, durations, peers, separation, round_trips } = slow;
    let Measure { span, q, name, .. } = *measure;
    let time = |of: &HistogramTotals, q: f64| of.quantile(q).unwrap_or_default();
    let (own_time, peers_time) = (time(durations, q), time(peers, q));
    let what = format!(
        "{} is slow: its {name} is {}, its peers' {}.",
        group.name,
        words::duration(own_time),
        words::duration(peers_time),
    );
    let bound = words::duration(Duration::from_micros(separation.bound_us));
    let exceeding = |name: &str, units: Units| Evidence::number(name, units.share() * 100.0, "%");
    let certainty = match service.servers.len() {
        _ if service.is_bound => Certainty::Possible,
        // Slow requests may alternate with others, as the two servers do.
        ..=2 => Certainty::Likely,
        _ => Certainty::Certain,
    };
    let finding = out.finding(group.name.clone(), Severity::Warning, certainty, what);
    let drains = group.drains(service, DRAINED_MAX);
    let drains: Vec<&str> = drains.iter().map(String::as_str).collect();
    let is_network = round_trips.map(|(own, peers)| {
        let longer = own_time.saturating_sub(peers_time).as_micros() as f64;
        own.saturating_sub(peers) as f64 >= NETWORK_SHARE * longer
    });
    let seconds = group.servers.iter().map(|one| span(one).seconds).max().unwrap_or(0);
    group
        .mark(finding, service)
        .evidence(Evidence::count("responses", durations.count(), format!("in {seconds} s")))
        .evidence(exceeding(&format!("slower than {bound}"), separation.slower))
        .evidence(exceeding(&format!("peers' responses slower than {bound}"), separation.others))
        .evidence(Evidence::text(
            "99th percentile",
            format!(
                "{}, peers {}",
                words::duration(time(durations, 0.99)),
                words::duration(time(peers, 0.99))
            ),
        ))
        .evidences(round_trips.map(|(own, peers)| {
            let shown = |us| words::duration(Duration::from_micros(us));
            Evidence::text("TCP round trip", format!("{}, peers {}", shown(own), shown(peers)))
        }))
        .why(why(service, is_network))
        .remedy(
            "Drain it, and compare it with its peers: version, load of its host, logs",
            &drains,
            "the other servers take its load",
        )
        .verify("weir status shows its p50 near that of its peers")
        .source(&["the balancer's histograms of response times by server, second by second"])
}

/// The average TCP round trip of some servers in the last minute, in microseconds.
fn round_trip_us(servers: &[&TrafficServer]) -> Option<u64> {
    let sampled: Vec<u64> = servers.iter().filter_map(|one| one.minute.round_trip_us).collect();
    words::sum(sampled.iter().copied()).checked_div(sampled.len() as u64)
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
            "Only its share of the requests is slow, which averages hide. The network does not take the time, and other servers get requests of the same kinds."
        }
        None => {
            "Only its share of the requests is slow, which averages hide. Other servers get requests of the same kinds."
        }
    }
}

/// Whether requests wait for a server that sends nothing, though its peers respond.
fn is_silent(server: &TrafficServer, service: &TrafficService) -> bool {
    // A few may be long polls, or exports, while the balancer prefers idle servers.
    let is_full = server.in_flight_max.is_some_and(|max| max > 1 && server.waiting >= max);
    let is_waited_for = server.waiting >= WAITING_MIN || is_full;
    if !server.is_eligible || server.silent_s < SILENT_S || !is_waited_for {
        return false;
    }
    let others = || service.servers.iter().filter(|one| one.address != server.address);
    // If they fell silent at about the same time, the service hangs.
    if others().any(|one| one.silent_s >= SILENT_S / 2) {
        return false;
    }
    let others: Vec<&TrafficServer> = others().collect();
    let peers = together(&others, |one| &one.fresh);
    let longest = peers.quantile(1.0).unwrap_or(Duration::MAX);
    peers.count() >= FRESH_MIN
        && longest.saturating_mul(SILENT_TIMES) <= Duration::from_secs(server.silent_s)
}

fn silent(out: &Out, service: &TrafficService, server: &TrafficServer) -> Finding {
    let group = service.alone(server);
    let what = format!(
        "{} has not responded for {} s, though {} requests wait there; its peers respond.",
        group.name,
        server.silent_s,
        words::thousands(server.waiting),
    );
    let (severity, certainty) = if service.is_bound {
        (Severity::Warning, Certainty::Possible)
    } else {
        (Severity::Critical, Certainty::Certain)
    };
    let finding = out.finding(group.name.clone(), severity, certainty, what);
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
