//! A peer no longer responds: data is retransmitted and never acknowledged.
//!
//! **When.** A capture shows a segment that is retransmitted at least three times and not acknowledged before
//! the capture ends. From the first retransmission on, nothing arrives from the peer on that connection. The
//! finding is only *possible* if the same host sent packets on other connections in the meantime, or if the
//! peer has acknowledged nothing but the handshake. If only full-size segments get lost, `capture_mtu`
//! reports it instead.
//!
//! **Why.** A crashed host, an unplugged cable, or a firewall that has lost its connection state sends no
//! reset. On Linux, the sender retransmits for about 15 minutes (`net.ipv4.tcp_retries2`). Programs that wait
//! for a response wait as long, unless they have a timeout.
//!
//! **What to do.** Check whether the host responds at all, from here and from another place. Capture at the
//! peer: if the data arrives there, its acknowledgements are lost on the way back. If the connection was idle
//! before, a firewall or NAT gateway has probably expired it: send keep-alives more often than its idle
//! timeout. Use `TCP_USER_TIMEOUT` to limit how long a program waits.

use crate::captured::{by_hosts, found, frames, host, needs_both, sum, which};
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

use super::capture_mtu::is_black_hole;

/// Three retransmission timeouts: on Linux at least 1.4 s after the segment was first sent.
const REPEATS_MIN: u64 = 3;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let hosts = by_hosts(capture);
    let Some(found) = found(
        capture,
        |flow| {
            flow.is_stuck()
                && flow.sent.repeats_max >= REPEATS_MIN
                && flow.is_unheard()
                && !is_black_hole(flow, &hosts)
        },
        |flow| flow.sent.repeats_max,
    ) else {
        return;
    };
    let heard = found.iter().filter(|flow| {
        let between = hosts.get(&(host(flow.from), host(flow.to)));
        between.is_some_and(|between| between.heard_ms > flow.sent.stuck_since_ms)
    });
    let heard = heard.count() as u64;
    let unanswered = found.iter().filter(|flow| flow.sent.advance_max_bytes == 0).count();
    let is_sure = heard == 0 && unanswered < found.len();
    out.push(
        out.finding(
            found[0].name(),
            Severity::Critical,
            if is_sure { Certainty::Likely } else { Certainty::Possible },
            format!(
                "The peer of {} no longer responds: data is retransmitted and never acknowledged.",
                words::plural(found.len() as u64, "connection")
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("retransmissions in a row, at most", found[0].sent.repeats_max, "times"))
        .evidence(Evidence::count("retransmissions", sum(&found, |side| side.of("retransmission")), "segments"))
        .evidence(Evidence::count("peer active on other connections", heard, "connections"))
        .evidence(Evidence::count("only the handshake acknowledged", unanswered as u64, "connections"))
        .evidences(frames(&found, "retransmission"))
        .why("The sender retransmits for up to 15 minutes, and programs without a timeout wait as long.")
        .remedy(
            "Check whether the peer responds, from here and from another place, and capture there at the same time",
            &["ping PEER", "tcpdump -i any host PEER"],
            "none",
        )
        .remedy(
            "Limit how long the kernel retransmits on a dead connection",
            &["sysctl -w net.ipv4.tcp_retries2=8"],
            "connections do not survive an outage of the path that lasts longer",
        )
        .verify("a new capture shows that the peer acknowledges data")
        .source(&["the capture"]),
    );
}
