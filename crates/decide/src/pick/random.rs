//! Random: of two servers drawn by weight, the one with fewer requests in flight relative to its
//! weight (the power of two choices, Mitzenmacher 2001).
//!
//! It needs no memory and no scan, and independent balancers do not all send to the same server, as
//! they do with plain least-connections.

use super::{Candidate, Servers, least_connections::less_loaded, weights};
use crate::weights::Draw;

/// Draws that may hit a server without room before all servers are scanned.
const DRAWS_MAX: u32 = 4;

/// The fewer requests in flight, of two drawn at random.
#[derive(Clone, Debug)]
pub struct Random {
    weights: Box<[u32]>,
    draw: Draw,
}

impl Random {
    /// Builds the algorithm over these servers.
    pub fn new(candidates: &[Candidate]) -> Random {
        let weights = weights(candidates);
        Random { draw: Draw::new(&weights), weights: weights.into() }
    }

    /// Returns the less loaded of two servers that have room; the first drawn on a tie, so that
    /// idle servers are chosen exactly by weight.
    pub fn pick(&self, servers: &impl Servers, rng: &mut fastrand::Rng) -> Option<usize> {
        better_of_two(&self.draw, self.weights.len(), servers, rng, |a, b| {
            let (in_flight_a, in_flight_b) = (servers.in_flight(a), servers.in_flight(b));
            less_loaded(in_flight_a, self.weights[a], in_flight_b, self.weights[b])
        })
    }
}

/// Returns a server with room, drawn by weight without regard to load: a choice that no client can
/// predict or influence.
pub fn by_weight(draw: &Draw, servers: &impl Servers, rng: &mut fastrand::Rng) -> Option<usize> {
    for _ in 0..DRAWS_MAX {
        let server = draw.one(rng)?;
        if servers.may_take(server) {
            return Some(server);
        }
    }
    // Few servers have room, or those have low weights: take the next one after a random position.
    let first = rng.usize(..draw.len());
    (first..draw.len()).chain(0..first).find(|&server| servers.may_take(server))
}

/// Returns the better of two drawn servers that have room, by `is_better`; if the draws find none,
/// the best of all with room.
pub(super) fn better_of_two(
    draw: &Draw,
    count: usize,
    servers: &impl Servers,
    rng: &mut fastrand::Rng,
    is_better: impl Fn(usize, usize) -> bool,
) -> Option<usize> {
    for _ in 0..3 {
        let (a, b) = draw.two(rng)?;
        match (servers.may_take(a), servers.may_take(b)) {
            (true, true) => return Some(if is_better(b, a) { b } else { a }),
            (true, false) => return Some(a),
            (false, true) => return Some(b),
            (false, false) => {}
        }
    }
    let first = rng.usize(..count);
    (first..count).chain(0..first).filter(|&server| servers.may_take(server)).reduce(
        |best, server| {
            if is_better(server, best) { server } else { best }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pick::testing::{Sim, candidates, seeded};

    #[test]
    fn idle_servers_are_taken_by_weight() {
        let mut rng = seeded();
        let algorithm = Random::new(&candidates(&[1, 2, 7]));
        let mut counts = [0.0; 3];
        for _ in 0..50_000 {
            counts[algorithm.pick(&Sim::new(3), &mut rng).unwrap()] += 1.0;
        }
        for (count, ideal) in counts.iter().zip([0.1, 0.2, 0.7]) {
            // Standard deviation of a share over 50,000 draws is below 0.0021.
            assert!((count / 50_000.0_f64 - ideal).abs() < 0.0125, "{counts:?}");
        }
    }

    #[test]
    fn a_draw_by_weight_does_not_look_at_load() {
        let mut rng = seeded();
        let draw = Draw::new(&[1_000, 3_000]);
        let mut sim = Sim::new(2);
        sim.in_flight = vec![0, 500];
        let second = (0..40_000).filter(|_| by_weight(&draw, &sim, &mut rng) == Some(1)).count();
        // Standard deviation 87.
        assert!(second.abs_diff(30_000) < 600, "{second}");
        sim.max[1] = 0;
        assert!((0..100).all(|_| by_weight(&draw, &sim, &mut rng) == Some(0)));
        sim.max[0] = 0;
        assert_eq!(by_weight(&draw, &sim, &mut rng), None);
    }

    #[test]
    fn two_choices_keep_the_fullest_server_near_the_mean() {
        // Balls into bins: with one choice the fullest of 100 bins with 10,000 balls is about 25
        // above the mean; with two about log2(ln 100) ≈ 2, independent of the number of balls.
        let mut rng = seeded();
        let algorithm = Random::new(&candidates(&[1; 100]));
        let mut sim = Sim::new(100);
        for _ in 0..10_000 {
            let server = algorithm.pick(&sim, &mut rng).unwrap();
            sim.in_flight[server] += 1;
        }
        let fullest = *sim.in_flight.iter().max().unwrap();
        assert!(fullest <= 106, "fullest {fullest}");
    }

    #[test]
    fn load_follows_weight_under_load_too() {
        let mut rng = seeded();
        let algorithm = Random::new(&candidates(&[1, 1, 3, 5]));
        let mut sim = Sim::new(4);
        for _ in 0..1_000 {
            let server = algorithm.pick(&sim, &mut rng).unwrap();
            sim.in_flight[server] += 1;
        }
        for (count, ideal) in sim.in_flight.iter().zip([100, 100, 300, 500]) {
            assert!(count.abs_diff(ideal) <= ideal / 10, "{:?}", sim.in_flight);
        }
    }
}
