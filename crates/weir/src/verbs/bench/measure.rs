//! One run from its start to its results: shows each second, handles signals.

use std::io;
use std::time::Duration;

use balancer::signals::Signals;
use load::account::{self, Series};
use load::engine::plan::Plan;
use load::engine::{self, Interval, Running};
use load::host::Sampler;
use load_report::run::Run;
use observe::TimestampCache;

use crate::flags::Common;

use super::live::{Live, Shows};
use super::words;

/// How often new seconds are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a run came to.
pub(crate) struct Measured {
    pub(crate) run: Run,
    /// A signal ended it early.
    pub(crate) interrupted: bool,
}

/// Runs a plan to its end, and shows it on standard error.
pub(crate) fn measure(plan: Plan, shows: Shows, common: Common) -> io::Result<Measured> {
    let mut signals = Signals::catch()?;
    measure_with(plan, shows, common, &mut signals)
}

/// As [`measure`], with signals that are caught already.
pub(crate) fn measure_with(
    plan: Plan,
    shows: Shows,
    common: Common,
    signals: &mut Signals,
) -> io::Result<Measured> {
    let started_at = os::clock::wall();
    let server = plan.sites[0].address.ip();
    let mut running = engine::start(plan)?;
    let sampler = Sampler::start(running.begins_ns(), server);
    let mut live = Live::new(running.plan(), shows, common);
    let mut series = Series::new(running.plan());
    let mut host_seconds = Vec::new();
    let mut interrupted = 0;
    while !running.is_finished() {
        let signal = signals.wait_at_most(LOOK_EVERY);
        if signal.is_some() {
            interrupted += 1;
            interrupt(&running, interrupted, &mut live);
        }
        take(running.seconds(), &mut live, &mut series);
        // Its channel holds about an hour.
        host_seconds.extend(sampler.seconds());
    }
    let plan = running.plan().clone();
    let (outcome, rest) = running.finish();
    take(rest, &mut live, &mut series);
    live.end();
    let mut run = account::run(&plan, &outcome, series);
    run.host = sampler.host().clone();
    host_seconds.extend(sampler.seconds());
    run.host_seconds = host_seconds;
    env!("CARGO_PKG_VERSION").clone_into(&mut run.weir);
    run.command = words::shown(std::env::args_os());
    run.started_at = TimestampCache::default().at(started_at).to_string();
    run.ran_out = load::verdict::of_run(&run, &plan, &outcome);
    Ok(Measured { run, interrupted: interrupted > 0 })
}

/// The first signal lets what is under way finish; the second does not.
fn interrupt(running: &Running, count: u32, live: &mut Live) {
    if count == 1 {
        live.say("ending: waiting for the requests under way; once more ends at once");
        running.stop();
    } else {
        running.abort();
    }
}

fn take(new: Vec<Interval>, live: &mut Live, series: &mut Series) {
    for interval in new {
        live.second(&interval);
        series.add(&interval);
    }
}
