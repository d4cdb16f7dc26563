//! A burst of failures, with the kernel counters that rose at the same time.
//!
//! **When.** There are at least four samples. In some intervals between them, but not in most, at
//! least five attempts a second failed, and five times as many as in the median interval. A kernel
//! counter is named only if it fits the cause of the failures, rose in at least half of these
//! intervals or just before, and rose five times as fast as in the others. The connection is
//! *likely* from nine samples on, and *possible* with fewer.
//!
//! **Why.** Counters that rise on the same host at the same time as the failures point to the
//! cause; counters that rise often do not. If counters fit the cause but none rose, the finding
//! says so: the cause is then most likely not on this host.
//!
//! **What to do.** If a counter is named, see the rule for that counter. Otherwise look at the
//! servers' logs for those seconds.

use std::collections::BTreeMap;

use crate::facts::{BalancerSample, Facts, NamespaceSample};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Fewer steps than this have no usual to compare with.
const STEPS_MIN: usize = 3;
/// With fewer than this, what rose in one of them may have by chance.
const STEPS_LIKELY: usize = 8;
const FAILURES_PER_S_MIN: f64 = 5.0;
const TIMES_MIN: f64 = 5.0;
const RISES_MIN: u64 = 5;
/// Samples of kernel and balancer further apart are not of the same second.
const APART_MAX_MS: u64 = 250;
const CAUSES_SHOWN_MAX: usize = 3;

/// Which counters can have to do with a cause. Others may rise at the same time by chance.
const FITTING: &[(&[&str], &[&str])] = &[
    (
        &["connect_syn_unanswered", "connection_timeout"],
        &[
            "TcpExtTCPSynRetrans",
            "TcpExtListenOverflows",
            "TcpExtListenDrops",
            "TcpExtTCPReqQFullDrop",
        ],
    ),
    (
        &["connection_reset", "connection_terminated", "server_closed_idle_connection"],
        &["TcpEstabResets", "TcpExtTCPAbortOnMemory", "TcpExtTCPAbortOnTimeout"],
    ),
    (&["connection_refused"], &["TcpAttemptFails"]),
    (
        &[
            "connection_lost",
            "http_response_timeout",
            "connection_read_timeout",
            "connection_write_timeout",
        ],
        &[
            "TcpExtTCPTimeouts",
            "TcpRetransSegs",
            "TcpExtTCPAbortOnTimeout",
            "TcpExtTCPMemoryPressures",
        ],
    ),
    (&["destination_ip_unroutable"], &["IpOutNoRoutes"]),
    (&["connection_limit_reached"], &["TcpExtTCPAbortOnMemory", "TcpExtTCPMemoryPressures"]),
];

/// What happened between two samples of the balancer.
struct Step<'a> {
    at_ms: u64,
    seconds: f64,
    failed: BTreeMap<&'a str, u64>,
    /// The kernel's counters at both ends, where samples of the same moments are known.
    kernel: Option<(&'a NamespaceSample, &'a NamespaceSample)>,
}

impl Step<'_> {
    fn failures_per_s(&self) -> f64 {
        words::sum(self.failed.values().copied()) as f64 / self.seconds
    }

    fn rise(&self, counter: &str) -> Option<u64> {
        let (before, after) = self.kernel?;
        after.counters.get()?.get(counter)?.checked_sub(*before.counters.get()?.get(counter)?)
    }
}

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some(balancer) = facts.balancer.get() else { return super::balancer_unknown(facts, out) };
    if balancer.samples.len() < 2 {
        return super::balancer_unknown(facts, out);
    }
    let steps: Vec<Step<'_>> =
        balancer.samples.windows(2).filter_map(|two| step(facts, &two[0], &two[1])).collect();
    if steps.len() < STEPS_MIN {
        return;
    }
    let mut rates: Vec<f64> = steps.iter().map(Step::failures_per_s).collect();
    rates.sort_by(f64::total_cmp);
    let usual = rates[rates.len() / 2];
    let is_wave = |step: &Step<'_>| {
        step.failures_per_s() >= FAILURES_PER_S_MIN && step.failures_per_s() >= TIMES_MIN * usual
    };
    let wave: Vec<bool> = steps.iter().map(is_wave).collect();
    let length = wave.iter().filter(|is| **is).count();
    // What lasts is no wave: other rules speak of it.
    if length == 0 || length > steps.len() / 2 {
        return;
    }
    push(facts, &steps, &wave, usual, out);
}

fn step<'a>(
    facts: &'a Facts,
    before: &'a BalancerSample,
    after: &'a BalancerSample,
) -> Option<Step<'a>> {
    let seconds = after.at_ms.checked_sub(before.at_ms).filter(|&ms| ms > 0)? as f64 / 1000.0;
    let mut failed: BTreeMap<&str, u64> = BTreeMap::new();
    for now in &after.servers {
        let same = before
            .servers
            .iter()
            .find(|one| one.address == now.address && one.service == now.service);
        for (cause, &count) in &now.failures {
            let then = same.and_then(|one| one.failures.get(cause)).copied().unwrap_or(0);
            let sum = failed.entry(cause).or_default();
            *sum = sum.saturating_add(count.saturating_sub(then));
        }
    }
    let own = facts.namespaces.iter().find(|namespace| namespace.is_own);
    let at = |at_ms: u64| {
        own?.samples
            .iter()
            .filter(|one| one.at_ms.abs_diff(at_ms) <= APART_MAX_MS)
            .min_by_key(|one| one.at_ms.abs_diff(at_ms))
    };
    let kernel = at(before.at_ms).zip(at(after.at_ms));
    Some(Step { at_ms: after.at_ms, seconds, failed, kernel })
}

fn push(facts: &Facts, steps: &[Step<'_>], wave: &[bool], usual: f64, out: &mut Out) {
    let inside = || steps.iter().zip(wave).filter(|(_, is)| **is).map(|(step, _)| step);
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    for step in inside() {
        for (cause, count) in &step.failed {
            let sum = causes.entry(cause).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    let mut causes: Vec<(&str, u64)> = causes.into_iter().filter(|(_, count)| *count > 0).collect();
    causes.sort_by_key(|&(cause, count)| (std::cmp::Reverse(count), cause));
    let Some(&(main, _)) = causes.first() else { return };
    let connected = connected(steps, wave, main);
    let seconds: f64 = inside().map(|step| step.seconds).sum();
    let failed = words::sum(causes.iter().map(|(_, count)| *count));
    let is_seen = steps.iter().all(|step| step.kernel.is_some());
    let is_likely = !connected.is_empty() && steps.len() >= STEPS_LIKELY;
    let with = match connected.first() {
        Some((counter, _)) => format!("{counter} rose with it"),
        None if fitting(main).is_empty() => "no kernel counter fits this cause".to_owned(),
        None if is_seen => "no kernel counter that fits this cause rose with it".to_owned(),
        None => "the kernel's counters for that time are not known".to_owned(),
    };
    out.push(
        out.finding(
            main,
            Severity::Warning,
            if is_likely { Certainty::Likely } else { Certainty::Possible },
            format!("A burst of {} ({main}): {with}.", words::plural(failed, "failure")),
        )
        .evidence(Evidence::number("lasted", seconds, "s"))
        .evidences(when(facts, inside().next(), inside().next_back()))
        .evidence(Evidence::number("usual failures", usual, "per second"))
        .evidences(causes.iter().take(CAUSES_SHOWN_MAX).map(|(cause, count)| Evidence::count(*cause, *count, "failures")))
        .evidences(connected.iter().map(|(counter, rise)| Evidence::count(*counter, *rise, "meanwhile")))
        .why("Counters that rise on the same host at the same time point to the cause; other counters are not named here.")
        .remedy(
            if connected.is_empty() {
                "Look at the servers' logs for those seconds"
            } else {
                "See what the counter means, and the finding about it, if there is one"
            },
            &["weir doctor --for 10s"],
            "none",
        )
        .verify("the log shows no further burst of failures")
        .source(&["the balancer's counters and the kernel's, second by second"]),
    );
}

/// Counters that fit `cause` and rose with the wave, and by how much.
fn connected(steps: &[Step<'_>], wave: &[bool], cause: &str) -> Vec<(&'static str, u64)> {
    // The kernel may see it a step before the balancer gives up.
    let near: Vec<bool> =
        (0..wave.len()).map(|at| wave[at] || wave.get(at + 1).copied().unwrap_or(false)).collect();
    let fits = |counter: &&'static str| {
        let mut inside = (0_u64, 0.0, 0_usize);
        let mut outside = (0_u64, 0.0);
        for (step, &is_near) in steps.iter().zip(&near) {
            let rise = step.rise(counter)?;
            if is_near {
                inside = (
                    inside.0.saturating_add(rise),
                    inside.1 + step.seconds,
                    inside.2 + usize::from(rise > 0),
                );
            } else {
                outside = (outside.0.saturating_add(rise), outside.1 + step.seconds);
            }
        }
        let length = wave.iter().filter(|is| **is).count();
        let rate = |(rise, seconds): (u64, f64)| rise as f64 / seconds.max(f64::MIN_POSITIVE);
        let is_much = rate((inside.0, inside.1)) >= TIMES_MIN * rate(outside);
        (inside.0 >= RISES_MIN && inside.2 * 2 >= length && is_much).then_some((*counter, inside.0))
    };
    fitting(cause).iter().filter_map(fits).collect()
}

fn fitting(cause: &str) -> &'static [&'static str] {
    FITTING.iter().find(|(causes, _)| causes.contains(&cause)).map_or(&[], |(_, counters)| counters)
}

/// The time of day, for those who look into other logs; `None` where it is not known.
fn when(facts: &Facts, first: Option<&Step<'_>>, last: Option<&Step<'_>>) -> Option<Evidence> {
    let begin = facts.balancer.get()?.samples.first()?.at_ms;
    let clock = |at_ms: u64| {
        let seconds = facts.taken_at_unix_ms.saturating_add(at_ms.checked_sub(begin)?) / 1000;
        let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
        Some(format!("{hour:02}:{minute:02}:{:02}", seconds % 60))
    };
    // A step ends with its sample; the wave began before the end of its first.
    let first = first.map(|step| step.at_ms.saturating_sub((step.seconds * 1000.0) as u64))?;
    let text = format!("{} to {} UTC", clock(first)?, clock(last?.at_ms)?);
    (facts.taken_at_unix_ms > 0).then(|| Evidence::text("when", text))
}
