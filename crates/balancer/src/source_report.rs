//! The sources that services take their servers from, for the admin API and for metrics.

use std::collections::HashMap;
use std::sync::Arc;

use admin_api::rounded;
use admin_api::services::{RefusedEntry, ServiceSource};
use control::{SourceState, Status};
use model::Moment;
use observe::exposition::{SourceGauges, SourcesGauges};

/// Describes the sources, by service.
pub(crate) fn by_service(status: &Status) -> HashMap<Arc<str>, ServiceSource> {
    let now = os::clock::now();
    status.sources().into_iter().map(|state| (Arc::clone(&state.service), of(state, now))).collect()
}

fn of(state: SourceState, now: Moment) -> ServiceSource {
    let SourceState { service: _, source, set, is_restored } = state;
    let since = |at: Option<Moment>| at.map(|at| rounded(now.since(at).as_secs_f64() * 1e3));
    let refused = set.refused_examples.into_iter();
    let refused = refused.map(|one| RefusedEntry { object: one.object, why: one.why });
    ServiceSource {
        source,
        listed: set.listed,
        not_ready: set.not_ready,
        held: set.held,
        flapping: set.flapping,
        refused: set.refused,
        refused_examples: refused.collect(),
        answered_ms_ago: since(set.answered_at),
        changed_ms_ago: since(set.changed_at),
        failing_for_ms: since(set.failing_since),
        error: set.error,
        index: set.index,
        restored: is_restored,
    }
}

/// Returns the sources as metrics.
pub(crate) fn gauges(status: &Status) -> SourcesGauges {
    let now = os::clock::now();
    let sources = status.sources().into_iter();
    let services = sources.map(|SourceState { service, set, .. }| SourceGauges {
        service,
        servers: [
            ("listed", set.listed),
            ("not_ready", set.not_ready),
            ("held", set.held),
            ("flapping", set.flapping),
        ],
        age: set.answered_at.map(|at| now.since(at)),
        is_failing: set.failing_since.is_some(),
        refused: set.refused,
    });
    SourcesGauges { services: services.collect(), propagation: status.propagation() }
}
