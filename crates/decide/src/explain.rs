//! Explains a server choice: every server of the service, and why each of the others was passed
//! over. Only for requests that ask for it; other requests never run this code.
//!
//! A [`Decision`] is captured just before the choice itself, so that it shows what the choice saw,
//! as far as other workers do not interfere; [`Decision::settle`] then records what was chosen.

use std::sync::Arc;
use std::time::Duration;

use model::{Address, Administrative, Balance, Health, Moment, Standing};

use crate::admission::Ask;
use crate::endpoint::Endpoint;
use crate::endpoints::Endpoints;
use crate::live::LiveService;
use crate::pick::peak_ewma::latency_us;
use crate::zones::{Reason, Tier};

/// Maximum number of servers listed individually; the others are only counted.
pub const SERVERS_MAX: usize = 32;

/// One choice, or a refusal to make one.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The service.
    pub service: Arc<str>,
    /// The tier of its eligible servers.
    pub tier: Tier,
    /// Why this tier applied.
    pub reason: Reason,
    /// Requests that waited before this one.
    pub queue_length: u32,
    /// How the server was chosen; `None`: none was.
    pub by: Option<By>,
    /// The chosen server.
    pub chosen: Option<Address>,
    /// The servers in order of configuration: the first 32, always including the chosen one.
    pub servers: Vec<Considered>,
    /// How many more there are, by why they were passed over.
    pub more: Vec<(Why, u32)>,
    balance: Balance,
    keyed: bool,
    bound: Option<Address>,
    settled: bool,
}

/// A server that was considered.
#[derive(Clone, Debug, PartialEq)]
pub struct Considered {
    /// Its configured name.
    pub name: Arc<str>,
    /// Its address.
    pub address: Address,
    /// Its zone.
    pub zone: Option<Arc<str>>,
    /// Its weight.
    pub weight: u16,
    /// Requests in flight at its address, over all services.
    pub in_flight: u32,
    /// Its concurrency limit; 0: no limit.
    pub in_flight_max: u32,
    /// Time to its response head (peak-sensitive moving average), if known.
    pub latency: Option<Duration>,
    /// Why it was passed over.
    pub why: Why,
}

model::words! {
    /// How a server was chosen.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum By {
        /// Each in turn.
        RoundRobin = "round_robin",
        /// The fewest requests in flight.
        LeastConnections = "least_connections",
        /// The lower product of latency and requests in flight, of two drawn at random.
        PeakEwma = "peak_ewma",
        /// The fewer requests in flight, of two drawn at random.
        Random = "random",
        /// By key.
        Hash = "hash",
        /// The client is bound to it by a cookie.
        Affinity = "affinity",
        /// It was the first with a free slot for a queued request.
        Queue = "queue",
        /// Any server away from where the request had just failed.
        Elsewhere = "elsewhere",
    }
}

impl By {
    fn of(balance: &Balance) -> By {
        match balance {
            Balance::RoundRobin => By::RoundRobin,
            Balance::LeastConnections => By::LeastConnections,
            Balance::PeakEwma => By::PeakEwma,
            Balance::Random => By::Random,
            Balance::Hash(_) => By::Hash,
        }
    }
}

model::words! {
    /// Why a server was passed over: of several reasons the first in this order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Why {
        /// Nothing: it was chosen.
        Chosen = "chosen",
        /// An operator is draining it.
        Draining = "draining",
        /// An operator has put it into maintenance.
        Maintenance = "maintenance",
        /// It is about to be removed: its service needs fewer servers.
        Leaving = "leaving",
        /// The source that lists it reports it in maintenance.
        SourceMaintenance = "source_maintenance",
        /// The source that lists it reports it as failing.
        SourceCritical = "source_critical",
        /// Health checks report it down.
        Down = "down",
        /// Ejected by passive health checking.
        Ejected = "ejected",
        /// Its weight is 0.
        WeightZero = "weight_zero",
        /// Its source no longer lists it, or lists and removes it again and again: it is used like a backup,
        /// after a passing check.
        LastResort = "last_resort",
        /// It is a backup, and the primary servers are enough.
        Backup = "backup",
        /// It is in another zone, and the local zone is enough.
        OtherZone = "other_zone",
        /// This request has failed there already.
        AlreadyTried = "already_tried",
        /// Its concurrency limit is reached.
        Full = "full",
        /// The client is bound to another.
        ClientBound = "client_bound",
        /// It had room, but for requests that had waited longer, or that are bound to it.
        OthersWaited = "others_waited",
        /// Its load relative to its weight was as high as the chosen one's, or higher.
        HigherLoad = "higher_load",
        /// It was another's turn.
        NotItsTurn = "not_its_turn",
        /// It was not drawn, or was the busier of the two that were.
        NotDrawn = "not_drawn",
        /// The request's key belongs to another.
        OtherKey = "other_key",
        /// It was eligible, but no server was chosen.
        NobodyChosen = "nobody_chosen",
    }
}

impl Why {
    /// Returns whether the server was eligible and had room, so that only the choice decided.
    fn leaves_a_choice(self) -> bool {
        match self {
            Why::Chosen
            | Why::ClientBound
            | Why::OthersWaited
            | Why::HigherLoad
            | Why::NotItsTurn
            | Why::NotDrawn
            | Why::OtherKey
            | Why::NobodyChosen => true,
            Why::Draining
            | Why::Maintenance
            | Why::Leaving
            | Why::SourceMaintenance
            | Why::SourceCritical
            | Why::Down
            | Why::Ejected
            | Why::WeightZero
            | Why::LastResort
            | Why::Backup
            | Why::OtherZone
            | Why::AlreadyTried
            | Why::Full => false,
        }
    }
}

/// How the server was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// [`LiveService::admit`] gave one at once.
    AtOnce,
    /// It gave a place in the queue.
    Queue,
    /// [`LiveService::elsewhere`] gave one.
    Elsewhere,
}

impl LiveService {
    /// Returns what a request with these properties finds at `now`.
    pub fn explain(&self, ask: &Ask<'_>, now: Moment) -> Decision {
        let endpoints = self.endpoints();
        let none_untried = !ask.avoid.is_empty() && endpoints.are_all(ask.avoid);
        let avoid = if none_untried { &[] } else { ask.avoid };
        let bound = ask.affinity.and_then(|token| endpoints.by_token(token));
        let mut decision = Decision {
            service: Arc::clone(self.name()),
            tier: endpoints.tier,
            reason: endpoints.reason,
            queue_length: self.queue_length(),
            by: None,
            chosen: None,
            servers: Vec::new(),
            more: Vec::new(),
            balance: self.spec().balance.clone(),
            keyed: ask.key.is_some(),
            bound: bound.map(|endpoint| endpoint.row.address),
            settled: false,
        };
        for (index, endpoint) in endpoints.all.iter().enumerate() {
            let why = against(&endpoints, index, avoid);
            if decision.servers.len() < SERVERS_MAX {
                decision.servers.push(considered(endpoint, why, now));
            } else {
                decision.count_more(why);
            }
        }
        decision
    }
}

impl Decision {
    /// Records the result of the choice: this server, obtained this way; or none.
    pub fn settle(&mut self, winner: Option<&Endpoint>, way: Way, now: Moment) {
        self.settled = true;
        self.chosen = winner.map(|endpoint| endpoint.row.address);
        self.by = winner.map(|endpoint| match way {
            Way::Elsewhere => By::Elsewhere,
            _ if self.bound == Some(endpoint.row.address) => By::Affinity,
            Way::Queue => By::Queue,
            Way::AtOnce => By::of(&self.balance),
        });
        let lost = self.lost_by();
        for why in self.servers.iter_mut().map(|one| &mut one.why) {
            if *why == Why::NobodyChosen {
                *why = lost;
            }
        }
        for (why, _) in &mut self.more {
            if *why == Why::NobodyChosen {
                *why = lost;
            }
        }
        if let Some(endpoint) = winner {
            self.show_chosen(endpoint, lost, now);
        }
    }

    /// Returns whether the choice has been recorded.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Returns how many servers could have been chosen: they were eligible and had room.
    pub fn could_be_chosen(&self) -> usize {
        let listed = self.servers.iter().filter(|server| server.why.leaves_a_choice()).count();
        let more = self.more.iter().filter(|(why, _)| why.leaves_a_choice());
        listed + more.map(|(_, count)| *count as usize).sum::<usize>()
    }

    /// Returns why the other eligible servers were not chosen.
    fn lost_by(&self) -> Why {
        match self.by {
            None => Why::NobodyChosen,
            Some(By::Affinity) => Why::ClientBound,
            Some(By::Queue) => Why::OthersWaited,
            Some(By::RoundRobin) => Why::NotItsTurn,
            Some(By::LeastConnections) => Why::HigherLoad,
            Some(By::Hash) if self.keyed => Why::OtherKey,
            // A request without the hashed part is placed at random.
            Some(By::PeakEwma | By::Random | By::Hash | By::Elsewhere) => Why::NotDrawn,
        }
    }

    fn show_chosen(&mut self, chosen: &Endpoint, lost: Why, now: Moment) {
        let address = chosen.row.address;
        if let Some(shown) = self.servers.iter_mut().find(|one| one.address == address) {
            shown.why = Why::Chosen;
            return;
        }
        // It is one of those that were only counted, most likely as eligible.
        if let Some(hidden) = self.servers.pop() {
            self.count_more(hidden.why);
        }
        if let Some((_, count)) = self.more.iter_mut().find(|(why, _)| *why == lost) {
            *count -= 1;
        }
        self.more.retain(|(_, count)| *count > 0);
        self.servers.push(considered(chosen, Why::Chosen, now));
    }

    fn count_more(&mut self, why: Why) {
        match self.more.iter_mut().find(|(counted, _)| *counted == why) {
            Some((_, count)) => *count += 1,
            None => self.more.push((why, 1)),
        }
    }
}

/// Returns why a server is ruled out before any algorithm runs; [`Why::NobodyChosen`]: it is not.
fn against(endpoints: &Endpoints, index: usize, avoid: &[Address]) -> Why {
    let endpoint = &endpoints.all[index];
    if endpoints.is_eligible_at(index) {
        return if avoid.contains(&endpoint.row.address) {
            Why::AlreadyTried
        } else if endpoint.slots.has_room() {
            Why::NobodyChosen
        } else {
            Why::Full
        };
    }
    let standing = endpoint.row.listing.as_ref().map(|listing| listing.standing);
    match (endpoint.state.administrative(), endpoint.state.health()) {
        (Administrative::Drain, _) => Why::Draining,
        (Administrative::Maintenance, _) => Why::Maintenance,
        _ if endpoint.state.is_leaving() => Why::Leaving,
        _ if standing == Some(Standing::Maintenance) => Why::SourceMaintenance,
        _ if standing == Some(Standing::Critical) => Why::SourceCritical,
        (_, Health::Down) => Why::Down,
        _ if endpoint.state.ejected_until().is_some() => Why::Ejected,
        _ if endpoint.weight() == 0 => Why::WeightZero,
        _ if endpoint.row.is_last_resort() => Why::LastResort,
        _ if endpoint.row.backup => Why::Backup,
        _ => Why::OtherZone,
    }
}

fn considered(endpoint: &Endpoint, why: Why, now: Moment) -> Considered {
    Considered {
        name: Arc::clone(&endpoint.row.name),
        address: endpoint.row.address,
        zone: endpoint.row.zone.clone(),
        weight: endpoint.weight(),
        in_flight: endpoint.slots.in_flight(),
        in_flight_max: endpoint.slots.max(),
        latency: latency_us(&endpoint.state, now).map(|us| Duration::from_micros(us as u64)),
        why,
    }
}
