//! The report as text, and its sentences for the page.

use std::fmt::Write as _;

use diagnose::words::{bytes, list, percent, plural, thousands};
use trace::Trace;
use trace::decode::{FRAGMENTED_MAX_BYTES, FRAGMENTED_MAX_PACKETS, LAYERS_MAX};
use trace::summary::{Direction, Story};

use crate::events::{EVENTS_MAX, Events};
use crate::facts::{CONNECTIONS_MAX, findings};
use crate::reading::{Reading, worst};
use crate::tables::{by_connection, event_table, milliseconds, number, over_time};

/// Kinds of packets without TCP that are named.
const UNDECODED_SHOWN_MAX: usize = 6;

/// Columns that findings are wrapped at.
const WIDTH: usize = 100;

/// The whole report.
pub fn report(reading: &Reading, connections: usize, colour: bool) -> String {
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
    out.push_str(&diagnose::render::report(&findings(reading), WIDTH));
    out
}

/// A note if the rules do not see all connections.
pub(crate) fn judged(trace: &Trace) -> Option<String> {
    let (all, most) = (trace.stories().len(), CONNECTIONS_MAX);
    (all > most).then(|| {
        format!("This is of the {} connections with the most trouble.", thousands(most as u64))
    })
}

/// The heading of the table of `shown` connections; `None` if there are none.
pub(crate) fn connections_heading(trace: &Trace, shown: usize) -> Option<String> {
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
pub fn head(reading: &Reading) -> String {
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
    unread(reading, count, &mut out);
    out
}

/// What of the capture was not analysed, and why.
fn unread(reading: &Reading, connections: u64, out: &mut String) {
    let trace = &reading.trace;
    if trace.refused() > 0 {
        _ = writeln!(
            out,
            "Not analysed: {} of connections beyond the first {} (--connections-max).",
            plural(trace.refused(), "segment"),
            thousands(connections)
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

/// One connection: its handshake, then frame by frame.
pub fn stream(reading: &Reading, number: u32, events: &Events) -> String {
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

/// How long the connection took, and how long nothing happened on it.
pub(crate) fn lasted(story: &Story) -> String {
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

/// The options of one end's handshake, and its data.
pub(crate) fn about(story: &Story, end: usize, direction: &Direction) -> String {
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
        said.push(format!("{count} retransmissions were needless, as reported by DSACK"));
    }
    let flags = direction.counts.named().filter(|(_, count)| *count > 0);
    let flags: Vec<String> =
        flags.map(|(name, count)| format!("{name} {}", thousands(count))).collect();
    if !flags.is_empty() {
        said.push(format!("tshark's flags: {}", flags.join(", ")));
    }
    format!("{}: {}", story.ends.0[end], said.join("; "))
}
