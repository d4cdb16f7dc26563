//! The page about a finding of the doctor: what happens, on what evidence, what follows, and what to do.

use diagnose::render::figure;
use diagnose::words::list;

use super::sheet::Sheet;
use crate::render::traffic::elapsed;
use crate::top::picture::Picture;
use crate::top::table::Id;
use crate::top::tone::{Line, Tone};
use crate::top::troubles::lasts_s;

/// Servers that are named.
const SERVERS_MAX: usize = 8;

pub(super) fn page(picture: &Picture, id: &Id, width: u16) -> Vec<Line> {
    let mut sheet = Sheet::new(width);
    let Some(seen) = picture.findings().find(|seen| Id::of(&seen.finding) == *id) else {
        match picture.findings.missing() {
            Some(why) => sheet.heading(&format!("The doctor's findings are not known: {why}.")),
            None => sheet.heading("The doctor does not report this any more."),
        }
        return sheet.lines();
    };
    let finding = &seen.finding;
    sheet.heading(&finding.what);
    let (severity, certainty) = (finding.severity.as_str(), finding.certainty.as_str());
    let passed = if seen.is_present { "" } else { ", passed" };
    let rule = format!("{severity}, {certainty}{passed}; rule {}", finding.rule);
    sheet.labelled("Severity", Tone::Plain, &rule);
    sheet.labelled("Present for", Tone::Plain, &elapsed(lasts_s(seen)));
    if let Some(namespace) = &finding.namespace {
        sheet.labelled("Namespace", Tone::Plain, namespace);
    }
    if let Some(service) = &finding.service {
        sheet.labelled("Service", Tone::Plain, service);
    }
    if !finding.servers.is_empty() {
        sheet.labelled("Servers at fault", Tone::Plain, &list(&finding.servers, SERVERS_MAX));
    }
    for (at, consequence) in finding.consequences.iter().enumerate() {
        let label = if at == 0 { "Consequences" } else { "" };
        sheet.labelled(label, Tone::Plain, &format!("{} ({})", consequence.what, consequence.rule));
    }
    for (at, evidence) in finding.evidence.iter().enumerate() {
        let label = if at == 0 { "Evidence" } else { "" };
        sheet.labelled(label, Tone::Plain, &format!("{}: {}", evidence.name, figure(evidence)));
    }
    sheet.labelled("Why it matters", Tone::Plain, &finding.why);
    for remedy in &finding.remedy {
        sheet.labelled("What to do", Tone::Plain, &remedy.action);
        remedy.commands.iter().for_each(|command| sheet.verbatim(command));
        sheet.labelled("  Risk", Tone::Quiet, &remedy.risk);
    }
    sheet.labelled("To verify", Tone::Plain, &finding.verify);
    sheet.labelled("More", Tone::Quiet, &format!("weir doctor --explain {}", finding.rule));
    sheet.lines()
}
