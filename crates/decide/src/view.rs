//! A service as the admin API shows it: plain values, copied at one moment.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::{Administrative, Cause, Health, Moment, ServerTarget, TcpPathTotals};

use crate::live::LiveService;
use crate::pick::peak_ewma::latency_us;
use crate::slow_start;
use crate::zones::{Reason, Tier};

/// A service at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceView {
    /// Its name.
    pub name: Arc<str>,
    /// How far out its eligible servers reach.
    pub tier: Tier,
    /// Why.
    pub reason: Reason,
    /// Requests that wait.
    pub queue_length: u32,
    /// Requests that may wait.
    pub queue_length_max: u32,
    /// Slots handed out per second while it was full, as last measured.
    pub drain_rate: f64,
    /// Its servers, in order of configuration.
    pub endpoints: Vec<EndpointView>,
    /// Servers given by a name that has no address at present.
    pub unresolved: Vec<UnresolvedView>,
}

/// A server that is given by name, while no address of it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvedView {
    /// As configured: name and port.
    pub name: Arc<str>,
    /// Where it stands.
    pub zone: Option<Arc<str>>,
    /// As configured.
    pub weight_configured: u16,
    /// Used only when the others are not enough.
    pub backup: bool,
}

/// A server of a service at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointView {
    /// As a person named it.
    pub name: Arc<str>,
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it stands.
    pub zone: Option<Arc<str>>,
    /// In force: what a person set at run time, else what was configured.
    pub weight: u16,
    /// As configured.
    pub weight_configured: u16,
    /// The part of its weight that it takes, 0.1 to 1.0 (slow start).
    pub share: f64,
    /// Used only when the others are not enough.
    pub backup: bool,
    /// What checks say.
    pub health: Health,
    /// What a person says.
    pub administrative: Administrative,
    /// How much longer passive health keeps it out; zero: until it is next looked at.
    pub ejected_for: Option<Duration>,
    /// Requests at its address now, of all services.
    pub in_flight: u32,
    /// How many there may be; 0: no limit.
    pub in_flight_max: u32,
    /// Requests given to it by this service, ever.
    pub requests: u64,
    /// Those of them that failed by its or the network's fault.
    pub failures: u64,
    /// Attempts that failed so, by cause; those that did not fail so are left out.
    pub failed_by: Vec<(Cause, u64)>,
    /// Responses with a status of 500 and above.
    pub answered_5xx: u64,
    /// Time to its response head (peak-sensitive moving average), if known.
    pub latency: Option<Duration>,
    /// What TCP says of the way to it.
    pub tcp: TcpPathTotals,
    /// Whether new work goes to it.
    pub eligible: bool,
}

impl LiveService {
    /// The service as it is at `now`.
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
                ejected_for: state.ejected_until().map(|until| until.since(now)),
                in_flight: endpoint.slots.in_flight(),
                in_flight_max: endpoint.slots.max(),
                requests: state.requests.load(Relaxed),
                failures: state.failures.load(Relaxed),
                failed_by: state.failed_by.counted(),
                answered_5xx: state.answered_5xx.load(Relaxed),
                latency: latency_us(state, now).map(|us| Duration::from_micros(us as u64)),
                tcp: state.tcp.totals(),
                eligible: endpoints.is_eligible_at(index),
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
}
