//! Listening sockets drop SYNs for a reason other than a full accept queue.
//!
//! **When.** `TcpExtListenDrops` rises faster than `TcpExtListenOverflows`, which it includes.
//!
//! **Why.** The client of each dropped SYN retransmits it after a second. Possible reasons: the SYN
//! queue is full, there is no memory for the new socket, there is no route to the client, or a
//! security module denies the connection.
//!
//! **What to do.** If `TcpExtTCPReqQFullDrop` rises too, the SYN queue is full; if
//! `TcpExtPruneCalled` or `TCPAbortOnMemory` rises, memory is short. Otherwise check the routes and
//! rules towards the clients (`ip route get ADDRESS`).

use crate::finding::{Certainty, Severity};
use crate::view::{Change, Out, View};
use crate::words;

/// Drops a second from which it costs something.
const WARNING_PER_S: f64 = 1.0;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(drops) = view.counter("TcpExtListenDrops", out) else { return };
    let Some(overflows) = view.counter("TcpExtListenOverflows", out) else { return };
    if drops.by <= overflows.by {
        return;
    }
    let others = Change {
        in_all: drops.in_all.saturating_sub(overflows.in_all),
        by: drops.by - overflows.by,
        seconds: drops.seconds,
    };
    let severity =
        if others.per_s() >= WARNING_PER_S { Severity::Warning } else { Severity::Advice };
    out.push(
        out.finding(
            "TcpExtListenDrops",
            severity,
            Certainty::Likely,
            format!(
                "{} SYNs a second are dropped though no accept queue is full.",
                words::number(others.per_s())
            ),
        )
        .evidence(others.evidence("TcpExtListenDrops less TcpExtListenOverflows"))
        .evidences(
            ["TcpExtTCPReqQFullDrop", "TcpExtTCPAbortOnMemory", "IpOutNoRoutes"]
                .into_iter()
                .filter_map(|name| Some((name, view.counter_if_any(name)?)))
                .filter(|(_, change)| change.is_rising())
                .map(|(name, change)| change.evidence(name)),
        )
        .why("Each dropped SYN costs its client at least a second.")
        .remedy(
            "Find the reason: the SYN queue, memory, or the route back",
            &["nstat -az TcpExtTCPReqQFullDrop TcpExtTCPAbortOnMemory IpOutNoRoutes"],
            "none",
        )
        .verify("TcpExtListenDrops and TcpExtListenOverflows rise by the same number")
        .source(&["/proc/net/netstat"]),
    );
}
