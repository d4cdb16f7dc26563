//! `/api/v1/requests`: what is under way, the slowest first.

use std::cmp::Reverse;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use model::Moment;
use observe::InFlight;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Api, Indented, ask, not_available, rounded, unreadable_query};
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
    let source = api.sources.in_flight.as_ref();
    let source = source.ok_or_else(|| not_available("what is in flight"))?;
    let mut all = ask(source).await?;
    let now = os::clock::now();
    let in_flight = all.len();
    all.retain(|one| {
        let of_service =
            wanted.service.is_none() || one.service.as_deref() == wanted.service.as_deref();
        of_service && age_ms(one, now) >= wanted.longer_than_ms as f64
    });
    all.sort_by_key(|one| Reverse(now.since(one.since)));
    let matching = all.len();
    all.truncate(wanted.limit.unwrap_or(SHOWN).min(SHOWN_MAX));
    Ok(Indented(json!({
        "in_flight": in_flight,
        "matching": matching,
        "requests": all.iter().map(|one| to_json(one, now)).collect::<Value>(),
    })))
}

fn to_json(one: &InFlight, now: Moment) -> Value {
    // A connection in tcp mode has none of these.
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "age_ms": rounded(age_ms(one, now)),
        "stage": one.stage.name(),
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

fn age_ms(one: &InFlight, now: Moment) -> f64 {
    now.since(one.since).as_secs_f64() * 1e3
}
