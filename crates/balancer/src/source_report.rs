//! The sources that services take their servers from, and the entries of listeners in Consul, for the admin API and
//! for metrics.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use admin_api::published::{PublishedRoute, PublishedRoutes, TagSource};
use admin_api::rounded;
use admin_api::services::{RefusedEntry, ServiceSource};
use admin_api::status::Registration;
use control::{RegistrationState, SourceState, Status, TagsState};
use model::{HostPattern, Moment, PathMatch};

use observe::exposition::{RegistrationGauges, SourceGauges, SourcesGauges, TagGauges};

use crate::not_admitted::Rejected;

/// Refused tags and routes that are shown as examples.
const REFUSED_EXAMPLES_MAX: usize = 16;
/// The length of what names one.
const REFUSED_BYTES_MAX: usize = 256;

/// Describes the sources, by service.
pub(crate) fn by_service(status: &Status) -> HashMap<Arc<str>, ServiceSource> {
    let now = os::clock::now();
    status.sources().into_iter().map(|state| (Arc::clone(&state.service), of(state, now))).collect()
}

/// Describes the routes that services publish, of which the file does not admit some.
pub(crate) fn published(status: &Status, rejected: &Rejected) -> PublishedRoutes {
    let Some(state) = status.tags() else { return PublishedRoutes::default() };
    let now = os::clock::now();
    let reasons = Reasons::of(rejected);
    let rows = state.routes.iter().map(|kept| {
        let route = &kept.route;
        let (path, exact) = match &route.path {
            PathMatch::Prefix(path) if path.is_empty() => ("/", false),
            PathMatch::Prefix(path) => (&**path, false),
            PathMatch::Exact(path) => (&**path, true),
        };
        PublishedRoute {
            service: route.service.to_string(),
            host: route.host.to_string(),
            path: path.to_owned(),
            exact,
            strip: route.strip.as_deref().map(str::to_owned),
            tag: route.tag.to_string(),
            index: kept.index,
            published_ms_ago: ago(kept.since, now),
            held_for_ms: kept.held_until.map(|until| millis(until.since(now))),
            refused: reasons.get(route).map(str::to_owned),
        }
    });
    PublishedRoutes { routes: rows.collect(), source: Some(tag_source(&state, rejected, now)) }
}

/// Counts the routes that services publish, and describes where they come from.
fn tag_source(state: &TagsState, rejected: &Rejected, now: Moment) -> TagSource {
    let TagsState { routes, source, published: _ } = state;
    let Rejected { not_admitted, problem } = rejected;
    let reasons = Reasons::of(rejected);
    let (out, admitted): (Vec<_>, Vec<_>) =
        routes.iter().partition(|kept| reasons.get(&kept.route).is_some());
    let held = admitted.iter().filter(|kept| kept.held_until.is_some()).count();
    let of_tags = source.refused.examples.iter();
    let of_tags =
        of_tags.map(|one| RefusedEntry { object: one.object.clone(), why: one.why.clone() });
    let of_file = not_admitted.iter().map(|(route, why)| {
        let object = format!("{}: {}", &*route.service, &*route.tag);
        let object = model::visible(&object, REFUSED_BYTES_MAX);
        RefusedEntry { object, why: why.clone() }
    });
    TagSource {
        published: admitted.len() - held,
        held,
        refused: source.refused.count + out.len() as u64,
        refused_examples: of_tags.chain(of_file).take(REFUSED_EXAMPLES_MAX).collect(),
        answered_ms_ago: ago(source.answered_at, now),
        changed_ms_ago: ago(source.changed_at, now),
        failing_for_ms: ago(source.failing_since, now),
        error: source.error.clone().or_else(|| problem.clone()),
        index: source.index,
    }
}

/// Why the file does not admit routes.
struct Reasons<'r>(HashMap<(&'r str, (&'r HostPattern, &'r PathMatch)), &'r str>);

impl<'r> Reasons<'r> {
    fn of(rejected: &'r Rejected) -> Reasons<'r> {
        let all = rejected.not_admitted.iter();
        Reasons(all.map(|(route, why)| ((&*route.service, route.place()), &**why)).collect())
    }

    fn get(&self, route: &model::PublishedRoute) -> Option<&str> {
        self.0.get(&(&*route.service, route.place())).copied()
    }
}

fn ago(at: Option<Moment>, now: Moment) -> Option<f64> {
    at.map(|at| millis(now.since(at)))
}

fn millis(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3)
}

fn of(state: SourceState, now: Moment) -> ServiceSource {
    let SourceState { service: _, source, set, is_restored } = state;
    let since = |at: Option<Moment>| ago(at, now);
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
    let since = |at: Option<Moment>| ago(at, now);
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
pub(crate) fn gauges(status: &Status, rejected: &Rejected) -> SourcesGauges {
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
        tags: status.tags().map(|state| tag_source(&state, rejected, now)).map(|source| {
            TagGauges {
                published: source.published,
                held: source.held,
                refused: source.refused,
                is_failing: source.error.is_some(),
            }
        }),
        propagation: status.propagation(),
    }
}
