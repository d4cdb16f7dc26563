//! The intervals as comma-separated values, for spreadsheets and scripts.

use std::fmt::Write as _;

use trace::Trace;
use trace::analysis::Flags;
use trace::summary::{Interval, Intervals};

/// A line of names, then one line for each interval with something in it. Times are seconds since
/// the first frame.
pub fn intervals(trace: &Trace) -> String {
    let intervals = trace.intervals();
    let rows = intervals.rows().iter().map(|interval| row(intervals, interval));
    heading() + &rows.collect::<String>()
}

/// The line of names.
pub fn heading() -> String {
    let mut out = String::from(
        "start_s,end_s,frames,bytes,segments,payload_bytes,syn_retransmissions,\
         syn_ack_retransmissions",
    );
    for (_, name) in Flags::NAMED {
        _ = write!(out, ",{name}");
    }
    out.push('\n');
    out
}

/// The line of one interval.
pub fn row(intervals: &Intervals, interval: &Interval) -> String {
    let length_s = intervals.length_ns() as f64 / 1e9;
    let duration_s = intervals.duration_ns() as f64 / 1e9;
    let start_s = interval.number as f64 * length_s;
    let end_s = (start_s + length_s).min(duration_s.max(start_s));
    let counts = &interval.counts;
    let mut out = format!(
        "{start_s},{end_s},{},{},{},{},{},{}",
        counts.frames,
        counts.bytes,
        counts.segments,
        counts.payload_bytes,
        counts.syn_retransmissions,
        counts.syn_ack_retransmissions
    );
    for (_, count) in counts.named() {
        _ = write!(out, ",{count}");
    }
    out.push('\n');
    out
}
