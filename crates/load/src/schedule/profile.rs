//! A rate over time: stages, each constant or a ramp.

use std::fmt;
use std::time::Duration;

/// Highest rate that can be asked for: what no machine of today sends.
pub const RATE_MAX_PER_S: f64 = 10_000_000.0;
/// Lowest rate that can be asked for.
const RATE_MIN_PER_S: f64 = 0.001;
/// Stages of one profile.
const STAGES_MAX: usize = 1_000;

/// A stretch of time in which the rate is constant or changes evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// How long.
    pub time: Duration,
    /// Requests per second at its beginning.
    pub from_per_s: f64,
    /// Requests per second at its end.
    pub to_per_s: f64,
}

/// Stages, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    stages: Vec<Stage>,
}

/// What is wrong with a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError(String);

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProfileError {}

impl Stage {
    /// Arrivals within its first `seconds`.
    fn count(self, seconds: f64) -> f64 {
        self.from_per_s * seconds + self.slope() * seconds * seconds / 2.0
    }

    /// By how much the rate changes each second.
    fn slope(self) -> f64 {
        (self.to_per_s - self.from_per_s) / self.time.as_secs_f64()
    }

    /// Seconds after its beginning at which `count` have arrived.
    fn seconds_at(self, count: f64) -> f64 {
        // The root of slope/2 x² + from x - count, in the form that holds for a slope of 0, too.
        let root = (self.from_per_s.powi(2) + 2.0 * self.slope() * count).max(0.0).sqrt();
        if count <= 0.0 { 0.0 } else { 2.0 * count / (self.from_per_s + root) }
    }
}

impl Profile {
    /// One rate for so long, reached evenly within `ramp` (zero: at once), which is part of `time`.
    ///
    /// # Errors
    /// The rate or the time is out of bounds.
    pub fn steady(per_s: f64, time: Duration, ramp: Duration) -> Result<Profile, ProfileError> {
        let ramp = ramp.min(time);
        let mut stages = Vec::new();
        if !ramp.is_zero() {
            stages.push(Stage { time: ramp, from_per_s: 0.0, to_per_s: per_s });
        }
        if time > ramp {
            stages.push(Stage {
                time: time.saturating_sub(ramp),
                from_per_s: per_s,
                to_per_s: per_s,
            });
        }
        Profile::new(stages)
    }

    /// Of these stages.
    ///
    /// # Errors
    /// When there are none or too many, one lasts no time, or a rate is none.
    pub fn new(stages: Vec<Stage>) -> Result<Profile, ProfileError> {
        let wrong = |text: String| Err(ProfileError(text));
        if stages.is_empty() || stages.len() > STAGES_MAX {
            return wrong(format!("a run has 1 to {STAGES_MAX} stages, not {}", stages.len()));
        }
        for stage in &stages {
            if stage.time.is_zero() || stage.time > Duration::from_hours(24 * 365) {
                return wrong("a stage lasts longer than 0 and at most a year".to_owned());
            }
            let (from, to) = (stage.from_per_s, stage.to_per_s);
            let possible = |rate: f64| (0.0..=RATE_MAX_PER_S).contains(&rate);
            if !possible(from) || !possible(to) || from.max(to) < RATE_MIN_PER_S {
                return wrong(format!(
                    "a rate is between {RATE_MIN_PER_S} and {RATE_MAX_PER_S} requests per second"
                ));
            }
        }
        Ok(Profile { stages })
    }

    /// The stages, in order.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// How long it lasts.
    pub fn time(&self) -> Duration {
        self.stages.iter().map(|stage| stage.time).sum()
    }

    /// The highest rate in it.
    pub fn rate_max_per_s(&self) -> f64 {
        self.stages.iter().map(|stage| stage.from_per_s.max(stage.to_per_s)).fold(0.0, f64::max)
    }

    /// Arrivals until `at`.
    pub fn count_until(&self, at: Duration) -> f64 {
        let mut left = at;
        let mut sum = 0.0;
        for stage in &self.stages {
            let inside = left.min(stage.time);
            sum += stage.count(inside.as_secs_f64());
            left = left.saturating_sub(stage.time);
        }
        sum
    }

    /// Nanoseconds from the beginning at which `count` have arrived; `None`: that is after the end.
    pub fn time_at(&self, count: f64) -> Option<u64> {
        let mut before = 0.0;
        let mut begins = 0.0;
        for stage in &self.stages {
            let length = stage.time.as_secs_f64();
            let whole = stage.count(length);
            if count - before < whole {
                return Some(((begins + stage.seconds_at(count - before)) * 1e9) as u64);
            }
            before += whole;
            begins += length;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_steady_rate_is_evenly_spaced() {
        let profile = Profile::steady(20_000.0, 60 * SECOND, Duration::ZERO).unwrap();
        assert_eq!(profile.time_at(0.0), Some(0));
        for k in [1_u32, 77, 1_199_999] {
            let at = profile.time_at(f64::from(k)).unwrap();
            assert!(at.abs_diff(u64::from(k) * 50_000) <= 1, "{k}: {at}");
        }
        assert_eq!(profile.time_at(1_200_000.0), None);
    }

    #[test]
    fn a_ramp_has_half_the_arrivals_and_ends_at_its_rate() {
        let profile = Profile::steady(100.0, 20 * SECOND, 10 * SECOND).unwrap();
        assert!((profile.count_until(10 * SECOND) - 500.0).abs() < 1e-6);
        assert!((profile.count_until(60 * SECOND) - 1_500.0).abs() < 1e-6);
        assert_eq!(profile.time(), 20 * SECOND);
        // What time_at says, count_until takes back.
        for k in (1..1_500_u32).step_by(37) {
            let at = Duration::from_nanos(profile.time_at(f64::from(k)).unwrap());
            assert!((profile.count_until(at) - f64::from(k)).abs() < 1e-3, "{k}");
        }
        let falling = Stage { time: 10 * SECOND, from_per_s: 100.0, to_per_s: 0.0 };
        let falling = Profile::new(vec![falling]).unwrap();
        let last = falling.time_at(499.9).unwrap();
        assert!((9_500_000_000..10_000_000_000).contains(&last), "{last}");
        assert_eq!(falling.time_at(500.1), None);
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(Profile::steady(rate, SECOND, Duration::ZERO).is_err(), "{rate}");
        }
        assert!(Profile::steady(1.0, Duration::ZERO, Duration::ZERO).is_err());
        assert!(Profile::new(Vec::new()).is_err());
    }
}
