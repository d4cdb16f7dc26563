//! The report's tables: over time, by connection, and frame by frame.

use std::cmp::Reverse;

use diagnose::words::{bytes, thousands};
use trace::Trace;
use trace::analysis::Flags;
use trace::summary::{Counts, Direction, Ending, Interval, Story};

use crate::events::{Events, tcp_flags};
use crate::figures::Figures;

/// Rows of intervals that are shown; of more, those with the most trouble.
const INTERVALS_SHOWN_MAX: usize = 60;

/// Columns of the table by intervals.
pub const COLUMNS: usize = 13;

const HEADINGS: [&str; COLUMNS] = [
    "seconds",
    "packets",
    "bytes",
    "sent again",
    "fast",
    "spurious",
    "out of order",
    "lost",
    "dup ACK",
    "ACK of unseen",
    "zero window",
    "SYN again",
    "SYN+ACK again",
];

/// The intervals, or if there are many those with the most trouble, and then a note about it.
pub(crate) fn over_time(trace: &Trace) -> (Figures<COLUMNS>, Option<String>) {
    let rows = trace.intervals().rows();
    let mut shown: Vec<usize> = (0..rows.len()).collect();
    shown.sort_by_key(|at| Reverse(trouble(&rows[*at].counts)));
    shown.truncate(INTERVALS_SHOWN_MAX);
    shown.sort_unstable();
    let table = intervals(trace, shown.iter().map(|at| &rows[*at]));
    let note = (rows.len() > shown.len()).then(|| {
        let (all, shown) = (thousands(rows.len() as u64), shown.len());
        format!("Of {all} intervals the {shown} with the most trouble; --csv and --json have all of them.")
    });
    (table, note)
}

/// These intervals, and the sum of all that there are.
pub fn intervals<'a>(trace: &Trace, shown: impl Iterator<Item = &'a Interval>) -> Figures<COLUMNS> {
    let mut table = Figures::headed(HEADINGS);
    for row in shown {
        table.row(cells(stretch(trace, row), &row.counts));
    }
    table.row(cells("in all".to_owned(), &trace.totals()));
    table
}

/// `2 <> 3`, in seconds since the first frame; the last one ends with the capture, as in tshark.
fn stretch(trace: &Trace, row: &Interval) -> String {
    let intervals = trace.intervals();
    let length_s = intervals.length_ns() as f64 / 1e9;
    let is_last = row.number >= intervals.duration_ns() / intervals.length_ns();
    let end = (row.number + 1) as f64 * length_s;
    let end = if is_last { "Dur".to_owned() } else { number(end) };
    format!("{} <> {end}", number(row.number as f64 * length_s))
}

fn trouble(counts: &Counts) -> u64 {
    let flags = [
        Flags::RETRANSMISSION,
        Flags::OUT_OF_ORDER,
        Flags::LOST_SEGMENT,
        Flags::ACK_LOST_SEGMENT,
        Flags::DUPLICATE_ACK,
        Flags::ZERO_WINDOW,
    ];
    flags.into_iter().map(|flag| counts.of(flag)).sum()
}

fn cells(when: String, counts: &Counts) -> [String; COLUMNS] {
    let of = |flag| thousands(counts.of(flag));
    [
        when,
        thousands(counts.frames),
        thousands(counts.bytes),
        of(Flags::RETRANSMISSION),
        of(Flags::FAST_RETRANSMISSION),
        of(Flags::SPURIOUS_RETRANSMISSION),
        of(Flags::OUT_OF_ORDER),
        of(Flags::LOST_SEGMENT),
        of(Flags::DUPLICATE_ACK),
        of(Flags::ACK_LOST_SEGMENT),
        of(Flags::ZERO_WINDOW),
        thousands(counts.syn_retransmissions),
        thousands(counts.syn_ack_retransmissions),
    ]
}

/// Writes seconds without needless zeros.
pub fn number(seconds: f64) -> String {
    page::trimmed(seconds, 3)
}

/// The directions of these connections, two rows for each.
pub fn by_connection<'a>(stories: impl Iterator<Item = (u32, &'a Story)>) -> Figures<13> {
    let mut table = Figures::headed([
        "stream",
        "from → to",
        "segments",
        "unique data",
        "sent again",
        "fast",
        "spurious",
        "out of order",
        "dup ACK",
        "zero window",
        "RTT",
        "SACK",
        "ended",
    ]);
    for (number, story) in stories {
        let client = story.client.unwrap_or(0);
        for (row, end) in [client, 1 - client].into_iter().enumerate() {
            let direction = &story.directions[end];
            let of = |flag| thousands(direction.counts.of(flag));
            let [from, to] = [story.ends.0[end], story.ends.0[1 - end]];
            let is_first = row == 0;
            table.row([
                if is_first { number.to_string() } else { String::new() },
                format!("{from} → {to}"),
                thousands(direction.counts.segments),
                bytes(direction.unique_bytes),
                of(Flags::RETRANSMISSION),
                of(Flags::FAST_RETRANSMISSION),
                of(Flags::SPURIOUS_RETRANSMISSION),
                of(Flags::OUT_OF_ORDER),
                of(Flags::DUPLICATE_ACK),
                of(Flags::ZERO_WINDOW),
                direction.rtt.mean_ns().map(milliseconds).unwrap_or_default(),
                sack(direction).to_owned(),
                if is_first { ending(story) } else { String::new() },
            ]);
        }
    }
    table
}

pub(crate) fn milliseconds(ns: i64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}

fn sack(direction: &Direction) -> &'static str {
    match (direction.handshake.was_seen, direction.handshake.sack_permitted) {
        (true, true) => "yes",
        (true, false) => "no",
        (false, _) => "?",
    }
}

/// How a connection ended.
pub(crate) fn ending(story: &Story) -> String {
    match story.ending() {
        Ending::Open => "open".to_owned(),
        Ending::HalfClosed(by) => format!("half, by {}", story.ends.0[by]),
        Ending::Closed => "closed".to_owned(),
        Ending::Reset(by) => format!("reset by {}", story.ends.0[by]),
    }
}

/// Frame by frame, the first `shown_max` of them.
pub(crate) fn event_table(story: &Story, events: &Events, shown_max: usize) -> Figures<9> {
    let mut table = Figures::headed([
        "frame",
        "seconds",
        "from",
        "flags",
        "sequence",
        "ack",
        "data",
        "window",
        "tshark says",
    ]);
    for event in events.all().iter().take(shown_max) {
        let note = if event.was_captured { " (captured twice)" } else { "" };
        table.row([
            event.number.to_string(),
            format!("{:.6}", (event.time_ns - story.first_ns) as f64 / 1e9),
            story.ends.0[event.from].to_string(),
            tcp_flags(event.tcp),
            event.sequence.to_string(),
            event.acknowledged.to_string(),
            event.length.to_string(),
            event.window.to_string(),
            format!("{}{note}", event.flags),
        ]);
    }
    table
}
