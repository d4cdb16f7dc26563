//! The turns and bounds of waiting jobs, and random steps with a printed seed.

use std::collections::HashMap;

use super::*;

fn place(authentication: u64, client: u64) -> Place {
    Place { authentication, client }
}

/// A queue whose jobs are these places.
fn queue(places: impl IntoIterator<Item = Place>) -> Queue<Place> {
    let mut queue = Queue::new();
    for place in places {
        assert_eq!(queue.push(place, place), Ok(None));
    }
    queue
}

fn taken(queue: &mut Queue<Place>) -> Vec<(u64, u64)> {
    std::iter::from_fn(|| queue.take()).map(|of| (of.authentication, of.client)).collect()
}

#[test]
fn clients_take_turns_and_each_has_its_jobs_in_order() {
    let mut queue = Queue::new();
    for (client, job) in [(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (2, "b2"), (3, "c1")] {
        assert_eq!(queue.push(place(0, client), job), Ok(None));
    }
    let order: Vec<_> = std::iter::from_fn(|| queue.take()).collect();
    assert_eq!(order, ["a1", "b1", "c1", "a2", "b2", "a3"]);
    assert_eq!(queue.take(), None);
}

#[test]
fn authentications_take_turns_however_many_clients_each_has() {
    let flood = (1..=6).map(|client| place(1, client));
    let mut queue = queue(flood.chain([place(2, 9), place(2, 9)]));
    assert_eq!(taken(&mut queue), [(1, 1), (2, 9), (1, 2), (2, 9), (1, 3), (1, 4), (1, 5), (1, 6)]);
}

#[test]
fn one_who_has_had_a_turn_waits_for_those_who_have_not() {
    let mut queue = queue([place(1, 1), place(1, 2), place(1, 3)]);
    // A client that sends its next job as soon as one is taken.
    assert_eq!(queue.take(), Some(place(1, 1)));
    assert_eq!(queue.push(place(1, 1), place(1, 1)), Ok(None));
    assert_eq!(taken(&mut queue), [(1, 2), (1, 3), (1, 1)]);
}

#[test]
fn a_client_has_an_eighth_of_the_places_over_all_authentications() {
    let mut queue = queue((0..CLIENT_JOBS_MAX as u64).map(|one| place(one % 3, 7)));
    assert!(queue.is_full_for(7) && !queue.is_full_for(8));
    assert_eq!(queue.push(place(9, 7), place(9, 7)), Err(Full::Client));
    assert_eq!(queue.push(place(0, 8), place(0, 8)), Ok(None));
    queue.take();
    assert_eq!(queue.push(place(9, 7), place(9, 7)), Ok(None));
}

#[test]
fn a_full_queue_has_room_for_a_client_without_jobs() {
    // Eight clients with eight jobs each, over eight authentications, the last one with the newest.
    let all = (1..=8).flat_map(|client| (0..8).map(move |one| place(one, client)));
    let mut queue = queue(all);
    assert!(queue.is_full_for(9));
    assert_eq!(queue.push(place(0, 9), place(0, 9)), Ok(Some(place(7, 8))));
    // The next one loses, until all have the same.
    assert_eq!(queue.push(place(0, 10), place(0, 10)), Ok(Some(place(7, 7))));
    for client in 11..=64 {
        assert!(matches!(queue.push(place(0, client), place(0, client)), Ok(Some(_))), "{client}");
    }
    let mut left: HashMap<u64, usize> = HashMap::new();
    for (of, _) in &queue.jobs {
        *left.entry(of.client).or_default() += 1;
    }
    assert!(left.len() == 64 && left.values().all(|&jobs| jobs == 1), "{left:?}");
}

#[test]
fn a_full_queue_has_room_for_an_authentication_without_jobs() {
    // As many clients as there are places flood one authentication.
    let mut queue = queue((0..JOBS_MAX as u64).map(|client| place(1, client)));
    assert_eq!(queue.push(place(1, 100), place(1, 100)), Err(Full::Queue));
    for client in 100..132 {
        let newest = place(1, JOBS_MAX as u64 + 99 - client);
        assert_eq!(queue.push(place(2, client), place(2, client)), Ok(Some(newest)));
    }
    assert_eq!(queue.push(place(2, 200), place(2, 200)), Err(Full::Queue));
    assert_eq!(taken(&mut queue)[..4], [(1, 0), (2, 100), (1, 1), (2, 101)]);
}

#[test]
fn those_that_are_no_longer_wanted_give_up_their_places_and_turns() {
    let mut queue = queue([place(1, 1), place(1, 2), place(2, 3), place(1, 1)]);
    queue.retain(|of| of.client == 2);
    assert_eq!((queue.authentications.len(), queue.places.len()), (1, 1));
    assert_eq!(taken(&mut queue), [(1, 2)]);
}

/// Random steps: the bounds hold, the lists agree, and no one waits longer than the rounds take.
#[test]
fn every_job_has_its_turn_within_the_rounds_before_it() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..200 {
        let (authentications, clients) = (rng.u64(1..6), rng.u64(1..100));
        let mut queue = Queue::new();
        // By client that has one job: how many jobs were taken since.
        let mut waits: HashMap<u64, (Place, usize)> = HashMap::new();
        let mut number = 0_u64;
        for _ in 0..500 {
            if rng.u8(..3) > 0 {
                number += 1;
                let of = place(rng.u64(..authentications), rng.u64(..clients));
                let before = queue.jobs.len();
                match queue.push(of, number) {
                    Ok(None) => assert_eq!(queue.jobs.len(), before + 1),
                    Ok(Some(displaced)) => {
                        assert_eq!(before, JOBS_MAX, "seed {seed}");
                        waits.remove(&displaced);
                    }
                    Err(full) => {
                        let of_client = queue.count_of_client(of.client);
                        assert_eq!(full == Full::Client, of_client == CLIENT_JOBS_MAX);
                        continue;
                    }
                }
                if queue.count(|other| other == of) == 1 {
                    waits.insert(number, (of, 0));
                }
            } else if let Some(job) = queue.take() {
                waits.remove(&job);
                for (_, taken) in waits.values_mut() {
                    *taken += 1;
                }
            }
            let Queue { jobs, authentications: turns, places } = &queue;
            assert!(jobs.len() <= JOBS_MAX, "seed {seed}");
            for (of, _) in jobs {
                assert!(queue.count_of_client(of.client) <= CLIENT_JOBS_MAX, "seed {seed}");
                let turns = turns.iter().filter(|one| **one == of.authentication);
                let places = places.iter().filter(|place| *place == of);
                assert_eq!((turns.count(), places.count()), (1, 1), "seed {seed}");
            }
            // It waits for one job of each client of its authentication, and each time for one job of
            // each other authentication.
            let bound = clients.min(JOBS_MAX as u64) * authentications;
            for (of, taken) in waits.values() {
                assert!(*taken as u64 <= bound, "seed {seed}: {of:?} {taken}");
            }
        }
    }
}
