//! The running configuration as JSON: what is in force, with every default filled in.
//!
//! A summary for people and dashboards, not a form that can be read back; times are milliseconds.

use std::time::Duration;

use model::{
    AccessLog, Action, Balance, FieldMatch, HashOn, HostPattern, Listener, PathMatch, Protocol,
    RateKey, RateLimit, Route, Service, Snapshot, WhenAllDown,
};
use serde_json::{Map, Value, json};

pub(crate) fn summary(snapshot: &Snapshot) -> Value {
    json!({
        "zone": snapshot.zone,
        "workers": snapshot.workers,
        "connections_max": snapshot.connections_max,
        "drain_max_ms": ms(snapshot.drain_max),
        "access_log": match &snapshot.log.access {
            AccessLog::Off => "off".to_owned(),
            AccessLog::Stdout => "stdout".to_owned(),
            AccessLog::File(path) => path.display().to_string(),
        },
        "listeners": list(&snapshot.listeners, |listener| self::listener(snapshot, listener)),
        "routes": list(&snapshot.routes, |route| self::route(snapshot, route)),
        "services": list(&snapshot.services, service),
    })
}

fn list<T>(items: &[T], to_json: impl Fn(&T) -> Value) -> Value {
    items.iter().map(to_json).collect()
}

fn listener(snapshot: &Snapshot, listener: &Listener) -> Value {
    let mut row = json!({
        "name": listener.name,
        "address": listener.address,
        "protocol": match listener.protocol {
            Protocol::Http => "http",
            Protocol::Tcp(_) => "tcp",
        },
        "backlog": listener.backlog,
        "connections_max": listener.connections_max,
        "trusted": listener.trusted.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "head_max_bytes": listener.head_max_bytes,
        "body_max_bytes": listener.body_max_bytes,
        "timeouts_ms": {
            "head": ms(listener.timeouts.head),
            "idle": ms(listener.timeouts.idle),
            "body": ms(listener.timeouts.body),
        },
    });
    if let Protocol::Tcp(service) = listener.protocol {
        row["service"] = json!(snapshot.service(service).name);
    }
    row
}

fn route(snapshot: &Snapshot, route: &Route) -> Value {
    let matches = &route.matches;
    let mut row = Map::new();
    let mut put = |key: &str, value: Value| row.insert(key.to_owned(), value);
    put("name", json!(route.name));
    if !matches.listeners.is_empty() {
        let name = |id: &model::ListenerId| {
            snapshot
                .listeners
                .get(id.0 as usize)
                .map(|listener| json!(listener.name))
        };
        put(
            "listeners",
            matches.listeners.iter().filter_map(name).collect(),
        );
    }
    match &matches.host {
        Some(HostPattern::Exact(host)) => put("host", json!(host)),
        Some(HostPattern::Wildcard(suffix)) => put("host", json!(format!("*.{suffix}"))),
        None => None,
    };
    match &matches.path {
        PathMatch::Prefix(prefix) if prefix.is_empty() => put("path_prefix", json!("/")),
        PathMatch::Prefix(prefix) => put("path_prefix", json!(prefix)),
        PathMatch::Exact(path) => put("path", json!(path)),
    };
    if let Some(method) = &matches.method {
        put("method", json!(method));
    }
    for (key, wanted) in [("fields", &matches.fields), ("query", &matches.query)] {
        if !wanted.is_empty() {
            put(key, wanted.iter().map(pair).collect::<Map<_, _>>().into());
        }
    }
    put("action", action(snapshot, &route.action));
    if let Some(limit) = &route.rate_limit {
        put("rate_limit", rate_limit(limit));
    }
    row.into()
}

fn pair(wanted: &FieldMatch) -> (String, Value) {
    (wanted.name.clone(), json!(wanted.value))
}

fn action(snapshot: &Snapshot, action: &Action) -> Value {
    match action {
        Action::Forward(forward) => {
            let to = list(
                &forward.to,
                |split| json!({ "service": snapshot.service(split.service).name, "weight": split.weight }),
            );
            json!({ "forward": to })
        }
        Action::Redirect(redirect) => json!({ "redirect": {
            "status": redirect.status,
            "scheme": redirect.scheme,
            "host": redirect.host,
            "port": redirect.port,
            "path": redirect.path,
        }}),
        Action::Deny(status) => json!({ "deny": status }),
    }
}

fn rate_limit(limit: &RateLimit) -> Value {
    json!({
        "by": match &limit.by {
            RateKey::Client => "client",
            RateKey::Field(name) => name,
        },
        "requests": limit.requests,
        "per_ms": ms(limit.per),
        "burst": limit.burst,
    })
}

fn service(service: &Service) -> Value {
    json!({
        "name": service.name,
        "balance": match &service.balance {
            Balance::RoundRobin => "round-robin".to_owned(),
            Balance::LeastConnections => "least-connections".to_owned(),
            Balance::PeakEwma => "peak-ewma".to_owned(),
            Balance::Random => "random".to_owned(),
            Balance::Hash(key) => match &key.on {
                HashOn::Client => "hash of the client's address".to_owned(),
                HashOn::Field(name) => format!("hash of field {name}"),
                HashOn::Cookie(name) => format!("hash of cookie {name}"),
            },
        },
        "in_flight_max": service.in_flight_max,
        "queue": {
            "length_max": service.queue.length_max,
            "wait_max_ms": ms(service.queue.wait_max),
        },
        "when_full": service.when_full,
        "when_all_down": match service.when_all_down {
            WhenAllDown::Refuse => "refuse",
            WhenAllDown::TryAll => "try-all",
        },
        "check": service.check.as_ref().map(|check| json!({
            "interval_ms": ms(check.interval),
            "timeout_ms": ms(check.timeout),
            "rise": check.rise,
            "fall": check.fall,
        })),
        "passive": service.passive.is_some(),
        "slow_start_ms": service.slow_start.map(ms),
        "timeouts_ms": {
            "connect": ms(service.timeouts.connect),
            "response": ms(service.timeouts.response),
            "idle": ms(service.timeouts.idle),
            "keep_alive": ms(service.timeouts.keep_alive),
        },
        "attempts_max": service.retries.attempts_max.saturating_add(1),
        "servers": list(&service.servers, |server| json!({
            "name": server.target.to_string(),
            "zone": server.zone,
            "weight": server.weight,
            "backup": server.backup,
        })),
    })
}

/// Whole milliseconds.
fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
