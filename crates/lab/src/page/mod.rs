//! The page of a run: hosts and links, figures next to the company's, findings, charts, events and
//! kernel counters.

mod curves;
mod drawing;

use std::fmt::Write;

use page::{Answer, Cell, Page, Tone, escaped, table};

use crate::incident::Incident;
use crate::run::Record;
use crate::run::record::{Check, Finding, Found, VariantRecord, figure};

/// Counters shown of a host, in the order of [`TELLING`].
const COUNTERS_MAX: usize = 14;

/// The kernel's counters that say most about an incident.
const TELLING: &[&str] = &[
    "TcpExtListenOverflows",
    "TcpExtListenDrops",
    "TcpExtSyncookiesSent",
    "TcpExtSyncookiesRecv",
    "TcpExtTCPSynRetrans",
    "TcpRetransSegs",
    "TcpExtTCPTimeouts",
    "TcpExtTCPLostRetransmit",
    "TcpExtTCPFastRetrans",
    "TcpExtTCPSlowStartRetrans",
    "TcpExtTCPSACKReorder",
    "TcpExtTCPTSReorder",
    "TcpExtTCPDSACKRecv",
    "TcpExtTCPOFOQueue",
    "TcpAttemptFails",
    "TcpEstabResets",
    "TcpOutRsts",
    "TcpActiveOpens",
    "TcpPassiveOpens",
];

const CSS: &str = include_str!("page.css");

/// Returns the page of one run, or of several.
pub fn page(runs: &[(&Incident, Record)]) -> String {
    let title = match runs {
        [(_, one)] => one.title.as_str(),
        _ => "Incidents",
    };
    let mut page = Page::new("weir lab", title, CSS);
    // Writing into a page cannot fail.
    let _ = match runs {
        [(incident, record)] => {
            answer(record).write(&mut page, title).and_then(|()| run(&mut page, incident, record))
        }
        many => several(&mut page, many),
    };
    page.finish()
}

/// Several incidents, after a list of them.
fn several(out: &mut Page, runs: &[(&Incident, Record)]) -> std::fmt::Result {
    let held = runs.iter().filter(|(_, record)| record.holds()).count();
    let tone = if held == runs.len() { Tone::Good } else { Tone::Bad };
    let headline = format!("{held} of {} incidents as expected", runs.len());
    Answer { tone, headline, ..Answer::default() }.write(out, "Incidents")?;
    out.write_str("<section class=\"card\">")?;
    let row = |(_, record): &(&Incident, Record)| {
        let Answer { tone, headline, .. } = answer(record);
        let name = escaped(&record.name);
        [
            Cell::markup(format!("<a href=\"#{name}\">{}</a>", escaped(&record.title))),
            Cell::markup(format!("{}{}", tone.mark(), escaped(&headline))).class("text"),
            Cell::from(format!("{:.0} s", record.took_s)),
        ]
    };
    let heads = [Cell::from("incident"), Cell::from("result").class("text"), Cell::from("took")];
    table(out, "Incidents", heads, runs.iter().map(row))?;
    out.write_str("</section>\n")?;
    for (incident, record) in runs {
        let (name, title) = (escaped(&record.name), escaped(&record.title));
        let Answer { tone, headline, .. } = answer(record);
        writeln!(out, "<h2 class=title id=\"{name}\">{title}</h2>")?;
        writeln!(out, "<p>{}{}</p>", tone.mark(), escaped(&headline))?;
        run(out, incident, record)?;
    }
    Ok(())
}

/// Whether a run was as expected, and what was not.
fn answer(record: &Record) -> Answer {
    let bounds = |check: &&Check| check.at_least.or(check.at_most).is_some();
    let checked = record.checks.iter().filter(bounds).count();
    let off = record.checks.iter().filter(|check| !check.holds);
    let off = off.map(|check| {
        let value = check.value.map_or_else(|| "not measured".to_owned(), figure);
        format!("{}: {value} {}, expected {}.", check.what, check.unit, check.bounds())
    });
    let found = record.findings.iter().filter(|found| !found.holds);
    let found = found.map(|found| {
        format!("{}: the findings of {} are not those expected.", found.variant, found.by)
    });
    let details: Vec<String> = off.chain(found).collect();
    let headline = match details.len() {
        0 if record.findings.is_empty() => format!("As expected: {checked} figures within bounds"),
        0 => format!("As expected: {checked} figures within bounds, and all findings"),
        wrong => {
            format!("Not as expected in {wrong} of {} points", checked + record.findings.len())
        }
    };
    let tone = if record.holds() { Tone::Good } else { Tone::Bad };
    Answer { tone, headline, details }
}

fn run(out: &mut Page, incident: &Incident, record: &Record) -> std::fmt::Result {
    let short = if record.is_short { ", shortened" } else { "" };
    writeln!(out, "<p>{}</p>", escaped(incident.story.trim()))?;
    writeln!(out, "<p class=soft>In the lab: {}</p>", escaped(incident.here.trim()))?;
    writeln!(
        out,
        "<p class=\"soft small\">{}{short} · seed {} · Linux {} on {} processors · {:.0} s</p>",
        escaped(&record.name),
        record.seed,
        escaped(&record.kernel),
        record.cpus,
        record.took_s
    )?;
    checks(out, &record.checks)?;
    let curves = curves::curves(record);
    if !curves.is_empty() {
        writeln!(out, "<h2>Over time</h2>")?;
        out.charts(curves);
    }
    findings(out, &record.findings)?;
    writeln!(out, "<h2>Hosts and links</h2>{}", drawing::drawing(incident))?;
    writeln!(out, "<h2>Variants</h2>")?;
    for variant in &record.variants {
        writeln!(out, "<section class=card>")?;
        time_line(out, variant)?;
        counters(out, variant)?;
        writeln!(out, "</section>")?;
    }
    Ok(())
}

fn checks(out: &mut Page, checks: &[Check]) -> std::fmt::Result {
    if checks.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Figures</h2><section class=card>")?;
    let rows = checks.iter().map(|check| {
        let value = check.value.map_or_else(|| "–".to_owned(), figure);
        let has_bounds = check.at_least.or(check.at_most).is_some();
        let tone = match (check.holds, has_bounds) {
            (false, _) => Tone::Bad,
            (true, false) => Tone::Plain,
            (true, true) => Tone::Good,
        };
        [
            Cell::from(&check.what).class("text"),
            Cell::markup(format!("{}{} {}", tone.mark(), escaped(&value), escaped(&check.unit))),
            Cell::from(check.bounds()),
            Cell::from(&check.theirs).class("text"),
        ]
    });
    let heads = ["figure", "here", "expected"].map(Cell::from);
    let heads = heads.into_iter().chain([Cell::from("theirs").class("text")]);
    table(out, "Figures", heads, rows)?;
    writeln!(out, "</section>")
}

fn findings(out: &mut Page, all: &[Found]) -> std::fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Findings</h2>")?;
    for found in all {
        let tone = if found.holds { Tone::Good } else { Tone::Bad };
        writeln!(
            out,
            "<section class=card><h3>{}{}, reported by {}</h3>",
            tone.mark(),
            escaped(&found.variant),
            escaped(&found.by)
        )?;
        match (found.has_looked, found.found.is_empty()) {
            (false, _) => writeln!(out, "<p class=bad>not asked</p>")?,
            (true, true) => writeln!(out, "<p>none</p>")?,
            (true, false) => {}
        }
        writeln!(out, "<ul>")?;
        for Finding { rule, severity, certainty, what, times } in &found.found {
            let [rule, severity, certainty, what] =
                [rule, severity, certainty, what].map(|text| escaped(text));
            let often = if *times > 1 { format!(", {times} times") } else { String::new() };
            writeln!(
                out,
                "<li><code>{rule}</code> <i>{severity}, {certainty}{often}</i> {what}</li>"
            )?;
        }
        for (rules, why) in [(&found.missing, "missing"), (&found.unexpected, "not expected")] {
            for rule in rules {
                writeln!(out, "<li class=bad>{why}: <code>{}</code></li>", escaped(rule))?;
            }
        }
        writeln!(out, "</ul></section>")?;
    }
    Ok(())
}

fn time_line(out: &mut Page, variant: &VariantRecord) -> std::fmt::Result {
    writeln!(
        out,
        "<h3>{}: {}</h3><ol class=line>",
        escaped(&variant.name),
        escaped(&variant.title)
    )?;
    for event in &variant.events {
        // A fault has a shape as well as a colour.
        let (class, mark) =
            if event.is_fault { (" class=warn", Tone::Warn.mark()) } else { ("", String::new()) };
        let (at_s, what) = (event.at_s, escaped(&event.what));
        writeln!(out, "<li><span>{at_s:.1} s</span><span{class}>{mark}{what}</span></li>")?;
    }
    writeln!(out, "</ol>")
}

fn counters(out: &mut Page, variant: &VariantRecord) -> std::fmt::Result {
    writeln!(out, "<details><summary>Kernel counters that increased</summary>")?;
    let rows = variant.counters.iter().filter_map(|(host, counters)| {
        let shown = TELLING.iter().filter_map(|name| Some((name, counters.get(*name)?)));
        let shown: Vec<String> =
            shown.take(COUNTERS_MAX).map(|(name, count)| format!("{name} {count}")).collect();
        (!shown.is_empty()).then(|| [host.clone(), shown.join(" · ")])
    });
    let rows = rows.map(|[host, counters]| [Cell::from(host), Cell::from(counters).class("text")]);
    table(out, "Kernel counters", [] as [&str; 0], rows)?;
    writeln!(out, "</details>")
}
