//! The five balancing algorithms, one per file: each chooses one of the available servers.
//!
//! An algorithm is built when the eligible servers or their weights change and is immutable
//! afterwards. What changes from request to request (which servers are full, how much is in flight,
//! latencies) it reads from [`Servers`]. A server that is full or already tried is passed over
//! while another has room; `None` means that no server may take the request.

pub mod hash;
pub mod least_connections;
pub mod peak_ewma;
pub mod random;
pub mod round_robin;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use model::Balance;

/// The current state of the servers, by index, as an algorithm sees it.
pub trait Servers {
    /// Returns whether it has room and may be chosen.
    fn may_take(&self, server: usize) -> bool;
    /// Returns the requests in flight at it.
    fn in_flight(&self, server: usize) -> u32;
    /// Returns the current estimate of the time to a response head, in microseconds; `None`:
    /// unknown.
    fn latency_us(&self, server: usize) -> Option<f64>;
}

/// The static properties of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The [`crate::server_token`] of its address.
    pub token: u64,
    /// Its share relative to the others, in thousandths of a configured weight, so that slow start
    /// has fractions to work with; above 0.
    pub weight: u32,
}

/// The turn counter, shared by all workers. It outlives the algorithm, so that a change of the
/// servers does not restart at the first.
#[derive(Debug, Default)]
pub struct Turn(AtomicU64);

impl Turn {
    /// Returns a counter whose first turn is `start`. Balancers that start together should use
    /// different values, so that they do not all begin with the same server.
    pub fn starting_at(start: u64) -> Turn {
        Turn(AtomicU64::new(start))
    }

    /// Returns a counter with the same next turn, for a choice that takes none.
    pub(crate) fn copy(&self) -> Turn {
        Turn::starting_at(self.0.load(Relaxed))
    }

    /// Returns the next turn's number.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }
}

/// A balancing algorithm, ready to choose.
#[derive(Clone, Debug)]
pub enum Picker {
    /// Each in turn.
    RoundRobin(round_robin::RoundRobin),
    /// The fewest requests in flight.
    LeastConnections(least_connections::LeastConnections),
    /// The lower product of latency and requests in flight, of two drawn at random.
    PeakEwma(peak_ewma::PeakEwma),
    /// The fewer requests in flight, of two drawn at random.
    Random(random::Random),
    /// By key.
    Hash(hash::Hash),
}

impl Picker {
    /// Builds the algorithm that `balance` names, over these servers.
    pub fn new(balance: &Balance, candidates: &[Candidate]) -> Picker {
        match balance {
            Balance::RoundRobin => Picker::RoundRobin(round_robin::RoundRobin::new(candidates)),
            Balance::LeastConnections => {
                Picker::LeastConnections(least_connections::LeastConnections::new(candidates))
            }
            Balance::PeakEwma => Picker::PeakEwma(peak_ewma::PeakEwma::new(candidates)),
            Balance::Random => Picker::Random(random::Random::new(candidates)),
            Balance::Hash(key) => Picker::Hash(hash::Hash::new(candidates, key.load_factor)),
        }
    }

    /// Returns the server for one request, by its index among the candidates; `None` if none may
    /// take it.
    pub fn pick(
        &self,
        servers: &impl Servers,
        turn: &Turn,
        key: Option<u64>,
        rng: &mut fastrand::Rng,
    ) -> Option<usize> {
        match self {
            Picker::RoundRobin(algorithm) => algorithm.pick(servers, turn),
            Picker::LeastConnections(algorithm) => algorithm.pick(servers, turn),
            Picker::PeakEwma(algorithm) => algorithm.pick(servers, rng),
            Picker::Random(algorithm) => algorithm.pick(servers, rng),
            Picker::Hash(algorithm) => algorithm.pick(servers, key, rng),
        }
    }
}

fn weights(candidates: &[Candidate]) -> Vec<u32> {
    candidates.iter().map(|candidate| candidate.weight).collect()
}

#[cfg(test)]
pub(crate) mod testing {
    //! Test servers as plain numbers.

    use super::{Candidate, Servers};

    #[derive(Clone, Debug, Default)]
    pub(crate) struct Sim {
        pub(crate) in_flight: Vec<u32>,
        pub(crate) max: Vec<u32>,
        pub(crate) latency_us: Vec<Option<f64>>,
    }

    impl Sim {
        pub(crate) fn new(servers: usize) -> Sim {
            Sim {
                in_flight: vec![0; servers],
                max: vec![u32::MAX; servers],
                latency_us: vec![None; servers],
            }
        }
    }

    impl Servers for Sim {
        fn may_take(&self, server: usize) -> bool {
            self.in_flight[server] < self.max[server]
        }
        fn in_flight(&self, server: usize) -> u32 {
            self.in_flight[server]
        }
        fn latency_us(&self, server: usize) -> Option<f64> {
            self.latency_us[server]
        }
    }

    pub(crate) fn candidates(weights: &[u32]) -> Vec<Candidate> {
        let token = |i| crate::token::mix(i as u64);
        weights
            .iter()
            .enumerate()
            .map(|(i, weight)| Candidate { token: token(i), weight: weight * 1_000 })
            .collect()
    }

    pub(crate) fn seeded() -> fastrand::Rng {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        fastrand::Rng::with_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use model::{HashKey, HashOn};

    use super::*;
    use testing::{Sim, candidates, seeded};

    fn all() -> Vec<Balance> {
        vec![
            Balance::RoundRobin,
            Balance::LeastConnections,
            Balance::PeakEwma,
            Balance::Random,
            Balance::Hash(HashKey { on: HashOn::Client, load_factor: 1.25 }),
        ]
    }

    #[test]
    fn every_algorithm_finds_the_only_server_with_room_and_says_when_there_is_none() {
        let mut rng = seeded();
        let turn = Turn::default();
        for balance in all() {
            let picker = Picker::new(&balance, &candidates(&[900, 1, 900, 50]));
            let mut sim = Sim::new(4);
            sim.in_flight = vec![4, 3, 4, 4];
            sim.max = vec![4; 4];
            for key in 0..200 {
                let key = (key % 3 != 0).then_some(key);
                assert_eq!(picker.pick(&sim, &turn, key, &mut rng), Some(1), "{balance:?}");
            }
            sim.in_flight[1] = 4;
            assert_eq!(picker.pick(&sim, &turn, Some(7), &mut rng), None, "{balance:?}");
            let empty = Picker::new(&balance, &[]);
            assert_eq!(empty.pick(&Sim::new(0), &turn, Some(7), &mut rng), None, "{balance:?}");
        }
    }

    #[test]
    fn every_algorithm_keeps_all_slots_busy_while_work_is_left() {
        // 24 requests for 6 servers of 4: with any algorithm, all 24 slots end up taken.
        let mut rng = seeded();
        for balance in all() {
            let picker = Picker::new(&balance, &candidates(&[1; 6]));
            let turn = Turn::default();
            let mut sim = Sim::new(6);
            sim.max = vec![4; 6];
            for _ in 0..24 {
                let key = Some(rng.u64(..10));
                let server = picker.pick(&sim, &turn, key, &mut rng).unwrap();
                sim.in_flight[server] += 1;
            }
            assert_eq!(sim.in_flight, [4; 6], "{balance:?}");
        }
    }
}
