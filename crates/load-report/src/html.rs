//! The report of one run, or of several side by side, as a page.

use std::fmt::{self, Write as _};

use page::{COLOURS, Cell, Page, escaped, milliseconds, table};

use crate::charts::charts;
use crate::compare;
use crate::compare::{change, rows};
use crate::latency::Summary;
use crate::named::Named;
use crate::run::{Run, Whose};

/// Below this share of the intended rate the generator did not deliver what was asked for.
const ACHIEVED_MIN: f64 = 0.99;

/// Returns the page of one run, or of several side by side.
pub fn page(runs: &[Named]) -> String {
    let title = match runs {
        [one] => heading(&one.run),
        many => format!("{} runs compared", many.len()),
    };
    let mut page = Page::new("weir bench", &title, "");
    // Writing to a page cannot fail, here and below.
    let _ = match runs {
        [one] => single(&mut page, &one.run),
        many => several(&mut page, many),
    };
    page.charts(charts(runs));
    if let [one] = runs {
        let _ = tables(&mut page, &one.run);
    }
    page.finish()
}

/// What was measured, in a few words.
fn heading(run: &Run) -> String {
    match run.targets.as_slice() {
        [] => "A run of load".to_owned(),
        [one] => one.url.clone(),
        [first, rest @ ..] => format!("{} and {} more", first.url, rest.len()),
    }
}

fn single(out: &mut Page, run: &Run) -> fmt::Result {
    write!(out, "<h1>{}</h1>", escaped(&heading(run)))?;
    write!(
        out,
        "<p class=\"soft small\">{} from {} (kernel {}, {} CPUs), weir {}<br><code>{}</code></p>",
        escaped(&run.started_at),
        escaped(&run.host.name),
        escaped(&run.host.kernel),
        run.host.cpus,
        escaped(&run.weir),
        escaped(&run.command.join(" "))
    )?;
    for line in warnings(run) {
        write!(out, "<p class=\"said\">{}</p>", escaped(&line))?;
    }
    tiles(out, run)
}

/// What the reader must know before the figures.
fn warnings(run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(why) = &run.broken_off {
        lines.push(format!(
            "Aborted: a thread of the load generator ended early ({why}). The figures cover the time \
             until then."
        ));
    }
    if let Some(intended) = run.rate.intended_per_s {
        let achieved = run.rate.achieved_per_s;
        if achieved < intended * ACHIEVED_MIN {
            lines.push(format!(
                "Only {achieved:.1} of {intended:.1} intended requests/s were started ({:.1} %): the \
                 figures do not show the intended rate.",
                achieved / intended * 100.0
            ));
        }
    }
    for ran_out in &run.ran_out {
        let whose = match ran_out.whose {
            Whose::Generator => {
                "of the load generator, so the figures do not show the server's limit"
            }
            Whose::Link => "of the link",
            Whose::Server => "of the server",
            Whose::Unknown => "of an unknown part",
        };
        lines.push(format!("Exhausted: {} {whose}. {}", ran_out.what, ran_out.evidence));
    }
    let failed = run.expectations.iter().filter(|expectation| !expectation.held);
    lines.extend(failed.map(|e| format!("Expected {}, but measured {}.", e.text, e.measured)));
    lines
}

fn tiles(out: &mut Page, run: &Run) -> fmt::Result {
    let user = run.latency.intended_start.as_ref();
    let times = user.unwrap_or(&run.latency.service);
    let of = if user.is_some() { "from the intended start" } else { "service time" };
    let percent = |part: u64, whole: u64| part as f64 / whole.max(1) as f64 * 100.0;
    let mut tiles = vec![
        ("requests".to_owned(), run.totals.requests.to_string()),
        ("answered per second".to_owned(), format!("{:.1}", run.rate.responses_per_s)),
    ];
    if let Some(intended) = run.rate.intended_per_s {
        tiles.push(("intended per second".to_owned(), format!("{intended:.1}")));
    }
    let errors = percent(run.totals.errors, run.totals.requests);
    let bad = percent(compare::bad(run), run.totals.responses);
    tiles.extend([
        ("errors".to_owned(), format!("{errors:.2} %")),
        ("status 400 or higher".to_owned(), format!("{bad:.2} %")),
    ]);
    if times.count > 0 {
        for (name, value) in [
            ("p50", times.p50_ms),
            ("p99", times.p99_ms),
            ("p99.9", times.p99_9_ms),
            ("max", times.max_ms),
        ] {
            tiles.push((format!("{name} {of}"), milliseconds(value)));
        }
    }
    out.write_str("<div class=\"tiles\">")?;
    for (name, value) in tiles {
        write!(
            out,
            "<div class=\"tile\"><b>{}</b><span class=\"soft small\">{}</span></div>",
            escaped(&value),
            escaped(&name)
        )?;
    }
    out.write_str("</div>")
}

/// Times of a run, with those of its parts.
fn times(out: &mut Page, run: &Run) -> fmt::Result {
    let phases = &run.latency.phases;
    let named: [(&str, Option<&Summary>); 11] = [
        ("from the intended start", run.latency.intended_start.as_ref()),
        ("service time", Some(&run.latency.service)),
        ("lateness of starts", run.latency.lateness.as_ref()),
        ("lateness of an empty timer", run.latency.timer_lateness.as_ref()),
        ("name look-up", Some(&phases.dns)),
        ("connect", Some(&phases.connect)),
        ("TLS handshake", Some(&phases.tls)),
        ("first byte", Some(&phases.first_byte)),
        ("transfer", Some(&phases.transfer)),
        ("total", Some(&phases.total)),
        ("TCP round trip", Some(&phases.round_trip)),
    ];
    let mut rows = Vec::new();
    for (name, summary) in named {
        let Some(s) = summary.filter(|summary| summary.count > 0) else { continue };
        let times =
            [s.min_ms, s.mean_ms, s.p50_ms, s.p90_ms, s.p99_ms, s.p99_9_ms, s.p99_99_ms, s.max_ms];
        let mut row = vec![name.to_owned(), s.count.to_string()];
        row.extend(times.map(milliseconds));
        rows.push(row);
    }
    let heads = ["", "count", "min", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"];
    titled(out, "Times", &heads, &rows)
}

/// The tables below the charts of one run.
fn tables(out: &mut Page, run: &Run) -> fmt::Result {
    out.write_str("<div class=\"tables\">")?;
    times(out, run)?;
    let counted = |map: &std::collections::BTreeMap<String, u64>| -> Vec<Vec<String>> {
        map.iter().map(|(name, count)| vec![name.clone(), count.to_string()]).collect()
    };
    titled(out, "Responses by status", &["status", "responses"], &counted(&run.totals.statuses))?;
    titled(out, "Errors by kind", &["kind", "requests"], &counted(&run.totals.errors_by_kind))?;
    let targets = run.targets.iter().map(|target| {
        vec![
            format!("{} {}", target.method, target.url).trim().to_owned(),
            target.weight.to_string(),
            target.addresses.join(", "),
        ]
    });
    titled(out, "Targets", &["target", "weight", "addresses"], &targets.collect::<Vec<_>>())?;
    let steps = run.steps.iter().map(|step| {
        vec![
            format!("{:.1}/s", step.rate_per_s),
            format!("{:.1}/s", step.achieved_per_s),
            milliseconds(step.p99_ms),
            format!("{:.2} %", step.errors_percent),
            if step.passed { "sustained" } else { "not sustained" }.to_owned(),
            step.why.clone(),
        ]
    });
    let heads = ["intended", "started", "p99", "errors", "outcome", "why"];
    titled(out, "Search for the limit", &heads, &steps.collect::<Vec<_>>())?;
    let notes: Vec<Vec<String>> = run.notes.iter().map(|note| vec![note.clone()]).collect();
    titled(out, "Notes", &["note"], &notes)?;
    out.write_str("</div>")
}

/// Writes a table with a title, unless it has no rows.
fn titled(out: &mut Page, title: &str, heads: &[&str], rows: &[Vec<String>]) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    write!(out, "<section class=\"table\"><h3>{}</h3>", escaped(title))?;
    table(out, heads, rows)?;
    out.write_str("</section>")
}

/// A run's colour in the charts.
fn key(index: usize) -> String {
    format!("<span class=\"key k{}\"></span>", index % COLOURS)
}

/// The head of a comparison: the runs and their figures.
fn several(out: &mut Page, runs: &[Named]) -> fmt::Result {
    write!(out, "<h1>{} runs compared</h1>", runs.len())?;
    let described = runs.iter().enumerate().map(|(index, named)| {
        let run = &named.run;
        let about = format!(
            "{}<br>{} from {}<br><code>{}</code>",
            escaped(&heading(run)),
            escaped(&run.started_at),
            escaped(&run.host.name),
            escaped(&run.command.join(" "))
        );
        [
            Cell::markup(format!("{}{}", key(index), escaped(&named.name))).class("text"),
            Cell::markup(about).class("text soft small"),
        ]
    });
    table(out, [] as [&str; 0], described)?;
    for named in runs {
        for line in warnings(&named.run) {
            write!(out, "<p class=\"said\">{}: {}</p>", escaped(&named.name), escaped(&line))?;
        }
    }
    differences(out, runs)
}

/// The figures of several runs, with their changes from the first one's.
fn differences(out: &mut Page, runs: &[Named]) -> fmt::Result {
    let names = runs.iter().enumerate().map(|(index, named)| {
        let base = if index == 0 { " (base)" } else { "" };
        Cell::markup(format!("{}{}{base}", key(index), escaped(&named.name)))
    });
    let rows = rows(runs).into_iter().map(|row| {
        let values = row.values.iter().zip(&row.changes).map(move |(value, percent)| {
            let Some(percent) = percent else { return Cell::from(value) };
            let class = match row.less_is_better {
                _ if percent.abs() < 0.05 => "soft",
                None => "soft",
                Some(less) if less == (*percent < 0.0) => "better",
                Some(_) => "worse",
            };
            let change = escaped(&change(*percent));
            Cell::markup(format!(
                "{} <span class=\"small {class}\">{change}</span>",
                escaped(value)
            ))
        });
        std::iter::once(Cell::from(row.label)).chain(values).collect::<Vec<_>>()
    });
    out.write_str("<section class=\"table\">")?;
    table(out, std::iter::once(Cell::from("")).chain(names), rows)?;
    out.write_str("</section>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RanOut, Rate, Source, Target};

    #[test]
    fn hostile_text_is_escaped_everywhere() {
        let evil = "</script><script>alert(1)</script><img src=x onerror=\"alert('2')\">\u{1b}[31m";
        let own = || evil.to_owned();
        let mut run = Run {
            weir: own(),
            command: vec![own()],
            started_at: own(),
            targets: vec![Target {
                url: own(),
                method: own(),
                addresses: vec![own()],
                ..Target::default()
            }],
            ran_out: vec![RanOut { whose: Whose::Link, what: own(), evidence: own() }],
            sources: vec![Source { address: own(), connected: vec![1, 2], failed: vec![] }],
            notes: vec![own()],
            broken_off: Some(own()),
            ..Run::default()
        };
        run.host.name = own();
        run.host.kernel = own();
        run.totals.statuses.insert(own(), 1);
        run.totals.errors_by_kind.insert(own(), 1);
        let named = || Named { name: own(), run: run.clone() };
        for page in [page(&[named()]), page(&[named(), named()])] {
            assert!(!page.contains("<script>alert"), "as a script");
            assert!(!page.contains("<img"), "as an element");
            assert!(!page.contains('\u{1b}'), "as a control character");
            // The three of the page's own.
            assert_eq!(page.matches("</script>").count(), 3);
            assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"), "it is shown");
        }
    }

    #[test]
    fn a_rate_that_was_not_reached_is_a_warning() {
        let rate =
            Rate { intended_per_s: Some(1000.0), achieved_per_s: 561.0, responses_per_s: 561.0 };
        let page = page(&[Named { name: "a".to_owned(), run: Run { rate, ..Run::default() } }]);
        assert!(page.contains("Only 561.0 of 1000.0 intended requests/s were started (56.1 %)"));
    }
}
