//! Hash: the same key goes to the same server as long as that is ready and not overloaded.
//!
//! Rendezvous hashing (Thaler and Ravishankar 1998), weighted as by Schindelhauer and Schomaker
//! (2005): each server draws a number from the key and its own token, and the best number wins.
//! Compared with a hash ring or Maglev's table it needs no memory and no rebuilding, its shares are
//! exact for any weights, and every change moves the fewest possible keys, including a change of
//! one weight (so slow start moves only keys of the server that grows): when a server leaves, its
//! keys go to all others in proportion, and no other keys move. The price is one multiplication or
//! two per server and request, which at the tens of servers of a service is less than the cache
//! misses of a search in a ring.
//!
//! Load is bounded as described by Mirrokni, Thorup and Zadimoghaddam (2016): a server takes at
//! most `load_factor` times the mean load per weight; a key whose server is at its bound goes to
//! its next best one. A handful of requests never counts as overload, whatever the mean.

use super::{Candidate, Servers, random::Random};
use crate::token::mix;

/// Requests that a server may always have. Otherwise the bound of a quiet service would be a single
/// request, and a client's next request would be sent elsewhere because its last one is just
/// closing.
const ALLOWED_MIN: f64 = 4.0;

/// Weighted rendezvous hashing with bounded load.
#[derive(Clone, Debug)]
pub struct Hash {
    candidates: Box<[Candidate]>,
    weight_total: f64,
    /// All weights are equal, so the scores can be compared directly.
    even: bool,
    load_factor: f64,
    /// For requests without the key.
    keyless: Random,
}

impl Hash {
    /// Builds the algorithm over these servers; a `load_factor` below 1.0 counts as 1.0.
    pub fn new(candidates: &[Candidate], load_factor: f64) -> Hash {
        let first = candidates.first().map(|candidate| candidate.weight);
        Hash {
            candidates: candidates.into(),
            weight_total: candidates.iter().map(|candidate| f64::from(candidate.weight)).sum(),
            even: candidates.iter().all(|candidate| Some(candidate.weight) == first),
            load_factor: load_factor.max(1.0),
            keyless: Random::new(candidates),
        }
    }

    /// Returns the best server for `key` among those that have room and are below their load bound;
    /// if all with room are above it, the best of them. Without a key, one of two drawn at random.
    pub fn pick(
        &self,
        servers: &impl Servers,
        key: Option<u64>,
        rng: &mut fastrand::Rng,
    ) -> Option<usize> {
        let Some(key) = key else {
            return self.keyless.pick(servers, rng);
        };
        let in_flight: f64 =
            (0..self.candidates.len()).map(|server| f64::from(servers.in_flight(server))).sum();
        // Load that a server may have per unit of weight, including this request.
        let bound = self.load_factor * (in_flight + 1.0) / self.weight_total;
        let mut best: Option<(bool, f64, usize)> = None;
        for (server, candidate) in self.candidates.iter().enumerate() {
            if !servers.may_take(server) {
                continue;
            }
            let load_max = (bound * f64::from(candidate.weight)).ceil().max(ALLOWED_MIN);
            let below = f64::from(servers.in_flight(server)) + 1.0 <= load_max;
            let score = self.score(key, candidate);
            if best.is_none_or(|(other_below, other, _)| (below, score) > (other_below, other)) {
                best = Some((below, score, server));
            }
        }
        best.map(|(_, _, server)| server)
    }

    /// Returns a server's score for a key; the highest wins.
    fn score(&self, key: u64, candidate: &Candidate) -> f64 {
        let drawn = drawn(key, candidate.token);
        if self.even { drawn } else { weighted(drawn, candidate.weight) }
    }
}

/// Returns a server's position in a key's order of preference, the highest first: the order that
/// [`Hash::pick`] follows, for servers outside of a picker.
pub(crate) fn preference(key: u64, candidate: Candidate) -> f64 {
    weighted(drawn(key, candidate.token), candidate.weight)
}

/// Returns a value uniform over (0, 1), from the high 53 bits.
fn drawn(key: u64, token: u64) -> f64 {
    ((mix(key ^ token) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Converts to exponential waiting times of rate `weight`: the server whose time ends first wins.
fn weighted(drawn: f64, weight: u32) -> f64 {
    drawn.ln() / f64::from(weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pick::testing::{Sim, candidates, seeded};

    const KEYS: u64 = 20_000;

    /// Returns where each key goes when nothing is in flight.
    fn placement(candidates: &[Candidate]) -> Vec<u64> {
        let algorithm = Hash::new(candidates, 1.25);
        let sim = Sim::new(candidates.len());
        let mut rng = fastrand::Rng::with_seed(1);
        (0..KEYS)
            .map(|key| {
                let key = crate::hash_key(&key.to_le_bytes());
                candidates[algorithm.pick(&sim, Some(key), &mut rng).unwrap()].token
            })
            .collect()
    }

    #[test]
    fn keys_spread_by_weight() {
        for weights in [vec![1; 10], vec![1, 2, 3, 4]] {
            let servers = candidates(&weights);
            let placed = placement(&servers);
            let total: u32 = weights.iter().sum();
            for (server, weight) in servers.iter().zip(&weights) {
                let share = placed.iter().filter(|&&token| token == server.token).count() as f64
                    / KEYS as f64;
                let ideal = f64::from(*weight) / f64::from(total);
                // Keys and tokens are fixed, so this test is deterministic.
                assert!((share - ideal).abs() < 0.01, "{weights:?}: {share}, ideal {ideal}");
            }
        }
    }

    #[test]
    fn a_server_that_leaves_moves_its_own_keys_only_and_to_all_others() {
        let all = candidates(&[1, 2, 1, 1, 3]);
        let before = placement(&all);
        for gone in 0..all.len() {
            let mut rest = all.clone();
            let left = rest.remove(gone);
            let after = placement(&rest);
            let mut successors = std::collections::HashSet::new();
            for (before, after) in before.iter().zip(&after) {
                if *before == left.token {
                    successors.insert(*after);
                } else {
                    assert_eq!(before, after);
                }
            }
            assert_eq!(successors.len(), rest.len());
        }
    }

    #[test]
    fn a_weight_that_grows_draws_keys_to_that_server_only() {
        let mut servers = candidates(&[1, 1, 1, 1]);
        servers[2].weight = 100;
        let mut before = placement(&servers);
        for weight in [300, 600, 1_000] {
            servers[2].weight = weight;
            let after = placement(&servers);
            for (before, after) in before.iter().zip(&after) {
                assert!(before == after || *after == servers[2].token);
            }
            before = after;
        }
    }

    #[test]
    fn the_order_of_servers_does_not_matter() {
        let mut servers = candidates(&[1, 2, 3, 4]);
        let before = placement(&servers);
        servers.reverse();
        assert_eq!(before, placement(&servers));
    }

    #[test]
    fn load_is_bounded_even_when_every_request_has_the_same_key() {
        let mut rng = seeded();
        for (weights, factor) in [(vec![1; 10], 1.25), (vec![1, 2, 3, 4], 1.5), (vec![1; 7], 1.0)] {
            let algorithm = Hash::new(&candidates(&weights), factor);
            let total: f64 = weights.iter().copied().map(f64::from).sum();
            let mut sim = Sim::new(weights.len());
            for placed in 1..=500 {
                let server = algorithm.pick(&sim, Some(42), &mut rng).unwrap();
                sim.in_flight[server] += 1;
                let bound =
                    (factor * f64::from(placed) * f64::from(weights[server]) / total).ceil();
                let bound = bound.max(ALLOWED_MIN);
                assert!(f64::from(sim.in_flight[server]) <= bound, "{factor}: {:?}", sim.in_flight);
            }
        }
    }

    #[test]
    fn a_key_returns_to_its_server_when_the_load_has_gone() {
        let mut rng = seeded();
        let algorithm = Hash::new(&candidates(&[1; 5]), 1.25);
        let mut sim = Sim::new(5);
        let home = algorithm.pick(&sim, Some(9), &mut rng).unwrap();
        sim.in_flight[home] = 50;
        assert_ne!(algorithm.pick(&sim, Some(9), &mut rng), Some(home));
        sim.in_flight = vec![10; 5];
        assert_eq!(algorithm.pick(&sim, Some(9), &mut rng), Some(home));
    }
}
