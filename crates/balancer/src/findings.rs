//! The findings about this host and its traffic: kept for the API, and logged when they appear.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use admin_api::findings::{self, SeenFinding};
use diagnose::board::Board;
use diagnose::finding::{CouldNotCheck, Finding, Report, Severity};
use model::Moment;

/// What is examined. Each is examined at times of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Area {
    /// This host, and the balancer's counters with it: at `[doctor] interval`.
    Host,
    /// The traffic of the last seconds: every second.
    Traffic,
}

/// What was found in one area.
#[derive(Debug, Default)]
struct Seen {
    looks: u64,
    looked_at: Moment,
    board: Board,
    could_not_check: Vec<CouldNotCheck>,
}

#[derive(Debug, Default)]
struct All {
    /// Interval between two examinations of the host; `None`: turned off.
    interval: Option<Duration>,
    host: Seen,
    traffic: Seen,
}

/// The findings, readable by other threads at any time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings(Arc<Mutex<All>>);

impl Findings {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the interval between two examinations of the host. Without one there are no findings.
    pub(crate) fn set_interval(&self, interval: Option<Duration>) {
        let mut all = self.lock();
        if interval.is_none() {
            *all = All::default();
        }
        all.interval = interval;
    }

    /// Takes in what an examination has found, and logs what is new or was logged a minute ago. Returns
    /// the number of examinations of this area.
    pub(crate) fn add(&self, area: Area, report: Report) -> u64 {
        let (said, looks) = {
            let mut all = self.lock();
            let seen = match area {
                Area::Host => &mut all.host,
                Area::Traffic => &mut all.traffic,
            };
            let now = os::clock::now();
            seen.looks += 1;
            seen.looked_at = now;
            seen.could_not_check.clone_from(&report.could_not_check);
            (seen.board.update(report, now), seen.looks)
        };
        said.iter().filter(|finding| finding.has_weight()).for_each(log);
        looks
    }

    /// Returns the findings for `/api/v1/findings`. Times are of the wall clock.
    pub(crate) fn report(&self) -> findings::Findings {
        let all = self.lock();
        let (now, wall) = (os::clock::now(), os::clock::wall());
        let at = |moment: Moment| milliseconds(wall.saturating_sub(now.since(moment)));
        let standing = [&all.host, &all.traffic].into_iter().flat_map(|seen| {
            seen.board.standing().into_iter().map(|standing| SeenFinding {
                is_present: standing.last == seen.looked_at,
                first_seen_unix_ms: at(standing.since),
                last_seen_unix_ms: at(standing.last),
                finding: standing.finding.clone(),
            })
        });
        let mut findings: Vec<SeenFinding> = standing.collect();
        findings.sort_by_key(|one| {
            let Finding { severity, certainty, .. } = one.finding;
            std::cmp::Reverse((one.is_present, severity, certainty))
        });
        let could_not_check = [&all.host, &all.traffic].map(|seen| &seen.could_not_check);
        findings::Findings {
            enabled: all.interval.is_some(),
            interval_ms: all.interval.map(milliseconds),
            looks: all.host.looks,
            looked_at_unix_ms: (all.host.looks > 0).then(|| at(all.host.looked_at)),
            findings,
            could_not_check: could_not_check.into_iter().flatten().cloned().collect(),
        }
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

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
