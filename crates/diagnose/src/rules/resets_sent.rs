//! This host refuses many connections: somebody asks for ports on which nobody listens.
//!
//! **When.** `TcpOutRsts` rises by more than ten a second and by more than ten times
//! `TcpEstabResets`, which counts connections that were cut off.
//!
//! **Why.** Each is a packet to a closed port, or to a connection that this host no longer knows: a
//! scan, a service that is down, a balancer's check of a port that has moved, or a firewall that
//! lost its state.
//!
//! **What to do.** See who asks for what; nothing if it is a scan from outside.

use crate::finding::{Certainty, Severity};
use crate::view::{Out, View};
use crate::words;

const PER_S_MIN: f64 = 10.0;
const TIMES_MIN: u64 = 10;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(sent) = view.counter("TcpOutRsts", out) else { return };
    let Some(cut) = view.counter("TcpEstabResets", out) else { return };
    if sent.per_s() <= PER_S_MIN || sent.by <= cut.by.saturating_mul(TIMES_MIN) {
        return;
    }
    out.push(
        out.finding(
            "TcpOutRsts",
            Severity::Advice,
            Certainty::Possible,
            format!("{} packets a second come to closed ports or lost connections.", words::number(sent.per_s())),
        )
        .evidence(sent.evidence("TcpOutRsts"))
        .evidence(cut.evidence("TcpEstabResets"))
        .why("A scan, a service that is down, or a check of a port that has moved.")
        .remedy(
            "See who asks for what",
            &["tcpdump -nn -c 100 'tcp[tcpflags] & tcp-rst != 0'"],
            "a capture costs a little processor time while it runs",
        )
        .verify("nstat -az TcpOutRsts rises more slowly")
        .source(&["/proc/net/snmp"]),
    );
}
