//! Charts: traffic and tshark's flags over time, as SVG and for the page, and a connection's sequence
//! numbers, as SVG.
//!
//! A stand-alone SVG file cannot run scripts, so it stays a plain picture. The sequence graph is one in
//! the page too: a stroke for each segment is not a line chart.

use std::fmt::Write as _;
use std::time::Duration;

use diagnose::words::{bytes, list, plural, thousands};
use observe::TimestampCache;
use page::{Line, Style, seconds};
use trace::analysis::Flags;
use trace::summary::Story;

use crate::chart::{Chart, LEFT, Panel, RIGHT, Unit, WIDTH};
use crate::events::{Event, Events};
use crate::facts::findings;
use crate::reading::Reading;

/// Columns of the picture over time: each covers as many intervals as it must.
const COLUMNS_MAX: usize = 400;
/// The highest value is not at the very top.
const HEADROOM: f64 = 1.05;
/// With more segments in a sequence graph, their frames' numbers are left out.
const NUMBERED_MAX: usize = 5_000;

/// What is drawn over time, from the bottom up, by the names of the report's columns. The colours
/// (Okabe and Ito's) can be told apart with red-green colour blindness.
const SERIES: [(&str, &str, Flags); 5] = [
    ("sent again", "#d55e00", Flags::RETRANSMISSION),
    ("out of order", "#f0c000", Flags::OUT_OF_ORDER),
    ("lost (before the capture, or by it)", "#cc79a7", Flags::LOST_SEGMENT),
    ("dup ACK", "#56b4e9", Flags::DUPLICATE_ACK),
    ("zero window", "#0072b2", Flags::ZERO_WINDOW),
];
const TRAFFIC: &str = "#9a9a9a";
/// The page's colours for the same.
const FLAG_COLOURS: [usize; SERIES.len()] = [1, 4, 6, 2, 0];
const TRAFFIC_COLOUR: usize = 7;

/// A column: bits on the wire, and how often each of [`SERIES`] was set.
#[derive(Clone, Copy, Default)]
struct Column {
    bits: f64,
    stack: [u64; SERIES.len()],
}

/// What is drawn over time.
struct OverTime {
    columns: Vec<Column>,
    /// The length of each.
    column_s: f64,
    /// The capture's length; the last column ends with it.
    duration_s: f64,
    /// Which of [`SERIES`] are drawn.
    drawn: [bool; SERIES.len()],
    /// Zero windows that are not drawn.
    harmless: u64,
}

/// Zero windows that no finding is about: receivers that were ready again at once. They are common, and
/// would hide what matters. A capture of one direction cannot tell.
fn harmless_zero_windows(reading: &Reading) -> u64 {
    let is_found = || {
        let report = findings(reading);
        report.findings.iter().any(|finding| finding.rule == "capture_slow_reader")
    };
    let count = reading.trace.totals().of(Flags::ZERO_WINDOW);
    let is_known = !reading.trace.stories().any(Story::is_one_sided);
    if count > 0 && is_known && !is_found() { count } else { 0 }
}

impl OverTime {
    fn of(reading: &Reading) -> OverTime {
        let intervals = reading.trace.intervals();
        let rows = intervals.rows();
        let last = rows.last().map_or(0, |row| row.number);
        let per_column = (last / COLUMNS_MAX as u64 + 1).max(1);
        let harmless = harmless_zero_windows(reading);
        let drawn = SERIES.map(|(_, _, flag)| flag != Flags::ZERO_WINDOW || harmless == 0);
        let mut columns = vec![Column::default(); (last / per_column + 1) as usize];
        for row in rows {
            let column = &mut columns[(row.number / per_column) as usize];
            column.bits += row.counts.bytes as f64 * 8.0;
            for (at, (_, _, flag)) in SERIES.into_iter().enumerate().filter(|(at, _)| drawn[*at]) {
                column.stack[at] += row.counts.of(flag);
            }
        }
        let column_s = per_column as f64 * intervals.length_ns() as f64 / 1e9;
        let duration_s = intervals.duration_ns() as f64 / 1e9;
        let duration_s = if duration_s > 0.0 { duration_s } else { column_s };
        OverTime { columns, column_s, duration_s, drawn, harmless }
    }

    /// Where a column begins and how long it is: the last one is cut short by the end of the capture.
    fn column(&self, at: usize) -> (f64, f64) {
        let start_s = at as f64 * self.column_s;
        let length_s = self.column_s.min(self.duration_s - start_s);
        // A rate over less would be chance.
        (start_s, length_s.max(self.column_s * SHARE_MIN))
    }

    /// The bits per second of a column.
    fn rate(&self, at: usize) -> f64 {
        self.columns[at].bits / self.column(at).1
    }

    /// What is not drawn, as a sentence.
    fn left_out(&self) -> Option<String> {
        (self.harmless > 0).then(|| {
            format!(
                "Not drawn: {}, none of which lasted long enough for a finding",
                plural(self.harmless, "zero window")
            )
        })
    }
}

/// The last column counts as at least so long.
const SHARE_MIN: f64 = 0.1;

/// The page's charts over time: traffic, and tshark's flags if there were any; and what is not drawn.
pub(crate) fn charts_over_time(reading: &Reading) -> (Vec<page::Chart>, Option<String>) {
    let over = OverTime::of(reading);
    let count = over.columns.len();
    // The last bar ends one column after it begins, or with the capture.
    let xs: Vec<f64> = (0..=count).map(|at| at as f64 * over.column_s).collect();
    let line = |label: &str, colour, value: &dyn Fn(usize) -> f64| {
        let values = (0..count).map(|at| Some(value(at)));
        let values = values.chain(std::iter::once(None)).collect();
        Line { label: label.to_owned(), colour, values, ..Line::default() }
    };
    let chart = |title: &str, note: String, unit, lines| page::Chart {
        title: title.to_owned(),
        note,
        unit,
        style: Style::Stack,
        xs: xs.clone(),
        end: Some(over.duration_s),
        lines,
        ..page::Chart::default()
    };
    let flags =
        SERIES.iter().enumerate().filter(|(at, _)| over.drawn[*at]).map(|(at, (name, ..))| {
            line(name, FLAG_COLOURS[at], &|column| over.columns[column].stack[at] as f64)
        });
    let each = seconds(over.column_s, 3);
    let traffic = line("traffic", TRAFFIC_COLOUR, &|column| over.rate(column));
    let bits = format!("Bits per second on the wire, mean of each {each}.");
    let trouble = format!("Segments in each {each}, by tshark's flag.");
    let mut charts = vec![
        chart("Traffic", bits, page::Unit::BitsPerSecond, vec![traffic]),
        chart("Flags", trouble, page::Unit::Count, flags.collect()),
    ];
    let mut left_out: Vec<String> = over.left_out().into_iter().collect();
    if charts[1].is_flat() {
        charts.truncate(1);
        let names = SERIES.iter().zip(over.drawn).filter(|(_, is_drawn)| *is_drawn);
        let names: Vec<String> = names.map(|((name, ..), _)| (*name).to_owned()).collect();
        left_out
            .insert(0, format!("None of tshark's flags occurred: {}", list(&names, SERIES.len())));
    }
    (charts, (!left_out.is_empty()).then(|| left_out.join(". ") + "."))
}

/// Draws traffic, and below it tshark's flags, as SVG.
pub fn over_time(reading: &Reading) -> String {
    let over = OverTime::of(reading);
    let x_max = over.duration_s;
    let columns = over.columns.iter();
    let most = columns.map(|column| column.stack.iter().sum::<u64>()).max().unwrap_or(0);
    let fastest = (0..over.columns.len()).map(|at| over.rate(at)).fold(0.0, f64::max);

    let left_out = over.left_out().map(|text| format!(". {text}")).unwrap_or_default();
    let about = about(reading) + &left_out;
    let mut chart = Chart::new(&format!("{}: TCP over time", reading.name), &about, 560.0);
    let drawn = SERIES.iter().zip(over.drawn).filter(|(_, is_drawn)| *is_drawn);
    let drawn = drawn.map(|((name, colour, _), _)| (*name, *colour));
    chart.legend(std::iter::once(("traffic", TRAFFIC)).chain(drawn));
    let (above, below) = (
        Panel {
            top: 80.0,
            bottom: 190.0,
            x_max,
            y_max: fastest.max(1.0) * HEADROOM,
            y_unit: Unit::BitsPerSecond,
        },
        Panel {
            top: 216.0,
            bottom: 508.0,
            x_max,
            y_max: most.max(5) as f64 * HEADROOM,
            y_unit: Unit::Count,
        },
    );
    above.axes(&mut chart, "traffic", None);
    let name = format!("tshark's flags in each {}", seconds(over.column_s, 3));
    below.axes(&mut chart, &name, Some("seconds since the first frame"));
    if most == 0 {
        let middle = f64::midpoint(below.top, below.bottom);
        chart.text(f64::midpoint(LEFT, WIDTH - RIGHT), middle, "none of these occurred");
    }
    for at in 0..over.columns.len() {
        bars(&mut chart, &above, &below, &over, at);
    }
    chart.end()
}

/// One column of both panels.
fn bars(chart: &mut Chart, above: &Panel, below: &Panel, over: &OverTime, at: usize) {
    let (start_s, length_s) = over.column(at);
    let column = &over.columns[at];
    let x = above.x(start_s);
    let width = above.x((start_s + length_s).min(above.x_max)) - x;
    let width = if width > 4.0 { width - 1.0 } else { width.max(1.0) };
    let mut bar = |top: f64, bottom: f64, colour: &str, title: &str| {
        let attributes = format!(
            "x=\"{x:.2}\" y=\"{top:.2}\" width=\"{width:.2}\" height=\"{:.2}\" fill=\"{colour}\"",
            bottom - top
        );
        chart.titled("rect", &attributes, title);
    };
    let when = format!("from {} on", seconds(start_s, 3));
    if column.bits > 0.0 {
        let title = format!("{}, {when}", bytes((column.bits / 8.0) as u64));
        bar(above.y(over.rate(at)), above.bottom, TRAFFIC, &title);
    }
    let mut from = 0;
    for (count, (name, colour, _)) in column.stack.iter().zip(SERIES) {
        if *count > 0 {
            let title = format!("{name}: {}, {when}", thousands(*count));
            bar(below.y((from + count) as f64), below.y(from as f64), colour, &title);
            from += count;
        }
    }
}

/// How much it is, and when it began.
fn about(reading: &Reading) -> String {
    let trace = &reading.trace;
    let duration_s = trace.intervals().duration_ns() as f64 / 1e9;
    let mut out = format!(
        "{} on {} in {}",
        plural(trace.totals().segments, "segment"),
        plural(trace.stories().len() as u64, "connection"),
        seconds(duration_s, 3)
    );
    if let Some(first_ns) = trace.intervals().first_ns() {
        let first = Duration::from_nanos(first_ns.max(0).cast_unsigned());
        _ = write!(out, ", from {} on", TimestampCache::default().at(first));
    }
    out
}

/// What a segment of a sequence graph is: its name and colour.
const KINDS: [(&str, &str); 3] =
    [("sent", "#0072b2"), ("sent again", "#d55e00"), ("out of order", "#cc79a7")];
const ACKNOWLEDGED: (&str, &str) = ("acknowledged", "#009e73");
const WINDOW: (&str, &str) = ("end of the receiver's window", "#8c8c8c");

/// One connection: where the bytes of the direction with more data lie, over time; up to where the
/// other end has acknowledged them, and up to where it takes more.
pub fn sequence(reading: &Reading, stream: u32, events: &Events) -> String {
    let Some(story) = reading.trace.story(stream) else { return String::new() };
    let [one, other] = story.directions.each_ref().map(|one| one.counts.payload_bytes);
    let from = usize::from(other > one);
    let all = events.all();
    let first_ns = all.iter().map(|event| event.time_ns).min().unwrap_or(0);
    let when = |event: &Event| event.time_ns.saturating_sub(first_ns) as f64 / 1e9;
    // Numbers far behind the first byte are ones before it.
    let is_near = |number: u32| number < u32::MAX / 2;
    let is_data =
        |event: &&Event| event.from == from && event.length > 0 && is_near(event.sequence);
    let highest =
        all.iter().filter(is_data).map(|event| event.sequence.saturating_add(event.length));
    let y_max = f64::from(highest.max().unwrap_or(1).max(1)) * HEADROOM;
    let x_max = all.iter().map(when).fold(0.0, f64::max);

    let [ends_from, ends_to] = [story.ends.0[from], story.ends.0[1 - from]];
    let title = format!("{}: stream {stream}, {ends_from} → {ends_to}", reading.name);
    let mut chart = Chart::new(&title, &about_sent(story, from, events), 560.0);
    chart.legend(KINDS.into_iter().chain([ACKNOWLEDGED, WINDOW]));
    let x_max = if x_max > 0.0 { x_max } else { 1.0 };
    let panel = Panel { top: 80.0, bottom: 508.0, x_max, y_max, y_unit: Unit::Bytes };
    panel.clip(&mut chart);
    panel.axes(
        &mut chart,
        "bytes since the connection began",
        Some("seconds since the connection's first frame"),
    );
    let answers: Vec<&Event> = all
        .iter()
        .filter(|event| event.from != from && event.has_ack() && is_near(event.acknowledged))
        .collect();
    let shift = shift(story, 1 - from);
    let window = |event: &Event| {
        let shift = if event.is_syn() { 0 } else { shift.unwrap_or(0) };
        f64::from(event.acknowledged) + f64::from(u32::from(event.window) << shift)
    };
    if shift.is_some() {
        let steps = answers.iter().map(|event| (when(event), window(event)));
        staircase(&mut chart, &panel, steps, WINDOW.1, "1");
    }
    let steps = answers.iter().map(|event| (when(event), f64::from(event.acknowledged)));
    staircase(&mut chart, &panel, steps, ACKNOWLEDGED.1, "1.5");
    let data: Vec<&Event> = all.iter().filter(is_data).collect();
    segments(&mut chart, &panel, &data, when);
    chart.end()
}

fn about_sent(story: &Story, from: usize, events: &Events) -> String {
    let direction = &story.directions[from];
    let mut out = format!(
        "{} of data sent, {} of them for the first time; {} sent again",
        plural(direction.counts.payload_bytes, "byte"),
        thousands(direction.unique_bytes),
        plural(direction.counts.of(Flags::RETRANSMISSION), "segment")
    );
    if events.left_out() > 0 {
        _ = write!(out, "; the first {} frames of it", thousands(events.all().len() as u64));
    }
    out
}

/// By how much the windows of `end` are shifted; `None`: its handshake was not captured.
fn shift(story: &Story, end: usize) -> Option<u8> {
    let [one, other] = story.directions.each_ref().map(|direction| direction.handshake);
    if !one.was_seen || !other.was_seen {
        return None;
    }
    // It counts only where both offer it (RFC 7323 section 2.2), and up to 14.
    let both = one.window_scale.is_some() && other.window_scale.is_some();
    let own = story.directions[end].handshake.window_scale.unwrap_or(0).min(14);
    Some(if both { own } else { 0 })
}

/// A value that holds until the next one.
fn staircase(
    chart: &mut Chart,
    panel: &Panel,
    steps: impl Iterator<Item = (f64, f64)>,
    colour: &str,
    width: &str,
) {
    let mut path = String::new();
    let mut before = (f64::NAN, f64::NAN);
    for (when, value) in steps {
        let (x, y) = (panel.x(when), panel.y(value));
        if path.is_empty() {
            _ = write!(path, "M{x:.1} {y:.1}");
        } else if (x - before.0).abs() < 0.2 && (y - before.1).abs() < 0.2 {
            // It would not be visible.
            continue;
        } else {
            _ = write!(path, "H{x:.1}V{y:.1}");
        }
        before = (x, y);
    }
    _ = writeln!(
        chart.out,
        "<path clip-path=\"url(#plot)\" d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
    );
}

/// A stroke for each segment, from its first byte to its last. Those that would stand on top of each
/// other are one.
fn segments(chart: &mut Chart, panel: &Panel, data: &[&Event], when: impl Fn(&Event) -> f64) {
    let is_numbered = data.len() <= NUMBERED_MAX;
    let mut at = 0;
    while let Some(first) = data.get(at) {
        let kind = kind(first);
        let x = panel.x(when(first));
        let mut end = first.sequence.saturating_add(first.length);
        at += 1;
        while !is_numbered
            && let Some(next) = data.get(at)
            && next.sequence == end
            && self::kind(next) == kind
            && panel.x(when(next)) - x < 0.5
        {
            end = next.sequence.saturating_add(next.length);
            at += 1;
        }
        let bottom = panel.y(f64::from(first.sequence));
        // Never so short that it cannot be seen, and what is rare the more so.
        let (width, shortest) = if kind == 0 { (1.4, 1.5) } else { (3.0, 5.0) };
        let top = panel.y(f64::from(end)).min(bottom - shortest);
        let attributes = format!(
            "x1=\"{x:.2}\" y1=\"{bottom:.2}\" x2=\"{x:.2}\" y2=\"{top:.2}\" stroke=\"{}\" stroke-width=\"{width}\"",
            KINDS[kind].1
        );
        if is_numbered {
            let title =
                format!("frame {}, {} bytes, {}", first.number, first.length, KINDS[kind].0);
            chart.titled("line", &attributes, &title);
        } else {
            _ = writeln!(chart.out, "<line {attributes}/>");
        }
    }
}

/// Which of [`KINDS`] it is.
fn kind(event: &Event) -> usize {
    match event.flags {
        flags if flags.has(Flags::RETRANSMISSION) => 1,
        flags if flags.has(Flags::OUT_OF_ORDER) => 2,
        _ => 0,
    }
}
