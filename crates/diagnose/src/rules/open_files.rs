//! A program that listens is close to its limit on open files, or the limit is too low for its
//! connections.
//!
//! **When.** A program has more than 80 % of its limit on open files in use (warning, critical from
//! 95 %); or the limit of this balancer is below twice its `connections_max` (advice): each
//! connection through a balancer takes two.
//!
//! **Why.** At the limit, `accept()` fails, and connections wait in the accept queue until it
//! overflows; or connections to servers cannot be opened ("Too many open files").
//!
//! **What to do.** Raise the limit where the program is started: `LimitNOFILE=` in systemd, or the
//! program's own setting (nginx: `worker_rlimit_nofile`).

use crate::facts::{Facts, ProcessLimit};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

const WARNING_SHARE: f64 = 0.8;
const CRITICAL_SHARE: f64 = 0.95;
/// A connection through a balancer takes two.
const FILES_PER_CONNECTION: u64 = 2;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some(limits) = out.want("limits on open files", &facts.host.process_limits) else { return };
    let connections_max = facts.balancer.get().and_then(|one| one.connections_max.get().copied());
    for limit in limits {
        let share = limit
            .open_files
            .get()
            .map_or(0.0, |&open| open as f64 / limit.open_files_max.max(1) as f64);
        let needed = connections_max
            .filter(|_| limit.program.starts_with("weir"))
            .map(|connections| connections.saturating_mul(FILES_PER_CONNECTION));
        let is_low = needed.is_some_and(|needed| limit.open_files_max < needed);
        if share > WARNING_SHARE || is_low {
            push(limit, share, needed, out);
        }
    }
}

fn push(limit: &ProcessLimit, share: f64, needed: Option<u64>, out: &mut Out) {
    let severity = if share > CRITICAL_SHARE {
        Severity::Critical
    } else if share > WARNING_SHARE {
        Severity::Warning
    } else {
        Severity::Advice
    };
    let name = format!("{} ({})", limit.program, limit.pid);
    let what = if share > WARNING_SHARE {
        format!("{name} has {} of its limit on open files in use.", words::percent(share))
    } else {
        format!(
            "{name} may open only {} files, too few for its connections.",
            words::thousands(limit.open_files_max)
        )
    };
    out.push(
        out.finding(name, severity, Certainty::Certain, what)
            .evidence(Evidence::count("limit", limit.open_files_max, "files"))
            .evidences(limit.open_files.get().map(|&open| Evidence::count("open", open, "files")))
            .evidences(
                needed.map(|needed| Evidence::count("needed for connections_max", needed, "files")),
            )
            .why("At the limit it can neither accept nor open connections (EMFILE: too many open files).")
            .remedy(
                "Raise the limit where the program is started",
                &[
                    &format!("prlimit --pid {} --nofile=1048576:1048576", limit.pid),
                    "systemctl edit SERVICE   # [Service] LimitNOFILE=1048576",
                ],
                "none known for programs of this century; select() can't use files above 1,023",
            )
            .verify(format!("grep 'open files' /proc/{}/limits", limit.pid))
            .source(&["/proc/PID/limits", "/proc/PID/fd"]),
    );
}
