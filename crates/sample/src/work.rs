//! How long a request's work takes: fixed, or drawn from a lognormal distribution.

use std::f64::consts::TAU;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// No work takes longer than this multiple of the mean: a distribution has no bound, a server must.
/// So far out that leaving the rest away changes the mean by less than 0.1 % up to a coefficient of
/// variation of 4.
const MEAN_MULTIPLE_MAX: f64 = 1000.0;

/// A source of work times.
#[derive(Debug)]
pub(super) struct Work {
    mean: Duration,
    /// Of the logarithm; 0 when all are the same.
    sigma: f64,
    rng: Mutex<fastrand::Rng>,
}

impl Work {
    pub(super) fn new(mean: Duration, cv: f64, seed: u64) -> Work {
        // Of a lognormal distribution cv² = exp(sigma²) - 1.
        let sigma = (1.0 + cv * cv).ln().sqrt();
        Work { mean, sigma, rng: Mutex::new(fastrand::Rng::with_seed(seed)) }
    }

    /// The next request's work time.
    pub(super) fn draw(&self) -> Duration {
        if self.sigma == 0.0 || self.mean.is_zero() {
            return self.mean;
        }
        let (u, v) = {
            let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
            (1.0 - rng.f64(), rng.f64())
        };
        // Box and Muller 1958; `u` is never 0.
        let normal = (-2.0 * u.ln()).sqrt() * (TAU * v).cos();
        // Shifted so that the mean, and not the median, is the one asked for.
        let factor = (self.sigma * normal - self.sigma * self.sigma / 2.0).exp();
        self.mean.mul_f64(factor.min(MEAN_MULTIPLE_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_variation_all_are_the_same() {
        let work = Work::new(Duration::from_millis(300), 0.0, 1);
        assert!((0..100).all(|_| work.draw() == Duration::from_millis(300)));
        assert_eq!(Work::new(Duration::ZERO, 0.5, 1).draw(), Duration::ZERO);
    }

    #[test]
    fn mean_and_variation_are_those_asked_for() {
        const DRAWS: usize = 200_000;
        let seed = 7;
        let work = Work::new(Duration::from_millis(100), 0.5, seed);
        let draws: Vec<f64> = (0..DRAWS).map(|_| work.draw().as_secs_f64()).collect();
        let mean = draws.iter().sum::<f64>() / DRAWS as f64;
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / DRAWS as f64;
        let cv = variance.sqrt() / mean;
        assert!((mean - 0.1).abs() < 0.001, "seed {seed}: mean {mean}");
        assert!((cv - 0.5).abs() < 0.02, "seed {seed}: cv {cv}");
        assert!(draws.iter().all(|&d| d <= 0.1 * MEAN_MULTIPLE_MAX));
    }

    #[test]
    fn the_same_seed_draws_the_same_times() {
        let draws = |seed| {
            let work = Work::new(Duration::from_millis(100), 1.0, seed);
            (0..10).map(|_| work.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draws(3), draws(3));
        assert_ne!(draws(3), draws(4));
    }
}
