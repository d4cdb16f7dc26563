//! `weir bench`: measuring, and what measurements are made with.

mod authorities;
mod compare;
mod connect;
mod http;
mod limit;
mod live;
mod measure;
pub(crate) mod pages;
mod report;
mod serve;
mod table;
mod upload;
mod words;

use std::io::{self, Write};

use load::engine::plan::Plan;
use load::engine::prepare::Refusal;
use load_report::run::Run;

use crate::flags::bench::http::{Conditions, ReportArgs};
use crate::flags::{BenchArgs, BenchVerb, Common, Exit};
use measure::{Measured, measure};

pub(crate) fn run(args: &BenchArgs, common: Common) -> Exit {
    match &args.verb {
        Some(BenchVerb::Connect(args)) => connect::run(args, common),
        Some(BenchVerb::Limit(args)) => limit::run(args, common),
        Some(BenchVerb::Compare(args)) => compare::run(args, common),
        Some(BenchVerb::Serve(args)) => serve::run(args, common),
        Some(BenchVerb::Upload(args)) => upload::run(args, common),
        None => http::run(&args.http, common),
    }
}

/// Runs a plan to its end, holds it against what was expected, writes the files that were asked for and
/// shows the table. `look` may note something in the run, and yields what stands behind the table.
fn carry_out(
    plan: Result<Plan, Refusal>,
    args: &ReportArgs,
    expect: &[Conditions],
    common: Common,
    look: impl FnOnce(&mut Run) -> String,
) -> Exit {
    let plan = match plan {
        Ok(plan) => plan,
        Err(refusal) => return refused(&refusal),
    };
    if let Err(why) = report::can_write(args) {
        return failed(&why);
    }
    let Measured { mut run, interrupted } = match measure(plan, !args.quiet, common) {
        Ok(measured) => measured,
        Err(error) => return failed(&format!("the load cannot begin: {error}")),
    };
    let after = look(&mut run);
    let conditions = expect.iter().flat_map(|conditions| conditions.iter());
    run.expectations = conditions.map(|condition| condition.judge(&run)).collect();
    // Files first: whoever reads the table may have closed it.
    let written = report::write(&run, args);
    print(&(table::text(&run, interrupted, common.colours_stdout()) + &after));
    match written {
        Ok(()) => verdict(&run),
        Err(error) => failed(&error),
    }
}

/// Prints what a run came to. Whoever reads may have seen enough and closed the pipe: that is no
/// failure of the run.
fn print(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Shows something on standard error, which may be closed, too.
fn show(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Says in one line why nothing came of it.
fn failed(why: &str) -> Exit {
    show(&format!("weir: {why}\n"));
    Exit::Failed
}

/// Says in one line what was asked for wrongly.
fn mistaken(why: &str) -> Exit {
    show(&format!("weir: {why}\n"));
    Exit::Mistake
}

/// Says why there will be no run.
fn refused(refusal: &Refusal) -> Exit {
    match refusal {
        Refusal::Mistake(why) => mistaken(why),
        Refusal::Unreachable(why) => failed(why),
    }
}

/// How a run whose figures are told ends: broken off, its figures are those of no whole run; then
/// by its thresholds, then by whether it was the run that was asked for.
fn verdict(run: &Run) -> Exit {
    if run.broken_off.is_some() {
        Exit::Broken
    } else if run.expectations.iter().any(|expectation| !expectation.held) {
        Exit::Threshold
    } else if load::verdict::falls_short(run) {
        Exit::Limited
    } else if run.totals.responses == 0 {
        Exit::Failed
    } else {
        Exit::Done
    }
}

#[cfg(test)]
mod tests {
    use load_report::run::Expectation;

    use super::*;

    #[test]
    fn a_run_that_broke_off_has_an_exit_code_of_its_own() {
        let mut run = Run::default();
        run.totals.responses = 1;
        assert_eq!(verdict(&run), Exit::Done);
        run.expectations = vec![Expectation { held: false, ..Expectation::default() }];
        assert_eq!(verdict(&run), Exit::Threshold);
        run.broken_off = Some("Too many open files".to_owned());
        assert_eq!(verdict(&run), Exit::Broken);
        assert!(table::text(&run, false, false).starts_with("BROKEN OFF: "));
    }
}
