//! The doctor inside a running balancer: periodically checks this host and the balancer's counters
//! on its own thread, logs its findings, and keeps them for the API.

mod counts;

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admin_api::findings::{self, SeenFinding};
use collect::{Collector, Wanted, Which};
use diagnose::board::Board;
use diagnose::facts::Known;
use diagnose::finding::{CouldNotCheck, Finding, Severity};
use diagnose::rules::diagnose;
use model::Moment;

use crate::background::Background;

pub(crate) use counts::Sources;

/// Samples kept: rates are computed between the first and the last of them.
const SAMPLES_MAX: usize = 4;

/// How often it checks whether it has been turned on.
const OFF_LOOK: Duration = Duration::from_secs(1);

/// Settings, files and the kernel log are read again after this many checks.
const RENEW_EVERY: u64 = 30;

/// The findings so far.
#[derive(Debug, Default)]
struct Seen {
    /// Interval between checks; `None`: turned off.
    interval: Option<Duration>,
    looks: u64,
    looked_at: Moment,
    board: Board,
    could_not_check: Vec<CouldNotCheck>,
}

/// The findings, readable by other threads at any time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings(Arc<Mutex<Seen>>);

/// Starts it. Whether and how often it checks depends on the configuration in force.
pub(crate) fn start(sources: Sources, findings: Findings) -> io::Result<Background> {
    Background::start("weir-doctor", move |stopped| run(&sources, &findings, stopped))
}

fn run(sources: &Sources, findings: &Findings, stopped: &Receiver<()>) {
    let mut collector: Option<Collector> = None;
    loop {
        let interval = sources.interval();
        if interval.is_none() {
            collector = None;
            *findings.lock() = Seen::default();
        } else {
            look(&mut collector, sources, findings, interval);
        }
        match stopped.recv_timeout(interval.unwrap_or(OFF_LOOK)) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Performs one check: samples the host and the balancer at the same moment.
fn look(
    collector: &mut Option<Collector>,
    sources: &Sources,
    findings: &Findings,
    interval: Option<Duration>,
) {
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

    let report = diagnose(collector.facts());
    let (said, looks) = {
        let mut seen = findings.lock();
        seen.interval = interval;
        seen.looks += 1;
        let now = os::clock::now();
        seen.looked_at = now;
        seen.could_not_check.clone_from(&report.could_not_check);
        (seen.board.update(report, now), seen.looks)
    };
    for finding in said.iter().filter(|finding| finding.has_weight()) {
        log(finding);
    }
    if looks.is_multiple_of(RENEW_EVERY) {
        collector.renew();
    }
}

/// Logs one finding: what, the evidence, and the remedy.
fn log(finding: &Finding) {
    let evidence: Vec<String> = finding
        .evidence
        .iter()
        .take(3)
        .map(|one| format!("{} {}", one.name, diagnose::render::figure(one)))
        .collect();
    let evidence = evidence.join("; ");
    let remedy = finding.remedy.first().map_or("", |remedy| remedy.action.as_str());
    let (rule, what) = (&*finding.rule, &finding.what);
    if finding.severity >= Severity::Critical {
        tracing::error!(finding = rule, evidence, remedy, "{what}");
    } else {
        tracing::warn!(finding = rule, evidence, remedy, "{what}");
    }
}

impl Findings {
    fn lock(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the findings for `/api/v1/findings`. Times are of the wall clock.
    pub(crate) fn report(&self) -> findings::Findings {
        let seen = self.lock();
        let (now, wall) = (os::clock::now(), os::clock::wall());
        let at = |moment: Moment| milliseconds(wall.saturating_sub(now.since(moment)));
        let findings = seen.board.standing().into_iter().map(|standing| SeenFinding {
            is_present: standing.last == seen.looked_at,
            first_seen_unix_ms: at(standing.since),
            last_seen_unix_ms: at(standing.last),
            finding: standing.finding.clone(),
        });
        findings::Findings {
            enabled: seen.interval.is_some(),
            interval_ms: seen.interval.map(milliseconds),
            looks: seen.looks,
            looked_at_unix_ms: (seen.looks > 0).then(|| at(seen.looked_at)),
            findings: findings.collect(),
            could_not_check: seen.could_not_check.clone(),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
