//! One client suddenly sends a large part of a service's requests.
//!
//! **When.** In the last 10 seconds a client sent more than 30 % of the service's requests for certain, four
//! times as many a second as in the minute before, and it alone is at least half of the service's growth, which
//! is 50 % or more. The minute before is known for at least 30 seconds. A client is an IPv4 address or an
//! IPv6 /64; behind trusted proxies it is the one that they name.
//!
//! **Why.** The service's capacity is planned for its usual clients. One that floods it takes slots and queue
//! places from all others.
//!
//! **What to do.** Find out who it is: a job that was started, a loop of retries, a crawler, an attack. A rate
//! limit by client bounds what any one of them can take.

use crate::evidence::Units;
use crate::facts::{ClientsSpan, Traffic, TrafficService};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

const SHARE: f64 = 0.3;
const TIMES: f64 = 4.0;
const GROWTH: f64 = 1.5;
const GROWTH_SHARE: f64 = 0.5;
const KNOWN_S: u64 = 30;
/// Counts of clients are too large by up to this share of all.
const COUNT_ERROR: f64 = 1.0 / 16.0;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    for service in &traffic.services {
        if let Some(spike) = Spike::of(service, traffic.services.len()) {
            push(out, service, &spike);
        }
    }
}

struct Spike<'a> {
    client: &'a str,
    share: f64,
    /// Requests a second: the client's and all, now and before.
    now: (f64, f64),
    before: (f64, f64),
}

impl<'a> Spike<'a> {
    fn of(service: &'a TrafficService, services: usize) -> Option<Spike<'a>> {
        let (now, before) = (&service.clients, &service.clients_before);
        let (client, &count) = now.of.iter().max_by_key(|(_, count)| **count)?;
        if now.seconds == 0 || before.seconds < KNOWN_S {
            return None;
        }
        let surely = count.saturating_sub((now.requests as f64 * COUNT_ERROR) as u64);
        let units = Units::new(surely, now.requests);
        let per_s = |count: u64, span: &ClientsSpan| count as f64 / span.seconds as f64;
        // One that is missing may have had as many requests as the error allows.
        let unseen = (before.requests as f64 * COUNT_ERROR) as u64;
        let count_before = before.of.get(client).copied().unwrap_or(0).max(unseen);
        let spike = Spike {
            client,
            share: Units::new(count, now.requests).share(),
            now: (per_s(surely, now), per_s(now.requests, now)),
            before: (per_s(count_before, before), per_s(before.requests, before)),
        };
        let (growth, of_client) = (spike.now.1 - spike.before.1, spike.now.0 - spike.before.0);
        let is_spike = units.exceeds(SHARE, services)
            && spike.now.0 >= TIMES * spike.before.0
            && spike.now.1 >= GROWTH * spike.before.1
            && of_client >= GROWTH_SHARE * growth;
        is_spike.then_some(spike)
    }
}

fn push(out: &mut Out, service: &TrafficService, spike: &Spike<'_>) {
    let Spike { client, share, now, before } = spike;
    let per_s = |name: String, rate: f64| Evidence::number(name, rate, "per second");
    out.push(
        out.finding(
            format!("{client} at {}", service.name),
            Severity::Warning,
            Certainty::Certain,
            format!(
                "{client} sends {} of the requests of {}, which have risen from {} to {} a second.",
                words::percent(*share),
                service.name,
                words::number(before.1),
                words::number(now.1),
            ),
        )
        .about(&service.name, [""; 0])
        .evidence(per_s(format!("requests of {client}, at least"), now.0))
        .evidence(per_s("in the minute before, at most".to_owned(), before.0))
        .evidence(per_s("requests of all others, at most".to_owned(), now.1 - now.0))
        .why("It takes slots and places in the queue from all other clients.")
        .remedy(
            "Find out who it is, and limit what one client may send",
            &["rate_limit = { requests = 50, per = \"1s\", burst = 100, by = \"client\" }"],
            "clients behind one address (NAT, a proxy that is not trusted) share the limit",
        )
        .verify("weir status shows the usual rate of the service")
        .source(&["the balancer's count of the most frequent clients, by service"]),
    );
}
