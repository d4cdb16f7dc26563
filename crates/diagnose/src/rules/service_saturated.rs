//! All servers of a service are at their concurrency limit.
//!
//! **When.** It is proved that in the last 10 seconds more than 1 % of the service's requests were refused
//! because the servers and the queue were full (`queue_full`, `queue_wait_exceeded`): critical. Or all servers that receive
//! new requests are at 90 % of their limit or more, at least half of the requests had to wait, and for
//! 15 seconds the queue was never empty and is not draining: warning. In the first three seconds of a service nothing
//! is concluded: the first requests have not ended yet.
//!
//! **Why.** Requests arrive faster than the servers can finish them within their limits. By Little's law the
//! requests in flight are the rate times the time of each: more load, or slower servers, need more slots.
//!
//! **What to do.** If response times rose, find out what is slow. If the servers have CPU to spare, raise
//! `in_flight_max`; if not, add servers. The finding says how many slots this rate needs.

use crate::evidence::Units;
use crate::facts::{Traffic, TrafficServer, TrafficService};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Causes of requests that found all servers and the queue full.
const REFUSALS: [&str; 2] = ["queue_full", "queue_wait_exceeded"];
const REFUSED_SHARE: f64 = 0.01;
const QUEUED_SHARE: f64 = 0.5;
const REQUESTS_MIN: u64 = 20;
/// Of fewer seconds than this the first requests may not have ended, so that all that has ended is refusals.
const SECONDS_MIN: u64 = 3;
const LASTING_S: usize = 15;
/// A server counts as full from here on: between two requests a slot is free for a moment.
const FULL_SHARE: f64 = 0.9;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    for service in traffic.services.iter().filter(|one| one.recent.seconds >= SECONDS_MIN) {
        let refused = words::sum(
            REFUSALS.iter().filter_map(|cause| service.recent.causes.get(*cause).copied()),
        );
        let is_refusing = Units::new(refused, service.recent.requests)
            .exceeds(REFUSED_SHARE, traffic.services.len());
        let waits = service.recent.requests >= REQUESTS_MIN
            && service.recent.queued as f64 >= QUEUED_SHARE * service.recent.requests as f64;
        if is_refusing || waits && is_full(service) && is_lasting(&service.queue_lengths) {
            push(out, service, refused, is_refusing);
        }
    }
}

fn eligible(service: &TrafficService) -> impl Iterator<Item = &TrafficServer> {
    service.servers.iter().filter(|one| one.is_eligible)
}

fn is_full(service: &TrafficService) -> bool {
    let is_full = |one: &TrafficServer| {
        one.in_flight_max.is_some_and(|max| one.in_flight as f64 >= FULL_SHARE * max as f64)
    };
    eligible(service).next().is_some() && eligible(service).all(is_full)
}

/// Whether the queue of the last seconds was never empty, and is not what remains of a burst.
fn is_lasting(queue_lengths: &[u64]) -> bool {
    let longest = queue_lengths.iter().max().copied().unwrap_or(0);
    queue_lengths.len() >= LASTING_S
        && queue_lengths.iter().all(|&length| length > 0)
        && queue_lengths.last().is_some_and(|&now| now >= longest / 2)
}

fn push(out: &mut Out, service: &TrafficService, refused: u64, is_refusing: bool) {
    let span = &service.recent;
    let seconds = span.seconds.max(1) as f64;
    let per_s = |count: u64| count as f64 / seconds;
    let in_flight = words::sum(eligible(service).map(|one| one.in_flight));
    let slots = words::sum(eligible(service).filter_map(|one| one.in_flight_max));
    let servers = eligible(service).count().max(1) as f64;
    // Little's law: what is in flight is the rate of what is served times the time that each takes.
    let served = per_s(span.requests.saturating_sub(refused));
    let needed = (served > 0.0).then(|| in_flight as f64 * per_s(span.requests) / served);
    let missing = needed.map(|needed| (needed - slots as f64) / (slots as f64 / servers).max(1.0));
    let action = match missing {
        None => "Find out where the servers hang: no request is served".to_owned(),
        Some(missing) if missing > 1.0 => {
            let servers = words::plural(missing.ceil() as u64, "server");
            format!("Add {servers}, or find out why responses take longer than before")
        }
        Some(_) => "Add a server, or find out why responses take longer than before".to_owned(),
    };
    let what = if is_refusing {
        format!(
            "{} is saturated: it refuses {} of {} requests a second.",
            service.name,
            words::number(per_s(refused)),
            words::number(per_s(span.requests)),
        )
    } else {
        format!(
            "{} is saturated: all servers are at their limit, and {} of the requests wait.",
            service.name,
            words::percent(Units::new(span.queued, span.requests).share()),
        )
    };
    let severity = if is_refusing { Severity::Critical } else { Severity::Warning };
    let median = span.total.quantile(0.5);
    out.push(
        out.finding(service.name.clone(), severity, Certainty::Certain, what)
            .about(&service.name, [""; 0])
            .evidence(Evidence::text(
                "requests in flight",
                format!("{} of {} allowed", words::thousands(in_flight), words::thousands(slots)),
            ))
            .evidences(needed.map(|needed| {
                Evidence::number("requests in flight that this rate needs", needed.round(), "")
            }))
            .evidence(Evidence::count(
                "requests waiting",
                service.queue_length,
                format!("of at most {}", words::thousands(service.queue_length_max)),
            ))
            .evidences(
                median.map(|median| {
                    Evidence::text("median time of a request", words::duration(median))
                }),
            )
            .why("Requests arrive faster than the servers finish them within their limits.")
            .remedy(action, &["weir status"], "none")
            .remedy(
                "Raise the limit, if the servers have CPU and memory to spare",
                &["in_flight_max = 128"],
                "a server with more requests than it can handle gets slower for all of them",
            )
            .verify("weir status shows no waiting and no refused requests of the service")
            .source(&["the balancer's counters by service and cause, and its concurrency limits"]),
    );
}
