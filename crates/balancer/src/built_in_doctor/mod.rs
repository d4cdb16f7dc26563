//! The doctor inside a running balancer: periodically checks this host and the balancer's counters
//! on its own thread.

mod counts;

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use collect::{Collector, Wanted, Which};
use diagnose::facts::Known;
use diagnose::rules::diagnose;
use model::Moment;

use crate::background::Background;
use crate::findings::{Area, Findings};

pub(crate) use counts::Sources;

/// Samples kept: rates are computed between the first and the last of them.
const SAMPLES_MAX: usize = 4;

/// How often it checks whether an examination is due, or the configuration has changed.
const PAUSE: Duration = Duration::from_secs(1);

/// So much earlier than due is not too early, since the pauses do not end at the same moment.
const EARLY: Duration = Duration::from_millis(500);

/// Settings, files and the kernel log are read again after this many checks.
const RENEW_EVERY: u64 = 30;

/// Starts it. Whether and how often it checks depends on the configuration in force.
pub(crate) fn start(sources: Sources, findings: Findings) -> io::Result<Background> {
    Background::start("weir-doctor", move |stopped| run(&sources, &findings, stopped))
}

fn run(sources: &Sources, findings: &Findings, stopped: &Receiver<()>) {
    let mut collector: Option<Collector> = None;
    let mut looked_at: Option<Moment> = None;
    loop {
        let interval = sources.interval();
        findings.set_interval(interval);
        match interval {
            None => (collector, looked_at) = (None, None),
            Some(interval) => {
                let now = os::clock::now();
                if looked_at.is_none_or(|at| now.since(at) + EARLY >= interval) {
                    looked_at = Some(now);
                    look(&mut collector, sources, findings);
                }
            }
        }
        match stopped.recv_timeout(PAUSE) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Performs one check: samples the host and the balancer at the same moment.
fn look(collector: &mut Option<Collector>, sources: &Sources, findings: &Findings) {
    if collector.is_none() {
        let wanted =
            Wanted { namespaces: Which::Own, samples_max: SAMPLES_MAX, all_settings: false };
        match Collector::begin(&wanted) {
            Ok(begun) => *collector = Some(begun),
            Err(why) => tracing::warn!("the doctor cannot examine this host: {why}"),
        }
    }
    let Some(collector) = collector else { return };
    collector.sample();
    let now_ms = milliseconds(os::clock::since_boot());
    let facts = collector.facts_mut();
    let inode = facts.namespaces.first().map(|namespace| namespace.inode);
    let balancer = match &mut facts.balancer {
        Known::Is(balancer) => balancer,
        unknown @ Known::Unknown(_) => {
            *unknown = Known::Is(diagnose::facts::Balancer::default());
            let Known::Is(balancer) = unknown else { return };
            balancer
        }
    };
    sources.fill(balancer, inode);
    if balancer.samples.len() >= SAMPLES_MAX {
        balancer.samples.remove(0);
    }
    balancer.samples.push(sources.sample(now_ms));

    let looks = findings.add(Area::Host, diagnose(collector.facts()));
    if looks.is_multiple_of(RENEW_EVERY) {
        collector.renew();
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
