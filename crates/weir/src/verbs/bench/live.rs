//! Shows progress during a run, on standard error: a few lines redrawn every second on a terminal,
//! otherwise a line from time to time.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{IsTerminal, stderr};
use std::time::Duration;

use load::account::percentiles;
use load::engine::plan::{Plan, Shape};
use load::engine::{Counts, Interval};

use crate::flags::Common;

use super::table::{bytes, count, millis};

/// Seconds in the chart, at most.
const CHART_SECONDS: usize = 60;
/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;
/// Fewer are not drawn for.
const COLUMNS_MIN: usize = 40;
/// What stands before a chart and behind it.
const BESIDE_CHART: usize = 32;
/// Without a terminal, a run of more seconds than this has a line every ten seconds only.
const LINE_EACH_SECOND_S: u64 = 30;
/// What a chart is drawn with, from nothing to most.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How much of a run is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// Nothing.
    Nothing,
    /// Each second; without a terminal, of long runs only every tenth.
    Seconds,
    /// On a terminal each second, otherwise only every tenth: for one of many runs.
    TenSeconds,
}

impl Shows {
    /// What is shown of a run of its own.
    pub(crate) fn unless_quiet(is_quiet: bool) -> Shows {
        if is_quiet { Shows::Nothing } else { Shows::Seconds }
    }
}

/// The view of one run.
pub(crate) struct Live {
    shows: Shows,
    is_terminal: bool,
    time: Option<Duration>,
    requests: Option<u64>,
    is_open: bool,
    /// What will have been intended, by second.
    intended: Box<dyn Fn(u64) -> f64>,
    begun: u64,
    /// Of the last [`CHART_SECONDS`] at most.
    rates: VecDeque<f64>,
    p99s: VecDeque<f64>,
    /// Seconds since the last line.
    gathered: Option<Interval>,
    drawn_lines: usize,
}

impl Live {
    pub(crate) fn new(plan: &Plan, shows: Shows, common: Common) -> Live {
        let requests = match &plan.shape {
            Shape::Closed { requests, .. } => *requests,
            Shape::Open { .. } => None,
        };
        let intended: Box<dyn Fn(u64) -> f64> = match &plan.shape {
            Shape::Closed { .. } => Box::new(|_| 0.0),
            Shape::Open { profile, .. } => {
                let profile = std::sync::Arc::clone(profile);
                let until = move |second| profile.count_until(Duration::from_secs(second));
                Box::new(move |second| until(second + 1) - until(second))
            }
        };
        let is_terminal = can_draw(common);
        Live {
            shows,
            is_terminal,
            time: plan.shape.time(),
            requests,
            is_open: plan.shape.is_open(),
            intended,
            begun: 0,
            rates: VecDeque::new(),
            p99s: VecDeque::new(),
            gathered: None,
            drawn_lines: 0,
        }
    }

    /// A second has ended.
    pub(crate) fn second(&mut self, interval: &Interval) {
        self.begun += interval.counts.started;
        let is_silent = interval.counts == Counts::default() && interval.in_flight == 0;
        if self.shows == Shows::Nothing || (is_silent && interval.second > 0) {
            return;
        }
        let times = if self.is_open { &interval.intended } else { &interval.service };
        keep(&mut self.rates, interval.counts.responses as f64);
        keep(&mut self.p99s, percentiles(times).map_or(0.0, |times| times.p99_ms));
        if self.is_terminal {
            self.draw(interval);
        } else {
            self.gather(interval);
        }
    }

    /// Says something in between.
    pub(crate) fn say(&mut self, text: &str) {
        self.wipe();
        super::output::show(&format!("weir: {text}\n"));
    }

    /// The run is over.
    pub(crate) fn end(&mut self) {
        self.wipe();
        if let Some(left) = self.gathered.take()
            && self.shows == Shows::Seconds
            && left.counts.started + left.counts.responses + left.counts.errors > 0
        {
            super::output::show(&format!("{}\n", self.line(&left, 1)));
        }
    }

    /// Without a terminal.
    fn gather(&mut self, interval: &Interval) {
        let mut sum = self.gathered.take().unwrap_or_else(|| Interval::new(interval.second, 0));
        let first = sum.second;
        sum.add(interval);
        sum.connections_open = interval.connections_open;
        sum.in_flight = interval.in_flight;
        let is_one_of_many = self.shows == Shows::TenSeconds;
        let is_short = self.time.is_some_and(|time| time.as_secs() <= LINE_EACH_SECOND_S);
        let every = if is_short && !is_one_of_many { 1 } else { 10 };
        let seconds = interval.second + 1 - first;
        let is_first = interval.second == 0 && !is_one_of_many;
        if seconds >= every || is_first {
            super::output::show(&format!("{}\n", self.line(&sum, seconds)));
        } else {
            self.gathered = Some(sum);
        }
    }

    fn line(&self, sum: &Interval, seconds: u64) -> String {
        let counts = &sum.counts;
        let mut line = format!("{:>4} s", sum.second + seconds);
        // Nothing begins any more, and what is under way is waited for.
        let is_over = self.time.is_some_and(|time| sum.second >= time.as_secs_f64().ceil() as u64);
        match self.time {
            Some(_) if is_over => line.push_str(", the last"),
            Some(time) => {
                let _ = write!(line, " of {}", time.as_secs_f64().ceil());
            }
            None => {}
        }
        let _ = write!(line, "  {}/s", count(counts.responses / seconds.max(1)));
        if self.is_open && !is_over {
            let intended: f64 =
                (sum.second..sum.second + seconds).map(|s| (self.intended)(s)).sum();
            let _ = write!(line, " of {:.0}", intended / seconds.max(1) as f64);
        }
        let times = if self.is_open { &sum.intended } else { &sum.service };
        if let Some(times) = percentiles(times) {
            let _ = write!(line, "  p50 {}  p99 {}", millis(times.p50_ms), millis(times.p99_ms));
        }
        let bad = counts.errors + counts.bad_statuses;
        let _ = write!(line, "  errors {bad}");
        if counts.dropped > 0 {
            let _ = write!(line, "  dropped {}", counts.dropped);
        }
        let _ = write!(line, "  connections {}", sum.connections_open);
        line
    }

    /// On a terminal.
    fn draw(&mut self, interval: &Interval) {
        let columns =
            os::terminal::size(stderr()).map_or(COLUMNS, |size| size.columns).max(COLUMNS_MIN);
        let last = |values: &VecDeque<f64>| -> Vec<f64> {
            let from = values.len().saturating_sub(columns - BESIDE_CHART);
            values.iter().skip(from).copied().collect()
        };
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let (rates, p99s) = (last(&self.rates), last(&self.p99s));
        let mut text = String::new();
        let _ = writeln!(text, "{}", self.progress(interval.second + 1));
        let _ = writeln!(text, "{}", self.line(interval, 1));
        let _ = writeln!(
            text,
            "responses/s {}  most {}",
            chart(&rates),
            count(most(&rates).round() as u64)
        );
        let _ = writeln!(text, "p99         {}  most {}", chart(&p99s), millis(most(&p99s)));
        let _ = writeln!(text, "received    {}/s", bytes(interval.counts.bytes_in as f64));
        let text = fit(&text, columns);
        self.wipe();
        self.drawn_lines = text.lines().count();
        super::output::show(&text);
    }

    /// How far it is, and how long it will still be.
    fn progress(&self, second: u64) -> String {
        let (share, left) = match (self.time, self.requests) {
            (_, Some(requests)) => {
                let share = self.begun as f64 / requests.max(1) as f64;
                let left = second as f64 * (1.0 - share) / share.max(1e-6);
                (share, left)
            }
            (Some(time), None) => {
                let whole = time.as_secs_f64();
                (second as f64 / whole, whole - second as f64)
            }
            (None, None) => (0.0, 0.0),
        };
        let share = share.clamp(0.0, 1.0);
        let full = (share * 30.0) as usize;
        let bar: String = (0..30).map(|n| if n < full { '█' } else { '░' }).collect();
        format!("{bar} {:>3.0} %, {:.0} s left  (Ctrl-C ends it)", share * 100.0, left.max(0.0))
    }

    /// Takes away what was drawn.
    fn wipe(&mut self) {
        if self.drawn_lines > 0 {
            // Up so many lines, and clear from there to the end of the screen.
            super::output::show(&format!("\x1b[{}A\x1b[J", self.drawn_lines));
            self.drawn_lines = 0;
        }
    }
}

/// Whether standard error is a terminal that can be drawn on. Who turns colours off wants no drawing
/// either.
pub(crate) fn can_draw(common: Common) -> bool {
    stderr().is_terminal() && common.colours_stderr()
}

/// Keeps a second's figure for the chart.
fn keep(values: &mut VecDeque<f64>, value: f64) {
    if values.len() == CHART_SECONDS {
        values.pop_front();
    }
    values.push_back(value);
}

/// Lines that no terminal of so many columns breaks: they are broken here, between figures (two
/// spaces), or cut. What is drawn can then be wiped by its number of lines.
fn fit(text: &str, columns: usize) -> String {
    let width = |text: &str| text.chars().count();
    let mut fitted = String::new();
    for line in text.lines() {
        let mut rest = line;
        while width(rest) > columns {
            let end = rest.char_indices().nth(columns).map_or(rest.len(), |(at, _)| at);
            // Not within what the line begins with.
            let from = rest.find(|c: char| c != ' ').unwrap_or(0);
            if let Some(at) = rest[from..end].rfind("  ") {
                let (head, tail) = rest.split_at(from + at);
                fitted.push_str(head.trim_end());
                rest = &tail[1..];
            } else {
                fitted.push_str(&rest[..end]);
                rest = "";
            }
            fitted.push('\n');
            if rest.is_empty() {
                break;
            }
        }
        if !rest.is_empty() {
            fitted.push_str(rest);
            fitted.push('\n');
        }
    }
    fitted
}

/// A bar for each value, the highest for the greatest.
pub(crate) fn chart(values: &[f64]) -> String {
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    values.iter().map(|value| BARS[(value / most * 8.0).round() as usize % 9]).collect()
}

#[cfg(test)]
mod tests {
    use super::{chart, fit};

    #[test]
    fn no_line_is_longer_than_the_terminal_is_wide() {
        let line =
            "  12 s of 300  12,345/s of 12345  p50 1.23 ms  p99 12.3 ms  errors 0  dropped 12";
        let text = format!("{line}\nresponses/s ▁▄█  most 9\n");
        for columns in 40..100 {
            let fitted = fit(&text, columns);
            assert!(fitted.lines().all(|line| line.chars().count() <= columns), "{fitted}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&fitted), words(&text), "nothing is lost at {columns}");
        }
        assert_eq!(fit(&text, 60).lines().count(), 3);
        assert_eq!(fit(&text, 200), text);
        let long = "█".repeat(50);
        assert_eq!(fit(&long, 40), format!("{}\n", "█".repeat(40)), "cut where it can't be broken");
    }

    #[test]
    fn a_chart_reaches_from_nothing_to_the_most() {
        assert_eq!(chart(&[0.0, 1.0, 4.0, 8.0]), " ▁▄█");
        assert_eq!(chart(&[0.0, 0.0]), "  ");
        assert_eq!(chart(&[]), "");
    }
}
