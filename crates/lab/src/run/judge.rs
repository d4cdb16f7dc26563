//! What a run's figures and findings are worth: held against what its file expects.

use serde_json::Value;

use super::Request;
use super::figures::{Expression, places};
use super::record::{Check, Finding, Found, Record};
use crate::incident::{Expect, Findings};

/// Adds the checks and findings to a record.
pub(super) fn judge(request: &Request<'_>, record: &mut Record) {
    let ran: Vec<&str> = record.variants.iter().map(|variant| &*variant.name).collect();
    let incident = request.incident;
    let has_run = |name: &str| ran.contains(&name);
    let counts = |is_long: bool| !(is_long && request.is_short);
    let expected = incident.expect.iter().filter(|expect| counts(expect.long));
    let checks: Vec<Check> =
        expected.filter_map(|expect| check(expect, &record.figures, &has_run)).collect();
    let looked = incident.findings.iter().filter(|findings| counts(findings.long));
    let looked = looked.filter(|findings| has_run(findings.variant.as_ref()));
    let findings = looked.map(|findings| found(findings, &record.figures)).collect();
    (record.checks, record.findings) = (checks, findings);
}

/// `None` when it is about a variant that was not run.
fn check(expect: &Expect, figures: &Value, has_run: &dyn Fn(&str) -> bool) -> Option<Check> {
    // Read before, when the file was checked.
    let expression = Expression::read(expect.figure.as_ref()).ok()?;
    let variant = |path: &&str| path.split('.').next().unwrap_or_default().to_owned();
    if !expression.paths().iter().all(|path| has_run(&variant(path))) {
        return None;
    }
    let value = expression.value(figures).ok();
    let holds = value.is_some_and(|value| {
        expect.at_least.is_none_or(|least| value >= least)
            && expect.at_most.is_none_or(|most| value <= most)
    });
    Some(Check {
        what: expect.what.clone(),
        figure: expect.figure.as_ref().clone(),
        value,
        unit: expect.unit.clone(),
        at_least: expect.at_least,
        at_most: expect.at_most,
        theirs: expect.theirs.clone(),
        holds,
    })
}

fn found(findings: &Findings, figures: &Value) -> Found {
    let (variant, step) = (findings.variant.as_ref(), findings.step.as_ref());
    let found = told(figures.get(variant).and_then(|of| of.get(step)).unwrap_or(&Value::Null));
    let speaks = |rule: &&String| found.iter().any(|finding| finding.rule == **rule);
    let missing = findings.must.iter().filter(|rule| !speaks(rule)).cloned().collect::<Vec<_>>();
    let expected =
        |rule: &str| findings.must.iter().chain(&findings.may).any(|expected| expected == rule);
    let serious = found.iter().filter(|finding| finding.has_weight() && !expected(&finding.rule));
    let mut unexpected: Vec<String> = serious.map(|finding| finding.rule.clone()).collect();
    unexpected.dedup();
    let holds = missing.is_empty() && unexpected.is_empty();
    Found { variant: variant.clone(), step: step.clone(), found, missing, unexpected, holds }
}

/// The findings in what a step has written: `weir doctor`'s and the API's, or `weir trace`'s; those
/// of a group of hosts all together.
fn told(written: &Value) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    let paths = ["findings.*", "diagnosis.findings.*", "*.findings.*", "*.diagnosis.findings.*"];
    for finding in paths.iter().flat_map(|path| places(path, written)) {
        let text = |name: &str| finding.get(name).and_then(Value::as_str).map(str::to_owned);
        let Some(rule) = text("rule") else { continue };
        let finding = Finding {
            rule,
            severity: text("severity").unwrap_or_default(),
            what: text("what").unwrap_or_default(),
        };
        if !all.contains(&finding) {
            all.push(finding);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(must: &[&str], may: &[&str]) -> Found {
        let list = |names: &[&str]| format!("{names:?}");
        let text = format!(
            "variant = \"a\"\nstep = \"doctor\"\nmust = {}\nmay = {}",
            list(must),
            list(may)
        );
        let figures = serde_json::json!({ "a": { "doctor": { "findings": [
            { "rule": "syn_cookies", "severity": "warning", "what": "w" },
            { "rule": "time_wait_many", "severity": "note", "what": "n" },
        ] } } });
        found(&toml::from_str(&text).unwrap(), &figures)
    }

    #[test]
    fn what_must_be_found_is_missed_and_what_is_serious_must_be_expected() {
        assert!(findings(&["syn_cookies"], &[]).holds);
        assert!(findings(&[], &["syn_cookies"]).holds);
        assert_eq!(findings(&[], &[]).unexpected, ["syn_cookies"]);
        let found = findings(&["listener_overflow"], &["syn_cookies"]);
        assert_eq!((found.missing, found.holds), (vec!["listener_overflow".to_owned()], false));
    }
}
