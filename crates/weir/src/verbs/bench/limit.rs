//! `weir bench limit`: finds the highest rate that meets an objective.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use balancer::signals::Signals;
use load::engine::Refusal;
use load::engine::plan::Shape;
use load::schedule::{Profile, Spacing};
use load::search::{self, Facts, Found, Purpose, Search, Terms, Trial};
use load_report::run::{Run, Step, Whose};

use crate::flags::bench::LimitArgs;
use crate::flags::bench::http::{HttpArgs, ShapeArgs};
use crate::flags::{Common, Exit};

use super::http::Wanted;
use super::measure::{Measured, measure_with};
use super::output::refused;
use super::table::{bytes, millis};
use super::{report, table};

/// Between two trials, so that queues of the last one are empty for the next.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &LimitArgs, common: Common) -> Exit {
    let words = words(args);
    let wanted = match Wanted::read(&words) {
        Ok(wanted) => wanted,
        Err(refusal) => return refused(&refusal),
    };
    let mut signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return super::output::failed(&format!("signals cannot be caught: {error}")),
    };
    if let Err(why) = report::can_write(&args.report) {
        return super::output::failed(&why);
    }
    let mut hunt = Hunt { args, words, wanted, common, runs: Vec::new(), broken_off: None };
    let found = match hunt.search(&mut signals) {
        Ok(found) => found,
        Err(refusal) => return refused(&refusal),
    };
    let Some(run) = hunt.sum_up() else {
        return match hunt.broken_off {
            Some(why) => {
                super::output::failed(&format!(
                    "a thread of the load generator ended early: {why}"
                ));
                Exit::Broken
            }
            None => super::output::failed("ended before the first trial was over"),
        };
    };
    let written = report::write(&run, &args.report);
    super::output::print(&table::text(&run, false, common.colours_stdout()));
    super::output::print(&hunt.text(found, &run));
    match written {
        Err(error) => super::output::failed(&error),
        Ok(()) if hunt.broken_off.is_some() => Exit::Broken,
        Ok(()) => match found {
            // The server's limit is higher; this run cannot show by how much.
            Some(Found::Limit(_)) if is_generators(&run) => Exit::Limited,
            Some(Found::Limit(_) | Found::NoLimit(_)) => Exit::Done,
            _ => Exit::Failed,
        },
    }
}

/// Whether it is the load generator whose limit was found.
fn is_generators(run: &Run) -> bool {
    run.ran_out.iter().any(|ran_out| ran_out.whose == Whose::Generator)
}

/// A trial and what came of it.
struct Tried {
    trial: Trial,
    run: Run,
    passed: bool,
    generator_is_full: bool,
}

/// A search with what it has found so far.
struct Hunt<'a> {
    args: &'a LimitArgs,
    words: HttpArgs,
    wanted: Wanted,
    common: Common,
    runs: Vec<Tried>,
    /// Why the load generator broke, which ended the search.
    broken_off: Option<String>,
}

impl Hunt<'_> {
    /// Tries until it is over; `None`: a signal ended it, or the load generator broke.
    fn search(&mut self, signals: &mut Signals) -> Result<Option<Found>, Refusal> {
        let args = self.args;
        let mut search = Search::new(Terms {
            from_per_s: args.from,
            to_per_s: args.to.max(args.from),
            trial: args.trial,
            confirmation: args.confirm,
            precision: args.precision / 100.0,
        });
        loop {
            let trial = match search.next() {
                Ok(trial) => trial,
                Err(found) => return Ok(Some(found)),
            };
            if !self.runs.is_empty() && signals.wait_at_most(PAUSE).is_some() {
                return Ok(None);
            }
            let Measured { mut run, interrupted } = self.run(trial, signals)?;
            self.broken_off.clone_from(&run.broken_off);
            if interrupted || self.broken_off.is_some() {
                return Ok(None);
            }
            let judged = search::judge(&run, &args.objective);
            super::output::show(&format!("{}\n", line(trial, &run, judged.passed, &judged.why)));
            run.steps = vec![step(trial, &run, judged.passed, judged.why)];
            search.tell(judged.passed);
            let generator_is_full = judged.generator_is_full;
            self.runs.push(Tried { trial, run, passed: judged.passed, generator_is_full });
        }
    }

    fn run(&self, trial: Trial, signals: &mut Signals) -> Result<Measured, Refusal> {
        let profile = Profile::steady(trial.per_s, trial.time, Duration::ZERO)
            .map_err(|error| Refusal::Mistake(error.to_string()))?;
        let spacing = if self.args.random { Spacing::Random { seed: 1 } } else { Spacing::Even };
        let shape = Shape::Open { profile: Arc::new(profile), spacing };
        let plan = self.wanted.plan(shape, &self.words.shape)?;
        let shows = !self.args.report.quiet && super::live::can_draw(self.common);
        measure_with(plan, shows, self.common, signals)
            .map_err(|error| Refusal::Unreachable(format!("the load cannot begin: {error}")))
    }

    /// The confirming run, or the best that passed, or the last; with all steps and what ran out.
    fn sum_up(&self) -> Option<Run> {
        let best = self.best().or(self.runs.last())?;
        let mut run = best.run.clone();
        "limit".clone_into(&mut run.kind);
        run.steps = self.runs.iter().flat_map(|tried| tried.run.steps.clone()).collect();
        if let (Some(best), Some(failed)) = (self.best(), self.first_above()) {
            let idle = self.runs.iter().filter(|tried| tried.passed);
            let idle = idle.min_by(|a, b| a.trial.per_s.total_cmp(&b.trial.per_s)).unwrap_or(best);
            if failed.generator_is_full {
                run.ran_out.clone_from(&failed.run.ran_out);
            } else {
                let (idle, best) = (Facts::of(&idle.run), Facts::of(&best.run));
                let beyond = Facts::of(&failed.run);
                let own = search::connections_ran_out(&idle, &beyond, &failed.run.ran_out);
                let ran_out = own.unwrap_or_else(|| search::what_ran_out(&idle, &best, &beyond));
                run.ran_out.push(ran_out);
            }
        }
        Some(run)
    }

    /// The run that is the answer: the last that passed of the longest.
    fn best(&self) -> Option<&Tried> {
        self.runs
            .iter()
            .rev()
            .find(|tried| tried.passed && tried.trial.purpose == Purpose::Confirmation)
            .or_else(|| {
                let passed = self.runs.iter().filter(|tried| tried.passed);
                passed.max_by(|a, b| a.trial.per_s.total_cmp(&b.trial.per_s))
            })
    }

    /// The trial that failed with about a tenth too much, in which what ran out shows clearly; else
    /// the nearest above. One during which this machine had CPU left comes before all that others
    /// kept busy: it failed as well, and tells what would have run out anyway.
    fn first_above(&self) -> Option<&Tried> {
        let best = self.best()?.trial.per_s;
        let above = self.runs.iter().filter(|tried| !tried.passed && tried.trial.per_s > best);
        let rank = |tried: &&Tried| {
            let distance = (tried.trial.per_s / best - 1.15).abs();
            (!Facts::of(&tried.run).has_cpu(), distance)
        };
        above.min_by(|a, b| {
            let (a, b) = (rank(a), rank(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })
    }

    fn text(&self, found: Option<Found>, run: &Run) -> String {
        let mut text = String::from("\nRate/s      begun    p99      errors     for     verdict\n");
        for step in &run.steps {
            let _ = writeln!(
                text,
                "{:<10.1}  {:<7.1}  {:<7}  {:<6.3} %   {:<5}   {}",
                step.rate_per_s,
                step.achieved_per_s,
                millis(step.p99_ms),
                step.errors_percent,
                format!("{:.0} s", step.duration_s),
                step.why
            );
        }
        text.push('\n');
        let objective: Vec<String> = self.args.objective.iter().map(ToString::to_string).collect();
        let objective = objective.join(",");
        let seconds = self.args.confirm.as_secs_f64();
        let verdict = match found {
            Some(Found::Limit(rate)) => {
                let per_request = run.totals.bytes_in as f64 / run.totals.responses.max(1) as f64;
                format!(
                    "The limit: {rate:.1} requests per second with {objective}, sustained for {seconds:.0} s \
                     ({} a response, {}/s).\n",
                    bytes(per_request),
                    bytes(per_request * rate)
                )
            }
            Some(Found::NoLimit(rate)) => format!(
                "No limit found: {rate:.1} requests per second hold {objective} for {seconds:.0} s; try more with --to.\n"
            ),
            Some(Found::Nothing) => {
                format!("No rate passes: not even the lowest holds {objective}.\n")
            }
            Some(Found::Unconfirmed(rate)) => format!(
                "Not confirmed: trials of {:.0} s pass at {rate:.1} requests per second, runs of {seconds:.0} s do not; \
                 try longer trials (--trial).\n",
                self.args.trial.as_secs_f64()
            ),
            None => match &self.broken_off {
                Some(why) => format!(
                    "Aborted before the limit was found: a thread of the load generator ended early ({why}).\n"
                ),
                None => "Ended by a signal before the limit was found.\n".to_owned(),
            },
        };
        text.push_str(&verdict);
        text
    }
}

/// The same words as for a plain run.
fn words(args: &LimitArgs) -> HttpArgs {
    HttpArgs {
        urls: args.urls.clone(),
        shape: ShapeArgs {
            time: None,
            requests: None,
            connections: args.connections,
            rate: None,
            ramp: None,
            steps: None,
            random: args.random,
            threads: args.threads,
        },
        request: args.request.clone(),
        ways: args.ways.clone(),
        report: args.report.clone(),
        expect: Vec::new(),
        carry_on: false,
        any_length: false,
    }
}

fn step(trial: Trial, run: &Run, passed: bool, why: String) -> Step {
    let times = run.latency.intended_start.as_ref().unwrap_or(&run.latency.service);
    let why =
        if trial.purpose == Purpose::Confirmation { format!("confirmation: {why}") } else { why };
    Step {
        rate_per_s: trial.per_s,
        achieved_per_s: run.rate.achieved_per_s,
        duration_s: trial.time.as_secs_f64(),
        p99_ms: times.p99_ms,
        errors_percent: load::objective::errors_percent(run),
        passed,
        why,
    }
}

fn line(trial: Trial, run: &Run, passed: bool, why: &str) -> String {
    let p99 = run.latency.intended_start.as_ref().map_or(0.0, |times| times.p99_ms);
    let purpose = match trial.purpose {
        Purpose::Doubling => "doubling",
        Purpose::Bisection => "bisection",
        Purpose::Confirmation => "confirmation",
    };
    format!(
        "{purpose:<12} {:>9.1}/s  p99 {:<8} {}",
        trial.per_s,
        millis(p99),
        if passed { "passed".to_owned() } else { format!("failed: {why}") }
    )
}
