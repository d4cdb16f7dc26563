//! The page of a run: hosts and links, figures next to the company's, findings, charts, events and
//! kernel counters.

mod curves;
mod drawing;

use std::fmt::Write;

use page::{Cell, Page, escaped, table};

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
    for (incident, record) in runs {
        // Writing into a page cannot fail.
        let _ = run(&mut page, incident, record);
    }
    page.finish()
}

fn run(out: &mut Page, incident: &Incident, record: &Record) -> std::fmt::Result {
    let verdict = if record.holds() { ("good", "as expected") } else { ("bad", "not as expected") };
    let short = if record.is_short { ", shortened" } else { "" };
    writeln!(out, "<section class=incident><h1>{}</h1>", escaped(&record.title))?;
    writeln!(
        out,
        "<p class=soft><b class={}>{}</b> · {}{short} · seed {} · Linux {} on {} processors · {:.0} s</p>",
        verdict.0,
        verdict.1,
        escaped(&record.name),
        record.seed,
        escaped(&record.kernel),
        record.cpus,
        record.took_s
    )?;
    writeln!(out, "<p>{}</p>", escaped(incident.story.trim()))?;
    writeln!(out, "<p class=soft>In the lab: {}</p>", escaped(incident.here.trim()))?;
    writeln!(out, "<h2>Hosts and links</h2>{}", drawing::drawing(incident))?;
    checks(out, &record.checks)?;
    findings(out, &record.findings)?;
    let curves = curves::curves(record);
    if !curves.is_empty() {
        writeln!(out, "<h2>Charts</h2>")?;
        out.charts(curves);
    }
    writeln!(out, "<h2>Variants</h2>")?;
    for variant in &record.variants {
        time_line(out, variant)?;
        counters(out, variant)?;
    }
    writeln!(out, "</section>")
}

fn checks(out: &mut Page, checks: &[Check]) -> std::fmt::Result {
    if checks.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Figures</h2>")?;
    let rows = checks.iter().map(|check| {
        let value = check.value.map_or_else(|| "–".to_owned(), figure);
        let has_bounds = check.at_least.or(check.at_most).is_some();
        let class = match (check.holds, has_bounds) {
            (false, _) => "num bad",
            (true, false) => "num",
            (true, true) => "num good",
        };
        [
            Cell::from(&check.what),
            Cell::from(format!("{value} {}", check.unit)).class(class),
            Cell::from(check.bounds()).class("num"),
            Cell::from(&check.theirs),
        ]
    });
    table(out, ["what", "here", "expected", "theirs"], rows)
}

fn findings(out: &mut Page, all: &[Found]) -> std::fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Findings</h2>")?;
    for found in all {
        let class = if found.holds { "good" } else { "bad" };
        writeln!(
            out,
            "<h3 class={class}>{}, reported by {}</h3>",
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
        writeln!(out, "</ul>")?;
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
        let class = if event.is_fault { " class=bad" } else { "" };
        writeln!(out, "<li{class}><span>{:.1} s</span> {}</li>", event.at_s, escaped(&event.what))?;
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
    table(out, [] as [&str; 0], rows)?;
    writeln!(out, "</details>")
}
