//! Compares a run's figures and findings with the expectations of its file.

use serde_json::Value;

use super::Request;
use super::record::{Check, Finding, Found, Record};
use crate::incident::{Expect, Findings, Incident};

/// Rules on the machine that all hosts share. Their findings are shown, and never unexpected, since no
/// incident causes them.
const OF_THE_MACHINE: &[&str] = &["cpu_steal"];

/// Rules that are also expected then: a stalled machine retransmits segments because it reads their
/// acknowledgements too late.
const OF_A_STALLED_MACHINE: &[&str] = &["loss", "server_loss"];

/// Adds the checks and findings to a record.
pub(super) fn judge(request: &Request<'_>, record: &mut Record) {
    let ran: Vec<&str> = record.variants.iter().map(|variant| &*variant.name).collect();
    let incident = request.incident;
    let has_run = |name: &str| ran.contains(&name);
    let counts = |is_long: bool| !(is_long && request.is_short);
    let expected = incident.expect.iter().filter(|expect| counts(expect.long));
    let checks: Vec<Check> =
        expected.filter_map(|expect| check(incident, expect, &record.figures, &has_run)).collect();
    let looked = incident.findings.iter().filter(|findings| counts(findings.long));
    let looked = looked.filter(|findings| has_run(findings.variant.as_ref()));
    let findings = looked.map(|findings| found(findings, &record.figures)).collect();
    (record.checks, record.findings) = (checks, findings);
}

/// `None` when it is about a variant that was not run.
fn check(
    incident: &Incident,
    expect: &Expect,
    figures: &Value,
    has_run: &dyn Fn(&str) -> bool,
) -> Option<Check> {
    // Read before, when the file was checked.
    let expression = incident.figure(expect).ok()?;
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
    let (variant, by) = (findings.variant.as_ref(), findings.by());
    let written = figures.get(variant).and_then(|of| of.get(by)).unwrap_or(&Value::Null);
    let (found, has_looked) = (read_findings(written), has_looked(written));
    let sure = |rule: &String| findings.certainty.get(rule);
    let speaks = |rule: &&String| {
        let mut own = found.iter().filter(|finding| finding.rule == **rule);
        own.any(|finding| sure(rule).is_none_or(|sure| finding.certainty == *sure))
    };
    let wanted = |rule: &String| match sure(rule) {
        Some(sure) => format!("{rule} ({sure})"),
        None => rule.clone(),
    };
    let silent = findings.must.iter().filter(|rule| !speaks(rule));
    let missing: Vec<String> = silent.map(wanted).collect();
    let expected =
        |rule: &str| findings.must.iter().chain(&findings.may).any(|expected| expected == rule);
    let is_stalled = found.iter().any(|finding| OF_THE_MACHINE.contains(&&*finding.rule));
    let is_expected = |finding: &&Finding| {
        expected(&finding.rule)
            || OF_THE_MACHINE.contains(&&*finding.rule)
            || (is_stalled && OF_A_STALLED_MACHINE.contains(&&*finding.rule))
    };
    let serious = found.iter().filter(|one| one.has_weight() && !is_expected(one));
    let mut unexpected: Vec<String> = serious.map(|finding| finding.rule.clone()).collect();
    unexpected.dedup();
    let holds = has_looked && missing.is_empty() && unexpected.is_empty();
    let (variant, by) = (variant.clone(), by.to_owned());
    Found { variant, by, has_looked, found, missing, unexpected, holds }
}

/// What each host of a step or a balancer has written: those of a group stand in a list.
fn hosts(written: &Value) -> &[Value] {
    written.as_array().map_or(std::slice::from_ref(written), Vec::as_slice)
}

/// The findings that a host has written: `weir doctor`'s and the API's, or else `weir trace`'s.
/// `None` where there is no list of them.
fn list(host: &Value) -> Option<&Vec<Value>> {
    let of_trace = || host.get("diagnosis").and_then(|diagnosis| diagnosis.get("findings"));
    host.get("findings").or_else(of_trace)?.as_array()
}

/// Whether there was a look: on every host, of which there is one at least, there is a list, and
/// what looks again and again has done so.
fn has_looked(written: &Value) -> bool {
    let has_looked = |host: &Value| {
        let looks = host.get("looks").and_then(Value::as_f64);
        list(host).is_some() && looks.is_none_or(|looks| looks > 0.0)
    };
    !hosts(written).is_empty() && hosts(written).iter().all(has_looked)
}

/// The findings in what a step has written, those of a group of hosts all together.
fn read_findings(written: &Value) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for finding in hosts(written).iter().filter_map(list).flatten() {
        let text = |name: &str| finding.get(name).and_then(Value::as_str).map(str::to_owned);
        let Some(rule) = text("rule") else { continue };
        let finding = Finding {
            rule,
            severity: text("severity").unwrap_or_default(),
            certainty: text("certainty").unwrap_or_default(),
            what: text("what").unwrap_or_default(),
            times: 1,
        };
        let is_same = |one: &&mut Finding| {
            (&one.rule, &one.severity, &one.certainty)
                == (&finding.rule, &finding.severity, &finding.certainty)
        };
        match all.iter_mut().find(is_same) {
            Some(same) => same.times += 1,
            None => all.push(finding),
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
            { "rule": "syn_cookies", "severity": "warning", "certainty": "likely", "what": "w" },
            { "rule": "time_wait_many", "severity": "note", "what": "n" },
        ] } } });
        found(&toml::from_str(&text).unwrap(), &figures)
    }

    #[test]
    fn a_rule_may_have_to_speak_with_a_certainty() {
        let written = |certainty: &str| {
            serde_json::json!({ "a": { "half": { "diagnosis": { "findings": [
                { "rule": "capture_sack_off", "severity": "warning", "certainty": certainty },
            ] } } } })
        };
        let text = "variant = \"a\"\nstep = \"half\"\nmust = [\"capture_sack_off\"]\n\
                    certainty = { capture_sack_off = \"possible\" }";
        let findings = toml::from_str(text).unwrap();
        let possible = found(&findings, &written("possible"));
        assert_eq!((possible.holds, possible.found.len(), possible.found[0].times), (true, 1, 1));
        let sure = found(&findings, &written("certain"));
        assert_eq!((sure.missing, sure.holds), (vec!["capture_sack_off (possible)".into()], false));
    }

    #[test]
    fn nothing_found_means_something_only_after_a_look() {
        let findings = toml::from_str("variant = \"a\"\nbalancer = \"weir\"").unwrap();
        let answers = |of: Value| serde_json::json!({ "a": { "weir": of } });
        let looked = serde_json::json!({ "looks": 3, "findings": [] });
        let has_not = serde_json::json!({ "looks": 0, "findings": [] });
        assert!(found(&findings, &answers(serde_json::json!([looked, looked]))).holds);
        let advice = serde_json::json!({ "looks": 1, "findings": [
            { "rule": "open_files", "severity": "advice" },
        ] });
        let advised = found(&findings, &answers(serde_json::json!([advice, looked, advice])));
        assert_eq!((advised.holds, advised.found.len(), advised.found[0].times), (true, 1, 2));
        for answer in [
            serde_json::json!([looked, has_not]),
            serde_json::json!([looked, null]),
            serde_json::json!([]),
            serde_json::json!([{ "findings": [], "diagnosis": { "findings": [] } }, {}]),
            serde_json::json!({ "code": 0 }),
            Value::Null,
        ] {
            let found = found(&findings, &answers(answer.clone()));
            assert!(!found.has_looked && !found.holds, "{answer}");
        }
    }

    #[test]
    fn what_must_be_found_is_missed_and_what_is_serious_must_be_expected() {
        assert!(findings(&["syn_cookies"], &[]).holds);
        assert!(findings(&[], &["syn_cookies"]).holds);
        assert_eq!(findings(&[], &[]).unexpected, ["syn_cookies"]);
        let stolen = serde_json::json!({ "a": { "doctor": { "findings": [
            { "rule": "cpu_steal", "severity": "warning" },
        ] } } });
        let none = toml::from_str("variant = \"a\"\nstep = \"doctor\"").unwrap();
        assert!(found(&none, &stolen).holds, "it is the machine's");
        let loss = |beside: &str| {
            serde_json::json!({ "a": { "doctor": { "findings": [
                { "rule": "server_loss", "severity": "warning" },
                { "rule": beside, "severity": "warning" },
            ] } } })
        };
        assert!(found(&none, &loss("cpu_steal")).holds, "the machine stood still");
        assert_eq!(found(&none, &loss("server_loss")).unexpected, ["server_loss"]);
        let found = findings(&["listener_overflow"], &["syn_cookies"]);
        assert_eq!((found.missing, found.holds), (vec!["listener_overflow".to_owned()], false));
    }
}
