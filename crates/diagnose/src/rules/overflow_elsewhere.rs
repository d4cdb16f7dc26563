//! Accept queues overflow, but no listening socket that was found has drops.
//!
//! **When.** `TcpExtListenOverflows` rises, while the drop counters of all listening sockets in the
//! namespace stay the same.
//!
//! **Why.** Connections are lost, and the socket that loses them was not seen: it was closed
//! between the samples, or is opened and closed repeatedly.
//!
//! **What to do.** Look for a program that restarts repeatedly, and run `weir doctor --watch` until
//! the socket appears. Sockets in other network namespaces have their own counters.

use crate::finding::{Certainty, Severity};
use crate::view::{Out, View};
use crate::words;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(overflows) = view.counter("TcpExtListenOverflows", out) else { return };
    let Some(listeners) = view.listeners(out) else { return };
    // One whose drops are not known might be it.
    let is_flat = listeners.iter().all(|one| one.drops.is_some_and(|drops| !drops.is_rising()));
    if !overflows.is_rising() || !is_flat {
        return;
    }
    out.push(
        out.finding(
            "TcpExtListenOverflows",
            Severity::Warning,
            Certainty::Likely,
            format!(
                "{} connections a second overflow an accept queue whose socket was not found.",
                words::number(overflows.per_s())
            ),
        )
        .evidence(overflows.evidence("TcpExtListenOverflows"))
        .why("Its clients wait whole seconds before they retransmit.")
        .remedy(
            "Look for a program that closes its listening socket and opens it again",
            &["ss -ltnp", "weir doctor --watch"],
            "none",
        )
        .verify("nstat -az TcpExtListenOverflows no longer rises")
        .source(&["/proc/net/netstat", "sock_diag (sk_drops)"]),
    );
}
