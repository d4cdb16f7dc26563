//! Findings and pages as plain text: aligned, wrapped at a width, readable without colour and
//! through a pipe. Commands are never wrapped, so that they can be copied.

use std::fmt::Write as _;

use crate::finding::{Evidence, Figure, Finding, Report};
use crate::rules::Page;
use crate::words;

/// The narrowest that texts are wrapped at, in columns; what is asked for below it counts as this.
pub const WIDTH_MIN: usize = 40;

/// Columns before the texts of a finding, which hold their titles.
const INDENT: usize = 10;
/// Evidence whose name is longer pushes its figure to the right instead of aligning it.
const NAME_MAX: usize = 40;

/// All findings, then what could not be checked, then one line that counts them.
pub fn report(report: &Report, width: usize) -> String {
    let mut out = String::new();
    for one in &report.findings {
        out.push_str(&finding(one, width));
        out.push('\n');
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
        let name = finding.severity.name();
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

/// One finding.
pub fn finding(finding: &Finding, width: usize) -> String {
    let mut out = String::new();
    titled(&mut out, &finding.severity.name().to_uppercase(), &finding.what, width);
    let mut about = format!("{}, {}", finding.rule, finding.certainty.name());
    if let Some(namespace) = &finding.namespace {
        let _ = write!(about, ", in namespace {namespace}");
    }
    titled(&mut out, "", &about, width);
    evidence(&mut out, &finding.evidence, width);
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
