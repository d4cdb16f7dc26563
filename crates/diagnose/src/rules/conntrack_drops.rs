//! Connection tracking drops packets, or evicts connections from its full table.
//!
//! **When.** A counter of `/proc/net/stat/nf_conntrack` rises between the samples. If `drop` rises, packets
//! of new connections were dropped. The finding is *certain* and critical if a sample shows the table more
//! than 90 % full, or if entries are evicted at the same time; the kernel then logs `nf_conntrack: table
//! full`. Otherwise it is a *possible* warning. If only `early_drop` rises, it is a warning: the table is
//! full, but the kernel evicted an entry that had seen no reply yet, so the new connection was accepted. If
//! only `insert_failed` rises, it is advice: two packets of one flow were processed at the same time, as
//! happens to DNS queries for A and AAAA from the same socket, and one was dropped.
//!
//! **Why.** After a `drop`, the client retransmits a second later. After an `early_drop`, the evicted
//! connection is unknown: firewall rules and NAT treat its next packet as a new connection.
//!
//! **What to do.** As for `conntrack_full`: exclude traffic that needs no tracking, enlarge the table, and
//! find out what fills it (many short UDP flows, a port scan).

use super::conntrack_full::{CRITICAL_SHARE, figures, with_remedies};
use crate::facts::Conntrack;
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
    let change =
        |name: &str| Change::between(*before.get(name)?, *stats.get(name)?, view.seconds()).ok();
    let (dropped, early, failed) = (change("drop"), change("early_drop"), change("insert_failed"));
    let rising: Vec<(&str, Change)> =
        [("drop", dropped), ("early_drop", early), ("insert_failed", failed)]
            .into_iter()
            .filter_map(|(name, one)| Some((name, one.filter(|one| one.is_rising())?)))
            .collect();
    let Some((severity, certainty, what, why)) = says(dropped, early, failed, is_full(view)) else {
        return;
    };
    let finding = out
        .finding("nf_conntrack", severity, certainty, what)
        .evidences(rising.iter().map(|(name, one)| one.evidence(name)))
        .evidences(figures(after))
        .evidences(log_line(view).map(|line| Evidence::text("kernel log", line)))
        .why(why);
    out.push(with_remedies(finding));
}

type Said = (Severity, Certainty, String, &'static str);

/// Combines the three counters into one statement.
fn says(
    dropped: Option<Change>,
    early: Option<Change>,
    failed: Option<Change>,
    is_full: bool,
) -> Option<Said> {
    const LOST: &str = "After a dropped packet, a client waits a second before it retransmits, a DNS resolver about 5 s.";
    let rising = |one: Option<Change>| one.filter(|one| one.is_rising());
    Some(match (rising(dropped), rising(early), rising(failed)) {
        (Some(dropped), early, _) if is_full || early.is_some() => (
            Severity::Critical,
            Certainty::Certain,
            format!(
                "Connection tracking drops {} packets of new connections a second: its table is full.",
                words::number(dropped.per_s())
            ),
            LOST,
        ),
        (Some(dropped), ..) => (
            Severity::Warning,
            Certainty::Possible,
            format!(
                "Connection tracking drops {} packets a second, although its table is not full now.",
                words::number(dropped.per_s())
            ),
            "Either packets of one flow were processed at the same time, or the table was full for a moment between the samples.",
        ),
        (None, Some(early), _) => (
            Severity::Warning,
            Certainty::Certain,
            format!(
                "The connection tracking table is full: {} entries a second are evicted for new ones.",
                words::number(early.per_s())
            ),
            "New connections are accepted. Firewall rules and NAT no longer know the evicted ones, and treat their next packet as a new connection.",
        ),
        (None, None, Some(failed)) => (
            Severity::Advice,
            Certainty::Possible,
            format!(
                "Connection tracking loses {} packets a second: two packets of a flow were processed at the same time.",
                words::number(failed.per_s())
            ),
            LOST,
        ),
        (None, None, None) => return None,
    })
}

/// Returns whether any sample shows the table nearly full.
fn is_full(view: View<'_>) -> bool {
    let share =
        |table: &Conntrack| Some(*table.count.get()? as f64 / (*table.max.get()?).max(1) as f64);
    let tables = view.namespace.samples.iter().filter_map(|one| one.conntrack.get()?.as_ref());
    tables.filter_map(share).any(|share| share > CRITICAL_SHARE)
}

fn log_line(view: View<'_>) -> Option<&str> {
    let lines = view.facts.host.kernel_log.get()?;
    lines.iter().rev().map(|line| line.text.as_str()).find(|text| text.contains("table full"))
}
