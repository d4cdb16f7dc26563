//! Few threads, one step each, all at once, again and again; after every round, when all stand
//! still, nobody may wait for what is free. Under steady traffic the next request would make good
//! what one step forgot; here nothing comes after it.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use model::Health;

use super::*;
use crate::affinity_token;
use crate::limits::Taker;

const ROUNDS: u64 = 15_000;
const MAX: u32 = 1;

/// What one thread holds from round to round.
#[derive(Default)]
struct Hand {
    slot: Option<Slot>,
    waiter: Option<Waiter>,
}

impl Hand {
    /// One step: to end, to come, to leave or to collect.
    fn step(&mut self, live: &Arc<LiveService>, rng: &mut fastrand::Rng) {
        if let Some(slot) = self.slot.take() {
            if rng.u8(..) < 200 {
                drop(slot);
            } else {
                self.slot = Some(slot);
            }
        } else if let Some(mut waiter) = self.waiter.take() {
            if rng.u8(..) < 100 {
                drop(waiter);
            } else {
                self.slot = look(&mut waiter);
                self.waiter = self.slot.is_none().then_some(waiter);
            }
        } else {
            let affinity = (rng.u8(..) < 60).then(|| affinity_token(address(rng.u16(1..4))));
            let avoid = if rng.u8(..) < 60 {
                &[address(2)][..]
            } else {
                &[]
            };
            match live.admit(
                &Ask {
                    key: None,
                    affinity,
                    avoid,
                },
                rng,
                NOW,
            ) {
                Admission::Go(slot) => self.slot = Some(slot),
                Admission::Wait(waiter) => self.waiter = Some(waiter),
                Admission::Refused(_) => {}
            }
        }
    }
}

/// When all stand still: a server that somebody could use is full.
fn check(services: &[Arc<LiveService>]) {
    for live in services {
        let endpoints = live.endpoints();
        for endpoint in &endpoints.all {
            let address = endpoint.row.address;
            let waits = live.waiting_since(address);
            let (in_flight, max) = (endpoint.slots.in_flight(), endpoint.slots.max());
            assert!(in_flight <= MAX && max <= MAX, "overshot at {address}");
            assert!(
                waits.is_none() || in_flight >= max,
                "{} waits at {address}, which has room: {in_flight} of {max}",
                live.name()
            );
        }
    }
}

fn race(services: &[Arc<LiveService>], threads: u64, disturb: impl Fn(&mut fastrand::Rng) + Sync) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let (start, end) = (
        Barrier::new(threads as usize + 1),
        Barrier::new(threads as usize + 1),
    );
    // Threads leave the barrier one after the other; here they meet again, spinning.
    let met = AtomicU64::new(0);
    let meet = |round: u64| {
        met.fetch_add(1, SeqCst);
        for _ in 0..2_000 {
            if met.load(SeqCst) >= (round + 1) * (threads + 1) {
                break;
            }
            std::hint::spin_loop();
        }
    };
    thread::scope(|scope| {
        for n in 0..threads {
            let (start, end, meet) = (&start, &end, &meet);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed ^ n);
                let mut hand = Hand::default();
                for round in 0..ROUNDS {
                    let live = &services[rng.usize(..services.len())];
                    start.wait();
                    meet(round);
                    hand.step(live, &mut rng);
                    end.wait();
                }
            });
        }
        let mut rng = fastrand::Rng::with_seed(!seed);
        for round in 0..ROUNDS {
            start.wait();
            meet(round);
            disturb(&mut rng);
            end.wait();
            // The others are at the next start at most.
            check(services);
        }
    });
    for live in services {
        let view = live.view(NOW);
        assert_eq!(view.queue_length, 0);
        assert!(
            view.endpoints
                .iter()
                .all(|endpoint| endpoint.in_flight == 0),
            "{view:?}"
        );
    }
}

#[test]
fn one_comes_as_one_goes() {
    let (_registry, live) = one(service("a", &[1], MAX, 8));
    race(&[live], 2, |_| {});
}

#[test]
fn some_come_go_and_leave() {
    let (_registry, live) = one(service("a", &[1, 2], MAX, 8));
    race(&[live], 5, |_| {});
}

#[test]
fn in_services_that_share_servers() {
    let registry = Registry::with_seed(0);
    let specs = vec![service("a", &[1, 2], MAX, 8), service("b", &[2, 3], MAX, 8)];
    race(&publish(&registry, specs).services, 4, |_| {});
}

#[test]
fn as_servers_go_down_and_come_up() {
    let registry = Registry::with_seed(0);
    let specs = vec![service("a", &[1, 2], MAX, 8), service("b", &[2, 3], MAX, 8)];
    let services = &publish(&registry, specs).services;
    race(services, 3, |rng| {
        let live = &services[rng.usize(..2)];
        let health = if rng.u8(..) < 150 {
            Health::Up
        } else {
            Health::Down
        };
        live.endpoints().all[rng.usize(..2)]
            .state
            .set_health(health, NOW);
        live.refresh(NOW);
    });
}

#[test]
fn as_configurations_change() {
    let registry = Registry::with_seed(0);
    let specs = |swapped: bool| {
        let (first, second) = if swapped {
            (&[2, 3], &[1, 2])
        } else {
            (&[1, 2], &[2, 3])
        };
        vec![service("a", first, MAX, 8), service("b", second, MAX, 8)]
    };
    let services = &publish(&registry, specs(false)).services;
    race(services, 3, |rng| {
        publish(&registry, specs(rng.bool()));
    });
}
