//! Connections that overflow an accept queue are reset instead of retransmitted.
//!
//! **When.** `net.ipv4.tcp_abort_on_overflow` is 1; a warning while accept queues overflow, advice
//! otherwise.
//!
//! **Why.** A burst of connections turns into errors: clients see "connection reset by peer" and
//! give up. If the kernel drops the packet instead, the client retransmits it within a second, and
//! the queue may have space by then.
//!
//! **What to do.** Set it to 0, unless a load balancer in front of this host retries another server
//! immediately.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, View};

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const SETTING: &str = "net.ipv4.tcp_abort_on_overflow";
    if view.setting(SETTING, out) != Some(1) {
        return;
    }
    let overflows = view.counter_if_any("TcpExtListenOverflows");
    let severity =
        if overflows.is_some_and(Change::is_rising) { Severity::Warning } else { Severity::Advice };
    out.push(
        out.finding(
            SETTING,
            severity,
            Certainty::Certain,
            "Connections that overflow an accept queue are reset, so bursts become errors.",
        )
        .evidence(Evidence::text(SETTING, "1"))
        .evidences(overflows.map(|one| one.evidence("TcpExtListenOverflows")))
        .why("A client gives up after a reset; if its packet is dropped, it retransmits it.")
        .remedy(
            "Let the kernel drop the packet instead",
            &["sysctl -w net.ipv4.tcp_abort_on_overflow=0"],
            "if a program has stopped accepting for good, its clients wait longer before they notice",
        )
        .verify("sysctl net.ipv4.tcp_abort_on_overflow prints 0")
        .source(&["/proc/sys/net/ipv4/tcp_abort_on_overflow", "/proc/net/netstat"]),
    );
}
