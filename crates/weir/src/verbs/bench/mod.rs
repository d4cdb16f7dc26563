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

/// A wall-clock time as figures carry it.
fn rfc3339(since_epoch: Duration) -> String {
    let text = observe::TimestampCache::default().at(since_epoch);
    String::from_utf8_lossy(text.as_bytes()).into_owned()
}

/// This machine, as figures name it.
fn host() -> load::report::run::Host {
    load::report::run::Host {
        name: os::process::host_name(),
        kernel: os::process::kernel_release(),
        cpus: u32::try_from(os::cpu::cores()).unwrap_or(u32::MAX),
        ..Default::default()
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
