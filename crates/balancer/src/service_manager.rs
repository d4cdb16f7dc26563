//! Notifications to the service manager, whose failure never stops a balancer.

use std::io;
use std::time::Duration;

use model::Moment;

/// Logs that the service manager could not be notified.
pub(crate) fn notify(sent: io::Result<()>) {
    if let Err(error) = sent {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

/// The manager's watchdog, which ends a process that has not reported for some time.
pub(crate) struct Watchdog {
    /// How often to report; `None`: there is no watchdog.
    every: Option<Duration>,
    last: Moment,
}

impl Watchdog {
    /// Reads what the manager expects. Its clock starts now: at the message that this process is ready, or that it has
    /// become the main process.
    pub(crate) fn new(now: Moment) -> Watchdog {
        // Half of the time, as sd_watchdog_enabled(3) recommends.
        Watchdog { every: os::notify::watchdog_interval().map(|time| time / 2), last: now }
    }

    /// Reports that this process works, if it is time to. The main thread calls this after every event: a process
    /// whose main thread hangs is ended.
    pub(crate) fn tend(&mut self, now: Moment) {
        if self.is_due(now) {
            notify(os::notify::alive());
        }
    }

    fn is_due(&mut self, now: Moment) -> bool {
        let is_due = self.every.is_some_and(|every| now - self.last >= every);
        if is_due {
            self.last = now;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_as_frequent_as_asked_for() {
        let mut watchdog = Watchdog { every: Some(Duration::from_secs(15)), last: Moment::ZERO };
        let at = |seconds| Moment::ZERO + Duration::from_secs(seconds);
        let due: Vec<u64> = (0..40).filter(|&second| watchdog.is_due(at(second))).collect();
        assert_eq!(due, [15, 30]);
        assert!(!Watchdog { every: None, last: Moment::ZERO }.is_due(at(100)));
    }
}
