//! The source of one service, and the tasks that ask it.

use std::sync::Arc;

use discovery::{Effect, ServiceSource, SetState};
use model::{Discover, Moment, ServerSpec, ServerTarget, Snapshot};
use tokio::task::JoinHandle;

use super::report::{Found, Origin};
use super::start::Settings;

/// The source of one service, and the tasks that ask it.
pub(super) struct Followed {
    pub(super) source: ServiceSource,
    /// What the source depends on, besides its policy.
    pub(super) settings: Settings,
    /// Identifies its tasks' reports.
    pub(super) watch: u64,
    /// Whether a server is given by name.
    pub(super) has_names: bool,
    pub(super) tasks: Vec<JoinHandle<()>>,
}

impl Followed {
    pub(super) fn is_for(&self, policy: &Arc<Discover>, snapshot: &Snapshot) -> bool {
        self.source.policy() == policy && self.settings == Settings::of(&policy.source, snapshot)
    }

    pub(super) fn note_names(&mut self) {
        let is_name = |server: &ServerSpec| matches!(server.target, ServerTarget::Name { .. });
        self.has_names = self.source.servers().any(|one| is_name(&one.server));
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let servers = self.source.servers().filter(|_| self.has_names);
        servers.filter_map(|one| match &one.server.target {
            ServerTarget::Name { host, .. } => Some(host.as_str()),
            ServerTarget::Address(_) => None,
        })
    }

    pub(super) fn tick(&mut self, service: &str, now: Moment) -> bool {
        let before = self.source.servers().count();
        let changed = self.source.tick(now);
        let (source, servers) = (&self.source.policy().source, self.source.servers().count());
        if servers < before {
            let dropped = before - servers;
            tracing::warn!(
                service, %source, dropped, servers,
                "servers are dropped: hold_max or kept_max is over"
            );
        } else if changed {
            tracing::info!(service, %source, servers, "servers are no longer flapping");
        }
        self.note_names();
        changed
    }

    /// Applies a report. Returns whether the servers changed.
    pub(super) fn on_report(
        &mut self,
        from: &Origin,
        result: Result<Found, String>,
        now: Moment,
    ) -> bool {
        let effect = self.source.on_report(from.part, result, now);
        if effect.outcome.changed {
            self.note_names();
        }
        self.log(&from.service, &effect);
        effect.outcome.changed
    }

    fn log(&self, service: &str, effect: &Effect) {
        let policy = self.source.policy();
        let source = &policy.source;
        if let Some(error) = &effect.begins_to_fail {
            let kept = self.source.servers().count();
            tracing::warn!(
                service, %source, error, kept,
                "cannot read the service's servers from its source; the known ones stay in use"
            );
        }
        if effect.answers_again {
            tracing::info!(service, %source, "the source answers again");
        }
        if effect.outcome.changed {
            let SetState { index, listed, not_ready, held, .. } = self.source.state();
            tracing::debug!(service, %source, index, listed, not_ready, held, "servers changed");
        }
        if effect.outcome.newly_held > 0 {
            let (held, for_s) = (effect.outcome.newly_held, policy.hold.max.as_secs());
            tracing::warn!(
                service, %source, held, for_s,
                "the source lists far fewer servers than before; the missing ones are kept and used last"
            );
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
