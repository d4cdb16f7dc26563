//! A receiver advertises a zero window: its program does not read.
//!
//! **When.** A capture shows a zero window, for at least 100 ms in total on a connection.
//!
//! **Why.** The window is the free space in the receiver's buffer. It closes when the program does
//! not read the data that has arrived: it is busy, blocked, or reads slower than the sender sends.
//! The network and the sender cannot change this.
//!
//! **What to do.** Examine the receiving program, not the network: find what it waits for while its
//! window is closed. A larger buffer helps only if the program pauses briefly.

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
                "{} does not read received data: it advertises a zero window for {} s.",
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
        .why("The sender has to wait until the receiving program reads.")
        .remedy(
            "Find out what the receiving program waits for; the network is not at fault",
            &["ss -tinm"],
            "none",
        )
        .verify("a new capture shows no tcp.analysis.zero_window")
        .source(&["the capture"]),
    );
}
