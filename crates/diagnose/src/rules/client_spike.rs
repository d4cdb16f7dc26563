//! One client suddenly sends a large part of a service's requests.
//!
//! **When.** It is proved that in the last 10 seconds a client sent more than 30 % of the service's requests. It
//! sent at least 100 requests, four times as many a second as in the minute before, and causes at least half of the
//! service's growth, which is 50 % or more. The minute before must have had 100 requests in 30 seconds or more, at
//! least a fifth of them from other clients.
//! A client is an IPv4 address or an IPv6 /64; behind trusted proxies it is the one that they name.
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
/// What is usual is known from so many seconds and requests on.
const KNOWN_S: u64 = 30;
const KNOWN_REQUESTS: u64 = 100;
/// Fewer requests of the client are no flood.
const REQUESTS_MIN: u64 = 100;
/// A client with more of the service's requests before is as good as its only one.
const ALONE_SHARE: f64 = 0.8;
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
        let is_known = before.seconds >= KNOWN_S && before.requests >= KNOWN_REQUESTS;
        if now.seconds == 0 || !is_known {
            return None;
        }
        let surely = count.saturating_sub((now.requests as f64 * COUNT_ERROR) as u64);
        let units = Units::new(surely, now.requests);
        let per_s = |count: u64, span: &ClientsSpan| count as f64 / span.seconds as f64;
        // In spans in which it is missing, it may have had as many requests as the error allows.
        let unseen = (before.requests as f64 * COUNT_ERROR) as u64;
        let count_before = before.of.get(client).copied().unwrap_or(0).saturating_add(unseen);
        let spike = Spike {
            client,
            share: Units::new(count, now.requests).share(),
            now: (per_s(surely, now), per_s(now.requests, now)),
            before: (per_s(count_before, before), per_s(before.requests, before)),
        };
        let (growth, of_client) = (spike.now.1 - spike.before.1, spike.now.0 - spike.before.0);
        // There are no other clients that it could harm.
        let was_alone = spike.before.0 >= ALONE_SHARE * spike.before.1;
        let is_spike = !was_alone
            && surely >= REQUESTS_MIN
            && units.exceeds(SHARE, services)
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
