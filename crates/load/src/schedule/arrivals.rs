//! The times at which one thread's requests are due.

use std::sync::Arc;

use fastrand::Rng;

use super::profile::Profile;

/// How arrivals lie within their rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// At equal distances.
    Even,
    /// As independent users come (a Poisson process): bursts and gaps.
    Random {
        /// What is drawn with; the same seed draws the same moments.
        seed: u64,
    },
}

/// The arrivals of one of several threads: together they are the profile's.
#[derive(Clone, Debug)]
pub struct Arrivals {
    profile: Arc<Profile>,
    threads: f64,
    /// Arrivals of the whole profile at which this thread's next one is due.
    position: f64,
    next_ns: Option<u64>,
    random: Option<Rng>,
}

impl Arrivals {
    /// Those of thread `thread` of `threads`.
    pub fn new(profile: Arc<Profile>, spacing: Spacing, thread: usize, threads: usize) -> Arrivals {
        let threads = threads.max(1) as f64;
        let random = match spacing {
            Spacing::Even => None,
            Spacing::Random { seed } => Some(Rng::with_seed(seed ^ ((thread as u64 + 1) << 32))),
        };
        let mut arrivals =
            Arrivals { profile, threads, position: thread as f64, next_ns: None, random };
        if arrivals.random.is_some() {
            arrivals.position = 0.0;
            arrivals.position = arrivals.drawn();
        }
        arrivals.next_ns = arrivals.profile.time_at(arrivals.position);
        arrivals
    }

    /// When the next one is due, in nanoseconds from the run's beginning; `None`: there are no
    /// more.
    pub fn next_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// Goes on to the one after.
    pub fn advance(&mut self) {
        self.position = match self.random {
            None => self.position + self.threads,
            Some(_) => self.drawn(),
        };
        self.next_ns = self.profile.time_at(self.position);
    }

    /// No more will come.
    pub(crate) fn end(&mut self) {
        self.next_ns = None;
    }

    /// The position after an exponential distance, whose mean is `threads`.
    fn drawn(&mut self) -> f64 {
        let uniform = self.random.as_mut().map_or(0.5, Rng::f64);
        self.position - (1.0 - uniform).ln() * self.threads
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn all(mut arrivals: Arrivals) -> Vec<u64> {
        let next = move || {
            let due = arrivals.next_ns();
            arrivals.advance();
            due
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn threads_share_the_arrivals_without_gap_or_double() {
        let profile =
            Profile::steady(1_000.0, Duration::from_secs(3), Duration::from_secs(1)).unwrap();
        let profile = Arc::new(profile);
        let alone = all(Arrivals::new(Arc::clone(&profile), Spacing::Even, 0, 1));
        let mut together: Vec<u64> = (0..3)
            .flat_map(|n| all(Arrivals::new(Arc::clone(&profile), Spacing::Even, n, 3)))
            .collect();
        together.sort_unstable();
        assert_eq!(together, alone);
        assert_eq!(alone.len(), 2_500);
    }

    #[test]
    fn random_arrivals_keep_the_rate_and_vary_as_a_poisson_process_does() {
        let profile =
            Arc::new(Profile::steady(1_000.0, Duration::from_secs(100), Duration::ZERO).unwrap());
        let spacing = Spacing::Random { seed: 7 };
        let due: Vec<u64> =
            (0..2).flat_map(|n| all(Arrivals::new(Arc::clone(&profile), spacing, n, 2))).collect();
        // 100,000 are expected, with a standard deviation of 316.
        assert!((98_500..101_500).contains(&due.len()), "{}", due.len());
        let mut seconds = [0_f64; 100];
        for at in &due {
            seconds[(at / 1_000_000_000) as usize] += 1.0;
        }
        let mean = due.len() as f64 / 100.0;
        let variance = seconds.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 100.0;
        // Of a Poisson process the variance is the mean; 100 samples know it within a factor of 2.
        assert!((0.5..2.0).contains(&(variance / mean)), "{variance} of {mean}");
        assert_eq!(
            all(Arrivals::new(Arc::clone(&profile), spacing, 0, 2))[..5],
            due[..5],
            "the same seed draws the same"
        );
    }
}
