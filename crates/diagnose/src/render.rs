//! Findings and pages as plain text: aligned, wrapped at a width, readable without colour and
//! through a pipe. Commands are never wrapped, so that they can be copied.

use std::fmt::Write as _;

use crate::checks::{EndpointLoad, Load};
use crate::finding::{Evidence, Figure, Finding, Report};
use crate::kinds::{grouped, others};
use crate::rules::Page;
use crate::sysctl::{Effect, Kernel, Machine, Reviewed, Setting};
use crate::words;

/// The narrowest that texts are wrapped at, in columns; what is asked for below it counts as this.
pub const WIDTH_MIN: usize = 40;

/// Columns before the texts of a finding, which hold their titles.
const INDENT: usize = 10;
/// Evidence whose name is longer pushes its figure to the right instead of aligning it.
const NAME_MAX: usize = 40;

/// All findings, those of one rule and severity as one entry, then what could not be checked, then one line
/// that counts them.
pub fn report(report: &Report, width: usize) -> String {
    let mut out = String::new();
    let keyed = report.findings.iter().map(|one| ((one.severity, &one.rule), one));
    for (_, alike) in grouped(keyed) {
        if let [worst, rest @ ..] = alike.as_slice() {
            let subjects: Vec<String> = rest.iter().map(|one| subject(one)).collect();
            out.push_str(&entry(worst, others(&subjects).as_deref(), width));
            out.push('\n');
        }
    }
    for one in &report.could_not_check {
        wrap(&mut out, &format!("{one}."), 0, 2, width);
    }
    if !report.could_not_check.is_empty() {
        out.push('\n');
    }
    out.push_str(&count(report));
    out.push('\n');
    out
}

/// How many findings there are, in one line: `2 findings: 1 critical, 1 advice; 3 things could not
/// be checked`.
pub fn count(report: &Report) -> String {
    let mut out = match report.findings.len() {
        0 => "No findings".to_owned(),
        n => words::plural(n as u64, "finding"),
    };
    let mut kinds: Vec<(&str, u64)> = Vec::new();
    for finding in &report.findings {
        let name = finding.severity.as_str();
        match kinds.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => kinds.push((name, 1)),
        }
    }
    for (n, (kind, count)) in kinds.iter().enumerate() {
        let joint = if n == 0 { ": " } else { ", " };
        let _ = write!(out, "{joint}{} {kind}", words::thousands(*count));
    }
    if !report.could_not_check.is_empty() {
        let things = words::plural(report.could_not_check.len() as u64, "thing");
        let _ = write!(out, "; {things} could not be checked");
    }
    out.push('.');
    out
}

/// What a finding is about, and in which network namespace.
fn subject(finding: &Finding) -> String {
    match &finding.namespace {
        Some(namespace) => format!("{} in namespace {namespace}", finding.subject),
        None => finding.subject.clone(),
    }
}

/// One finding.
pub fn finding(finding: &Finding, width: usize) -> String {
    entry(finding, None, width)
}

/// One finding, with a line about others of its kind.
fn entry(finding: &Finding, others: Option<&str>, width: usize) -> String {
    let mut out = String::new();
    titled(&mut out, &finding.severity.as_str().to_uppercase(), &finding.what, width);
    let mut about = format!("{}, {}", finding.rule, finding.certainty.as_str());
    if let Some(namespace) = &finding.namespace {
        let _ = write!(about, ", in namespace {namespace}");
    }
    titled(&mut out, "", &about, width);
    titled(&mut out, "", &others.map(|others| format!("and {others}")).unwrap_or_default(), width);
    evidence(&mut out, &finding.evidence, width);
    for (n, consequence) in finding.consequences.iter().enumerate() {
        titled(&mut out, if n == 0 { "so" } else { "" }, &consequence.what, width);
    }
    titled(&mut out, "why", &finding.why, width);
    let several = finding.remedy.len() > 1;
    for (n, remedy) in finding.remedy.iter().enumerate() {
        let number = if several { format!("{}. ", n + 1) } else { String::new() };
        let title = if n == 0 { "do" } else { "" };
        let inner = INDENT + number.len();
        let action = format!("{number}{}.", remedy.action.trim_end_matches('.'));
        titled_at(&mut out, title, &action, inner, width);
        for command in &remedy.commands {
            let _ = writeln!(out, "{:inner$}  {command}", "");
        }
        let risk = format!("Risk: {}.", remedy.risk.trim_end_matches('.'));
        wrap(&mut out, &risk, inner, inner, width);
    }
    titled(&mut out, "verify", &finding.verify, width);
    titled(&mut out, "source", &finding.source.join(", "), width);
    out
}

/// A rule's page, under its name.
pub fn page(name: &str, page: &Page, width: usize) -> String {
    let mut out = format!("{name}\n\n");
    wrap(&mut out, &page.summary, 0, 0, width);
    for section in &page.sections {
        out.push('\n');
        if section.title.is_empty() {
            wrap(&mut out, &section.text, 2, 2, width);
        } else {
            let _ = writeln!(out, "{}", section.title);
            wrap(&mut out, &section.text, 2, 2, width);
        }
    }
    out
}

/// A page on a kernel setting: what it counts, its default on `machine`, what is known of it.
pub fn setting_page(setting: &Setting, machine: &Machine, width: usize) -> String {
    let mut out = format!("{}\n\n", setting.name);
    let page = setting.page();
    wrap(&mut out, &page.summary, 0, 0, width);
    out.push('\n');
    let default = setting.default_on(machine);
    let default = match default.as_deref() {
        Some("") => "empty".to_owned(),
        Some(default) => setting.unit.spell(default, machine.page_bytes),
        None => "computed, or it differs between kernels and distributions".to_owned(),
    };
    let Kernel(major, minor) = machine.kernel;
    titled(&mut out, "unit", setting.unit.name(), width);
    titled(&mut out, "default", &format!("{default} (Linux {major}.{minor})"), width);
    for section in &page.sections {
        out.push('\n');
        wrap(&mut out, &section.text, 0, 0, width);
    }
    out
}

/// Settings reviewed, each with its value spelt out, who set it, and what it does.
pub fn settings(reviewed: &[Reviewed], width: usize) -> String {
    let mut out = String::new();
    for one in reviewed {
        let _ = writeln!(out, "{:INDENT$}{}", one.judgement.effect.as_str(), one.name);
        titled(&mut out, "", &format!("= {}", one.spelt), width);
        if let Some(default) = one.default.as_ref().filter(|default| **default != one.value) {
            let default = if default.is_empty() { "empty" } else { default };
            titled(&mut out, "", &format!("default: {default}"), width);
        }
        if let Some(by) = &one.set_by {
            titled(&mut out, "", &format!("set by {} line {}", by.path, by.line), width);
        }
        titled(&mut out, "", &one.judgement.why, width);
        if let Some(meant) = &one.judgement.meant {
            titled(&mut out, "", &format!("meant: {meant}"), width);
        }
        out.push('\n');
    }
    let count = |effect| reviewed.iter().filter(|one| one.judgement.effect == effect).count();
    let counts: Vec<String> = [
        Effect::Harms,
        Effect::Slip,
        Effect::Dead,
        Effect::Doubtful,
        Effect::Helps,
        Effect::Fine,
        Effect::Unknown,
    ]
    .into_iter()
    .map(|effect| (effect, count(effect)))
    .filter(|&(_, count)| count > 0)
    .map(|(effect, count)| format!("{count} {}", effect.as_str()))
    .collect();
    let total = words::plural(reviewed.len() as u64, "setting");
    let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    let _ = writeln!(out, "{total}{counts}.");
    out
}

/// The load of health checks on each endpoint, and what sharing would make of it.
pub fn checks(load: &Load, width: usize) -> String {
    /// Endpoints in the table; the rest is counted.
    const ENDPOINTS_MAX: usize = 50;
    let mut out = String::new();
    let shown = &load.endpoints[..load.endpoints.len().min(ENDPOINTS_MAX)];
    let names = shown.iter().map(|one| one.endpoint.chars().count());
    let column = names.max().unwrap_or(0).max("endpoint".len());
    let _ = writeln!(
        out,
        "{:column$}  {:>8}  {:>13}  {:>11}",
        "endpoint", "services", "unshared (/s)", "shared (/s)"
    );
    for one in shown {
        let (unshared, shared) =
            (words::number(one.unshared_per_s), words::number(one.shared_per_s));
        let _ = writeln!(
            out,
            "{:column$}  {:>8}  {unshared:>13}  {shared:>11}",
            one.endpoint,
            words::thousands(one.services)
        );
    }
    if load.endpoints.len() > shown.len() {
        let more = words::plural((load.endpoints.len() - shown.len()) as u64, "endpoint");
        let _ = writeln!(out, "and {more} more");
    }
    out.push('\n');
    if let Some(most) = load.endpoints.first() {
        wrap(&mut out, &verdict(load, most), 0, 0, width);
    } else {
        out.push_str("Nothing is checked.\n");
    }
    for note in &load.notes {
        wrap(&mut out, &format!("Note: {note}"), 0, 2, width);
    }
    out
}

/// Describes the load of the busiest endpoint, in sentences.
fn verdict(load: &Load, most: &EndpointLoad) -> String {
    let nodes = words::plural(load.nodes, "node");
    let (real, other) = (load.per_s(most), most.unshared_per_s);
    let mut out = format!(
        "{} receives {} health checks a second from {nodes}, for {}.",
        most.endpoint,
        words::number(real),
        words::plural(most.services, "service")
    );
    if load.is_shared {
        if other > real {
            let _ = write!(
                out,
                " Equal checks are shared; if each service checked for itself it would be {}.",
                words::number(other)
            );
        }
        return out;
    }
    if most.shared_per_s < real {
        let _ = write!(
            out,
            " If each node checked it once and shared the verdict, it would be {}.",
            words::number(most.shared_per_s)
        );
    }
    if load.storms().next().is_some() {
        out.push_str(
            " Providers throttle small instances at some 500 connections a second, and drop the \
             SYNs of others with them. In HAProxy let one backend check and the others follow it \
             (`track`).",
        );
    }
    out
}

/// `12.4 per second; 3,210 in all`.
pub fn figure(evidence: &Evidence) -> String {
    let mut out = match &evidence.figure {
        Figure::Count(count) => words::thousands(*count),
        Figure::Number(number) => words::number(*number),
        Figure::Text(text) => text.clone(),
    };
    if !evidence.unit.is_empty() {
        out.push(' ');
        out.push_str(&evidence.unit);
    }
    if let Some(count) = evidence.in_all {
        let _ = write!(out, "; {} in all", words::thousands(count));
    }
    out
}

fn evidence(out: &mut String, evidence: &[Evidence], width: usize) {
    let names = evidence.iter().map(|one| one.name.chars().count());
    let column = names.filter(|&length| length <= NAME_MAX).max().unwrap_or(0);
    for (n, one) in evidence.iter().enumerate() {
        let title = if n == 0 { "evidence" } else { "" };
        let line = format!("{:column$}  {}", one.name, figure(one));
        // Spaces that align are kept: only the figure is wrapped, under itself.
        let _ = write!(out, "{title:INDENT$}");
        wrap_rest(out, &line, INDENT, INDENT + column + 2, width);
    }
}

fn titled(out: &mut String, title: &str, text: &str, width: usize) {
    titled_at(out, title, text, INDENT, width);
}

fn titled_at(out: &mut String, title: &str, text: &str, rest: usize, width: usize) {
    if text.is_empty() {
        return;
    }
    let _ = write!(out, "{title:INDENT$}");
    wrap_rest(out, text, INDENT, rest, width);
}

/// Writes `text` in lines of `width` columns, the first indented by `first`, others by `rest`.
fn wrap(out: &mut String, text: &str, first: usize, rest: usize, width: usize) {
    let _ = write!(out, "{:first$}", "");
    wrap_rest(out, text, first, rest, width);
}

/// The same where `column` columns of the first line are already written.
fn wrap_rest(out: &mut String, text: &str, column: usize, rest: usize, width: usize) {
    let width = width.max(WIDTH_MIN);
    let mut column = column;
    let mut is_first = true;
    // Splitting at single spaces keeps runs of them as empty words.
    for word in text.split(' ') {
        let length = word.chars().count();
        if !is_first && column + 1 + length > width && length > 0 {
            while out.ends_with(' ') {
                out.pop();
            }
            let _ = write!(out, "\n{:rest$}", "");
            column = rest;
        } else if !is_first {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        is_first = false;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests;
