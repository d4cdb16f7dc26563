//! A receiver's window is shut: its program does not read.
//!
//! **When.** A capture shows a window of zero, for at least 100 ms in all on a connection.
//!
//! **Why.** The window is the room in the receiver's buffer. It shuts when the program behind does not
//! take what has arrived: it is busy, blocked, or reads slower than the sender sends. Neither the network
//! nor the sender can do anything about it.
//!
//! **What to do.** Look at the receiving program, not at the network: what it waits for while its
//! window is shut. A larger buffer helps only where it pauses for moments.

use crate::captured::{found, frames, needs_both, sum, which};
use crate::facts::Capture;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Shorter is an ordinary moment.
const SHUT_MIN_MS: u64 = 100;

pub(super) fn check(capture: &Capture, out: &mut Out) {
    needs_both(capture, out);
    let Some(found) = found(
        capture,
        |flow| flow.sent.of("zero_window") > 0 && flow.sent.window_shut_ms >= SHUT_MIN_MS,
        |flow| flow.sent.window_shut_ms,
    ) else {
        return;
    };
    let worst = found[0];
    out.push(
        out.finding(
            worst.from,
            Severity::Warning,
            Certainty::Certain,
            format!(
                "{} does not read what arrives: its window is shut for {} s.",
                worst.from,
                words::number(worst.sent.window_shut_ms as f64 / 1e3)
            ),
        )
        .evidences(which(&found))
        .evidence(Evidence::count(
            "zero_window",
            sum(&found, |side| side.of("zero_window")),
            "segments",
        ))
        .evidences(frames(&found, "zero_window"))
        .why("The sender may send nothing until the receiving program reads.")
        .remedy(
            "See what the receiving program does meanwhile; the network is not at fault",
            &["ss -tinm"],
            "none",
        )
        .verify("a new capture shows no tcp.analysis.zero_window")
        .source(&["the capture"]),
    );
}
