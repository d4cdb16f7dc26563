//! What has changed in the recent past: servers, configurations, maintenance, findings. Compared once a second,
//! so that a change that is undone within a second is not seen.

mod seen;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use admin_api::changes::{Change, Changed, Effect};
use model::Moment;

use crate::findings::Findings;
use seen::{Name, Seen};

/// How many are kept, usually of about 200 bytes each.
const KEPT_MAX: usize = 1_000;

/// The latest changes, readable by other threads at any time. The oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(Arc<Mutex<VecDeque<Change>>>);

impl Changes {
    /// Begins with those of the process before this one.
    pub(crate) fn after(earlier: Vec<Change>) -> Changes {
        let changes = Changes::default();
        changes.add(earlier);
        changes
    }

    /// Returns what asks for them, the latest first.
    pub(crate) fn source(&self) -> admin::Source<Vec<Change>> {
        let changes = self.clone();
        Arc::new(move || changes.lock().iter().rev().cloned().collect())
    }

    /// Returns them for another process, the oldest first.
    pub(crate) fn to_handover(&self) -> Vec<Change> {
        self.lock().iter().cloned().collect()
    }

    fn add(&self, changes: impl IntoIterator<Item = Change>) {
        let mut kept = self.lock();
        kept.extend(changes);
        let excess = kept.len().saturating_sub(KEPT_MAX);
        kept.drain(..excess);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Change>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// After its interval and this time, the doctor has looked for everything.
const LOOKED_AFTER: Duration = Duration::from_mins(1);

/// Looks for changes.
pub(crate) struct Watch {
    registry: Arc<decide::Registry>,
    findings: Findings,
    changes: Changes,
    before: Seen,
    /// Findings of the process before this one that have not been seen yet: until `kept_until`, this process may
    /// not have looked for them.
    kept: BTreeSet<Name>,
    kept_until: Moment,
}

impl Watch {
    /// Begins to watch: what there is now is no change, but that this process has started is.
    pub(crate) fn begin(
        registry: Arc<decide::Registry>,
        findings: Findings,
        changes: Changes,
    ) -> Watch {
        let mut before = Seen::now(&registry, &findings, &Seen::default());
        let earlier: Vec<Change> = changes.lock().iter().cloned().collect();
        let kept = before.with_findings_of(&earlier);
        let process = std::process::id();
        let what = format!("Weir {} has started as process {process}.", env!("CARGO_PKG_VERSION"));
        changes.add([seen::change(at(), Changed::Process, Effect::Neutral, what)]);
        let interval = registry.current().snapshot.doctor.interval.unwrap_or_default();
        let kept_until = os::clock::now() + interval.saturating_add(LOOKED_AFTER);
        Watch { registry, findings, changes, before, kept, kept_until }
    }

    /// Adds what has changed since the last look.
    pub(crate) fn look(&mut self) {
        let mut now = Seen::now(&self.registry, &self.findings, &self.before);
        if os::clock::now() >= self.kept_until {
            self.kept.clear();
        }
        now.keep(&self.before, &mut self.kept);
        self.changes.add(now.since(&self.before, at()));
        self.before = now;
    }
}

fn at() -> u64 {
    u64::try_from(os::clock::wall().as_millis()).unwrap_or(u64::MAX)
}
