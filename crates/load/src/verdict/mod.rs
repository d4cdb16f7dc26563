//! Determines from a run's figures which resource was exhausted, and on which side. Pure.

use crate::engine::Failure;
use crate::engine::Outcome;
use crate::engine::plan::Plan;
use load_report::run::{HostSecond, RanOut, Run, Whose};

/// Below it a run has not sent what it was asked for.
pub const ACHIEVED_MIN: f64 = 0.99;
/// A thread that used so much of a processor had no time left.
const THREAD_FULL_PERCENT: f64 = 95.0;
/// A machine of which so much was used had no time left.
const MACHINE_FULL_PERCENT: f64 = 97.0;
/// So many late starts are no accident any more.
const LATE_SHARE: f64 = 0.01;
/// Of the connections made, so many repeated SYNs are more than packets lost by chance.
const SYN_LOSS_SHARE: f64 = 0.01;
/// Fewer are chance.
const SYNS_MIN: u64 = 10;
/// A connection whose SYN was repeated took a second, the kernel's first timeout (RFC 6298 section 2.1);
/// less, since a wake-up may be early.
const SYN_REPEATED_MS: f64 = 990.0;
/// In so many of a run's seconds, at least.
const SHARE_OF_SECONDS: f64 = 0.5;

/// What of the load generator's ran out in a run.
pub fn of_run(run: &Run, plan: &Plan, outcome: &Outcome) -> Vec<RanOut> {
    let mut found = Vec::new();
    let mut say = |whose, what: &str, evidence: String| {
        found.push(RanOut { whose, what: what.to_owned(), evidence });
    };
    // Before what follows from it: connections that wait for a second SYN are in use for a second.
    if let Some(evidence) = syns_repeated(run) {
        say(Whose::Server, "accept_queue", evidence);
    }
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

/// Whether so many SYNs had to be repeated that it is no accident: the server's queue of new connections
/// is full, or a limit on them, there or on the way, drops SYNs.
fn syns_repeated(run: &Run) -> Option<String> {
    let syns = own_syns_repeated(run);
    let made = run.totals.connections;
    let is_share = syns as f64 > made.max(1) as f64 * SYN_LOSS_SHARE;
    (syns >= SYNS_MIN && is_share).then(|| {
        format!(
            "{syns} SYNs were repeated for {made} connections made (connect p99 {:.0} ms): the server's \
             accept queue is full, or a limit on new connections, on the way or there, drops SYNs",
            run.latency.phases.connect.p99_ms
        )
    })
}

/// Returns the SYNs that were repeated in a run. The kernel counts those of all
/// programs; if every connection of the run was made within a second, none is the run's.
pub(crate) fn own_syns_repeated(run: &Run) -> u64 {
    let all_quick = run.totals.connections > 0
        && run.latency.phases.connect.max_ms < SYN_REPEATED_MS
        && !run.totals.errors_by_kind.contains_key(Failure::ConnectTimeout.as_str());
    if all_quick {
        return 0;
    }
    run.host_seconds.iter().map(|second| second.syn_retransmissions).sum()
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
             the server's capacity may be higher"
        )
    })
}

/// A machine without spare CPU slows down the load generator.
fn machine_full(run: &Run) -> Option<String> {
    let used = |s: &&HostSecond| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_syns_are_told_when_they_are_no_chance() {
        let evidence_within = |connect_ms: f64, syns: u64, connections: u64| {
            let second = HostSecond { syn_retransmissions: syns, ..HostSecond::default() };
            let mut run = Run { host_seconds: vec![second; 4], ..Run::default() };
            run.totals.connections = connections;
            run.latency.phases.connect.max_ms = connect_ms;
            syns_repeated(&run)
        };
        let evidence_of = |syns, connections| evidence_within(1_003.0, syns, connections);
        let evidence = evidence_of(100, 800).expect("half of them");
        assert!(evidence.starts_with("400 SYNs were repeated for 800 connections"), "{evidence}");
        assert_eq!(evidence_of(100, 100_000), None, "fewer than one in a hundred");
        assert_eq!(evidence_of(2, 8), None, "a few");
        assert!(evidence_of(100, 0).is_some(), "none was made");
        assert_eq!(evidence_within(3.0, 100, 800), None, "those of another program");
        assert!(evidence_within(0.0, 100, 0).is_some(), "none was made");
    }
}
