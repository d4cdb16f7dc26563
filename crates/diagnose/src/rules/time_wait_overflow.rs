//! The table of TIME-WAIT sockets is full, so connections lose their protection against late
//! packets.
//!
//! **When.** `TcpExtTCPTimeWaitOverflow` rises (warning), or TIME-WAIT sockets are above 90 % of
//! `net.ipv4.tcp_max_tw_buckets` (advice). The kernel's log says "time wait bucket table overflow".
//!
//! **Why.** Beyond the limit a socket is gone at once instead of after 60 s. A late packet of the
//! old connection may then meet a new one of the same ports, and a lost last ACK becomes a reset.
//!
//! **What to do.** Keep connections alive, so that fewer end. Raise `tcp_max_tw_buckets`: a socket
//! takes less than 300 bytes. The default grows with memory, up to 262,144.

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
                format!("The table of TIME-WAIT sockets is {} full.", words::percent(share))
            },
        )
        .evidences(overflow.map(|one| one.evidence("TcpExtTCPTimeWaitOverflow")))
        .evidences(stat.map(|stat| Evidence::count("TIME-WAIT", stat.time_wait, "sockets")))
        .evidence(Evidence::count(SETTING, max, "sockets"))
        .why("A late packet of an old connection may then meet a new one.")
        .remedy(
            "Keep connections alive, so that fewer end",
            &[],
            "a server that closes kept connections early has to be known for it",
        )
        .remedy(
            "Enlarge the table",
            &["sysctl -w net.ipv4.tcp_max_tw_buckets=1048576"],
            "less than 300 bytes a socket: 1,048,576 take 300 MB when full",
        )
        .verify("nstat -az TcpExtTCPTimeWaitOverflow rises no more")
        .source(&["/proc/net/netstat", "/proc/net/sockstat"]),
    );
}
