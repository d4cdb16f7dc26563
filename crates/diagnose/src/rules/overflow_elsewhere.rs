//! Accept queues overflow, but none of the listening sockets seen here drops anything.
//!
//! **When.** `TcpExtListenOverflows` rises while the drops of every listening socket of the
//! namespace stay the same.
//!
//! **Why.** Connections are being lost, and the socket that loses them was not seen: it was closed
//! between the samples, or opened and closed again and again.
//!
//! **What to do.** Look for a program that restarts, and run `weir doctor --watch` until it is
//! caught. Sockets of other network namespaces have counters of their own there.

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
                "{} connections a second overflow an accept queue that could not be found.",
                words::number(overflows.per_s())
            ),
        )
        .evidence(overflows.evidence("TcpExtListenOverflows"))
        .why("Its clients wait whole seconds before they try again.")
        .remedy(
            "Look for a program that closes its listening socket and opens it again",
            &["ss -ltnp", "weir doctor --watch"],
            "none",
        )
        .verify("nstat -az TcpExtListenOverflows rises no more")
        .source(&["/proc/net/netstat", "sock_diag (sk_drops)"]),
    );
}
