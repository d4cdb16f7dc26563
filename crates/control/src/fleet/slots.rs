//! The servers' slots that the fleet shares (`in_flight_scope = "fleet"`): what the workers need, and what the
//! crate `lend` decides.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use decide::{LiveService, Registry, hash_key};
use fleet::StartId;
use lend::{Lending, MemberAt, ServerLimit, Usage};
use model::{Address, LimitScope, Moment, ServiceTimeouts};

/// How long requests may take to a server that no configured service names, if it is not known from before.
const REQUEST_MAX: Duration = Duration::from_hours(1);

/// How long a request that was refused because no slot was free counts as one that waits.
const REFUSED_COUNTS: Duration = Duration::from_secs(1);

/// The longest pause between two turns: less than the time that a lender waits after a lease.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// The least time between two turns, so that many events cost one.
const PAUSE: Duration = Duration::from_millis(1);

/// The least time between two looks at which servers there are.
const PAUSE_FOLLOW: Duration = Duration::from_millis(5);

/// The slots that this member shares with the others.
#[derive(Debug)]
pub(super) struct SharedSlots {
    registry: Arc<Registry>,
    lending: Lending,
    servers: Vec<Server>,
    /// When the next turn may be: turns take at most a fifth of the loop's time.
    turn_from: Moment,
    /// The same for following the servers.
    follow_from: Moment,
}

/// One server's slots, as the workers use them.
#[derive(Debug)]
struct Server {
    slots: Arc<decide::Slots>,
    key: u64,
    /// How long its requests may take.
    request_max: Duration,
    refused: Refused,
}

/// Requests that were refused lately since no slot was free.
#[derive(Debug)]
struct Refused {
    /// All of them so far, as last seen.
    all: u64,
    /// How many in the present period, and in the one before.
    counts: (u32, u32),
    /// When the present period began.
    since: Moment,
}

impl Refused {
    /// Returns how many count now, with those that are new since the last look.
    fn count(&mut self, all: u64, now: Moment) -> u32 {
        let new = u32::try_from(all.saturating_sub(self.all)).unwrap_or(u32::MAX);
        self.all = all;
        let time = now.since(self.since);
        if time >= REFUSED_COUNTS {
            let before = if time < 2 * REFUSED_COUNTS { self.counts.0 } else { 0 };
            (self.counts, self.since) = ((0, before), now);
        }
        self.counts.0 = self.counts.0.saturating_add(new);
        self.counts.0.saturating_add(self.counts.1)
    }
}

/// What this member has of the servers' slots, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotsState {
    /// Servers whose limit the fleet shares.
    pub servers: usize,
    /// The members agree on their shares.
    pub is_settled: bool,
    /// Members that have shares and do not answer.
    pub missing: Vec<SocketAddr>,
    /// The slots that belong to this member.
    pub share: u64,
    /// How many of these are lent to others.
    pub lent: u64,
    /// How many are borrowed from others.
    pub borrowed: u64,
}

impl SharedSlots {
    pub(super) fn new(registry: Arc<Registry>, own: &fleet::Member, now: Moment) -> SharedSlots {
        let lending = Lending::new(member_at(own), now);
        SharedSlots {
            registry,
            lending,
            servers: Vec::new(),
            turn_from: Moment::ZERO,
            follow_from: Moment::ZERO,
        }
    }

    pub(super) fn set_listed(&mut self, listed: &[SocketAddr], now: Moment) {
        self.lending.set_listed(listed.iter().copied().collect(), now);
    }

    pub(super) fn set_live<'a>(
        &mut self,
        live: impl Iterator<Item = &'a fleet::Member>,
        now: Moment,
    ) {
        let live: Vec<MemberAt> = live.map(member_at).collect();
        self.lending.set_live(&live, now);
    }

    /// Returns when the servers may be followed again.
    pub(super) fn follow_due(&self) -> Moment {
        self.follow_from
    }

    /// Follows the servers in use: those that are configured, and those that still have requests.
    pub(super) fn follow(&mut self, services: &[Arc<LiveService>], now: Moment) {
        let shared = services.iter().filter(|one| one.spec().in_flight_scope == LimitScope::Fleet);
        let shared: Vec<&Arc<LiveService>> = shared.collect();
        if shared.is_empty() && self.servers.is_empty() {
            return;
        }
        let mut longest: HashMap<Address, Duration> = HashMap::new();
        for service in shared {
            let takes = request_max(&service.spec().timeouts);
            for endpoint in &service.endpoints().all {
                let known = longest.entry(endpoint.row.address).or_default();
                *known = takes.max(*known);
            }
        }
        let in_use = self.registry.shared_slots();
        let mut before: HashMap<Address, Server> =
            self.servers.drain(..).map(|one| (one.slots.address(), one)).collect();
        let (mut limits, mut servers) = (Vec::new(), Vec::new());
        for slots in in_use {
            let known = before.remove(&slots.address());
            let known = known.filter(|known| Arc::ptr_eq(&known.slots, &slots));
            let mut server = known.unwrap_or_else(|| Server::new(slots));
            let configured = longest.get(&server.slots.address());
            let max = if configured.is_some() { server.slots.max() } else { 0 };
            server.request_max = configured.copied().unwrap_or(server.request_max);
            limits.push(ServerLimit { key: server.key, max, request_max: server.request_max });
            servers.push(server);
        }
        self.servers = servers;
        self.lending.set_servers(&limits, now);
        self.follow_from = pause_after(now, PAUSE_FOLLOW);
    }

    /// Takes a message. Returns whether it is one.
    pub(super) fn on_message(&mut self, from: &fleet::Member, bytes: &[u8], now: Moment) -> bool {
        self.lending.on_message(member_at(from), bytes, now).is_ok()
    }

    /// A worker has no free slot, or has freed one that others wait for.
    pub(super) fn on_news(&mut self, now: Moment) {
        self.lending.hurry(now);
    }

    pub(super) fn next_due(&self) -> Moment {
        self.lending.next_due().max(self.turn_from)
    }

    /// Does what is due; returns messages to send.
    pub(super) fn tick(&mut self, now: Moment) -> Vec<(SocketAddr, StartId, Vec<u8>)> {
        if now < self.next_due() {
            return Vec::new();
        }
        let began = os::clock::now();
        let messages = self.turn(began);
        self.turn_from = pause_after(began, PAUSE);
        messages
    }

    /// Ends this member's part: its process ends within a time.
    pub(super) fn leave(
        &mut self,
        within: Duration,
        now: Moment,
    ) -> Vec<(SocketAddr, StartId, Vec<u8>)> {
        self.lending.end(within, now);
        let messages = self.turn(now);
        self.retire(now);
        messages
    }

    /// Uses only what is this member's own from now on.
    pub(super) fn retire(&mut self, now: Moment) {
        self.lending.retire(&mut Workers { servers: &mut self.servers, now });
    }

    pub(super) fn state(&self) -> SlotsState {
        let mut state = SlotsState {
            servers: self.servers.len(),
            is_settled: self.lending.is_settled(),
            missing: self.lending.missing().collect(),
            ..SlotsState::default()
        };
        for standing in (0..self.servers.len()).map(|at| self.lending.standing(at)) {
            state.share += u64::from(standing.share);
            state.lent += u64::from(standing.lent);
            state.borrowed += u64::from(standing.borrowed);
        }
        state
    }

    fn turn(&mut self, now: Moment) -> Vec<(SocketAddr, StartId, Vec<u8>)> {
        // First, so that what happens during the turn causes another one.
        self.registry.take_news();
        let messages = self.lending.turn(&mut Workers { servers: &mut self.servers, now }, now);
        let sent = messages.into_iter();
        sent.map(|(to, bytes)| (to.address, StartId(to.start), bytes)).collect()
    }
}

impl Server {
    fn new(slots: Arc<decide::Slots>) -> Server {
        let key = hash_key(slots.address().to_string().as_bytes());
        let refused = Refused { all: slots.refused(), counts: (0, 0), since: Moment::ZERO };
        Server { slots, key, request_max: REQUEST_MAX, refused }
    }
}

/// Returns when work that began at this time may be done again.
fn pause_after(began: Moment, pause: Duration) -> Moment {
    let ended = os::clock::now();
    ended + pause.max(4 * ended.since(began)).min(PAUSE_MAX)
}

/// Returns how long a request takes: its `total` timeout, or, without one, what only long transfers and connections
/// in TCP mode exceed.
fn request_max(timeouts: &ServiceTimeouts) -> Duration {
    timeouts.total.unwrap_or(timeouts.response + timeouts.idle)
}

struct Workers<'a> {
    servers: &'a mut [Server],
    now: Moment,
}

impl lend::Slots for Workers<'_> {
    fn usage(&mut self, at: usize) -> Usage {
        let Some(server) = self.servers.get_mut(at) else { return Usage::default() };
        if !server.slots.is_shared() {
            return Usage::default();
        }
        let usage = server.slots.usage();
        let refused = server.refused.count(server.slots.refused(), self.now);
        let decide::Usage { allowed, in_flight, waiting } = usage;
        Usage { allowed, in_flight, waiting: waiting.saturating_add(refused) }
    }

    fn allow(&mut self, at: usize, allowed: u32) -> u32 {
        let server = self.servers.get(at).filter(|server| server.slots.is_shared());
        server.map_or(0, |server| server.slots.allow(allowed))
    }
}

fn member_at(member: &fleet::Member) -> MemberAt {
    MemberAt { address: member.address, start: member.start.0 }
}
