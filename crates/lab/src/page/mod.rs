//! The page of a run: what was set up, what happened when, the curves, the counters, the findings,
//! and each figure beside the company's. One file that needs nothing else.

mod curves;
mod drawing;

use std::fmt::Write;

use wire::html::escaped;

use crate::incident::Incident;
use crate::run::Record;
use crate::run::record::{Check, Finding, Found, VariantRecord, figure};

/// Counters of a host that are shown at most, the most interesting ones first.
const COUNTERS_MAX: usize = 14;

/// The kernel's counters that tell most of an incident.
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

/// The page of one run, or of several, one after the other.
pub fn page(runs: &[(&Incident, Record)]) -> String {
    let mut out = String::from(include_str!("head.html"));
    for (incident, record) in runs {
        // Writing into a String does not fail.
        let _ = run(&mut out, incident, record);
    }
    out.push_str("</main></body></html>\n");
    out
}

fn run(out: &mut String, incident: &Incident, record: &Record) -> std::fmt::Result {
    let verdict = if record.holds() { ("good", "as expected") } else { ("bad", "not as expected") };
    let short = if record.is_short { ", shortened" } else { "" };
    writeln!(out, "<section><h1>{}</h1>", escaped(&record.title))?;
    writeln!(
        out,
        "<p class=meta><b class={}>{}</b> · {}{short} · seed {} · Linux {} on {} processors · {:.0} s</p>",
        verdict.0,
        verdict.1,
        escaped(&record.name),
        record.seed,
        escaped(&record.kernel),
        record.cpus,
        record.took_s
    )?;
    writeln!(out, "<p>{}</p>", escaped(incident.story.trim()))?;
    writeln!(out, "<p class=here>In the lab: {}</p>", escaped(incident.here.trim()))?;
    writeln!(out, "<h2>Hosts and links</h2>{}", drawing::drawing(incident))?;
    checks(out, &record.checks)?;
    findings(out, &record.findings)?;
    let curves = curves::curves(record);
    if !curves.is_empty() {
        writeln!(out, "<h2>Curves</h2><div class=charts>{curves}</div>")?;
    }
    writeln!(out, "<h2>Variants</h2>")?;
    for variant in &record.variants {
        time_line(out, variant)?;
        counters(out, variant)?;
    }
    writeln!(out, "</section>")
}

fn checks(out: &mut String, checks: &[Check]) -> std::fmt::Result {
    if checks.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<h2>Figures</h2><table><tr><th>what</th><th>here</th><th>expected</th><th>theirs</th></tr>"
    )?;
    for check in checks {
        let value = check.value.map_or_else(|| "–".to_owned(), figure);
        let is_told = check.at_least.or(check.at_most).is_none();
        let class = match (check.holds, is_told) {
            (false, _) => "bad",
            (true, true) => "",
            (true, false) => "good",
        };
        writeln!(
            out,
            "<tr><td>{}</td><td class=\"num {class}\">{value} {}</td><td class=num>{}</td><td>{}</td></tr>",
            escaped(&check.what),
            escaped(&check.unit),
            check.bounds(),
            escaped(&check.theirs)
        )?;
    }
    writeln!(out, "</table>")
}

fn findings(out: &mut String, all: &[Found]) -> std::fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>Findings</h2>")?;
    for found in all {
        let class = if found.holds { "good" } else { "bad" };
        writeln!(
            out,
            "<h3 class={class}>{}, found by {}</h3>",
            escaped(&found.variant),
            escaped(&found.by)
        )?;
        match (found.has_looked, found.found.is_empty()) {
            (false, _) => writeln!(out, "<p class=bad>has not looked</p>")?,
            (true, true) => writeln!(out, "<p>nothing</p>")?,
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

fn time_line(out: &mut String, variant: &VariantRecord) -> std::fmt::Result {
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

fn counters(out: &mut String, variant: &VariantRecord) -> std::fmt::Result {
    writeln!(out, "<details><summary>What the kernels have counted</summary><table>")?;
    for (host, counters) in &variant.counters {
        let told = TELLING.iter().filter_map(|name| Some((name, counters.get(*name)?)));
        let told: Vec<String> =
            told.take(COUNTERS_MAX).map(|(name, count)| format!("{name} {count}")).collect();
        if !told.is_empty() {
            writeln!(out, "<tr><td>{}</td><td>{}</td></tr>", escaped(host), told.join(" · "))?;
        }
    }
    writeln!(out, "</table></details>")
}
