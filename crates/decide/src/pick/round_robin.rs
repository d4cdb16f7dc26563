//! Smooth weighted round robin.
//!
//! The turns are computed ahead ([`Schedule`]), and one counter over all workers selects the turn,
//! so that the order is kept however requests are spread over workers. A server that is full loses
//! its turn; since the counter moves on, its share is spread evenly over the others instead of all
//! going to the next one.

use super::{Candidate, Servers, Turn, weights};
use crate::weights::Schedule;

/// Each in turn.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    schedule: Schedule,
    servers: usize,
}

impl RoundRobin {
    /// Builds the algorithm over these servers.
    pub fn new(candidates: &[Candidate]) -> RoundRobin {
        RoundRobin { schedule: Schedule::new(&weights(candidates)), servers: candidates.len() }
    }

    /// Returns the server whose turn it is, among those that have room.
    pub fn pick(&self, servers: &impl Servers, turn: &Turn) -> Option<usize> {
        let mut server = self.schedule.at(turn.next())?;
        for _ in 0..self.servers {
            if servers.may_take(server) {
                return Some(server);
            }
            server = self.schedule.at(turn.next())?;
        }
        // Few servers have room, or those have low weights: take the next one, without regard to
        // weight.
        (server..self.servers).chain(0..server).find(|&server| servers.may_take(server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pick::testing::{Sim, candidates};

    #[test]
    fn every_round_gives_each_server_its_weight() {
        let weights = [5, 3, 1, 1];
        let algorithm = RoundRobin::new(&candidates(&weights));
        let turn = Turn::starting_at(7);
        for _ in 0..5 {
            let mut counts = [0; 4];
            for _ in 0..10 {
                counts[algorithm.pick(&Sim::new(4), &turn).unwrap()] += 1;
            }
            assert_eq!(counts, weights);
        }
    }

    #[test]
    fn the_share_of_a_full_server_goes_to_all_others_alike() {
        let algorithm = RoundRobin::new(&candidates(&[1; 5]));
        let turn = Turn::default();
        let mut sim = Sim::new(5);
        sim.max[2] = 0;
        let mut counts = [0_i32; 5];
        for _ in 0..1_000 {
            counts[algorithm.pick(&sim, &turn).unwrap()] += 1;
        }
        assert_eq!(counts[2], 0);
        for server in [0, 1, 3, 4] {
            assert!((counts[server] - 250).abs() <= 1, "{counts:?}");
        }
    }
}
