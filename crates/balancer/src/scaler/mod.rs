//! How many servers services should have: measures their loads, shares them with the fleet, and asks the function
//! of the crate `scaling`. `acting` carries out the crate's plans for services with a webhook or command that
//! starts and stops servers.

mod acting;
mod calls;
mod message;
mod sources;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use admin_api::services::{ScalingCalls, WantedServers};
use decide::{Endpoint, LiveService};
use model::{LimitScope, Moment, Scaling};
use observe::ServiceTotals;
use scaling::{Capacity, Counts, Load, Memory, Terms, Wanted, wanted};

use self::acting::Acting;
use crate::traffic_history::Sources;

/// How often a number is computed. Loads overlap: each covers [`READINGS`] of these times.
const EVERY: Duration = Duration::from_secs(5);
/// A load covers 15 s, the sync period of the Kubernetes autoscaler.
const READINGS: usize = 3;

/// The latest numbers, by service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(Arc<Mutex<BTreeMap<Arc<str>, Number>>>);

/// The number of a service.
#[derive(Clone, Debug)]
struct Number {
    wanted: Wanted,
    /// The calls to the program that starts and stops its servers.
    calls: Option<ScalingCalls>,
}

impl Numbers {
    /// Returns them as the API shows them.
    pub(crate) fn shown(&self) -> HashMap<Arc<str>, WantedServers> {
        let numbers = self.lock();
        let shown = numbers.iter().map(|(name, Number { wanted, calls })| {
            let shown = WantedServers {
                number: wanted.servers,
                reason: wanted.reason.word().to_owned(),
                why: wanted.to_string(),
                calls: calls.clone(),
            };
            (Arc::clone(name), shown)
        });
        shown.collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Number>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Computes the numbers.
pub(crate) struct Scaler {
    sources: Sources,
    numbers: Numbers,
    services: HashMap<Arc<str>, Measured>,
    acting: Acting,
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
    /// The mean limit of the servers at one balancer, as last known.
    limit: Option<f64>,
    memory: Memory,
}

impl Scaler {
    pub(crate) fn new(sources: Sources, numbers: Numbers) -> Scaler {
        Scaler {
            acting: Acting::new(Arc::clone(&sources.control)),
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
            .filter_map(|service| Some((service, service.spec().scaling.clone()?)))
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
        self.acting.retain(&published, |name| names.contains(name), now);
        if scaled.is_empty() {
            self.numbers.lock().clear();
            self.sources.control.loads().set_own(HashMap::new());
        } else if now.since(self.computed_at) + Duration::from_millis(500) >= EVERY {
            self.computed_at = now;
            self.compute(&scaled, now);
        }
        self.act(&scaled, now);
    }

    /// Carries out the plans. The numbers are not locked meanwhile: others read them.
    fn act(&mut self, scaled: &[(&Arc<LiveService>, Scaling)], now: Moment) {
        if scaled.is_empty() {
            return;
        }
        self.acting.take_results(now);
        let has_actions = scaled.iter().any(|(_, scaling)| scaling.action.is_some());
        let sources =
            if has_actions { sources::all(&self.sources.control) } else { sources::Sources::new() };
        for (service, scaling) in scaled {
            let name = service.name();
            let wanted = self.numbers.lock().get(name).map(|number| number.wanted);
            let Some(wanted) = wanted else {
                self.acting.hold(service, now);
                continue;
            };
            let calls = self.acting.act(service, scaling, &wanted, &sources, now);
            if let Some(number) = self.numbers.lock().get_mut(name) {
                number.calls = calls;
            }
        }
    }

    fn compute(&mut self, scaled: &[(&Arc<LiveService>, Scaling)], now: Moment) {
        let totals = self.sources.counters.totals();
        let nothing = ServiceTotals::default();
        let mut own: HashMap<Arc<str>, Load> = HashMap::new();
        for (service, _) in scaled {
            let name = service.name();
            let Some(measured) = self.services.get_mut(name) else { continue };
            let totals = totals.services.get(name).unwrap_or(&nothing);
            let counts = Counts {
                arrivals: totals.asked,
                refusals: totals.unserved,
                completions: totals.worked,
                worked_us: totals.worked_us,
                occupied_us: measured.occupied_us,
                waiting: service.queue_length(),
            };
            if let Some(load) = measured.add(counts, now) {
                own.insert(Arc::clone(name), load);
            }
        }
        let shared = self.sources.control.loads();
        shared.set_own(own.clone());
        let sources = sources::all(&self.sources.control);
        let mut numbers = self.numbers.lock();
        numbers.retain(|name, _| self.services.contains_key(name));
        for (service, scaling) in scaled {
            let name = service.name();
            // Servers that are not known yet would seem to be missing, and those that are wanted would be the least.
            if !sources::has_answered(&service.spec(), sources.get(name)) {
                numbers.remove(name);
                continue;
            }
            let (Some(load), Some(measured)) = (own.get(name), self.services.get_mut(name)) else {
                continue;
            };
            let mut loads = shared.of_others(name, now);
            loads.push(*load);
            let wanted = measured.wanted(service, scaling, &loads, now);
            let before = numbers.get(name).map(|before| before.wanted.servers);
            if before != Some(wanted.servers) {
                tracing::info!(service = %name, servers = wanted.servers, reason = wanted.reason.word(), "wanted servers: {wanted}");
            }
            let calls = numbers.get(name).and_then(|before| before.calls.clone());
            numbers.insert(Arc::clone(name), Number { wanted, calls });
        }
    }
}

impl Measured {
    /// Adds a reading. Returns the load since the oldest one that counts.
    fn add(&mut self, counts: Counts, now: Moment) -> Option<Load> {
        let restarted = |before: &Counts| {
            counts.arrivals < before.arrivals
                || counts.completions < before.completions
                || counts.worked_us < before.worked_us
        };
        // The service was removed and added again.
        if self.readings.back().is_some_and(|(_, before)| restarted(before)) {
            self.readings.clear();
        }
        let first = self.readings.front().copied();
        self.readings.push_back((now, counts));
        if self.readings.len() > READINGS {
            self.readings.pop_front();
        }
        let (at, earlier) = first?;
        counts.since(&earlier, now.since(at))
    }

    /// Computes the number from the loads of all members.
    fn wanted(
        &mut self,
        service: &LiveService,
        scaling: &Scaling,
        loads: &[Load],
        now: Moment,
    ) -> Wanted {
        let (endpoints, spec) = (service.endpoints(), service.spec());
        let ready = || endpoints.all.iter().filter(|endpoint| endpoint.is_ready());
        let limit = limit(&spec, ready()).or_else(|| limit(&spec, endpoints.all.iter()));
        // Without a server, those that come back will be like those that were there.
        self.limit = limit.or(self.limit).filter(|_| has_limits(&spec, &endpoints.all));
        let capacity = match (scaling.in_flight_target, self.limit) {
            (Some(target), _) => Capacity::InFlightTarget(target),
            (None, None) => Capacity::Unknown,
            (None, Some(limit)) => {
                let members = match spec.in_flight_scope {
                    LimitScope::Fleet => 1.0,
                    LimitScope::Balancer => spread(loads),
                };
                Capacity::Limit((limit * members).round() as u32)
            }
        };
        let terms = Terms {
            utilization: scaling.utilization,
            stabilization: scaling.scale_in_after,
            idle: scaling.idle_after,
            ..Terms::new(capacity, scaling.servers_min, scaling.servers_max)
        };
        let servers = u32::try_from(ready().count()).unwrap_or(u32::MAX);
        let load = loads.iter().copied().sum();
        wanted(&load, servers, &terms, &mut self.memory, now.since(Moment::ZERO))
    }
}

/// Returns the mean limit of these servers at one balancer; `None` if there are none.
fn limit<'a>(
    spec: &model::Service,
    endpoints: impl Iterator<Item = &'a Arc<Endpoint>>,
) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for endpoint in endpoints {
        sum += f64::from(endpoint.row.in_flight_max.or(spec.in_flight_max)?);
        count += 1.0;
    }
    if count > 0.0 { Some(sum / count) } else { spec.in_flight_max.map(f64::from) }
}

/// Returns whether all of these servers have a limit.
fn has_limits(spec: &model::Service, endpoints: &[Arc<Endpoint>]) -> bool {
    let has =
        |endpoint: &Arc<Endpoint>| endpoint.row.in_flight_max.or(spec.in_flight_max).is_some();
    endpoints.iter().all(has)
}

/// Returns how many members' limits the load can use, where each has its own: as many as there are members if
/// it is even, and one if all of it comes to one of them.
fn spread(loads: &[Load]) -> f64 {
    let arrivals = || loads.iter().map(|load| load.arrivals);
    let most = arrivals().fold(0.0, f64::max);
    if most > 0.0 { arrivals().sum::<f64>() / most } else { loads.len() as f64 }
}

fn in_flight(endpoints: &[Arc<Endpoint>]) -> u64 {
    endpoints.iter().map(|one| u64::from(one.slots.in_flight())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(arrivals: u64) -> Counts {
        Counts { arrivals, ..Counts::default() }
    }

    fn at(seconds: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_load_covers_the_last_readings() {
        let mut measured = Measured::default();
        assert_eq!(measured.add(counts(10), at(0)), None);
        for (second, arrivals, expected) in
            [(5, 20, 2.0), (10, 20, 1.0), (15, 40, 2.0), (20, 50, 2.0)]
        {
            let load = measured.add(counts(arrivals), at(second)).unwrap();
            assert!((load.arrivals - expected).abs() < 1e-9, "{second}: {load:?}");
        }
        // The counters begin again.
        assert_eq!(measured.add(counts(5), at(25)), None);
        let load = measured.add(counts(10), at(30)).unwrap();
        assert!((load.arrivals - 1.0).abs() < 1e-9, "{load:?}");
    }

    #[test]
    fn members_without_load_add_no_slots() {
        let loads = |arrivals: &[f64]| -> Vec<Load> {
            arrivals.iter().map(|&arrivals| Load { arrivals, ..Load::default() }).collect()
        };
        for (arrivals, expected) in [
            (&[10.0][..], 1.0),
            (&[10.0, 0.0], 1.0),
            (&[10.0, 10.0], 2.0),
            (&[30.0, 10.0, 20.0], 2.0),
            (&[0.0, 0.0], 2.0),
        ] {
            assert!((spread(&loads(arrivals)) - expected).abs() < 1e-9, "{arrivals:?}");
        }
    }

    #[test]
    fn the_defaults_of_the_configuration_are_those_of_the_function() {
        let terms = Terms::new(Capacity::Unknown, 0, 1);
        let text = "[[listener]]\naddress = \"127.0.0.1:1\"\n[[route]]\nservice = \"a\"\n[service.a]\n\
                    in_flight_max = 1\nserver = [{ address = \"127.0.0.1:2\" }]\n\
                    scaling = { servers_max = 9 }\n";
        let Ok(read) = config::check(text, "test.toml", &()) else { panic!("it is valid") };
        let scaling = read.snapshot.services[0].scaling.clone().unwrap();
        assert!((scaling.utilization - terms.utilization).abs() < 1e-12);
        assert_eq!(scaling.scale_in_after, terms.stabilization);
        assert_eq!(scaling.idle_after, terms.idle);
    }
}
