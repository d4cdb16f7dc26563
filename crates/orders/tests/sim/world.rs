//! A fleet in virtual time, from event to event.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{Administrative, Moment};
use orders::{Orders, Peer, ServerKey, Version};

/// How long a member takes to notice that another one lives or is gone.
const NOTICE_MS: u64 = 3_000;

pub(crate) type Tables = BTreeMap<ServerKey, (Version, Administrative)>;

struct Process {
    peer: Peer,
    orders: Orders,
    /// Its clock is so far ahead.
    base_ms: u64,
    /// The side of a partition that it is on.
    side: u8,
    view: BTreeSet<[u8; 16]>,
}

struct Datagram {
    from: [u8; 16],
    to: [u8; 16],
    bytes: Vec<u8>,
}

pub(crate) struct World {
    seed: u64,
    pub(crate) rng: fastrand::Rng,
    time: u64,
    processes: BTreeMap<[u8; 16], Process>,
    datagrams: BTreeMap<(u64, u64), Datagram>,
    sent: u64,
    starts: u64,
    loss: f64,
    repeated: f64,
    late_ms: u64,
    /// When the views of members are made what they should be.
    views_at: u64,
}

impl World {
    /// A fleet of up to 12 members.
    pub(crate) fn new(seed: u64) -> World {
        let members = fastrand::Rng::with_seed(seed).usize(2..12);
        World::of(seed, members)
    }

    /// A fleet of so many members that know each other.
    pub(crate) fn of(seed: u64, members: usize) -> World {
        let mut world = World {
            seed,
            rng: fastrand::Rng::with_seed(seed),
            time: 0,
            processes: BTreeMap::new(),
            datagrams: BTreeMap::new(),
            sent: 0,
            starts: 0,
            loss: 0.0,
            repeated: 0.0,
            late_ms: 2,
            views_at: 0,
        };
        for _ in 0..members {
            world.start();
        }
        world
    }

    /// Starts a process that the others see at once. Returns its start.
    pub(crate) fn start(&mut self) -> [u8; 16] {
        self.starts += 1;
        let start = u128::from(self.rng.u64(..)) << 64 | u128::from(self.starts);
        let peer = Peer {
            name: format!("b{}", self.starts).into(),
            address: ([10, 0, 0, self.starts as u8], 7946).into(),
            start: start.to_be_bytes(),
        };
        let base_ms = self.rng.u64(0..100_000);
        let now = Moment::from_millis(self.time + base_ms);
        let orders = Orders::new(peer.clone(), Vec::new(), now);
        let side = 0;
        let start = peer.start;
        let process = Process { peer, orders, base_ms, side, view: BTreeSet::new() };
        self.processes.insert(start, process);
        self.views_at = self.time;
        start
    }

    fn any(&mut self) -> [u8; 16] {
        let starts: Vec<_> = self.processes.keys().copied().collect();
        starts[self.rng.usize(..starts.len())]
    }

    fn key(&mut self) -> ServerKey {
        let port = self.rng.u16(1..6);
        ServerKey { service: "web".into(), address: ([10, 0, 1, 1], port).into() }
    }

    /// An order of any member about any server.
    pub(crate) fn random_order(&mut self) -> (ServerKey, Version, Administrative) {
        let key = self.key();
        let state = Administrative::ALL[self.rng.usize(..3)];
        let version = self.make(&key, state);
        (key, version, state)
    }

    /// An order of any member about any server. Returns which one.
    pub(crate) fn order(&mut self, state: Administrative) -> ServerKey {
        let key = self.key();
        self.make(&key, state);
        key
    }

    fn make(&mut self, key: &ServerKey, state: Administrative) -> Version {
        let maker = self.any();
        let process = self.processes.get_mut(&maker).expect("it lives");
        let now = Moment::from_millis(self.time + process.base_ms);
        process.orders.make(key.clone(), state, now).expect("room")
    }

    pub(crate) fn random_change(&mut self) {
        match self.rng.u8(0..10) {
            0..4 => {
                self.random_order();
            }
            4 => self.loss = self.rng.f64() * 0.9,
            5 => (self.repeated, self.late_ms) = (self.rng.f64(), self.rng.u64(1..2_000)),
            6 => {
                for process in self.processes.values_mut() {
                    process.side = self.rng.u8(0..2);
                }
                self.views_at = self.time + self.rng.u64(0..NOTICE_MS);
            }
            7 => {
                self.processes.values_mut().for_each(|process| process.side = 0);
                self.views_at = self.time + self.rng.u64(0..NOTICE_MS);
            }
            8 if self.processes.len() > 1 => {
                let gone = self.any();
                self.processes.remove(&gone);
                self.views_at = self.time + self.rng.u64(0..NOTICE_MS);
            }
            _ if self.processes.len() < 12 => {
                self.start();
            }
            _ => {}
        }
    }

    /// Nothing is lost or cut off any more.
    pub(crate) fn calm(&mut self) {
        (self.loss, self.repeated, self.late_ms) = (0.0, 0.0, 5);
        self.processes.values_mut().for_each(|process| process.side = 0);
        self.views_at = self.time;
    }

    /// After so long, each member has compared its table with each other.
    pub(crate) fn settled_after_ms(&self) -> u64 {
        2_000 * self.processes.len() as u64 + 3_000
    }

    pub(crate) fn run_ms(&mut self, ms: u64) {
        let end = self.time + ms;
        loop {
            if self.views_at <= self.time {
                self.views_at = u64::MAX;
                self.set_views();
            }
            self.deliver();
            self.turns();
            let due = self.processes.values().map(|process| {
                process.orders.next_due().as_micros().div_ceil(1_000) - process.base_ms
            });
            let datagram = self.datagrams.keys().map(|(at, _)| *at).next();
            let next = due.chain(datagram).chain([self.views_at]).min().unwrap_or(end);
            self.time = next.max(self.time).min(end);
            if next >= end {
                return;
            }
        }
    }

    fn set_views(&mut self) {
        let all: Vec<(u8, Peer)> =
            self.processes.values().map(|one| (one.side, one.peer.clone())).collect();
        for process in self.processes.values_mut() {
            let seen = all
                .iter()
                .filter(|(side, peer)| *side == process.side && peer.start != process.peer.start);
            let seen: Vec<Peer> = seen.map(|(_, peer)| peer.clone()).collect();
            let view = seen.iter().map(|peer| peer.start).collect();
            if process.view != view {
                process.view = view;
                let now = Moment::from_millis(self.time + process.base_ms);
                process.orders.set_live(seen.into_iter(), now);
            }
        }
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.datagrams.first_entry()
            && entry.key().0 <= self.time
        {
            let Datagram { from, to, bytes } = entry.remove();
            let (Some(sender), Some(receiver)) =
                (self.processes.get(&from), self.processes.get(&to))
            else {
                continue;
            };
            // A receiver takes only messages of those that it knows.
            if sender.side != receiver.side || !receiver.view.contains(&from) {
                continue;
            }
            let receiver = self.processes.get_mut(&to).expect("it lives");
            let now = Moment::from_millis(self.time + receiver.base_ms);
            let received = receiver.orders.on_message(from, &bytes, now).expect("a message");
            assert_eq!(received.refused, 0);
            for bytes in received.answers {
                self.send(Datagram { from: to, to: from, bytes });
            }
        }
    }

    fn turns(&mut self) {
        let mut messages = Vec::new();
        for (from, process) in &mut self.processes {
            let now = Moment::from_millis(self.time + process.base_ms);
            if process.orders.next_due() > now {
                continue;
            }
            let sent = process.orders.turn(now);
            assert!(process.orders.next_due() > now, "seed {}: a turn without end", self.seed);
            let sent = sent.into_iter();
            messages.extend(sent.map(|(to, bytes)| Datagram { from: *from, to: to.start, bytes }));
        }
        for message in messages {
            self.send(message);
        }
    }

    fn send(&mut self, datagram: Datagram) {
        assert!(datagram.bytes.len() <= orders::wire::MESSAGE_MAX_BYTES);
        let copies = 1 + u8::from(self.rng.f64() < self.repeated);
        for _ in 0..copies {
            if self.rng.f64() < self.loss {
                continue;
            }
            self.sent += 1;
            let at = self.time + self.rng.u64(1..=self.late_ms);
            let Datagram { from, to, bytes } = &datagram;
            let copy = Datagram { from: *from, to: *to, bytes: bytes.clone() };
            self.datagrams.insert((at, self.sent), copy);
        }
    }

    /// The tables of all members.
    pub(crate) fn tables(&self) -> Vec<Tables> {
        self.processes.keys().map(|start| self.table_of(*start)).collect()
    }

    pub(crate) fn table_of(&self, start: [u8; 16]) -> Tables {
        let orders = self.processes[&start].orders.iter();
        orders.map(|(key, order)| (key.clone(), (order.version, order.state))).collect()
    }

    /// How many members have not confirmed the last order about a server, as its maker knows.
    pub(crate) fn unconfirmed(&self, key: &ServerKey) -> usize {
        let makers = self.processes.values().filter(|process| {
            let order = process.orders.iter().find(|(one, _)| *one == key);
            order.is_some_and(|(_, order)| order.version.start == process.peer.start)
        });
        let unconfirmed = makers.map(|maker| {
            let keys = [key.clone()];
            maker.orders.confirmation(&keys).unconfirmed.len()
        });
        unconfirmed.max().expect("its maker lives")
    }

    pub(crate) fn described(&self) -> String {
        let time = Duration::from_millis(self.time);
        format!("{time:?}, {} members, tables {:#?}", self.processes.len(), self.tables())
    }
}
