//! States of servers that an operator sets for the whole fleet (`weir drain --fleet`): what the crate `orders` decides,
//! applied to the servers of this process.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Weak};

use decide::{Endpoint, LiveService, Registry, ServerChange};
use fleet::StartId;
use fleet::seal::PAYLOAD_MAX;
use model::{Address, Administrative, Moment, ServerState};
use orders::{Confirmation, FleetOrder, Order, Orders, Peer, ServerKey, Version, WAIT_MAX};

use crate::order::{Confirmed, HandedOrder, NotOrdered};

/// Requests that wait for confirmations; a further one is answered at once.
const WAITS_MAX: usize = 64;
/// Orders that are shown.
const SHOWN_MAX: usize = 100;

// The kind and the receiver's start come before a message.
const _: () = assert!(orders::wire::MESSAGE_MAX_BYTES < PAYLOAD_MAX - StartId::BYTES);

/// Makes a change of servers, or returns false while they may not be changed: during an upgrade, whose new process
/// would not learn of it.
pub type Gate = Arc<dyn Fn(&mut dyn FnMut()) -> bool + Send + Sync>;

/// The orders in force, as this member knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrdersState {
    /// Servers that are drained for the whole fleet.
    pub drain: usize,
    /// Servers that are in maintenance for the whole fleet.
    pub maintenance: usize,
    /// The first 100 of these orders, by service and address.
    pub shown: Vec<ShownOrder>,
    /// Orders of other members that were refused: the table is full, or their versions are too great.
    pub refused: u64,
}

/// An order in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownOrder {
    /// The service.
    pub service: Arc<str>,
    /// The server's address.
    pub address: SocketAddr,
    /// Its state at all members.
    pub state: Administrative,
    /// The member that made the order.
    pub member: Arc<str>,
}

/// The orders, and which of them have taken effect here.
pub(super) struct FleetOrders {
    registry: Arc<Registry>,
    gate: Gate,
    orders: Orders,
    /// The last order about each server that took effect here.
    applied: HashMap<ServerKey, Applied>,
    /// Orders that took effect in the process before this one, if their servers are still there.
    adopted: HashMap<ServerKey, Version>,
    /// The table or the servers have changed since the orders were applied.
    is_stale: bool,
    waits: Vec<Wait>,
    /// Addresses of all members, as far as they are listed.
    listed: Vec<SocketAddr>,
    refused: u64,
}

#[derive(Debug)]
struct Applied {
    version: Version,
    /// The state object that was changed. A server that leaves the service and returns gets a new one.
    to: Weak<ServerState>,
}

/// A request that waits until all members have confirmed its orders.
#[derive(Debug)]
struct Wait {
    keys: Vec<ServerKey>,
    state: Administrative,
    reply: SyncSender<Result<Confirmed, NotOrdered>>,
    until: Moment,
}

/// An order that has to take effect here.
struct Due {
    service: Arc<LiveService>,
    endpoint: Arc<Endpoint>,
    key: ServerKey,
    order: Order,
}

impl FleetOrders {
    /// Returns the orders of a member that has these from the process before it.
    pub(super) fn new(
        registry: Arc<Registry>,
        gate: Gate,
        own: &fleet::Member,
        handed: Vec<HandedOrder>,
        now: Moment,
    ) -> FleetOrders {
        let adopted = handed.iter().filter(|one| one.is_applied);
        let adopted = adopted.map(|one| (one.key.clone(), one.order.version)).collect();
        let known = handed.into_iter().map(|one| (one.key, one.order)).collect();
        FleetOrders {
            registry,
            gate,
            orders: Orders::new(peer(own), known, now),
            applied: HashMap::new(),
            adopted,
            is_stale: true,
            waits: Vec::new(),
            listed: Vec::new(),
            refused: 0,
        }
    }

    pub(super) fn set_live<'a>(
        &mut self,
        live: impl Iterator<Item = &'a fleet::Member>,
        now: Moment,
    ) {
        self.orders.set_live(live.map(peer), now);
    }

    pub(super) fn set_listed(&mut self, listed: &[SocketAddr]) {
        self.listed = listed.to_vec();
    }

    /// Servers have changed.
    pub(super) fn note_servers(&mut self) {
        self.is_stale = true;
    }

    /// Makes an order. `reply` is sent when all members have confirmed it, or after [`WAIT_MAX`] with those that have not.
    pub(super) fn order(
        &mut self,
        wanted: FleetOrder,
        reply: SyncSender<Result<Confirmed, NotOrdered>>,
        now: Moment,
    ) {
        let FleetOrder { service, addresses, state } = wanted;
        let keys: Vec<ServerKey> = addresses
            .into_iter()
            .map(|address| ServerKey { service: Arc::clone(&service), address })
            .collect();
        if !keys.iter().all(ServerKey::is_valid) {
            // The receiver may be gone.
            let _ = reply.send(Err(NotOrdered::Invalid));
            return;
        }
        let gate = Arc::clone(&self.gate);
        let mut is_full = false;
        let mut changed = Vec::new();
        let is_open = gate(&mut || {
            is_full = !self.orders.has_room(&keys)
                || keys.iter().any(|key| self.orders.make(key.clone(), state, now).is_err());
            changed = self.apply();
        });
        refresh(changed, now);
        // The receiver may be gone.
        if !is_open {
            let _ = reply.send(Err(NotOrdered::Upgrading));
        } else if is_full {
            let _ = reply.send(Err(NotOrdered::Full));
        } else {
            let until = if self.waits.len() < WAITS_MAX { now + WAIT_MAX } else { now };
            self.waits.push(Wait { keys, state, reply, until });
        }
    }

    /// Applies a message of another member. Returns the answers; `None`: it is no message, or comes during an upgrade
    /// and will be sent again.
    pub(super) fn on_message(
        &mut self,
        from: &fleet::Member,
        bytes: &[u8],
        now: Moment,
    ) -> Option<Vec<Vec<u8>>> {
        let gate = Arc::clone(&self.gate);
        let mut received = None;
        let mut changed = Vec::new();
        // Applied before the acknowledgement is sent.
        gate(&mut || {
            received = self.orders.on_message(from.start.0, bytes, now).ok();
            if received.as_ref().is_some_and(|one| one.is_news) {
                changed = self.apply();
            }
        });
        refresh(changed, now);
        let received = received?;
        self.refused += received.refused as u64;
        Some(received.answers)
    }

    /// Does what is due. Returns messages for other members.
    pub(super) fn turn(&mut self, now: Moment) -> Vec<(SocketAddr, StartId, Vec<u8>)> {
        if self.is_stale {
            let gate = Arc::clone(&self.gate);
            let mut changed = Vec::new();
            gate(&mut || changed = self.apply());
            refresh(changed, now);
        }
        let messages = self.orders.turn(now).into_iter();
        let messages = messages.map(|(to, bytes)| (to.address, StartId(to.start), bytes)).collect();
        self.answer_waits(now);
        messages
    }

    /// Returns when [`FleetOrders::turn`] next has work to do.
    pub(super) fn next_due(&self) -> Moment {
        let waits = self.waits.iter().map(|wait| wait.until);
        waits.chain([self.orders.next_due()]).min().unwrap_or_default()
    }

    pub(super) fn state(&self) -> OrdersState {
        let in_force = || self.orders.iter().filter(|(_, it)| it.state != Administrative::Ready);
        let count = |state| in_force().filter(|(_, order)| order.state == state).count();
        OrdersState {
            drain: count(Administrative::Drain),
            maintenance: count(Administrative::Maintenance),
            shown: in_force().take(SHOWN_MAX).map(|(key, order)| shown(key, order)).collect(),
            refused: self.refused,
        }
    }

    /// Returns all orders, for the process that takes this one's place.
    pub(super) fn to_hand_over(&self) -> Vec<HandedOrder> {
        let orders = self.orders.iter().map(|(key, order)| {
            let applied = self.applied.get(key);
            // A server that has returned is ready by itself.
            let is_applied = applied.is_some_and(|it| {
                let is_ready = order.state == Administrative::Ready;
                it.version == order.version && (is_ready || it.to.strong_count() > 0)
            });
            HandedOrder { key: key.clone(), order: order.clone(), is_applied }
        });
        orders.collect()
    }

    /// Answers the requests whose orders all members have confirmed, and those that have waited long enough.
    fn answer_waits(&mut self, now: Moment) {
        let (orders, listed) = (&self.orders, &self.listed);
        self.waits.retain(|wait| {
            let missing = orders.missing(listed);
            let confirmed = confirmed(orders.confirmation(&wait.keys), missing);
            let waits_on = !confirmed.unconfirmed.is_empty() && now < wait.until;
            if !waits_on {
                let counts = wait.keys.iter().all(|key| orders.is_in_force(key, wait.state));
                // The receiver may be gone.
                let _ =
                    wait.reply.send(if counts { Ok(confirmed) } else { Err(NotOrdered::Replaced) });
            }
            waits_on
        });
    }

    /// Sets the states of the servers whose orders have not taken effect. Returns the services to refresh.
    fn apply(&mut self) -> Vec<Arc<LiveService>> {
        self.is_stale = false;
        let due = self.due();
        self.adopted.clear();
        let mut changed: BTreeMap<Arc<str>, Arc<LiveService>> = BTreeMap::new();
        for Due { service, endpoint, key, order } in due {
            let applied = Applied { version: order.version, to: Arc::downgrade(&endpoint.state) };
            self.applied.insert(key, applied);
            if endpoint.state.administrative() == order.state {
                continue;
            }
            ServerChange::State(order.state).make(&endpoint);
            tracing::info!(
                service = %service.name(),
                server = %endpoint.row.name,
                address = %endpoint.row.address,
                state = order.state.as_str(),
                member = %order.member,
                "server state changed by an order for the whole fleet"
            );
            changed.insert(Arc::clone(service.name()), service);
        }
        let orders: std::collections::HashSet<&ServerKey> =
            self.orders.iter().map(|(key, _)| key).collect();
        self.applied.retain(|key, _| orders.contains(key));
        changed.into_values().collect()
    }

    /// Returns the orders that have to take effect. Those of the process before this one have done so already.
    fn due(&mut self) -> Vec<Due> {
        if self.orders.iter().next().is_none() {
            return Vec::new();
        }
        let published = self.registry.load_full();
        let services: HashMap<&str, &Arc<LiveService>> =
            published.services.iter().map(|service| (&**service.name(), service)).collect();
        let mut due = Vec::new();
        for (key, order) in self.orders.iter() {
            let Some(service) = services.get(&*key.service) else { continue };
            let endpoints = service.endpoints();
            let Some(endpoint) = endpoints.by_address(Address::Ip(key.address)) else { continue };
            if self.adopted.get(key) == Some(&order.version) {
                let to = Arc::downgrade(&endpoint.state);
                self.applied.insert(key.clone(), Applied { version: order.version, to });
                continue;
            }
            let is_applied = self.applied.get(key).is_some_and(|applied| {
                let is_same = std::ptr::eq(applied.to.as_ptr(), Arc::as_ptr(&endpoint.state));
                // A server that has returned is ready by itself.
                applied.version == order.version
                    && (is_same || order.state == Administrative::Ready)
            });
            if !is_applied {
                due.push(Due {
                    service: Arc::clone(service),
                    endpoint: Arc::clone(endpoint),
                    key: key.clone(),
                    order: order.clone(),
                });
            }
        }
        due
    }
}

/// Chooses servers again, after their states have changed.
fn refresh(services: Vec<Arc<LiveService>>, now: Moment) {
    for service in services {
        if let Some(change) = service.refresh(now) {
            crate::log_tier(&change);
        }
    }
}

fn peer(member: &fleet::Member) -> Peer {
    Peer { name: Arc::clone(&member.name), address: member.address, start: member.start.0 }
}

fn shown(key: &ServerKey, order: &Order) -> ShownOrder {
    ShownOrder {
        service: Arc::clone(&key.service),
        address: key.address,
        state: order.state,
        member: Arc::clone(&order.member),
    }
}

fn confirmed(confirmation: Confirmation, missing: impl Iterator<Item = SocketAddr>) -> Confirmed {
    let Confirmation { members, unconfirmed } = confirmation;
    let mut unconfirmed: Vec<(Arc<str>, SocketAddr)> =
        unconfirmed.into_iter().map(|peer| (peer.name, peer.address)).collect();
    let confirmed = members - unconfirmed.len();
    for address in missing {
        if unconfirmed.iter().all(|(_, known)| *known != address) {
            unconfirmed.push(("".into(), address));
        }
    }
    Confirmed { members: confirmed + unconfirmed.len(), unconfirmed }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::mpsc::{Receiver, sync_channel};

    use super::*;
    use crate::testing::{service, snapshot};

    const SERVER: &str = "10.0.0.1:80";

    fn at(ms: u64) -> Moment {
        Moment::from_millis(ms)
    }

    fn member(number: u8) -> fleet::Member {
        fleet::Member {
            name: format!("b{number}").into(),
            address: ([10, 9, 0, number], 7946).into(),
            zone: None,
            host: "host".into(),
            start: StartId([number; 16]),
            version: 1,
        }
    }

    /// A member with one service.
    struct One {
        registry: Arc<Registry>,
        is_held: Arc<AtomicBool>,
        orders: FleetOrders,
    }

    impl One {
        fn new(number: u8, registry: Arc<Registry>, handed: Vec<HandedOrder>) -> One {
            let is_held = Arc::new(AtomicBool::new(false));
            let held = Arc::clone(&is_held);
            let gate: Gate = Arc::new(move |change| {
                let is_open = !held.load(Relaxed);
                if is_open {
                    change();
                }
                is_open
            });
            let own = member(number);
            let orders = FleetOrders::new(Arc::clone(&registry), gate, &own, handed, at(0));
            One { registry, is_held, orders }
        }

        fn begin(number: u8) -> One {
            let one = One::new(number, Arc::new(Registry::new()), Vec::new());
            one.publish(&[SERVER, "10.0.0.2:80"]);
            one
        }

        fn publish(&self, servers: &[&str]) {
            let snapshot = snapshot(None, vec![service("web", servers, None)]);
            self.registry.publish(Arc::new(snapshot), at(0));
        }

        fn server(&self) -> Arc<Endpoint> {
            let endpoints = self.registry.load_full().services[0].endpoints();
            Arc::clone(endpoints.by_address(SERVER.parse().unwrap()).unwrap())
        }

        fn state(&self) -> Administrative {
            self.server().state.administrative()
        }

        fn order(
            &mut self,
            state: Administrative,
            now: Moment,
        ) -> Receiver<Result<Confirmed, NotOrdered>> {
            let (reply, receiver) = sync_channel(1);
            let addresses = vec![SERVER.parse().unwrap()];
            self.orders.order(FleetOrder { service: "web".into(), addresses, state }, reply, now);
            receiver
        }
    }

    #[test]
    fn an_order_takes_effect_here_and_its_confirmations_are_waited_for() {
        let (mut one, mut other) = (One::begin(1), One::begin(2));
        one.orders.set_live([member(2)].iter(), at(0));
        other.orders.set_live([member(1)].iter(), at(0));
        let reply = one.order(Administrative::Drain, at(0));
        assert_eq!(one.state(), Administrative::Drain);
        assert!(
            !one.registry.load_full().services[0].endpoints().is_eligible(SERVER.parse().unwrap())
        );
        let messages = one.orders.turn(at(0));
        assert!(reply.try_recv().is_err());

        // While servers may not be changed, nothing is confirmed.
        other.is_held.store(true, Relaxed);
        let (_, _, first) = &messages[0];
        assert_eq!(other.orders.on_message(&member(1), first, at(1)), None);
        assert_eq!(other.state(), Administrative::Ready);
        other.is_held.store(false, Relaxed);
        let answers = other.orders.on_message(&member(1), first, at(2)).unwrap();
        assert_eq!(other.state(), Administrative::Drain);
        for answer in answers {
            one.orders.on_message(&member(2), &answer, at(3)).unwrap();
        }
        one.orders.turn(at(3));
        assert_eq!(reply.try_recv(), Ok(Ok(Confirmed { members: 2, unconfirmed: vec![] })));
        assert_eq!((one.orders.state().drain, one.orders.state().maintenance), (1, 0));
    }

    #[test]
    fn a_member_that_does_not_answer_is_waited_for_three_seconds() {
        let mut one = One::begin(1);
        one.orders.set_live([member(2)].iter(), at(0));
        let reply = one.order(Administrative::Maintenance, at(0));
        one.orders.turn(at(2_999));
        assert!(reply.try_recv().is_err());
        assert!(one.orders.next_due() <= at(3_000));
        one.orders.turn(at(3_000));
        let unconfirmed = vec![(Arc::from("b2"), member(2).address)];
        assert_eq!(reply.try_recv(), Ok(Ok(Confirmed { members: 2, unconfirmed })));
    }

    #[test]
    fn nothing_is_ordered_while_servers_may_not_be_changed() {
        let mut one = One::begin(1);
        one.is_held.store(true, Relaxed);
        let reply = one.order(Administrative::Drain, at(0));
        assert_eq!(reply.try_recv(), Ok(Err(NotOrdered::Upgrading)));
        one.is_held.store(false, Relaxed);
        one.orders.turn(at(1));
        assert_eq!(one.state(), Administrative::Ready);
        assert!(one.orders.to_hand_over().is_empty());
    }

    #[test]
    fn a_local_change_stays_until_the_next_order_or_until_the_server_returns() {
        let mut one = One::begin(1);
        let set = |one: &One, state| one.server().state.set_administrative(state);
        one.order(Administrative::Drain, at(0));
        set(&one, Administrative::Ready);
        one.publish(&[SERVER, "10.0.0.3:80"]);
        one.orders.note_servers();
        one.orders.turn(at(1));
        assert_eq!(one.state(), Administrative::Ready);
        one.order(Administrative::Drain, at(2));
        assert_eq!(one.state(), Administrative::Drain, "another order");

        set(&one, Administrative::Ready);
        for servers in [&["10.0.0.3:80"][..], &[SERVER, "10.0.0.3:80"]] {
            one.publish(servers);
            one.orders.note_servers();
            one.orders.turn(at(3));
        }
        assert_eq!(one.state(), Administrative::Drain, "the server has returned");
    }

    #[test]
    fn the_next_process_keeps_orders_and_what_was_changed_locally() {
        let mut one = One::begin(1);
        one.order(Administrative::Drain, at(0));
        let handed = one.orders.to_hand_over();
        assert!(handed[0].is_applied);
        one.server().state.set_administrative(Administrative::Ready);
        let mut next = One::new(9, Arc::clone(&one.registry), handed.clone());
        next.orders.turn(at(1));
        assert_eq!(next.state(), Administrative::Ready);
        assert_eq!(next.orders.to_hand_over(), handed);

        // A server that was not there, or is not there yet.
        let mut late = One::new(9, Arc::new(Registry::new()), handed.clone());
        late.publish(&["10.0.0.2:80"]);
        late.orders.turn(at(1));
        assert!(!late.orders.to_hand_over()[0].is_applied);
        late.publish(&[SERVER]);
        late.orders.note_servers();
        late.orders.turn(at(2));
        assert_eq!(late.state(), Administrative::Drain);
    }
}
