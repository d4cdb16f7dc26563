//! Least connections: the server with the fewest requests in flight relative to its weight.
//!
//! Ties are broken in weighted rotation, so that sequential requests, which find every server idle,
//! are still distributed by weight instead of all going to the first.

use super::{Candidate, Servers, Turn, weights};
use crate::weights::Schedule;

/// The fewest requests in flight relative to weight.
#[derive(Clone, Debug)]
pub struct LeastConnections {
    weights: Box<[u32]>,
    rotation: Schedule,
}

impl LeastConnections {
    /// Builds the algorithm over these servers.
    pub fn new(candidates: &[Candidate]) -> LeastConnections {
        let weights = weights(candidates);
        LeastConnections { rotation: Schedule::new(&weights), weights: weights.into() }
    }

    /// Returns the least loaded server that has room.
    pub fn pick(&self, servers: &impl Servers, turn: &Turn) -> Option<usize> {
        let first = self.rotation.at(turn.next())?;
        let mut best = None;
        for server in (first..self.weights.len()).chain(0..first) {
            if !servers.may_take(server) {
                continue;
            }
            let in_flight = servers.in_flight(server);
            let is_less = best.is_none_or(|(other, other_in_flight)| {
                less_loaded(in_flight, self.weights[server], other_in_flight, self.weights[other])
            });
            if is_less {
                best = Some((server, in_flight));
            }
        }
        best.map(|(server, _)| server)
    }
}

/// Returns whether `a` requests at weight `a_weight` are less load than `b` at `b_weight`.
pub(super) fn less_loaded(a: u32, a_weight: u32, b: u32, b_weight: u32) -> bool {
    u64::from(a) * u64::from(b_weight) < u64::from(b) * u64::from(a_weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pick::testing::{Sim, candidates, seeded};

    #[test]
    fn load_stays_level_whatever_ends_when() {
        let mut rng = seeded();
        let algorithm = LeastConnections::new(&candidates(&[1; 8]));
        let turn = Turn::default();
        let mut sim = Sim::new(8);
        // Steady arrivals; each step one request ends at a random server among the busy.
        for step in 0..20_000 {
            let server = algorithm.pick(&sim, &turn).unwrap();
            let least = *sim.in_flight.iter().min().unwrap();
            assert_eq!(sim.in_flight[server], least);
            sim.in_flight[server] += 1;
            if step >= 80 {
                let busy: Vec<_> = (0..8).filter(|&i| sim.in_flight[i] > 0).collect();
                sim.in_flight[busy[rng.usize(..busy.len())]] -= 1;
            }
        }
    }

    #[test]
    fn load_is_in_proportion_to_weight() {
        let algorithm = LeastConnections::new(&candidates(&[4, 2, 1, 1]));
        let turn = Turn::default();
        let mut sim = Sim::new(4);
        for _ in 0..80 {
            let server = algorithm.pick(&sim, &turn).unwrap();
            sim.in_flight[server] += 1;
        }
        assert_eq!(sim.in_flight, [40, 20, 10, 10]);
    }

    #[test]
    fn a_server_that_answers_slower_gets_fewer() {
        // Discrete time: server 0 holds a request for 10 ticks, the others for 2.
        let algorithm = LeastConnections::new(&candidates(&[1; 4]));
        let turn = Turn::default();
        let mut sim = Sim::new(4);
        let mut running: Vec<(u32, usize)> = Vec::new();
        let mut counts = [0_u32; 4];
        for tick in 0..4_000 {
            running.retain(|&(end, server)| {
                if end == tick {
                    sim.in_flight[server] -= 1;
                }
                end != tick
            });
            for _ in 0..4 {
                let server = algorithm.pick(&sim, &turn).unwrap();
                sim.in_flight[server] += 1;
                counts[server] += 1;
                running.push((tick + if server == 0 { 10 } else { 2 }, server));
            }
        }
        assert!(counts[0] * 3 < counts[1], "{counts:?}");
    }

    #[test]
    fn idle_servers_are_taken_in_weighted_rotation() {
        let algorithm = LeastConnections::new(&candidates(&[3, 1]));
        let turn = Turn::default();
        let picks: Vec<_> = (0..8).map(|_| algorithm.pick(&Sim::new(2), &turn).unwrap()).collect();
        assert_eq!(picks.iter().filter(|&&server| server == 0).count(), 6, "{picks:?}");
    }
}
