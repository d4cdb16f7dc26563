//! Sentences and the counters that contradict them, as data: `contradictions.json`. With the counter the
//! sentence must not be said, in any finding's `what`, `why` or remedies; without it the rule does say it,
//! so that no pair passes because its rule is silent anyway.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use diagnose::facts::Facts;
use diagnose::finding::Finding;
use diagnose::rules::{Rule, diagnose};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    sentence: String,
    contradicted_by: String,
    rule: String,
    /// A part of the sentence, in the words of the rule; letter case does not count.
    must_not_say: String,
    facts: Facts,
    /// The same without the contradiction.
    without_it: Facts,
}

fn pairs() -> Vec<Pair> {
    serde_json::from_str(include_str!("contradictions.json")).unwrap()
}

fn says(findings: &[Finding], words: &str) -> bool {
    let words = words.to_lowercase();
    findings.iter().any(|one| {
        let remedies = one.remedy.iter().map(|remedy| remedy.action.as_str());
        let mut sentences = [one.what.as_str(), one.why.as_str()].into_iter().chain(remedies);
        sentences.any(|sentence| sentence.to_lowercase().contains(&words))
    })
}

#[test]
fn no_sentence_is_said_that_a_counter_contradicts() {
    for pair in pairs() {
        let Pair { sentence, contradicted_by, rule, must_not_say, .. } = &pair;
        assert!(Rule::by_name(rule).is_some(), "no rule {rule}");
        let of_rule = |facts: &Facts| -> Vec<Finding> {
            let mut findings = diagnose(facts).findings;
            findings.retain(|one| one.rule == *rule);
            findings
        };
        let found = of_rule(&pair.facts);
        assert!(
            !says(&found, must_not_say),
            "{rule}: says that {sentence}, though {contradicted_by}: {found:#?}"
        );
        let found = of_rule(&pair.without_it);
        assert!(says(&found, must_not_say), "{rule}: does not say that {sentence}: {found:#?}");
    }
}
