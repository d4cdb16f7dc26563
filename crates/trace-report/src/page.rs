//! The report as a page.

use std::fmt::{self, Write as _};

use diagnose::finding::{Finding, Report};
use page::{Page, escaped};

use crate::events::Events;
use crate::facts;
use crate::figures::Figures;
use crate::reading::{Reading, Selection, worst};
use crate::{answer, picture, tables, text};

const CSS: &str = include_str!("page.css");
/// Frames of a connection that are listed. More make browsers slow.
const FRAMES_MAX: usize = 5_000;

/// Returns the report as a page.
pub fn page(reading: &Reading, selected: Selection, events: &Events) -> String {
    let of_stream = selected.stream.map(|stream| format!(", stream {stream}")).unwrap_or_default();
    let title = format!("{}{of_stream}", reading.name);
    let mut page = Page::new("weir trace", &title, CSS);
    // Writing into a page cannot fail.
    let _ = match selected.stream {
        Some(stream) => one_stream(&mut page, &title, reading, stream, events),
        None => everything(&mut page, &title, reading, selected.connections),
    };
    page.finish()
}

fn everything(out: &mut Page, title: &str, reading: &Reading, connections: usize) -> fmt::Result {
    let trace = &reading.trace;
    let report = facts::findings(reading);
    answer::of_capture(reading, &report).write(out, title)?;
    if !report.findings.is_empty() || !report.could_not_check.is_empty() {
        out.write_str("<h2>Findings</h2>\n")?;
        if let Some(note) = text::judged(trace) {
            writeln!(out, "<p class=\"soft\">{note}</p>")?;
        }
        findings(out, &report)?;
    }
    out.write_str("<h2>Over time</h2>\n")?;
    let (charts, left_out) = picture::charts_over_time(reading);
    out.charts(charts);
    if let Some(text) = left_out {
        writeln!(out, "<p class=\"soft\">{}</p>", escaped(&text))?;
    }
    let (table, note) = tables::over_time(trace);
    section(out, "Intervals", &table)?;
    if let Some(note) = note {
        writeln!(out, "<p class=\"soft\">{}</p>", escaped(&note))?;
    }
    if let Some(heading) = text::connections_heading(trace, connections) {
        section(out, &heading, &tables::by_connection(worst(trace, connections)))?;
    }
    Ok(())
}

fn one_stream(
    out: &mut Page,
    title: &str,
    reading: &Reading,
    stream: u32,
    events: &Events,
) -> fmt::Result {
    let Some(story) = reading.trace.story(stream) else { return Ok(()) };
    answer::of_connection(reading, stream, story).write(out, title)?;
    writeln!(
        out,
        "<div class=\"card picture\">{}</div>",
        picture::sequence(reading, stream, events)
    )?;
    section(out, "The connection", &tables::by_connection(std::iter::once((stream, story))))?;
    section(out, "Frame by frame", &tables::event_table(story, events, FRAMES_MAX))?;
    let in_all = events.all().len() as u64 + events.left_out();
    if in_all > FRAMES_MAX as u64 {
        writeln!(
            out,
            "<p class=\"soft\">The first {FRAMES_MAX} of {in_all} frames; --stream without --html \
             lists more.</p>"
        )?;
    }
    Ok(())
}

fn section<const N: usize>(out: &mut Page, heading: &str, table: &Figures<N>) -> fmt::Result {
    writeln!(out, "<h2>{}</h2>\n<section class=\"card\">", escaped(heading))?;
    table.write_html(out, heading)?;
    out.write_str("</section>\n")
}

fn findings(out: &mut Page, report: &Report) -> fmt::Result {
    for one in &report.findings {
        finding(out, one)?;
    }
    for one in &report.could_not_check {
        writeln!(out, "<p>{}.</p>", escaped(&one.to_string()))?;
    }
    writeln!(out, "<p class=\"soft\">{}</p>", escaped(&diagnose::render::count(report)))
}

fn finding(out: &mut Page, finding: &Finding) -> fmt::Result {
    let severity = finding.severity.as_str();
    writeln!(
        out,
        "<article class=\"card\">\n<h3>{}{}</h3>\n\
         <p class=\"soft\">{severity}, {}, {}</p>\n<dl>",
        answer::tone(finding.severity).mark(),
        escaped(&finding.what),
        escaped(&finding.rule),
        finding.certainty.as_str()
    )?;
    for evidence in &finding.evidence {
        let figure = diagnose::render::figure(evidence);
        writeln!(out, "<dt>{}</dt><dd>{}</dd>", escaped(&evidence.name), escaped(&figure))?;
    }
    writeln!(out, "</dl>\n<p>{}</p>", escaped(&finding.why))?;
    for remedy in &finding.remedy {
        let action = remedy.action.trim_end_matches('.');
        writeln!(out, "<p>To do: {}.</p>", escaped(action))?;
        for command in &remedy.commands {
            writeln!(out, "<pre>{}</pre>", escaped(command))?;
        }
        if remedy.risk != "none" {
            writeln!(out, "<p class=\"soft\">Risk: {}.</p>", escaped(&remedy.risk))?;
        }
    }
    writeln!(out, "<p class=\"soft\">To verify: {}.</p>\n</article>", escaped(&finding.verify))
}
