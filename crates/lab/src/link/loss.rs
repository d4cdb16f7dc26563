//! Loss of packets, independent and in bursts.

use fastrand::Rng;

use super::way::{Bursts, Way};

/// The state of a lossy link.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    rng: Rng,
    bursts_rng: Rng,
    is_bad: bool,
}

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// By itself.
    Alone,
    /// In a burst.
    InBurst,
}

impl Loss {
    pub(super) fn new(seed: u64) -> Loss {
        let mut rng = Rng::with_seed(seed);
        Loss { bursts_rng: rng.fork(), rng, is_bad: false }
    }

    /// Whether the next packet is lost. Each kind draws from its own numbers, so that switching one
    /// on leaves the other's decisions as they were.
    pub(super) fn next(&mut self, way: &Way) -> Option<Lost> {
        let alone = way.loss.0 > 0.0 && self.rng.f64() < way.loss.0;
        let in_burst = way.bursts.is_some_and(|bursts| self.burst(bursts));
        match (alone, in_burst) {
            (_, true) => Some(Lost::InBurst),
            (true, false) => Some(Lost::Alone),
            (false, false) => None,
        }
    }

    fn burst(&mut self, bursts: Bursts) -> bool {
        let change = if self.is_bad { bursts.end } else { bursts.begin };
        if self.bursts_rng.f64() < change.0 {
            self.is_bad = !self.is_bad;
        }
        self.is_bad && self.bursts_rng.f64() < bursts.loss.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Share;

    const PACKETS: usize = 200_000;

    fn lost(way: &Way, seed: u64) -> Vec<bool> {
        let mut loss = Loss::new(seed);
        (0..PACKETS).map(|_| loss.next(way).is_some()).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
    }

    #[test]
    fn a_share_is_lost_and_the_same_one_again_by_the_same_seed() {
        let way = Way { loss: Share(0.02), ..Way::default() };
        let first = lost(&way, 7);
        assert!((share(&first) - 0.02).abs() < 0.002, "{}", share(&first));
        assert_eq!(first, lost(&way, 7));
        assert_ne!(first, lost(&way, 8));
    }

    #[test]
    fn bursts_are_as_long_and_as_frequent_as_asked_for() {
        let bursts = Bursts { begin: Share(0.001), end: Share(0.1), loss: Share(1.0) };
        let lost = lost(&Way { bursts: Some(bursts), ..Way::default() }, 7);
        // Bad for 1/0.1 packets, good for 1/0.001.
        assert!((share(&lost) - 10.0 / 1010.0).abs() < 0.0025, "{}", share(&lost));
        let begun = lost.windows(2).filter(|two| !two[0] && two[1]).count();
        let length = lost.iter().filter(|lost| **lost).count() as f64 / begun as f64;
        assert!((8.0..=12.0).contains(&length), "{length}");
    }

    #[test]
    fn nothing_is_lost_unless_asked_for() {
        assert!(share(&lost(&Way::default(), 7)) == 0.0);
    }
}
