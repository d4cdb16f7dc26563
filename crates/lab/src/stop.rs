//! Waiting for a time or a condition, which a request to stop ends.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The time between two checks of a condition.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Whether a run is to stop, known to everyone who waits.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// One that never stops.
    pub fn never() -> Stop {
        Stop::default()
    }

    /// Ends every wait, now and from now on.
    pub fn pull(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Whether it was pulled.
    pub fn is_pulled(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Between two steps of what takes long.
    ///
    /// # Errors
    /// That it was pulled.
    pub fn check(&self) -> Result<(), String> {
        if self.is_pulled() { Err("stopped".to_owned()) } else { Ok(()) }
    }

    /// Waits for a time; `false` when the run is to stop.
    pub fn wait(&self, time: Duration) -> bool {
        let guard = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.1.wait_timeout_while(guard, time, |pulled| !*pulled);
        let (pulled, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*pulled
    }

    /// Waits until `condition` yields something, for a time at most.
    pub fn until<T>(&self, time: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
        let begun = os::clock::now();
        loop {
            if let Some(found) = condition() {
                return Some(found);
            }
            if os::clock::now() - begun >= time || !self.wait(LOOK_EVERY) {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_by_its_time_its_condition_or_by_being_stopped() {
        let stop = Stop::default();
        assert!(stop.wait(Duration::from_millis(1)));
        assert_eq!(stop.check(), Ok(()));
        assert_eq!(stop.until(Duration::from_secs(5), || Some(7)), Some(7));
        assert_eq!(stop.until(Duration::from_millis(1), || None::<u8>), None);
        let other = stop.clone();
        let puller = std::thread::spawn(move || other.pull());
        assert_eq!(stop.until(Duration::from_secs(60), || None::<u8>), None);
        assert!(!stop.wait(Duration::from_secs(60)));
        assert_eq!(stop.check(), Err("stopped".to_owned()));
        puller.join().unwrap();
    }
}
