//! The report of one run, or of several side by side, as a page.

use std::fmt::{self, Write as _};

use page::{Answer, COLOURS, Cell, Page, escaped, milliseconds, table, tiles};

use crate::answer::answer;
use crate::charts::charts;
use crate::compare;
use crate::compare::{change, rows};
use crate::latency::Summary;
use crate::named::Named;
use crate::run::Run;
use crate::trials;
use crate::words::started;

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
    let (drawn, flat) = charts(runs);
    if !drawn.is_empty() {
        let _ = page.write_str("<h2>Over time</h2>\n");
    }
    page.charts(drawn);
    if !flat.is_empty() {
        let _ = writeln!(
            page,
            "<p class=\"soft\">Zero throughout, and not drawn: {}.</p>",
            escaped(&flat.join(", ").to_lowercase())
        );
    }
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

/// When and where a run was made.
fn origin(run: &Run) -> String {
    let Run { started_at, host, weir, .. } = run;
    format!(
        "{started_at} from {} (kernel {}, {} CPUs), weir {weir}",
        host.name, host.kernel, host.cpus
    )
}

fn single(out: &mut Page, run: &Run) -> fmt::Result {
    answer(run).write(out, &heading(run))?;
    if run.kind == "limit" {
        out.write_str("<h2>The search</h2>\n")?;
        if let Some(chart) = trials::chart(run) {
            out.charts([chart]);
        }
        out.write_str("<section class=\"card\"><h3>Trials</h3>")?;
        trials::write_table(out, run)?;
        out.write_str("</section>\n")?;
        writeln!(out, "<h2>{}</h2>", shown_of_search(run))?;
    }
    tiles(out, figures(run))?;
    writeln!(
        out,
        "<p class=\"soft small\">{}<br><code>{}</code></p>",
        escaped(&origin(run)),
        escaped(&run.command.join(" "))
    )
}

/// Which of a search's trials has its figures shown.
pub fn shown_of_search(run: &Run) -> &'static str {
    let is_sustained = run.limit.as_ref().is_none_or(|limit| limit.sustained_per_s.is_some());
    if is_sustained { "The run at the highest rate that was sustained" } else { "The last trial" }
}

/// The main figures of a run.
fn figures(run: &Run) -> Vec<(&'static str, String)> {
    let user = run.latency.intended_start.as_ref();
    let times = user.unwrap_or(&run.latency.service);
    let percent = |part: u64, whole: u64| part as f64 / whole.max(1) as f64 * 100.0;
    let (requests, answered) = started(run);
    let mut figures = vec![
        (requests, run.totals.requests.to_string()),
        (answered, format!("{:.1} /s", run.rate.responses_per_s)),
    ];
    if let Some(intended) = run.rate.intended_per_s {
        figures.push(("intended", format!("{intended:.1} /s")));
    }
    let errors = percent(run.totals.errors, run.totals.requests);
    figures.push(("errors", format!("{errors:.2} %")));
    if run.kind != "connect" {
        let bad = percent(compare::bad(run), run.totals.responses);
        figures.push(("status 400 or higher", format!("{bad:.2} %")));
    }
    if times.count > 0 {
        let names = if user.is_some() {
            ["p50 from intended start", "p99 from intended start", "max from intended start"]
        } else {
            ["p50 of service time", "p99 of service time", "max of service time"]
        };
        let values = [times.p50_ms, times.p99_ms, times.max_ms].map(milliseconds);
        figures.extend(names.into_iter().zip(values));
    }
    figures
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
    out.write_str("<h2>Figures</h2>\n")?;
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
    titled(out, "Targets", &["target", "weight", "addresses"], &targets.collect::<Vec<_>>())
}

/// Writes a table with a title, unless it has no rows.
fn titled(out: &mut Page, title: &str, heads: &[&str], rows: &[Vec<String>]) -> fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    write!(out, "<section class=\"card\"><h3>{}</h3>", escaped(title))?;
    table(out, title, heads.iter().copied(), rows)?;
    out.write_str("</section>\n")
}

/// A run's colour in the charts.
fn key(index: usize) -> String {
    format!("<span class=\"key k{}\"></span>", index % COLOURS)
}

/// The head of a comparison: the runs and their figures.
fn several(out: &mut Page, runs: &[Named]) -> fmt::Result {
    comparison(runs).write(out, &format!("{} runs compared", runs.len()))?;
    let described = runs.iter().enumerate().map(|(index, named)| {
        let run = &named.run;
        let answer = answer(run);
        let about = format!(
            "{}{}<br><span class=\"soft small\">{}, {}<br><code>{}</code></span>",
            answer.tone.mark(),
            escaped(&answer.headline),
            escaped(&heading(run)),
            escaped(&origin(run)),
            escaped(&run.command.join(" "))
        );
        [
            Cell::markup(format!("{}{}", key(index), escaped(&named.name))),
            Cell::markup(about).class("text"),
        ]
    });
    out.write_str("<section class=\"card\">")?;
    table(out, "Runs", [] as [&str; 0], described)?;
    out.write_str("</section>")?;
    differences(out, runs)
}

/// What changed most for users: the 99th percentile and what was answered, beside the first run's.
fn comparison(runs: &[Named]) -> Answer {
    let rows = rows(runs);
    let row = |labels: &[&str]| {
        let known = |row: &&compare::Row| row.values.iter().all(|value| value != "-");
        labels.iter().find_map(|label| rows.iter().filter(known).find(|row| row.label == *label))
    };
    let sentence = |row: &compare::Row, index: usize| {
        let percent = row.changes[index].map(change).map(|text| format!(" ({text})"));
        let (now, before) = (&row.values[index], &row.values[0]);
        format!("{} {now} instead of {before}{}", row.label, percent.unwrap_or_default())
    };
    let chosen: Vec<_> = [row(&["p99 from intended start", "service p99"]), row(&["responses"])]
        .into_iter()
        .flatten()
        .collect();
    let against = |index: usize| {
        let all: Vec<String> = chosen.iter().map(|row| sentence(row, index)).collect();
        format!("{}: {}", runs[index].name, all.join(", "))
    };
    let mut lines = (1..runs.len()).map(against);
    let first = runs.first().map_or("", |named| named.name.as_str());
    let headline = match runs.len() {
        2 => lines.next().unwrap_or_default(),
        count => format!("{count} runs, compared with {first}"),
    };
    Answer { headline, details: lines.collect(), ..Answer::default() }
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
    out.write_str("<h2>Figures</h2><section class=\"card\">")?;
    table(out, "Figures", std::iter::once(Cell::from("")).chain(names), rows)?;
    out.write_str("</section>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RanOut, Rate, Source, Target, Whose};

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
        let mut run = Run { rate, ..Run::default() };
        (run.totals.requests, run.totals.responses) = (1, 1);
        let page = page(&[Named { name: "a".to_owned(), run }]);
        assert!(page.contains("Only 561 of 1000 intended requests/s were started (56.1 %)"));
    }
}
