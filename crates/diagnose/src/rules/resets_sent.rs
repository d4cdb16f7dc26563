//! This host sends many resets: packets arrive at closed ports, or programs reset connections.
//!
//! **When.** `TcpOutRsts` rises by more than ten a second. Resets caused by programs are counted in
//! `TcpExtTCPAbortOnData` (data arrived after the program had closed, or the program closed with
//! `SO_LINGER` 0), `TCPAbortOnClose` (it closed with unread data), `TCPAbortOnLinger` and
//! `TCPAbortOnMemory`. If the other resets are above ten a second and the majority, they answered
//! packets to closed ports or unknown connections; this is not reported if they are less than ten
//! times `TcpEstabResets`, which counts aborted connections. Otherwise, if programs cause most
//! resets, the finding says so.
//!
//! **Why.** Packets to closed ports come from a scan, from clients of a service that is down, from
//! a balancer's check of a port that has changed, or through a firewall that lost its state. A
//! program that closes a connection with unread data can make its peer lose the end of the
//! response.
//!
//! **What to do.** Find the senders and their destination ports. A scan from outside needs no
//! action. Let programs read all received data before they close.

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
                "{} packets a second arrive at closed ports or unknown connections.",
                words::number(per_s(rest))
            ),
            "The cause is a scan, a service that is down, or a health check of a port that has changed.",
        )
    } else if per_s(by_programs) > PER_S_MIN && by_programs > rest {
        (
            "resets by programs",
            format!(
                "Programs on this host reset {} connections a second.",
                words::number(per_s(by_programs))
            ),
            "They close with unread data, or before all data has arrived; a peer can lose the end of a response.",
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
                "Find the programs and peers involved",
                &["tcpdump -nn -c 100 'tcp[tcpflags] & tcp-rst != 0'"],
                "a capture costs a little processor time while it runs",
            )
            .verify("nstat -az TcpOutRsts rises more slowly")
            .source(&["/proc/net/snmp", "/proc/net/netstat"]),
    );
}
