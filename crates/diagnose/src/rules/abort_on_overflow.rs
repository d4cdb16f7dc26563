//! Connections that overflow an accept queue are reset instead of being tried again.
//!
//! **When.** `net.ipv4.tcp_abort_on_overflow` is 1; a warning while accept queues overflow, advice
//! otherwise.
//!
//! **Why.** A burst then becomes errors: clients see "connection reset" and give up, where a
//! dropped packet would have been sent again within a second and found room.
//!
//! **What to do.** Set it to 0, unless a balancer before this host is known to try elsewhere at
//! once.

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
            "Connections beyond an accept queue are reset, so bursts become errors.",
        )
        .evidence(Evidence::text(SETTING, "1"))
        .evidences(overflows.map(|one| one.evidence("TcpExtListenOverflows")))
        .why("A client that is reset gives up; one whose packet was dropped sends it again.")
        .remedy(
            "Let the kernel drop instead",
            &["sysctl -w net.ipv4.tcp_abort_on_overflow=0"],
            "clients of a program that never accepts again wait longer before they notice",
        )
        .verify("sysctl net.ipv4.tcp_abort_on_overflow prints 0")
        .source(&["/proc/sys/net/ipv4/tcp_abort_on_overflow", "/proc/net/netstat"]),
    );
}
