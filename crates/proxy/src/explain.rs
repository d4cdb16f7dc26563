//! The decision record: for requests that present the right token, and for a sampled share of all,
//! the access line contains what was considered at each choice of a server. `decide::explain`
//! collects it; this file decides who gets it and writes it.

use std::sync::Arc;

use decide::explain::{Considered, Decision, Way};
use decide::{Ask, LiveService, Slot};
use model::Moment;
use serde_json::{Map, Value, json};

/// Returns whether a `Weir-Explain` value is the token. Its duration does not depend on the value
/// (constant-time comparison).
pub type MayExplain = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Maximum number of choices recorded per request; later ones are left out.
const CHOICES_MAX: usize = 8;

/// The server choices made for one request.
#[derive(Default)]
pub(crate) struct Explanation {
    decisions: Vec<Decision>,
}

impl Explanation {
    /// Starts the record of a choice.
    pub(crate) fn considers(&mut self, live: &LiveService, ask: &Ask<'_>, now: Moment) {
        if self.decisions.len() < CHOICES_MAX {
            self.decisions.push(live.explain(ask, now));
        }
    }

    /// Completes the record of a choice: this server at that moment, or none. `elsewhere`: chosen
    /// by [`LiveService::elsewhere`].
    pub(crate) fn decided(
        &mut self,
        chosen: Option<&(Slot, Moment)>,
        elsewhere: bool,
        now: Moment,
    ) {
        let way = match chosen {
            _ if elsewhere => Way::Elsewhere,
            Some((_, at)) if *at > now => Way::Queue,
            _ => Way::AtOnce,
        };
        if let Some(decision) = self.decisions.last_mut()
            && !decision.is_settled()
        {
            decision.settle(chosen.map(|(slot, _)| &**slot.endpoint()), way, now);
        }
    }

    /// Returns one object for each choice, in order.
    pub(crate) fn to_json(&self) -> String {
        self.decisions.iter().map(decision).collect::<Value>().to_string()
    }
}

fn decision(decision: &Decision) -> Value {
    let more: Map<String, Value> =
        decision.more.iter().map(|(why, count)| (why.as_str().to_owned(), json!(count))).collect();
    json!({
        "service": &*decision.service,
        "tier": decision.tier.as_str(),
        "reason": decision.reason.as_str(),
        "queue_length": decision.queue_length,
        "chosen": decision.chosen,
        "by": decision.by.as_ref().map(decide::explain::By::as_str),
        "servers": decision.servers.iter().map(server).collect::<Value>(),
        "more": more,
    })
}

fn server(server: &Considered) -> Value {
    json!({
        "server": &*server.name,
        "address": server.address,
        "zone": server.zone.as_deref(),
        "why": server.why.as_str(),
        "weight": server.weight,
        "in_flight": server.in_flight,
        // Internally, 0 means "no limit".
        "in_flight_max": (server.in_flight_max > 0).then_some(server.in_flight_max),
        "latency_ms": server.latency.map(|time| time.as_micros() as f64 / 1e3),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use decide::Registry;
    use model::{
        Balance, LimitScope, QueueLimits, Retries, ServerSpec, ServerTarget, Service,
        ServiceTimeouts, Snapshot, WhenAllDown, ZonePolicy,
    };
    use std::net::SocketAddr;
    use std::time::Duration;

    use super::*;

    /// A service "app" with two servers.
    pub(crate) fn live() -> (Registry, Arc<LiveService>) {
        let second = Duration::from_secs(1);
        let server = |port| ServerSpec {
            target: ServerTarget::Address(SocketAddr::from(([10, 0, 0, 1], port)).into()),
            zone: Some("a".into()),
            weight: 1,
            backup: false,
            in_flight_max: None,
            version: None,
        };
        let service = Service {
            name: "app".into(),
            balance: Balance::RoundRobin,
            in_flight_max: Some(1),
            in_flight_scope: LimitScope::Balancer,
            queue: QueueLimits { length_max: 0, wait_max: second },
            when_full: 429,
            when_all_down: WhenAllDown::Refuse,
            check: None,
            passive: None,
            zones: ZonePolicy { ready_min: 0.5, ready_recovered: 0.7 },
            affinity: None,
            slow_start: None,
            timeouts: ServiceTimeouts {
                connect: second,
                response: second,
                idle: second,
                tunnel: second,
                keep_alive: second,
                total: None,
            },
            retries: Retries { attempts_max: 1, ..Retries::default() },
            scaling: None,
            idle_connections_max: 8,
            tls: None,
            http: model::HttpVersion::Http11,
            send_proxy: None,
            version_field: None,
            discover: None,
            maintenance: None,
            error_pages: Vec::new(),
            servers: vec![server(1), server(2)],
        };
        let registry = Registry::new();
        let snapshot = Snapshot { services: vec![service.into()], ..Snapshot::empty() };
        let live = Arc::clone(&registry.publish(Arc::new(snapshot), Moment::ZERO).services[0]);
        (registry, live)
    }

    #[test]
    fn each_choice_is_one_object() {
        let (_registry, live) = live();
        let (now, rng) = (Moment::from_millis(5), &mut fastrand::Rng::with_seed(1));
        let mut explanation = Explanation::default();
        let mut held = Vec::new();
        for _ in 0..12 {
            explanation.considers(&live, &Ask::default(), now);
            let chosen = match live.admit(&Ask::default(), rng, now) {
                decide::Admission::Go(slot) => Some((slot, now)),
                _ => None,
            };
            explanation.decided(chosen.as_ref(), false, now);
            held.extend(chosen);
        }
        let choices: Value = serde_json::from_str(&explanation.to_json()).unwrap();
        assert_eq!(choices.as_array().unwrap().len(), CHOICES_MAX);
        assert_eq!(choices[0]["by"], "round_robin");
        assert_eq!(choices[0]["chosen"], json!(held[0].0.row.address));
        assert_eq!(choices[0]["servers"][0]["zone"], "a");
        assert_eq!(choices[0]["servers"][0]["in_flight_max"], 1);
        let whys = |at: usize| {
            let servers = choices[at]["servers"].as_array().unwrap();
            let mut whys: Vec<_> = servers.iter().map(|one| one["why"].as_str().unwrap()).collect();
            whys.sort_unstable();
            whys
        };
        assert_eq!(whys(0), ["chosen", "not_its_turn"]);
        assert_eq!(whys(1), ["chosen", "full"]);
        // The remaining choices were refused, and stay so.
        assert_eq!((&choices[2]["chosen"], &choices[7]["by"]), (&Value::Null, &Value::Null));
        assert_eq!(whys(7), ["full", "full"]);
    }
}
