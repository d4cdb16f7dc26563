//! `weir bench`: measuring, and what measurements are made with.

mod compare;
mod connect;
mod http;
mod limit;
mod live;
mod measure;
mod report;
mod serve;
mod table;
mod upload;

use std::time::Duration;

use load::engine::prepare::Refusal;
use load::report::run::Run;

use crate::flags::{BenchArgs, BenchVerb, Common, Exit};

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

/// Says in one line why nothing came of it.
fn failed(why: &str) -> Exit {
    eprintln!("weir: {why}");
    Exit::Failed
}

/// Says in one line what was asked for wrongly.
fn mistaken(why: &str) -> Exit {
    eprintln!("weir: {why}");
    Exit::Mistake
}

/// Says why there will be no run.
fn refused(refusal: &Refusal) -> Exit {
    match refusal {
        Refusal::Mistake(why) => mistaken(why),
        Refusal::Unreachable(why) => failed(why),
    }
}

/// How a run whose figures are told ends: by its thresholds, then by whether it was the run that
/// was asked for.
fn verdict(run: &Run) -> Exit {
    if run.expectations.iter().any(|expectation| !expectation.held) {
        Exit::Threshold
    } else if load::verdict::falls_short(run) {
        Exit::Limited
    } else if run.totals.responses == 0 {
        Exit::Failed
    } else {
        Exit::Done
    }
}

/// A time since 1970 as a date and time of day in UTC.
fn rfc3339(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    // Days to a date, by the proleptic Gregorian calendar: eras of 400 years, years from March.
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, year) =
        if month < 10 { (month + 3, year + era * 400) } else { (month - 9, year + era * 400 + 1) };
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{of_month:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, wanted) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (1_795_310_645, "2026-11-22T01:24:05Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), wanted);
        }
    }
}
