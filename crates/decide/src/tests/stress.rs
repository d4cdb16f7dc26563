//! Stress test with many threads: the count is never exceeded, no request is forgotten or
//! overtaken.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::thread;

use model::Health;

use super::*;
use crate::server_token;

const THREADS: u64 = 8;
const REQUESTS: u64 = 20_000;
const MAX: u32 = 2;

/// Requests that are actually running at a server, counted independently of the code under test.
#[derive(Default)]
struct Running([AtomicU32; 8]);

impl Running {
    /// Runs a request in this slot.
    fn run(&self, slot: Slot) {
        let at = &self.0[usize::from(port(&slot))];
        let now = at.fetch_add(1, SeqCst) + 1;
        assert!(now <= MAX, "{now} at once at {}", port(&slot));
        // Others run meanwhile, however few cores there are.
        thread::yield_now();
        at.fetch_sub(1, SeqCst);
        drop(slot);
    }
}

/// The results of one thread's requests.
#[derive(Debug, Default)]
struct Tally {
    went: u64,
    waited: u64,
    left: u64,
    refused: u64,
}

/// Sends requests to services in turn; one in eight that wait gives up.
fn send(services: &[Arc<LiveService>], running: &Running, seed: u64) -> Tally {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut tally = Tally::default();
    for _ in 0..REQUESTS {
        let live = &services[rng.usize(..services.len())];
        let affinity = (rng.u8(..) < 30).then(|| server_token(address(rng.u16(1..5))));
        let avoid = if rng.u8(..) < 30 { &[address(2)][..] } else { &[] };
        match live.admit(&Ask { key: None, affinity, avoid }, &mut rng, NOW) {
            Admission::Go(slot) => {
                running.run(slot);
                tally.went += 1;
            }
            Admission::Wait(waiter) if rng.u8(..) < 32 => {
                drop(waiter);
                tally.left += 1;
            }
            Admission::Wait(mut waiter) => {
                let slot = block_on(&mut waiter).expect("a wake-up was lost");
                running.run(slot);
                tally.waited += 1;
            }
            Admission::Refused(_) => tally.refused += 1,
        }
    }
    tally
}

fn stress(services: &[Arc<LiveService>], meanwhile: impl Fn(&mut fastrand::Rng) + Sync) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let (running, over) = (Running::default(), AtomicBool::new(false));
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let senders: Vec<_> = (0..THREADS)
            .map(|n| {
                scope.spawn({
                    let running = &running;
                    move || send(services, running, seed ^ n)
                })
            })
            .collect();
        let changer = scope.spawn(|| {
            let mut rng = fastrand::Rng::with_seed(!seed);
            while !over.load(SeqCst) {
                meanwhile(&mut rng);
                thread::yield_now();
            }
        });
        let tallies = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
        over.store(true, SeqCst);
        changer.join().unwrap();
        tallies
    });
    println!("{tallies:?}");
    let all: u64 = tallies.iter().map(|t| t.went + t.waited + t.left + t.refused).sum();
    assert_eq!(all, THREADS * REQUESTS);
    assert!(tallies.iter().map(|tally| tally.waited).sum::<u64>() > 0, "no request ever waited");
    for live in services {
        let view = live.view(NOW);
        assert_eq!(view.queue_length, 0);
        assert!(view.endpoints.iter().all(|endpoint| endpoint.in_flight == 0), "{view:?}");
    }
}

#[test]
fn one_service() {
    let (_registry, live) = one(service("a", &[1, 2], MAX, 100));
    stress(&[live], |_| {});
}

#[test]
fn services_that_share_addresses() {
    let registry = Registry::with_seed(0);
    let specs = vec![
        service("a", &[1, 2], MAX, 100),
        service("b", &[2], MAX, 3),
        service("c", &[2, 1], MAX, 100),
    ];
    stress(&publish(&registry, specs).services, |_| {});
}

#[test]
fn servers_that_come_and_go() {
    let registry = Registry::with_seed(0);
    let specs = vec![service("a", &[1, 2, 3], MAX, 100), service("b", &[2, 3, 4], MAX, 100)];
    let services = &publish(&registry, specs).services;
    stress(services, |rng| {
        // Server 3 stays, so that all waiting requests can be served in the end.
        let live = &services[rng.usize(..2)];
        let endpoints = live.endpoints();
        let one = &endpoints.all[rng.usize(..3)];
        if one.row.address.port() != Some(3) {
            let health = if rng.bool() { Health::Up } else { Health::Down };
            one.state.set_health(health, NOW);
            live.refresh(NOW);
        }
    });
}

#[test]
fn limits_that_change() {
    let registry = Registry::with_seed(0);
    let specs = |max| vec![service("a", &[1, 2], max, 100), service("b", &[2], max, 100)];
    let services = &publish(&registry, specs(MAX)).services;
    stress(services, |rng| {
        publish(&registry, specs(rng.u32(1..=MAX)));
    });
}

/// Two balancers share the slots of two servers: what one of them may use less, the other may use
/// more once it is free.
#[test]
fn balancers_that_pass_slots_to_each_other() {
    let registries = [Registry::with_seed(0), Registry::with_seed(1)];
    let services = registries.each_ref().map(|registry| {
        Arc::clone(&publish(registry, vec![fleet("a", &[1, 2], MAX, 100)]).services[0])
    });
    let shared = registries.each_ref().map(Registry::shared_slots);
    for slots in &shared[0] {
        slots.allow(MAX);
    }
    stress(&services, |rng| {
        let (server, from) = (rng.usize(..2), rng.usize(..2));
        let (from, to) = (&shared[from][server], &shared[1 - from][server]);
        let Some(fewer) = from.usage().allowed.checked_sub(1) else { return };
        let mut in_flight = from.allow(fewer);
        while in_flight > fewer {
            thread::yield_now();
            in_flight = from.usage().in_flight;
        }
        to.allow(to.usage().allowed + 1);
    });
    for server in 0..2 {
        let allowed: u32 = shared.iter().map(|slots| slots[server].usage().allowed).sum();
        assert_eq!(allowed, MAX);
    }
}

/// With one slot, waiting requests run one after the other: in the order in which they joined.
#[test]
fn waiting_requests_are_served_in_order() {
    let (_registry, live) = one(service("a", &[1], 1, 100));
    let order = Mutex::new(Vec::new());
    let going = AtomicU64::new(0);
    thread::scope(|scope| {
        for n in 0..THREADS {
            let (live, order, going) = (&live, &order, &going);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(n);
                for _ in 0..REQUESTS / 2 {
                    match live.admit(&Ask::default(), &mut rng, NOW) {
                        Admission::Go(_slot) => {
                            thread::yield_now();
                            going.fetch_add(1, SeqCst);
                        }
                        Admission::Wait(mut waiter) => {
                            let number = waiter.ticket_number();
                            let slot = block_on(&mut waiter).expect("a wake-up was lost");
                            order.lock().unwrap().push(number);
                            thread::yield_now();
                            drop(slot);
                        }
                        Admission::Refused(refusal) => panic!("{refusal:?}"),
                    }
                }
            });
        }
    });
    let order = order.into_inner().unwrap();
    println!("{} waited, {} did not", order.len(), going.into_inner());
    assert!(!order.is_empty() && order.is_sorted());
}
