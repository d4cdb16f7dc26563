//! `/api/v1/traffic`: what happens now, and `/api/v1/history`: the recent past.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use admin_api::history::{CauseCount, Series};
use admin_api::traffic::{ListenerTraffic, ServiceTraffic, Traffic};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use history::{Column, History, Key, Kind, TIERS, Tier};
use serde::Deserialize;

use super::{Api, Indented, blocking, not_available, unreadable_query};
use crate::context::Context;
use crate::problem::Problem;

/// The spans of windows, in seconds.
const SPANS_S: [u64; 3] = [10, 60, 3_600];

/// The word among columns that stands for causes.
const CAUSES: &str = "causes";

/// Windows of servers: they have none of an hour.
const SERVER_SPANS: usize = 2;

const SERIES: usize = 100;
const SERIES_MAX: usize = 1_000;

/// Numbers in one answer, which is about two megabytes of text then.
const CELLS_MAX: usize = 300_000;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NowWanted {
    /// Only this service.
    service: Option<String>,
    /// Whether servers are in the answer.
    servers: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PastWanted {
    /// How far back, in seconds.
    span_s: Option<u64>,
    /// The end of the span, in milliseconds since 1970 (UTC); now without it.
    until_unix_ms: Option<u64>,
    /// Only series of this kind.
    kind: Option<Kind>,
    /// Only this service, or its servers.
    service: Option<String>,
    /// Only the server at this address.
    server: Option<String>,
    /// Only these columns, separated by commas.
    columns: Option<String>,
    /// Maximum number of series in the answer.
    limit: Option<usize>,
}

fn lock(api: &Context) -> Result<MutexGuard<'_, History>, Problem> {
    let history: &Arc<Mutex<History>> =
        api.sources.history.as_ref().ok_or_else(|| not_available("the history of traffic"))?;
    Ok(history.lock().unwrap_or_else(PoisonError::into_inner))
}

/// When the machine started, in milliseconds since 1970 (UTC), to a hundredth of a second: read twice, it is
/// the same unless the clock was set.
fn started_unix_ms() -> u64 {
    let started = os::clock::wall().saturating_sub(os::clock::since_boot());
    (started.as_millis() as u64 + 5) / 10 * 10
}

pub(super) async fn now(
    State(api): Api,
    wanted: Result<Query<NowWanted>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(wanted) = wanted.map_err(unreadable_query)?;
    blocking(move || Ok(Indented(traffic(&api, &wanted)?).into_response())).await?
}

pub(super) fn traffic(api: &Context, wanted: &NowWanted) -> Result<Traffic, Problem> {
    let published = api.published();
    if let Some(name) = &wanted.service {
        super::find_service(&published, name)?;
    }
    let history = lock(api)?;
    let windows = |key: &Key| SPANS_S.map(|span_s| history.window(key, span_s));
    let cpu = windows(&Key::Process).into_iter().map(|window| {
        let window = window?;
        let seconds = window.seconds.max(1) as f64;
        Some(admin_api::rounded(window.count("cpu_us") as f64 / 1e6 / seconds))
    });
    let listeners = published.snapshot.listeners.iter().map(|listener| {
        let own = windows(&Key::Listener(Arc::clone(&listener.name)));
        ListenerTraffic {
            name: listener.name.to_string(),
            windows: own.iter().flatten().map(Into::into).collect(),
        }
    });
    let services = published.services.iter().filter(|service| {
        wanted.service.as_ref().is_none_or(|wanted| **service.name() == **wanted)
    });
    let services = services.map(|service| {
        let name = service.name();
        let own = windows(&Key::Service(Arc::clone(name)));
        let endpoints = service.endpoints();
        let shown = endpoints.all.iter().filter(|_| wanted.servers.unwrap_or(true));
        let mut servers: Vec<_> = shown
            .map(|endpoint| {
                let address = endpoint.row.address;
                let key = Key::Server(Arc::clone(name), address);
                let spans = SPANS_S.iter().take(SERVER_SPANS);
                let windows = spans.filter_map(|&span_s| history.window(&key, span_s));
                admin_api::traffic::ServerTraffic {
                    address: address.to_string(),
                    windows: windows.map(|window| (&window).into()).collect(),
                }
            })
            .collect();
        servers.sort_by(|a, b| a.address.cmp(&b.address));
        ServiceTraffic {
            name: name.to_string(),
            windows: own.iter().flatten().map(Into::into).collect(),
            servers,
        }
    });
    let second = if enabled(api) { history.second() } else { os::clock::since_boot().as_secs() };
    Ok(Traffic {
        at_unix_ms: started_unix_ms() + second * 1_000,
        spans_s: SPANS_S.to_vec(),
        cpu: cpu.collect(),
        listeners: listeners.collect(),
        services: services.collect(),
    })
}

pub(super) async fn past(
    State(api): Api,
    wanted: Result<Query<PastWanted>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(wanted) = wanted.map_err(unreadable_query)?;
    blocking(move || Ok(Json(history(&api, &wanted)?).into_response())).await?
}

fn enabled(api: &Context) -> bool {
    api.published().snapshot.history_memory_max_bytes > 0
}

fn history(api: &Context, wanted: &PastWanted) -> Result<admin_api::history::History, Problem> {
    let history = lock(api)?;
    let started_ms = started_unix_ms();
    let (tier, rows) = rows(&history, wanted, started_ms);
    let numbers: Vec<u64> = rows.iter().map(|(number, _)| *number).collect();
    let chosen = Chosen::read(wanted.columns.as_deref())?;
    let limit = wanted.limit.unwrap_or(SERIES).min(SERIES_MAX);
    let (mut series, mut left_out, mut cells) = (Vec::new(), 0, 0);
    for key in history.keys().filter(|key| wanted.matches(key)) {
        let columns = chosen.of(key.kind());
        cells += (columns.len() + chosen.causes_max(key.kind())) * numbers.len();
        if series.len() >= limit || cells > CELLS_MAX {
            left_out += 1;
        } else if let Some(rows) = history.rows(key, (tier, &numbers), &columns, chosen.causes) {
            series.push(one_series(key, &columns, rows));
        }
    }
    drop(history);
    let step_ms = TIERS[tier].step_s * 1_000;
    Ok(admin_api::history::History {
        enabled: enabled(api),
        step_ms,
        ended_unix_ms: numbers.iter().map(|number| started_ms + number * step_ms).collect(),
        covered_ms: rows.iter().map(|(_, covered_ms)| *covered_ms).collect(),
        series,
        left_out,
    })
}

/// Which columns were asked for.
struct Chosen<'a> {
    /// `None`: all.
    names: Option<Vec<&'a str>>,
    causes: bool,
}

impl<'a> Chosen<'a> {
    fn read(asked: Option<&'a str>) -> Result<Chosen<'a>, Problem> {
        let Some(asked) = asked else { return Ok(Chosen { names: None, causes: true }) };
        let names: Vec<&str> = asked.split(',').map(str::trim).collect();
        let all = || Kind::ALL.iter().flat_map(|kind| kind.columns()).map(|column| column.name);
        let is_known = |name: &&str| *name == CAUSES || all().any(|known| known == *name);
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            let message =
                format!("no series has a column {unknown:?}; docs/admin-api.md lists them");
            return Err(Problem::new(StatusCode::BAD_REQUEST, "unknown_column", message));
        }
        Ok(Chosen { causes: names.contains(&CAUSES), names: Some(names) })
    }

    fn of(&self, kind: Kind) -> Vec<Column> {
        let is_chosen = |name: &str| self.names.as_ref().is_none_or(|names| names.contains(&name));
        kind.columns().iter().filter(|column| is_chosen(column.name)).copied().collect()
    }

    /// Returns how many causes a row may have.
    fn causes_max(&self, kind: Kind) -> usize {
        if self.causes && kind.has_causes() { history::CAUSES_MAX + 1 } else { 0 }
    }
}

/// Returns the tier that fits the span, and its rows.
fn rows(history: &History, wanted: &PastWanted, started_ms: u64) -> (usize, Vec<(u64, u32)>) {
    let second = history.second();
    let until = wanted.until_unix_ms.map_or(second, |until_ms| {
        // To the nearest second: a row's own time finds that row.
        (until_ms.saturating_sub(started_ms).saturating_add(500) / 1_000).min(second)
    });
    let span_s = wanted.span_s.unwrap_or(TIERS[0].step_s * TIERS[0].rows);
    let from = until.saturating_sub(span_s);
    let tier = Tier::reaching(second.saturating_sub(from));
    let step_s = TIERS[tier].step_s;
    let rows = history.ended(tier, usize::MAX);
    (tier, rows.filter(|(row, _)| row * step_s > from && row * step_s <= until).collect())
}

impl PastWanted {
    fn matches(&self, key: &Key) -> bool {
        if self.kind.is_some_and(|kind| kind != key.kind()) {
            return false;
        }
        let Named { service, server, .. } = Named::of(key);
        (self.service.is_none() || self.service == service)
            && (self.server.is_none() || self.server == server)
    }
}

/// What a series is about, as text.
struct Named {
    listener: Option<String>,
    service: Option<String>,
    server: Option<String>,
}

impl Named {
    fn of(key: &Key) -> Named {
        let (listener, service, server) = match key {
            Key::Process => (None, None, None),
            Key::Listener(name) => (Some(name), None, None),
            Key::Service(name) => (None, Some(name), None),
            Key::Server(name, address) => (None, Some(name), Some(address)),
        };
        Named {
            listener: listener.map(ToString::to_string),
            service: service.map(ToString::to_string),
            server: server.map(ToString::to_string),
        }
    }
}

fn one_series(key: &Key, columns: &[Column], rows: history::Rows) -> Series {
    let Named { listener, service, server } = Named::of(key);
    let causes = rows.causes.into_iter().map(|(row, one)| CauseCount {
        row,
        cause: one.cause().map(|cause| cause.name().to_owned()),
        count: one.count(),
    });
    let names = columns.iter().map(|column| column.name.to_owned());
    Series {
        kind: key.kind().as_str().to_owned(),
        listener,
        service,
        server,
        columns: names.zip(rows.columns).collect(),
        causes: causes.collect(),
    }
}
