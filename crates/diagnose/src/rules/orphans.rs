//! Orphaned sockets, which no program holds any more, accumulate.
//!
//! **When.** Orphans (sockets that their program has closed, but that still send data or wait for
//! the peer) are above half of `net.ipv4.tcp_max_orphans`, or `TcpExtTCPAbortOnMemory` rises, which
//! counts orphans that were reset. The limit applies to the whole machine. Under memory pressure
//! the kernel may count an orphan two or four times, so half of the limit is close to it.
//!
//! **Why.** Beyond the limit, sockets are reset, and the peer loses the end of its response. Many
//! orphans mean that many peers have disappeared, or read slowly from connections that are already
//! closed.
//!
//! **What to do.** Find out which connections are closed while data is unsent: clients that
//! disappear, or an attack that opens connections and abandons them. `tcp_orphan_retries` limits
//! how long an orphan is kept. A larger limit costs up to 64 KiB per orphan.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, View};
use crate::words;

const SHARE_MIN: f64 = 0.5;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const SETTING: &str = "net.ipv4.tcp_max_orphans";
    let aborted = view.counter_if_any("TcpExtTCPAbortOnMemory");
    let is_rising = aborted.is_some_and(Change::is_rising);
    let Some(stat) =
        view.last().and_then(|last| out.want("TCP memory and TIME-WAIT", &last.sockstat))
    else {
        return;
    };
    // The limit stands in the machine's first namespace only; elsewhere the counter must do.
    let max = view.setting_if_any(SETTING);
    let share = max.map_or(0.0, |max| stat.orphans as f64 / max.max(1) as f64);
    if !is_rising && (share <= SHARE_MIN || !view.namespace.is_own) {
        return;
    }
    out.push(
        out.finding(
            SETTING,
            if is_rising { Severity::Critical } else { Severity::Warning },
            Certainty::Likely,
            if is_rising {
                "Sockets are cut off for want of memory or because too many are orphaned."
                    .to_owned()
            } else {
                format!("The number of orphaned sockets is at {} of its limit.", words::percent(share))
            },
        )
        .evidence(Evidence::count("orphans", stat.orphans, "sockets"))
        .evidences(max.map(|max| Evidence::count(SETTING, max, "sockets")))
        .evidences(aborted.map(|one| one.evidence("TcpExtTCPAbortOnMemory")))
        .why("Beyond the limit connections are reset, and peers lose the end of their response.")
        .remedy(
            "Find their peers",
            &["ss -tanp state fin-wait-1", "ss -tanp state last-ack"],
            "none",
        )
        .remedy(
            "Drop orphans sooner",
            &["sysctl -w net.ipv4.tcp_orphan_retries=3"],
            "peers on bad links lose the end of their response",
        )
        .verify(
            "`orphan` in /proc/net/sockstat falls; nstat -az TcpExtTCPAbortOnMemory no longer rises",
        )
        .source(&["/proc/net/sockstat", "/proc/net/netstat"]),
    );
}
