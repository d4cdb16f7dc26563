//! `/api/v1/traffic`: what happens now, and `/api/v1/history`: the recent past.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use admin_api::history::{CauseCount, Series};
use admin_api::traffic::{ListenerTraffic, ServiceTraffic, Traffic};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use history::{History, Key, Kind, TIERS, Tier};
use serde::Deserialize;

use super::{Api, Indented, not_available, unreadable_query};
use crate::context::Context;
use crate::problem::Problem;

/// The spans of windows, in seconds.
const SPANS_S: [u64; 3] = [10, 60, 3_600];

/// Windows of servers: they have none of an hour.
const SERVER_SPANS: usize = 2;

const SERIES: usize = 100;
const SERIES_MAX: usize = 1_000;

/// Numbers in one answer. A thousand series of all seven columns, a second for 15 minutes, would be
/// 6 million.
const CELLS_MAX: usize = 1_000_000;

#[derive(Debug, Deserialize)]
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

fn unix_ms(second: u64) -> u64 {
    let ago = os::clock::since_boot().as_millis() as u64;
    (os::clock::wall().as_millis() as u64 + second * 1_000).saturating_sub(ago)
}

pub(super) async fn now(
    State(api): Api,
    wanted: Result<Query<NowWanted>, QueryRejection>,
) -> Result<Indented<Traffic>, Problem> {
    let Query(wanted) = wanted.map_err(unreadable_query)?;
    let published = api.published();
    if let Some(name) = &wanted.service {
        super::find_service(&published, name)?;
    }
    let history = lock(&api)?;
    let windows = |key: &Key| SPANS_S.map(|span_s| history.window(key, span_s));
    let cpu = windows(&Key::Process).into_iter().map(|window| {
        let window = window?;
        let seconds = window.seconds.max(1) as f64;
        Some(admin_api::rounded(window.count("cpu_us") as f64 / 1e6 / seconds))
    });
    let listeners = history.keys().filter_map(|key| match key {
        Key::Listener(name) => Some(ListenerTraffic {
            name: name.to_string(),
            windows: windows(key).iter().flatten().map(Into::into).collect(),
        }),
        Key::Process | Key::Service(_) | Key::Server(..) => None,
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
    Ok(Indented(Traffic {
        at_unix_ms: unix_ms(history.second()),
        spans_s: SPANS_S.to_vec(),
        cpu: cpu.collect(),
        listeners: listeners.collect(),
        services: services.collect(),
    }))
}

pub(super) async fn past(
    State(api): Api,
    wanted: Result<Query<PastWanted>, QueryRejection>,
) -> Result<Indented<admin_api::history::History>, Problem> {
    let Query(wanted) = wanted.map_err(unreadable_query)?;
    let enabled = api.published().snapshot.history_memory_max_bytes > 0;
    let history = lock(&api)?;
    let (tier, rows) = rows(&history, &wanted);
    let numbers: Vec<u64> = rows.iter().map(|(number, _)| *number).collect();
    let columns: Option<Vec<&str>> =
        wanted.columns.as_ref().map(|names| names.split(',').map(str::trim).collect());
    let limit = wanted.limit.unwrap_or(SERIES).min(SERIES_MAX);
    let (mut series, mut left_out, mut cells) = (Vec::new(), 0, 0);
    for key in history.keys().filter(|key| wanted.matches(key)) {
        let shown = |name: &str| columns.as_ref().is_none_or(|wanted| wanted.contains(&name));
        let width = key.kind().columns().iter().filter(|one| shown(one.name)).count();
        cells += width * numbers.len();
        if series.len() >= limit || cells > CELLS_MAX {
            left_out += 1;
        } else if let Some(rows) = history.rows(key, tier, &numbers) {
            series.push(one_series(key, rows, shown));
        }
    }
    let step_s = TIERS[tier].step_s;
    Ok(Indented(admin_api::history::History {
        enabled,
        step_ms: step_s * 1_000,
        ended_unix_ms: numbers.iter().map(|number| unix_ms(number * step_s)).collect(),
        covered_ms: rows.iter().map(|(_, covered_ms)| *covered_ms).collect(),
        series,
        left_out,
    }))
}

/// Returns the tier that fits the span, and its rows.
fn rows(history: &History, wanted: &PastWanted) -> (usize, Vec<(u64, u32)>) {
    let second = history.second();
    let until = wanted.until_unix_ms.map_or(second, |until| {
        let ago_s = unix_ms(second).saturating_sub(until) / 1_000;
        second.saturating_sub(ago_s)
    });
    let span_s = wanted.span_s.unwrap_or(TIERS[0].step_s * TIERS[0].rows);
    let from = until.saturating_sub(span_s);
    let tier = Tier::reaching(second.saturating_sub(from));
    let step_s = TIERS[tier].step_s;
    let rows = history.ended(tier, usize::MAX);
    (tier, rows.filter(|(row, _)| (from + 1..=until).contains(&(row * step_s))).collect())
}

impl PastWanted {
    fn matches(&self, key: &Key) -> bool {
        let kind = self.kind.is_none_or(|kind| kind == key.kind());
        let (service, server) = match key {
            Key::Process | Key::Listener(_) => (None, None),
            Key::Service(service) => (Some(service), None),
            Key::Server(service, address) => (Some(service), Some(address)),
        };
        let of_service = |wanted: &String| service.is_some_and(|name| **name == **wanted);
        let of_server =
            |wanted: &String| server.is_some_and(|address| address.to_string() == *wanted);
        kind && self.service.as_ref().is_none_or(of_service)
            && self.server.as_ref().is_none_or(of_server)
    }
}

fn one_series(key: &Key, rows: history::Rows, shown: impl Fn(&str) -> bool) -> Series {
    let (listener, service, server) = match key {
        Key::Process => (None, None, None),
        Key::Listener(name) => (Some(name.to_string()), None, None),
        Key::Service(name) => (None, Some(name.to_string()), None),
        Key::Server(name, address) => (None, Some(name.to_string()), Some(address.to_string())),
    };
    let columns = key.kind().columns().iter().map(|column| column.name).zip(rows.columns);
    let causes = rows.causes.into_iter().map(|(row, one)| CauseCount {
        row,
        cause: one.cause().map(|cause| cause.name().to_owned()),
        count: one.count(),
    });
    Series {
        kind: key.kind().as_str().to_owned(),
        listener,
        service,
        server,
        columns: columns.filter(|(name, _)| shown(name)).map(|(n, v)| (n.to_owned(), v)).collect(),
        causes: causes.filter(|_| shown("causes")).collect(),
    }
}
