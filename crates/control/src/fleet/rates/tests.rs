//! Fleets that share rate limits, in virtual time: the tables of each member's workers, and a network that delays,
//! loses and cuts off. Each schedule follows from a seed, which a failure prints (`SEED=7` repeats it).

use std::collections::BTreeMap;
use std::time::Duration;

use decide::rate;
use fleet::StartId;
use model::RateKey;

use super::*;

const STEP: Duration = Duration::from_millis(1);

/// Part of the messages that a network loses, and the longest time that others take.
#[derive(Clone, Copy, Debug)]
struct Network {
    loss: f64,
    delay_ms_max: u64,
}

const LAN: Network = Network { loss: 0.0, delay_ms_max: 2 };

fn limit(requests: u32, per: Duration, burst: u32) -> RateLimit {
    RateLimit {
        name: "a".into(),
        by: RateKey::Client,
        scope: LimitScope::Fleet,
        requests,
        per,
        burst,
        wait_max: Duration::ZERO,
        is_announced: false,
    }
}

struct Node {
    member: fleet::Member,
    registry: Arc<Registry>,
    rates: SharedRates,
    /// Which side of a partition it is on.
    side: usize,
    /// Parts of requests that have not come yet, by client.
    due: BTreeMap<u64, f64>,
    passed: u64,
}

/// A fleet with one limit.
struct World {
    now: Moment,
    limit: RateLimit,
    network: Network,
    nodes: Vec<Node>,
    /// When which message arrives from which member at which.
    on_the_way: Vec<(Moment, usize, usize, Vec<u8>)>,
    rng: fastrand::Rng,
    /// Bytes of messages.
    sent_bytes: u64,
}

impl World {
    fn new(members: usize, limit: RateLimit, network: Network, seed: u64) -> World {
        let now = Moment::from_millis(1_000_000);
        let of = |at: usize| fleet::Member {
            name: format!("m{at}").into(),
            address: SocketAddr::from(([10, 0, (at / 250) as u8, (at % 250) as u8], 7946)),
            zone: None,
            host: "h".into(),
            start: StartId([at as u8 + 1; 16]),
            version: 1,
        };
        let nodes: Vec<Node> = (0..members)
            .map(|at| {
                let registry = Arc::new(Registry::with_seed(1));
                let mut rates = SharedRates::new(Arc::clone(&registry), &of(at), now);
                rates.set_key(&Key::from_secret(&[7; 32]).unwrap()).unwrap();
                rates.quota.set_limits([(limit_id("r", &limit), limit.clone())]);
                Node { member: of(at), registry, rates, side: 0, due: BTreeMap::new(), passed: 0 }
            })
            .collect();
        let rng = fastrand::Rng::with_seed(seed);
        let on_the_way = Vec::new();
        let mut world = World { now, limit, network, nodes, on_the_way, rng, sent_bytes: 0 };
        world.split(|_| 0);
        world
    }

    /// Divides the fleet. Each member lists all.
    fn split(&mut self, side: impl Fn(usize) -> usize) {
        let all: Vec<fleet::Member> = self.nodes.iter().map(|node| node.member.clone()).collect();
        let listed: Vec<SocketAddr> = all.iter().map(|one| one.address).collect();
        for (at, node) in self.nodes.iter_mut().enumerate() {
            node.side = side(at);
            let here = all
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at && side(*other) == side(at));
            node.rates.set_listed(&listed);
            node.rates.set_live(here.map(|(_, one)| one));
        }
    }

    /// Runs for a time with so many requests a second from each client at each member. Returns how many passed.
    fn run(&mut self, time: Duration, per_s: impl Fn(usize, u64) -> f64, clients: u64) -> u64 {
        let until = self.now + time;
        let before: u64 = self.nodes.iter().map(|node| node.passed).sum();
        while self.now < until {
            self.now = self.now + STEP;
            self.deliver();
            for at in 0..self.nodes.len() {
                self.requests(at, &per_s, clients);
                self.turn(at);
            }
        }
        self.nodes.iter().map(|node| node.passed).sum::<u64>() - before
    }

    fn requests(&mut self, at: usize, per_s: &impl Fn(usize, u64) -> f64, clients: u64) {
        let node = &mut self.nodes[at];
        for client in 0..clients {
            let due = node.due.entry(client).or_insert_with(|| self.rng.f64());
            // Between nothing and twice the mean.
            *due += per_s(at, client) * STEP.as_secs_f64() * 2.0 * self.rng.f64();
            while *due >= 1.0 {
                *due -= 1.0;
                let table = node.registry.rate();
                let part = table.part_key(LimitScope::Fleet).of_value(Some(&client.to_le_bytes()));
                let key = rate::key("r", &self.limit, part);
                let taken = table.take("r", &self.limit, key, self.now);
                node.passed += u64::from(taken.is_ok());
            }
        }
    }

    fn turn(&mut self, at: usize) {
        for bytes in self.nodes[at].rates.tick(self.now) {
            for to in (0..self.nodes.len()).filter(|&to| to != at) {
                if self.nodes[to].side == self.nodes[at].side {
                    self.sent_bytes += bytes.len() as u64;
                    if self.rng.f64() >= self.network.loss {
                        let delay =
                            Duration::from_millis(self.rng.u64(0..=self.network.delay_ms_max));
                        self.on_the_way.push((self.now + delay, at, to, bytes.clone()));
                    }
                }
            }
        }
    }

    fn deliver(&mut self) {
        let now = self.now;
        for (_, from, to, bytes) in self.on_the_way.extract_if(.., |(at, ..)| *at <= now) {
            let from = self.nodes[from].member.clone();
            assert!(self.nodes[to].rates.on_message(&from, &bytes, now));
        }
    }
}

fn seed() -> u64 {
    let seed =
        std::env::var("SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    seed
}

/// Runs a fleet under a steady load, 10 s after 3 s; returns the requests that passed per second.
fn steady(
    members: usize,
    limit: &RateLimit,
    network: Network,
    per_s: impl Fn(usize, u64) -> f64,
) -> f64 {
    let mut world = World::new(members, limit.clone(), network, seed());
    world.run(Duration::from_secs(3), &per_s, 1);
    world.run(Duration::from_secs(10), &per_s, 1) as f64 / 10.0
}

fn assert_near(what: &str, passed: f64, wanted: f64) {
    let error = passed / wanted - 1.0;
    println!("{what}: {passed:.1}/s of {wanted:.1}, {:+.1}%", error * 100.0);
    assert!(error.abs() <= 0.1, "{what}: {passed:.1}/s, not {wanted:.1}");
}

#[test]
fn under_steady_load_the_fleet_keeps_the_rate() {
    let wan = Network { loss: 0.0, delay_ms_max: 100 };
    let lossy = Network { loss: 0.3, delay_ms_max: 20 };
    let limit = limit(100, Duration::from_secs(1), 10);
    let equal = |per_s: f64| move |_, _| per_s;
    assert_near("3 members", steady(3, &limit, LAN, equal(100.0)), 100.0);
    assert_near("3 members far apart", steady(3, &limit, wan, equal(100.0)), 100.0);
    assert_near("3 members, 30% lost", steady(3, &limit, lossy, equal(100.0)), 100.0);
    assert_near("32 members", steady(32, &limit, LAN, equal(10.0)), 100.0);
    assert_near("32 members, a flood", steady(32, &limit, LAN, equal(200.0)), 100.0);
    let uneven = |at, _| if at == 0 { 500.0 } else { 4.0 };
    assert_near("one of 8 gets the most", steady(8, &limit, LAN, uneven), 100.0);
    let one = |at, _| if at == 0 { 150.0 } else { 0.0 };
    assert_near("one of 3 gets all", steady(3, &limit, LAN, one), 100.0);
    assert_near("less than the limit", steady(3, &limit, LAN, equal(28.0)), 84.0);
    assert_near("just more than the limit", steady(3, &limit, LAN, equal(36.0)), 100.0);
}

#[test]
fn fast_and_slow_limits_are_kept_as_well() {
    let fast = limit(20_000, Duration::from_secs(1), 2_000);
    assert_near("20,000/s", steady(3, &fast, LAN, |_, _| 10_000.0), 20_000.0);
    let slow = limit(10, Duration::from_mins(1), 10);
    let mut world = World::new(3, slow, LAN, seed());
    let (per_s, clients) = (|_, _| 1.0, 1);
    // All that may come at once, perhaps at each member.
    let first = world.run(Duration::from_mins(3), per_s, clients);
    assert!((30..=60).contains(&first), "{first} in three minutes");
    let later = world.run(Duration::from_mins(10), per_s, clients) as f64;
    assert_near("10 per minute", later / 600.0, 1.0 / 6.0);
}

#[test]
fn load_that_moves_takes_the_rate_with_it() {
    let mut world = World::new(3, limit(100, Duration::from_secs(1), 10), LAN, seed());
    for round in 0..6 {
        let per_s = move |at, _| if at == round % 3 { 300.0 } else { 10.0 };
        world.run(Duration::from_secs(3), per_s, 1);
        let passed = world.run(Duration::from_secs(5), per_s, 1) as f64 / 5.0;
        assert_near("after a move", passed, 100.0);
    }
}

#[test]
fn in_a_partition_each_side_uses_its_share() {
    let mut world = World::new(5, limit(100, Duration::from_secs(1), 10), LAN, seed());
    let per_s = |_, _| 60.0;
    world.run(Duration::from_secs(3), per_s, 1);
    world.split(|at| usize::from(at >= 3));
    let passed = |world: &World, from: usize, to: usize| -> u64 {
        world.nodes[from..to].iter().map(|node| node.passed).sum()
    };
    world.run(Duration::from_secs(4), per_s, 1);
    let before = (passed(&world, 0, 3), passed(&world, 3, 5));
    world.run(Duration::from_secs(10), per_s, 1);
    assert_near("three of five", (passed(&world, 0, 3) - before.0) as f64 / 10.0, 60.0);
    assert_near("two of five", (passed(&world, 3, 5) - before.1) as f64 / 10.0, 40.0);
    world.split(|_| 0);
    world.run(Duration::from_secs(3), per_s, 1);
    assert_near(
        "together again",
        world.run(Duration::from_secs(10), per_s, 1) as f64 / 10.0,
        100.0,
    );
}

#[test]
fn many_keys_share_the_messages() {
    let limit = limit(10, Duration::from_secs(1), 10);
    let mut world = World::new(3, limit, LAN, seed());
    let per_s = |_, _| 8.0;
    world.run(Duration::from_secs(4), per_s, 400);
    let sent = world.sent_bytes;
    let passed = world.run(Duration::from_secs(10), per_s, 400) as f64 / 10.0;
    assert_near("400 clients", passed, 4_000.0);
    println!("{:.0} B/s from each member", (world.sent_bytes - sent) as f64 / 10.0 / 3.0);
}

#[test]
fn a_client_that_goes_from_member_to_member_gains_little() {
    let limit = limit(10, Duration::from_secs(1), 50);
    let mut world = World::new(8, limit, LAN, seed());
    let mut passed = 0;
    for round in 0..40 {
        let per_s = move |at, _| if at == round % 8 { 2_000.0 } else { 0.0 };
        passed += world.run(Duration::from_millis(500), per_s, 1);
    }
    // 50 at once and 10 a second for 20 s, as one balancer allows.
    println!("{passed} passed, 250 at one balancer");
    assert!(passed <= 300, "{passed} passed, 250 at one balancer");
}

#[test]
fn seldom_requests_of_a_slow_limit_count() {
    let mut world = World::new(3, limit(10, Duration::from_mins(1), 10), LAN, seed());
    let per_s = |_, _| 0.25;
    world.run(Duration::from_mins(2), per_s, 1);
    let passed = world.run(Duration::from_mins(10), per_s, 1);
    assert_near("10 per minute, of 45", passed as f64 / 600.0, 1.0 / 6.0);
}

/// A client that sends many requests to all members at once, before they know of each other's, and then waits.
#[test]
fn bursts_at_all_members_are_charged_afterwards() {
    for (members, burst, pause_ms) in
        [(3, 100, 3_500), (8, 100, 3_500), (3, 10, 2_500), (8, 10, 5_000)]
    {
        let mut world = World::new(members, limit(100, Duration::from_secs(1), burst), LAN, seed());
        let mut passed = 0;
        let rounds = 60;
        for _ in 0..rounds {
            passed += world.run(Duration::from_millis(50), |_, _| 20_000.0, 1);
            passed += world.run(Duration::from_millis(pause_ms), |_, _| 0.0, 1);
        }
        let rate = passed as f64 / (f64::from(rounds) * (pause_ms as f64 / 1e3 + 0.05));
        println!("{members} members, burst {burst}: {rate:.0}/s of 100");
        assert!(rate <= 115.0, "{members} members, burst {burst}: {rate}/s");
    }
}

#[test]
fn a_limit_that_is_taken_away_and_given_again_begins_anew() {
    let mut world = World::new(2, limit(100, Duration::from_secs(1), 10), LAN, seed());
    let uneven = |at, _| if at == 0 { 2_000.0 } else { 20.0 };
    world.run(Duration::from_secs(4), uneven, 1);
    let limit = world.limit.clone();
    for node in &mut world.nodes {
        let mut route = Snapshot::empty();
        route.routes.clear();
        node.rates.follow(&route);
        assert_eq!(node.registry.rate().shared().readings(), []);
        node.rates.quota.set_limits([(limit_id("r", &limit), limit.clone())]);
    }
    world.run(Duration::from_secs(4), |at, _| if at == 1 { 80.0 } else { 0.0 }, 1);
    let passed = world.run(Duration::from_secs(5), |at, _| if at == 1 { 80.0 } else { 0.0 }, 1);
    assert!(passed >= 390, "{passed} of 400");
}

#[test]
fn keys_are_forgotten() {
    let mut world = World::new(2, limit(10, Duration::from_secs(1), 10), LAN, seed());
    world.run(Duration::from_secs(2), |_, _| 50.0, 100);
    assert!(world.nodes[0].rates.state().keys >= 100);
    world.run(Duration::from_secs(12), |_, _| 0.0, 100);
    assert_eq!(world.nodes[0].rates.state().keys, 0);
    assert_eq!(world.nodes[0].registry.rate().shared().readings(), []);
}
