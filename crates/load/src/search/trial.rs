//! Whether a trial has passed: the rate was delivered, the objective holds, no backlog grows, and
//! the load generator had capacity left. Pure.

use crate::objective::Condition;
use crate::verdict::{falls_short, threads_full};
use load_report::run::{RanOut, Run};

/// Of the requests begun in a trial's second half, so many may be added to those under way: more is
/// a queue that grows, and would end the objective in a longer run.
const GROWTH_MAX: f64 = 0.01;
/// So many more under way are no growth.
const GROWTH_NOISE: f64 = 5.0;

/// A trial's outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Whether the rate was sustained.
    pub passed: bool,
    /// Why not; or that it was.
    pub why: String,
    /// The load generator was at its own end: no higher rate can be tried from here.
    pub generator_is_full: bool,
}

/// Judges a trial.
pub fn judge(run: &Run, conditions: &[Condition]) -> Judged {
    let failed = |why: String| Judged { passed: false, why, generator_is_full: false };
    if let Some(why) = threads_full(run) {
        return Judged { passed: false, why, generator_is_full: true };
    }
    let is_own = |ran_out: &&RanOut| ran_out.what == "ports" || ran_out.what == "descriptors";
    if let Some(RanOut { evidence, .. }) = run.ran_out.iter().find(is_own) {
        return Judged { passed: false, why: evidence.clone(), generator_is_full: true };
    }
    if falls_short(run) {
        let share = run.rate.achieved_per_s * 100.0 / run.rate.intended_per_s.unwrap_or(1.0);
        let connections = run.ran_out.iter().any(|ran_out| ran_out.what == "connections");
        let why = if connections { ": all connections were in use" } else { "" };
        return failed(format!("only {share:.1} % of the requests could begin{why}"));
    }
    for condition in conditions {
        let judged = condition.judge(run);
        if !judged.held {
            return failed(format!("{} does not hold: {}", judged.text, judged.measured));
        }
    }
    if let Some((growth, begun)) = growth(run) {
        return failed(format!(
            "a queue grows: in the second half {growth} more requests were under way for {begun} begun"
        ));
    }
    Judged { passed: true, why: "sustained".to_owned(), generator_is_full: false }
}

/// By how many the requests under way grew in a trial's second half, and how many began in it;
/// `None`: they did not grow.
fn growth(run: &Run) -> Option<(u64, u64)> {
    // The last interval is what came after the starts had ended.
    let whole = run.shape.duration_s.unwrap_or(0.0) as usize;
    let seconds = run.seconds.get(..whole.min(run.seconds.len()))?;
    let (middle, last) = (seconds.get(seconds.len() / 2)?, seconds.last()?);
    let begun: u64 = seconds[seconds.len() / 2 + 1..].iter().map(|second| second.started).sum();
    let growth = last.in_flight.saturating_sub(middle.in_flight);
    let is_growth = growth as f64 > (begun as f64 * GROWTH_MAX).max(GROWTH_NOISE);
    is_growth.then_some((growth, begun))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective;
    use load_report::run::{Second, Shape};

    /// A trial of 8 s at 100 per second, with so many under way at the end of each second.
    fn trial(in_flight: impl Fn(u64) -> u64) -> Run {
        let second = |at| Second { started: 100, in_flight: in_flight(at), ..Second::default() };
        let mut run = Run {
            shape: Shape { duration_s: Some(8.0), ..Shape::default() },
            seconds: (0..9).map(second).collect(),
            ..Run::default()
        };
        run.rate.intended_per_s = Some(100.0);
        run.rate.achieved_per_s = 100.0;
        run
    }

    #[test]
    fn what_piles_up_fails_though_the_objective_still_holds() {
        let errors = objective::read("errors<1%").unwrap();
        assert!(judge(&trial(|_| 30), &errors).passed);
        assert!(judge(&trial(|at| 30 + at % 3), &errors).passed);
        let growing = judge(&trial(|at| 30 + at * 3), &errors);
        assert!(!growing.passed && growing.why.contains("a queue grows"), "{growing:?}");
    }

    #[test]
    fn the_reasons_are_told_apart() {
        let mut run = trial(|_| 30);
        run.rate.achieved_per_s = 98.0;
        assert_eq!(judge(&run, &[]).why, "only 98.0 % of the requests could begin");
        let mut run = trial(|_| 30);
        run.totals.requests = 800;
        run.totals.errors = 8;
        let judged = judge(&run, &objective::read("errors<0.1%").unwrap());
        assert_eq!(judged.why, "errors<0.1% does not hold: 1.000 %");
        for second in &mut run.seconds {
            second.busiest_thread_percent = 99.0;
        }
        assert!(judge(&run, &[]).generator_is_full);
    }
}
