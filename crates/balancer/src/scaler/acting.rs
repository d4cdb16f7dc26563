//! Does what the plans of services say: sends no new requests to servers that leave, and has the webhook or command
//! called. In a fleet, one member does this for a service, and the others follow.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use admin_api::services::ScalingCalls;
use decide::{Endpoint, LiveService, Published};
use model::{Administrative, Moment, Scaling, ScalingAction};
use scaling::Wanted;
use scaling::plan::{Call, LOOK, Listed, Pace, Plan, Step};

use super::calls::Calls;
use super::message::Message;

/// The plans of the services that this process decides about.
pub(super) struct Acting {
    control: Arc<control::Status>,
    /// Started for the first call.
    calls: Option<Calls>,
    plans: HashMap<Arc<str>, Acted>,
}

/// The plan of a service, and what has become of its calls.
struct Acted {
    plan: Plan<SocketAddr>,
    begun: Moment,
    counts: ScalingCalls,
}

impl Acting {
    pub(super) fn new(control: Arc<control::Status>) -> Acting {
        Acting { control, calls: None, plans: HashMap::new() }
    }

    /// Forgets services that need no number any more. Their servers stay.
    pub(super) fn retain(
        &mut self,
        published: &Published,
        is_scaled: impl Fn(&Arc<str>) -> bool,
        now: Moment,
    ) {
        let gone: Vec<Arc<str>> =
            self.plans.keys().filter(|name| !is_scaled(name)).cloned().collect();
        for name in gone {
            self.plans.remove(&name);
            let Some(service) = published.services.iter().find(|one| *one.name() == name) else {
                continue;
            };
            let endpoints = service.endpoints();
            let set: Vec<bool> =
                endpoints.all.iter().map(|one| one.state.set_leaving(false)).collect();
            if set.contains(&true) {
                refresh(service, now);
            }
        }
    }

    /// Takes the results of calls that have ended.
    pub(super) fn take_results(&mut self, now: Moment) {
        let Some(calls) = &self.calls else { return };
        while let Some((service, result)) = calls.next_result() {
            if let Some(acted) = self.plans.get_mut(&service) {
                acted.called(&service, result, now);
            }
        }
    }

    /// Does what is due for a service. Returns its calls, if this process decides about it.
    pub(super) fn act(
        &mut self,
        service: &Arc<LiveService>,
        scaling: &Scaling,
        wanted: &Wanted,
        now: Moment,
    ) -> Option<ScalingCalls> {
        let decided = scaling.action.as_ref().zip(wanted.servers);
        let decided = decided.filter(|_| self.control.leaving().decides(service.name()));
        let Some((action, servers)) = decided else {
            self.plans.remove(service.name());
            self.follow(service, now);
            return None;
        };
        let acted = self.plans.entry(Arc::clone(service.name())).or_insert_with(|| Acted {
            plan: Plan::default(),
            begun: now,
            counts: ScalingCalls::default(),
        });
        let is_looking = now.since(acted.begun) < LOOK;
        let listed = listed(&self.control, service, is_looking, now);
        let step = acted.plan.step(servers, &listed, &pace(action), now.since(Moment::ZERO));
        apply(&self.control, service, &acted.plan, &step, now);
        if let Some(call) = step.call {
            let made = self.call(service, action, call, wanted);
            if let (Err(error), Some(acted)) = (made, self.plans.get_mut(service.name())) {
                acted.called(service.name(), Err(error), now);
            }
        }
        self.plans.get(service.name()).map(|acted| acted.counts.clone())
    }

    /// Does what the member that decides about this service says.
    fn follow(&self, service: &Arc<LiveService>, now: Moment) {
        let (leaving, name) = (self.control.leaving(), service.name());
        let mut is_changed = false;
        for (endpoint, address) in with_address(&service.endpoints().all) {
            let leaves = leaving.decision(name, address, now);
            is_changed |= endpoint.state.set_leaving(leaves);
            if leaves {
                leaving.report(name, address, endpoint.slots.in_flight(), now);
            }
        }
        if is_changed {
            refresh(service, now);
        }
    }

    fn call(
        &mut self,
        service: &Arc<LiveService>,
        action: &Arc<ScalingAction>,
        call: Call<SocketAddr>,
        wanted: &Wanted,
    ) -> Result<(), String> {
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
        let is_made = calls.make(service.name(), action, message);
        is_made.then_some(()).ok_or_else(|| "too many calls are under way".to_owned())
    }
}

impl Acted {
    fn called(&mut self, service: &Arc<str>, result: Result<(), String>, now: Moment) {
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

/// Returns the servers that may be added and removed: not backups, nor those that a source no longer lists, nor those
/// that an operator has taken out. In the beginning, servers leave already because another member had decided so.
fn listed(
    control: &control::Status,
    service: &LiveService,
    is_looking: bool,
    now: Moment,
) -> Vec<Listed<SocketAddr>> {
    let (leaving, name) = (control.leaving(), service.name());
    let mut zones: Vec<Option<Arc<str>>> = Vec::new();
    let endpoints = service.endpoints();
    let mut listed = Vec::with_capacity(endpoints.all.len());
    for (endpoint, address) in with_address(&endpoints.all) {
        let is_out = endpoint.state.administrative() != Administrative::Ready;
        if is_out || endpoint.is_backup() || endpoint.row.is_in_maintenance() {
            endpoint.state.set_leaving(false);
            continue;
        }
        let found = zones.iter().position(|zone| *zone == endpoint.row.zone);
        let zone = found.unwrap_or_else(|| {
            zones.push(endpoint.row.zone.clone());
            zones.len() - 1
        });
        let is_leaving =
            endpoint.state.is_leaving() || (is_looking && leaving.decision(name, address, now));
        let own = u64::from(endpoint.slots.in_flight());
        let others = leaving.in_flight_of_others(name, address, now);
        listed.push(Listed {
            key: address,
            zone,
            is_up: endpoint.state.is_healthy() && endpoint.row.is_ready(),
            is_leaving,
            in_flight: others.map(|others| others + own),
        });
    }
    listed
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
    let mut is_changed = false;
    for (endpoint, address) in with_address(&service.endpoints().all) {
        let leaves = plan.leaves(&address);
        is_changed |= endpoint.state.set_leaving(leaves);
        if leaves {
            leaving.confirm(name, address, now);
        }
    }
    if is_changed {
        refresh(service, now);
    }
}

fn with_address(all: &[Arc<Endpoint>]) -> impl Iterator<Item = (&Arc<Endpoint>, SocketAddr)> {
    all.iter().filter_map(|endpoint| Some((endpoint, endpoint.row.address.ip()?)))
}

/// Lets the next requests see which servers leave.
fn refresh(service: &LiveService, now: Moment) {
    if let Some(tier) = service.refresh(now) {
        tracing::info!(service = %tier.service, from = tier.from.as_str(), to = tier.to.as_str(), why = tier.reason.as_str(), "servers leave or return");
    }
}
