//! `weir bench limit`: finds the highest rate that meets an objective.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use balancer::signals::Signals;
use load::engine::Refusal;
use load::engine::plan::Shape;
use load::schedule::{Profile, Spacing};
use load::search::{self, Facts, Found, Purpose, Search, Terms, Trial};
use load_report::per_second;
use load_report::run::{Limit, RanOut, Run, SearchEnd, Step, Whose};

use crate::flags::bench::LimitArgs;
use crate::flags::bench::http::{HttpArgs, ShapeArgs};
use crate::flags::{Common, Exit};

use super::http::Wanted;
use super::live::Shows;
use super::measure::{Measured, measure_with};
use super::output::refused;
use super::table::millis;
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
    let Some(run) = hunt.sum_up(found) else {
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
    super::output::print(&format!(
        "{}\n{}\n{}:\n\n{}",
        table::answer_of_search(&run, common.colours_stdout()),
        trials(&run),
        load_report::shown_of_search(&run),
        table::figures(&run)
    ));
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
    run.ran_out.first().is_some_and(|ran_out| ran_out.whose == Whose::Generator)
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
        self.announce(&search);
        loop {
            let trial = match search.next() {
                Ok(trial) => trial,
                Err(found) => return Ok(Some(found)),
            };
            if !self.runs.is_empty() && signals.wait_at_most(PAUSE).is_some() {
                return Ok(None);
            }
            self.begin(&search, trial);
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

    /// Says how long the search takes, unless it is to be quiet.
    fn announce(&self, search: &Search) {
        let (trials, confirmations) = search.left();
        self.say(&format!(
            "weir: the search takes at most {}: up to {trials} trials of {} and {confirmations} \
             confirming runs of {}, usually one. Waiting for late responses adds to it.",
            self.longest(search),
            duration(self.args.trial),
            duration(self.args.confirm)
        ));
    }

    /// Says what is tried next.
    fn begin(&self, search: &Search, trial: Trial) {
        self.say(&format!(
            "trial {}: {}/s for {}; at most {} left",
            self.runs.len() + 1,
            per_second(trial.per_s),
            duration(trial.time),
            self.longest(search)
        ));
    }

    fn say(&self, line: &str) {
        if !self.args.report.quiet {
            super::output::show(&format!("{line}\n"));
        }
    }

    /// The longest time that the rest of a search takes.
    fn longest(&self, search: &Search) -> String {
        let (trials, confirmations) = search.left();
        let trials = (self.args.trial + PAUSE) * trials;
        duration(trials + (self.args.confirm + PAUSE) * confirmations)
    }

    fn run(&self, trial: Trial, signals: &mut Signals) -> Result<Measured, Refusal> {
        let profile = Profile::steady(trial.per_s, trial.time, Duration::ZERO)
            .map_err(|error| Refusal::Mistake(error.to_string()))?;
        let spacing = if self.args.random { Spacing::Random { seed: 1 } } else { Spacing::Even };
        let shape = Shape::Open { profile: Arc::new(profile), spacing };
        let plan = self.wanted.plan(shape, &self.words.shape)?;
        let shows = if self.args.report.quiet { Shows::Nothing } else { Shows::TenSeconds };
        measure_with(plan, shows, self.common, signals)
            .map_err(|error| Refusal::Unreachable(format!("the load cannot begin: {error}")))
    }

    /// The confirming run, or the best that passed, or the last; with all steps and what ran out.
    fn sum_up(&self, found: Option<Found>) -> Option<Run> {
        let best = self.best().or(self.runs.last())?;
        let mut run = best.run.clone();
        "limit".clone_into(&mut run.kind);
        run.limit = Some(self.limit(found));
        run.expectations = self.args.objective.iter().map(|one| one.judge(&run)).collect();
        run.steps = self.runs.iter().flat_map(|tried| tried.run.steps.clone()).collect();
        if let Some(why) = &self.broken_off {
            run.notes.push(format!("a thread of the load generator ended early: {why}"));
        }
        if let (Some(best), Some(failed)) = (self.best(), self.first_above()) {
            let idle = self.runs.iter().filter(|tried| tried.passed);
            let idle = idle.min_by(|a, b| a.trial.per_s.total_cmp(&b.trial.per_s)).unwrap_or(best);
            if failed.generator_is_full {
                run.ran_out.clone_from(&failed.run.ran_out);
                // What ended the search comes first.
                let is_own =
                    |one: &RanOut| one.whose == Whose::Generator && one.what != "connections";
                if let Some(at) = run.ran_out.iter().position(is_own) {
                    run.ran_out[..=at].rotate_right(1);
                }
            } else {
                let (idle, best) = (Facts::of(&idle.run), Facts::of(&best.run));
                let beyond = Facts::of(&failed.run);
                let own = search::connections_ran_out(&idle, &beyond, &failed.run.ran_out);
                let ran_out = own.unwrap_or_else(|| search::what_ran_out(&idle, &best, &beyond));
                // The search sees more of it than the run alone.
                run.ran_out.retain(|one| (one.whose, &one.what) != (ran_out.whose, &ran_out.what));
                run.ran_out.insert(0, ran_out);
            }
        }
        Some(run)
    }

    /// What the search came to.
    fn limit(&self, found: Option<Found>) -> Limit {
        let outcome = match found {
            Some(Found::Limit(_)) => SearchEnd::Found,
            Some(Found::NoLimit(_)) => SearchEnd::NoLimit,
            Some(Found::Nothing) => SearchEnd::Nothing,
            Some(Found::Unconfirmed(_)) => SearchEnd::Unconfirmed,
            None => SearchEnd::Aborted,
        };
        let best = self.best();
        let low = best.map(|best| best.trial.per_s);
        // Of what is not confirmed, longer runs failed below what short trials passed.
        let has_unconfirmed = self
            .runs
            .iter()
            .any(|tried| !tried.passed && tried.trial.purpose == Purpose::Confirmation);
        let is_confirmed = best.is_some_and(|best| best.trial.purpose == Purpose::Confirmation);
        let is_short = outcome == SearchEnd::Unconfirmed || has_unconfirmed && !is_confirmed;
        let above = low.filter(|_| !is_short).unwrap_or(0.0);
        let failed = self.runs.iter().filter(|tried| !tried.passed && tried.trial.per_s > above);
        Limit {
            outcome,
            sustained_per_s: low,
            sustained_s: best.map_or(0.0, |best| best.trial.time.as_secs_f64()),
            failed_per_s: failed.map(|tried| tried.trial.per_s).min_by(f64::total_cmp),
        }
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
}

/// The trials as a table.
fn trials(run: &Run) -> String {
    let mut text = format!(
        "{:>10} {:>10} {:>9} {:>9} {:>6}  {}\n",
        "Rate/s", "started", "p99", "errors", "for", "verdict"
    );
    for step in &run.steps {
        let _ = writeln!(
            text,
            "{:>10} {:>10} {:>9} {:>9} {:>6}  {}",
            per_second(step.rate_per_s),
            per_second(step.achieved_per_s),
            millis(step.p99_ms),
            format!("{:.3} %", step.errors_percent),
            format!("{:.0} s", step.duration_s),
            step.why
        );
    }
    text
}

/// A duration as people say it: `6 min 20 s`.
fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    match (seconds / 60, seconds % 60) {
        (0, _) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
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
        "  {purpose} at {}/s: p99 {}, {}",
        per_second(trial.per_s),
        millis(p99),
        if passed { "passed".to_owned() } else { format!("failed: {why}") }
    )
}
