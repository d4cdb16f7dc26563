//! The output of `weir trace live` while it runs, on standard output: on a terminal the current
//! report, redrawn in place; through a pipe a line for each completed interval.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use diagnose::words::{bytes, plural, thousands};
use model::Moment;
use os::terminal::Size;
use trace::Trace;
use trace::analysis::Flags;
use trace::summary::{Counts, Interval};
use trace_report::{Reading, csv, tables, text, worst};

use crate::flags::TraceLook;

/// How often a terminal is redrawn.
const DRAW_EVERY: Duration = Duration::from_millis(500);
/// A terminal that does not tell its size.
const USUAL: Size = Size { columns: 80, rows: 24 };
/// Lines around the rows: what was read, headings, and how long it will still be.
const AROUND: usize = 13;

/// The report as it grows.
pub(super) enum Growing {
    /// Lines that stand on the terminal and will be taken away, and when they are drawn next.
    Screen { drawn: usize, next: Moment },
    /// A line for each interval. What began before this, in nanoseconds since the first frame, has
    /// been printed.
    Lines { is_csv: bool, printed_ns: u64 },
    /// Nothing before the end.
    Silent,
}

impl Growing {
    pub(super) fn new(args: &TraceLook) -> Growing {
        let now = os::clock::now();
        if args.json || args.frames || args.stream.is_some() {
            Growing::Silent
        } else if args.csv || !io::stdout().is_terminal() {
            Growing::Lines { is_csv: args.csv, printed_ns: 0 }
        } else {
            Growing::Screen { drawn: 0, next: now }
        }
    }

    /// What stands before everything else.
    pub(super) fn begin(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Growing::Lines { is_csv: true, .. } => out.write_all(csv::heading().as_bytes()),
            _ => Ok(()),
        }
    }

    /// Shows what is new. Whatever was captured before `seen_ns`, nanoseconds since 1970, has been
    /// read; `left` is how long the capture still lasts.
    pub(super) fn tell(
        &mut self,
        reading: &Reading,
        seen_ns: i64,
        left: Duration,
        out: &mut impl Write,
    ) -> io::Result<()> {
        match self {
            Growing::Screen { drawn, next } => {
                let now = os::clock::now();
                if now < *next {
                    return Ok(());
                }
                *next = now + DRAW_EVERY;
                let size = os::terminal::size(io::stdout()).unwrap_or(USUAL);
                let text = screen(reading, left, size);
                wipe(drawn, out)?;
                *drawn = text.lines().count();
                out.write_all(text.as_bytes())?;
            }
            Growing::Lines { is_csv, printed_ns } => {
                lines(&reading.trace, *is_csv, printed_ns, seen_ns, out)?;
            }
            Growing::Silent => return Ok(()),
        }
        out.flush()
    }

    /// Ends the output: prints the remaining intervals and restores the terminal.
    pub(super) fn end(&mut self, reading: &Reading, out: &mut impl Write) -> io::Result<()> {
        match self {
            Growing::Screen { drawn, .. } => wipe(drawn, out)?,
            Growing::Lines { is_csv, printed_ns } => {
                lines(&reading.trace, *is_csv, printed_ns, i64::MAX, out)?;
                if !*is_csv {
                    writeln!(out)?;
                }
            }
            Growing::Silent => {}
        }
        out.flush()
    }
}

fn wipe(drawn: &mut usize, out: &mut impl Write) -> io::Result<()> {
    if *drawn > 0 {
        // Up so many lines, and clear from there to the end of the screen.
        write!(out, "\u{1b}[{drawn}A\u{1b}[J")?;
        *drawn = 0;
    }
    Ok(())
}

/// Returns the intervals that ended before `seen_ns` and were not printed yet.
fn lines(
    trace: &Trace,
    is_csv: bool,
    printed_ns: &mut u64,
    seen_ns: i64,
    out: &mut impl Write,
) -> io::Result<()> {
    let intervals = trace.intervals();
    let Some(first_ns) = intervals.first_ns() else { return Ok(()) };
    let length_ns = intervals.length_ns();
    let seen_ns = seen_ns.saturating_sub(first_ns).max(0).cast_unsigned();
    let rows = intervals.rows();
    // Of a long capture the intervals become longer. One whose first half was printed is not
    // printed again: its second half stands only in the report at the end.
    let new = rows.partition_point(|row| row.number.saturating_mul(length_ns) < *printed_ns);
    for row in &rows[new..] {
        let end_ns = (row.number + 1).saturating_mul(length_ns);
        if end_ns > seen_ns {
            break;
        }
        *printed_ns = end_ns;
        let told = if is_csv { csv::row(intervals, row) } else { line(trace, row) };
        out.write_all(told.as_bytes())?;
    }
    Ok(())
}

/// `   2 <> 3 s    1,204 packets   1.1 MB  sent again 12, dup ACK 31`.
fn line(trace: &Trace, row: &Interval) -> String {
    let intervals = trace.intervals();
    let length_s = intervals.length_ns() as f64 / 1e9;
    let start_s = row.number as f64 * length_s;
    let end_s = (start_s + length_s).min(intervals.duration_ns() as f64 / 1e9);
    let when = format!("{} <> {} s", tables::number(start_s), tables::number(end_s));
    let counts = &row.counts;
    let packets = thousands(counts.frames);
    let trouble = trouble(counts);
    let mut out = format!("{when:>14} {packets:>9} packets {:>9}", bytes(counts.bytes));
    if !trouble.is_empty() {
        _ = write!(out, "  {}", trouble.join(", "));
    }
    out.push('\n');
    out
}

/// What was not as it should be, by the names that the report's columns have.
fn trouble(counts: &Counts) -> Vec<String> {
    const NAMED: [(&str, Flags); 8] = [
        ("sent again", Flags::RETRANSMISSION),
        ("fast", Flags::FAST_RETRANSMISSION),
        ("spurious", Flags::SPURIOUS_RETRANSMISSION),
        ("out of order", Flags::OUT_OF_ORDER),
        ("lost", Flags::LOST_SEGMENT),
        ("dup ACK", Flags::DUPLICATE_ACK),
        ("ACK of unseen", Flags::ACK_LOST_SEGMENT),
        ("zero window", Flags::ZERO_WINDOW),
    ];
    let named = NAMED.into_iter().map(|(name, flag)| (name, counts.of(flag)));
    named
        .chain([
            ("SYN again", counts.syn_retransmissions),
            ("SYN+ACK again", counts.syn_ack_retransmissions),
        ])
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {}", thousands(count)))
        .collect()
}

/// As much of the report as fits: the newest intervals, the connections with the most trouble.
fn screen(reading: &Reading, left: Duration, size: Size) -> String {
    let trace = &reading.trace;
    let room = size.rows.saturating_sub(AROUND);
    let rows = trace.intervals().rows();
    let newest = rows.len().min((room / 2).max(1));
    let mut out = text::head(reading);
    let seconds = left.as_secs_f64().ceil() as u64;
    _ = writeln!(out, "{} left (Ctrl-C ends it)\n", plural(seconds, "second"));
    out.push_str(&tables::intervals(trace, rows[rows.len() - newest..].iter()).text());
    out.push('\n');
    let connections = (room.saturating_sub(newest) / 2).max(1);
    out.push_str(&tables::by_connection(worst(trace, connections)).text());
    clipped(&out, size)
}

/// A line that wraps, or one too many, could not be taken away again.
fn clipped(text: &str, size: Size) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines().take(size.rows.saturating_sub(1)) {
        out.extend(line.chars().take(size.columns));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_fits_the_terminal() {
        let text = "one line that is long\nanother\nand a third\n";
        assert_eq!(clipped(text, Size { columns: 8, rows: 3 }), "one line\nanother\n");
        assert_eq!(clipped(text, Size { columns: 80, rows: 24 }), text);
    }
}
