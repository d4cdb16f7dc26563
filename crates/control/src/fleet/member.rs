//! The running member: datagrams in and out.

use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fleet::seal::{DATAGRAM_MAX, Key, Opener, Refusal, Sealer};
use fleet::{Membership, Message, Output, StartId};
use health::shared::assignment;
use health::shared::exchange::Exchange;
use model::Moment;
use tokio::net::UdpSocket;

use super::orders::FleetOrders;
use super::rates::SharedRates;
use super::secrets::Secrets;
use super::slots::SharedSlots;
use super::state::{DatagramCounts, FleetMember, FleetState};
use super::{Leaving, Loads, Parts};
use crate::probe::{Heard, Prober};

/// The version of the messages that this program knows, which members tell each other.
const VERSION: u8 = 1;

/// How often conflicts of names are looked at.
const CONFLICTS_LOOK: Duration = Duration::from_mins(1);
/// So many messages in that time show that another process has this member's name; a restart causes a few.
const CONFLICTS_MIN: u64 = 10;

/// Datagrams that are read before the loop does something else.
const AT_ONCE_MAX: usize = 256;
/// Results after which no further datagram is read before that.
const RESULTS_AT_ONCE_MAX: usize = 1_000;

/// This balancer in its fleet.
pub(super) struct Member {
    settings: Arc<model::Fleet>,
    socket: UdpSocket,
    opener: Opener,
    sealer: Sealer,
    membership: Membership,
    /// The members that live, by the start of their process.
    others: HashMap<StartId, fleet::Member>,
    slots: SharedSlots,
    rates: SharedRates,
    orders: FleetOrders,
    secrets: Secrets,
    loads: Arc<Loads>,
    leaving: Arc<Leaving>,
    /// The list of members has changed since it was applied to the shared probes.
    is_changed: bool,
    /// Other members of the zone: where they are, and the starts of their processes.
    peers: Vec<(SocketAddr, StartId)>,
    counts: DatagramCounts,
    /// When conflicts of names were last looked at, and how many there had been.
    conflicts: (Moment, u64),
    were_many_conflicts: bool,
    /// There were many between both of the last two looks. A restart after a crash may cause many once: messages for the
    /// former process.
    has_name_conflict: bool,
    received: Vec<u8>,
    opened: Vec<u8>,
    sealed: Vec<u8>,
}

impl Member {
    /// Starts a member, which knows no other yet, on its socket.
    pub(super) fn begin(
        settings: &Arc<model::Fleet>,
        zone: Option<&Arc<str>>,
        socket: std::net::UdpSocket,
        parts: &Parts,
        prober: &mut Prober,
        now: Moment,
    ) -> Result<Member, String> {
        socket.set_nonblocking(true).map_err(one_line)?;
        let socket = UdpSocket::from_std(socket).map_err(one_line)?;
        let keys = keys(settings)?;
        let mut start = StartId([0; StartId::BYTES]);
        aws_lc_rs::rand::fill(&mut start.0).map_err(|_| "no random numbers".to_owned())?;
        let host_name: Arc<str> = os::process::host_name().into();
        let own = fleet::Member {
            name: settings.name.as_ref().unwrap_or(&host_name).clone(),
            address: settings.advertise,
            zone: zone.cloned(),
            host: settings.host.as_ref().unwrap_or(&host_name).clone(),
            start,
            version: VERSION,
        };
        let first = keys.first().ok_or("a fleet needs a key")?;
        let sealer = Sealer::new(first, start).map_err(one_line)?;
        let opener = Opener::new(&keys).map_err(one_line)?;
        let exchange = Exchange::new(&probe_keys(&keys)?, shared(&own), settings.probers.into());
        let generation = os::clock::wall().as_millis() as u64;
        let membership =
            Membership::new(own, generation, fastrand::u64(..), now).map_err(one_line)?;
        prober.share(Some(exchange), now);
        let own = membership.own();
        let Parts { registry, gate, handed, .. } = parts;
        let slots = SharedSlots::new(Arc::clone(registry), own, now);
        let mut rates = SharedRates::new(Arc::clone(registry), own, now);
        rates.set_key(first)?;
        let (registry, gate) = (Arc::clone(registry), Arc::clone(gate));
        let orders = FleetOrders::new(registry, gate, own, handed.clone(), now);
        let mut secrets = Secrets::new(parts, own.start, settings.address, now);
        secrets.set_tls(settings.tls.as_ref(), now);
        parts.leaving.set_members(Some((Arc::clone(&own.name), HashMap::new())));
        tracing::info!(name = %own.name, address = %own.address, "joining the fleet");
        Ok(Member {
            settings: Arc::clone(settings),
            socket,
            opener,
            sealer,
            membership,
            others: HashMap::new(),
            slots,
            rates,
            orders,
            secrets,
            loads: Arc::clone(&parts.loads),
            leaving: Arc::clone(&parts.leaving),
            is_changed: false,
            peers: Vec::new(),
            counts: DatagramCounts::default(),
            conflicts: (now, 0),
            were_many_conflicts: false,
            has_name_conflict: false,
            received: vec![0; DATAGRAM_MAX + 1],
            opened: Vec::new(),
            sealed: Vec::new(),
        })
    }

    /// Applies changed keys and another number of probers.
    pub(super) fn retune(
        &mut self,
        settings: &Arc<model::Fleet>,
        prober: &mut Prober,
        now: Moment,
    ) -> Result<(), String> {
        if settings.keys != self.settings.keys {
            let keys = keys(settings)?;
            let first = keys.first().ok_or("a fleet needs a key")?;
            let probe_keys = probe_keys(&keys)?;
            self.opener.set_keys(&keys).map_err(one_line)?;
            self.sealer.set_key(first).map_err(one_line)?;
            self.rates.set_key(first)?;
            if let Some(exchange) = prober.shared_mut() {
                exchange.set_keys(&probe_keys);
            }
        }
        if settings.tls != self.settings.tls {
            self.secrets.set_tls(settings.tls.as_ref(), now);
        }
        if settings.probers != self.settings.probers
            && let Some(exchange) = prober.shared_mut()
        {
            exchange.set_probers(settings.probers.into(), now);
        }
        self.settings = Arc::clone(settings);
        Ok(())
    }

    pub(super) fn join(&mut self, addresses: &[SocketAddr], now: Moment) {
        self.membership.join(addresses, now);
        self.slots.set_listed(addresses, now);
        self.rates.set_listed(addresses);
        self.orders.set_listed(addresses);
        let own = self.membership.own().address;
        let has_others = addresses.iter().any(|address| *address != own);
        self.secrets.expect_others(has_others);
        self.leaving.expect_others(has_others);
        self.flush();
    }

    /// Tells the others that this process ends within a time.
    pub(super) fn leave(mut self, within: Duration, now: Moment) {
        let messages = self.slots.leave(within, now);
        // One may be lost.
        self.send_slots(&messages);
        self.send_slots(&messages);
        let messages = self.rates.retire(now);
        self.send_rates(&messages);
        self.membership.leave(now);
        self.flush();
    }

    /// Another process takes this one's place.
    pub(super) fn hand_over(mut self, now: Moment) {
        self.slots.retire(now);
        self.rates.retire(now);
    }

    /// The rate limits that hold over the fleet.
    pub(super) fn rates(&mut self) -> &mut SharedRates {
        &mut self.rates
    }

    /// The slots that the fleet shares.
    pub(super) fn slots(&mut self) -> &mut SharedSlots {
        &mut self.slots
    }

    /// The states of servers that are set for the whole fleet.
    pub(super) fn orders(&mut self) -> &mut FleetOrders {
        &mut self.orders
    }

    /// When the servers may be followed.
    pub(super) fn follow_slots_due(&self) -> Moment {
        self.slots.follow_due()
    }

    pub(super) async fn readable(&self) {
        // An error is noticed with the next datagram.
        let _ = self.socket.readable().await;
    }

    /// Reads the datagrams that have arrived. Returns the results of probes among them.
    pub(super) fn on_readable(&mut self, prober: &mut Prober, now: Moment) -> Vec<Heard> {
        let mut heard = Vec::new();
        for _ in 0..AT_ONCE_MAX {
            if heard.len() >= RESULTS_AT_ONCE_MAX {
                break;
            }
            match self.socket.try_recv_from(&mut self.received) {
                Ok((length, _)) => self.on_datagram(length, prober, &mut heard, now),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An earlier datagram met a closed port (ICMP); membership notices that by itself.
                Err(_) => {}
            }
        }
        self.flush();
        self.apply_members(prober, now);
        heard
    }

    pub(super) fn tick(&mut self, prober: &mut Prober, now: Moment) {
        if self.membership.next_due().is_some_and(|due| due <= now) {
            self.membership.on_timer(now);
            self.flush();
        }
        self.apply_members(prober, now);
        let messages = self.slots.tick(now);
        self.send_slots(&messages);
        let messages = self.rates.tick(now);
        self.send_rates(&messages);
        let messages = self.orders.turn(now);
        self.send_all(Message::ORDERS, &messages);
        let messages = self.loads.take();
        self.send_to_others(Message::LOADS, &messages);
        let messages = self.leaving.take(now);
        self.send_to_others(Message::LEAVING, &messages);
        for (kind, message) in self.secrets.tick(now) {
            self.send_to_others(kind, &[message]);
        }
        self.check_name_conflicts(now);
        let Some(exchange) = prober.shared_mut() else { return };
        for batch in exchange.batches(now) {
            // If the system takes only some of them, others miss the next.
            if !self.peers.is_empty() {
                self.peers.rotate_left(1);
            }
            let peers = std::mem::take(&mut self.peers);
            for (to, start) in &peers {
                let mut payload = Vec::new();
                put(Message::CHECKS, *start, &batch, &mut payload);
                self.send(*to, &payload);
            }
            self.peers = peers;
        }
    }

    pub(super) fn next_due(&self) -> Moment {
        let others = [self.membership.next_due(), self.rates.next_due(), self.secrets.next_due()];
        let due = self.slots.next_due().min(self.orders.next_due());
        others.into_iter().flatten().fold(due, Moment::min)
    }

    pub(super) fn state(&self, prober: &mut Prober, now: Moment) -> FleetState {
        let counts = self.membership.counts();
        let (shares, ignored) = prober
            .shared_mut()
            .map(|exchange| (exchange.shares(now), exchange.ignored()))
            .unwrap_or_default();
        let mut state = FleetState {
            error: None,
            own: Some(described(self.membership.own())),
            others: self.membership.members().map(described).collect(),
            probers: self.settings.probers,
            shares,
            ignored,
            slots: self.slots.state(),
            rates: self.rates.state(),
            orders: self.orders.state(),
            tickets: self.secrets.state(now),
            counts: self.counts.clone(),
            name_conflicts: counts.name_conflicts,
            has_name_conflict: self.has_name_conflict,
            rejoins: counts.rejoins,
            problems: Vec::new(),
        };
        state.counts.unread += counts.malformed;
        state.counts.accepted = state.counts.accepted.saturating_sub(counts.malformed);
        state
    }

    fn on_datagram(
        &mut self,
        length: usize,
        prober: &mut Prober,
        heard: &mut Vec<Heard>,
        now: Moment,
    ) {
        self.counts.received_bytes += length as u64;
        let datagram = self.received.get(..length).unwrap_or_default();
        let start = match self.opener.open(datagram, &mut self.opened) {
            Ok(start) => start,
            Err(refusal) => {
                let at = Refusal::ALL.iter().position(|one| *one == refusal);
                if let Some(count) = at.and_then(|at| self.counts.refused.get_mut(at)) {
                    *count += 1;
                }
                return;
            }
        };
        if self.on_opened(start, prober, heard, now) {
            self.counts.accepted += 1;
        } else {
            self.counts.unread += 1;
        }
    }

    /// Takes the opened datagram of the process with this start. Returns whether it is a message for this member.
    fn on_opened(
        &mut self,
        from: StartId,
        prober: &mut Prober,
        heard: &mut Vec<Heard>,
        now: Moment,
    ) -> bool {
        let (kind, bytes) = match Message::read(&self.opened) {
            Some(Message::Membership(bytes)) => {
                self.membership.on_datagram(bytes, now);
                // Its news may be about the sender of the next datagram.
                self.flush();
                return true;
            }
            Some(Message::Other { kind, bytes }) => (kind, bytes),
            None => return false,
        };
        let own = self.membership.own().start;
        let message = addressed_to(own, bytes).zip(self.others.get(&from));
        let Some((bytes, other)) = message else { return false };
        match kind {
            Message::CHECKS => match prober.on_shared(&other.name, from.low(), bytes, now) {
                Ok(results) => {
                    heard.extend(results);
                    true
                }
                Err(_) => false,
            },
            Message::SLOTS => self.slots.on_message(other, bytes, now),
            Message::RATES => self.rates.on_message(other, bytes, now),
            Message::LOADS => self.loads.on_message(from, bytes, now),
            Message::LEAVING => self.leaving.on_message(from, bytes, now),
            Message::TICKETS => self.secrets.on_tickets(other, bytes, now),
            Message::CERTIFICATES => self.secrets.on_certificates(other, bytes, now),
            Message::ORDERS => {
                let (to, start) = (other.address, other.start);
                let Some(answers) = self.orders.on_message(other, bytes, now) else { return false };
                for answer in answers {
                    self.send_one(Message::ORDERS, to, start, &answer);
                }
                true
            }
            _ => false,
        }
    }

    /// Applies what the membership has found, and sends what it wants sent.
    fn flush(&mut self) {
        while let Some(output) = self.membership.next_output() {
            match output {
                Output::Send { to, payload } => self.send(to, &payload),
                Output::Joined(member) => {
                    let zone = member.zone.as_deref();
                    tracing::info!(name = %member.name, address = %member.address, zone, "a balancer joined the fleet");
                    self.others.insert(member.start, member);
                    self.is_changed = true;
                }
                Output::Left(member) => {
                    tracing::info!(name = %member.name, address = %member.address, "a balancer left the fleet or no longer answers");
                    self.others.remove(&member.start);
                    self.is_changed = true;
                }
            }
        }
    }

    /// Checks once a minute whether another process has this member's name, and logs it.
    fn check_name_conflicts(&mut self, now: Moment) {
        let (looked, before) = self.conflicts;
        if now.since(looked) < CONFLICTS_LOOK {
            return;
        }
        let conflicts = self.membership.counts().name_conflicts;
        self.conflicts = (now, conflicts);
        let are_many = conflicts - before >= CONFLICTS_MIN;
        self.has_name_conflict = are_many && self.were_many_conflicts;
        self.were_many_conflicts = are_many;
        if self.has_name_conflict {
            let name = &self.membership.own().name;
            tracing::warn!(%name, "another process of the fleet has this balancer's name; give each its own `name` in [fleet]");
        }
    }

    fn apply_members(&mut self, prober: &mut Prober, now: Moment) {
        if !std::mem::take(&mut self.is_changed) {
            return;
        }
        if let Some(exchange) = prober.shared_mut() {
            exchange.set_members(self.membership.members().map(shared), now);
        }
        self.slots.set_live(self.membership.members(), now);
        self.rates.set_live(self.membership.members());
        self.orders.set_live(self.membership.members(), now);
        self.secrets.set_live(self.membership.members(), now);
        self.loads.retain(|member| self.others.contains_key(&member));
        let own = self.membership.own();
        let others = self.others.iter();
        let others = others.map(|(start, other)| (*start, Arc::clone(&other.name))).collect();
        self.leaving.set_members(Some((Arc::clone(&own.name), others)));
        let peers = self.membership.members().filter(|other| other.zone == own.zone);
        self.peers = peers.map(|other| (other.address, other.start)).collect();
    }

    fn send_slots(&mut self, messages: &[(SocketAddr, StartId, Vec<u8>)]) {
        self.send_all(Message::SLOTS, messages);
    }

    fn send_all(&mut self, kind: u8, messages: &[(SocketAddr, StartId, Vec<u8>)]) {
        for (to, start, bytes) in messages {
            self.send_one(kind, *to, *start, bytes);
        }
    }

    fn send_one(&mut self, kind: u8, to: SocketAddr, start: StartId, bytes: &[u8]) {
        let mut payload = Vec::new();
        put(kind, start, bytes, &mut payload);
        self.send(to, &payload);
    }

    fn send_rates(&mut self, messages: &[Vec<u8>]) {
        self.send_to_others(Message::RATES, messages);
    }

    /// Sends each of these to all others.
    fn send_to_others(&mut self, kind: u8, messages: &[Vec<u8>]) {
        if messages.is_empty() {
            return;
        }
        let mut others: Vec<(SocketAddr, StartId)> =
            self.others.values().map(|other| (other.address, other.start)).collect();
        // If the system takes only some of them, others miss the next.
        let first = fastrand::usize(..others.len().max(1));
        others.rotate_left(first);
        for bytes in messages {
            for (to, start) in &others {
                self.send_one(kind, *to, *start, bytes);
            }
        }
    }

    fn send(&mut self, to: SocketAddr, payload: &[u8]) {
        let sealed = self.sealer.seal(payload, &mut self.sealed).is_ok();
        if sealed && self.socket.try_send_to(&self.sealed, to).is_ok() {
            self.counts.sent += 1;
            self.counts.sent_bytes += self.sealed.len() as u64;
        } else {
            self.counts.send_errors += 1;
        }
    }
}

fn keys(settings: &model::Fleet) -> Result<Vec<Key>, String> {
    let keys = settings.keys.iter().map(|key| Key::from_secret(key.as_bytes()).map_err(one_line));
    keys.collect()
}

/// Returns the keys that name probes in messages.
fn probe_keys(keys: &[Key]) -> Result<Vec<[u8; 32]>, String> {
    keys.iter().map(|key| key.derive("probe names v1").map_err(one_line)).collect()
}

fn shared(member: &fleet::Member) -> assignment::Member {
    assignment::Member {
        name: Arc::clone(&member.name),
        zone: member.zone.clone(),
        host: Arc::clone(&member.host),
        start: member.start.low(),
    }
}

fn described(member: &fleet::Member) -> FleetMember {
    FleetMember {
        name: Arc::clone(&member.name),
        address: member.address,
        zone: member.zone.clone(),
        host: Arc::clone(&member.host),
    }
}

fn one_line(error: impl Display) -> String {
    error.to_string()
}

/// Appends the payload with a message for the process that start `to` names. So a datagram that was sent to an
/// earlier process of a member, whose opener has seen it, means nothing to the next one.
fn put(kind: u8, to: StartId, message: &[u8], into: &mut Vec<u8>) {
    let bytes = [&to.0[..], message].concat();
    Message::Other { kind, bytes: &bytes }.write(into);
}

/// Returns the message in these bytes, if it is for this start.
fn addressed_to(own: StartId, bytes: &[u8]) -> Option<&[u8]> {
    let (to, message) = bytes.split_first_chunk()?;
    (*to == own.0).then_some(message)
}
