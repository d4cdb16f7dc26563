//! The table of `TIME_WAIT` sockets is full, so connections lose their protection against late
//! packets.
//!
//! **When.** `TcpExtTCPTimeWaitOverflow` rises (warning), or TIME-WAIT sockets are above 90 % of
//! `net.ipv4.tcp_max_tw_buckets` (advice). The kernel's log says "time wait bucket table overflow".
//!
//! **Why.** Beyond the limit, a socket is removed immediately instead of after 60 s. A late packet
//! of the old connection may then reach a new connection on the same ports, and a lost last ACK is
//! answered with a reset.
//!
//! **What to do.** Use keep-alive connections, so that fewer connections are closed. Raise
//! `tcp_max_tw_buckets`: a socket takes less than 300 bytes. The default depends on the memory, up
//! to 262,144.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, View};
use crate::words;

const SHARE_MIN: f64 = 0.9;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const SETTING: &str = "net.ipv4.tcp_max_tw_buckets";
    let stat = view.last().and_then(|last| out.want("TCP memory and TIME-WAIT", &last.sockstat));
    let Some(max) = view.setting(SETTING, out) else { return };
    let overflow = view.counter_if_any("TcpExtTCPTimeWaitOverflow");
    let is_rising = overflow.is_some_and(Change::is_rising);
    let share = stat.map_or(0.0, |stat| stat.time_wait as f64 / max.max(1) as f64);
    if !is_rising && share <= SHARE_MIN {
        return;
    }
    out.push(
        out.finding(
            SETTING,
            if is_rising { Severity::Warning } else { Severity::Advice },
            Certainty::Certain,
            if is_rising {
                "Connections end without TIME-WAIT, because its table is full.".to_owned()
            } else {
                format!("The table of TIME_WAIT sockets is {} full.", words::percent(share))
            },
        )
        .evidences(overflow.map(|one| one.evidence("TcpExtTCPTimeWaitOverflow")))
        .evidences(stat.map(|stat| Evidence::count("TIME-WAIT", stat.time_wait, "sockets")))
        .evidence(Evidence::count(SETTING, max, "sockets"))
        .why("A late packet of an old connection can then reach a new one.")
        .remedy(
            "Use keep-alive connections, so that fewer are closed",
            &[],
            "a server that closes idle connections early can cause failed requests",
        )
        .remedy(
            "Enlarge the table",
            &["sysctl -w net.ipv4.tcp_max_tw_buckets=1048576"],
            "less than 300 bytes a socket: 1,048,576 take 300 MB when full",
        )
        .verify("nstat -az TcpExtTCPTimeWaitOverflow no longer rises")
        .source(&["/proc/net/netstat", "/proc/net/sockstat"]),
    );
}
