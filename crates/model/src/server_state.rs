//! The state of one server of one service; atomics, kept across configurations.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::{Cause, Moment, ServerLatency, StatedVersion, TcpPath, TrialCounts};

crate::words! {
    /// Health according to the checks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum Health {
        /// No check, or no result yet: used as if up.
        Unknown = "unknown",
        /// `rise` successes in a row.
        Up = "up",
        /// `fall` failures in a row.
        Down = "down",
    }
}

crate::words! {
    /// Administrative state; takes precedence over health checks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[repr(u8)]
    pub enum Administrative {
        /// Receives requests if it is healthy.
        Ready = "ready",
        /// Finishes requests in flight; receives no new ones.
        Drain = "drain",
        /// Receives no requests and is not checked.
        Maintenance = "maintenance",
    }
}

/// Returns the variant that an atomic stores as its number. Only numbers of variants are ever
/// stored.
fn stored<T: Copy>(all: &[T], number: u8) -> T {
    all[usize::from(number)]
}

/// The state of one server of one service. Every field has one writer at a time or tolerates a lost
/// update; all are read on the request's path without a lock.
#[derive(Debug, Default)]
pub struct ServerState {
    health: AtomicU8,
    administrative: AtomicU8,
    /// It is about to be removed because its service needs fewer servers.
    leaving: AtomicBool,
    /// How often it has been set to maintenance.
    maintenances: AtomicU32,
    /// The weight set at run time, plus one; zero: none, the configured one applies.
    weight_plus_one: AtomicU32,
    /// End of the current ejection by passive health checking; zero when not ejected.
    ejected_until_us: AtomicU64,
    /// Consecutive ejections, for the growing duration; decreases after a quiet period.
    pub ejections: AtomicU32,
    /// Failures of real requests since the last success, of any kind.
    pub consecutive_failures: AtomicU32,
    /// Those of them that no client can cause: it could not be reached.
    pub consecutive_unreachable: AtomicU32,
    /// Its counts in its service's current trial.
    pub trial: TrialCounts,
    /// When it last recovered from Down or from an ejection (slow start); zero: it was never out.
    up_since_us: AtomicU64,
    /// Peak-EWMA of the time to the response head, in microseconds (as f64 bits); 0.0: unknown.
    pub latency_us_bits: AtomicU64,
    /// When `latency_us_bits` was last written.
    pub latency_at_us: AtomicU64,
    /// Total requests (or connections in TCP mode) sent to this server.
    pub requests: AtomicU64,
    /// How many of them affinity had bound to it.
    pub bound: AtomicU64,
    /// How many of them have ended without a response, for any reason. Those that are neither among these
    /// nor in `latency.first_byte` wait for their response.
    pub unanswered: AtomicU64,
    /// How many of them failed because of the server or the network.
    pub failures: AtomicU64,
    /// Attempts that failed because of the server or the network, by cause.
    pub failed_by: CauseCounts,
    /// Responses with a status of 500 and above, whether or not passive health checking counts
    /// them.
    pub answered_5xx: AtomicU64,
    /// Moment of the last response head from this server; if this advances while a probe times out,
    /// the timeout is no failure of a server at its limit.
    last_response_us: AtomicU64,
    /// TCP statistics of the path to it.
    pub tcp: TcpPath,
    /// How long its requests took.
    pub latency: ServerLatency,
    /// The version that its responses state, if the service names a field for it.
    pub version: StatedVersion,
}

/// A count for each cause. Allocates its memory with the first failure: most servers have none.
#[derive(Debug, Default)]
pub struct CauseCounts(OnceLock<Box<[AtomicU32; Cause::ALL.len()]>>);

impl CauseCounts {
    /// Counts one failure with `cause`.
    pub fn count(&self, cause: Cause) {
        let zero = || Box::new([const { AtomicU32::new(0) }; Cause::ALL.len()]);
        if let Some(count) = self.0.get_or_init(zero).get(cause as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Returns the number of failures.
    pub fn total(&self) -> u64 {
        let counts = self.0.get().into_iter().flat_map(|counts| counts.iter());
        counts.map(|count| u64::from(count.load(Relaxed))).sum()
    }

    /// Returns the causes that have occurred, each with its count.
    pub fn counted(&self) -> Vec<(Cause, u64)> {
        let Some(counts) = self.0.get() else { return Vec::new() };
        let all = Cause::ALL.iter().zip(counts.iter());
        let counts = all.map(|(&cause, count)| (cause, u64::from(count.load(Relaxed))));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

impl ServerState {
    /// Returns the health according to the checks.
    pub fn health(&self) -> Health {
        stored(Health::ALL, self.health.load(Relaxed))
    }

    /// Sets the health according to the checks and returns the previous one.
    pub fn set_health(&self, health: Health, now: Moment) -> Health {
        let before = self.health.swap(health as u8, Relaxed);
        if before == Health::Down as u8 && health == Health::Up {
            self.up_since_us.store(now.as_micros(), Relaxed);
        }
        stored(Health::ALL, before)
    }

    /// Returns the administrative state.
    pub fn administrative(&self) -> Administrative {
        stored(Administrative::ALL, self.administrative.load(Relaxed))
    }

    /// Returns whether it is about to be removed because its service needs fewer servers: it finishes its requests and
    /// gets no new ones.
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Relaxed)
    }

    /// Sets whether it is about to be removed. Returns whether that is a change.
    pub fn set_leaving(&self, is_leaving: bool) -> bool {
        self.leaving.swap(is_leaving, Relaxed) != is_leaving
    }

    /// Returns how often it has been set to maintenance.
    pub fn maintenances(&self) -> u32 {
        self.maintenances.load(Relaxed)
    }

    /// Sets the administrative state.
    pub fn set_administrative(&self, state: Administrative) {
        if state == Administrative::Maintenance {
            self.maintenances.fetch_add(1, Relaxed);
        }
        self.administrative.store(state as u8, Relaxed);
    }

    /// Returns the weight set at run time, which replaces the configured one.
    pub fn weight_set(&self) -> Option<u16> {
        self.weight_plus_one.load(Relaxed).checked_sub(1).map(|weight| weight as u16)
    }

    /// Sets a weight that replaces the configured one; `None`: the configured one applies again.
    pub fn set_weight(&self, weight: Option<u16>) {
        self.weight_plus_one.store(weight.map_or(0, |weight| u32::from(weight) + 1), Relaxed);
    }

    /// Returns the end of the current ejection, if one is set (it may lie in the past).
    pub fn ejected_until(&self) -> Option<Moment> {
        match self.ejected_until_us.load(Relaxed) {
            0 => None,
            us => Some(Moment::from_micros(us)),
        }
    }

    /// Ejects until `until`. Returns false if it is already ejected: of several workers whose
    /// outcomes cross the threshold at once, one wins.
    pub fn eject(&self, until: Moment) -> bool {
        self.ejected_until_us
            .compare_exchange(0, until.as_micros().max(1), Relaxed, Relaxed)
            .is_ok()
    }

    /// Ends an ejection. Returns whether there was one.
    pub fn readmit(&self, now: Moment) -> bool {
        let was = self.ejected_until_us.swap(0, Relaxed) != 0;
        if was {
            self.note_success();
            self.up_since_us.store(now.as_micros(), Relaxed);
        }
        was
    }

    /// Ends a run of failures. Fast path: one relaxed load while there is none.
    #[inline]
    pub fn note_success(&self) {
        if self.consecutive_failures.load(Relaxed) != 0 {
            self.consecutive_failures.store(0, Relaxed);
            self.consecutive_unreachable.store(0, Relaxed);
        }
    }

    /// Reverts an ejection that its caller found should not have happened; unlike
    /// [`ServerState::readmit`] nothing else changes, since the server was never really out.
    pub fn cancel_ejection(&self) {
        self.ejected_until_us.store(0, Relaxed);
    }

    /// Returns whether new requests may go to it: not down, not ejected, not taken out by an
    /// operator, and not about to be removed. An ejection ends by [`ServerState::readmit`], not by itself, so that all readers
    /// agree.
    pub fn is_ready(&self) -> bool {
        self.is_healthy() && self.administrative() == Administrative::Ready && !self.is_leaving()
    }

    /// Returns whether it is neither down nor ejected, whatever an operator has set.
    pub fn is_healthy(&self) -> bool {
        self.health() != Health::Down && self.ejected_until_us.load(Relaxed) == 0
    }

    /// Returns when it last recovered, if it was ever out.
    pub fn up_since(&self) -> Option<Moment> {
        match self.up_since_us.load(Relaxed) {
            0 => None,
            us => Some(Moment::from_micros(us)),
        }
    }

    /// Records a response head from this server.
    pub fn note_response(&self, now: Moment) {
        self.last_response_us.store(now.as_micros(), Relaxed);
    }

    /// Returns when the last response head arrived; [`Moment::ZERO`] if none ever did.
    pub fn last_response(&self) -> Moment {
        Moment::from_micros(self.last_response_us.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_ejection_does_not_move_the_first() {
        let state = ServerState::default();
        assert!(state.eject(Moment::from_millis(10)));
        assert!(!state.eject(Moment::from_millis(99)));
        assert_eq!(state.ejected_until(), Some(Moment::from_millis(10)));
        assert!(!state.is_ready());
        assert!(state.readmit(Moment::from_millis(10)));
        assert!(state.is_ready());
    }

    #[test]
    fn a_weight_of_zero_is_not_no_weight() {
        let state = ServerState::default();
        assert_eq!(state.weight_set(), None);
        for weight in [0, 1, u16::MAX] {
            state.set_weight(Some(weight));
            assert_eq!(state.weight_set(), Some(weight));
        }
        state.set_weight(None);
        assert_eq!(state.weight_set(), None);
    }

    #[test]
    fn slow_start_counts_from_the_return_not_from_the_first_success() {
        let state = ServerState::default();
        state.set_health(Health::Up, Moment::from_millis(1));
        assert_eq!(state.up_since(), None);
        state.set_health(Health::Down, Moment::from_millis(2));
        state.set_health(Health::Up, Moment::from_millis(3));
        assert_eq!(state.up_since(), Some(Moment::from_millis(3)));
    }
}
