//! Objectives of a run: parses `p99<200ms,errors<0.1%` and compares it with the figures. Pure.

use std::fmt;

use load_report::run::{Expectation, Run};
use model::units;

/// Conditions in one text.
const CONDITIONS_MAX: usize = 32;

/// One condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    figure: Figure,
    comparison: Comparison,
    /// In the figure's unit.
    bound: f64,
    text: String,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    /// A quantile of the latency, from the intended start where there is one; ms.
    Quantile(f64),
    /// The longest; ms.
    Max,
    /// The mean; ms.
    Mean,
    /// Requests without a response, and statuses of 400 and more, in percent of the requests.
    Errors,
    /// Requests begun per second.
    Rate,
    /// Responses per second.
    Responses,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAnObjective(String);

impl fmt::Display for NotAnObjective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotAnObjective {}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads conditions, one after the other with commas between.
///
/// # Errors
/// At the first that is none, with what would be one.
pub fn read(text: &str) -> Result<Vec<Condition>, NotAnObjective> {
    let conditions: Result<Vec<Condition>, _> =
        text.split(',').map(str::trim).take(CONDITIONS_MAX + 1).map(condition).collect();
    let conditions = conditions?;
    if conditions.len() > CONDITIONS_MAX {
        return Err(NotAnObjective(format!("more than {CONDITIONS_MAX} conditions")));
    }
    Ok(conditions)
}

fn condition(text: &str) -> Result<Condition, NotAnObjective> {
    let wrong = |why: &str| {
        let like = "write p99<200ms, mean<50ms, max<2s, errors<0.1% or rate>1000";
        NotAnObjective(format!("\"{text}\": {why}; {like}"))
    };
    let at = text.find(['<', '>']).ok_or_else(|| wrong("no < or > in it"))?;
    let (name, rest) = text.split_at(at);
    let (comparison, bound) = match rest {
        _ if rest.starts_with("<=") => (Comparison::AtMost, &rest[2..]),
        _ if rest.starts_with(">=") => (Comparison::AtLeast, &rest[2..]),
        _ if rest.starts_with('<') => (Comparison::Below, &rest[1..]),
        _ => (Comparison::Above, &rest[1..]),
    };
    let figure = match name.trim() {
        "max" => Figure::Max,
        "mean" => Figure::Mean,
        "errors" => Figure::Errors,
        "rate" => Figure::Rate,
        "responses" => Figure::Responses,
        name => {
            let percent = name.strip_prefix('p').and_then(|digits| digits.parse::<f64>().ok());
            let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
            Figure::Quantile(percent.ok_or_else(|| wrong("no figure of that name"))? / 100.0)
        }
    };
    let bound = bound.trim();
    let bound = match figure {
        Figure::Errors if !bound.ends_with('%') => Err(wrong("errors are in percent")),
        Figure::Errors => units::percent(bound).map_err(|error| wrong(&error.why)),
        Figure::Rate | Figure::Responses => {
            units::per_second(bound).map_err(|error| wrong(&error.why))
        }
        Figure::Quantile(_) | Figure::Max | Figure::Mean => units::duration(bound)
            .map(|time| time.as_secs_f64() * 1e3)
            .map_err(|error| wrong(&error.why)),
    }?;
    Ok(Condition { figure, comparison, bound, text: text.to_owned() })
}

impl Condition {
    /// Holds it against a run.
    pub fn judge(&self, run: &Run) -> Expectation {
        let times = run.latency.intended_start.as_ref().unwrap_or(&run.latency.service);
        let measured = match self.figure {
            Figure::Max => times.max_ms,
            Figure::Mean => times.mean_ms,
            Figure::Quantile(quantile) => quantile_ms(times, quantile),
            Figure::Errors => errors_percent(run),
            Figure::Rate => run.rate.achieved_per_s,
            Figure::Responses => run.rate.responses_per_s,
        };
        // Times of nothing are no times: a run without responses passes no bound on them.
        let is_time = !matches!(self.figure, Figure::Errors | Figure::Rate | Figure::Responses);
        let is_measured = !is_time || times.count > 0;
        let held = is_measured
            && match self.comparison {
                Comparison::Below => measured < self.bound,
                Comparison::AtMost => measured <= self.bound,
                Comparison::Above => measured > self.bound,
                Comparison::AtLeast => measured >= self.bound,
            };
        let measured = match self.figure {
            _ if !is_measured => "nothing was measured".to_owned(),
            Figure::Errors => format!("{measured:.3} %"),
            Figure::Rate | Figure::Responses => format!("{measured:.1}/s"),
            _ => milliseconds(measured),
        };
        Expectation { text: self.text.clone(), measured, held }
    }
}

/// With three significant digits.
fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms >= 100.0 => format!("{ms:.0} ms"),
        ms if ms >= 10.0 => format!("{ms:.1} ms"),
        ms if ms >= 1.0 => format!("{ms:.2} ms"),
        ms => format!("{ms:.3} ms"),
    }
}

fn quantile_ms(times: &load_report::Summary, quantile: f64) -> f64 {
    let distribution = times.distribution();
    distribution.map_or(f64::INFINITY, |all| all.value_at_quantile(quantile) as f64 / 1e6)
}

/// Requests that got no response or one with a status of 400 and more, in percent. Those that were
/// due and never began count as well: their users got no response.
pub fn errors_percent(run: &Run) -> f64 {
    let totals = &run.totals;
    let bad: u64 = totals
        .statuses
        .iter()
        .filter(|(status, _)| status.as_str() >= "400")
        .map(|(_, count)| count)
        .sum();
    let all = totals.requests + totals.dropped_starts;
    (totals.errors + bad + totals.dropped_starts) as f64 * 100.0 / (all.max(1)) as f64
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;
    use load_report::Summary;

    fn held(text: &str, run: &Run) -> Vec<bool> {
        read(text).unwrap().iter().map(|condition| condition.judge(run).held).collect()
    }

    #[test]
    fn conditions_are_held_against_the_figures() {
        let mut times = Histogram::<u64>::new(3).unwrap();
        for millis in 1..=100 {
            times.record(millis * 1_000_000).unwrap();
        }
        let mut run = Run::default();
        run.latency.service = Summary::of(&times);
        run.totals.requests = 1000;
        run.totals.errors = 1;
        run.totals.statuses = [("200".to_owned(), 997), ("503".to_owned(), 2)].into();
        run.rate.achieved_per_s = 500.0;
        assert_eq!(held("p50<51ms, p99 < 0.1s,p99.9<=50000us", &run), [true, true, false]);
        assert_eq!(held("max<101ms,max<100ms,mean>50ms", &run), [true, false, true]);
        assert_eq!(held("errors<0.4%,errors<0.3%,errors<=0.3%", &run), [true, false, true]);
        assert_eq!(held("rate>=500,rate>500/s", &run), [true, false]);
        // A stall shows in the times from the intended start, so these count where there are any.
        let stalled = Histogram::<u64>::new(3).map(|mut times| {
            times.record(9_000_000_000).unwrap();
            times
        });
        run.latency.intended_start = Some(Summary::of(&stalled.unwrap()));
        assert_eq!(held("p99<200ms", &run), [false]);
    }

    #[test]
    fn a_run_without_responses_keeps_no_bound_on_times() {
        let run = Run::default();
        let judged = read("p99<200ms").unwrap()[0].judge(&run);
        assert!(!judged.held && judged.measured == "nothing was measured", "{judged:?}");
    }

    #[test]
    fn what_is_no_condition_is_refused_with_what_would_be() {
        for text in
            ["", "p99", "p99<", "p99<200", "p101<1ms", "q<1ms", "errors<1ms", "p99<-1ms", "p<NaNs"]
        {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("write p99<200ms"), "{error}");
        }
    }
}
