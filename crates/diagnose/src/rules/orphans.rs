//! Sockets that no program holds any more pile up.
//!
//! **When.** Orphans (closed by their program, still sending or waiting for the peer) are above
//! half of `net.ipv4.tcp_max_orphans`, or `TcpExtTCPAbortOnMemory` rises, which counts those cut
//! off. The limit is the machine's. The kernel may count an orphan double or fourfold against it
//! when it is pressed, so half is near.
//!
//! **Why.** Beyond the limit sockets are reset: the peer loses the end of its response. Many
//! orphans mean many peers that vanished, or that read slowly what was already closed.
//!
//! **What to do.** Look for who closes while data is unsent: clients that vanish, an attack that
//! opens and leaves. `tcp_orphan_retries` decides how long each is kept; a larger limit costs up to
//! 64 KiB each.

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
                format!("{} of the orphaned sockets that may be are there.", words::percent(share))
            },
        )
        .evidence(Evidence::count("orphans", stat.orphans, "sockets"))
        .evidences(max.map(|max| Evidence::count(SETTING, max, "sockets")))
        .evidences(aborted.map(|one| one.evidence("TcpExtTCPAbortOnMemory")))
        .why("Beyond the limit connections are reset, and peers lose the end of their response.")
        .remedy(
            "See to whom they belong",
            &["ss -tanp state fin-wait-1", "ss -tanp state last-ack"],
            "none",
        )
        .remedy(
            "Give them up sooner",
            &["sysctl -w net.ipv4.tcp_orphan_retries=3"],
            "peers behind bad links lose the end of their response",
        )
        .verify(
            "`orphan` in /proc/net/sockstat falls; nstat -az TcpExtTCPAbortOnMemory rises no more",
        )
        .source(&["/proc/net/sockstat", "/proc/net/netstat"]),
    );
}
