//! The answer of a run in one sentence: what was asked, whether it was met, and what ran out.

use page::{Answer, Tone, milliseconds, trimmed};

use crate::compare;
use crate::limit;
use crate::run::{Run, Whose};
use crate::words::{per_second, resource, sentence, started};

/// Below this share of the intended rate the generator did not deliver what was asked for.
const ACHIEVED_MIN: f64 = 0.99;

/// Returns the answer of a run.
pub fn answer(run: &Run) -> Answer {
    if let Some(limit) = run.limit.as_ref().filter(|_| run.broken_off.is_none()) {
        return limit::answer(run, limit);
    }
    let (tone, headline) = headline(run);
    let mut details = Vec::new();
    details.extend(asked(run));
    details.extend(run.expectations.iter().map(|one| {
        let held = if one.held { "met" } else { "not met" };
        format!("{} {held}: {}.", one.text, one.measured)
    }));
    details.extend(run.ran_out.iter().map(|one| match one.whose {
        Whose::Unknown => format!("Exhausted, of an unknown part: {}", sentence(&one.evidence)),
        _ => format!("Exhausted: {}. {}", resource(one), sentence(&one.evidence)),
    }));
    if run.ran_out.iter().any(|one| one.whose == Whose::Generator) {
        details.push("So the figures do not show the server's limit.".to_owned());
    } else if run.ran_out.is_empty() && run.rate.intended_per_s.is_some() {
        details.push("No resource of the load generator ran out.".to_owned());
    }
    details.extend(run.notes.iter().map(|note| sentence(note)));
    Answer { tone, headline, details }
}

fn headline(run: &Run) -> (Tone, String) {
    if let Some(why) = &run.broken_off {
        let headline = format!(
            "Aborted after {} s: a thread of the load generator ended early ({why})",
            trimmed(run.totals.duration_s, 1)
        );
        return (Tone::Bad, headline);
    }
    let (requests, answered) = started(run);
    // With a schedule the answers come at its rate, and the last of them a little later.
    let rate = per_second(run.rate.intended_per_s.unwrap_or(run.rate.responses_per_s));
    if run.totals.requests == 0 {
        return (Tone::Bad, format!("No {} was started", requests.trim_end_matches('s')));
    }
    if run.totals.responses == 0 {
        return (Tone::Bad, format!("None of {} {requests} was {answered}", run.totals.requests));
    }
    if let Some(intended) = run.rate.intended_per_s
        && run.rate.achieved_per_s < intended * ACHIEVED_MIN
    {
        let achieved = run.rate.achieved_per_s;
        let headline = format!(
            "Only {} of {} intended {requests}/s were started ({:.1} %)",
            trimmed(achieved, 1),
            trimmed(intended, 1),
            achieved / intended * 100.0
        );
        return (Tone::Warn, headline);
    }
    let missed: Vec<&str> =
        run.expectations.iter().filter(|one| !one.held).map(|one| one.text.as_str()).collect();
    if !missed.is_empty() {
        let were = if missed.len() == 1 { "was" } else { "were" };
        return (Tone::Bad, format!("{} {were} not met at {rate} {requests}/s", missed.join(", ")));
    }
    let bad = run.totals.errors + compare::bad(run) + run.totals.dropped_starts;
    let failed = match bad {
        0 => "none failed".to_owned(),
        bad => {
            let all = (run.totals.requests + run.totals.dropped_starts).max(1);
            format!("{} % failed", share(bad as f64 / all as f64))
        }
    };
    let measured = p99(run);
    let met = if run.expectations.is_empty() {
        String::new()
    } else {
        let all: Vec<&str> = run.expectations.iter().map(|one| one.text.as_str()).collect();
        format!(" met {}", all.join(", "))
    };
    let tone = match (bad, run.expectations.is_empty()) {
        (_, false) => Tone::Good,
        (0, true) => Tone::Plain,
        (_, true) => Tone::Warn,
    };
    let answered = if met.is_empty() { format!(" {answered}") } else { String::new() };
    (tone, format!("{rate} {requests}/s{answered}{met}: {measured}{failed}"))
}

/// Its 99th percentile as users see it.
fn p99(run: &Run) -> String {
    let times = run.latency.intended_start.as_ref().unwrap_or(&run.latency.service);
    match times.count {
        0 => String::new(),
        _ => format!("p99 {}, ", milliseconds(times.p99_ms)),
    }
}

/// A share in percent, with the digits that small ones need.
fn share(share: f64) -> String {
    let percent = share * 100.0;
    trimmed(percent, if percent < 1.0 { 3 } else { 1 })
}

/// What was asked for.
fn asked(run: &Run) -> Option<String> {
    let (requests, _) = started(run);
    let shape = &run.shape;
    let length = match (shape.duration_s, shape.requests) {
        (Some(seconds), _) => format!("for {} s", trimmed(seconds, 1)),
        (None, Some(count)) => format!("until {count} {requests}"),
        (None, None) => return None,
    };
    Some(match run.rate.intended_per_s {
        Some(rate) => {
            format!("Asked: {} {requests}/s {length}, on schedule.", trimmed(rate, 1))
        }
        None => format!(
            "Asked: {} connections {length}, each sending its next request after the last response.",
            shape.connections_max
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Summary;
    use crate::run::{Expectation, Rate};

    fn run(intended: f64, achieved: f64) -> Run {
        let rate = Rate {
            intended_per_s: Some(intended),
            achieved_per_s: achieved,
            responses_per_s: achieved,
        };
        let mut run = Run { rate, ..Run::default() };
        run.totals.requests = 1_000;
        run.totals.responses = 1_000;
        run.latency.service = Summary { count: 1_000, p99_ms: 205.0, ..Summary::default() };
        run.shape.duration_s = Some(10.0);
        run
    }

    fn expecting(held: bool) -> Run {
        let mut run = run(100.0, 100.0);
        let (text, measured) = ("p99<400ms".to_owned(), "205 ms".to_owned());
        run.expectations.push(Expectation { text, measured, held });
        run
    }

    #[test]
    fn the_headline_says_what_came_of_what_was_asked() {
        let mut failing = run(100.0, 100.0);
        failing.totals.statuses.insert("503".to_owned(), 5);
        let mut none = run(100.0, 100.0);
        none.totals.responses = 0;
        for (run, tone, wanted) in [
            (run(100.0, 100.0), Tone::Plain, "100 requests/s answered: p99 205 ms, none failed"),
            (expecting(true), Tone::Good, "100 requests/s met p99<400ms: p99 205 ms, none failed"),
            (expecting(false), Tone::Bad, "p99<400ms was not met at 100 requests/s"),
            (failing, Tone::Warn, "100 requests/s answered: p99 205 ms, 0.5 % failed"),
            (
                run(1000.0, 561.0),
                Tone::Warn,
                "Only 561 of 1000 intended requests/s were started (56.1 %)",
            ),
            (none, Tone::Bad, "None of 1000 requests was answered"),
        ] {
            let answer = answer(&run);
            assert_eq!((answer.tone, answer.headline.as_str()), (tone, wanted));
        }
    }
}
