//! Every rule against facts kept as data: `cases/<rule>.json`. Each rule has facts on which it
//! fires, facts on which it does not, and facts that do not show it; `cases/<rule>.txt` is
//! what a person reads where it fires. `UPDATE_EXPECT=1` rewrites the texts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use diagnose::facts::Facts;
use diagnose::finding::{Certainty, Finding, Report, Severity};
use diagnose::rules::{Rule, diagnose};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Begins with `fires`, `quiet` or `unknown`, and goes on with what is special.
    #[serde(rename = "case")]
    name: String,
    facts: Facts,
    /// What the rule finds, in order.
    #[serde(default)]
    finds: Vec<Expected>,
    /// Rules whose findings of weight are right here too.
    #[serde(default)]
    also: Vec<String>,
    /// What the report must name as not checked.
    #[serde(default)]
    could_not_check: Option<String>,
}

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Expected {
    subject: String,
    severity: Severity,
    /// Where it matters how sure it is.
    #[serde(default)]
    certainty: Option<Certainty>,
    /// Where it matters which servers it is about.
    #[serde(default)]
    servers: Option<Vec<String>>,
}

impl Expected {
    fn is(&self, finding: &Finding) -> bool {
        self.subject == finding.subject
            && self.severity == finding.severity
            && self.certainty.is_none_or(|certainty| certainty == finding.certainty)
            && self.servers.as_ref().is_none_or(|servers| *servers == finding.servers)
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn cases(rule: &Rule) -> Vec<Case> {
    let path = directory().join(format!("{}.json", rule.name()));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn of_rule<'a>(report: &'a Report, rule: &'a Rule) -> impl Iterator<Item = &'a Finding> {
    report.findings.iter().filter(|finding| finding.rule == rule.name())
}

fn run(rule: &Rule, case: &Case) {
    let name = format!("{}, {}", rule.name(), case.name);
    let report = diagnose(&case.facts);
    let found: Vec<&Finding> = of_rule(&report, rule).collect();
    let is_as_expected = found.len() == case.finds.len()
        && case.finds.iter().zip(&found).all(|(expected, one)| expected.is(one));
    assert!(is_as_expected, "{name}: expected {:#?}, found {found:#?}", case.finds);
    for other in report.findings.iter().filter(|one| one.rule != rule.name() && one.has_weight()) {
        assert!(case.also.iter().any(|also| *also == other.rule), "{name}: also {other:?}");
    }
    let kind = case.name.split([' ', ':']).next().unwrap_or_default();
    match kind {
        "fires" => assert!(!found.is_empty(), "{name}: expects nothing"),
        "quiet" => assert!(found.is_empty(), "{name}: expects a finding"),
        "unknown" => {
            assert!(found.is_empty(), "{name}: expects a finding");
            let wanted = case.could_not_check.as_deref().unwrap_or_default();
            let all: Vec<String> = report.could_not_check.iter().map(ToString::to_string).collect();
            let is_said = !wanted.is_empty() && all.iter().any(|one| one.contains(wanted));
            assert!(is_said, "{name}: {wanted:?} is not in {all:#?}");
        }
        _ => panic!("{name}: is neither fires, quiet nor unknown"),
    }
}

#[test]
fn every_rule_fires_keeps_quiet_and_says_what_it_cannot_know() {
    for rule in Rule::all() {
        let cases = cases(rule);
        for kind in ["fires", "quiet", "unknown"] {
            let name = rule.name();
            assert!(cases.iter().any(|one| one.name.starts_with(kind)), "{name}: no case {kind}");
        }
        for case in &cases {
            run(rule, case);
        }
    }
}

#[test]
fn findings_read_well() {
    const WIDTH: usize = 100;
    for rule in Rule::all() {
        let mut text = String::new();
        for case in cases(rule).iter().filter(|case| case.name.starts_with("fires")) {
            let report = diagnose(&case.facts);
            for finding in of_rule(&report, rule) {
                is_complete(finding);
                let _ = writeln!(text, "{}\n", case.name);
                text.push_str(&diagnose::render::finding(finding, WIDTH));
                text.push('\n');
            }
        }
        let path = directory().join(format!("{}.txt", rule.name()));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(path, text).unwrap();
        } else {
            let expected = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(text == expected, "{}: is now\n{text}", path.display());
        }
    }
}

/// What every finding owes its reader.
fn is_complete(finding: &Finding) {
    let Finding { rule, what, why, verify, evidence, remedy, source, severity, .. } = finding;
    for sentence in [what, why] {
        assert!(sentence.ends_with('.'), "{rule}: {sentence}");
        assert!(!sentence.contains("  "), "{rule}: {sentence}");
    }
    assert!(what.len() <= 160, "{rule}: {what}");
    assert!(!verify.is_empty() && !source.is_empty() && !evidence.is_empty(), "{rule}");
    assert!(!remedy.is_empty() || *severity == Severity::Note, "{rule}: no remedy");
    assert!(remedy.iter().all(|one| !one.risk.is_empty()), "{rule}: a remedy without its risk");
}

/// A saved set of facts leads to the same findings anywhere.
#[test]
fn facts_survive_being_saved() {
    for rule in Rule::all() {
        for case in cases(rule) {
            let text = serde_json::to_string(&case.facts).unwrap();
            let again: Facts = serde_json::from_str(&text).unwrap();
            assert!(again == case.facts, "{}: {text}", rule.name());
            assert!(diagnose(&again) == diagnose(&case.facts), "{}", rule.name());
        }
    }
}
