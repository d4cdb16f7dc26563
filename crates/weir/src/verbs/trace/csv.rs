//! The intervals as comma-separated values, for spreadsheets and scripts.

use std::fmt::Write as _;

use trace::Trace;
use trace::analysis::Flags;

/// A line of names, then one line for each interval with something in it. Times are seconds since
/// the first frame.
pub(super) fn intervals(trace: &Trace) -> String {
    let mut out =
        String::from("start_s,end_s,frames,bytes,segments,payload_bytes,syn_retransmissions");
    for (_, name) in Flags::NAMED {
        _ = write!(out, ",{name}");
    }
    out.push('\n');
    let intervals = trace.intervals();
    let length_s = intervals.length_ns() as f64 / 1e9;
    let duration_s = intervals.duration_ns() as f64 / 1e9;
    for row in intervals.rows() {
        let start_s = row.number as f64 * length_s;
        let end_s = (start_s + length_s).min(duration_s.max(start_s));
        let counts = &row.counts;
        _ = write!(
            out,
            "{start_s},{end_s},{},{},{},{},{}",
            counts.frames,
            counts.bytes,
            counts.segments,
            counts.payload_bytes,
            counts.syn_retransmissions
        );
        for (_, count) in counts.named() {
            _ = write!(out, ",{count}");
        }
        out.push('\n');
    }
    out
}
