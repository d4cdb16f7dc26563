//! A fleet in virtual time, in steps of a millisecond.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use lend::{Lending, MemberAt, ServerLimit, Slots, Standing, Usage};
use model::{Moment, mix};

/// The limits of the servers.
pub(crate) const LIMITS: [u32; 4] = [4, 1, 9, 4];
/// The longest request.
const REQUEST_MAX_MS: u64 = 4_000;
/// How long a process that ends serves what it has.
const END_MS: u64 = 2_000;

/// A process: its slots, and its side of the fleet.
pub(crate) struct Process {
    at: MemberAt,
    lending: Lending,
    /// Its clock: so fast, from this number of milliseconds.
    speed: f64,
    base_ms: u64,
    born: u64,
    servers: Vec<Local>,
    /// Which of them it knows: those configured, and those that still have requests.
    known: Vec<usize>,
    pub(crate) served: u64,
    demand: u32,
    request_ms: u64,
    listed: BTreeSet<SocketAddr>,
    view: BTreeSet<MemberAt>,
    /// When the process ends by itself.
    ends: Option<u64>,
}

/// A server as one process uses it.
#[derive(Default)]
struct Local {
    is_configured: bool,
    allowed: u32,
    /// When each request in flight ends.
    ends: Vec<u64>,
    waiting: u32,
}

struct Locals<'a>(&'a mut [Local], &'a [usize]);

impl Slots for Locals<'_> {
    fn usage(&mut self, at: usize) -> Usage {
        let Local { allowed, ends, waiting, .. } = &self.0[self.1[at]];
        Usage { allowed: *allowed, in_flight: ends.len() as u32, waiting: *waiting }
    }

    fn allow(&mut self, at: usize, allowed: u32) -> u32 {
        let server = &mut self.0[self.1[at]];
        server.allowed = allowed;
        server.ends.len() as u32
    }
}

impl Process {
    fn new(
        at: MemberAt,
        rng: &mut fastrand::Rng,
        time: u64,
        listed: BTreeSet<SocketAddr>,
    ) -> Process {
        let mut process = Process {
            at,
            lending: Lending::new(at, Moment::ZERO),
            speed: 0.99 + 0.02 * rng.f64(),
            base_ms: rng.u64(0..100_000),
            born: time,
            servers: LIMITS
                .iter()
                .map(|_| Local { is_configured: true, ..Local::default() })
                .collect(),
            known: Vec::new(),
            served: 0,
            demand: 0,
            request_ms: 50,
            listed,
            view: BTreeSet::new(),
            ends: None,
        };
        let now = process.now(time);
        process.lending = Lending::new(at, now);
        process.lending.set_listed(process.listed.clone(), now);
        process.follow_servers(now);
        process
    }

    fn follow_servers(&mut self, now: Moment) {
        let servers = self.servers.iter().enumerate();
        let known = servers.filter(|(_, one)| one.is_configured || !one.ends.is_empty());
        self.known = known.map(|(at, _)| at).collect();
        let limits = self.known.iter().map(|&at| ServerLimit {
            key: mix(at as u64),
            max: if self.servers[at].is_configured { LIMITS[at] } else { 0 },
            request_max: Duration::from_millis(REQUEST_MAX_MS),
        });
        self.lending.set_servers(&limits.collect::<Vec<_>>(), now);
    }

    /// Adds or removes a server of its configuration.
    fn change_server(&mut self, at: usize, time: u64) {
        let server = &mut self.servers[at];
        server.is_configured = !server.is_configured;
        (server.allowed, server.waiting) = (0, 0);
        let now = self.now(time);
        self.follow_servers(now);
    }

    fn turn(&mut self, now: Moment) -> Vec<(MemberAt, Vec<u8>)> {
        self.lending.turn(&mut Locals(&mut self.servers, &self.known), now)
    }

    fn now(&self, time: u64) -> Moment {
        let own = (time - self.born) as f64 * self.speed * 1_000.0;
        Moment::from_micros(self.base_ms * 1_000 + own as u64)
    }

    /// Ends and starts requests.
    fn serve(&mut self, time: u64, rng: &mut fastrand::Rng) {
        let is_news = self.servers.iter_mut().fold(false, |is_news, server| {
            let before = server.ends.len();
            server.ends.retain(|ends| *ends > time);
            self.served += (before - server.ends.len()) as u64;
            let was_over = before as u32 > server.allowed && server.ends.len() < before;
            let wanted = if server.is_configured { self.demand } else { 0 };
            while (server.ends.len() as u32) < server.allowed.min(wanted) {
                let takes = if self.request_ms > 0 { self.request_ms } else { rng.u64(1..300) };
                let takes =
                    if self.request_ms == 0 && rng.u8(..) < 16 { REQUEST_MAX_MS } else { takes };
                server.ends.push(time + takes);
            }
            let waited = server.waiting;
            server.waiting = wanted.saturating_sub(server.ends.len() as u32);
            is_news || was_over || waited == 0 && server.waiting > 0
        });
        let has_drained = |at: &usize| {
            let server = &self.servers[*at];
            !server.is_configured && server.ends.is_empty()
        };
        if self.known.iter().any(has_drained) {
            let now = self.now(time);
            self.follow_servers(now);
        }
        if is_news {
            let now = self.now(time);
            self.lending.hurry(now);
        }
    }
}

struct Datagram {
    from: MemberAt,
    to: MemberAt,
    bytes: Vec<u8>,
}

pub(crate) struct World {
    seed: u64,
    pub(crate) rng: fastrand::Rng,
    time: u64,
    processes: BTreeMap<SocketAddr, Process>,
    /// Processes that end, beside the next one at their address.
    ending: Vec<Process>,
    datagrams: BTreeMap<(u64, u64), Datagram>,
    sent: u64,
    loss: f64,
    late_ms: u64,
    /// Members of the one side of a partition.
    cut: BTreeSet<SocketAddr>,
    cut_at: u64,
    /// Requests in flight, added up over milliseconds.
    pub(crate) used: u64,
    is_static: bool,
    request_ms: u64,
}

fn address(n: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 1_000 + n as u16))
}

impl World {
    pub(crate) fn new(seed: u64, members: usize, request_ms: u64) -> World {
        let mut world = World {
            seed,
            rng: fastrand::Rng::with_seed(seed),
            time: 0,
            processes: BTreeMap::new(),
            ending: Vec::new(),
            datagrams: BTreeMap::new(),
            sent: 0,
            loss: 0.0,
            late_ms: 2,
            cut: BTreeSet::new(),
            cut_at: 0,
            used: 0,
            is_static: true,
            request_ms,
        };
        let listed: BTreeSet<SocketAddr> = (0..members).map(address).collect();
        for n in 0..members {
            world.start(address(n), listed.clone());
        }
        world
    }

    fn start(&mut self, address: SocketAddr, listed: BTreeSet<SocketAddr>) {
        let start = self.rng.u128(..).to_le_bytes();
        let at = MemberAt { address, start };
        let mut process = Process::new(at, &mut self.rng, self.time, listed);
        process.request_ms = self.request_ms;
        self.processes.insert(address, process);
    }

    pub(crate) fn size(&self) -> usize {
        self.processes.len()
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Process> {
        self.processes.values()
    }

    pub(crate) fn member(&self, n: usize) -> &Process {
        self.processes.values().nth(n).expect("a member")
    }

    pub(crate) fn demand(&mut self, of: Range<usize>, demand: u32) {
        let processes = self.processes.values_mut().skip(of.start).take(of.len());
        processes.for_each(|process| process.demand = demand);
    }

    /// Some members, with a list of all, or with lists that grow as members come.
    pub(crate) fn random_fleet(&mut self) {
        let members = self.rng.usize(1..7);
        self.is_static = self.rng.bool();
        let listed: BTreeSet<SocketAddr> = (0..members).map(address).collect();
        for n in 0..members {
            if n == 0 || !self.is_static || self.rng.u8(..) < 200 {
                let listed = if self.is_static { listed.clone() } else { [address(0)].into() };
                self.start(address(n), listed);
            }
            if !self.is_static {
                // One after another: a member that starts finds the others.
                self.run_ms(3_000);
            }
        }
    }

    pub(crate) fn random_change(&mut self) {
        let addresses: Vec<SocketAddr> = self.processes.keys().copied().collect();
        let Some(&one) = addresses.get(self.rng.usize(..addresses.len().max(1))) else { return };
        match self.rng.u8(..14) {
            0..=4 => {
                let demand = *self.rng.choice(&[0, 0, 1, 2, 5, 20]).unwrap();
                self.processes.get_mut(&one).unwrap().demand = demand;
            }
            5 => self.loss = *self.rng.choice(&[0.0, 0.0, 0.05, 0.4]).unwrap(),
            6 => self.late_ms = *self.rng.choice(&[1, 2, 50, 400]).unwrap(),
            7 if self.cut.is_empty() => {
                self.cut = addresses.iter().filter(|_| self.rng.bool()).copied().collect();
                self.cut_at = self.time;
            }
            7 | 8 => self.cut.clear(),
            // Not while messages may be cut off: both at once may exceed a limit for a moment.
            9 if self.cut.is_empty() && self.loss < 0.1 && self.size() > 1 => {
                self.restart(one, false);
            }
            10 if self.cut.is_empty() && self.loss < 0.1 => self.restart(one, true),
            11 if !self.is_static && self.cut.is_empty() && self.loss < 0.1 && self.size() < 9 => {
                let new = address(100 + self.time as usize % 1_000);
                if !self.processes.contains_key(&new) {
                    self.start(new, [one].into());
                }
            }
            12 | 13 => {
                let (at, time) = (self.rng.usize(..LIMITS.len()), self.time);
                self.processes.get_mut(&one).unwrap().change_server(at, time);
            }
            _ => {}
        }
    }

    /// A process crashes or ends, and another one begins at its address.
    fn restart(&mut self, one: SocketAddr, is_end: bool) {
        self.quiet();
        let mut old = self.processes.remove(&one).expect("a member");
        let listed = old.listed.clone();
        if is_end {
            let now = old.now(self.time);
            old.lending.end(Duration::from_millis(END_MS), now);
            let messages = old.turn(now);
            old.lending.retire(&mut Locals(&mut old.servers, &old.known));
            old.ends = Some(self.time + END_MS);
            self.send(old.at, messages);
            // It serves on, and the others no longer see it.
            self.ending.push(old);
            self.run_ms(END_MS + 100);
        }
        self.start(one, listed);
        self.run_ms(3_000);
    }

    /// Messages of before a restart have arrived.
    fn quiet(&mut self) {
        let late = std::mem::replace(&mut self.late_ms, 2);
        self.run_ms(late + 5_000);
    }

    pub(crate) fn calm(&mut self) {
        (self.loss, self.late_ms) = (0.0, 2);
        self.cut.clear();
        self.demand(0..self.size(), 0);
        let time = self.time;
        for process in self.processes.values_mut() {
            for at in 0..LIMITS.len() {
                if !process.servers[at].is_configured {
                    process.change_server(at, time);
                }
            }
        }
    }

    fn is_cut(&self, one: SocketAddr, other: SocketAddr) -> bool {
        self.cut.contains(&one) != self.cut.contains(&other)
    }

    pub(crate) fn run_ms(&mut self, ms: u64) {
        for _ in 0..ms {
            self.step();
        }
    }

    fn step(&mut self) {
        self.time += 1;
        let time = self.time;
        self.deliver();
        if time.is_multiple_of(100) {
            self.update_views();
        }
        let mut out = Vec::new();
        for process in self.processes.values_mut() {
            process.serve(time, &mut self.rng);
            let now = process.now(time);
            if process.lending.next_due() <= now {
                out.push((process.at, process.turn(now)));
            }
        }
        for (from, messages) in out {
            self.send(from, messages);
        }
        self.ending.retain(|process| process.ends.is_some_and(|ends| ends > time));
        self.ending.iter_mut().for_each(|process| process.serve(time, &mut self.rng));
        for (at, max) in LIMITS.iter().enumerate() {
            let all = self.processes.values().chain(&self.ending);
            let in_flight: usize = all.map(|process| process.servers[at].ends.len()).sum();
            self.used += in_flight as u64;
            assert!(
                in_flight <= *max as usize,
                "seed {}, {time} ms: {in_flight} in flight at server {at}, limit {max}; {}",
                self.seed,
                self.described()
            );
        }
    }

    fn send(&mut self, from: MemberAt, messages: Vec<(MemberAt, Vec<u8>)>) {
        for (to, bytes) in messages {
            if self.is_cut(from.address, to.address) || self.rng.f64() < self.loss {
                continue;
            }
            self.sent += 1;
            let arrives = self.time + self.rng.u64(1..=self.late_ms);
            self.datagrams.insert((arrives, self.sent), Datagram { from, to, bytes });
        }
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.datagrams.first_entry()
            && entry.key().0 <= self.time
        {
            let Datagram { from, to, bytes } = entry.remove();
            if self.is_cut(from.address, to.address) {
                continue;
            }
            let Some(process) = self.processes.get_mut(&to.address) else { continue };
            if process.at == to {
                let now = process.now(self.time);
                process.lending.on_message(from, &bytes, now).expect("a message");
            }
        }
    }

    /// Members find each other within a tenth of a second, and miss those that are cut off after five seconds.
    fn update_views(&mut self) {
        let known: Vec<MemberAt> = self.processes.values().map(|process| process.at).collect();
        for address in self.processes.keys().copied().collect::<Vec<_>>() {
            let is_late = self.time - self.cut_at < 5_000;
            let seen = known.iter().filter(|other| !self.is_cut(address, other.address) || is_late);
            let view: BTreeSet<MemberAt> =
                seen.filter(|other| other.address != address).copied().collect();
            let process = self.processes.get_mut(&address).expect("a member");
            if process.view != view {
                let now = process.now(self.time);
                let live: Vec<MemberAt> = view.iter().copied().collect();
                process.lending.set_live(&live, now);
                process.view = view;
            }
        }
    }

    /// Returns the shares of all members at all servers together.
    pub(crate) fn shares(&self) -> u32 {
        self.standings().map(|standing| standing.share).sum()
    }

    /// Returns how many slots are lent and borrowed.
    pub(crate) fn lent(&self) -> u32 {
        self.standings().map(|standing| standing.lent + standing.borrowed).sum()
    }

    fn standings(&self) -> impl Iterator<Item = Standing> {
        let all = self.processes.values();
        all.flat_map(|one| (0..one.known.len()).map(|place| one.lending.standing(place)))
    }

    pub(crate) fn described(&self) -> String {
        let lines = self.processes.values().map(|process| {
            let servers = process.servers.iter().enumerate().map(|(at, local)| {
                let place = process.known.iter().position(|known| *known == at);
                let standing = place.map(|place| process.lending.standing(place));
                let (used, allowed) = (local.ends.len(), local.allowed);
                format!("{used}/{allowed} of {standing:?}")
            });
            let servers: Vec<String> = servers.collect();
            let settled = process.lending.is_settled();
            format!("{} settled {settled}: {}", process.at.address, servers.join("; "))
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
