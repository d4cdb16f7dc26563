//! Few threads with a step or two each, in every possible interleaving: after each run, when all
//! threads have finished, no request may wait for a free slot, no limit is exceeded and every count
//! is right. Under steady traffic the next request would correct what one step missed; here nothing
//! comes after it.
//!
//! Run by loom (`scripts/loom`, which `make test` calls): it tries the orders of the threads' steps
//! on atomics, locks and fences, up to [`PREEMPTIONS_MAX`] switches away from a thread that could
//! continue, and lets each load return every value that the memory model allows. So it detects what
//! no machine may ever show: a missing fence. `without_a_fence` removes each of the four fences in
//! turn, or makes it `AcqRel`, and expects the proof to fail. To see a limit exceeded, replace the
//! `compare_exchange_weak` in `count::Count::take` by a `fetch_add`.
//!
//! Limits of loom: it treats sequentially consistent accesses (except fences) as acquire/release,
//! which is less than the hardware gives; so this proof relies on the fences alone. A
//! `compare_exchange_weak` never fails spuriously. The servers' health (`model::ServerState`)
//! consists of atomics that loom does not see: they are sequential here.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::AcqRel;

use loom::model::Builder;
use loom::thread;
use model::Health;

use super::*;
use crate::Usage;
use crate::limits::Taker;
use crate::server_token;
use crate::sync::{Fence, weaken};

/// How often a thread that could continue is preempted in a run.
const PREEMPTIONS_MAX: usize = 2;
/// Loads, stores and locks in one run.
const BRANCHES_MAX: usize = 5_000;
/// Number of interleavings tried for a random scenario.
const DRAWN_ORDERS_MAX: usize = 100;
/// Number of random scenarios.
const SCENES: u64 = 20;

/// What one thread holds.
#[derive(Default)]
struct Hand {
    slot: Option<Slot>,
    waiter: Option<Waiter>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Ends its request.
    End,
    /// Sends a request, possibly bound to the server at a port, or avoiding it.
    Come { service: usize, bound: Option<u16>, avoid: Option<u16> },
    /// Gives up waiting.
    Leave,
    /// Collects a slot if one was granted.
    Collect,
    /// A server's health changes.
    Health { service: usize, port: u16, up: bool },
    /// The limit of the first service, which others share, changes.
    Limit(u32),
    /// The control loop allows so many slots of the first server of the first service.
    Allow(u32),
}

const COME: Step = Step::Come { service: 0, bound: None, avoid: None };

impl Hand {
    fn step(&mut self, step: Step, registry: &Registry) {
        let published = registry.load_full();
        match step {
            Step::End => self.slot = None,
            Step::Leave => self.waiter = None,
            Step::Collect => {
                if let Some(slot) = self.waiter.as_mut().and_then(look) {
                    *self = Hand { slot: Some(slot), waiter: None };
                }
            }
            Step::Come { .. } if self.slot.is_some() || self.waiter.is_some() => {}
            Step::Come { service, bound, avoid } => {
                let avoid = avoid.map(address);
                let affinity = bound.map(|port| server_token(address(port)));
                let ask = Ask { key: None, affinity, avoid: avoid.as_slice() };
                match admit_asking(&published.services[service], &ask) {
                    Admission::Go(slot) => self.slot = Some(slot),
                    Admission::Wait(waiter) => self.waiter = Some(waiter),
                    Admission::Refused(_) => {}
                }
            }
            Step::Health { service, port, up } => {
                let live = &published.services[service];
                if let Some(endpoint) = live.endpoints().by_address(address(port)) {
                    endpoint.state.set_health(if up { Health::Up } else { Health::Down }, NOW);
                    live.refresh(NOW);
                }
            }
            Step::Allow(allowed) => {
                published.services[0].endpoints().all[0].slots.allow(allowed);
            }
            Step::Limit(max) => {
                let specs = published.snapshot.services.iter();
                let mut specs: Vec<_> = specs.map(|spec| Service::clone(spec)).collect();
                for spec in &mut specs {
                    spec.in_flight_max = Some(max);
                }
                publish(registry, specs);
            }
        }
    }
}

/// A scenario: the initial state, and the steps of each thread.
struct Scene {
    services: Vec<Service>,
    before: Vec<Vec<Step>>,
    then: Vec<Vec<Step>>,
}

/// Runs a scenario once, in the order that loom chooses.
fn play(scene: &Scene) -> Result<(), String> {
    let registry = Arc::new(Registry::with_seed(0));
    publish(&registry, scene.services.clone());
    let mut hands: Vec<Hand> = Vec::new();
    for steps in &scene.before {
        let mut hand = Hand::default();
        for &step in steps {
            hand.step(step, &registry);
        }
        hands.push(hand);
    }
    hands.resize_with(scene.then.len().max(hands.len()), Hand::default);
    let waiting = hands.split_off(scene.then.len());
    let threads: Vec<_> = hands
        .into_iter()
        .zip(scene.then.clone())
        .map(|(mut hand, steps)| {
            let registry = Arc::clone(&registry);
            thread::spawn(move || {
                for step in steps {
                    hand.step(step, &registry);
                }
                hand
            })
        })
        .collect();
    let mut hands: Vec<Hand> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    hands.extend(waiting);
    let changes_limit = |step: &Step| matches!(step, Step::Limit(_) | Step::Allow(_));
    let keeps_limit = !scene.then.iter().flatten().any(changes_limit);
    let mut verdict = check(&registry, &hands, keeps_limit);
    // All requests end: nothing may remain.
    while let Some(slot) = hands.iter_mut().find_map(|hand| hand.slot.take()) {
        drop(slot);
        for hand in &mut hands {
            hand.step(Step::Collect, &registry);
        }
        verdict = verdict.and_then(|()| check(&registry, &hands, keeps_limit));
    }
    drop(hands);
    for live in &registry.current().services {
        let view = live.view(NOW);
        if view.queue_length > 0 || view.endpoints.iter().any(|one| one.in_flight > 0) {
            verdict = verdict.and(Err(format!("left behind: {view:?}")));
        }
    }
    verdict
}

/// When all threads have finished, a server for which a request waits is full, and each count is
/// the number of slots held or granted, within the limit unless that was lowered.
fn check(registry: &Registry, hands: &[Hand], keeps_limit: bool) -> Result<(), String> {
    let published = registry.current();
    let mut counted = HashMap::new();
    let mut waiting = 0;
    for live in &published.services {
        waiting += live.queue_length() as usize;
        for endpoint in &live.endpoints().all {
            let address = endpoint.row.address;
            let Usage { in_flight, allowed: max, .. } = endpoint.slots.usage();
            counted.insert(address, in_flight);
            if keeps_limit && in_flight > max {
                return Err(format!("{address} has more than its limit: {in_flight}/{max}"));
            }
            let waits = live.waiting_since(address).is_some();
            if waits && !endpoint.state.is_ready() {
                return Err(format!("a request waits for {address}, which is down"));
            }
            if waits && in_flight < max {
                let name = live.name();
                return Err(format!(
                    "{name} waits at {address}, which has room: {in_flight}/{max}"
                ));
            }
        }
    }
    let in_flight_sum = counted.into_values().sum::<u32>() as usize;
    let slots = hands.iter().filter(|hand| hand.slot.is_some()).count();
    let waiters = hands.iter().filter(|hand| hand.waiter.is_some()).count();
    if in_flight_sum + waiting != slots + waiters {
        return Err(format!(
            "{slots} run and {waiters} wait or have been given a slot, but {in_flight_sum} are counted and {waiting} queued"
        ));
    }
    Ok(())
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS_MAX);
    builder.max_branches = BRANCHES_MAX;
    builder
}

/// Runs a scenario in every order.
fn play_all(scene: Scene) {
    let orders = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = Arc::clone(&orders);
    builder().check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if let Err(what) = play(&scene) {
            panic!("{what}");
        }
    });
    let orders = orders.load(std::sync::atomic::Ordering::Relaxed);
    println!("{orders} orders");
    assert!(orders > 1);
}

fn two(ports: &[u16], before: Vec<Vec<Step>>, then: [Vec<Step>; 2]) -> Scene {
    Scene { services: vec![service("a", ports, 1, 8)], before, then: then.into() }
}

#[test]
fn one_comes_as_one_ends() {
    play_all(handover());
    let bound = Step::Come { service: 0, bound: Some(1), avoid: None };
    play_all(two(&[1], vec![vec![COME]], [vec![Step::End], vec![bound]]));
}

#[test]
fn two_come_for_one_slot() {
    play_all(two(&[1], vec![], [vec![COME], vec![COME]]));
    play_all(two(&[1], vec![], [vec![COME, Step::End], vec![COME]]));
}

#[test]
fn one_gives_up_as_its_turn_comes() {
    let before = vec![vec![COME], vec![COME], vec![COME]];
    play_all(two(&[1], before, [vec![Step::End], vec![Step::Leave]]));
}

#[test]
fn two_end_while_others_wait() {
    let before = vec![vec![COME], vec![COME], vec![COME], vec![COME]];
    play_all(two(&[1, 2], before, [vec![Step::End], vec![Step::End]]));
}

#[test]
fn one_comes_as_a_server_comes_back() {
    let down = Step::Health { service: 0, port: 2, up: false };
    let up = Step::Health { service: 0, port: 2, up: true };
    play_all(two(&[1, 2], vec![vec![down, COME]], [vec![up], vec![]]));
    play_all(return_of_a_server());
}

#[test]
fn one_bound_to_a_server_comes_as_it_goes_down() {
    let down = Step::Health { service: 0, port: 1, up: false };
    let bound = Step::Come { service: 0, bound: Some(1), avoid: None };
    play_all(two(&[1, 2], vec![vec![bound]], [vec![down], vec![bound]]));
}

#[test]
fn one_comes_as_the_limit_changes() {
    for max in [1, 2] {
        let mut scene = handover();
        scene.then[0].insert(0, Step::Limit(max));
        play_all(scene);
    }
}

#[test]
fn services_share_a_server() {
    let other = Step::Come { service: 1, bound: None, avoid: None };
    let scene = |then: [Vec<Step>; 2]| Scene {
        services: vec![service("a", &[1], 1, 8), service("b", &[1], 1, 8)],
        before: vec![vec![COME], vec![], vec![other]],
        then: then.into(),
    };
    play_all(scene([vec![Step::End], vec![COME]]));
    play_all(scene([vec![Step::End], vec![other]]));
}

#[test]
fn one_comes_as_more_is_allowed() {
    play_all(allowance());
    let before = vec![vec![Step::Allow(1), COME]];
    let then = [vec![Step::Allow(2)], vec![COME]];
    play_all(Scene { services: vec![fleet("a", &[1], 2, 8)], before, then: then.into() });
}

#[test]
fn one_ends_as_less_is_allowed_and_more_again() {
    let scene = |then: [Vec<Step>; 2]| Scene {
        services: vec![fleet("a", &[1], 1, 8)],
        before: vec![vec![], vec![Step::Allow(1), COME], vec![COME]],
        then: then.into(),
    };
    play_all(scene([vec![Step::Allow(0)], vec![Step::End]]));
    play_all(scene([vec![Step::Allow(0), Step::Allow(1)], vec![Step::End]]));
}

/// What is allowed falls from 1 to 0 here, and another balancer gets the slot if it is free: a
/// worker never has it, too, whether it comes meanwhile, gets it from the queue or hands it over.
#[test]
fn a_slot_that_was_passed_on_is_not_taken_too() {
    for before in [vec![], vec![vec![COME]], vec![vec![COME], vec![COME]]] {
        builder().check(move || {
            let registry = Arc::new(Registry::with_seed(0));
            publish(&registry, vec![fleet("a", &[1], 1, 8)]);
            let slots = Arc::clone(&registry.shared_slots()[0]);
            slots.allow(1);
            let mut hands: Vec<Hand> = before.iter().map(|_| Hand::default()).collect();
            for (hand, steps) in hands.iter_mut().zip(&before) {
                steps.iter().for_each(|&step| hand.step(step, &registry));
            }
            let mut worker = hands.drain(..hands.len().min(1)).next().unwrap_or_default();
            let workers = Arc::clone(&registry);
            let worker = thread::spawn(move || {
                worker.step(Step::End, &workers);
                worker.step(COME, &workers);
                worker
            });
            let at_once = slots.allow(0) == 0;
            // Or a moment later, as after news.
            let passed_on = at_once || slots.usage().in_flight == 0;
            hands.push(worker.join().unwrap());
            hands.iter_mut().for_each(|hand| hand.step(Step::Collect, &registry));
            let taken = hands.iter().filter(|hand| hand.slot.is_some()).count();
            assert!(taken + usize::from(passed_on) <= 1, "{taken} taken, although passed on");
            assert_eq!(slots.in_flight() as usize, taken);
        });
    }
}

/// A control loop that looks when there is news, and one request: it never waits unseen.
#[test]
fn what_the_control_loop_does_not_see_is_told() {
    builder().check(|| {
        let registry = Arc::new(Registry::with_seed(0));
        publish(&registry, vec![fleet("a", &[1], 1, 8)]);
        let told = Arc::new(loom::sync::atomic::AtomicU32::new(0));
        let counted = Arc::clone(&told);
        registry.set_news(Arc::new(move || {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }));
        // Told of an earlier request, it looks as the next one comes.
        let earlier = match admit(&registry.load_full().services[0]) {
            Admission::Wait(waiter) => waiter,
            other => panic!("does not wait: {other:?}"),
        };
        let workers = Arc::clone(&registry);
        let worker = thread::spawn(move || {
            let mut hand = Hand::default();
            hand.step(COME, &workers);
            hand
        });
        registry.take_news();
        let seen = registry.shared_slots()[0].usage().waiting;
        let hand = worker.join().unwrap();
        let told = told.load(std::sync::atomic::Ordering::Relaxed);
        assert!(seen == 2 || told == 2, "{seen} seen, told {told} times");
        drop((earlier, hand));
    });
}

/// One slot that may not be used until the control loop allows it, as a request comes.
fn allowance() -> Scene {
    let services = vec![fleet("a", &[1], 1, 8)];
    Scene { services, before: vec![], then: vec![vec![Step::Allow(1)], vec![COME]] }
}

/// One slot: its holder frees it while another requests it.
fn handover() -> Scene {
    two(&[1], vec![vec![COME]], [vec![Step::End], vec![COME]])
}

/// A server recovers while a request joins the queue of the only other one.
fn return_of_a_server() -> Scene {
    let down = Step::Health { service: 0, port: 2, up: false };
    let up = Step::Health { service: 0, port: 2, up: true };
    two(&[1, 2], vec![vec![down], vec![], vec![COME]], [vec![up], vec![COME]])
}

/// The proof detects each fence that is missing or too weak.
mod without_a_fence {
    use super::*;

    #[test]
    #[should_panic(expected = "which has room")]
    fn after_freeing() {
        weaken(Fence::Freed, None);
        play_all(handover());
    }

    #[test]
    #[should_panic(expected = "which has room")]
    fn after_freeing_only_acquire_release() {
        weaken(Fence::Freed, Some(AcqRel));
        play_all(handover());
    }

    #[test]
    #[should_panic(expected = "which has room")]
    fn after_joining() {
        weaken(Fence::Joined, None);
        play_all(handover());
    }

    #[test]
    #[should_panic(expected = "which has room")]
    fn after_joining_only_acquire_release() {
        weaken(Fence::Joined, Some(AcqRel));
        play_all(handover());
    }

    #[test]
    #[should_panic(expected = "which has room")]
    fn after_allowing() {
        weaken(Fence::Allowed, None);
        play_all(allowance());
    }

    #[test]
    #[should_panic(expected = "which has room")]
    fn after_a_change_of_servers() {
        weaken(Fence::Changed, None);
        play_all(return_of_a_server());
    }
}

/// Random steps of two or three threads, each scenario in some orders.
#[test]
fn any_steps() {
    let seed = fastrand::u64(..);
    for run in 0..SCENES {
        let seed = seed.wrapping_add(run);
        let mut rng = fastrand::Rng::with_seed(seed);
        let queue_max = rng.u32(1..8);
        let services =
            vec![service("a", &[1, 2], 1, queue_max), service("b", &[2, 3], 1, queue_max)];
        let threads = rng.usize(2..=3);
        let before = (0..threads + 2).map(|_| vec![drawn_come(&mut rng)]).collect();
        let then = (0..threads)
            .map(|me| (0..rng.usize(1..=3)).map(|_| drawn_step(me, &mut rng)).collect())
            .collect();
        let scene = Scene { services, before, then };
        let mut builder = builder();
        builder.max_permutations = Some(DRAWN_ORDERS_MAX);
        builder.check(move || {
            if let Err(what) = play(&scene) {
                panic!("{what}\nseed {seed} with {:?} then {:?}", scene.before, scene.then);
            }
        });
    }
}

fn drawn_come(rng: &mut fastrand::Rng) -> Step {
    let port = |rng: &mut fastrand::Rng| (rng.u8(..4) == 0).then(|| rng.u16(1..=3));
    Step::Come { service: rng.usize(..2), bound: port(rng), avoid: port(rng) }
}

fn drawn_step(me: usize, rng: &mut fastrand::Rng) -> Step {
    match rng.u8(..12) {
        0..4 => Step::End,
        4..7 => drawn_come(rng),
        7..9 => Step::Leave,
        9 => Step::Collect,
        10 => Step::Health { service: rng.usize(..2), port: rng.u16(1..=3), up: rng.bool() },
        // Publishing holds a lock across several steps: one thread only.
        _ if me == 0 => Step::Limit(rng.u32(1..=2)),
        _ => Step::End,
    }
}
