//! Carries out the plans of services: sends no new requests to servers that leave, and has the webhook or command
//! called. In a fleet, one member decides about a service, and the others follow.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use admin_api::services::ScalingCalls;
use decide::{Endpoint, LiveService, Published};
use model::{Administrative, Moment, Scaling, ScalingAction, ServerTarget, Service};
use scaling::Wanted;
use scaling::plan::{Call, Group, LOOK, Listed, Pace, Plan, Step};

use super::calls::Calls;
use super::message::Message;
use super::sources::{Sources, answers};

/// The plans of the services that this process decides about.
pub(super) struct Acting {
    control: Arc<control::Status>,
    /// Started for the first call.
    calls: Option<Calls>,
    plans: HashMap<Arc<str>, Acted>,
    /// Services whose servers may leave, here or because another member decided so.
    known: HashSet<Arc<str>>,
}

/// The plan of a service, and what has become of its calls.
struct Acted {
    plan: Plan<SocketAddr>,
    begun: Moment,
    /// The number of the call that has not ended.
    calling: Option<u64>,
    counts: ScalingCalls,
}

impl Acting {
    pub(super) fn new(control: Arc<control::Status>) -> Acting {
        Acting { control, calls: None, plans: HashMap::new(), known: HashSet::new() }
    }

    /// Forgets services that need no number any more. Their servers stay.
    pub(super) fn retain(
        &mut self,
        published: &Published,
        is_scaled: impl Fn(&Arc<str>) -> bool,
        now: Moment,
    ) {
        let gone: Vec<Arc<str>> =
            self.known.iter().filter(|one| !is_scaled(one)).cloned().collect();
        for name in gone {
            self.known.remove(&name);
            self.plans.remove(&name);
            if let Some(service) = published.services.iter().find(|one| *one.name() == name) {
                set_leaving(service, now, |_, _| false);
            }
        }
    }

    /// Takes the results of calls that have ended.
    pub(super) fn take_results(&mut self, now: Moment) {
        let Some(calls) = &mut self.calls else { return };
        while let Some((service, number, result)) = calls.next_result() {
            // The call of an earlier plan says nothing about this one.
            let acted = self.plans.get_mut(&service);
            if let Some(acted) = acted.filter(|acted| acted.calling == Some(number)) {
                acted.called(&service, result, now);
            }
        }
    }

    /// Keeps servers out of use that leave, while there is no number: the process has just started and took them over.
    pub(super) fn hold(&mut self, service: &Arc<LiveService>, now: Moment) {
        self.known.insert(Arc::clone(service.name()));
        for (endpoint, address) in with_address(&service.endpoints().all) {
            if endpoint.state.is_leaving() {
                self.control.leaving().confirm(service.name(), address, now);
            }
        }
    }

    /// Does what is due for a service. Returns its calls, if this process decides about it. `sources`: the states of
    /// all sources of servers.
    pub(super) fn act(
        &mut self,
        service: &Arc<LiveService>,
        scaling: &Scaling,
        wanted: &Wanted,
        sources: &Sources,
        now: Moment,
    ) -> Option<ScalingCalls> {
        let name = service.name();
        self.known.insert(Arc::clone(name));
        let leaving = self.control.leaving();
        let action = scaling.action.as_ref().zip(wanted.servers);
        if action.is_some() {
            leaving.offer(name, now);
        }
        let Some((action, servers)) = action.filter(|_| leaving.decides(name, now)) else {
            self.plans.remove(name);
            self.follow(service, now);
            return None;
        };
        let acted = self.plans.entry(Arc::clone(name)).or_insert_with(|| Acted {
            plan: Plan::default(),
            begun: now,
            calling: None,
            counts: ScalingCalls::default(),
        });
        // A call that an earlier plan has made must end before the next.
        let is_free = acted.calling.is_some()
            || self.calls.as_ref().is_none_or(|calls| !calls.is_calling(name));
        let spec = service.spec();
        let is_looking = now.since(acted.begun) < LOOK;
        let (listed, aside) = listed(&self.control, service, &spec, is_looking, now);
        let group = Group {
            servers: &listed,
            aside,
            is_complete: is_free && answers(&spec, sources.get(name)),
            may_shrink: leaving.may_shrink(),
        };
        let step = acted.plan.step(servers, &group, &pace(action), now.since(Moment::ZERO));
        apply(&self.control, service, &acted.plan, &step, now);
        if let Some(call) = step.call {
            let made = self.call(service, action, call, wanted);
            if let Some(acted) = self.plans.get_mut(name) {
                match made {
                    Ok(number) => acted.calling = Some(number),
                    Err(error) => acted.called(name, Err(error), now),
                }
            }
        }
        self.plans.get(name).map(|acted| acted.counts.clone())
    }

    /// Does what the member that decides about this service says.
    fn follow(&self, service: &Arc<LiveService>, now: Moment) {
        let (leaving, name) = (self.control.leaving(), service.name());
        set_leaving(service, now, |endpoint, address| {
            let leaves = leaving.decision(name, address, now);
            if leaves {
                leaving.report(name, address, endpoint.slots.in_flight(), now);
            }
            leaves
        });
    }

    fn call(
        &mut self,
        service: &Arc<LiveService>,
        action: &Arc<ScalingAction>,
        call: Call<SocketAddr>,
        wanted: &Wanted,
    ) -> Result<u64, String> {
        let calls = match &mut self.calls {
            Some(calls) => calls,
            none => none
                .insert(Calls::start().map_err(|error| format!("cannot start a thread: {error}"))?),
        };
        tracing::info!(service = %service.name(), servers = call.servers, change = call.change.word(), remove = ?call.remove, "scaling: asking for another number of servers");
        let message = Message {
            service: service.name().to_string(),
            call,
            reason: wanted.reason.word(),
            why: wanted.to_string(),
        };
        let made = calls.make(service.name(), action, message);
        made.ok_or_else(|| "too many calls have not ended".to_owned())
    }
}

impl Acted {
    fn called(&mut self, service: &Arc<str>, result: Result<(), String>, now: Moment) {
        self.calling = None;
        self.plan.called(result.is_ok(), now.since(Moment::ZERO));
        match result {
            Ok(()) => {
                self.counts.succeeded += 1;
                self.counts.error = None;
                tracing::info!(%service, servers = self.plan.asked(), "scaling: the number of servers was accepted");
            }
            Err(error) => {
                self.counts.failed += 1;
                tracing::warn!(%service, error, "scaling: the call failed; it is repeated");
                self.counts.error = Some(error);
            }
        }
        self.counts.servers = self.plan.asked();
    }
}

fn pace(action: &ScalingAction) -> Pace {
    let ScalingAction { out_cooldown, in_cooldown, drain_max, .. } = *action;
    Pace { out_cooldown, in_cooldown, drain_max }
}

/// Returns the servers that may be added and removed, and how many more there are that an operator has taken out of
/// use. Backups are neither. In the beginning, servers leave already because another member had decided so.
fn listed(
    control: &control::Status,
    service: &LiveService,
    spec: &Service,
    is_looking: bool,
    now: Moment,
) -> (Vec<Listed<SocketAddr>>, u32) {
    let (leaving, name) = (control.leaving(), service.name());
    let fixed = spec.servers.iter().filter_map(|server| match server.target {
        ServerTarget::Address(address) => Some(address),
        ServerTarget::Name { .. } => None,
    });
    let fixed: HashSet<_> = fixed.collect();
    let mut zones: HashMap<Option<Arc<str>>, usize> = HashMap::new();
    let endpoints = service.endpoints();
    let (mut listed, mut aside) = (Vec::with_capacity(endpoints.all.len()), 0);
    for (endpoint, address) in with_address(&endpoints.all) {
        let (row, state) = (&endpoint.row, &endpoint.state);
        let is_out = state.administrative() != Administrative::Ready || row.is_in_maintenance();
        if is_out || row.backup {
            aside += u32::from(!row.backup);
            continue;
        }
        let next = zones.len();
        let is_leaving = state.is_leaving() || (is_looking && leaving.decision(name, address, now));
        let here = u64::from(endpoint.slots.in_flight());
        let others = || leaving.in_flight_of_others(name, address, now);
        // A server of a fixed list that is down is switched off.
        let is_fixed = !row.is_discovered() && fixed.contains(&row.address);
        listed.push(Listed {
            key: address,
            zone: *zones.entry(row.zone.clone()).or_insert(next),
            is_up: state.is_healthy() && row.is_ready() && !row.is_last_resort(),
            counts: !is_fixed || state.is_healthy(),
            is_gone: row.is_last_resort(),
            is_leaving,
            in_flight_here: here,
            // The others report their requests at servers that leave.
            in_flight: is_leaving.then(others).flatten().map(|others| others + here),
        });
    }
    (listed, aside)
}

/// Applies a step to the servers, here and at the other members.
fn apply(
    control: &control::Status,
    service: &LiveService,
    plan: &Plan<SocketAddr>,
    step: &Step<SocketAddr>,
    now: Moment,
) {
    let (leaving, name) = (control.leaving(), service.name());
    for (servers, leaves) in [(&step.back, false), (&step.leave, true)] {
        for address in servers {
            tracing::info!(service = %name, server = %address, "scaling: {}", if leaves { "a server leaves" } else { "a server stays after all" });
            leaving.decide(name, *address, leaves, now);
        }
    }
    set_leaving(service, now, |_, address| {
        let leaves = plan.leaves(&address);
        if leaves {
            leaving.confirm(name, address, now);
        }
        leaves
    });
}

fn with_address(all: &[Arc<Endpoint>]) -> impl Iterator<Item = (&Arc<Endpoint>, SocketAddr)> {
    all.iter().filter_map(|endpoint| Some((endpoint, endpoint.row.address.ip()?)))
}

/// Sets which servers of a service leave. The next requests see it.
fn set_leaving(service: &LiveService, now: Moment, leaves: impl Fn(&Endpoint, SocketAddr) -> bool) {
    let mut is_changed = false;
    for (endpoint, address) in with_address(&service.endpoints().all) {
        is_changed |= endpoint.state.set_leaving(leaves(endpoint, address));
    }
    if is_changed && let Some(tier) = service.refresh(now) {
        tracing::info!(service = %tier.service, from = tier.from.as_str(), to = tier.to.as_str(), why = tier.reason.as_str(), "servers leave or return");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use decide::Registry;
    use model::ServerState;

    use super::*;

    const TEXT: &str = "[[listener]]\naddress = \"127.0.0.1:1\"\n[[route]]\nservice = \"a\"\n[service.a]\n\
                        in_flight_max = 1\nserver = [{ address = \"10.0.0.1:2\" }, { address = \"10.0.0.2:2\" }]\n\
                        [service.a.scaling]\nservers_max = 9\nscale_in_after = \"0s\"\ncommand = [\"true\"]\n";

    fn at(seconds: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(seconds)
    }

    /// Two servers of a service, and what acts on it.
    fn scene() -> (Registry, Acting) {
        let Ok(read) = config::check(TEXT, "test.toml", &()) else { panic!("it is valid") };
        let registry = Registry::with_seed(1);
        registry.publish(Arc::new(read.snapshot), Moment::ZERO);
        (registry, Acting::new(Arc::default()))
    }

    fn act(registry: &Registry, acting: &mut Acting, servers: u32, second: u64) {
        let published = registry.load_full();
        let service = &published.services[0];
        let scaling = service.spec().scaling.clone().unwrap();
        let load = scaling::Load::default();
        let terms = scaling::Terms::new(scaling::Capacity::Limit(1), servers, servers);
        let mut memory = scaling::Memory::default();
        let wanted = scaling::wanted(&load, 2, &terms, &mut memory, Duration::ZERO);
        assert_eq!(wanted.servers, Some(servers));
        acting.act(service, &scaling, &wanted, &Sources::new(), at(second));
    }

    fn leaving(registry: &Registry) -> Vec<bool> {
        let published = registry.load_full();
        let endpoints = published.services[0].endpoints();
        endpoints.all.iter().map(|one| one.state.is_leaving()).collect()
    }

    #[test]
    fn a_server_that_leaves_gets_requests_again_when_nothing_is_scaled() {
        let (registry, mut acting) = scene();
        act(&registry, &mut acting, 2, 0);
        act(&registry, &mut acting, 1, 31);
        assert_eq!(leaving(&registry), [true, false]);
        assert_eq!(registry.load_full().services[0].endpoints().eligible.len(), 1);
        let published = registry.load_full();
        acting.retain(&published, |_| true, at(32));
        assert_eq!(leaving(&registry), [true, false]);
        acting.retain(&published, |_| false, at(32));
        assert_eq!(leaving(&registry), [false, false]);
        assert_eq!(registry.load_full().services[0].endpoints().eligible.len(), 2);
    }

    #[test]
    fn servers_that_are_out_of_use_are_not_chosen() {
        let (registry, mut acting) = scene();
        let state = |index: usize| -> Arc<ServerState> {
            Arc::clone(&registry.load_full().services[0].endpoints().all[index].state)
        };
        act(&registry, &mut acting, 2, 0);
        state(0).set_administrative(Administrative::Drain);
        act(&registry, &mut acting, 1, 31);
        assert_eq!(leaving(&registry), [false, false]);
        let service = Arc::clone(&registry.load_full().services[0]);
        let (listed, aside) = listed(&acting.control, &service, &service.spec(), false, at(32));
        assert_eq!((listed.len(), aside), (1, 1));
        // One of a fixed list that is down is switched off.
        state(1).set_health(model::Health::Down, at(33));
        let (listed, _) = super::listed(&acting.control, &service, &service.spec(), false, at(33));
        assert!(!listed[0].counts && !listed[0].is_up);
    }
}
