//! This host sends many resets: packets come to closed ports, or programs cut connections off.
//!
//! **When.** `TcpOutRsts` rises by more than ten a second. Those that programs cause are counted by
//! `TcpExtTCPAbortOnData` (data came after the program had closed, or it closed with `SO_LINGER` 0),
//! `TCPAbortOnClose` (it closed with data unread), `TCPAbortOnLinger` and `TCPAbortOnMemory`. If the rest is
//! above ten a second, and most, it went to closed ports or unknown connections; that is not said where it is less than ten
//! times `TcpEstabResets`, which counts connections that were cut off. Otherwise, if programs cause most,
//! the finding says so.
//!
//! **Why.** A packet to a closed port is a scan, a service that is down, a balancer's check of a port that
//! has moved, or a firewall that lost its state. A program that closes with data unread takes the end of
//! its own response away from its peer.
//!
//! **What to do.** See who asks for what; nothing if it is a scan from outside. Let programs read what they
//! were sent before they close.

use super::resets_received::ABORTS;
use crate::finding::{Certainty, Severity};
use crate::view::{Change, Out, View};
use crate::words;

const PER_S_MIN: f64 = 10.0;
const TIMES_MIN: u64 = 10;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(sent) = view.counter("TcpOutRsts", out) else { return };
    let Some(cut) = view.counter("TcpEstabResets", out) else { return };
    // A connection that timed out ends without a reset.
    let aborts: Vec<(&str, Change)> = ABORTS
        .into_iter()
        .filter(|name| *name != "TcpExtTCPAbortOnTimeout")
        .filter_map(|name| Some((name, view.counter_if_any(name)?)))
        .filter(|(_, one)| one.is_rising())
        .collect();
    let by_programs = words::sum(aborts.iter().map(|(_, one)| one.by)).min(sent.by);
    let rest = sent.by - by_programs;
    let per_s = |count: u64| count as f64 / sent.seconds;
    let is_closed =
        per_s(rest) > PER_S_MIN && rest > cut.by.saturating_mul(TIMES_MIN) && rest > by_programs;
    let (subject, what, why) = if is_closed {
        (
            "TcpOutRsts",
            format!(
                "{} packets a second come to closed ports or lost connections.",
                words::number(per_s(rest))
            ),
            "A scan, a service that is down, or a check of a port that has moved.",
        )
    } else if per_s(by_programs) > PER_S_MIN && by_programs > rest {
        (
            "resets by programs",
            format!(
                "Programs here cut off {} connections a second by a reset.",
                words::number(per_s(by_programs))
            ),
            "They close with data unread, or before all data came; a peer may lose the end of a response.",
        )
    } else {
        return;
    };
    out.push(
        out.finding(subject, Severity::Advice, Certainty::Possible, what)
            .evidence(sent.evidence("TcpOutRsts"))
            .evidences(aborts.iter().map(|(name, one)| one.evidence(name)))
            .evidence(cut.evidence("TcpEstabResets"))
            .why(why)
            .remedy(
                "See who sends them, and to whom",
                &["tcpdump -nn -c 100 'tcp[tcpflags] & tcp-rst != 0'"],
                "a capture costs a little processor time while it runs",
            )
            .verify("nstat -az TcpOutRsts rises more slowly")
            .source(&["/proc/net/snmp", "/proc/net/netstat"]),
    );
}
