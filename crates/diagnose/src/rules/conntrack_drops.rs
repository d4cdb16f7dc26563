//! Connection tracking drops packets of new connections.
//!
//! **When.** `drop` or `early_drop` of `/proc/net/stat/nf_conntrack` rise between the samples; the
//! kernel's log then says `nf_conntrack: table full`. `insert_failed` alone is said as advice: two
//! packets of one flow raced, as DNS queries for A and AAAA from one socket do, and one was lost.
//!
//! **Why.** `drop`: the table is full, the packet is gone, a client tries again after a second.
//! `early_drop`: an entry that was not answered yet made room for another.
//!
//! **What to do.** As for `conntrack_full`: do not track what need not be, enlarge the table, look
//! for what fills it (many short UDP flows, a scan).

use super::conntrack_full::{figures, with_remedies};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, View};
use crate::words;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const WHAT: &str = "drops of connection tracking";
    let (Some(first), Some(last)) = (view.namespace.samples.first(), view.last()) else { return };
    let (before, after) = match (first.conntrack.as_result(), last.conntrack.as_result()) {
        (Ok(Some(before)), Ok(Some(after))) => (before, after),
        (Err(reason), _) | (_, Err(reason)) => return out.could_not(WHAT, reason),
        _ => return,
    };
    let (before, stats) = match (before.stats.as_result(), after.stats.as_result()) {
        (Ok(before), Ok(stats)) => (before, stats),
        (Err(reason), _) | (_, Err(reason)) => return out.could_not(WHAT, reason),
    };
    let change = |name: &str| {
        Change::between(*before.get(name)?, *stats.get(name)?, view.seconds()).ok()
    };
    let (dropped, early, failed) = (change("drop"), change("early_drop"), change("insert_failed"));
    let rising: Vec<(&str, Change)> =
        [("drop", dropped), ("early_drop", early), ("insert_failed", failed)]
            .into_iter()
            .filter_map(|(name, one)| Some((name, one.filter(|one| one.is_rising())?)))
            .collect();
    let of_new = rising.iter().filter(|(name, _)| *name != "insert_failed");
    let lost = words::sum(of_new.map(|(_, one)| one.by));
    let per_s = lost as f64 / view.seconds().max(f64::MIN_POSITIVE);
    let (severity, certainty, what) = if lost > 0 {
        (
            Severity::Critical,
            Certainty::Certain,
            format!("Connection tracking drops {} new connections a second.", words::number(per_s)),
        )
    } else if let Some((_, failed)) = rising.first() {
        (
            Severity::Advice,
            Certainty::Possible,
            format!(
                "Connection tracking loses {} packets a second that raced each other.",
                words::number(failed.per_s())
            ),
        )
    } else {
        return;
    };
    let finding = out
        .finding("nf_conntrack", severity, certainty, what)
        .evidences(rising.iter().map(|(name, one)| one.evidence(name)))
        .evidences(figures(after))
        .evidences(log_line(view).map(|line| Evidence::text("kernel log", line)))
        .why("A dropped packet is a client that waits a second, or a DNS answer that comes after 5 s.");
    out.push(with_remedies(finding));
}

fn log_line(view: View<'_>) -> Option<&str> {
    let lines = view.facts.host.kernel_log.get()?;
    lines.iter().rev().map(|line| line.text.as_str()).find(|text| text.contains("table full"))
}
