//! Many sockets are in `TIME_WAIT`, which is harmless.
//!
//! **When.** More than 10,000 sockets are in `TIME_WAIT`, no destination runs out of local ports
//! (`ports_exhausted`) and their table does not overflow (`time_wait_overflow`).
//!
//! **Why.** The side that closes first keeps the connection's addresses for 60 s, so that late
//! packets cannot reach another connection. A socket in `TIME_WAIT` belongs to no program and takes
//! less than 300 bytes: one company had 350,000 of them on a server, which used less than 100 MB.
//! On a server they block nothing, because each has a different client port.
//!
//! **What to do.** Nothing. Do not use `tcp_tw_recycle`, which broke clients behind NAT and was
//! removed in Linux 4.12. Do not lower `tcp_max_tw_buckets`, which ends `TIME_WAIT` too early.
//! `tcp_fin_timeout` applies to another state. Keep-alive connections reduce the number and save
//! handshakes too.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

/// Beginners worry from about here.
const SOCKETS_MIN: u64 = 10_000;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(stat) =
        view.last().and_then(|last| out.want("TCP memory and TIME-WAIT", &last.sockstat))
    else {
        return;
    };
    if stat.time_wait < SOCKETS_MIN {
        return;
    }
    out.push(
        out.finding(
            "TIME-WAIT",
            Severity::Note,
            Certainty::Certain,
            format!(
                "{} are in `TIME_WAIT`, which is harmless.",
                words::plural(stat.time_wait, "socket")
            ),
        )
        .evidence(Evidence::count("TIME-WAIT", stat.time_wait, "sockets"))
        .evidences(
            view.setting_if_any("net.ipv4.tcp_max_tw_buckets")
                .map(|max| Evidence::count("net.ipv4.tcp_max_tw_buckets", max, "sockets")),
        )
        .why("They end after 60 s and use no program and little memory.")
        .verify("ss -s counts them as timewait")
        .source(&["/proc/net/sockstat"]),
    );
}
