//! The state of servers that an upgrade hands to the new process.
//!
//! Times are durations, since each process has its own clock. Not handed over: requests in flight
//! (they end in the old process), rate limit buckets, the progress of slow starts, and the learned
//! idle timeouts of servers.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use admin_api::handover;
use decide::Published;
use model::{Address, Administrative, Health, Moment, ServerState, ServerVersion};

/// The state of each server of each service.
#[derive(Debug, Default)]
pub(crate) struct ServerStates(Vec<Row>);

#[derive(Debug, PartialEq)]
struct Row {
    service: String,
    address: Address,
    health: Health,
    administrative: Administrative,
    leaving: bool,
    weight: Option<u16>,
    ejected_for: Option<Duration>,
    ejections: u32,
    latency_us: f64,
    version: Option<ServerVersion>,
}

impl ServerStates {
    /// Collects the state of all servers of a configuration, at `now`.
    pub(crate) fn of(published: &Published, now: Moment) -> ServerStates {
        let rows = published.services.iter().flat_map(|service| {
            let endpoints = service.endpoints();
            let row = |endpoint: &std::sync::Arc<decide::Endpoint>| {
                Row::of(service.name(), endpoint.row.address, &endpoint.state, now)
            };
            endpoints.all.iter().map(row).collect::<Vec<_>>()
        });
        ServerStates(rows.collect())
    }

    /// Returns the number of servers.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Restores the state of the servers that exist; keeps the rest for another call.
    pub(crate) fn restore(&mut self, published: &Published, now: Moment) {
        for service in &published.services {
            let endpoints = service.endpoints();
            let is_scaled = service.spec().scaling.is_some();
            let before = self.0.len();
            self.0.retain(|row| {
                let found = (row.service == **service.name())
                    .then(|| endpoints.by_address(row.address))
                    .flatten();
                if let Some(endpoint) = found {
                    row.restore(&endpoint.state, now);
                    endpoint.state.set_leaving(row.leaving && is_scaled);
                }
                found.is_none()
            });
            if self.0.len() != before
                && let Some(tier) = service.refresh(now)
            {
                tracing::info!(
                    service = %tier.service,
                    from = tier.from.as_str(),
                    to = tier.to.as_str(),
                    why = tier.reason.as_str(),
                    "service begins as the process before it left it"
                );
            }
        }
    }

    pub(crate) fn to_handover(&self) -> Vec<handover::Server> {
        self.0.iter().map(Row::to_handover).collect()
    }

    pub(crate) fn from_handover(rows: Vec<handover::Server>) -> ServerStates {
        ServerStates(rows.into_iter().map(Row::from_handover).collect())
    }
}

impl Row {
    fn of(service: &str, address: Address, state: &ServerState, now: Moment) -> Row {
        Row {
            service: service.to_owned(),
            address,
            health: state.health(),
            administrative: state.administrative(),
            leaving: state.is_leaving(),
            weight: state.weight_set(),
            ejected_for: state.ejected_until().map(|until| until.since(now)),
            ejections: state.ejections.load(Relaxed),
            latency_us: f64::from_bits(state.latency_us_bits.load(Relaxed)),
            version: state.version.get(),
        }
    }

    fn restore(&self, state: &ServerState, now: Moment) {
        state.set_health(self.health, now);
        state.set_administrative(self.administrative);
        state.set_weight(self.weight);
        state.ejections.store(self.ejections, Relaxed);
        if let Some(time) = self.ejected_for {
            state.eject(now + time);
        }
        if let Some(version) = self.version {
            state.version.set(version);
        }
        if self.latency_us > 0.0 {
            state.latency_us_bits.store(self.latency_us.to_bits(), Relaxed);
            state.latency_at_us.store(now.as_micros(), Relaxed);
        }
    }

    fn to_handover(&self) -> handover::Server {
        handover::Server {
            service: self.service.clone(),
            address: self.address,
            health: self.health.into(),
            state: self.administrative.into(),
            leaving: self.leaving,
            weight: self.weight,
            ejected_for_ms: self.ejected_for.map(|time| time.as_millis() as u64),
            ejections: self.ejections,
            latency_us: Some(self.latency_us),
            version: self.version.map(|version| version.to_string()),
        }
    }

    fn from_handover(row: handover::Server) -> Row {
        // An operator has taken it out in a way that only a newer version knows.
        let administrative = row.state.known().unwrap_or_else(|| {
            tracing::warn!(
                service = row.service,
                server = %row.address,
                state = row.state.as_str(),
                "unknown server state in the upgrade's hand-over; the server is drained \
                 (`weir ready` puts it back)"
            );
            Administrative::Drain
        });
        Row {
            service: row.service,
            address: row.address,
            health: row.health.known().unwrap_or(Health::Unknown),
            administrative,
            leaving: row.leaving,
            weight: row.weight,
            ejected_for: row.ejected_for_ms.map(Duration::from_millis),
            ejections: row.ejections,
            latency_us: row.latency_us.filter(|us| us.is_finite()).unwrap_or(0.0),
            version: row.version.and_then(|text| ServerVersion::parse(text.as_bytes())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use decide::Registry;

    use super::*;

    const TEXT: &str = "admin = { address = \"off\" }\n\
        listener = [{ address = \"127.0.0.1:8080\" }]\n\
        route = [{ service = \"app\" }]\n\
        service.app = { scaling = { servers_max = 3, in_flight_target = 1 }, server = [{ address = \"10.0.0.1:80\" }, { address = \"10.0.0.2:80\" }] }\n\
        service.same = { server = [{ address = \"10.0.0.1:80\" }] }\n";

    fn registry(text: &str, now: Moment) -> Registry {
        let checked = config::check(text, "test.toml", &()).unwrap();
        let registry = Registry::with_seed(1);
        registry.publish(Arc::new(checked.snapshot), now);
        registry
    }

    fn state(registry: &Registry, service: &str, address: &str) -> Arc<ServerState> {
        let published = registry.load_full();
        let service = published.services.iter().find(|one| **one.name() == *service).unwrap();
        let address = address.parse().unwrap();
        Arc::clone(&service.endpoints().by_address(address).unwrap().state)
    }

    #[test]
    fn the_next_process_knows_what_this_one_knew() {
        let (then, now) = (Moment::from_millis(50_000), Moment::from_millis(20));
        let old = registry(TEXT, then);
        let down = state(&old, "app", "10.0.0.1:80");
        down.set_health(Health::Down, then);
        let drained = state(&old, "app", "10.0.0.2:80");
        drained.set_administrative(Administrative::Drain);
        drained.set_weight(Some(7));
        drained.eject(then + Duration::from_secs(3));
        drained.ejections.store(2, Relaxed);
        drained.latency_us_bits.store(1500.5_f64.to_bits(), Relaxed);
        for service in ["app", "same"] {
            state(&old, service, "10.0.0.1:80").set_leaving(true);
        }
        let handed_over = ServerStates::of(&old.load_full(), then);
        assert_eq!(handed_over.len(), 3);
        let text = serde_json::to_string(&handed_over.to_handover()).unwrap();

        let new = registry(TEXT, now);
        let mut read = ServerStates::from_handover(serde_json::from_str(&text).unwrap());
        assert_eq!(read.0, handed_over.0);
        read.restore(&new.load_full(), now);
        assert_eq!(read.len(), 0);
        assert_eq!(state(&new, "app", "10.0.0.1:80").health(), Health::Down);
        assert_eq!(state(&new, "same", "10.0.0.1:80").health(), Health::Unknown, "its own verdict");
        let drained = state(&new, "app", "10.0.0.2:80");
        assert_eq!(drained.administrative(), Administrative::Drain);
        assert_eq!(drained.weight_set(), Some(7));
        assert_eq!(drained.ejected_until(), Some(now + Duration::from_secs(3)));
        assert_eq!(drained.ejections.load(Relaxed), 2);
        assert_eq!(drained.latency_us_bits.load(Relaxed), 1500.5_f64.to_bits());
        assert!(state(&new, "app", "10.0.0.1:80").is_leaving());
        assert!(!state(&new, "same", "10.0.0.1:80").is_leaving(), "it has no `scaling`");
        // Neither takes work, and the choice knows.
        let published = new.load_full();
        assert!(published.services[0].endpoints().eligible.is_empty());
    }

    #[test]
    fn what_is_not_understood_is_left_out_and_who_comes_later_is_waited_for() {
        let read = |servers: serde_json::Value| {
            let manifest = serde_json::json!({ "form": 1, "says": 3, "servers": servers });
            let manifest: handover::Manifest = serde_json::from_value(manifest).unwrap();
            ServerStates::from_handover(manifest.servers)
        };
        let mut states = read(serde_json::json!([
            { "service": "app", "address": "nowhere", "health": "up", "state": "ready" },
            { "service": "app" },
            7,
            { "service": "app", "address": "10.0.0.9:80", "health": "down", "state": "?" },
        ]));
        assert_eq!(states.len(), 1);
        assert_eq!(states.0[0].administrative, Administrative::Drain, "a state not known here");
        let registry = registry(TEXT, Moment::ZERO);
        states.restore(&registry.load_full(), Moment::ZERO);
        assert_eq!(states.len(), 1);
        assert_eq!(read(serde_json::Value::Null).len(), 0);
    }
}
