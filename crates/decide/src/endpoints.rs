//! A service's servers at one moment: all of them, which are eligible and why, and the balancing
//! algorithm over those. Immutable; recomputed when something changes, read through one pointer on
//! every request.

use std::sync::Arc;

use model::{Address, Moment, Service};

use crate::change::ServerChange;
use crate::endpoint::Endpoint;
use crate::pick::peak_ewma::latency_us;
use crate::pick::{Candidate, Picker, Servers, Turn, random};
use crate::slot::Slot;
use crate::slow_start;
use crate::weights::Draw;
use crate::zones::{self, Decision, Member, Reason, Tier};

/// How often an algorithm chooses again after another worker took the slot it had chosen; after
/// that any free slot will do.
const PICKS_MAX: u32 = 4;

/// Weights are scaled to thousandths, for the fractions of slow start.
const WEIGHT_UNIT: f64 = 1_000.0;

/// A service's servers at one moment.
#[derive(Debug)]
pub struct Endpoints {
    /// All, in order of configuration.
    pub all: Vec<Arc<Endpoint>>,
    /// Those that receive new requests, as ascending indices into `all`.
    pub eligible: Vec<u32>,
    /// Which priority level and zones the eligible ones come from.
    pub tier: Tier,
    /// Why this tier applies.
    pub reason: Reason,
    /// When their shares change next on their own (slow start), if they do.
    pub refresh_due: Option<Moment>,
    /// Chooses an index into `eligible`.
    picker: Picker,
    /// Draws one by weight alone, for trials.
    draw: Draw,
    by_address: Vec<(Address, u32)>,
    /// Index by token: those in affinity cookies, and those in sessions of routes, which cookies of the previous
    /// release contain, too.
    by_token: [Vec<(u64, u32)>; 2],
}

impl Endpoints {
    /// Computes the eligible servers; `before` is the previous tier.
    pub(crate) fn new(
        all: Vec<Arc<Endpoint>>,
        spec: &Service,
        zone: Option<&str>,
        before: Tier,
        now: Moment,
    ) -> Endpoints {
        let members: Vec<Member> = all.iter().map(|endpoint| member(endpoint, zone)).collect();
        let decision =
            zones::decide(&members, zone.is_some(), &spec.zones, spec.when_all_down, before);
        let eligible: Vec<u32> =
            (0..all.len() as u32).filter(|&index| decision.eligible[index as usize]).collect();
        let chosen = || eligible.iter().map(|&index| &all[index as usize]);
        let candidates: Vec<Candidate> = chosen()
            .map(|endpoint| Candidate {
                token: endpoint.token,
                weight: weight(endpoint, spec, now),
            })
            .collect();
        let refresh_due = chosen()
            .filter_map(|one| slow_start::next_step(one.state.up_since(), spec.slow_start, now))
            .min();
        Endpoints {
            picker: Picker::new(&spec.balance, &candidates),
            draw: Draw::new(&candidates.iter().map(|one| one.weight).collect::<Vec<_>>()),
            by_address: index(&all, |endpoint| endpoint.row.address),
            by_token: [
                index(&all, |endpoint| endpoint.affinity_token),
                index(&all, |endpoint| endpoint.token),
            ],
            tier: decision.tier,
            reason: decision.reason,
            refresh_due,
            eligible,
            all,
        }
    }

    /// Decides which servers would be eligible if those at `addresses` were changed.
    pub(crate) fn decide_with(
        &self,
        addresses: &[Address],
        change: ServerChange,
        spec: &Service,
        zone: Option<&str>,
    ) -> Decision {
        let members = self.all.iter().map(|endpoint| {
            let member = member(endpoint, zone);
            let is_changed = addresses.contains(&endpoint.row.address);
            if is_changed { change.of(member, endpoint) } else { member }
        });
        let members: Vec<Member> = members.collect();
        zones::decide(&members, zone.is_some(), &spec.zones, spec.when_all_down, self.tier)
    }

    /// Returns whether random choice draws from the same servers, in the same proportions, as
    /// `other`.
    pub(crate) fn draws_like(&self, other: &Endpoints) -> bool {
        let addresses = |endpoints: &Endpoints| -> Vec<Address> {
            endpoints.eligible().map(|endpoint| endpoint.row.address).collect()
        };
        self.draw == other.draw && addresses(self) == addresses(other)
    }

    /// Returns the server at `address`.
    pub fn by_address(&self, address: Address) -> Option<&Arc<Endpoint>> {
        self.position(address).map(|index| &self.all[index])
    }

    /// Returns whether new requests may go to the server at `address`.
    pub fn is_eligible(&self, address: Address) -> bool {
        self.position(address).is_some_and(|index| self.is_eligible_at(index))
    }

    pub(crate) fn is_eligible_at(&self, index: usize) -> bool {
        self.eligible_place(index).is_some()
    }

    /// Returns the place of a server among those that are eligible.
    pub(crate) fn eligible_place(&self, index: usize) -> Option<usize> {
        self.eligible.binary_search(&(index as u32)).ok()
    }

    pub(crate) fn position(&self, address: Address) -> Option<usize> {
        let found = self.by_address.binary_search_by_key(&address, |entry| entry.0).ok()?;
        Some(self.by_address[found].1 as usize)
    }

    /// Returns the server that an affinity cookie or a session names, if it is ready. Its tier and weight do not
    /// matter: a client bound to a server stays with it.
    pub fn by_token(&self, token: u64) -> Option<&Arc<Endpoint>> {
        let found = self.by_token.iter().find_map(|tokens| {
            let found = tokens.binary_search_by_key(&token, |entry| entry.0).ok()?;
            Some(tokens[found].1)
        });
        let endpoint = &self.all[found? as usize];
        endpoint.is_ready().then_some(endpoint)
    }

    /// Returns whether every eligible server is one of these.
    pub(crate) fn are_all(&self, addresses: &[Address]) -> bool {
        self.eligible().all(|endpoint| addresses.contains(&endpoint.row.address))
    }

    /// Returns the eligible servers.
    pub fn eligible(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.eligible.iter().map(|&index| &self.all[index as usize])
    }

    /// Chooses an eligible server that has room and is not in `avoid`, and takes a slot.
    pub(crate) fn take(
        &self,
        avoid: &[Address],
        order: Order<'_>,
        rng: &mut fastrand::Rng,
        now: Moment,
    ) -> Option<Slot> {
        let open = Open { endpoints: self, avoid, now };
        let drawn = match order {
            Order::Algorithm(_, key) => key.is_some(),
            // When some of them are full, load determines the choice.
            Order::Random => (0..self.eligible.len()).all(|server| open.may_take(server)),
        };
        for _ in 0..PICKS_MAX {
            let chosen = self.pick(&open, order, rng)?;
            if let Some(slot) = Slot::take(open.endpoint(chosen)) {
                return Some(slot.drawn(drawn));
            }
        }
        (0..self.eligible.len())
            .filter(|&chosen| open.may_take(chosen))
            .find_map(|chosen| Slot::take(open.endpoint(chosen)))
    }

    /// Chooses as [`Endpoints::take`] does, among all eligible servers, without taking a slot.
    pub(crate) fn would_take(
        &self,
        order: Order<'_>,
        rng: &mut fastrand::Rng,
        now: Moment,
    ) -> Option<&Arc<Endpoint>> {
        let open = Open { endpoints: self, avoid: &[], now };
        self.pick(&open, order, rng).map(|chosen| open.endpoint(chosen))
    }

    fn pick(&self, open: &Open<'_>, order: Order<'_>, rng: &mut fastrand::Rng) -> Option<usize> {
        match order {
            Order::Algorithm(turn, key) => self.picker.pick(open, turn, key, rng),
            Order::Random => random::by_weight(&self.draw, open, rng),
        }
    }
}

/// How the next server is chosen.
#[derive(Clone, Copy)]
pub(crate) enum Order<'a> {
    /// By the service's algorithm, with its turn and the request's key.
    Algorithm(&'a Turn, Option<u64>),
    /// At random, whatever the algorithm, so that clients cannot predict the server.
    Random,
}

/// The eligible servers as an algorithm sees them for one request.
struct Open<'a> {
    endpoints: &'a Endpoints,
    avoid: &'a [Address],
    now: Moment,
}

impl<'a> Open<'a> {
    fn endpoint(&self, chosen: usize) -> &'a Arc<Endpoint> {
        &self.endpoints.all[self.endpoints.eligible[chosen] as usize]
    }
}

impl Servers for Open<'_> {
    fn may_take(&self, server: usize) -> bool {
        let endpoint = self.endpoint(server);
        endpoint.slots.has_room() && !self.avoid.contains(&endpoint.row.address)
    }
    fn in_flight(&self, server: usize) -> u32 {
        self.endpoint(server).slots.in_flight()
    }
    fn latency_us(&self, server: usize) -> Option<f64> {
        latency_us(&self.endpoint(server).state, self.now)
    }
}

fn member(endpoint: &Endpoint, zone: Option<&str>) -> Member {
    let own = match (zone, endpoint.row.zone.as_deref()) {
        (Some(zone), Some(its_zone)) => zone == its_zone,
        _ => true,
    };
    Member {
        own,
        backup: endpoint.is_backup(),
        ready: endpoint.is_ready(),
        set_aside: endpoint.is_set_aside(),
        // One that is about to be removed is not missing: the others are enough.
        weight: if endpoint.state.is_leaving() { 0 } else { endpoint.weight() },
    }
}

fn weight(endpoint: &Endpoint, spec: &Service, now: Moment) -> u32 {
    let share = slow_start::share(endpoint.state.up_since(), spec.slow_start, now);
    ((f64::from(endpoint.weight()) * WEIGHT_UNIT * share) as u32).max(1)
}

fn index<K: Ord>(all: &[Arc<Endpoint>], key: impl Fn(&Endpoint) -> K) -> Vec<(K, u32)> {
    let mut index: Vec<_> = all.iter().zip(0..).map(|(one, i)| (key(one), i)).collect();
    index.sort_unstable();
    index
}
