//! The history's last seconds as facts for the rules.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use admin_api::status::Kubernetes;
use control::{FleetState, SourceState};
use decide::{Endpoint, LiveService, Published, Tier, slow_start};
use diagnose::facts::{
    FleetProblem, ServiceSpan, Traffic, TrafficFleet, TrafficKubernetes, TrafficServer,
    TrafficService, TrafficSource,
};
use history::{History, Key, Kind, TIERS, Window};
use model::{Action, Balance, Protocol, Service, ServiceId, Snapshot};

use super::clients::Clients;
use super::deploys::Deploys;
use super::spans::{causes, durations, server_span};
use super::watched::Watched;

/// The spans of the rules, in seconds. They may be longer by up to five.
const FRESH_S: u64 = 5;
const RECENT_S: u64 = 10;
const MINUTE_S: u64 = 60;

/// Seconds of which the length of the queue is a fact.
const QUEUE_S: usize = 15;

/// Returns the facts about the services with traffic in the last minute.
pub(super) fn traffic(
    history: &History,
    published: &Published,
    watched: &Watched,
    deploys: &Deploys,
    clients: &Clients,
    control: &control::Status,
    kubernetes: Option<&Kubernetes>,
) -> Traffic {
    let tcp = tcp_services(&published.snapshot);
    let with_sessions = services_with_sessions(&published.snapshot);
    let services = published.services.iter().enumerate().filter_map(|(index, live)| {
        let facts = service(history, live, watched, deploys)?;
        let is_tcp = tcp.contains(&(index as u32));
        let is_bound = facts.is_bound || with_sessions.contains(&(index as u32));
        let (clients, clients_before) = clients.spans(live.name());
        Some(TrafficService { is_tcp, is_bound, clients, clients_before, ..facts })
    });
    let services = services.collect();
    let counts: HashMap<&Arc<str>, u64> = published
        .services
        .iter()
        .filter(|live| live.spec().discover.is_some())
        .map(|live| (live.name(), live.endpoints().all.len() as u64))
        .collect();
    let sources = control.sources().into_iter().map(|state| {
        let servers = counts.get(&state.service).copied().unwrap_or(0);
        TrafficSource { servers, ..source(state) }
    });
    Traffic {
        services,
        sources: sources.collect(),
        fleet: control.fleet().map(|state| fleet(&state)),
        kubernetes: kubernetes.map(|state| TrafficKubernetes {
            has_ended: !state.running,
            disconnected_s: state.disconnected_for_ms.map(|millis| (millis / 1e3) as u64),
            not_followed_s: state.not_followed_for_ms.map(|millis| (millis / 1e3) as u64),
            awaited: state.awaited.clone(),
            failing: state.failing.clone(),
            error: state.error.clone().unwrap_or_default(),
        }),
    }
}

fn fleet(state: &FleetState) -> TrafficFleet {
    let now = os::clock::now();
    let problems = state.problems.iter().map(|one| FleetProblem {
        kind: one.kind.as_str().to_owned(),
        subject: one.subject.to_string(),
        why: one.why.clone().unwrap_or_default(),
        for_s: now.since(one.since).as_secs(),
    });
    TrafficFleet {
        members: (state.others.len() + usize::from(state.own.is_some())) as u64,
        problems: problems.collect(),
    }
}

fn source(state: SourceState) -> TrafficSource {
    let SourceState { service, source, set, .. } = state;
    let now = os::clock::now();
    TrafficSource {
        service: service.to_string(),
        source,
        listed: set.listed as u64,
        not_ready: set.not_ready as u64,
        held: set.held as u64,
        flapping: set.flapping as u64,
        servers: 0,
        failing_s: set.failing_since.map(|since| now.since(since).as_secs()),
        error: set.error.unwrap_or_default(),
    }
}

/// Returns the services that get connections instead of requests.
fn tcp_services(snapshot: &Snapshot) -> HashSet<u32> {
    let protocols = snapshot.listeners.iter().map(|listener| &listener.protocol);
    protocols.flat_map(Protocol::services).map(|ServiceId(id)| id).collect()
}

/// Returns the services to which routes with affinity send requests.
fn services_with_sessions(snapshot: &Snapshot) -> HashSet<u32> {
    let forwards = snapshot.routes.iter().filter_map(|route| match &route.action {
        Action::Forward(forward) => forward.affinity.as_ref().map(|_| forward),
        Action::Redirect(_) | Action::Deny(_) | Action::Respond(_) => None,
    });
    forwards.flat_map(|forward| forward.services()).map(|ServiceId(id)| id).collect()
}

/// `None` if it has no traffic.
fn service(
    history: &History,
    live: &LiveService,
    watched: &Watched,
    deploys: &Deploys,
) -> Option<TrafficService> {
    let key = Key::Service(Arc::clone(live.name()));
    let minute = history.window(&key, MINUTE_S)?;
    let endpoints = live.endpoints();
    let is_busy =
        |endpoint: &Arc<Endpoint>| watched.waiting(live.name(), endpoint.row.address).0 > 0;
    if minute.count("requests") + minute.count("attempts") == 0
        && !endpoints.all.iter().any(is_busy)
    {
        return None;
    }
    let recent = history.window(&key, RECENT_S)?;
    let (spec, now): (&Service, _) = (&live.spec(), os::clock::now());
    let since_version_s = deploys.since_version_s(live.name());
    let servers = endpoints.all.iter().filter_map(|endpoint| {
        let address = endpoint.row.address;
        let key = Key::Server(Arc::clone(live.name()), address);
        let span = |seconds| Some(server_span(&history.window(&key, seconds)?));
        let (waiting, silent_s) = watched.waiting(live.name(), address);
        let max = endpoint.slots.max();
        Some(TrafficServer {
            address,
            zone: endpoint.row.zone.as_ref().map(ToString::to_string),
            is_starting: slow_start::share(endpoint.state.up_since(), spec.slow_start, now) < 1.0,
            is_eligible: endpoints.is_eligible(address),
            weight: f64::from(endpoint.weight()),
            weight_configured: f64::from(endpoint.row.weight),
            in_flight: endpoint.slots.in_flight().into(),
            in_flight_max: (max > 0).then_some(max.into()),
            waiting,
            silent_s,
            fresh: span(FRESH_S)?,
            recent: span(RECENT_S)?,
            minute: span(MINUTE_S)?,
            version: endpoint.version(spec).map(|version| version.to_string()),
            before_version: deploys.before_version(live.name(), address),
            since_version: since_version_s.and_then(span).unwrap_or_default(),
        })
    });
    Some(TrafficService {
        name: live.name().to_string(),
        balance: spec.balance.as_str().to_owned(),
        is_bound: matches!(spec.balance, Balance::Hash(_)) || spec.affinity.is_some(),
        tries_all: endpoints.tier == Tier::TryAll,
        settled_s: watched.settled_s(live.name()),
        queue_length: live.queue_length().into(),
        queue_length_max: spec.queue.length_max.into(),
        queue_lengths: queue_lengths(history, &key),
        recent: service_span(&recent),
        changes: deploys.changes(history, live.name(), &endpoints),
        servers: servers.collect(),
        ..TrafficService::default()
    })
}

fn queue_lengths(history: &History, key: &Key) -> Vec<u64> {
    let columns: Vec<_> =
        Kind::Service.columns().iter().copied().filter(|one| one.name == "queue_length").collect();
    let numbers: Vec<u64> = history.ended(0, QUEUE_S).map(|(number, _)| number).collect();
    debug_assert_eq!(TIERS[0].step_s, 1, "the first tier's rows are seconds");
    let rows = history.rows(key, (0, &numbers), &columns, false).unwrap_or_default();
    rows.columns.into_iter().flatten().map(Option::unwrap_or_default).collect()
}

fn service_span(window: &Window) -> ServiceSpan {
    ServiceSpan {
        seconds: window.seconds,
        requests: window.count("requests"),
        attempts: window.count("attempts"),
        retries: window.count("retries"),
        queued: window.count("queued"),
        causes: causes(window).collect(),
        total: durations(window, "total_p50_us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_routes_bind_requests_to_servers() {
        let text = "[[listener]]\naddress = \"127.0.0.1:0\"\n\
                    [[route]]\npath = \"/shop\"\nsplit = [{ service = \"b\", weight = 1 }, \
                    { deny = 503, weight = 1 }]\naffinity = { cookie = \"s\" }\n\
                    [[route]]\nservice = \"a\"\n\
                    [service.a]\nserver = [{ address = \"127.0.0.1:1\" }]\n\
                    [service.b]\nserver = [{ address = \"127.0.0.1:2\" }]\n";
        let snapshot = config::check(text, "test.toml", &()).unwrap().snapshot;
        let with_sessions = services_with_sessions(&snapshot);
        let names = |id: &u32| snapshot.service(ServiceId(*id)).name.to_string();
        assert_eq!(with_sessions.iter().map(names).collect::<Vec<_>>(), ["b"]);
    }
}
