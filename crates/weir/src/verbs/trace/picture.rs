//! Pictures (SVG): counts over time, and a connection's sequence numbers.

use std::fmt::Write as _;

use diagnose::words::thousands;
use trace::analysis::Flags;

use super::Reading;
use super::events::Events;

const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 48.0;
/// Columns of the picture over time: each covers as many intervals as it must.
const COLUMNS_MAX: usize = 400;
/// Lines on an axis, about.
const TICKS: f64 = 6.0;

/// What is drawn over time, from the bottom up: colours that are told apart without red and green.
const SERIES: [(&str, &str, Flags); 5] = [
    ("sent again", "#d55e00", Flags::RETRANSMISSION),
    ("out of order", "#e69f00", Flags::OUT_OF_ORDER),
    ("lost before the capture", "#cc79a7", Flags::LOST_SEGMENT),
    ("duplicate ACK", "#56b4e9", Flags::DUPLICATE_ACK),
    ("zero window", "#0072b2", Flags::ZERO_WINDOW),
];

/// Counts over time, stacked.
pub(super) fn over_time(reading: &Reading) -> String {
    let intervals = reading.trace.intervals();
    let rows = intervals.rows();
    let last = rows.last().map_or(0, |row| row.number);
    let per_column = (last / COLUMNS_MAX as u64 + 1).max(1);
    let columns = (last / per_column + 1) as usize;
    let mut stacks = vec![[0_u64; SERIES.len()]; columns];
    for row in rows {
        let stack = &mut stacks[(row.number / per_column) as usize];
        for (sum, (_, _, flag)) in stack.iter_mut().zip(SERIES) {
            *sum += row.counts.of(flag);
        }
    }
    let most = stacks.iter().map(|stack| stack.iter().sum::<u64>()).max().unwrap_or(0).max(1);
    let seconds = columns as f64 * per_column as f64 * intervals.length_ns() as f64 / 1e9;
    let mut frame = Frame::new(&reading.name, seconds, most as f64, "segments");
    frame.legend(SERIES.iter().map(|(name, colour, _)| (*name, *colour)));
    let width = (WIDTH - LEFT - RIGHT) / columns as f64;
    for (at, stack) in stacks.iter().enumerate() {
        let mut bottom = 0;
        for (count, (name, colour, _)) in stack.iter().zip(SERIES) {
            if *count == 0 {
                continue;
            }
            let (x, y) = (LEFT + at as f64 * width, frame.y((bottom + count) as f64));
            let height = frame.y(bottom as f64) - y;
            let gap = if width > 4.0 { 1.0 } else { 0.0 };
            _ = writeln!(
                frame.out,
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{:.2}\" height=\"{height:.2}\" fill=\"{colour}\"><title>{name}: {count}</title></rect>",
                width - gap
            );
            bottom += count;
        }
    }
    frame.end()
}

/// One connection: where each segment of the direction with more data lies, over time, and up to
/// where the other end has acknowledged.
pub(super) fn sequence(reading: &Reading, stream: u32, events: &Events) -> String {
    let Some(story) = reading.trace.story(stream) else { return String::new() };
    let [one, other] = story.directions.each_ref().map(|one| one.counts.payload_bytes);
    let from = usize::from(other > one);
    let all = events.all();
    let first_ns = all.first().map_or(0, |event| event.time_ns);
    let seconds_of = |time_ns: i64| time_ns.saturating_sub(first_ns) as f64 / 1e9;
    // Numbers far behind the first byte are ones before it.
    let is_near = |number: u32| number < u32::MAX / 2;
    let sent = all.iter().filter(|event| event.from == from && is_near(event.sequence));
    let highest = sent.clone().map(|event| event.sequence.saturating_add(event.length)).max();
    let seconds = all.iter().map(|event| seconds_of(event.time_ns)).fold(0.0, f64::max);
    let title = format!(
        "{}: stream {stream}, {} → {}",
        reading.name,
        story.ends.0[from],
        story.ends.0[1 - from]
    );
    let mut frame =
        Frame::new(&title, seconds, f64::from(highest.unwrap_or(1).max(1)), "sequence number");
    let kinds = [
        ("first time", "#0072b2"),
        ("sent again", "#d55e00"),
        ("out of order", "#e69f00"),
        ("acknowledged", "#009e73"),
    ];
    frame.legend(kinds.into_iter());
    let mut path = String::new();
    for event in all.iter().filter(|event| event.from != from && is_near(event.acknowledged)) {
        let joint = if path.is_empty() { 'M' } else { 'L' };
        let x = frame.x(seconds_of(event.time_ns));
        _ = write!(path, "{joint}{x:.2} {:.2}", frame.y(f64::from(event.acknowledged)));
    }
    if !path.is_empty() {
        _ = writeln!(frame.out, "<path d=\"{path}\" fill=\"none\" stroke=\"#009e73\"/>");
    }
    for event in sent.filter(|event| event.length > 0) {
        let kind = match event.flags {
            flags if flags.has(Flags::RETRANSMISSION) => 1,
            flags if flags.has(Flags::OUT_OF_ORDER) => 2,
            _ => 0,
        };
        let x = frame.x(seconds_of(event.time_ns));
        let (low, high) =
            (f64::from(event.sequence), f64::from(event.sequence) + f64::from(event.length));
        let (bottom, top) = (frame.y(low), frame.y(high));
        // Never so short that it cannot be seen.
        let top = top.min(bottom - 2.0);
        let width = if kind == 0 { 1.2 } else { 2.4 };
        _ = writeln!(
            frame.out,
            "<line x1=\"{x:.2}\" y1=\"{bottom:.2}\" x2=\"{x:.2}\" y2=\"{top:.2}\" stroke=\"{}\" stroke-width=\"{width}\"><title>frame {}</title></line>",
            kinds[kind].1, event.number
        );
    }
    frame.end()
}

/// Title, axes and what lies between them.
struct Frame {
    out: String,
    x_max: f64,
    y_max: f64,
}

impl Frame {
    fn new(title: &str, x_max: f64, y_max: f64, y_name: &str) -> Frame {
        let x_max = if x_max > 0.0 { x_max } else { 1.0 };
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"15\">{}</text>\n",
            escaped(title)
        );
        _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">seconds since its first frame</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            HEIGHT - 10.0
        );
        _ = writeln!(
            out,
            "<text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\" fill=\"#555\">{y_name}</text>",
            f64::midpoint(TOP, HEIGHT - BOTTOM)
        );
        let mut frame = Frame { out, x_max, y_max };
        frame.axes();
        frame
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + value / self.x_max * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.y_max * (HEIGHT - TOP - BOTTOM)
    }

    fn axes(&mut self) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for value in ticks(self.y_max) {
            let y = self.y(value);
            _ = writeln!(
                self.out,
                "<line x1=\"{LEFT}\" y1=\"{y:.2}\" x2=\"{right}\" y2=\"{y:.2}\" stroke=\"#e5e5e5\"/>\
                 <text x=\"{}\" y=\"{:.2}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                thousands(value as u64)
            );
        }
        for value in ticks(self.x_max) {
            let x = self.x(value);
            let label = format!("{value:.6}");
            let label = label.trim_end_matches('0').trim_end_matches('.');
            _ = writeln!(
                self.out,
                "<line x1=\"{x:.2}\" y1=\"{bottom}\" x2=\"{x:.2}\" y2=\"{}\" stroke=\"#999\"/>\
                 <text x=\"{x:.2}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                bottom + 5.0,
                bottom + 18.0
            );
        }
        _ = writeln!(
            self.out,
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#999\"/>"
        );
    }

    fn legend<'a>(&mut self, entries: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut x = LEFT;
        for (name, colour) in entries {
            _ = writeln!(
                self.out,
                "<rect x=\"{x:.2}\" y=\"31\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
                 <text x=\"{:.2}\" y=\"40\">{name}</text>",
                x + 14.0
            );
            x += 34.0 + name.len() as f64 * 6.6;
        }
    }

    fn end(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

/// Round values from 0 to `most`: 1, 2 or 5 of a power of ten apart.
fn ticks(most: f64) -> impl Iterator<Item = f64> {
    let rough = most / TICKS;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|one| one * power).find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    (0..).map(move |n| f64::from(n) * step).take_while(move |value| *value <= most * 1.0001)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
