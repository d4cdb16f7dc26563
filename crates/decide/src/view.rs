//! A snapshot of a service for the admin API: plain values, copied at one moment.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::{
    Address, Administrative, Cause, Health, Listing, Moment, ServerState, ServerTarget,
    ServerVersion, TcpPathTotals,
};

use crate::change::ServerChange;
use crate::live::LiveService;
use crate::pick::peak_ewma::latency_us;
use crate::slow_start;
use crate::zones::{Reason, Tier};

/// A service at one moment.
#[derive(Clone, Debug)]
pub struct ServiceView {
    /// Its name.
    pub name: Arc<str>,
    /// The tier of its eligible servers.
    pub tier: Tier,
    /// Why this tier applies.
    pub reason: Reason,
    /// Number of waiting requests.
    pub queue_length: u32,
    /// Maximum number of waiting requests.
    pub queue_length_max: u32,
    /// Slots granted per second while it was full, as last measured.
    pub drain_rate: f64,
    /// Its servers, in order of configuration.
    pub endpoints: Vec<EndpointView>,
    /// Servers given by a name that currently has no address.
    pub unresolved: Vec<UnresolvedView>,
}

/// A server given by name that has no known address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvedView {
    /// As configured: name and port.
    pub name: Arc<str>,
    /// Its zone.
    pub zone: Option<Arc<str>>,
    /// As configured.
    pub weight_configured: u16,
    /// Used only when the primary servers are not enough.
    pub backup: bool,
}

/// A server of a service at one moment.
#[derive(Clone, Debug)]
pub struct EndpointView {
    /// Its configured name.
    pub name: Arc<str>,
    /// Its address.
    pub address: Address,
    /// Its zone.
    pub zone: Option<Arc<str>>,
    /// The weight in force: set at run time, else as configured.
    pub weight: u16,
    /// As configured.
    pub weight_configured: u16,
    /// The effective part of its weight, 0.1 to 1.0 (slow start).
    pub share: f64,
    /// Used only when the primary servers are not enough.
    pub backup: bool,
    /// Health according to the checks.
    pub health: Health,
    /// Administrative state.
    pub administrative: Administrative,
    /// Whether it is about to be removed because its service needs fewer servers.
    pub leaving: bool,
    /// Remaining time of its ejection; zero: until the next check of ejections.
    pub ejected_for: Option<Duration>,
    /// Requests in flight at its address, over all services.
    pub in_flight: u32,
    /// Its concurrency limit; 0: no limit.
    pub in_flight_max: u32,
    /// Total requests sent to it by this service.
    pub requests: u64,
    /// How many of them failed because of the server or the network.
    pub failures: u64,
    /// Attempts that failed so, by cause; causes without failures are left out.
    pub failed_by: Vec<(Cause, u64)>,
    /// Responses with a status of 500 and above.
    pub answered_5xx: u64,
    /// Time to its response head (peak-sensitive moving average), if known.
    pub latency: Option<Duration>,
    /// TCP statistics of the path to it.
    pub tcp: TcpPathTotals,
    /// The version that it runs, if known.
    pub version: Option<ServerVersion>,
    /// How a source lists it.
    pub listing: Option<Arc<Listing>>,
    /// Whether new requests may go to it; whether they do also depends on its zone and the other servers.
    pub ready: bool,
    /// Whether it receives new requests.
    pub eligible: bool,
    /// Its state as it goes on, for figures that are too large to copy.
    pub state: Arc<ServerState>,
}

impl LiveService {
    /// Returns the service's state at `now`.
    pub fn view(&self, now: Moment) -> ServiceView {
        let endpoints = self.endpoints();
        let spec = self.spec();
        let views = endpoints.all.iter().enumerate().map(|(index, endpoint)| {
            let (row, state) = (&endpoint.row, &endpoint.state);
            EndpointView {
                name: Arc::clone(&row.name),
                address: row.address,
                zone: row.zone.clone(),
                weight: endpoint.weight(),
                weight_configured: row.weight,
                share: slow_start::share(state.up_since(), spec.slow_start, now),
                backup: row.backup,
                health: state.health(),
                administrative: state.administrative(),
                leaving: state.is_leaving(),
                ejected_for: state.ejected_until().map(|until| until.since(now)),
                in_flight: endpoint.slots.in_flight(),
                in_flight_max: endpoint.slots.max(),
                requests: state.requests.load(Relaxed),
                failures: state.failures.load(Relaxed),
                failed_by: state.failed_by.counted(),
                answered_5xx: state.answered_5xx.load(Relaxed),
                latency: latency_us(state, now).map(|us| Duration::from_micros(us as u64)),
                tcp: state.tcp.totals(),
                version: endpoint.version(&spec),
                listing: row.listing.clone(),
                ready: endpoint.is_ready(),
                eligible: endpoints.is_eligible_at(index),
                state: Arc::clone(state),
            }
        });
        let resolved: HashSet<&str> = endpoints.all.iter().map(|one| &*one.row.name).collect();
        let unresolved = spec.servers.iter().filter_map(|server| {
            let name = match &server.target {
                ServerTarget::Name { .. } => server.target.to_string(),
                ServerTarget::Address(_) => return None,
            };
            (!resolved.contains(name.as_str())).then(|| UnresolvedView {
                name: name.into(),
                zone: server.zone.clone(),
                weight_configured: server.weight,
                backup: server.backup,
            })
        });
        ServiceView {
            unresolved: unresolved.collect(),
            name: Arc::clone(self.name()),
            tier: endpoints.tier,
            reason: endpoints.reason,
            queue_length: self.queue_length(),
            queue_length_max: spec.queue.length_max,
            drain_rate: self.drain_rate(now),
            endpoints: views.collect(),
        }
    }

    /// Returns [`LiveService::view`] as it would be if the servers at `addresses` were changed now and
    /// nothing else: health is as it is, although a server in maintenance is not checked.
    pub fn preview(&self, addresses: &[Address], change: ServerChange, now: Moment) -> ServiceView {
        let mut view = self.view(now);
        let (endpoints, decision) = self.decide_with(addresses, change);
        // The view's servers may be those of a moment before.
        for server in &mut view.endpoints {
            let position = endpoints.position(server.address);
            server.eligible = position.is_some_and(|index| decision.eligible[index]);
            if !addresses.contains(&server.address) {
                continue;
            }
            match change {
                ServerChange::State(state) => server.administrative = state,
                ServerChange::Weight(weight) => {
                    server.weight = weight.unwrap_or(server.weight_configured);
                }
            }
        }
        (view.tier, view.reason) = (decision.tier, decision.reason);
        view
    }
}
