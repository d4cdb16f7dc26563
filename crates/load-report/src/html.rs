//! The page: one file with everything in it, that needs no network and no server. Figures and
//! tables are plain HTML, readable without scripts; the charts are drawn by uPlot.
//!
//! Nothing that came from outside (names, URLs, errors) stands in it unescaped.

use std::fmt::Write as _;

use wire::html::escaped;

use crate::charts::charts;
use crate::compare;
use crate::compare::{change, milliseconds, rows};
use crate::latency::Summary;
use crate::named::Named;
use crate::run::{Run, Whose};

/// uPlot 1.6.32 by Leon Sorokin, from the npm package's `dist`, MIT licence (`page/uplot-LICENSE`).
const UPLOT: &str = include_str!("page/uplot-1.6.32.min.js");
const UPLOT_CSS: &str = include_str!("page/uplot-1.6.32.min.css");
const UPLOT_LICENSE: &str = include_str!("page/uplot-LICENSE");
const CSS: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Nothing is loaded and nothing is sent, whatever stands in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";

/// Below this share of the intended rate the generator did not deliver what was asked for.
const ACHIEVED_MIN: f64 = 0.99;

/// The page of one run, or of several side by side.
pub fn page(runs: &[Named]) -> String {
    let charts = charts(runs);
    let data = serde_json::to_string(&charts).unwrap_or_else(|_| "[]".to_owned());
    let mut body = String::new();
    match runs {
        [one] => single(&mut body, &one.run),
        many => several(&mut body, many),
    }
    body.push_str("<div class=\"charts\">");
    for (index, chart) in charts.iter().enumerate() {
        // Writing to a String cannot fail, here and below.
        let _ = write!(
            body,
            "<figure><figcaption><h2>{}</h2><span class=\"soft small\">{}</span></figcaption>\
             <div id=\"chart-{index}\"></div></figure>",
            escaped(chart.title),
            escaped(&chart.note)
        );
    }
    body.push_str("</div>");
    if let [one] = runs {
        tables(&mut body, &one.run);
    }
    let title = match runs {
        [one] => heading(&one.run),
        many => format!("{} runs compared", many.len()),
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} · weir bench</title>\n<style>{UPLOT_CSS}{CSS}</style>\n</head>\n<body>\n<main>\n\
         {body}\n<p class=\"soft small\">Made by weir bench. Charts: uPlot, under the licence that \
         stands in this file's source.</p>\n</main>\n\
         <script type=\"application/json\" id=\"charts-data\">{}</script>\n\
         <script>\n/*\n{UPLOT_LICENSE}*/\n{UPLOT}</script>\n<script>{SCRIPT}</script>\n\
         </body>\n</html>\n",
        escaped(&title),
        // Within a script element only this could end it.
        data.replace('<', "\\u003c"),
    )
}

/// What was measured, in a few words.
fn heading(run: &Run) -> String {
    match run.targets.as_slice() {
        [] => "A run of load".to_owned(),
        [one] => one.url.clone(),
        [first, rest @ ..] => format!("{} and {} more", first.url, rest.len()),
    }
}

fn single(out: &mut String, run: &Run) {
    let _ = write!(out, "<h1>{}</h1>", escaped(&heading(run)));
    let _ = write!(
        out,
        "<p class=\"soft small\">{} from {} (kernel {}, {} CPUs), weir {}<br><code>{}</code></p>",
        escaped(&run.started_at),
        escaped(&run.host.name),
        escaped(&run.host.kernel),
        run.host.cpus,
        escaped(&run.weir),
        escaped(&run.command.join(" "))
    );
    for line in said(run) {
        let _ = write!(out, "<p class=\"said\">{}</p>", escaped(&line));
    }
    tiles(out, run);
}

/// What must not be overlooked.
fn said(run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(why) = &run.broken_off {
        lines.push(format!(
            "Broken off: a thread of the load generator ended before its time ({why}), and the run with \
             it. The figures are those until then."
        ));
    }
    if let Some(intended) = run.rate.intended_per_s {
        let achieved = run.rate.achieved_per_s;
        if achieved < intended * ACHIEVED_MIN {
            lines.push(format!(
                "Only {achieved:.1} requests/s of {intended:.1} were begun ({:.1} %): the figures \
                 are not those of the intended rate.",
                achieved / intended * 100.0
            ));
        }
    }
    for ran_out in &run.ran_out {
        let whose = match ran_out.whose {
            Whose::Generator => {
                "the load generator's own, so that the figures are not the server's"
            }
            Whose::Link => "the link's",
            Whose::Server => "the server's",
            Whose::Unknown => "not known whose",
        };
        lines.push(format!("Ran out: {} ({whose}). {}", ran_out.what, ran_out.evidence));
    }
    let failed = run.expectations.iter().filter(|expectation| !expectation.held);
    lines.extend(failed.map(|e| format!("Expected {}, but measured {}.", e.text, e.measured)));
    lines
}

fn tiles(out: &mut String, run: &Run) {
    let user = run.latency.intended_start.as_ref();
    let times = user.unwrap_or(&run.latency.service);
    let of = if user.is_some() { "from the intended start" } else { "service time" };
    let percent = |part: u64, whole: u64| part as f64 / whole.max(1) as f64 * 100.0;
    let mut tiles = vec![
        ("requests".to_owned(), run.totals.requests.to_string()),
        ("answered a second".to_owned(), format!("{:.1}", run.rate.responses_per_s)),
    ];
    if let Some(intended) = run.rate.intended_per_s {
        tiles.push(("intended a second".to_owned(), format!("{intended:.1}")));
    }
    let errors = percent(run.totals.errors, run.totals.requests);
    let bad = percent(compare::bad(run), run.totals.responses);
    tiles.extend([
        ("errors".to_owned(), format!("{errors:.2} %")),
        ("status 400 and more".to_owned(), format!("{bad:.2} %")),
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
    out.push_str("<div class=\"tiles\">");
    for (name, value) in tiles {
        let _ = write!(
            out,
            "<div class=\"tile\"><b>{}</b><span class=\"soft small\">{}</span></div>",
            escaped(&value),
            escaped(&name)
        );
    }
    out.push_str("</div>");
}

/// Times of a run, with those of its parts.
fn times(out: &mut String, run: &Run) {
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
        ("TCP's round trip", Some(&phases.round_trip)),
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
    table(out, "Times", &heads, &rows);
}

/// The tables below the charts of one run.
fn tables(out: &mut String, run: &Run) {
    out.push_str("<div class=\"tables\">");
    times(out, run);
    let counted = |map: &std::collections::BTreeMap<String, u64>| -> Vec<Vec<String>> {
        map.iter().map(|(name, count)| vec![name.clone(), count.to_string()]).collect()
    };
    table(out, "Responses by status", &["status", "responses"], &counted(&run.totals.statuses));
    table(out, "Errors by kind", &["kind", "requests"], &counted(&run.totals.errors_by_kind));
    let targets = run.targets.iter().map(|target| {
        vec![
            format!("{} {}", target.method, target.url).trim().to_owned(),
            target.weight.to_string(),
            target.addresses.join(", "),
        ]
    });
    table(out, "Targets", &["target", "weight", "addresses"], &targets.collect::<Vec<_>>());
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
    let heads = ["intended", "begun", "p99", "errors", "outcome", "why"];
    table(out, "Search for the limit", &heads, &steps.collect::<Vec<_>>());
    let notes: Vec<Vec<String>> = run.notes.iter().map(|note| vec![note.clone()]).collect();
    table(out, "Notes", &["note"], &notes);
    out.push_str("</div>");
}

/// A table, unless it has no rows.
fn table(out: &mut String, title: &str, heads: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(out, "<section class=\"table\"><h2>{title}</h2><div class=\"wide\"><table><tr>");
    for head in heads {
        let _ = write!(out, "<th>{}</th>", escaped(head));
    }
    out.push_str("</tr>");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", escaped(cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div></section>");
}

/// The head of a comparison: the runs and their figures.
fn several(out: &mut String, runs: &[Named]) {
    let _ = write!(out, "<h1>{} runs compared</h1><div class=\"wide\"><table>", runs.len());
    for (index, named) in runs.iter().enumerate() {
        let run = &named.run;
        let _ = write!(
            out,
            "<tr><td class=\"text\"><span class=\"key k{}\"></span>{}</td><td class=\"text soft \
             small\">{}<br>{} from {}<br><code>{}</code></td></tr>",
            index % 8,
            escaped(&named.name),
            escaped(&heading(run)),
            escaped(&run.started_at),
            escaped(&run.host.name),
            escaped(&run.command.join(" "))
        );
    }
    out.push_str("</table></div>");
    for named in runs {
        for line in said(&named.run) {
            let _ =
                write!(out, "<p class=\"said\">{}: {}</p>", escaped(&named.name), escaped(&line));
        }
    }
    differences(out, runs);
}

/// The figures of several runs, with their changes from the first one's.
fn differences(out: &mut String, runs: &[Named]) {
    out.push_str(
        "<section class=\"table\" style=\"margin:14px 0\"><div class=\"wide\"><table><tr><th></th>",
    );
    for (index, named) in runs.iter().enumerate() {
        let of = if index == 0 { " (base)" } else { "" };
        let _ = write!(
            out,
            "<th><span class=\"key k{}\"></span>{}{of}</th>",
            index % 8,
            escaped(&named.name)
        );
    }
    out.push_str("</tr>");
    for row in rows(runs) {
        let _ = write!(out, "<tr><td>{}</td>", escaped(row.label));
        for (value, percent) in row.values.iter().zip(&row.changes) {
            let change = match percent {
                None => String::new(),
                Some(percent) => {
                    let class = match row.less_is_better {
                        _ if percent.abs() < 0.05 => "soft",
                        None => "soft",
                        Some(less) if less == (*percent < 0.0) => "better",
                        Some(_) => "worse",
                    };
                    format!(" <span class=\"small {class}\">{}</span>", escaped(&change(*percent)))
                }
            };
            let _ = write!(out, "<td>{}{change}</td>", escaped(value));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div></section>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RanOut, Rate, Source, Target};

    #[test]
    fn what_came_from_outside_is_escaped_everywhere() {
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
    fn a_rate_that_was_not_delivered_is_said_first() {
        let rate =
            Rate { intended_per_s: Some(1000.0), achieved_per_s: 561.0, responses_per_s: 561.0 };
        let page = page(&[Named { name: "a".to_owned(), run: Run { rate, ..Run::default() } }]);
        assert!(page.contains("Only 561.0 requests/s of 1000.0 were begun (56.1 %)"));
    }

    #[test]
    fn nothing_is_fetched() {
        let page = page(&[Named { name: "a".to_owned(), run: Run::default() }]);
        let outside = page.replace("https://github.com/leeoniya/uPlot", "");
        for word in ["src=", "href=", "@import", "url(", "https://", "fetch("] {
            assert!(!outside.contains(word), "{word}");
        }
    }
}
