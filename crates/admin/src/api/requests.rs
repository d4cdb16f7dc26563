//! `/api/v1/requests`: requests in flight, the oldest first, and examples of ended ones.

use std::sync::Arc;
use std::time::Duration;

use admin_api::requests::{EndedRequest, EndedRequests, Request, Requests};
use admin_api::rounded;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use model::Moment;
use observe::{InFlight, InFlightFilter, InFlightReport, KeptExchange};
use serde::Deserialize;

use super::{Api, Indented, ask, blocking, not_available, unreadable_query};
use crate::Source;
use crate::context::Context;
use crate::problem::Problem;

const SHOWN: usize = 100;
const SHOWN_MAX: usize = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Only requests to this service.
    service: Option<String>,
    /// Only requests in flight for at least this long.
    #[serde(default)]
    longer_than_ms: u64,
    /// Maximum number of requests in the answer.
    limit: Option<usize>,
}

pub(super) async fn in_flight(
    State(api): Api,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Indented<Requests>, Problem> {
    let Query(wanted) = wanted.map_err(unreadable_query)?;
    let source = api.sources.in_flight.clone();
    let source = source.ok_or_else(|| not_available("the list of requests in flight"))?;
    let asked = InFlightFilter {
        service: wanted.service,
        longer_than: Duration::from_millis(wanted.longer_than_ms),
    };
    let source: Source<_> = Arc::new(move || source(asked.clone()));
    let InFlightReport { in_flight, matching, mut requests, workers_silent } = ask(&source).await?;
    let now = os::clock::now();
    requests.sort_by_key(|one| one.since);
    requests.truncate(wanted.limit.unwrap_or(SHOWN).min(SHOWN_MAX));
    Ok(Indented(Requests {
        in_flight,
        matching,
        workers_silent,
        requests: requests.into_iter().map(|one| row(one, now)).collect(),
    }))
}

/// Which ended requests are wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndedWanted {
    /// Only requests to this service.
    service: Option<String>,
    /// Only requests that ended at or after this moment, in milliseconds since 1970 (UTC).
    #[serde(default)]
    since_unix_ms: u64,
    /// Maximum number of requests in the answer.
    limit: Option<usize>,
}

pub(super) async fn ended(
    State(api): Api,
    wanted: Result<Query<EndedWanted>, QueryRejection>,
) -> Result<Indented<EndedRequests>, Problem> {
    let Query(wanted) = wanted.map_err(unreadable_query)?;
    blocking(move || Indented(ended_of(&api, &wanted))).await
}

fn ended_of(api: &Context, wanted: &EndedWanted) -> EndedRequests {
    let (now, wall) = (os::clock::now(), os::clock::wall());
    let unix_ms = |ended: Moment| wall.saturating_sub(now.since(ended)).as_millis() as u64;
    let is_wanted = |one: &KeptExchange| {
        wanted.service.as_deref().is_none_or(|wanted| one.service.as_deref() == Some(wanted))
            && unix_ms(one.ended) >= wanted.since_unix_ms
    };
    let mut kept = api.counters.kept_exchanges(now);
    kept.retain(is_wanted);
    let limit = wanted.limit.unwrap_or(SHOWN).min(SHOWN_MAX);
    let left_out = kept.len().saturating_sub(limit);
    kept.truncate(limit);
    let requests = kept.into_iter().map(|one| EndedRequest {
        ended_unix_ms: unix_ms(one.ended),
        kept_for: one.kept_for.into(),
        // A line that Weir has written is an object.
        line: serde_json::from_slice(&one.line).unwrap_or_default(),
    });
    let kept_ms = observe::kept::KEPT.as_millis() as u64;
    EndedRequests { kept_ms, left_out, requests: requests.collect() }
}

fn row(one: InFlight, now: Moment) -> Request {
    // A connection in TCP mode has none of these.
    let text = |text: String| (!text.is_empty()).then_some(text);
    Request {
        age_ms: rounded(now.since(one.since).as_secs_f64() * 1e3),
        stage: one.stage.into(),
        request_id: text(one.request_id),
        client: one.client.to_string(),
        listener: one.listener.to_string(),
        method: text(one.method),
        host: text(one.host),
        path: text(one.path),
        service: one.service.map(|service| service.to_string()),
        server: one.server.map(|server| server.to_string()),
        attempts: one.attempts,
    }
}
