//! What the function `wanted` keeps from one call to the next, in bounded memory.

use std::collections::VecDeque;
use std::time::Duration;

use crate::load::Load;

/// Parts of the stabilization window. A number is held for up to one part longer than the window.
const PARTS: u32 = 20;
/// Maximum number of parts in memory, whatever the window and the times of calls are.
const PARTS_MAX: usize = 2 * PARTS as usize;
/// Requests over which the service time is at least averaged. With as many, the standard error of the mean is a
/// twentieth of the standard deviation of one request.
const REQUESTS_MIN: f64 = 400.0;
/// Time that the first load covers, as far as is known, and the longest time that any load covers.
const COVERED: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(60));

/// The memory of one service. Start with `Memory::default()`.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    called_at: Option<Duration>,
    loaded_at: Duration,
    /// Seconds that the latest load covers.
    covered: f64,
    arrivals: Option<f64>,
    service: ServiceTime,
    pub(crate) highest: Highest,
}

/// The mean service time over the latest requests.
#[derive(Clone, Copy, Debug, Default)]
struct ServiceTime {
    seconds: f64,
    requests: f64,
}

/// The highest number over a window, in parts of the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Highest {
    parts: VecDeque<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    from: Duration,
    to: Duration,
    highest: u32,
}

impl Memory {
    /// Adds a load. The first call records the number of servers as if it had been the answer before, as Kubernetes
    /// does: an instance that has just started does not know yet that it may be lowered.
    pub(crate) fn add(&mut self, load: &Load, servers: u32, now: Duration) {
        let covered = match self.called_at {
            Some(before) => now.saturating_sub(before).min(COVERED.1),
            None => COVERED.0,
        };
        if self.called_at.is_none() {
            self.highest.add(servers, Duration::ZERO, now);
            self.loaded_at = now;
        }
        if !load.is_idle() {
            self.loaded_at = now;
        }
        self.called_at = Some(now);
        self.covered = covered.as_secs_f64();
        self.service.add(load, self.covered);
    }

    /// Adds a rate of arrivals. Returns its mean, weighted exponentially with a time constant of half the service
    /// time. The requests in flight follow the arrivals with a time constant of the whole service time (M/G/∞ with
    /// exponential service times), so a short burst of long requests needs few slots. Half of it keeps the mean
    /// ahead of them. Makes no difference for requests of a few seconds.
    pub(crate) fn mean_arrivals(&mut self, arrivals: f64, service_seconds: f64) -> f64 {
        let constant = (service_seconds / 2.0).max(1e-6);
        let weight = 1.0 - (-self.covered / constant).exp();
        let before = self.arrivals.unwrap_or(arrivals);
        let mean = before + weight * (arrivals - before);
        self.arrivals = Some(mean);
        mean
    }

    /// Returns the mean service time in seconds, over at least [`REQUESTS_MIN`] requests if there were as many.
    pub(crate) fn service_seconds(&self) -> Option<f64> {
        (self.service.requests > 0.0).then(|| self.service.seconds / self.service.requests)
    }

    /// Returns for how long there has been no load.
    pub(crate) fn idle(&self, now: Duration) -> Duration {
        now.saturating_sub(self.loaded_at)
    }
}

impl ServiceTime {
    /// Adds the requests of a load. Of those before, as many are kept as are missing to [`REQUESTS_MIN`].
    fn add(&mut self, load: &Load, seconds: f64) {
        let requests = load.completions * seconds;
        let missing = (REQUESTS_MIN - requests).max(0.0);
        let kept = if self.requests > missing { missing / self.requests } else { 1.0 };
        self.requests = self.requests * kept + requests;
        self.seconds = self.seconds * kept + load.worked * seconds;
    }
}

impl Highest {
    /// Adds a number, and forgets those that are older than the window.
    pub(crate) fn add(&mut self, number: u32, window: Duration, now: Duration) {
        while self.parts.front().is_some_and(|part| now.saturating_sub(part.to) > window) {
            self.parts.pop_front();
        }
        match self.parts.back_mut() {
            Some(last) if now.saturating_sub(last.from) < window / PARTS => {
                last.to = now.max(last.to);
                last.highest = last.highest.max(number);
            }
            _ => self.parts.push_back(Part { from: now, to: now, highest: number }),
        }
        if self.parts.len() > PARTS_MAX {
            // Only after the window has become longer. The two oldest become one.
            let oldest = self.parts.pop_front().map_or(0, |part| part.highest);
            if let Some(next) = self.parts.front_mut() {
                next.highest = next.highest.max(oldest);
            }
        }
    }

    /// Returns the highest number, 0 if there is none.
    pub(crate) fn get(&self) -> u32 {
        self.parts.iter().map(|part| part.highest).max().unwrap_or(0)
    }

    /// Forgets all numbers.
    pub(crate) fn clear(&mut self) {
        self.parts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(300);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_highest_number_is_kept_for_the_window() {
        let mut highest = Highest::default();
        highest.add(9, WINDOW, at(0));
        for second in 1..=300 {
            highest.add(3, WINDOW, at(second));
            assert_eq!(highest.get(), 9, "{second}");
            assert!(highest.parts.len() <= PARTS_MAX);
        }
        for second in 301..=400 {
            highest.add(3, WINDOW, at(second));
        }
        assert_eq!(highest.get(), 3);
    }

    #[test]
    fn memory_is_bounded_when_the_window_changes() {
        let mut highest = Highest::default();
        for second in 0..1_000 {
            highest.add(second as u32 % 7, at(20 + second * 5), at(second * 10));
            assert!(highest.parts.len() <= PARTS_MAX);
        }
        assert_eq!(highest.get(), 6);
        // The clock is set back.
        highest.add(1, WINDOW, at(0));
        assert_eq!(highest.get(), 6);
    }

    #[test]
    fn arrivals_of_long_requests_are_averaged() {
        let mut memory = Memory::default();
        memory.add(&Load::default(), 1, at(0));
        assert!((memory.mean_arrivals(10.0, 60.0) - 10.0).abs() < 1e-9);
        memory.add(&Load::default(), 1, at(15));
        // 1 − e^(−15 / 30) = 0.39 of the change.
        assert!((memory.mean_arrivals(20.0, 60.0) - 13.93).abs() < 0.01);
        memory.add(&Load::default(), 1, at(30));
        assert!((memory.mean_arrivals(20.0, 0.4) - 20.0).abs() < 1e-9);
    }

    #[test]
    fn the_service_time_averages_over_enough_requests() {
        let mut memory = Memory::default();
        assert_eq!(memory.service_seconds(), None);
        let load = |rate: f64, seconds: f64| Load {
            completions: rate,
            worked: rate * seconds,
            ..Load::default()
        };
        memory.add(&load(40.0, 0.1), 1, at(0));
        assert!((memory.service_seconds().unwrap() - 0.1).abs() < 1e-12);
        // 40 requests of 1 s beside 360 of 0.1 s.
        memory.add(&load(4.0, 1.0), 1, at(10));
        assert!((memory.service_seconds().unwrap() - 0.19).abs() < 1e-9);
        // Nothing ended: as before.
        memory.add(&Load::default(), 1, at(20));
        assert!((memory.service_seconds().unwrap() - 0.19).abs() < 1e-9);
        // Many requests replace all that was before.
        memory.add(&load(50.0, 0.3), 1, at(30));
        assert!((memory.service_seconds().unwrap() - 0.3).abs() < 1e-9);
    }
}
