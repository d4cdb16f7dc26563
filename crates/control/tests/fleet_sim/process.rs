//! One balancer of a fleet: what `control` does with membership, exchange, plan and tallies, without
//! sockets, seals and tasks. It does the same as these, and must follow them:
//!
//! - `crates/control/src/fleet/member.rs` (`on_datagram`, `flush`, `apply_members`, `tick`),
//! - `crates/control/src/probe/mod.rs` (`start_due`, `on_message`, `on_shared`, the end of `Run::wait`),
//! - `crates/control/src/watch.rs` (`on_heard`, with one consumer for each server),
//! - `crates/control/src/run.rs` (`tick`: first the fleet, then the probes).

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fleet::{Membership, Message, Output, StartId};
use health::plan::{Consumer, ConsumerId, Plan, ProbeId};
use health::shared::assignment::{self, MemberIndex};
use health::shared::belief::{Duty, Standing};
use health::shared::exchange::Exchange;
use health::shared::identity::{ProbeHash, ProbeHasher};
use health::shared::result::{Heard, Outcome};
use health::shared::tally::{Decided, Tally};
use health::shared::wire;
use health::verdict::{Failure, ProbeEvent, ServerLoad};
use model::{Address, Check, CheckKind, Health, HttpVersion, Moment, ProbeIdentity, ProbeSpec};

pub(crate) const INTERVAL: Duration = Duration::from_secs(2);
pub(crate) const TIMEOUT: Duration = Duration::from_millis(500);
pub(crate) const RISE: u32 = 2;
pub(crate) const FALL: u32 = 3;
/// Probers of each probe in a zone.
pub(crate) const PROBERS: usize = 2;

/// Derived from the fleet's secret in `control`.
const KEY: [u8; 32] = [7; 32];
/// As in `control::fleet`: how often the state for status pages is updated, which asks for all duties.
const SHOW_EVERY: Duration = Duration::from_secs(1);
const IDLE: ServerLoad = ServerLoad { at_limit: false, answered_since_start: false };

/// The checks of all members.
pub(crate) struct Checks {
    consumers: Vec<Consumer>,
    by_name: HashMap<ProbeHash, usize>,
}

/// What a process does, in order.
pub(crate) enum Action {
    /// Sends a payload.
    Send { to: SocketAddr, payload: Rc<[u8]> },
    /// Sends results to each of the peers: of which servers, and how old it says they are.
    Batch { payload: Rc<[u8]>, results: Vec<(usize, Duration)> },
    /// It is the turn of a probe, and the process relies on others.
    Relies { server: usize, standing: Standing },
    /// It starts a probe.
    Runs { server: usize },
    /// It has counted an own result, or (with a member) that of another.
    Counted {
        server: usize,
        from: Option<MemberIndex>,
        standing: Standing,
        decided: Option<Decided>,
    },
}

/// A process that runs.
pub(crate) struct Process {
    pub(crate) membership: Membership,
    pub(crate) start: StartId,
    pub(crate) peers: Vec<SocketAddr>,
    pub(crate) actions: Vec<Action>,
    checks: Rc<Checks>,
    exchange: Exchange,
    plan: Plan,
    tallies: Vec<Tally>,
    /// The probe of each server.
    ids: Vec<ProbeId>,
    servers: HashMap<ProbeId, usize>,
    names: HashMap<StartId, Arc<str>>,
    is_changed: bool,
    /// It tells others the contrary of what it finds.
    lies: bool,
    show_at: Option<Moment>,
}

/// What is drawn for a process.
pub(crate) struct Fate {
    pub(crate) generation: u64,
    pub(crate) seed: u64,
    pub(crate) lies: bool,
    /// It updates a status page.
    pub(crate) is_shown: bool,
}

impl Checks {
    pub(crate) fn new(servers: usize) -> Checks {
        let check = Arc::new(check());
        let mut hasher = ProbeHasher::new(&KEY);
        let mut checks = Checks { consumers: Vec::new(), by_name: HashMap::new() };
        for server in 0..servers {
            let ip = Ipv4Addr::from_bits(0x0a80_0000 + server as u32);
            let spec = ProbeSpec {
                kind: CheckKind::Tcp,
                tls: None,
                http: HttpVersion::Http11,
                send_proxy: None,
            };
            let address = Address::Ip(SocketAddr::from((ip, 80)));
            let probe = Arc::new(ProbeIdentity { address, spec });
            checks.by_name.insert(hasher.hash(&probe), server);
            let (id, service) = (ConsumerId(server as u64), "web".into());
            checks.consumers.push(Consumer { id, service, check: Arc::clone(&check), probe });
        }
        checks
    }
}

fn check() -> Check {
    Check {
        kind: CheckKind::Tcp,
        port: None,
        clear_text: false,
        http: None,
        interval: INTERVAL,
        timeout: TIMEOUT,
        rise: RISE,
        fall: FALL,
    }
}

impl Process {
    pub(crate) fn begin(
        own: fleet::Member,
        checks: &Rc<Checks>,
        join: &[SocketAddr],
        fate: Fate,
        now: Moment,
    ) -> Process {
        let mut exchange = Exchange::new(&[KEY], shared(&own), PROBERS);
        let start = own.start;
        let mut membership = Membership::new(own, fate.generation, fate.seed, now).unwrap();
        membership.join(join, now);
        let consumers = checks.consumers.clone();
        let plan = Plan::new(consumers, now, fastrand::Rng::with_seed(fate.seed ^ 1));
        exchange.follow(plan.probes(), now);
        let ids = checks.consumers.iter().map(|one| plan.id_of(&one.probe).unwrap());
        let ids: Vec<ProbeId> = ids.collect();
        let servers = ids.iter().enumerate().map(|(server, id)| (*id, server)).collect();
        let tally = Tally::new(&check(), Health::Unknown);
        let mut process = Process {
            membership,
            start,
            peers: Vec::new(),
            actions: Vec::new(),
            checks: Rc::clone(checks),
            exchange,
            plan,
            tallies: vec![tally; ids.len()],
            ids,
            servers,
            names: HashMap::new(),
            is_changed: false,
            lies: fate.lies,
            show_at: fate.is_shown.then_some(now),
        };
        process.flush();
        process
    }

    pub(crate) fn health(&self, server: usize) -> Health {
        self.tallies[server].health()
    }

    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.dues().into_iter().flatten().min()
    }

    /// Of the membership, the exchange, the plan and the status page.
    pub(crate) fn dues(&self) -> [Option<Moment>; 4] {
        [self.membership.next_due(), self.exchange.next_due(), self.plan.next_due(), self.show_at]
    }

    pub(crate) fn on_datagram(&mut self, start: StartId, payload: &[u8], now: Moment) {
        match Message::read(payload) {
            Some(Message::Membership(bytes)) => {
                self.membership.on_datagram(bytes, now);
                self.flush();
            }
            Some(Message::Other { kind: Message::CHECKS, bytes }) => {
                let Some(name) = self.names.get(&start) else { return };
                let received = self.exchange.on_batch(name, start.low(), bytes, now).unwrap();
                for one in received {
                    let server = self.servers[&one.probe];
                    let tally = &mut self.tallies[server];
                    let decided = tally.on_heard(one.from, &one.heard, IDLE, &one.standing);
                    let (from, standing) = (Some(one.from), one.standing);
                    self.actions.push(Action::Counted { server, from, standing, decided });
                }
            }
            other => panic!("{other:?}"),
        }
        self.apply_members(now);
    }

    pub(crate) fn on_ended(
        &mut self,
        server: usize,
        elapsed: Duration,
        result: Result<(), Failure>,
        now: Moment,
    ) {
        let id = self.ids[server];
        let elapsed = elapsed.min(TIMEOUT);
        self.exchange.on_own(id, elapsed, result, now);
        let standing = self.exchange.standing(id, now);
        self.plan.finished(id);
        let event = ProbeEvent::Done { elapsed, result };
        let decided = self.tallies[server].on_own(event, IDLE, &standing);
        self.actions.push(Action::Counted { server, from: None, standing, decided });
    }

    pub(crate) fn tick(&mut self, now: Moment) {
        if self.membership.next_due().is_some_and(|due| due <= now) {
            self.membership.on_timer(now);
            self.flush();
        }
        self.apply_members(now);
        for batch in self.exchange.batches(now) {
            self.send_batch(&batch);
        }
        if self.show_at.is_some_and(|at| at <= now) {
            self.show_at = Some(now + SHOW_EVERY);
            self.exchange.shares(now);
        }
        for id in self.plan.due(now, usize::MAX) {
            let server = self.servers[&id];
            if self.exchange.duty(id, now) == Duty::Rely {
                self.plan.finished(id);
                let standing = self.exchange.standing(id, now);
                self.actions.push(Action::Relies { server, standing });
            } else {
                self.actions.push(Action::Runs { server });
            }
        }
    }

    pub(crate) fn leave(&mut self, now: Moment) {
        self.membership.leave(now);
        self.flush();
    }

    fn send_batch(&mut self, batch: &[u8]) {
        let mut entries: Vec<(ProbeHash, Heard)> = wire::decode(batch).unwrap().collect();
        let by_name = &self.checks.by_name;
        let results = entries.iter().map(|(name, heard)| (by_name[name], heard.age_at_sending));
        let results = results.collect();
        let mut lie = Vec::new();
        if self.lies {
            for (_, heard) in &mut entries {
                *heard = contrary(heard);
            }
            wire::encode(&entries, &mut lie);
        }
        let mut payload = Vec::with_capacity(batch.len() + 1);
        let bytes = if self.lies { &lie } else { batch };
        Message::Other { kind: Message::CHECKS, bytes }.write(&mut payload);
        self.actions.push(Action::Batch { payload: payload.into(), results });
    }

    fn flush(&mut self) {
        while let Some(output) = self.membership.next_output() {
            match output {
                Output::Send { to, payload } => {
                    self.actions.push(Action::Send { to, payload: payload.into() });
                }
                Output::Joined(member) => {
                    self.names.insert(member.start, member.name);
                    self.is_changed = true;
                }
                Output::Left(member) => {
                    self.names.remove(&member.start);
                    self.is_changed = true;
                }
            }
        }
    }

    fn apply_members(&mut self, now: Moment) {
        if !std::mem::take(&mut self.is_changed) {
            return;
        }
        self.exchange.set_members(self.membership.members().map(shared), now);
        let own = self.membership.own();
        let peers = self.membership.members().filter(|other| other.zone == own.zone);
        self.peers = peers.map(|other| other.address).collect();
    }
}

/// Returns the worst lie about a result.
fn contrary(heard: &Heard) -> Heard {
    let outcome = match heard.outcome {
        Outcome::Success => Outcome::Failure(Failure::Status(500)),
        _ => Outcome::Success,
    };
    Heard { outcome, elapsed: Duration::from_millis(1), in_a_row: 255, ..*heard }
}

fn shared(member: &fleet::Member) -> assignment::Member {
    assignment::Member {
        name: Arc::clone(&member.name),
        zone: member.zone.clone(),
        host: Arc::clone(&member.host),
        start: member.start.low(),
    }
}
