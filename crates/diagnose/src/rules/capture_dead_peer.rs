//! Data is sent again and again, and nothing comes back: the peer, or the path to it, is dead.
//!
//! **When.** A capture shows a segment that is sent again at least three times and is not acknowledged before
//! the capture ends, and nothing of the other end from its first repetition on, on that connection. It is
//! possible only if the other host was heard on other connections since, or if the first data after the
//! handshake is concerned. Full-size segments alone that do not arrive are `capture_mtu`.
//!
//! **Why.** A host that has crashed, a cable that is out, a firewall or a connection tracking that has
//! forgotten the connection and drops its packets: none of them sends a reset. The sender goes on for a
//! quarter of an hour on Linux (`net.ipv4.tcp_retries2`), and whoever waits for the answer waits as long,
//! unless a time limit of its own ends it.
//!
//! **What to do.** See whether the host answers at all, from here and from elsewhere. Capture at the peer: if
//! the data arrives there, its answers are lost. Where it happens after a silence, a middlebox has forgotten
//! the connection: keep-alives shorter than its time limit help. Bound the waiting by `TCP_USER_TIMEOUT`.

use crate::captured::{by_hosts, found, frames, host, needs_both, sum, which};
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

use super::capture_mtu::is_black_hole;

/// The timer has run out three times: 1.4 s after the segment at least, on Linux.
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
                "Data is sent again on {} and nothing comes back: the peer, or the path to it, is dead.",
                words::plural(found.len() as u64, "connection")
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count("sent again in a row, at most", found[0].sent.repeats_max, "times"))
        .evidence(Evidence::count("retransmissions", sum(&found, |side| side.of("retransmission")), "segments"))
        .evidence(Evidence::count("peer heard on others since", heard, "connections"))
        .evidence(Evidence::count("only the handshake acknowledged", unanswered as u64, "connections"))
        .evidences(frames(&found, "retransmission"))
        .why("The sender repeats for up to a quarter of an hour, and whoever waits for an answer waits as long.")
        .remedy(
            "See whether the peer answers, from here and from elsewhere, and capture there at the same time",
            &["ping PEER", "tcpdump -i any host PEER"],
            "none",
        )
        .remedy(
            "Bound how long a dead connection is waited for",
            &["sysctl -w net.ipv4.tcp_retries2=8"],
            "a path that fails for longer than that loses its connections",
        )
        .verify("a new capture shows acknowledgements of what is sent")
        .source(&["the capture"]),
    );
}
