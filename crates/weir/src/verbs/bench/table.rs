//! A run's results as a table, readable without colour and without a terminal.

use std::fmt::Write as _;

use load::engine::Failure;
use load_report::Summary;
use load_report::run::Run;
use load_report::{answer, resource};

/// The table. `interrupted`: a signal ended the run early.
pub(crate) fn text(run: &Run, interrupted: bool, colours: bool) -> String {
    let mut text = String::new();
    warnings(run, &mut text, colours);
    if interrupted {
        text.push_str("Ended by a signal; these are the figures so far.\n\n");
    }
    // The warnings say it already.
    if run.broken_off.is_none() && !load::verdict::falls_short(run) {
        let _ = writeln!(text, "{}\n", bold(&answer(run).headline, colours));
    }
    text + &figures(run)
}

/// The answer of a search for the limit and what it rests on, a line each.
pub(crate) fn answer_of_search(run: &Run, colours: bool) -> String {
    let answer = answer(run);
    let details = answer.details.iter().map(|detail| format!("  {detail}\n"));
    format!("{}\n{}", bold(&answer.headline, colours), details.collect::<String>())
}

/// The table without what stands first.
pub(crate) fn figures(run: &Run) -> String {
    let mut text = String::new();
    overview(run, &mut text);
    times(run, &mut text);
    answers(run, &mut text);
    text
}

fn bold(text: &str, colours: bool) -> String {
    if colours { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

/// A line that begins with two words in a column of their own.
fn row(text: &mut String, name: &str, what: &str) {
    let _ = writeln!(text, "{name:<14} {what}");
}

fn warnings(run: &Run, text: &mut String, colours: bool) {
    let (loud, quiet) = if colours { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    if let Some(why) = &run.broken_off {
        let _ = writeln!(
            text,
            "{loud}ABORTED{quiet}: a thread of the load generator ended early ({why}), and the run \
             with it; the figures cover the time until then."
        );
    }
    if let Some(intended) = run.rate.intended_per_s
        && load::verdict::falls_short(run)
    {
        let achieved = run.rate.achieved_per_s;
        let _ = writeln!(
            text,
            "{loud}NOT THE LOAD YOU ASKED FOR{quiet}: {achieved:.1} of {intended:.1} requests per \
             second began ({:.1} %); {} were dropped.",
            achieved * 100.0 / intended,
            count(run.totals.dropped_starts)
        );
    }
    for ran_out in &run.ran_out {
        let _ = writeln!(
            text,
            "{loud}Ran out{quiet}: {}: {}.",
            resource(ran_out),
            ran_out.evidence.trim_end_matches('.')
        );
    }
    for note in &run.notes {
        let _ = writeln!(text, "Note: {note}.");
    }
    if !text.is_empty() {
        text.push('\n');
    }
}

fn overview(run: &Run, text: &mut String) {
    let totals = &run.totals;
    for target in &run.targets {
        let weight = if run.targets.len() > 1 {
            format!("  weight {}", target.weight)
        } else {
            String::new()
        };
        row(text, "Target", format!("{} {}{weight}", target.method, target.url).trim_start());
    }
    load_row(run, text);
    requests_rows(run, text);
    let (is_connect, each) = (run.kind == "connect", responses(run));
    let mut rate = format!("{} {each}/s", decimal(run.rate.responses_per_s));
    if let Some(intended) = run.rate.intended_per_s {
        let achieved = run.rate.achieved_per_s;
        let _ = write!(
            rate,
            "; {}/s intended, {}/s begun ({:.2} %)",
            decimal(intended),
            decimal(achieved),
            achieved * 100.0 / intended.max(1e-9)
        );
    }
    row(text, "Rate", &rate);
    if run.rate.intended_per_s.is_some() {
        row(
            text,
            "Starts",
            &format!(
                "{} late by more than 1 ms, {} dropped",
                count(totals.late_starts),
                count(totals.dropped_starts)
            ),
        );
    }
    if !is_connect {
        row(
            text,
            "Bytes",
            &format!(
                "{} received ({} of bodies), {} sent; {}/s received",
                bytes(totals.bytes_in as f64),
                bytes(totals.body_bytes_in as f64),
                bytes(totals.bytes_out as f64),
                bytes(totals.bytes_in as f64 / totals.duration_s.max(1e-9))
            ),
        );
        row(text, "Connections", &format!("{} opened", count(totals.connections)));
    }
    let cpu = totals.cpu_user_s + totals.cpu_system_s;
    row(
        text,
        "CPU",
        &format!(
            "{cpu:.2} s used here ({:.2} user, {:.2} system): {} {each} per CPU second",
            totals.cpu_user_s,
            totals.cpu_system_s,
            count((totals.responses as f64 / cpu.max(1e-9)) as u64)
        ),
    );
}

/// What a run's answers are called.
fn responses(run: &Run) -> &'static str {
    if run.kind == "connect" { "connections" } else { "responses" }
}

/// How load was made.
fn load_row(run: &Run, text: &mut String) {
    let shape = &run.shape;
    let protocol = match shape.protocol.as_str() {
        "http/1.1" => "HTTP/1.1, ",
        "h2" => "HTTP/2, ",
        _ => "",
    };
    let kept = match (shape.protocol.as_str(), shape.keep_alive) {
        ("", _) => "closed at once",
        (_, true) => "kept",
        (_, false) => "one for each request",
    };
    let model = match shape.model.as_str() {
        "open" => "starts by the clock",
        _ => "closed loop",
    };
    row(
        text,
        "Load",
        &format!(
            "{protocol}{model}, {} connections at most, {kept}, {} thread{}",
            shape.connections_max,
            shape.threads,
            if shape.threads == 1 { "" } else { "s" }
        ),
    );
}

/// What was sent, and what came of it.
fn requests_rows(run: &Run, text: &mut String) {
    let totals = &run.totals;
    let (name, ended) = match run.kind.as_str() {
        "connect" => ("Connections", "made"),
        _ => ("Requests", "answered"),
    };
    let cut_off = match totals.cut_off {
        0 => String::new(),
        number => format!(", {} cut off at the end", count(number)),
    };
    row(
        text,
        name,
        &format!(
            "{} in {:.2} s: {} {ended}, {} failed{cut_off}",
            count(totals.requests),
            totals.duration_s,
            count(totals.responses),
            count(totals.errors),
        ),
    );
    if totals.given_back > 0 {
        let times = count(totals.given_back);
        let why = "given back by the server, which had not looked at them (GOAWAY, REFUSED_STREAM)";
        row(text, "Sent again", &format!("{times} {why}"));
    }
}

fn times(run: &Run, text: &mut String) {
    let latency = &run.latency;
    let _ = writeln!(
        text,
        "\n{:<22} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "Times", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"
    );
    let mut line = |name: &str, times: &Summary| {
        if times.count == 0 {
            return;
        }
        let figures = [
            times.mean_ms,
            times.p50_ms,
            times.p90_ms,
            times.p99_ms,
            times.p99_9_ms,
            times.p99_99_ms,
            times.max_ms,
        ];
        let _ = write!(text, "{name:<22}");
        for figure in figures {
            let _ = write!(text, " {:>9}", millis(figure));
        }
        text.push('\n');
    };
    if let Some(intended) = &latency.intended_start {
        line("from intended start", intended);
    }
    let is_connect = run.kind == "connect";
    if !is_connect {
        line("service time", &latency.service);
    }
    line("  connect", &latency.phases.connect);
    line("  TLS", &latency.phases.tls);
    if !is_connect {
        line("  first byte", &latency.phases.first_byte);
        line("  transfer", &latency.phases.transfer);
        line("TCP round trip", &latency.phases.round_trip);
    }
    if let Some(lateness) = &latency.lateness {
        line("lateness of starts", lateness);
    }
    if let Some(timer) = &latency.timer_lateness {
        line("  an empty timer's", timer);
    }
}

fn answers(run: &Run, text: &mut String) {
    let totals = &run.totals;
    if !totals.statuses.is_empty() {
        text.push('\n');
        let statuses = totals.statuses.iter().map(|(status, n)| format!("{status}: {}", count(*n)));
        row(text, "Statuses", &statuses.collect::<Vec<_>>().join(", "));
    }
    if !totals.errors_by_kind.is_empty() {
        text.push('\n');
    }
    for (kind, number) in &totals.errors_by_kind {
        let known = Failure::ALL.iter().find(|failure| failure.as_str() == kind);
        let what = known.map(|failure| failure.text()).unwrap_or_default();
        row(text, "Failed", &format!("{} {kind}: {what}", count(*number)));
    }
    if !run.expectations.is_empty() {
        text.push('\n');
    }
    for expectation in &run.expectations {
        let held = if expectation.held { "holds" } else { "DOES NOT HOLD" };
        row(text, "Expected", &format!("{} {held}: {}", expectation.text, expectation.measured));
    }
}

/// With thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Small numbers with a decimal, large ones without.
fn decimal(number: f64) -> String {
    if number < 1_000.0 { format!("{number:.1}") } else { count(number.round() as u64) }
}

/// Milliseconds in the unit that suits them.
pub(crate) fn millis(millis: f64) -> String {
    match millis {
        _ if millis < 1.0 => format!("{:.0} µs", millis * 1e3),
        _ if millis < 10.0 => format!("{millis:.2} ms"),
        _ if millis < 100.0 => format!("{millis:.1} ms"),
        _ if millis < 10_000.0 => format!("{millis:.0} ms"),
        _ => format!("{:.1} s", millis / 1e3),
    }
}

/// Bytes in the unit that suits them.
pub(crate) fn bytes(number: f64) -> String {
    match number {
        _ if number < 1e3 => format!("{number:.0} B"),
        _ if number < 1e6 => format!("{:.1} kB", number / 1e3),
        _ if number < 1e9 => format!("{:.1} MB", number / 1e6),
        _ => format!("{:.2} GB", number / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_units_that_suit_them() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(millis(0.25), "250 µs");
        assert_eq!(millis(3.456), "3.46 ms");
        assert_eq!(millis(12_345.0), "12.3 s");
        assert_eq!(bytes(180e6), "180.0 MB");
    }
}
