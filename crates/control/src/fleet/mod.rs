//! This balancer as a member of its fleet: its socket, the list of the others, and the health checks, servers'
//! slots, rate limits, states of servers, loads of services, servers that are about to be removed, session ticket keys and certificates that they share.
//!
//! Nothing is sent before [`Fleet::serve`]: until then a predecessor may be the member of this name. The
//! crate `fleet` decides who the members are, `health::shared` who probes what, `lend` who may use how many slots,
//! `quota` what counts for rate limits, `orders` which states of servers are set for all; here are the socket and the
//! clock.

mod certificates;
mod channel;
mod leaving;
mod loads;
mod member;
mod orders;
mod problems;
mod rates;
mod secrets;
mod slots;
mod state;
mod tickets;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use ::orders::FleetOrder;
use decide::{LiveService, Registry};
use model::{Moment, Snapshot};
use tls::{Challenges, SharedCertificates, SharedTickets};
use tokio::sync::Notify;

use crate::discover::MemberAddress;
use crate::order::{Confirmed, HandedOrder, NotOrdered};
use crate::probe::{Heard, Prober};
pub use leaving::Leaving;
pub use loads::Loads;
use member::Member;
pub use orders::{Gate, OrdersState, ShownOrder};
use problems::Problems;
pub use rates::RatesState;
pub use slots::SlotsState;
pub(crate) use state::Shared;
pub use state::{DatagramCounts, FleetMember, FleetProblem, FleetState};
pub use tickets::TicketsState;

/// How often the state for status pages is updated.
const SHOW_EVERY: Duration = Duration::from_secs(1);

/// How long after a failure the socket is bound again.
const BIND_AGAIN: Duration = Duration::from_secs(1);

/// What a member works with.
pub(crate) struct Parts {
    pub(crate) registry: Arc<Registry>,
    /// Through which servers are changed.
    pub(crate) gate: Gate,
    /// The orders of the process before this one, until there is a member.
    pub(crate) handed: Vec<HandedOrder>,
    /// What the listeners seal session tickets with.
    pub(crate) tickets: Arc<SharedTickets>,
    /// The challenges that the listeners answer.
    pub(crate) challenges: Arc<Challenges>,
    /// The certificates of this process that are obtained by ACME, and those of others.
    pub(crate) certificates: Arc<SharedCertificates>,
    /// The loads of services.
    pub(crate) loads: Arc<Loads>,
    /// The servers that are about to be removed.
    pub(crate) leaving: Arc<Leaving>,
    /// Notified when a worker needs or frees a slot that the fleet shares, a fetch ends, or certificates or challenges of
    /// this process change.
    pub(crate) news: Arc<Notify>,
}

/// The fleet that the configuration states, and this process's place in it.
pub(crate) struct Fleet {
    parts: Parts,
    shown: Arc<Shared>,
    is_configured: bool,
    configured: Option<Arc<model::Fleet>>,
    zone: Option<Arc<str>>,
    /// The socket for this address, bound by the caller at the start.
    bound: Option<(SocketAddr, UdpSocket)>,
    /// This process serves, and no predecessor is the member any more.
    serves: bool,
    /// It has left its place.
    has_ended: bool,
    member: Option<Member>,
    /// The servers have changed since the member followed their slots.
    slots_are_old: bool,
    /// Where others may be.
    addresses: Vec<SocketAddr>,
    /// Those of them where a member that does not answer is a problem.
    missed: Vec<SocketAddr>,
    start_at: Moment,
    show_at: Moment,
    problems: Problems,
}

impl Fleet {
    pub(crate) fn new(
        bound: Option<(SocketAddr, UdpSocket)>,
        shown: Arc<Shared>,
        parts: Parts,
    ) -> Fleet {
        let news = Arc::clone(&parts.news);
        parts.registry.set_news(Arc::new(move || news.notify_one()));
        Fleet {
            parts,
            shown,
            is_configured: false,
            configured: None,
            zone: None,
            bound,
            serves: false,
            has_ended: false,
            member: None,
            slots_are_old: true,
            addresses: Vec::new(),
            missed: Vec::new(),
            start_at: Moment::ZERO,
            show_at: Moment::ZERO,
            problems: Problems::default(),
        }
    }

    /// Applies a configuration. Whether there is a fleet, what names this member, and its socket stay as in the
    /// first one.
    pub(crate) fn follow(&mut self, snapshot: &Snapshot, prober: &mut Prober, now: Moment) {
        if let Some(member) = &mut self.member {
            member.rates().follow(snapshot);
        }
        if !std::mem::replace(&mut self.is_configured, true) {
            self.configured.clone_from(&snapshot.fleet);
            self.parts.leaving.set_fleet(snapshot.fleet.is_some());
            self.zone.clone_from(&snapshot.zone);
            return;
        }
        let (Some(before), Some(settings)) = (&mut self.configured, &snapshot.fleet) else {
            return;
        };
        if let Some(member) = &mut self.member
            && let Err(error) = member.retune(settings, prober, now)
        {
            tracing::error!(%error, "the fleet's new settings are not used");
        }
        // The rest names this member.
        let model::Fleet { members, discover, keys, probers, tls, .. } = (**settings).clone();
        let fixed = model::Fleet::clone(before);
        *before = Arc::new(model::Fleet { members, discover, keys, probers, tls, ..fixed });
        self.show_at = now;
    }

    /// Joins the fleet: this process serves.
    pub(crate) fn serve(&mut self, prober: &mut Prober, now: Moment) {
        self.serves = !self.has_ended;
        self.begin(prober, now);
    }

    /// Sets where other members may be.
    pub(crate) fn set_addresses(&mut self, addresses: Vec<MemberAddress>, now: Moment) {
        let missed = addresses.iter().filter(|one| !one.is_held).map(|one| one.address);
        self.missed = missed.collect();
        let addresses: Vec<SocketAddr> = addresses.into_iter().map(|one| one.address).collect();
        if addresses == self.addresses {
            return;
        }
        self.addresses = addresses;
        if let Some(member) = &mut self.member {
            member.join(&self.addresses, now);
        }
    }

    /// Tells the others that this member leaves, for good. Probes are no longer shared.
    pub(crate) fn leave(&mut self, prober: &mut Prober, now: Moment) {
        if let Some(member) = self.member.take() {
            member.leave(self.parts.registry.current().snapshot.drain_max, now);
        }
        self.hand_over(prober, now);
    }

    /// Leaves the place in the fleet to another process, for good: nothing is sent any more.
    pub(crate) fn hand_over(&mut self, prober: &mut Prober, now: Moment) {
        if let Some(member) = self.member.take() {
            member.hand_over(now);
        }
        self.bound = None;
        (self.serves, self.has_ended) = (false, true);
        self.parts.loads.retain(|_| false);
        self.parts.leaving.set_members(None);
        prober.share(None, now);
        self.shown.set(None);
    }

    /// Servers have changed.
    pub(crate) fn note_servers(&mut self) {
        self.slots_are_old = true;
        if let Some(member) = &mut self.member {
            member.orders().note_servers();
        }
    }

    /// Makes an order for all members. `reply` is sent when all have confirmed it, or a few seconds later.
    pub(crate) fn order(
        &mut self,
        wanted: FleetOrder,
        reply: SyncSender<Result<Confirmed, NotOrdered>>,
        now: Moment,
    ) {
        match &mut self.member {
            Some(member) => {
                member.orders().order(wanted, reply, now);
                self.show_at = now;
            }
            None => {
                // The receiver may be gone.
                let _ = reply.send(Err(NotOrdered::NotMember));
            }
        }
    }

    /// Returns the orders that this process knows, for the one that takes its place.
    pub(crate) fn orders(&mut self) -> Vec<HandedOrder> {
        match &mut self.member {
            Some(member) => member.orders().to_hand_over(),
            None => self.parts.handed.clone(),
        }
    }

    /// Follows the servers of the services whose limits the fleet shares, if they have changed.
    pub(crate) fn follow_slots(&mut self, services: &[Arc<LiveService>], now: Moment) {
        if let Some(member) = &mut self.member
            && self.slots_are_old
            && member.follow_slots_due() <= now
        {
            self.slots_are_old = false;
            member.slots().follow(services, now);
        }
    }

    /// Waits until another thread has something for [`Fleet::on_news`] or [`Fleet::tick`].
    pub(crate) async fn news(&self) {
        self.parts.news.notified().await;
    }

    /// Looks at the slots at the next tick.
    pub(crate) fn on_news(&mut self, now: Moment) {
        if let Some(member) = &mut self.member {
            member.slots().on_news(now);
        }
    }

    /// Waits until datagrams have arrived.
    pub(crate) async fn readable(&self) {
        match &self.member {
            Some(member) => member.readable().await,
            None => std::future::pending().await,
        }
    }

    /// Reads the datagrams that have arrived. Returns the results of probes among them.
    pub(crate) fn on_readable(&mut self, prober: &mut Prober, now: Moment) -> Vec<Heard> {
        self.member.as_mut().map(|member| member.on_readable(prober, now)).unwrap_or_default()
    }

    /// Does what is due: sends, and notices members that do not answer.
    pub(crate) fn tick(&mut self, prober: &mut Prober, now: Moment) {
        if self.member.is_none() && self.start_at <= now {
            self.begin(prober, now);
        }
        if let Some(member) = &mut self.member {
            member.tick(prober, now);
        }
        if self.show_at <= now
            && let Some(member) = &self.member
        {
            self.show_at = now + SHOW_EVERY;
            let state = member.state(prober, now);
            self.show(state, now);
        }
    }

    fn show(&mut self, mut state: FleetState, now: Moment) {
        state.problems = self.problems.update(&state, &self.missed, now);
        self.shown.set(Some(state));
    }

    /// Returns when [`Fleet::tick`] next has work to do.
    pub(crate) fn next_due(&self, prober: &Prober) -> Option<Moment> {
        match &self.member {
            Some(member) => {
                let due = [Some(member.next_due()), prober.results_due(), Some(self.show_at)];
                let follow = self.slots_are_old.then(|| member.follow_slots_due());
                due.into_iter().chain([follow]).flatten().min()
            }
            None => self.is_wanted().then_some(self.start_at),
        }
    }

    fn is_wanted(&self) -> bool {
        self.serves && self.configured.is_some()
    }

    fn begin(&mut self, prober: &mut Prober, now: Moment) {
        let (true, None, Some(settings)) = (self.serves, &self.member, self.configured.clone())
        else {
            return;
        };
        let bound = self.bound.as_ref().filter(|(address, _)| *address == settings.address);
        let socket =
            bound.map_or_else(|| UdpSocket::bind(settings.address), |(_, it)| it.try_clone());
        let begun =
            socket.map_err(|error| format!("cannot listen on {}: {error}", settings.address));
        let begun = begun.and_then(|socket| {
            Member::begin(&settings, self.zone.as_ref(), socket, &self.parts, prober, now)
        });
        match begun {
            Ok(mut member) => {
                member.rates().follow(&self.parts.registry.current().snapshot);
                member.join(&self.addresses, now);
                self.member = Some(member);
                self.parts.handed = Vec::new();
                self.slots_are_old = true;
                self.show_at = now;
            }
            Err(error) => self.not_begun(&settings, error, now),
        }
    }

    fn not_begun(&mut self, settings: &model::Fleet, error: String, now: Moment) {
        self.start_at = now + BIND_AGAIN;
        // Meanwhile this process orders its certificates by itself.
        self.parts.certificates.set_shared(false);
        let shown = self.shown.get();
        if shown.is_none_or(|shown| shown.error.as_ref() != Some(&error)) {
            tracing::error!(%error, "this balancer is not a member of its fleet; it tries again each second");
        }
        let probers = settings.probers;
        self.show(FleetState { error: Some(error), probers, ..FleetState::default() }, now);
    }
}
