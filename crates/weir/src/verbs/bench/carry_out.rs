//! Runs a load test from its plan to its exit code: measures, writes files, prints results and
//! evaluates objectives.

use load::engine::Refusal;
use load::engine::plan::Plan;
use load_report::run::Run;

use super::live::Shows;
use super::measure::{Measured, measure};
use super::output::{failed, print, refused};
use super::{report, table};
use crate::flags::bench::http::ReportArgs;
use crate::flags::bench::units::Conditions;
use crate::flags::{Common, Exit};

/// Runs a plan to its end, holds it against what was expected, writes the files that were asked for and
/// shows the table. `look` may note something in the run, and yields what stands behind the table.
pub(super) fn carry_out(
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
    let Measured { mut run, interrupted } =
        match measure(plan, Shows::unless_quiet(args.quiet), common) {
            Ok(measured) => measured,
            Err(error) => return failed(&format!("the load cannot begin: {error}")),
        };
    let after = look(&mut run);
    let conditions = expect.iter().flat_map(|conditions| conditions.iter());
    run.expectations = conditions.map(|condition| condition.judge(&run)).collect();
    // Files first: the reader of the table may have closed the pipe.
    let written = report::write(&run, args);
    print(&(table::text(&run, interrupted, common.colours_stdout()) + &after));
    match written {
        Ok(()) => verdict(&run),
        Err(error) => failed(&error),
    }
}

/// How a run with figures ends: aborted, its figures are not those of a whole run; then
/// by its thresholds, then by whether it was the run that was asked for.
pub(super) fn verdict(run: &Run) -> Exit {
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
        assert!(table::text(&run, false, false).starts_with("ABORTED: "));
    }
}
