//! The balancer's own counters as facts for the doctor: by server and zone, and requests that ended
//! without a server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use decide::{EndpointView, Published};
use diagnose::facts::{Balancer, BalancerListener, BalancerSample, Known, ServerCounts};
use model::{Cause, Fault};

use crate::certificates_in_force::certificates;

/// The sources of the counters.
pub(crate) struct Sources {
    pub(crate) registry: Arc<decide::Registry>,
    pub(crate) counters: Arc<observe::Registry>,
}

/// The name of 5xx responses among causes.
const STATUS_5XX: &str = "status_5xx";

impl Sources {
    /// Returns the current configured interval between checks.
    pub(super) fn interval(&self) -> Option<Duration> {
        self.registry.current().snapshot.doctor.interval
    }

    /// Fills in the configuration, which may have changed since the last check.
    pub(super) fn fill(&self, balancer: &mut Balancer, namespace_inode: Option<u64>) {
        let published = self.registry.load_full();
        let snapshot = &published.snapshot;
        balancer.zone = snapshot.zone.as_ref().map(ToString::to_string);
        balancer.connections_max = Known::Is(snapshot.connections_max.into());
        balancer.namespace_inode =
            namespace_inode.map_or_else(|| Known::unknown("no namespace was read"), Known::Is);
        // The host's facts are about TCP.
        let listeners = snapshot.listeners.iter().filter_map(|listener| {
            Some(BalancerListener {
                name: listener.name.to_string(),
                address: listener.address.ip()?,
                backlog_asked: listener.backlog,
            })
        });
        balancer.listeners = listeners.collect();
        let now_s = os::clock::wall().as_secs().cast_signed();
        balancer.certificates = certificates(snapshot, now_s);
    }

    /// Returns the counters at this moment.
    pub(super) fn sample(&self, at_ms: u64) -> BalancerSample {
        let published = self.registry.load_full();
        let totals = self.counters.totals();
        let mut causes = BTreeMap::new();
        for &cause in Cause::ALL.iter().filter(|cause| is_no_servers(cause.fault())) {
            let of_cause = totals.listeners.values().map(|one| one.exchanges.of_cause(cause));
            let count: u64 = of_cause.sum();
            if count > 0 {
                causes.insert(cause.name().to_owned(), count);
            }
        }
        let listeners = totals.listeners.values();
        BalancerSample {
            at_ms,
            servers: servers(&published),
            causes,
            connections_accepted: listeners.clone().map(|one| one.connections_accepted).sum(),
            connections_open: listeners.map(observe::ListenerTotals::connections_open).sum(),
        }
    }
}

fn servers(published: &Published) -> Vec<ServerCounts> {
    let now = os::clock::now();
    // Kept for a while, so without spare room.
    let count = published.services.iter().map(|service| service.endpoints().all.len()).sum();
    let mut servers = Vec::with_capacity(count);
    for service in &published.services {
        let view = service.view(now);
        servers.extend(view.endpoints.iter().map(|endpoint| counts(&view.name, endpoint)));
    }
    servers
}

fn is_no_servers(fault: Fault) -> bool {
    !matches!(fault, Fault::None | Fault::Server | Fault::Network)
}

fn counts(service: &str, endpoint: &EndpointView) -> ServerCounts {
    let mut failures: BTreeMap<String, u64> =
        endpoint.failed_by.iter().map(|(cause, count)| (cause.name().to_owned(), *count)).collect();
    if endpoint.answered_5xx > 0 {
        failures.insert(STATUS_5XX.to_owned(), endpoint.answered_5xx);
    }
    let round_trip = endpoint.tcp.round_trip.map(|rtt| rtt.as_micros() as u64);
    ServerCounts {
        service: service.to_owned(),
        address: endpoint.address,
        zone: endpoint.zone.as_ref().map(ToString::to_string),
        attempts: endpoint.requests,
        failures,
        in_flight: endpoint.in_flight.into(),
        connects: Known::Is(endpoint.tcp.dials),
        connects_repeated: Known::Is(endpoint.tcp.dials_repeated),
        syn_retries: endpoint.tcp.syn_retries,
        segments_sent: endpoint.tcp.sent,
        segments_sent_again: endpoint.tcp.sent_again,
        loss_episodes: Known::Is(endpoint.tcp.lossy_samples),
        reordered: endpoint.tcp.reordered,
        rtt_us: round_trip.map_or_else(|| Known::unknown("no connection was sampled"), Known::Is),
    }
}
