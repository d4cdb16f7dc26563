//! SYN-ACKs are sent again though the client has answered: the server's accept queue is full.
//!
//! **When.** A capture shows a server's SYN-ACK at least twice, half a second apart or more: nearer ones are
//! one that was captured twice.
//!
//! **Why.** Linux throws away the handshake's last ACK when the accept queue is full, and sends its
//! SYN-ACK again. If the client's ACK, or its data, stands in the capture between the two SYN-ACKs,
//! the server had it and did not take it; if not, the ACK may have been lost on its way.
//!
//! **What to do.** On the server: `ss -lnt` shows the queue (Recv-Q) and its limit (Send-Q). Raise the
//! limit on both sides, the program's backlog and `net.core.somaxconn`, and find out why it does not
//! accept faster.

use crate::captured::{SYN_GAP_MIN_MS, certainty, found, frames, needs_both, sum, which};
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let Some(found) = found(
        capture,
        |flow| {
            flow.sent.syns >= 2
                && flow.sent.syn_gaps_ms.iter().any(|gap| *gap >= SYN_GAP_MIN_MS)
                && flow.from == flow.connection.server
        },
        |flow| flow.sent.syns,
    ) else {
        return;
    };
    let answered = found.iter().filter(|flow| flow.answered.segments > flow.answered.syns).count();
    let most = if answered > 0 { Certainty::Likely } else { Certainty::Possible };
    let again = sum(&found, |side| side.syns - 1);
    out.push(
        out.finding(
            found[0].from,
            Severity::Warning,
            certainty(&found, most),
            format!(
                "SYN-ACKs are sent again {}: the accept queue is full, or ACKs are lost.",
                words::plural(again, "time")
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count(
            "of them with the client's answer in the capture",
            answered as u64,
            "connections",
        ))
        .evidences(frames(&found, "retransmission"))
        .why("The client believes that it is connected and waits for an answer that does not come.")
        .remedy(
            "On the server, compare the queue with its limit, and raise both limits",
            &["ss -lnt", "sysctl -w net.core.somaxconn=4096"],
            "a longer queue holds more clients that wait",
        )
        .verify("nstat TcpExtListenOverflows on the server rises no more")
        .source(&["the capture"]),
    );
}
