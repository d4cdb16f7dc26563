//! Members, a network between them and virtual time. Everything follows from a seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use fleet::seal::{DATAGRAM_MAX, Key, Opener, Sealer};
use fleet::{Member, Membership, Message, Output, StartId};
use model::Moment;

pub(crate) const SECOND: u64 = 1_000_000;

/// A process that runs.
pub(crate) struct Process {
    pub(crate) membership: Membership,
    sealer: Sealer,
    opener: Opener,
    start: StartId,
}

/// A place for a process.
pub(crate) struct Node {
    pub(crate) name: Arc<str>,
    pub(crate) address: SocketAddr,
    pub(crate) process: Option<Process>,
    /// Its monotonic clock is `offset + rate * time`.
    rate: f64,
    offset: u64,
    /// How far its wall clock is off, in milliseconds.
    pub(crate) wall_ms: i64,
    /// Does nothing before this time.
    pub(crate) stopped_until: u64,
    wakes_at: u64,
    pub(crate) group: u8,
    pub(crate) sent_bytes: u64,
}

impl Node {
    fn local(&self, time: u64) -> Moment {
        Moment::from_micros(self.offset + (time as f64 * self.rate) as u64)
    }

    fn global(&self, local: Moment) -> u64 {
        (local.as_micros().saturating_sub(self.offset) as f64 / self.rate).ceil() as u64 + 1
    }
}

enum Event {
    Deliver { to: usize, datagram: Rc<[u8]> },
    Wake(usize),
}

/// Probabilities of 0 to 1, and times in microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Network {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    /// Of datagrams that are recorded and sent again later.
    pub(crate) replay: f64,
    pub(crate) jitter: u64,
}

pub(crate) struct World {
    pub(crate) time: u64,
    pub(crate) rng: fastrand::Rng,
    pub(crate) nodes: Vec<Node>,
    pub(crate) network: Network,
    key: Key,
    places: BTreeMap<SocketAddr, usize>,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: BTreeMap<u64, Event>,
    sequence: u64,
    pub(crate) datagrams: u64,
    pub(crate) refused: u64,
    /// How often a member that lived was declared to have left by one that could reach it.
    pub(crate) false_departures: u64,
}

impl World {
    pub(crate) fn new(seed: u64, members: usize) -> World {
        let mut rng = fastrand::Rng::with_seed(seed);
        let nodes: Vec<Node> = (0..members)
            .map(|number| Node {
                name: Arc::from(format!("balancer-{number}.example")),
                address: SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 7_946)),
                process: None,
                rate: 0.99 + 0.02 * rng.f64(),
                offset: rng.u64(..1_000 * SECOND),
                wall_ms: rng.i64(-3_000..3_000),
                stopped_until: 0,
                wakes_at: u64::MAX,
                group: 0,
                sent_bytes: 0,
            })
            .collect();
        let places = nodes.iter().enumerate().map(|(at, node)| (node.address, at)).collect();
        World {
            time: 0,
            rng,
            nodes,
            network: Network { loss: 0.0, duplication: 0.0, replay: 0.0, jitter: 1_000 },
            key: Key::from_secret(&[b'k'; 64]).unwrap(),
            places,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            sequence: 0,
            datagrams: 0,
            refused: 0,
            false_departures: 0,
        }
    }

    pub(crate) fn start(&mut self, at: usize) {
        let mut start = StartId([0; StartId::BYTES]);
        self.rng.fill(&mut start.0);
        let node = &self.nodes[at];
        let member = Member {
            name: node.name.clone(),
            address: node.address,
            zone: Some(Arc::from(if at.is_multiple_of(2) { "eu-1a" } else { "eu-1b" })),
            host: node.name.clone(),
            start,
            version: 1,
        };
        let generation =
            (1_700_000_000_000 + self.time / 1_000).saturating_add_signed(node.wall_ms);
        let now = node.local(self.time);
        let mut membership = Membership::new(member, generation, self.rng.u64(..), now).unwrap();
        let join: Vec<SocketAddr> = self.nodes.iter().take(3).map(|node| node.address).collect();
        membership.join(&join, now);
        let sealer = Sealer::new(&self.key, start).unwrap();
        let opener = Opener::new(std::slice::from_ref(&self.key)).unwrap();
        self.nodes[at].process = Some(Process { membership, sealer, opener, start });
        self.follow(at);
    }

    pub(crate) fn leave(&mut self, at: usize) {
        let now = self.nodes[at].local(self.time);
        if let Some(process) = &mut self.nodes[at].process {
            process.membership.leave(now);
        }
        self.follow(at);
        self.nodes[at].process = None;
    }

    /// Runs until this time.
    pub(crate) fn run_until(&mut self, end: u64) {
        while let Some(&Reverse((at, sequence))) = self.queue.peek() {
            if at > end {
                break;
            }
            self.queue.pop();
            self.time = at;
            match self.events.remove(&sequence) {
                Some(Event::Deliver { to, datagram }) => self.deliver(to, &datagram),
                Some(Event::Wake(node)) => self.wake(node),
                None => unreachable!("an event without content"),
            }
        }
        self.time = end;
    }

    pub(crate) fn run(&mut self, time: u64) {
        self.run_until(self.time + time);
    }

    /// Runs until all lists are right. Returns how long that took, or `None` if it took longer than the limit.
    pub(crate) fn run_until_agreed(&mut self, limit: u64) -> Option<u64> {
        let began = self.time;
        let is_traced = std::env::var_os("FLEET_TRACE").is_some();
        while self.time <= began + limit {
            let Some(wrong) = self.disagreement() else {
                return Some(self.time - began);
            };
            if is_traced && (self.time - began).is_multiple_of(SECOND) {
                eprintln!("after {} s: {wrong}", (self.time - began) / SECOND);
            }
            self.run(SECOND / 10);
        }
        None
    }

    /// Returns what is wrong with the first wrong list.
    pub(crate) fn disagreement(&self) -> Option<String> {
        let mut live: Vec<(&str, StartId)> = self
            .nodes
            .iter()
            .filter_map(|node| node.process.as_ref().map(|process| (&*node.name, process.start)))
            .collect();
        live.sort_unstable();
        self.nodes.iter().find_map(|node| {
            let process = node.process.as_ref()?;
            let listed = process.membership.members().map(|member| (&*member.name, member.start));
            // Both are sorted by name.
            if listed.clone().eq(live.iter().copied().filter(|(name, _)| *name != &*node.name)) {
                return None;
            }
            let listed: BTreeSet<_> = listed.chain([(&*node.name, process.start)]).collect();
            let live: BTreeSet<_> = live.iter().copied().collect();
            let (missing, wrong): (Vec<_>, Vec<_>) = (
                (&live - &listed).into_iter().take(6).collect(),
                (&listed - &live).into_iter().take(6).collect(),
            );
            let (name, count) = (&node.name, live.len());
            Some(format!(
                "{name} of {count}: missing {missing:?}, wrong {wrong:?}, {:?}",
                process.membership
            ))
        })
    }

    fn push(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence)));
        self.events.insert(self.sequence, event);
    }

    fn wake(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.wakes_at != self.time {
            return;
        }
        node.wakes_at = u64::MAX;
        if node.stopped_until > self.time {
            let until = node.stopped_until;
            node.wakes_at = until;
            return self.push(until, Event::Wake(at));
        }
        let now = node.local(self.time);
        if let Some(process) = &mut node.process {
            process.membership.on_timer(now);
        }
        self.follow(at);
    }

    fn deliver(&mut self, at: usize, datagram: &Rc<[u8]>) {
        let node = &mut self.nodes[at];
        if node.stopped_until > self.time {
            // Waits in the socket's buffer.
            let after = node.stopped_until + 1 + self.rng.u64(..50);
            return self.push(after, Event::Deliver { to: at, datagram: datagram.clone() });
        }
        let now = node.local(self.time);
        let Some(process) = &mut node.process else { return };
        let mut payload = Vec::new();
        if process.opener.open(datagram, &mut payload).is_err() {
            self.refused += 1;
            return;
        }
        match Message::read(&payload) {
            Some(Message::Membership(bytes)) => process.membership.on_datagram(bytes, now),
            other => panic!("{other:?}"),
        }
        self.follow(at);
    }

    /// Takes the outputs of a node and sets its next wake-up.
    fn follow(&mut self, at: usize) {
        while let Some(process) = &mut self.nodes[at].process {
            match process.membership.next_output() {
                None => break,
                Some(Output::Send { to, payload }) => {
                    let mut datagram = Vec::new();
                    process.sealer.seal(&payload, &mut datagram).unwrap();
                    self.send(at, to, datagram.into());
                }
                Some(Output::Joined(_)) => {}
                Some(Output::Left(member)) => self.judge(at, &member),
            }
        }
        let node = &self.nodes[at];
        let Some(process) = &node.process else { return };
        let due = process
            .membership
            .next_due()
            .map_or(u64::MAX, |due| node.global(due).max(self.time + 1));
        if due < node.wakes_at {
            self.nodes[at].wakes_at = due;
            self.push(due, Event::Wake(at));
        }
    }

    fn judge(&mut self, at: usize, member: &Member) {
        let other = &self.nodes[self.places[&member.address]];
        let lives = other.process.as_ref().is_some_and(|process| process.start == member.start);
        let reachable = other.group == self.nodes[at].group && other.stopped_until <= self.time;
        self.false_departures += u64::from(lives && reachable);
    }

    fn send(&mut self, from: usize, to: SocketAddr, datagram: Rc<[u8]>) {
        assert!(datagram.len() <= DATAGRAM_MAX, "{} bytes", datagram.len());
        self.nodes[from].sent_bytes += datagram.len() as u64;
        self.datagrams += 1;
        let Some(&to) = self.places.get(&to) else { return };
        if self.nodes[from].group != self.nodes[to].group {
            return;
        }
        let Network { loss, duplication, replay, jitter } = self.network;
        let copies = 1 + usize::from(self.rng.f64() < duplication);
        // Each pair of nodes has a delay of its own, up to 10 ms.
        let link = 100 + (from.min(to) as u64 * 7_919 + from.max(to) as u64 * 104_729) % 10_000;
        for _ in 0..copies {
            if self.rng.f64() >= loss {
                let at = self.time + link + self.rng.u64(..=jitter);
                self.push(at, Event::Deliver { to, datagram: datagram.clone() });
            }
        }
        if self.rng.f64() < replay {
            let at = self.time + self.rng.u64(SECOND..60 * SECOND);
            let to = if self.rng.bool() { to } else { self.rng.usize(..self.nodes.len()) };
            self.push(at, Event::Deliver { to, datagram });
        }
    }
}
