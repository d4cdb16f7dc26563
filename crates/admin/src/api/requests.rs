//! `/api/v1/requests`: what is under way, the slowest first.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use model::Moment;
use observe::{InFlight, InFlightTold, InFlightWanted};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Api, Indented, ask, not_available, rounded, unreadable_query};
use crate::Source;
use crate::problem::Problem;

const SHOWN: usize = 100;
const SHOWN_MAX: usize = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Only those of this service.
    service: Option<String>,
    /// Only those under way for at least this long.
    #[serde(default)]
    longer_than_ms: u64,
    /// How many are shown.
    limit: Option<usize>,
}

pub(super) async fn in_flight(
    State(api): Api,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Indented, Problem> {
    let Query(wanted) = wanted.map_err(unreadable_query)?;
    let source = api.sources.in_flight.clone();
    let source = source.ok_or_else(|| not_available("what is in flight"))?;
    let asked = InFlightWanted {
        service: wanted.service,
        longer_than: Duration::from_millis(wanted.longer_than_ms),
    };
    let source: Source<_> = Arc::new(move || source(asked.clone()));
    let InFlightTold { in_flight, matching, mut requests, workers_silent } = ask(&source).await?;
    let now = os::clock::now();
    requests.sort_by_key(|one| one.since);
    requests.truncate(wanted.limit.unwrap_or(SHOWN).min(SHOWN_MAX));
    Ok(Indented(json!({
        "in_flight": in_flight,
        "matching": matching,
        "workers_silent": workers_silent,
        "requests": requests.iter().map(|one| to_json(one, now)).collect::<Value>(),
    })))
}

fn to_json(one: &InFlight, now: Moment) -> Value {
    // A connection in tcp mode has none of these.
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "age_ms": rounded(now.since(one.since).as_secs_f64() * 1e3),
        "stage": one.stage.as_str(),
        "request_id": text(&one.request_id),
        "client": one.client,
        "listener": one.listener,
        "method": text(&one.method),
        "host": text(&one.host),
        "path": text(&one.path),
        "service": one.service,
        "server": one.server,
        "attempts": one.attempts,
    })
}
