//! How many servers services should have: measures their loads, shares them with the fleet, and asks the function
//! of the crate `scaling`.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::traffic_history::Sources;
use admin_api::services::WantedServers;
use control::Loads;
use decide::{Endpoint, LiveService};
use model::{Cause, LimitScope, Moment, Scaling};
use observe::ServiceTotals;
use scaling::{Capacity, Counts, Load, Memory, Terms, Wanted, wanted};

/// How often a number is computed. Loads overlap: each covers [`READINGS`] of these times.
const EVERY: Duration = Duration::from_secs(5);
/// A load covers 15 s, the sync period of the Kubernetes autoscaler.
const READINGS: usize = 3;

/// The latest numbers, by service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(Arc<Mutex<BTreeMap<Arc<str>, Wanted>>>);

impl Numbers {
    /// Returns them as the API shows them.
    pub(crate) fn shown(&self) -> HashMap<Arc<str>, WantedServers> {
        let numbers = self.lock();
        let shown = numbers.iter().map(|(name, wanted)| {
            let shown = WantedServers {
                number: wanted.servers,
                reason: wanted.reason.word().to_owned(),
                why: wanted.to_string(),
            };
            (Arc::clone(name), shown)
        });
        shown.collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Wanted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Computes the numbers.
pub(crate) struct Scaler {
    sources: Sources,
    numbers: Numbers,
    services: HashMap<Arc<str>, Measured>,
    looked_at: Moment,
    computed_at: Moment,
}

/// What is known of a service.
#[derive(Debug, Default)]
struct Measured {
    /// The time for which slots were occupied, in microseconds.
    occupied_us: u64,
    /// The latest readings, the oldest first.
    readings: VecDeque<(Moment, Counts)>,
    memory: Memory,
}

impl Scaler {
    pub(crate) fn new(sources: Sources, numbers: Numbers) -> Scaler {
        Scaler {
            sources,
            numbers,
            services: HashMap::new(),
            looked_at: Moment::ZERO,
            computed_at: Moment::ZERO,
        }
    }

    /// Looks at the slots, and computes the numbers if it is time. Call it about once a second.
    pub(crate) fn look(&mut self) {
        let now = os::clock::now();
        let published = self.sources.registry.load_full();
        let scaled: Vec<(&Arc<LiveService>, Scaling)> = published
            .services
            .iter()
            .filter_map(|service| Some((service, service.spec().scaling?)))
            .collect();
        let names: HashSet<&Arc<str>> = scaled.iter().map(|(service, _)| service.name()).collect();
        self.services.retain(|name, _| names.contains(name));
        let since = now.since(self.looked_at);
        self.looked_at = now;
        for (service, _) in &scaled {
            let in_flight = in_flight(&service.endpoints().all);
            match self.services.get_mut(service.name()) {
                Some(measured) => {
                    let us = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
                    let occupied = us.saturating_mul(in_flight);
                    measured.occupied_us = measured.occupied_us.saturating_add(occupied);
                }
                None => {
                    self.services.insert(Arc::clone(service.name()), Measured::default());
                }
            }
        }
        if scaled.is_empty() {
            self.numbers.lock().clear();
            self.sources.control.loads().set_own(HashMap::new());
        } else if now.since(self.computed_at) + Duration::from_millis(500) >= EVERY {
            self.computed_at = now;
            self.compute(&scaled, now);
        }
    }

    fn compute(&mut self, scaled: &[(&Arc<LiveService>, Scaling)], now: Moment) {
        let totals = self.sources.counters.totals();
        let nothing = ServiceTotals::default();
        let mut loads: HashMap<Arc<str>, Load> = HashMap::new();
        for (service, _) in scaled {
            let Some(measured) = self.services.get_mut(service.name()) else { continue };
            let totals = totals.services.get(service.name()).unwrap_or(&nothing);
            if let Some(load) = measured.read(service, totals, now) {
                loads.insert(Arc::clone(service.name()), load);
            }
        }
        let shared = self.sources.control.loads();
        shared.set_own(loads.clone());
        let mut numbers = BTreeMap::new();
        for (service, scaling) in scaled {
            let name = service.name();
            let (Some(load), Some(measured)) = (loads.get(name), self.services.get_mut(name))
            else {
                continue;
            };
            let wanted = measured.wanted(service, scaling, *load, shared, now);
            numbers.insert(Arc::clone(name), wanted);
        }
        let mut shown = self.numbers.lock();
        for (name, wanted) in &numbers {
            let before = shown.get(name).map(|before| before.servers);
            if before != Some(wanted.servers) {
                tracing::info!(service = %name, servers = wanted.servers, reason = wanted.reason.word(), "wanted servers: {wanted}");
            }
        }
        *shown = numbers;
    }
}

impl Measured {
    /// Reads the counters. Returns the load since the oldest reading that counts.
    fn read(&mut self, service: &LiveService, totals: &ServiceTotals, now: Moment) -> Option<Load> {
        let endpoints = service.endpoints();
        let mut counts = counts(totals, in_flight(&endpoints.all), service.queue_length());
        counts.occupied_us = self.occupied_us;
        if let Some((_, before)) = self.readings.back() {
            // A request that has just ended may be in neither of the two numbers.
            counts.arrivals = counts.arrivals.max(before.arrivals);
            if counts.completions < before.completions {
                // The counters began again.
                self.readings.clear();
            }
        }
        let first = self.readings.front().copied();
        self.readings.push_back((now, counts));
        if self.readings.len() > READINGS {
            self.readings.pop_front();
        }
        let (at, earlier) = first?;
        counts.since(&earlier, now.since(at))
    }

    fn wanted(
        &mut self,
        service: &LiveService,
        scaling: &Scaling,
        own: Load,
        loads: &Loads,
        now: Moment,
    ) -> Wanted {
        let others = loads.of_others(service.name(), now);
        let members = 1 + u32::try_from(others.len()).unwrap_or(u32::MAX - 1);
        let load = others.into_iter().chain([own]).sum();
        let endpoints = service.endpoints();
        let ready: Vec<&Arc<Endpoint>> =
            endpoints.all.iter().filter(|endpoint| endpoint.is_ready()).collect();
        let servers = u32::try_from(ready.len()).unwrap_or(u32::MAX);
        let capacity = match scaling.in_flight_target {
            Some(target) => Capacity::InFlightTarget(target),
            None => capacity(&service.spec(), &ready, members),
        };
        let terms = Terms {
            utilization: scaling.utilization,
            stabilization: scaling.scale_in_after,
            idle: scaling.idle_after,
            ..Terms::new(capacity, scaling.servers_min, scaling.servers_max)
        };
        wanted(&load, servers, &terms, &mut self.memory, now.since(Moment::ZERO))
    }
}

/// Returns what one server can do at once: the mean of the servers' limits. Each of the fleet's members has its own
/// limit, unless they share it.
fn capacity(spec: &model::Service, ready: &[&Arc<Endpoint>], members: u32) -> Capacity {
    let limit = |endpoint: &&Arc<Endpoint>| endpoint.row.in_flight_max.or(spec.in_flight_max);
    let limits: Option<Vec<u32>> = match ready {
        [] => spec.in_flight_max.map(|max| vec![max]),
        ready => ready.iter().map(limit).collect(),
    };
    let Some(limits) = limits else { return Capacity::Unknown };
    let sum: u64 = limits.iter().copied().map(u64::from).sum();
    let mean = sum.div_ceil(limits.len().max(1) as u64);
    let each = match spec.in_flight_scope {
        LimitScope::Fleet => 1,
        LimitScope::Balancer => members,
    };
    Capacity::Limit(u32::try_from(mean).unwrap_or(u32::MAX).saturating_mul(each))
}

fn in_flight(endpoints: &[Arc<Endpoint>]) -> u64 {
    endpoints.iter().map(|one| u64::from(one.slots.in_flight())).sum()
}

fn counts(totals: &ServiceTotals, in_flight: u64, waiting: u32) -> Counts {
    let exchanges = &totals.exchanges;
    let refused = [
        Cause::QueueFull,
        Cause::QueueWaitExceeded,
        Cause::DestinationUnavailable,
        Cause::DnsError,
    ];
    let ended = exchanges.sum() - exchanges.of_cause(Cause::Maintenance);
    Counts {
        arrivals: ended + in_flight + u64::from(waiting),
        refusals: refused.into_iter().map(|cause| exchanges.of_cause(cause)).sum(),
        completions: totals.worked,
        worked_us: totals.worked_us,
        occupied_us: 0,
        waiting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_the_configuration_are_those_of_the_function() {
        let terms = Terms::new(Capacity::Unknown, 0, 1);
        let text = "[[listener]]\naddress = \"127.0.0.1:1\"\n[[route]]\nservice = \"a\"\n[service.a]\n\
                    in_flight_max = 1\nserver = [{ address = \"127.0.0.1:2\" }]\n\
                    scaling = { servers_max = 9 }\n";
        let Ok(read) = config::check(text, "test.toml", &()) else { panic!("it is valid") };
        let scaling = read.snapshot.services[0].scaling.unwrap();
        assert!((scaling.utilization - terms.utilization).abs() < 1e-12);
        assert_eq!(scaling.scale_in_after, terms.stabilization);
        assert_eq!(scaling.idle_after, terms.idle);
    }
}
