//! The report as a page: one file with its pictures, for whoever was not there.

use std::fmt::Write as _;

use diagnose::finding::{Finding, Report};
use wire::html::escaped;

use crate::events::Events;
use crate::facts;
use crate::reading::{Reading, Selection, worst};
use crate::{tables, text};

const STYLE: &str = include_str!("page.css");
/// Frames of a connection that are listed: a browser takes its time over more.
const FRAMES_MAX: usize = 5_000;

/// The page; `picture` is an SVG.
pub fn page(reading: &Reading, selected: Selection, events: &Events, picture: &str) -> String {
    let of_stream = selected.stream.map(|stream| format!(", stream {stream}")).unwrap_or_default();
    let title = escaped(&format!("{}{of_stream}", reading.name));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}: weir trace</title>\n<style>\n{STYLE}</style></head>\n\
         <body><main>\n<h1>{title}</h1>\n"
    );
    for line in text::head(reading).lines() {
        _ = writeln!(out, "<p>{}</p>", escaped(line));
    }
    _ = writeln!(out, "<figure>{picture}</figure>");
    match selected.stream {
        Some(stream) => one_stream(&mut out, reading, stream, events),
        None => everything(&mut out, reading, selected.connections),
    }
    out.push_str("</main></body></html>\n");
    out
}

fn everything(out: &mut String, reading: &Reading, connections: usize) {
    let trace = &reading.trace;
    out.push_str("<h2>What it means</h2>\n");
    if let Some(note) = text::judged(trace) {
        _ = writeln!(out, "<p class=\"soft\">{note}</p>");
    }
    findings(out, &facts::findings(reading));
    if let Some(heading) = text::connections_heading(trace, connections) {
        let table = tables::by_connection(worst(trace, connections)).html();
        section(out, &heading, &table);
    }
    let (table, note) = tables::over_time(trace);
    section(out, "Over time", &table.html());
    if let Some(note) = note {
        _ = writeln!(out, "<p class=\"soft\">{}</p>", escaped(&note));
    }
}

fn one_stream(out: &mut String, reading: &Reading, stream: u32, events: &Events) {
    let Some(story) = reading.trace.story(stream) else { return };
    let table = tables::by_connection(std::iter::once((stream, story))).html();
    section(out, "The connection", &table);
    _ = writeln!(out, "<p>{}</p>", escaped(&text::lasted(story)));
    for (end, direction) in story.directions.iter().enumerate() {
        _ = writeln!(out, "<p>{}</p>", escaped(&text::about(story, end, direction)));
    }
    section(out, "Frame by frame", &tables::event_table(story, events, FRAMES_MAX).html());
    let in_all = events.all().len() as u64 + events.left_out();
    if in_all > FRAMES_MAX as u64 {
        _ = writeln!(
            out,
            "<p class=\"soft\">The first {FRAMES_MAX} of {in_all} frames; --stream without --html \
             lists more.</p>"
        );
    }
}

fn section(out: &mut String, heading: &str, table: &str) {
    _ = writeln!(out, "<h2>{}</h2>\n<div class=\"wide\">{table}</div>", escaped(heading));
}

fn findings(out: &mut String, report: &Report) {
    for one in &report.findings {
        finding(out, one);
    }
    for one in &report.could_not_check {
        _ = writeln!(out, "<p>{}.</p>", escaped(&one.to_string()));
    }
    _ = writeln!(out, "<p class=\"soft\">{}</p>", escaped(&diagnose::render::count(report)));
}

fn finding(out: &mut String, finding: &Finding) {
    let severity = finding.severity.as_str();
    _ = writeln!(
        out,
        "<article class=\"{severity}\">\n<h3><b>{severity}</b>{}</h3>\n\
         <p class=\"soft\">{}, {}</p>\n<dl>",
        escaped(&finding.what),
        escaped(&finding.rule),
        finding.certainty.as_str()
    );
    for evidence in &finding.evidence {
        let figure = diagnose::render::figure(evidence);
        _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escaped(&evidence.name), escaped(&figure));
    }
    _ = writeln!(out, "</dl>\n<p>{}</p>", escaped(&finding.why));
    for remedy in &finding.remedy {
        let action = remedy.action.trim_end_matches('.');
        _ = writeln!(out, "<p>To do: {}.</p>", escaped(action));
        for command in &remedy.commands {
            _ = writeln!(out, "<pre>{}</pre>", escaped(command));
        }
        if remedy.risk != "none" {
            _ = writeln!(out, "<p class=\"soft\">Risk: {}.</p>", escaped(&remedy.risk));
        }
    }
    _ = writeln!(out, "<p class=\"soft\">To verify: {}.</p>\n</article>", escaped(&finding.verify));
}
