//! Whether a share that was counted proves that the true share is above a limit.
//!
//! Counts are of independent units: connections, or loss episodes (a fast recovery, or a run of
//! timeouts, counts once however many segments it repeats). Segments of one connection are lost
//! together, so their number proves little.
//!
//! A program that looks every second, and at many servers, tests very often. The error level is
//! therefore stated for a month of looks: each test may raise a false alarm with a probability of
//! [`ALARM_CHANCE`], divided by the number of peers that are judged at the same look. By the union
//! bound, which holds for overlapping windows too, the expected number of false alarms in a month is
//! at most one. No smallest number of units is needed: the bound asks for few units where all are
//! affected (4 of 4 prove more than 1 %) and for many where the share is close to the limit.
//!
//! The bound is Chernoff's for the binomial distribution (Hoeffding 1963, theorem 1): if the true
//! share is `limit`, then `P(share of n >= x) <= exp(-n * KL(x || limit))` for every `x > limit`. It
//! holds for every `n`, with no normal approximation.

/// Looks in a month of 30 days, at the shortest interval of the built-in doctor (1 s).
pub const LOOKS_A_MONTH: f64 = 30.0 * 24.0 * 3600.0;

/// Tests of one look that use this module, over all rules.
pub const TESTS_A_LOOK: f64 = 36.0;

/// Probability of a false alarm of one test, so that a month of looks has at most one in expectation.
pub const ALARM_CHANCE: f64 = 1.0 / (LOOKS_A_MONTH * TESTS_A_LOOK);

/// Probability of a false alarm of one test, when `peers` peers are judged at the same look.
pub fn alarm_chance(peers: usize) -> f64 {
    ALARM_CHANCE / peers.max(1) as f64
}

/// Independent units that were observed, and how many of them were affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// Those affected; more than `of` counts as all.
    pub affected: u64,
    /// All that were observed.
    pub of: u64,
}

impl Units {
    /// `affected` of `of` units.
    pub fn new(affected: u64, of: u64) -> Units {
        Units { affected: affected.min(of), of }
    }

    /// The share that was observed; 0 without units.
    pub fn share(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.affected as f64 / self.of as f64 }
    }

    /// Whether the true share is above `limit`, at the stated error level, when `peers` peers are
    /// judged at the same look.
    pub fn exceeds(self, limit: f64, peers: usize) -> bool {
        self.exceeds_at(limit, alarm_chance(peers))
    }

    /// The same at another error level.
    pub fn exceeds_at(self, limit: f64, alarm_chance: f64) -> bool {
        self.share() > limit
            && self.of as f64 * divergence(self.share(), limit) >= -alarm_chance.ln()
    }

    /// Whether a share that has exceeded `limit` has ended, by `newest`, the units since the last look:
    /// less than half the limit of them is affected, and they are enough that the share observed
    /// before (`self`) would have shown at least [`EXPECTED_MIN`] affected units.
    pub fn has_ended(self, newest: Units, limit: f64) -> bool {
        newest.share() < limit / 2.0 && newest.of as f64 * self.share() >= EXPECTED_MIN
    }
}

/// So many affected units must be missing before a fault counts as ended: the chance to miss them all
/// by accident is below 1 %.
pub const EXPECTED_MIN: f64 = 5.0;

/// Kullback–Leibler divergence of two Bernoulli distributions, in nats.
fn divergence(x: f64, limit: f64) -> f64 {
    let limit = limit.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
    let part = |x: f64, limit: f64| if x <= 0.0 { 0.0 } else { x * (x / limit).ln() };
    part(x, limit) + part(1.0 - x, 1.0 - limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fixed, and printed where a test fails, so that a failure can be replayed.
    const SEED: u64 = 0x5eed_0f29;

    /// xorshift64*.
    struct Random(u64);

    impl Random {
        fn unit(&mut self) -> f64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        /// How many of `of` units are affected, each with probability `share`: by the gaps between
        /// affected ones, which are geometric.
        fn units(&mut self, of: u64, share: f64) -> Units {
            let log = (1.0 - share).ln();
            let (mut at, mut affected) = (0_u64, 0);
            loop {
                at = at.saturating_add((self.unit().ln() / log) as u64 + 1);
                if at > of {
                    return Units::new(affected, of);
                }
                affected += 1;
            }
        }
    }

    #[test]
    fn few_units_are_enough_where_all_are_affected() {
        assert!(!Units::new(3, 3).exceeds(0.01, 1));
        assert!(Units::new(4, 4).exceeds(0.01, 1));
        // Many servers ask for more.
        assert!(!Units::new(4, 4).exceeds(0.01, 100));
        assert!(Units::new(5, 5).exceeds(0.01, 100));
        assert!(!Units::new(0, 0).exceeds(0.01, 1) && !Units::new(0, 1_000_000).exceeds(0.01, 1));
        assert!(!Units::new(10_000, 1_000_000).exceeds(0.01, 1), "the limit itself");
    }

    /// At a level that a simulation can see: shares at the limit, of any number of units, raise no more
    /// false alarms than stated.
    #[test]
    fn false_alarms_are_as_rare_as_stated() {
        const TRIALS: u64 = 100_000;
        let mut random = Random(SEED);
        for (limit, of) in [(0.01, 4), (0.01, 100), (0.01, 3_000), (0.05, 40), (0.2, 12)] {
            for level in [0.05, 0.001] {
                let alarms = (0..TRIALS)
                    .filter(|_| random.units(of, limit).exceeds_at(limit, level))
                    .count();
                let allowed = level * TRIALS as f64;
                assert!(
                    alarms as f64 <= allowed,
                    "seed {SEED:#x}: {alarms} alarms of {allowed}, {limit} of {of}"
                );
            }
        }
    }

    /// A month of looks, one every 10 s, at ten servers whose share is exactly at the limit.
    #[test]
    fn a_month_at_the_limit_has_no_alarm() {
        const LOOKS: u64 = 30 * 24 * 360;
        const SERVERS: usize = 10;
        let mut random = Random(SEED);
        let of = |look: u64| 20 + look % 180;
        let alarms = (0..LOOKS)
            .flat_map(|look| std::iter::repeat_n(look, SERVERS))
            .filter(|&look| random.units(of(look), 0.01).exceeds(0.01, SERVERS))
            .count();
        assert!(alarms <= 1, "seed {SEED:#x}: {alarms} alarms");
    }

    /// What must not be missed: 8 % of a thousand, which 100 requests a second are in one look.
    #[test]
    fn a_real_fault_is_seen_at_the_first_look() {
        let mut random = Random(SEED);
        let missed = (0..1_000).filter(|_| !random.units(1_000, 0.08).exceeds(0.01, 10)).count();
        assert!(missed == 0, "seed {SEED:#x}: missed {missed} of 1,000");
    }

    #[test]
    fn a_fault_ends_only_where_its_absence_means_something() {
        let before = Units::new(80, 1_000);
        assert!(before.has_ended(Units::new(0, 100), 0.01));
        assert!(!before.has_ended(Units::new(0, 20), 0.01), "too few to tell");
        assert!(!before.has_ended(Units::new(8, 1_000), 0.01), "less, but above half the limit");
    }

    #[test]
    fn a_fault_that_stays_is_not_taken_for_ended() {
        let mut random = Random(SEED);
        let ended = (0..10_000)
            .filter(|_| random.units(3_000, 0.05).has_ended(random.units(1_000, 0.05), 0.01))
            .count();
        assert!(ended == 0, "seed {SEED:#x}: {ended} of 10,000");
    }
}
