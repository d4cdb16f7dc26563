//! Few threads, a step or two each, in every order or in many: after each run, when all stand
//! still, nobody may wait for what is free. Under steady traffic the next request would make good
//! what one step forgot; here nothing comes after it.
//!
//! One thread runs at a time; at the points that the code marks with [`point`], who runs next is
//! chosen. So a run is determined by its choices: all of them are gone through for two threads,
//! and drawn from a seed that replays them for more.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use model::Health;

use super::*;
use crate::limits::Taker;
use crate::server_token;

thread_local! {
    static PLAYER: RefCell<Option<(Arc<Stage>, usize)>> = const { RefCell::new(None) };
}

/// Called by the code under test where another thread's step in between would matter.
pub(crate) fn point() {
    let player = PLAYER.with_borrow(Clone::clone);
    if let Some((stage, me)) = player {
        stage.pass(me);
    }
}

/// Lets one of several threads run at a time.
struct Stage {
    play: Mutex<Play>,
    changed: Condvar,
}

struct Play {
    current: usize,
    /// Those who have not ended.
    runnable: Vec<usize>,
    choices: Choices,
}

impl Stage {
    /// Lets whoever is chosen run, and returns when that is `me` again.
    fn pass(&self, me: usize) {
        let mut play = self.play.lock().unwrap();
        play.choose();
        self.changed.notify_all();
        let _mine = self.changed.wait_while(play, |play| play.current != me).unwrap();
    }

    fn enter(&self, me: usize) {
        let play = self.play.lock().unwrap();
        let _mine = self.changed.wait_while(play, |play| play.current != me).unwrap();
    }

    fn exit(&self, me: usize) {
        let mut play = self.play.lock().unwrap();
        play.runnable.retain(|&other| other != me);
        play.choose();
        self.changed.notify_all();
    }
}

/// A thread that fails leaves the stage too, so that the others can end.
struct Exit(Arc<Stage>, usize);

impl Drop for Exit {
    fn drop(&mut self) {
        PLAYER.set(None);
        self.0.exit(self.1);
    }
}

impl Play {
    fn choose(&mut self) {
        if !self.runnable.is_empty() {
            let chosen = self.choices.next(self.runnable.len());
            self.current = self.runnable[chosen];
        }
    }
}

/// Where choices come from.
enum Choices {
    /// All in turn: each digit is a choice, of so many.
    All {
        digits: Vec<(usize, usize)>,
        at: usize,
    },
    Drawn(fastrand::Rng),
}

impl Choices {
    fn next(&mut self, of: usize) -> usize {
        match self {
            Choices::All { digits, at } => {
                if *at == digits.len() {
                    digits.push((0, of));
                }
                let (chosen, now_of) = digits[*at];
                assert_eq!(now_of, of, "the same choices led elsewhere");
                *at += 1;
                chosen
            }
            Choices::Drawn(rng) => rng.usize(..of),
        }
    }

    /// The next run's; false if all have been.
    fn advance(&mut self) -> bool {
        let Choices::All { digits, at } = self else { return true };
        digits.truncate(*at);
        *at = 0;
        while let Some((chosen, of)) = digits.pop() {
            if chosen + 1 < of {
                digits.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

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
    /// Comes with a request, perhaps bound to the server at a port, or avoiding it.
    Come { service: usize, bound: Option<u16>, avoid: Option<u16> },
    /// Gives up waiting.
    Leave,
    /// Collects a slot if it has been given one.
    Collect,
    /// A server's health changes.
    Health { service: usize, port: u16, up: bool },
    /// The limit of the first service, which others share, changes.
    Limit(u32),
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
            Step::Limit(max) => {
                let mut specs = published.snapshot.services.clone();
                for spec in &mut specs {
                    spec.in_flight_max = Some(max);
                }
                publish(registry, specs);
            }
        }
    }
}

/// A scene: what stands when the curtain rises, and what each thread then does.
struct Scene {
    services: Vec<Service>,
    before: Vec<Vec<Step>>,
    then: Vec<Vec<Step>>,
}

/// Plays a scene once; the choices come back.
fn play(scene: &Scene, choices: Choices) -> (Choices, Result<(), String>) {
    let registry = Registry::with_seed(0);
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
    let mut first = Play { current: 0, runnable: (0..scene.then.len()).collect(), choices };
    first.choose();
    let stage = Arc::new(Stage { play: Mutex::new(first), changed: Condvar::new() });
    thread::scope(|scope| {
        for (me, (hand, steps)) in hands.iter_mut().zip(&scene.then).enumerate() {
            let (stage, registry) = (Arc::clone(&stage), &registry);
            scope.spawn(move || {
                stage.enter(me);
                PLAYER.set(Some((Arc::clone(&stage), me)));
                let _exit = Exit(stage, me);
                for &step in steps {
                    hand.step(step, registry);
                }
            });
        }
    });
    let mut verdict = check(&registry, &hands);
    // Everybody goes: nothing may be left behind.
    while let Some(slot) = hands.iter_mut().find_map(|hand| hand.slot.take()) {
        drop(slot);
        for hand in &mut hands {
            hand.step(Step::Collect, &registry);
        }
        verdict = verdict.and_then(|()| check(&registry, &hands));
    }
    drop(hands);
    for live in &registry.current().services {
        let view = live.view(NOW);
        if view.queue_length > 0 || view.endpoints.iter().any(|one| one.in_flight > 0) {
            verdict = verdict.and(Err(format!("left behind: {view:?}")));
        }
    }
    let Some(stage) = Arc::into_inner(stage) else { panic!("a thread still plays") };
    (stage.play.into_inner().unwrap().choices, verdict)
}

/// When all stand still, a server that somebody waits for is full, and each count is the number
/// of those who hold a slot or have been given one.
fn check(registry: &Registry, hands: &[Hand]) -> Result<(), String> {
    let published = registry.current();
    let mut counted = HashSet::new();
    let (mut in_flight_sum, mut waiting) = (0, 0);
    for live in &published.services {
        waiting += live.queue_length() as usize;
        for endpoint in &live.endpoints().all {
            let address = endpoint.row.address;
            let (in_flight, max) = (endpoint.slots.in_flight(), endpoint.slots.max());
            if counted.insert(address) {
                in_flight_sum += in_flight as usize;
            }
            let waits = live.waiting_since(address).is_some();
            if waits && !endpoint.state.is_ready() {
                return Err(format!("somebody waits for {address}, which is down"));
            }
            if waits && in_flight < max {
                let name = live.name();
                return Err(format!(
                    "{name} waits at {address}, which has room: {in_flight}/{max}"
                ));
            }
        }
    }
    let slots = hands.iter().filter(|hand| hand.slot.is_some()).count();
    let waiters = hands.iter().filter(|hand| hand.waiter.is_some()).count();
    if in_flight_sum + waiting != slots + waiters {
        return Err(format!(
            "{slots} run and {waiters} wait or have been given a slot, but {in_flight_sum} are counted and {waiting} queued"
        ));
    }
    Ok(())
}

/// In every order.
fn play_all(scene: &Scene) {
    let mut choices = Choices::All { digits: Vec::new(), at: 0 };
    let mut runs = 0;
    loop {
        let (made, verdict) = play(scene, choices);
        choices = made;
        runs += 1;
        if let Err(what) = verdict {
            let Choices::All { digits, .. } = &choices else { unreachable!() };
            panic!("{what}\nafter choices {digits:?}");
        }
        if !choices.advance() {
            break;
        }
    }
    println!("{runs} orders");
    assert!(runs > 1);
}

fn two(ports: &[u16], before: Vec<Vec<Step>>, then: [Vec<Step>; 2]) -> Scene {
    Scene { services: vec![service("a", ports, 1, 8)], before, then: then.into() }
}

#[test]
fn one_comes_as_one_ends() {
    play_all(&two(&[1], vec![vec![COME]], [vec![Step::End], vec![COME]]));
    let bound = Step::Come { service: 0, bound: Some(1), avoid: None };
    play_all(&two(&[1], vec![vec![COME]], [vec![Step::End], vec![bound]]));
}

#[test]
fn two_come_for_one_slot() {
    play_all(&two(&[1], vec![], [vec![COME, Step::End], vec![COME]]));
}

#[test]
fn one_gives_up_as_its_turn_comes() {
    let before = vec![vec![COME], vec![COME], vec![COME]];
    play_all(&two(&[1], before, [vec![Step::End], vec![Step::Leave]]));
}

#[test]
fn two_end_while_others_wait() {
    let before = vec![vec![COME], vec![COME], vec![COME], vec![COME]];
    play_all(&two(&[1, 2], before, [vec![Step::End], vec![Step::End]]));
}

#[test]
fn one_comes_as_a_server_comes_back() {
    let down = Step::Health { service: 0, port: 2, up: false };
    let up = Step::Health { service: 0, port: 2, up: true };
    play_all(&two(&[1, 2], vec![vec![down, COME]], [vec![up], vec![]]));
    play_all(&two(&[1, 2], vec![vec![down], vec![], vec![COME]], [vec![up], vec![COME]]));
}

#[test]
fn one_bound_to_a_server_comes_as_it_goes_down() {
    let down = Step::Health { service: 0, port: 1, up: false };
    let bound = Step::Come { service: 0, bound: Some(1), avoid: None };
    play_all(&two(&[1, 2], vec![vec![bound]], [vec![down], vec![bound]]));
}

#[test]
fn one_comes_as_the_limit_changes() {
    for max in [1, 2] {
        let mut scene = two(&[1], vec![vec![COME]], [vec![Step::End], vec![COME]]);
        scene.then[0].insert(0, Step::Limit(max));
        play_all(&scene);
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
    play_all(&scene([vec![Step::End], vec![COME]]));
    play_all(&scene([vec![Step::End], vec![other]]));
}

/// Anything, by many: drawn, not all.
#[test]
fn many_do_anything() {
    let seed = fastrand::u64(..);
    for run in 0..3_000 {
        let mut rng = fastrand::Rng::with_seed(seed.wrapping_add(run));
        let queue_max = rng.u32(1..8);
        let services =
            vec![service("a", &[1, 2], 1, queue_max), service("b", &[2, 3], 1, queue_max)];
        let threads = rng.usize(2..=4);
        let before = (0..threads + 2).map(|_| vec![drawn_come(&mut rng)]).collect();
        let then = (0..threads)
            .map(|me| (0..rng.usize(1..=3)).map(|_| drawn_step(me, &mut rng)).collect())
            .collect();
        let scene = Scene { services, before, then };
        let (_, verdict) = play(&scene, Choices::Drawn(rng));
        if let Err(what) = verdict {
            panic!("{what}\nseed {} with {:?} then {:?}", seed + run, scene.before, scene.then);
        }
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
        // Publishing holds a lock of its own over points: one thread only.
        _ if me == 0 => Step::Limit(rng.u32(1..=2)),
        _ => Step::End,
    }
}
