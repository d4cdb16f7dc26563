//! Words and figures of answers.

use page::trimmed;

use crate::run::{RanOut, Run, Whose};

/// Names a resource and whose it is: `the load generator's connections`.
pub fn resource(ran_out: &RanOut) -> String {
    let whose = match ran_out.whose {
        Whose::Generator => "the load generator's",
        Whose::Link => "the link's",
        Whose::Server => "the server's",
        Whose::Unknown => "an unknown part's",
    };
    let what = match ran_out.what.as_str() {
        "cpu" => "CPU",
        "ports" => "local ports",
        "descriptors" => "file descriptors",
        "packets" => "packet rate",
        "accept_queue" => "accept queue",
        other => other,
    };
    format!("{whose} {what}")
}

/// What a run starts, and what becomes of it.
pub(crate) fn started(run: &Run) -> (&'static str, &'static str) {
    if run.kind == "connect" { ("connections", "made") } else { ("requests", "answered") }
}

/// A text as a sentence: with a capital and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    let first = letters.next().map(|first| {
        // A name such as `p99<500ms` stays as it is.
        let is_word = !text.split(' ').next().unwrap_or_default().contains(['<', '>'])
            && letters.clone().next().is_none_or(|next| next.is_alphabetic() || next == ' ');
        if is_word { first.to_uppercase().to_string() } else { first.to_string() }
    });
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

/// A rate as text, with decimals where it is small.
pub fn per_second(rate: f64) -> String {
    let decimals = match rate {
        rate if rate < 1.0 => 3,
        rate if rate < 10.0 => 2,
        rate if rate < 1000.0 => 1,
        _ => 0,
    };
    let text = trimmed(rate, decimals);
    let digits = text.find('.').unwrap_or(text.len());
    let mut out = String::new();
    for (at, digit) in text.chars().enumerate() {
        if at > 0 && at < digits && (digits - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_becomes_a_sentence() {
        assert_eq!(sentence("all 4 connections were in use"), "All 4 connections were in use.");
        assert_eq!(sentence("p99<500ms does not hold."), "p99<500ms does not hold.");
        assert_eq!(sentence("a queue grows"), "A queue grows.");
        assert_eq!(sentence(""), ".");
    }

    #[test]
    fn rates_have_thousands_apart_and_decimals_only_where_they_are_small() {
        let rates = [0.01, 12.34, 162.5, 1_234_567.0].map(per_second);
        assert_eq!(rates, ["0.01", "12.3", "162.5", "1,234,567"]);
    }
}
