//! Applies probe results to servers: each watch is one server of one service, with its tally
//! (`health::shared::tally`) and the state that its health is written to.
//!
//! Watches are matched by service and address when the configuration or the set of servers changes,
//! so that runs of successes and failures survive both.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use decide::{Endpoint, LiveService};
use health::plan::{Consumer, ConsumerId};
use health::shared::tally::{Decided, Tally};
use health::verdict::{Failure, ProbeEvent, ServerLoad};
use model::{Address, Administrative, Check, Health, Moment, ProbeIdentity};

use crate::probe::{Heard, What};

type Key = (Arc<str>, Address);

/// Minimum interval between log lines about probes that this machine cannot send.
const LOCAL_FAILURE_LOG_EVERY: Duration = Duration::from_secs(10);

/// All watches.
#[derive(Default)]
pub(crate) struct Watches {
    local_failure_logged: Option<Moment>,
    by_id: HashMap<ConsumerId, Watch>,
    ids: HashMap<Key, ConsumerId>,
    of_service: HashMap<Arc<str>, Vec<ConsumerId>>,
    ids_given: u64,
}

/// How the consumers of one service have changed.
pub(crate) struct Followed {
    /// All that it had, each with its probe.
    pub(crate) gone: Vec<(Arc<ProbeIdentity>, ConsumerId)>,
    /// All that it has now; those that stay have the same ID.
    pub(crate) new: Vec<Consumer>,
}

struct Watch {
    service: Arc<LiveService>,
    endpoint: Arc<Endpoint>,
    probe: Arc<ProbeIdentity>,
    tally: Tally,
    /// How often the server had been set to maintenance at the last result.
    maintenances: u32,
}

impl Watches {
    /// Applies a changed configuration; returns all consumers for the plan. A server that is no longer
    /// checked becomes unknown again.
    pub(crate) fn follow(&mut self, services: &[Arc<LiveService>], now: Moment) -> Vec<Consumer> {
        let mut before = std::mem::take(&mut self.by_id);
        let ids_before = std::mem::take(&mut self.ids);
        self.of_service.clear();
        let mut consumers = Vec::new();
        for service in services {
            consumers.extend(self.watch(service, &ids_before, &mut before, now));
        }
        consumers
    }

    /// Applies changed servers of one service. The other services stay as they are.
    pub(crate) fn follow_one(&mut self, service: &Arc<LiveService>, now: Moment) -> Followed {
        let ids = self.of_service.remove(service.name()).unwrap_or_default();
        let mut before = HashMap::with_capacity(ids.len());
        let mut ids_before = HashMap::with_capacity(ids.len());
        for id in ids {
            if let Some(watch) = self.by_id.remove(&id) {
                let key = (service.name().clone(), watch.endpoint.row.address);
                self.ids.remove(&key);
                ids_before.insert(key, id);
                before.insert(id, watch);
            }
        }
        let gone = before.iter().map(|(id, watch)| (watch.probe.clone(), *id)).collect();
        let new = self.watch(service, &ids_before, &mut before, now);
        Followed { gone, new }
    }

    /// Watches the servers of a service; returns its consumers. A server that was watched before keeps
    /// its ID and its tally.
    fn watch(
        &mut self,
        service: &Arc<LiveService>,
        ids_before: &HashMap<Key, ConsumerId>,
        before: &mut HashMap<ConsumerId, Watch>,
        now: Moment,
    ) -> Vec<Consumer> {
        let spec = service.spec();
        let endpoints = service.endpoints();
        let Some(check) = &spec.check else {
            forget(service, &endpoints.all, now);
            return Vec::new();
        };
        let check = Arc::new(check.clone());
        let mut consumers = Vec::with_capacity(endpoints.all.len());
        for endpoint in &endpoints.all {
            let Some(probe) = spec.probe(&endpoint.row.name, endpoint.row.address) else {
                continue;
            };
            let probe = Arc::new(probe);
            let key = (service.name().clone(), endpoint.row.address);
            let id = ids_before.get(&key).copied().unwrap_or_else(|| {
                self.ids_given += 1;
                ConsumerId(self.ids_given)
            });
            let before = before.remove(&id);
            let maintenances = before.as_ref().map(|watch| watch.maintenances);
            let maintenances = maintenances.unwrap_or_else(|| endpoint.state.maintenances());
            let tally = carry_over(before, endpoint, &check, &probe);
            self.ids.insert(key, id);
            self.of_service.entry(service.name().clone()).or_default().push(id);
            let (service, endpoint) = (service.clone(), endpoint.clone());
            let consumer = Consumer {
                id,
                service: service.name().clone(),
                check: check.clone(),
                probe: probe.clone(),
            };
            self.by_id.insert(id, Watch { service, endpoint, probe, tally, maintenances });
            consumers.push(consumer);
        }
        consumers
    }

    /// Returns whether this one is to be checked at present: a server in maintenance is not.
    pub(crate) fn wants(&self, id: ConsumerId) -> bool {
        self.by_id.get(&id).is_some_and(Watch::wants)
    }

    /// Returns whether this one needs results of this balancer's own: requests have failed at its server, and only
    /// what is found from here shows that they would succeed.
    pub(crate) fn needs_own(&self, id: ConsumerId) -> bool {
        let state = self.by_id.get(&id).map(|watch| &watch.endpoint.state);
        state.is_some_and(|state| state.ejected_until().is_some())
    }

    /// Passes what happened to a probe to all of its consumers; writes changed health, publishes it to
    /// balancing, and logs it. Returns whether any server went down.
    pub(crate) fn on_heard(&mut self, heard: &Heard, now: Moment) -> bool {
        if let What::Own(ProbeEvent::Done { result: Err(failure), .. }) = heard.what {
            self.log_failure(heard, failure, now);
        }
        let loads = self.loads(heard);
        let mut any_down = false;
        for id in &heard.consumers {
            let Some(watch) = self.by_id.get_mut(id) else { continue };
            if !watch.wants() {
                continue;
            }
            // What comes after a maintenance continues no streak from before it.
            let maintenances = watch.endpoint.state.maintenances();
            if std::mem::replace(&mut watch.maintenances, maintenances) != maintenances {
                watch.tally.forget_results();
            }
            let load = loads.get(&watch.endpoint.row.address).copied().unwrap_or_default();
            let decided = match &heard.what {
                What::Own(event) => watch.tally.on_own(*event, load, &heard.standing),
                What::Other(from, result) => {
                    watch.tally.on_heard(*from, result, load, &heard.standing)
                }
            };
            if let Some(decided) = decided {
                watch.write(&decided, now);
                any_down |= decided.change.to == Health::Down;
            }
        }
        any_down
    }

    fn log_failure(&mut self, heard: &Heard, failure: Failure, now: Moment) {
        let first = heard.consumers.iter().find_map(|id| self.by_id.get(id));
        let Some(server) = first.map(|watch| watch.endpoint.row.address) else {
            return;
        };
        tracing::debug!(%server, %failure, "probe failed");
        let quiet_until = self.local_failure_logged.map(|at| at + LOCAL_FAILURE_LOG_EVERY);
        if failure.is_local() && quiet_until.is_none_or(|until| now >= until) {
            self.local_failure_logged = Some(now);
            tracing::warn!(%server, %failure, "cannot probe: descriptors or ports ran out here");
        }
    }

    /// Returns what each server did while the probe ran. Its requests may come through any service
    /// that names its address, and so may those that fill its limit.
    fn loads(&self, heard: &Heard) -> HashMap<Address, ServerLoad> {
        let mut loads: HashMap<Address, ServerLoad> = HashMap::new();
        for watch in heard.consumers.iter().filter_map(|id| self.by_id.get(id)) {
            let Endpoint { row, state, slots, .. } = &*watch.endpoint;
            let load = loads.entry(row.address).or_default();
            load.at_limit |= slots.max() > 0 && slots.in_flight() >= slots.max();
            load.answered_since_start |= state.last_response() > heard.started;
        }
        loads
    }
}

impl Watch {
    fn wants(&self) -> bool {
        self.endpoint.state.administrative() != Administrative::Maintenance
    }

    fn write(&self, Decided { change, is_own }: &Decided, now: Moment) {
        self.endpoint.state.set_health(change.to, now);
        if change.to == Health::Up {
            // Fresh evidence from here outweighs the failures of its last requests; from elsewhere it does
            // not, since the way from here to the server may be the problem.
            if *is_own {
                self.endpoint.state.readmit(now);
            }
            if change.from == Health::Down {
                // Its idle timeout may have changed with it.
                self.endpoint.slots.learner.restarted(now);
            }
        }
        let tier = self.service.refresh(now);
        let service = self.service.name();
        let server = &self.endpoint.row.name;
        // A server given by address already has it as its name.
        let address = self.endpoint.row.address;
        let address = (**server != *address.to_string()).then(|| tracing::field::display(address));
        let from = change.from.as_str();
        let evidence = &change.evidence;
        let why = if *is_own { "check" } else { "check by the fleet" };
        match (change.from, change.to) {
            (_, Health::Down) => {
                tracing::warn!(%service, %server, address, from, why, %evidence, "server is down");
            }
            // Every healthy server takes this branch once, at startup.
            (Health::Unknown, _) => {
                tracing::debug!(%service, %server, address, from, why, %evidence, "server is up");
            }
            _ => {
                tracing::info!(%service, %server, address, from, why, %evidence, "server is up");
            }
        }
        if let Some(tier) = tier {
            crate::log_tier(&tier);
        }
    }
}

/// Keeps the tally if the same server of the same service was watched before; its state may be a
/// new one (the service was absent for a while), and then that state's health counts.
fn carry_over(
    before: Option<Watch>,
    endpoint: &Endpoint,
    check: &Check,
    probe: &ProbeIdentity,
) -> Tally {
    match before {
        Some(mut watch) if Arc::ptr_eq(&watch.endpoint.state, &endpoint.state) => {
            watch.tally.retune(check, *watch.probe == *probe);
            watch.tally
        }
        _ => Tally::new(check, endpoint.state.health()),
    }
}

fn forget(service: &LiveService, endpoints: &[Arc<Endpoint>], now: Moment) {
    let mut changed = false;
    for endpoint in endpoints {
        changed |= endpoint.state.set_health(Health::Unknown, now) == Health::Down;
    }
    if changed && let Some(tier) = service.refresh(now) {
        crate::log_tier(&tier);
    }
}
