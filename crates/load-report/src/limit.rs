//! What a search for the limit has shown: a range, no more exact than its trials.

use page::{Answer, Tone, milliseconds, trimmed};

use crate::run::{Limit, RanOut, Run, SearchEnd, Step, Whose};
use crate::words::{per_second, resource, sentence};

/// The answer of a search.
pub(crate) fn answer(run: &Run, limit: &Limit) -> Answer {
    // The first is what the search concluded; others were seen besides.
    let own = run.ran_out.first().filter(|ran_out| ran_out.whose == Whose::Generator);
    let (tone, headline) = headline(run, limit, own);
    let what = if limit.outcome == SearchEnd::Found { "Limiting resource" } else { "Exhausted" };
    let mut details = Vec::new();
    details.extend(reached(run, limit));
    details.extend(failed(run, limit));
    details.extend(run.ran_out.iter().enumerate().map(|(at, one)| {
        let what = if at == 0 { what } else { "Also exhausted" };
        match one.whose {
            Whose::Unknown => format!("{what} not known: {}", sentence(&one.evidence)),
            _ => format!("{what}: {}. {}", resource(one), sentence(&one.evidence)),
        }
    }));
    details.extend(run.notes.iter().map(|note| sentence(note)));
    Answer { tone, headline, details }
}

fn headline(run: &Run, limit: &Limit, own: Option<&RanOut>) -> (Tone, String) {
    let objective = objective(run);
    let rate = |rate: Option<f64>| per_second(rate.unwrap_or_default());
    match (limit.outcome, limit.sustained_per_s, limit.failed_per_s) {
        (SearchEnd::Found, Some(low), _) if own.is_some() => {
            let own = own.map(resource).unwrap_or_default();
            let headline = format!(
                "The server's limit is above {} requests/s: {own} ran out first",
                floor(low)
            );
            (Tone::Warn, headline)
        }
        (SearchEnd::Found, Some(low), Some(high)) => {
            let (low, high) = range(low, high);
            (Tone::Plain, format!("The limit is between {low} and {high} requests/s{objective}"))
        }
        (SearchEnd::Found | SearchEnd::NoLimit, low, _) => {
            (Tone::Good, format!("No limit up to {} requests/s{objective}", rate(low)))
        }
        (SearchEnd::Nothing, _, high) => {
            (Tone::Bad, format!("Not even {} requests/s were sustained{objective}", rate(high)))
        }
        (SearchEnd::Unconfirmed, _, high) => (
            Tone::Warn,
            format!(
                "The limit is below {} requests/s: short trials passed, longer runs failed",
                rate(high)
            ),
        ),
        (SearchEnd::Aborted, Some(low), Some(high)) if high <= low => {
            let headline = format!(
                "Ended early: the limit is below {} requests/s: short trials passed, a longer run failed",
                per_second(high)
            );
            (Tone::Warn, headline)
        }
        (SearchEnd::Aborted, Some(low), Some(high)) => {
            let (low, high) = range(low, high);
            let headline =
                format!("Ended early: the limit is between about {low} and {high} requests/s");
            (Tone::Warn, headline)
        }
        (SearchEnd::Aborted, Some(low), None) => {
            (Tone::Warn, format!("Ended early: the limit is above about {} requests/s", floor(low)))
        }
        (SearchEnd::Aborted, None, _) => {
            (Tone::Warn, "Ended before any rate was sustained".to_owned())
        }
    }
}

/// What was asked for: ` with p99<500ms, errors<0.1%`.
fn objective(run: &Run) -> String {
    let all: Vec<&str> = run.expectations.iter().map(|one| one.text.as_str()).collect();
    if all.is_empty() { String::new() } else { format!(" with {}", all.join(", ")) }
}

/// What was sustained, and how.
fn reached(run: &Run, limit: &Limit) -> Option<String> {
    let low = limit.sustained_per_s?;
    let step = run.steps.iter().rev().find(|step| step.passed && step.rate_per_s >= low)?;
    let bytes_per_s = run.totals.bytes_in as f64 / run.totals.responses.max(1) as f64 * low / 1e6;
    Some(format!(
        "Sustained for {} s: {}/s, with p99 {}, {} % errors, {} MB/s of responses.",
        trimmed(limit.sustained_s, 1),
        per_second(low),
        milliseconds(step.p99_ms),
        trimmed(step.errors_percent, 3),
        trimmed(bytes_per_s, 1)
    ))
}

/// What was not, for how long, and why.
fn failed(run: &Run, limit: &Limit) -> Option<String> {
    let high = limit.failed_per_s?;
    let step = run.steps.iter().rev().find(|step| !step.passed && step.rate_per_s <= high)?;
    Some(format!(
        "{1}/s failed in a run of {0} s. {2} Each rate near the limit was measured once or twice, so \
         repeated searches differ.",
        trimmed(step.duration_s, 1),
        per_second(high),
        sentence(why(step))
    ))
}

fn why(step: &Step) -> &str {
    step.why.strip_prefix("confirmation: ").unwrap_or(&step.why)
}

/// The range between a rate that was sustained and one that was not, rounded outwards to a step that is
/// as coarse as the range, but at most a twentieth of the rate.
fn range(low: f64, high: f64) -> (String, String) {
    let step = step((high - low).max(low * 0.01).min(low * 0.05));
    let (low, high) = ((low / step + NOISE).floor(), (high / step - NOISE).ceil());
    (per_second(low * step), per_second(high * step))
}

/// What dividing adds to a whole number.
const NOISE: f64 = 1e-9;

/// A rate rounded down to a step of at most 2 %, which is as exact as a search is.
fn floor(rate: f64) -> String {
    let step = step(rate * 0.02);
    per_second((rate / step).floor() * step)
}

/// The largest of 1, 2 and 5 times a power of ten that is at most `width`.
fn step(width: f64) -> f64 {
    let power = 10_f64.powf(width.max(1e-3).log10().floor());
    [5.0, 2.0, 1.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|step| *step <= width)
        .unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Expectation;

    #[test]
    fn a_range_is_not_finer_than_its_trials() {
        for (low, high, wanted) in [
            (162.5, 165.0, ("162", "166")),
            (156.8, 158.2, ("156", "159")),
            (425.0, 437.5, ("420", "440")),
            (12_345.0, 12_580.0, ("12,200", "12,600")),
            (3.1, 3.17, ("3.1", "3.2")),
            (40.0, 320.0, ("40", "320")),
        ] {
            let (from, to) = range(low, high);
            assert_eq!((from.as_str(), to.as_str()), wanted);
        }
    }

    fn searched(outcome: SearchEnd, low: Option<f64>, high: Option<f64>) -> Run {
        let step = |rate_per_s, passed, why: &str| Step {
            rate_per_s,
            passed,
            why: why.to_owned(),
            duration_s: 8.0,
            p99_ms: 238.0,
            ..Step::default()
        };
        let limit = Limit { outcome, sustained_per_s: low, sustained_s: 30.0, failed_per_s: high };
        Run {
            kind: "limit".to_owned(),
            steps: vec![
                step(165.0, false, "a queue grows"),
                step(162.5, true, "confirmation: sustained"),
            ],
            expectations: vec![Expectation {
                text: "p99<500ms".to_owned(),
                ..Expectation::default()
            }],
            limit: Some(limit),
            ..Run::default()
        }
    }

    fn answered(run: &Run) -> Answer {
        answer(run, run.limit.as_ref().unwrap())
    }

    #[test]
    fn a_limit_is_a_range_and_no_alarm() {
        let answer = answered(&searched(SearchEnd::Found, Some(162.5), Some(165.0)));
        let wanted = "The limit is between 162 and 166 requests/s with p99<500ms";
        assert_eq!((answer.tone, answer.headline.as_str()), (Tone::Plain, wanted));
        let details = answer.details.join("\n");
        assert!(details.contains("Sustained for 30 s: 162.5/s, with p99 238 ms"), "{details}");
        assert!(details.contains("165/s failed in a run of 8 s. A queue grows."), "{details}");
    }

    #[test]
    fn a_limit_of_the_load_generators_own_is_only_a_lower_bound() {
        let mut run = searched(SearchEnd::Found, Some(162.5), Some(165.0));
        run.ran_out.push(RanOut {
            whose: Whose::Generator,
            what: "cpu".to_owned(),
            evidence: "busy".to_owned(),
        });
        let answer = answered(&run);
        let wanted =
            "The server's limit is above 162 requests/s: the load generator's CPU ran out first";
        assert_eq!((answer.tone, answer.headline.as_str()), (Tone::Warn, wanted));
    }

    #[test]
    fn every_end_of_a_search_has_its_sentence() {
        for (outcome, low, high, wanted) in [
            (SearchEnd::NoLimit, Some(40.0), None, "No limit up to 40 requests/s"),
            (SearchEnd::Nothing, None, Some(0.01), "Not even 0.01 requests/s"),
            (SearchEnd::Unconfirmed, Some(90.0), Some(92.0), "The limit is below 92 requests/s"),
            (SearchEnd::Aborted, Some(40.0), Some(80.0), "between about 40 and 80 requests/s"),
            (SearchEnd::Aborted, Some(40.0), None, "above about 40 requests/s"),
            (SearchEnd::Aborted, None, None, "Ended before any rate"),
        ] {
            let headline = answered(&searched(outcome, low, high)).headline;
            assert!(headline.contains(wanted), "{headline}");
        }
    }
}
