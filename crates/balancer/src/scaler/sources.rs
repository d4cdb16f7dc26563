//! Whether the servers of a service are known: while its source has not answered, too few servers may be listed.

use std::collections::HashMap;
use std::sync::Arc;

use control::SourceState;
use model::Service;

/// The states of all sources of servers, by service.
pub(super) type Sources = HashMap<Arc<str>, SourceState>;

/// Returns the states of all sources.
pub(super) fn all(control: &control::Status) -> Sources {
    control.sources().into_iter().map(|state| (Arc::clone(&state.service), state)).collect()
}

/// Returns whether the source has answered since the start of this process, or its servers were saved by an earlier
/// one.
pub(super) fn has_answered(spec: &Service, state: Option<&SourceState>) -> bool {
    spec.discover.is_none()
        || state.is_some_and(|state| state.is_restored || state.set.answered_at.is_some())
}

/// Returns whether the source's last answer was good.
pub(super) fn answers(spec: &Service, state: Option<&SourceState>) -> bool {
    spec.discover.is_none()
        || state.is_some_and(|state| {
            state.set.answered_at.is_some() && state.set.failing_since.is_none()
        })
}
