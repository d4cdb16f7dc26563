//! SYN-ACKs are retransmitted although the client has answered: the server's accept queue is full.
//!
//! **When.** A capture shows a server's SYN-ACK at least twice, at least half a second apart.
//! Closer ones are one packet that was captured twice.
//!
//! **Why.** When the accept queue is full, Linux drops the last ACK of the handshake and
//! retransmits its SYN-ACK. If the capture shows the client's ACK or data between the two SYN-ACKs,
//! the server received it and dropped it; otherwise the ACK may have been lost on the path.
//!
//! **What to do.** On the server, `ss -lnt` shows the queue length (Recv-Q) and its limit (Send-Q).
//! Raise both limits, the program's backlog and `net.core.somaxconn`, and find out why the program
//! accepts slowly.

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
                "SYN-ACKs are retransmitted {}: the accept queue is full, or ACKs are lost.",
                words::plural(again, "time")
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count(
            "with the client's answer in the capture",
            answered as u64,
            "connections",
        ))
        .evidences(frames(&found, "retransmission"))
        .why("The client considers itself connected and waits for a response that does not arrive.")
        .remedy(
            "On the server, compare the queue with its limit, and raise backlog and somaxconn",
            &["ss -lnt", "sysctl -w net.core.somaxconn=4096"],
            "more clients wait in a longer queue",
        )
        .verify("nstat TcpExtListenOverflows on the server no longer rises")
        .source(&["the capture"]),
    );
}
