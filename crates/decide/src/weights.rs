//! Converts weights into structures that algorithms read without arithmetic: a smooth order of
//! turns, and a proportional draw.
//!
//! Built when a service's eligible servers or their weights change, never on a request's path.

/// Maximum number of turns in one round of a [`Schedule`]; with more servers than this each gets
/// one turn.
pub const SCHEDULE_LENGTH_MAX: usize = 8_192;

/// Bound on servers × turns, which is the cost of building a schedule.
const BUILD_STEPS_MAX: usize = 1 << 22;

/// The order of turns: each server as often as its weight says, spread over the round as evenly as
/// possible. This is nginx's smooth weighted round robin, computed ahead for one whole round.
///
/// Weights are reduced by their common divisor; if a round would still be longer than the bound,
/// they are scaled down to it, none below one turn, which rounds a server's share by at most half a
/// turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    turns: Box<[u32]>,
}

impl Schedule {
    /// Returns the schedule of servers `0..weights.len()`. A weight of 0 gets no turn, unless all
    /// are 0.
    pub fn new(weights: &[u32]) -> Schedule {
        let length_max =
            (BUILD_STEPS_MAX / weights.len().max(1)).min(SCHEDULE_LENGTH_MAX).max(weights.len());
        let weights = reduce(weights, length_max);
        let total: i64 = weights.iter().sum();
        if weights.iter().all(|&weight| weight == weights[0]) {
            return Schedule { turns: (0..weights.len() as u32).collect() };
        }
        let mut credit = vec![0_i64; weights.len()];
        let turns = (0..total).map(|_| {
            let mut richest = 0;
            for (i, weight) in weights.iter().enumerate() {
                credit[i] += weight;
                if credit[i] > credit[richest] {
                    richest = i;
                }
            }
            credit[richest] -= total;
            richest as u32
        });
        Schedule { turns: turns.collect() }
    }

    /// Returns the server of the `n`-th turn, counted over all rounds; `None` without servers.
    pub fn at(&self, n: u64) -> Option<usize> {
        let length = self.turns.len() as u64;
        if length == 0 { None } else { Some(self.turns[(n % length) as usize] as usize) }
    }

    /// Returns the number of turns in a round.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Returns whether there are no servers.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

/// Returns weights with the same proportions whose sum is at most `length_max`.
fn reduce(weights: &[u32], length_max: usize) -> Vec<i64> {
    let divisor = weights.iter().copied().fold(0, gcd).max(1);
    let total: u64 = weights.iter().map(|&weight| u64::from(weight / divisor)).sum();
    if total <= length_max as u64 {
        return weights.iter().map(|&weight| i64::from(weight / divisor)).collect();
    }
    let scale = length_max as f64 / (total as f64 * f64::from(divisor));
    weights
        .iter()
        .map(|&weight| if weight == 0 { 0 } else { ((f64::from(weight) * scale) as i64).max(1) })
        .collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Draws servers in proportion to their weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// Sum of the weights up to and including each server's.
    ends: Box<[u64]>,
}

impl Draw {
    /// Returns a draw over servers `0..weights.len()`.
    pub fn new(weights: &[u32]) -> Draw {
        let mut end = 0;
        let ends = weights.iter().map(|&weight| {
            end += u64::from(weight);
            end
        });
        Draw { ends: ends.collect() }
    }

    /// Returns the number of servers.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no servers.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Draws one server; `None` if all weights are 0 or there are no servers.
    pub fn one(&self, rng: &mut fastrand::Rng) -> Option<usize> {
        let total = *self.ends.last()?;
        (total > 0).then(|| self.find(rng.u64(..total)))
    }

    /// Draws two different servers, the second in proportion among those that the first leaves; the
    /// same one twice if only one has a weight.
    pub fn two(&self, rng: &mut fastrand::Rng) -> Option<(usize, usize)> {
        let first = self.one(rng)?;
        let start = if first == 0 { 0 } else { self.ends[first - 1] };
        let weight = self.ends[first] - start;
        let rest = self.ends[self.ends.len() - 1] - weight;
        if rest == 0 {
            return Some((first, first));
        }
        // A point in what is left when the first server's range is cut out.
        let point = rng.u64(..rest);
        let point = if point < start { point } else { point + weight };
        Some((first, self.find(point)))
    }

    fn find(&self, point: u64) -> usize {
        self.ends.partition_point(|&end| end <= point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(schedule: &Schedule, servers: usize) -> Vec<usize> {
        let mut counts = vec![0; servers];
        for n in 0..schedule.len() as u64 {
            counts[schedule.at(n).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn the_interleave_is_the_one_nginx_documents() {
        let schedule = Schedule::new(&[5, 1, 1]);
        let turns: Vec<_> = (0..7).map(|n| schedule.at(n).unwrap()).collect();
        assert_eq!(turns, [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn a_round_gives_each_exactly_its_weight_and_no_stretch_strays_far() {
        let weights = [10, 1, 1, 1, 1, 1, 7, 3];
        let schedule = Schedule::new(&weights);
        assert_eq!(counts(&schedule, 8), [10, 1, 1, 1, 1, 1, 7, 3]);
        let total = 25.0;
        let mut seen = [0.0; 8];
        for n in 0..schedule.len() {
            seen[schedule.at(n as u64).unwrap()] += 1.0;
            for (i, &weight) in weights.iter().enumerate() {
                let ideal = (n + 1) as f64 * f64::from(weight) / total;
                assert!((seen[i] - ideal).abs() < 2.0, "server {i} after {n}: {}", seen[i]);
            }
        }
    }

    #[test]
    fn common_divisors_and_equal_weights_make_short_rounds() {
        assert_eq!(Schedule::new(&[1_000_000, 500_000]).len(), 3);
        assert_eq!(Schedule::new(&[700; 40]).len(), 40);
        assert_eq!(Schedule::new(&[]).at(3), None);
    }

    #[test]
    fn a_round_is_bounded_and_its_shares_are_near_the_weights() {
        let weights: Vec<u32> = (0..100).map(|i| 1_000_000 - i * 9_973).collect();
        let schedule = Schedule::new(&weights);
        assert!(schedule.len() <= SCHEDULE_LENGTH_MAX);
        let total: f64 = weights.iter().copied().map(f64::from).sum();
        for (i, count) in counts(&schedule, 100).into_iter().enumerate() {
            let ideal = f64::from(weights[i]) / total * schedule.len() as f64;
            assert!((count as f64 - ideal).abs() <= 1.5, "server {i}: {count}, ideal {ideal}");
        }
    }

    #[test]
    fn even_a_very_small_weight_gets_a_turn() {
        let schedule = Schedule::new(&[1_000_000, 1, 999_999]);
        assert_eq!(counts(&schedule, 3)[1], 1);
    }

    #[test]
    fn draws_are_in_proportion_and_never_twice_the_same() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let draw = Draw::new(&[1, 0, 3, 6]);
        let (mut firsts, mut pairs) = ([0.0; 4], [0.0; 4]);
        let rounds = 100_000;
        for _ in 0..rounds {
            let (a, b) = draw.two(&mut rng).unwrap();
            assert_ne!(a, b);
            firsts[a] += 1.0;
            if a == 3 {
                pairs[b] += 1.0;
            }
        }
        // Standard deviation of a share over 100,000 draws is below 0.0016.
        for (share, ideal) in firsts.iter().zip([0.1, 0.0, 0.3, 0.6]) {
            assert!((share / f64::from(rounds) - ideal).abs() < 0.01, "{firsts:?}");
        }
        let after_3 = pairs.iter().sum::<f64>();
        assert!((pairs[0] / after_3 - 0.25).abs() < 0.01, "{pairs:?}");
        assert_eq!(Draw::new(&[0, 5]).two(&mut rng), Some((1, 1)));
        assert_eq!(Draw::new(&[0]).one(&mut rng), None);
        assert_eq!(Draw::new(&[]).two(&mut rng), None);
    }
}
