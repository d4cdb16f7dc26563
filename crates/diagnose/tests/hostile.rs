//! Saved facts may come from anybody: whatever numbers they hold, nothing panics.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::path::Path;

use diagnose::facts::Facts;
use diagnose::finding::Report;
use diagnose::rules::diagnose;
use serde_json::Value;

/// What numbers are replaced by; those too large for a field make the facts unreadable, which is
/// fine.
const NUMBERS: [u64; 6] = [0, 1, 65_535, u32::MAX as u64, u64::MAX / 2, u64::MAX];

fn all_cases() -> Vec<Value> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut facts = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let cases: Value =
                serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            facts.extend(cases.as_array().unwrap().iter().map(|case| case["facts"].clone()));
        }
    }
    facts
}

/// Replaces numbers, and numbers within texts, where `choose` gives one.
fn mutate(value: &mut Value, choose: &mut impl FnMut() -> Option<u64>) {
    match value {
        Value::Number(_) => {
            if let Some(number) = choose() {
                *value = number.into();
            }
        }
        Value::String(text)
            if text.bytes().any(|b| b.is_ascii_digit()) && !text.contains(['.', ':']) =>
        {
            if let Some(number) = choose() {
                *text = text
                    .split_ascii_whitespace()
                    .map(|_| number.to_string())
                    .collect::<Vec<_>>()
                    .join(" ");
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| mutate(value, choose)),
        Value::Object(map) => map.values_mut().for_each(|value| mutate(value, choose)),
        _ => {}
    }
}

/// A small generator of its own, so that a failure is found again: xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn survives(facts: Value) {
    let text = facts.to_string();
    let Ok(facts) = serde_json::from_value::<Facts>(facts) else { return };
    let report = std::panic::catch_unwind(|| diagnose(&facts));
    let Ok(report) = report else { panic!("panics on {text}") };
    // What is said can be written, too.
    let _ = diagnose::render::report(&report, 100);
    // And read again.
    let text = serde_json::to_string(&report).unwrap();
    assert!(serde_json::from_str::<Report>(&text).is_ok(), "{text}");
}

#[test]
fn numbers_of_any_size_are_survived() {
    for facts in all_cases() {
        for number in NUMBERS {
            let mut facts = facts.clone();
            mutate(&mut facts, &mut || Some(number));
            survives(facts);
        }
    }
}

#[test]
fn any_mixture_of_numbers_is_survived() {
    const ROUNDS: u64 = 20;
    for (n, facts) in all_cases().into_iter().enumerate() {
        for round in 0..ROUNDS {
            let mut random = Random(n as u64 * ROUNDS + round + 1);
            let mut facts = facts.clone();
            mutate(&mut facts, &mut || {
                let roll = random.next();
                roll.is_multiple_of(3)
                    .then(|| NUMBERS[(random.next() % NUMBERS.len() as u64) as usize])
            });
            survives(facts);
        }
    }
}
