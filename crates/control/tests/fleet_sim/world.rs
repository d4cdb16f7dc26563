//! Processes, servers, a network between them, and virtual time. Everything follows from a seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fleet::{Member, StartId};
use health::verdict::Failure;
use model::{Health, Moment};

use crate::judge::{Evidence, Limits, SECOND, Server};
use crate::process::{Action, Checks, Fate, PROBERS, Process, TIMEOUT};

pub(crate) const ZONES: usize = 4;

/// What seals add to a payload.
const SEAL_BYTES: u64 = 45;
/// Datagrams that wait in the socket of a process that does not read them; further ones are lost.
const WAITING_MAX: usize = 1_000;
/// Events in a quarter of a second.
const EVENTS_MAX: u64 = 4_000_000;
/// How long nothing must have disturbed the fleet for a stretch to be calm.
const CALM_AFTER: u64 = 15 * SECOND;

/// A place for a process.
pub(crate) struct Node {
    name: Arc<str>,
    address: SocketAddr,
    pub(crate) process: Option<Process>,
    /// Counts the processes.
    serial: u32,
    /// Its monotonic clock is `offset + rate * time`.
    rate: f64,
    offset: u64,
    /// How far its wall clock is off, in milliseconds.
    pub(crate) wall_ms: i64,
    /// Does nothing before this time.
    paused_until: u64,
    waiting: Vec<Event>,
    /// When its process started, or went on after a pause.
    since: u64,
    wakes_at: u64,
    pub(crate) group: u8,
    sent_bytes: u64,
    /// One for each server.
    evidence: Vec<Evidence>,
}

impl Node {
    fn local(&self, time: u64) -> Moment {
        Moment::from_micros(self.offset + (time as f64 * self.rate) as u64)
    }

    fn global(&self, local: Moment) -> u64 {
        (local.as_micros().saturating_sub(self.offset) as f64 / self.rate).ceil() as u64 + 1
    }
}

struct Datagram {
    start: StartId,
    payload: Rc<[u8]>,
    /// Of results: which server, and when the run ended in truth.
    ended: Vec<(usize, u64)>,
}

enum Event {
    Deliver { to: usize, datagram: Rc<Datagram> },
    Ended { node: usize, serial: u32, server: usize, began: u64, result: Result<(), Failure> },
    Wake(usize),
}

/// Probabilities of 0 to 1, and times in microseconds. Ways take 50 ms at most.
#[derive(Clone, Copy)]
pub(crate) struct Network {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) jitter: u64,
}

/// What a schedule has from its beginning to its end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nature {
    /// Loss is 5 % at most, and only servers change.
    pub(crate) is_calm: bool,
    /// Of the two messages with a result, one arrives.
    pub(crate) keeps_copies: bool,
    pub(crate) liar: Option<usize>,
    /// Of single runs that fail by chance, never two in a row.
    pub(crate) chance_failures: f64,
    pub(crate) has_pauses: bool,
    /// Processes update a status page.
    pub(crate) is_shown: bool,
}

/// What was measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) calm_time: u64,
    pub(crate) calm_bytes: u64,
    pub(crate) calm_bytes_most: f64,
    pub(crate) slowest_down: u64,
    pub(crate) slowest_up: u64,
    pub(crate) runs: u64,
    pub(crate) events: u64,
    pub(crate) changes: u64,
}

impl Figures {
    pub(crate) fn add(&mut self, other: &Figures) {
        self.calm_time += other.calm_time;
        self.calm_bytes += other.calm_bytes;
        self.calm_bytes_most = self.calm_bytes_most.max(other.calm_bytes_most);
        self.slowest_down = self.slowest_down.max(other.slowest_down);
        self.slowest_up = self.slowest_up.max(other.slowest_up);
        self.runs += other.runs;
        self.events += other.events;
        self.changes += other.changes;
    }
}

pub(crate) struct World {
    pub(crate) time: u64,
    pub(crate) rng: fastrand::Rng,
    pub(crate) nodes: Vec<Node>,
    pub(crate) servers: Vec<Server>,
    pub(crate) network: Network,
    pub(crate) nature: Nature,
    pub(crate) figures: Figures,
    /// What did not hold, first.
    pub(crate) failure: Option<String>,
    /// Results of which a member has not got the first message: from whom, to whom, which server, when it ended.
    missed: HashSet<(usize, usize, usize, u64)>,
    checks: Rc<Checks>,
    queue: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// Events that are to come, and free places.
    events: Vec<Option<Event>>,
    free: Vec<usize>,
    sequence: u64,
    disturbed_at: u64,
    disagreed_at: u64,
    /// The beginning of the present calm stretch.
    calm_since: Option<u64>,
    is_traced: bool,
}

impl World {
    pub(crate) fn new(rng: fastrand::Rng, nature: Nature, members: usize, servers: usize) -> World {
        let mut rng = rng;
        let nodes: Vec<Node> = (0..members)
            .map(|number| Node {
                name: Arc::from(format!("balancer-{number}.example")),
                address: SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 7_946)),
                process: None,
                serial: 0,
                rate: 0.99 + 0.02 * rng.f64(),
                offset: rng.u64(..1_000 * SECOND),
                wall_ms: rng.i64(-3_000..3_000),
                paused_until: 0,
                waiting: Vec::new(),
                since: 0,
                wakes_at: u64::MAX,
                group: 0,
                sent_bytes: 0,
                evidence: Vec::new(),
            })
            .collect();
        World {
            time: 0,
            rng,
            nodes,
            servers: (0..servers).map(|_| Server::default()).collect(),
            network: Network { loss: 0.0, duplication: 0.0, jitter: 1_000 },
            nature,
            figures: Figures::default(),
            failure: None,
            missed: HashSet::new(),
            checks: Rc::new(Checks::new(servers)),
            queue: BinaryHeap::new(),
            events: Vec::new(),
            free: Vec::new(),
            sequence: 0,
            disturbed_at: 0,
            disagreed_at: 0,
            calm_since: None,
            is_traced: std::env::var_os("FLEET_TRACE").is_some(),
        }
    }

    /// Notes a disturbance, which ends a calm stretch.
    pub(crate) fn disturbed(&mut self, what: impl FnOnce() -> String) {
        self.end_calm();
        self.disturbed_at = self.time;
        if self.is_traced {
            eprintln!("{:.3} s: {}", self.time as f64 / SECOND as f64, what());
        }
    }

    pub(crate) fn start(&mut self, at: usize) {
        self.disturbed(|| format!("{at} starts"));
        let mut start = StartId([0; StartId::BYTES]);
        self.rng.fill(&mut start.0);
        let node = &mut self.nodes[at];
        let own = Member {
            name: node.name.clone(),
            address: node.address,
            zone: Some(format!("zone-{}", at % ZONES).into()),
            host: node.name.clone(),
            start,
            version: 1,
        };
        let generation =
            (1_700_000_000_000 + self.time / 1_000).saturating_add_signed(node.wall_ms);
        let now = node.local(self.time);
        let fate = Fate {
            generation,
            seed: self.rng.u64(..),
            lies: self.nature.liar == Some(at),
            is_shown: self.nature.is_shown,
        };
        node.serial += 1;
        node.waiting.clear();
        (node.since, node.paused_until, node.wakes_at) = (self.time, 0, u64::MAX);
        let cuts = node.evidence.iter().map(|one| one.cut).chain(std::iter::repeat(None));
        node.evidence = cuts.take(self.servers.len()).map(|cut| Evidence::new(now, cut)).collect();
        let join: Vec<SocketAddr> = self.nodes.iter().take(3).map(|node| node.address).collect();
        let process = Process::begin(own, &self.checks, &join, fate, now);
        self.nodes[at].process = Some(process);
        self.follow(at, &[]);
    }

    pub(crate) fn crash(&mut self, at: usize) {
        self.disturbed(|| format!("{at} crashes"));
        self.nodes[at].process = None;
    }

    pub(crate) fn leave(&mut self, at: usize) {
        self.disturbed(|| format!("{at} leaves"));
        let now = self.nodes[at].local(self.time);
        if let Some(process) = &mut self.nodes[at].process {
            process.leave(now);
        }
        self.follow(at, &[]);
        self.nodes[at].process = None;
    }

    pub(crate) fn pause(&mut self, at: usize, time: u64) {
        self.disturbed(|| format!("{at} pauses for {time} µs"));
        let until = self.time + time;
        self.nodes[at].paused_until = until;
        self.nodes[at].wakes_at = until;
        self.push(until, Event::Wake(at));
    }

    pub(crate) fn set_dead(&mut self, server: usize, is_dead: bool) {
        let refuses = self.rng.bool();
        self.disturbed(|| format!("server {server} is dead: {is_dead}, refuses: {refuses}"));
        self.servers[server].set_dead(is_dead, self.time);
        self.servers[server].refuses = refuses;
    }

    /// Cuts the way of one process to a server for some time.
    pub(crate) fn cut(&mut self, at: usize, server: usize, time: u64) {
        self.disturbed(|| format!("{at} cannot reach server {server} for {time} µs"));
        let until = self.time + time;
        if let Some(evidence) = self.nodes[at].evidence.get_mut(server) {
            evidence.cut = Some((self.time, until));
        }
    }

    /// Runs for some time, or until something does not hold.
    pub(crate) fn run(&mut self, time: u64) {
        const STEP: u64 = SECOND / 4;
        let end = self.time + time;
        while self.time < end && self.failure.is_none() {
            let next = (self.time / STEP + 1) * STEP;
            self.run_until(next.min(end));
            if next <= end {
                self.sweep();
            }
        }
    }

    /// Ends the present calm stretch, if there is one, and judges it.
    pub(crate) fn end_calm(&mut self) {
        let Some(since) = self.calm_since.take() else { return };
        let stretch = self.time - since;
        if stretch < 4 * SECOND {
            return;
        }
        for server in 0..self.servers.len() {
            let judged = self.servers[server].on_calm(stretch, ZONES * PROBERS);
            self.judge(judged, || format!("server {server}"));
        }
        let live = self.nodes.iter().filter(|node| node.process.is_some());
        let sent = || live.clone().map(|node| node.sent_bytes);
        let most = sent().max().unwrap_or(0) as f64 * SECOND as f64 / stretch as f64;
        self.figures.calm_bytes_most = self.figures.calm_bytes_most.max(most);
        self.figures.calm_bytes += sent().sum::<u64>();
        self.figures.calm_time += stretch * live.count() as u64;
    }

    fn run_until(&mut self, end: u64) {
        let mut left = EVENTS_MAX;
        while let Some(&Reverse((at, _, place))) = self.queue.peek() {
            left -= 1;
            if left == 0 {
                let dues = self.waiting();
                self.judge(Err("time stands still".to_owned()), || dues);
            }
            if at > end || self.failure.is_some() {
                break;
            }
            self.queue.pop();
            self.time = at;
            self.figures.events += 1;
            self.free.push(place);
            match self.events[place].take() {
                Some(Event::Wake(node)) => self.wake(node),
                Some(event) => self.happen(event),
                None => unreachable!("an event without content"),
            }
        }
        self.time = end;
    }

    /// Returns what there is too much of.
    fn waiting(&self) -> String {
        let mut kinds = BTreeMap::new();
        for event in self.events.iter().flatten() {
            let kind = match event {
                Event::Wake(node) => format!("{node} wakes"),
                Event::Ended { node, .. } => format!("{node} ends a run"),
                Event::Deliver { to, datagram } => {
                    let head = datagram.payload.iter().take(2).collect::<Vec<_>>();
                    format!("{to} gets {head:?} of {}", datagram.start.0[0])
                }
            };
            *kinds.entry(kind).or_insert(0) += 1;
        }
        let mut kinds: Vec<_> = kinds.into_iter().map(|(kind, count)| (count, kind)).collect();
        kinds.sort_unstable();
        kinds.reverse();
        kinds.truncate(6);
        format!("{} events, {kinds:?}", self.queue.len())
    }

    fn push(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.queue.push(Reverse((at, self.sequence, place)));
    }

    fn wake(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.wakes_at != self.time || node.process.is_none() {
            return;
        }
        node.wakes_at = u64::MAX;
        if node.paused_until == self.time {
            self.resume(at);
        }
        self.tick(at);
    }

    fn tick(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let now = node.local(self.time);
        if let Some(process) = &mut node.process {
            process.tick(now);
        }
        self.follow(at, &[]);
    }

    /// Goes on after a pause: with what waits, or with the timers.
    fn resume(&mut self, at: usize) {
        let now = self.nodes[at].local(self.time);
        self.nodes[at].since = self.time;
        self.nodes[at].evidence.iter_mut().for_each(|one| one.on_pause(now));
        self.disturbed(|| format!("{at} goes on"));
        if self.rng.bool() {
            self.tick(at);
        }
        for event in std::mem::take(&mut self.nodes[at].waiting) {
            self.happen(event);
        }
    }

    /// Lets an event happen at its node, or wait there.
    fn happen(&mut self, event: Event) {
        let at = match &event {
            Event::Deliver { to, .. } => *to,
            Event::Ended { node, .. } => *node,
            Event::Wake(_) => return,
        };
        let node = &mut self.nodes[at];
        let now = node.local(self.time);
        let elapsed = match &event {
            Event::Ended { began, .. } => now.since(node.local(*began)),
            _ => Duration::ZERO,
        };
        let Some(process) = &mut node.process else { return };
        if node.paused_until > self.time {
            if node.waiting.len() < WAITING_MAX || matches!(event, Event::Ended { .. }) {
                node.waiting.push(event);
            }
            return;
        }
        match event {
            Event::Deliver { datagram, .. } => {
                process.on_datagram(datagram.start, &datagram.payload, now);
                self.follow(at, &datagram.ended);
            }
            Event::Ended { serial, server, result, .. } if serial == node.serial => {
                // A timer of the process ends a run that takes too long; it must not seem shorter.
                let elapsed = if result == Err(Failure::Timeout) { TIMEOUT } else { elapsed };
                node.evidence[server].on_ended(result.is_ok(), self.time, now);
                process.on_ended(server, elapsed, result, now);
                self.follow(at, &[]);
            }
            Event::Ended { .. } | Event::Wake(_) => {}
        }
    }

    /// Carries out what a process does, and sets its next wake-up. `ended` belongs to the datagram that it has read.
    fn follow(&mut self, at: usize, ended: &[(usize, u64)]) {
        let Some(process) = &mut self.nodes[at].process else { return };
        let mut actions = std::mem::take(&mut process.actions);
        for action in actions.drain(..) {
            self.act(at, action, ended);
        }
        let node = &mut self.nodes[at];
        let Some(process) = &mut node.process else { return };
        process.actions = actions;
        let due = process.next_due();
        let due = due.map_or(u64::MAX, |due| node.global(due).max(self.time + 1));
        if due < node.wakes_at {
            node.wakes_at = due;
            self.push(due, Event::Wake(at));
        }
    }

    fn act(&mut self, at: usize, action: Action, ended: &[(usize, u64)]) {
        let node = &mut self.nodes[at];
        let now = node.local(self.time);
        let Some(process) = &node.process else { return };
        match action {
            Action::Send { to, payload } => {
                let datagram = Datagram { start: process.start, payload, ended: Vec::new() };
                self.send(at, to, &Rc::new(datagram));
            }
            Action::Batch { payload, results } => {
                let truth = results
                    .iter()
                    .map(|(server, age)| Some((*server, node.evidence[*server].ended(*age, now)?)));
                let Some(truth) = truth.collect::<Option<Vec<_>>>() else {
                    let wrong = Err(format!("an age is wrong in {results:?}"));
                    return self.judge(wrong, || format!("member {at}"));
                };
                let datagram = Datagram { start: process.start, payload, ended: truth };
                let datagram = Rc::new(datagram);
                for to in process.peers.clone() {
                    self.send(at, to, &datagram);
                }
            }
            Action::Relies { server, standing } => {
                node.evidence[server].on_standing(&standing, now);
                let judged = node.evidence[server].check(self.time, now);
                self.judge(judged, || format!("member {at}, server {server}"));
            }
            Action::Runs { server } => {
                let judged = node.evidence[server].on_run(now);
                self.judge(judged, || format!("member {at}, server {server}"));
                self.probe(at, server);
            }
            Action::Counted { server, from, standing, decided } => {
                let evidence = &mut node.evidence[server];
                if let Some(from) = from {
                    let ended = ended.iter().rev().find(|(of, _)| *of == server);
                    evidence.on_heard(from, ended.map_or(0, |(_, ended)| *ended));
                }
                evidence.on_standing(&standing, now);
                let Some(decided) = decided else { return };
                self.figures.changes += 1;
                let nature = self.nature;
                let is_exact = nature.chance_failures == 0.0 && !nature.has_pauses;
                let it = &self.servers[server];
                let judged = evidence.on_decided(&decided, &standing, it, self.time, is_exact);
                self.note_change(at, server, decided.change.to);
                self.judge(judged, || format!("member {at}, server {server}"));
            }
        }
    }

    fn note_change(&mut self, at: usize, server: usize, to: Health) {
        let (node, it) = (&self.nodes[at], &self.servers[server]);
        if self.is_traced {
            eprintln!("{:.3} s: {at} has server {server} {to:?}", self.time as f64 / SECOND as f64);
        }
        if self.nature.keeps_copies && it.since > node.since && it.is_dead == (to == Health::Down) {
            let took = self.time - it.since;
            let figures = &mut self.figures;
            let slowest =
                if it.is_dead { &mut figures.slowest_down } else { &mut figures.slowest_up };
            *slowest = took.max(*slowest);
        }
    }

    /// Lets a process probe a server.
    fn probe(&mut self, at: usize, server: usize) {
        self.figures.runs += 1;
        let judged = self.servers[server].on_start(self.time, self.nodes.len());
        self.judge(judged, || format!("server {server}"));
        let way = self.rng.u64(100..5_000);
        let (it, node) = (&self.servers[server], &self.nodes[at]);
        let evidence = &node.evidence[server];
        let is_cut = evidence.cut.is_some_and(|(from, to)| (from..to).contains(&self.time));
        let timeout = (TIMEOUT.as_micros() as f64 / node.rate) as u64;
        let refused = Err(Failure::Status(503));
        let (takes, result) = match () {
            () if is_cut || it.is_dead && !it.refuses => (timeout, Err(Failure::Timeout)),
            () if it.is_dead => (2 * way, refused),
            () if self.nature.chance_failures > 0.0
                && evidence.may_fail()
                && self.rng.f64() < self.nature.chance_failures =>
            {
                (2 * way, refused)
            }
            () => (2 * way + it.takes, Ok(())),
        };
        let (serial, began) = (node.serial, self.time);
        self.push(began + takes, Event::Ended { node: at, serial, server, began, result });
    }

    fn send(&mut self, from: usize, to: SocketAddr, datagram: &Rc<Datagram>) {
        self.nodes[from].sent_bytes += datagram.payload.len() as u64 + SEAL_BYTES;
        let SocketAddr::V4(to) = to else { return };
        let to = (to.ip().to_bits() & 0xffff) as usize;
        if self.nodes[from].group != self.nodes[to].group {
            return;
        }
        let Network { loss, duplication, jitter } = self.network;
        let copies = 1 + usize::from(duplication > 0.0 && self.rng.f64() < duplication);
        // Each pair of nodes has a delay of its own, up to 10 ms.
        let link = 100 + (from.min(to) as u64 * 7_919 + from.max(to) as u64 * 104_729) % 9_900;
        for _ in 0..copies {
            if self.rng.f64() >= loss || self.must_arrive(from, to, &datagram.ended) {
                let at = self.time + link + self.rng.u64(..=jitter);
                self.push(at, Event::Deliver { to, datagram: Rc::clone(datagram) });
            }
        }
    }

    /// Returns whether a datagram would be the second loss of a result; otherwise, it is lost.
    fn must_arrive(&mut self, from: usize, to: usize, ended: &[(usize, u64)]) -> bool {
        if !self.nature.keeps_copies {
            return false;
        }
        let results = ended.iter().map(|(server, ended)| (from, to, *server, *ended));
        if results.clone().any(|result| self.missed.contains(&result)) {
            return true;
        }
        self.missed.extend(results);
        false
    }

    /// Checks what must hold at any time.
    fn sweep(&mut self) {
        let limits = match (self.nature.is_calm, self.nature.keeps_copies) {
            (true, true) => Limits::calm(),
            (true, false) => Limits::lossy(),
            (false, _) => Limits::any(),
        };
        let mut wrong = None;
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let now = node.local(self.time);
            let Some(process) = &node.process else { continue };
            if node.paused_until > self.time {
                continue;
            }
            for (server, it) in self.servers.iter().enumerate() {
                let evidence = &mut node.evidence[server];
                let health = if it.is_dead { Health::Down } else { Health::Up };
                let cut_until = evidence.cut.map_or(0, |(_, until)| until);
                let since = it.since.max(node.since).max(cut_until);
                let has = process.health(server);
                // A failure by chance ends a row of successes, so that it takes longer.
                let is_bound = health == Health::Down || self.nature.chance_failures == 0.0;
                let is_late = is_bound && since + limits.of(health) < self.time && has != health;
                if let Err(what) = evidence.check(self.time, now) {
                    wrong = Some((at, server, what));
                } else if is_late {
                    let late = (self.time - since) as f64 / SECOND as f64;
                    wrong = Some((at, server, format!("{has:?} after {late:.2} s")));
                }
            }
        }
        if let Some((at, server, what)) = wrong {
            self.judge(Err(what), || format!("member {at}, server {server}"));
        }
        self.look_for_calm();
    }

    /// Begins a calm stretch once it is one. The lists must have been complete for a moment, too.
    fn look_for_calm(&mut self) {
        let live = self.nodes.iter().filter(|node| node.process.is_some()).count();
        let is_listed = |node: &Node| {
            node.process
                .as_ref()
                .is_none_or(|process| process.membership.members().len() + 1 == live)
        };
        if !self.nodes.iter().all(is_listed) {
            self.disagreed_at = self.time;
        }
        let nature = &self.nature;
        let is_calm = self.disturbed_at + CALM_AFTER <= self.time
            && self.disagreed_at + CALM_AFTER / 2 <= self.time
            && self.network.loss <= 0.05
            && nature.liar.is_none()
            && nature.chance_failures == 0.0;
        if is_calm && self.calm_since.is_none() {
            self.calm_since = Some(self.time);
            self.nodes.iter_mut().for_each(|node| node.sent_bytes = 0);
            self.servers.iter_mut().for_each(|server| server.calm_starts = 0);
        }
    }

    fn judge(&mut self, judged: Result<(), String>, who: impl FnOnce() -> String) {
        if let Err(what) = judged {
            let seconds = self.time as f64 / SECOND as f64;
            self.failure.get_or_insert_with(|| format!("at {seconds:.3} s, {}: {what}", who()));
        }
    }
}
