//! A service's queue keeps growing.
//!
//! **When.** In each of the last 12 seconds requests waited. The average over three seconds has risen three
//! times in a row, by at least ten requests and half of its length. At this rate the queue is full within two
//! minutes.
//! Shorter bursts are what a queue is for.
//!
//! **Why.** Requests arrive faster than slots become free. Each further request waits longer, until the queue is
//! full, or the limit of the wait is reached, and requests are refused.
//!
//! **What to do.** Find out what changed: more requests, slower responses, or fewer servers. A longer queue
//! only helps against short bursts.

use crate::facts::{Traffic, TrafficService};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Seconds that are averaged, and how many of these averages are compared.
const STEP_S: usize = 3;
const STEPS: usize = 4;
const RISE_MIN: f64 = 10.0;
const FULL_WITHIN_S: f64 = 120.0;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    for service in &traffic.services {
        if let Some(rise) = rise(service) {
            push(out, service, &rise);
        }
    }
}

struct Rise {
    from: f64,
    to: f64,
    per_s: f64,
    full_in_s: f64,
}

fn rise(service: &TrafficService) -> Option<Rise> {
    let lengths = &service.queue_lengths;
    let lengths = &lengths[lengths.len().checked_sub(STEPS * STEP_S)?..];
    let average = |step: &[u64]| step.iter().map(|&n| n as f64).sum::<f64>() / step.len() as f64;
    let steps: Vec<f64> = lengths.chunks(STEP_S).map(average).collect();
    let [from, .., to] = *steps.as_slice() else { return None };
    let waits_always = lengths.iter().all(|&length| length > 0);
    let is_rising = waits_always && steps.windows(2).all(|two| two[1] > two[0]);
    let per_s = (to - from) / (STEP_S * (STEPS - 1)) as f64;
    let full_in_s = (service.queue_length_max as f64 - to).max(0.0) / per_s;
    let matters = to - from >= RISE_MIN.max(from / 2.0) && full_in_s <= FULL_WITHIN_S;
    (is_rising && matters).then_some(Rise { from, to, per_s, full_in_s })
}

fn push(out: &mut Out, service: &TrafficService, rise: &Rise) {
    let servers = service.servers.iter().filter(|one| one.is_eligible);
    let seconds = service.recent.seconds.max(1) as f64;
    out.push(
        out.finding(
            service.name.clone(),
            Severity::Warning,
            Certainty::Certain,
            format!(
                "The queue of {} grows by {} requests a second, and is full in {} s.",
                service.name,
                words::number(rise.per_s),
                rise.full_in_s.ceil(),
            ),
        )
        .about(&service.name, [""; 0])
        .evidence(Evidence::text(
            "waiting requests",
            format!("{} to {} in 9 s", rise.from.round(), rise.to.round()),
        ))
        .evidence(Evidence::count("places in the queue", service.queue_length_max, ""))
        .evidence(Evidence::number(
            "requests ended",
            service.recent.requests as f64 / seconds,
            "per second",
        ))
        .evidence(Evidence::count("servers that receive requests", servers.count() as u64, ""))
        .why("Requests arrive faster than slots become free. When the queue is full, they are refused.")
        .remedy(
            "Find out what changed: more requests, slower responses, or fewer servers",
            &["weir status"],
            "none",
        )
        .verify("weir status shows the queue of the service shrinking")
        .source(&["the length of the service's queue, second by second"]),
    );
}
