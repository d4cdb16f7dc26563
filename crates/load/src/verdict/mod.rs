//! What ran out, and whose it is, by the figures of a run. Pure.

use crate::engine::Outcome;
use crate::engine::plan::Plan;
use crate::report::run::{RanOut, Run, Whose};

/// Below it a run has not sent what it was asked for.
pub const ACHIEVED_MIN: f64 = 0.99;
/// A thread that used so much of a processor had no time left.
const THREAD_FULL_PERCENT: f64 = 95.0;
/// A machine of which so much was used had no time left.
const MACHINE_FULL_PERCENT: f64 = 97.0;
/// So many late starts are no accident any more.
const LATE_SHARE: f64 = 0.01;
/// In so many of a run's seconds, at least.
const SHARE_OF_SECONDS: f64 = 0.5;

/// What of the load generator's ran out in a run.
pub fn of_run(run: &Run, plan: &Plan, outcome: &Outcome) -> Vec<RanOut> {
    let mut found = Vec::new();
    let mut say = |whose, what: &str, evidence: String| {
        found.push(RanOut { whose, what: what.to_owned(), evidence });
    };
    let failed = |kind: &str| run.totals.errors_by_kind.get(kind).copied().unwrap_or(0);
    let ports = failed("local_ports_exhausted");
    if ports > 0 {
        say(
            Whose::Generator,
            "ports",
            format!(
                "{ports} connections found no free local port (EADDRNOTAVAIL): keep connections, or \
                 give more addresses with --source"
            ),
        );
    }
    let descriptors = failed("local_descriptors_exhausted");
    if descriptors > 0 {
        say(
            Whose::Generator,
            "descriptors",
            format!("{descriptors} connections found no free descriptor: raise ulimit -n"),
        );
    }
    if let Some(evidence) = threads_full(run) {
        say(Whose::Generator, "cpu", evidence);
    } else if let Some(evidence) = machine_full(run).filter(|_| is_held_up(run)) {
        say(Whose::Generator, "cpu", evidence);
    }
    let in_use = outcome.recorder.all_in_use > 0 && plan.shape.is_open();
    if in_use && (run.totals.dropped_starts > 0 || falls_short(run)) {
        let service = run.latency.service.mean_ms;
        say(
            Whose::Generator,
            "connections",
            format!(
                "all {} connections were in use: with {service:.1} ms a request they carry \
                 {:.0}/s; allow more with -c, unless the server is what holds them up",
                plan.connections_max,
                plan.connections_max as f64 * 1e3 / service.max(1e-6)
            ),
        );
    }
    found
}

/// Whether fewer requests began than were intended.
pub fn falls_short(run: &Run) -> bool {
    let rate = &run.rate;
    rate.intended_per_s.is_some_and(|intended| rate.achieved_per_s < intended * ACHIEVED_MIN)
}

/// Whether starts did not come as they should; in a closed loop there is no telling.
fn is_held_up(run: &Run) -> bool {
    let late = run.totals.late_starts as f64 > run.totals.requests as f64 * LATE_SHARE;
    run.rate.intended_per_s.is_none() || late || falls_short(run)
}

/// A thread that is always at work could not have begun more.
pub(crate) fn threads_full(run: &Run) -> Option<String> {
    let whole = run.seconds.len().saturating_sub(1).max(1);
    let full = run.seconds.iter().filter(|s| s.busiest_thread_percent >= THREAD_FULL_PERCENT);
    let full = full.count();
    (full as f64 >= whole as f64 * SHARE_OF_SECONDS && full > 0).then(|| {
        format!(
            "a thread of the load generator used all of its processor in {full} of {whole} seconds: \
             the server may bear more than this"
        )
    })
}

/// A machine without CPU left slows down whoever measures on it.
fn machine_full(run: &Run) -> Option<String> {
    let used = |s: &&crate::report::run::HostSecond| {
        let used = s.cpu_user_percent + s.cpu_system_percent + s.cpu_steal_percent;
        used >= MACHINE_FULL_PERCENT
    };
    let (whole, full) = (run.host_seconds.len(), run.host_seconds.iter().filter(used).count());
    (full > 0 && full as f64 >= whole as f64 * SHARE_OF_SECONDS).then(|| {
        format!(
            "all processors of this machine were in use in {full} of {whole} seconds: what runs \
             beside the load generator, perhaps the server itself, shares them with it"
        )
    })
}
