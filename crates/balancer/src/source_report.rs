//! The sources that services take their servers from, and the entries of listeners in Consul, for the admin API and
//! for metrics.

use std::collections::HashMap;
use std::sync::Arc;

use admin_api::rounded;
use admin_api::services::{RefusedEntry, ServiceSource};
use admin_api::status::Registration;
use control::{RegistrationState, SourceState, Status};
use model::Moment;
use observe::exposition::{RegistrationGauges, SourceGauges, SourcesGauges};

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

/// Describes the entries in Consul, by listener.
pub(crate) fn registrations(status: &Status) -> HashMap<Arc<str>, Registration> {
    let now = os::clock::now();
    let since = |at: Option<Moment>| at.map(|at| rounded(now.since(at).as_secs_f64() * 1e3));
    let describe = |state: RegistrationState| {
        let RegistrationState { listener, entry, check, registered_since, failing_since, error } =
            state;
        let registration = Registration {
            service: entry.service.to_string(),
            id: entry.id.to_string(),
            address: entry.shown_address(),
            check: check.map(|status| status.as_str().to_owned()),
            registered_for_ms: since(registered_since),
            failing_for_ms: since(failing_since),
            error,
        };
        (listener, registration)
    };
    status.registrations().into_iter().map(describe).collect()
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
    let registrations = status.registrations().into_iter();
    let registrations = registrations.map(|state| RegistrationGauges {
        listener: state.listener,
        is_failing: state.failing_since.is_some(),
    });
    SourcesGauges {
        services: services.collect(),
        registrations: registrations.collect(),
        propagation: status.propagation(),
    }
}
