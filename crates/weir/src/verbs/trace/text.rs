//! What a capture says, for people: tables whose figures stand below each other.

use std::cmp::Reverse;
use std::fmt::Write as _;

use diagnose::words::{bytes, list, percent, plural, thousands};
use trace::Trace;
use trace::analysis::Flags;
use trace::decode::{FRAGMENTED_MAX_BYTES, FRAGMENTED_MAX_PACKETS, LAYERS_MAX};
use trace::summary::{Counts, Direction, Ending, Interval, Story};

use super::Reading;
use super::events::{EVENTS_MAX, Events, tcp_flags};
use crate::render::figures::Figures;

/// Rows of intervals that are shown; of more, those with the most trouble.
const INTERVALS_SHOWN_MAX: usize = 60;

/// Kinds of packets without TCP that are named.
const UNDECODED_SHOWN_MAX: usize = 6;

/// Columns that findings are wrapped at.
const WIDTH: usize = 100;

/// The `count` connections with the most trouble, the most first; of equals the one that came first.
pub(super) fn worst(trace: &Trace, count: usize) -> impl Iterator<Item = (u32, &Story)> {
    let numbered = (0..).zip(trace.stories());
    let mut all: Vec<(Reverse<u64>, u32)> =
        numbered.map(|(number, story)| (Reverse(story.trouble()), number)).collect();
    if count < all.len() {
        // There may be a million of them, and few are wanted.
        all.select_nth_unstable(count);
        all.truncate(count);
    }
    all.sort_unstable();
    all.into_iter().filter_map(|(_, number)| Some((number, trace.story(number)?)))
}

/// The whole report.
pub(super) fn report(reading: &Reading, connections: usize, colour: bool) -> String {
    let mut out = head(reading);
    section(&mut out, "Over time", colour);
    let trace = &reading.trace;
    let (table, note) = over_time(trace);
    out.push_str(&table.text());
    if let Some(note) = note {
        _ = writeln!(out, "  {note}");
    }
    if let Some(heading) = connections_heading(trace, connections) {
        section(&mut out, &heading, colour);
        out.push_str(&by_connection(worst(trace, connections)).text());
    }
    section(&mut out, "What it means", colour);
    if let Some(note) = judged(trace) {
        _ = writeln!(out, "{note}\n");
    }
    out.push_str(&diagnose::render::report(&reading.findings(), WIDTH));
    out
}

/// What is to be said where rules do not see all connections.
pub(super) fn judged(trace: &Trace) -> Option<String> {
    let (all, most) = (trace.stories().len(), super::facts::CONNECTIONS_MAX);
    (all > most).then(|| {
        format!("This is of the {} connections with the most trouble.", thousands(most as u64))
    })
}

/// What stands above `shown` connections; `None` if none are.
pub(super) fn connections_heading(trace: &Trace, shown: usize) -> Option<String> {
    let count = trace.stories().len();
    match count.min(shown) {
        0 => None,
        1 if count == 1 => Some("The connection".to_owned()),
        _ if count > shown => {
            let all = thousands(count as u64);
            Some(format!("The {shown} connections with the most trouble, of {all}"))
        }
        _ => Some("Connections, those with the most trouble first".to_owned()),
    }
}

fn section(out: &mut String, heading: &str, colour: bool) {
    let (on, off) = if colour { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    _ = writeln!(out, "\n{on}{heading}{off}");
}

/// What was read, and what could not be.
pub(super) fn head(reading: &Reading) -> String {
    let trace = &reading.trace;
    let totals = trace.totals();
    let count = trace.stories().len() as u64;
    let mut out = format!(
        "{}{}: {}, {}, {:.3} s; {} of TCP on {}\n",
        reading.name,
        if reading.is_live { ", live" } else { "" },
        plural(trace.frames(), "frame"),
        bytes(totals.bytes),
        trace.intervals().duration_ns() as f64 / 1e9,
        plural(totals.segments, "segment"),
        plural(count, "connection"),
    );
    let one_sided = trace.stories().filter(|story| story.is_one_sided()).count() as u64;
    if one_sided > 0 {
        _ = writeln!(
            out,
            "Of {} only one direction was captured: what the other end said, SACK among it, is not \
             known, and what is said of them is less certain.",
            plural(one_sided, "connection")
        );
    }
    let twice: u64 = both(trace, |direction| direction.captured_twice);
    if twice > 0 {
        let flagged: u64 = both(trace, |direction| direction.captured_twice_flagged);
        _ = writeln!(
            out,
            "{} show a segment that was captured already, as a mirror port or several interfaces \
             do; {} of them are counted below as sent again or out of order, as tshark does.",
            plural(twice, "frame"),
            thousands(flagged)
        );
    }
    if let Some(dropped) = reading.dropped.filter(|dropped| *dropped > 0) {
        _ = writeln!(out, "Dropped while it was captured: {}.", plural(dropped, "packet"));
    }
    if trace.refused() > 0 {
        _ = writeln!(
            out,
            "Not analysed: {} of connections beyond the first {} (--connections-max).",
            plural(trace.refused(), "segment"),
            thousands(count)
        );
    }
    if let Some(broken) = &reading.broken {
        _ = writeln!(out, "Not read to its end, but to {broken}.");
    }
    let decoder = trace.decoder();
    if decoder.fragments_dropped() > 0 {
        _ = writeln!(
            out,
            "Not put together: {} of IP packets, since more than {} packets or {} waited for others.",
            plural(decoder.fragments_dropped(), "fragment"),
            thousands(FRAGMENTED_MAX_PACKETS as u64),
            bytes(FRAGMENTED_MAX_BYTES as u64)
        );
    }
    if decoder.too_deep() > 0 {
        _ = writeln!(
            out,
            "Not looked into: {} with more than {LAYERS_MAX} headers around each other.",
            plural(decoder.too_deep(), "packet")
        );
    }
    if let Some(line) = undecoded(trace) {
        _ = writeln!(out, "{line}");
    }
    if trace.intervals().rows().len() >= trace::summary::INTERVALS_MAX / 2 {
        let length_s = trace.intervals().length_ns() as f64 / 1e9;
        _ = writeln!(out, "So long a capture that its intervals are {length_s} s.");
    }
    out
}

/// What was counted and not decoded, with its share.
fn undecoded(trace: &Trace) -> Option<String> {
    let (packets, sum_bytes) = trace.undecoded().sum();
    if packets == 0 {
        return None;
    }
    let share = |part: u64, whole: u64| percent(part as f64 / whole.max(1) as f64);
    let named = trace
        .undecoded()
        .kinds()
        .into_iter()
        .map(|(kind, packets, _)| format!("{kind} {}", thousands(packets)));
    Some(format!(
        "Without TCP that could be read: {}, {} of all and {} of the bytes: {}.",
        plural(packets, "packet"),
        share(packets, trace.frames()),
        share(sum_bytes, trace.totals().bytes),
        list(&named.collect::<Vec<_>>(), UNDECODED_SHOWN_MAX)
    ))
}

fn both(trace: &Trace, figure: impl Fn(&Direction) -> u64) -> u64 {
    trace.stories().flat_map(|story| &story.directions).map(figure).sum()
}

/// Columns of the table by intervals.
const COLUMNS: usize = 13;

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

/// The intervals, or of many those with the most trouble; and what is then to be said of it.
pub(super) fn over_time(trace: &Trace) -> (Figures<COLUMNS>, Option<String>) {
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
pub(super) fn intervals<'a>(
    trace: &Trace,
    shown: impl Iterator<Item = &'a Interval>,
) -> Figures<COLUMNS> {
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

/// Seconds without a needless fraction.
pub(super) fn number(seconds: f64) -> String {
    let text = format!("{seconds:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn by_connection<'a>(stories: impl Iterator<Item = (u32, &'a Story)>) -> Figures<13> {
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

fn milliseconds(ns: i64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}

fn sack(direction: &Direction) -> &'static str {
    match (direction.handshake.was_seen, direction.handshake.sack_permitted) {
        (true, true) => "yes",
        (true, false) => "no",
        (false, _) => "?",
    }
}

fn ending(story: &Story) -> String {
    match story.ending() {
        Ending::Open => "open".to_owned(),
        Ending::HalfClosed(by) => format!("half, by {}", story.ends.0[by]),
        Ending::Closed => "closed".to_owned(),
        Ending::Reset(by) => format!("reset by {}", story.ends.0[by]),
    }
}

/// One connection: what its handshake said, then event by event.
pub(super) fn stream(reading: &Reading, number: u32, events: &Events) -> String {
    let Some(story) = reading.trace.story(number) else { return String::new() };
    let mut out = format!("{}: stream {number}\n\n", reading.name);
    out.push_str(&by_connection(std::iter::once((number, story))).text());
    out.push('\n');
    _ = writeln!(out, "{}", lasted(story));
    for (end, direction) in story.directions.iter().enumerate() {
        _ = writeln!(out, "{}", about(story, end, direction));
    }
    out.push('\n');
    out.push_str(&event_table(story, events, EVENTS_MAX).text());
    if events.left_out() > 0 {
        let left_out = plural(events.left_out(), "frame");
        _ = writeln!(out, "  {left_out} beyond the first {EVENTS_MAX} are left out.");
    }
    out
}

/// Frame by frame, the first `shown_max` of them.
pub(super) fn event_table(story: &Story, events: &Events, shown_max: usize) -> Figures<9> {
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

/// How long the connection took, and how long nothing happened on it.
pub(super) fn lasted(story: &Story) -> String {
    let seconds = |ns: i64| number(ns as f64 / 1e9);
    let mut out = format!(
        "Lasted {} s, the longest silence {} s",
        seconds(story.last_ns - story.first_ns),
        seconds(story.idle_max_ns)
    );
    if let Some(ns) = story.handshake_ns {
        _ = write!(out, "; handshake in {}", milliseconds(ns));
    }
    if story.is_one_sided() {
        out.push_str("; only one direction was captured");
    }
    out.push('.');
    out
}

/// What one end said in its handshake, and what became of its data.
pub(super) fn about(story: &Story, end: usize, direction: &Direction) -> String {
    let mut said = Vec::new();
    let handshake = &direction.handshake;
    if handshake.was_seen {
        let or_none = |figure: Option<String>| figure.unwrap_or_else(|| "none".to_owned());
        said.push(format!("MSS {}", or_none(handshake.mss.map(|mss| mss.to_string()))));
        let scale = or_none(handshake.window_scale.map(|scale| scale.to_string()));
        said.push(format!("window scale {scale}"));
        said.push(format!(
            "SACK {}",
            if handshake.sack_permitted { "permitted" } else { "not permitted" }
        ));
        said.push(format!("timestamps {}", if handshake.has_timestamps { "on" } else { "off" }));
    } else if direction.counts.segments > 0 {
        said.push("its SYN was not captured".to_owned());
    } else {
        said.push("nothing of it was captured".to_owned());
    }
    if direction.openings > 1 {
        let times: Vec<String> = direction
            .opening_times_ns()
            .windows(2)
            .map(|two| number((two[1] - two[0]) as f64 / 1e9))
            .collect();
        said.push(format!("SYN {} times, {} s apart", direction.openings, times.join(", ")));
    }
    let sent = direction.counts.payload_bytes;
    if sent > 0 {
        let unique = direction.unique_bytes;
        said.push(format!(
            "{} of data sent, {} of them for the first time",
            plural(sent, "byte"),
            thousands(unique)
        ));
    }
    if direction.unseen_bytes > 0 {
        said.push(format!(
            "{} acknowledged that the capture does not have",
            bytes(direction.unseen_bytes)
        ));
    }
    if direction.rtt.samples > 0 {
        let [min, max] = [direction.rtt.min_ns, direction.rtt.max_ns].map(milliseconds);
        said.push(format!("round trips from {min} to {max}"));
    }
    if direction.duplicate_sacks > 0 {
        let count = direction.duplicate_sacks;
        said.push(format!("told {count} times by DSACK that what it sent had come already"));
    }
    let flags = direction.counts.named().filter(|(_, count)| *count > 0);
    let flags: Vec<String> =
        flags.map(|(name, count)| format!("{name} {}", thousands(count))).collect();
    if !flags.is_empty() {
        said.push(format!("tshark's flags: {}", flags.join(", ")));
    }
    format!("{}: {}", story.ends.0[end], said.join("; "))
}
