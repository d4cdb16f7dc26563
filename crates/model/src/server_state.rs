//! What is known of one server of one service; atomics, kept across configurations.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::{Cause, Moment, TcpPath, TrialCounts};

crate::words! {
    /// What checks say of a server.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Health {
        /// No check, or none has finished yet: used as if up.
        Unknown = "unknown",
        /// `rise` successes in a row.
        Up = "up",
        /// `fall` failures in a row.
        Down = "down",
    }
}

crate::words! {
    /// What a person says of a server; stands above what checks say.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u8)]
    pub enum Administrative {
        /// Takes work if it is healthy.
        Ready = "ready",
        /// Finishes what it has; takes no new work.
        Drain = "drain",
        /// Takes no work and is not checked.
        Maintenance = "maintenance",
    }
}

/// The variant that an atomic holds as its number. Only numbers of variants are ever stored.
fn stored<T: Copy>(all: &[T], number: u8) -> T {
    all[usize::from(number)]
}

/// One server of one service over its life. Every field has one writer at a time or tolerates a
/// lost update; all are read on the request's path without a lock.
#[derive(Debug, Default)]
pub struct ServerState {
    health: AtomicU8,
    administrative: AtomicU8,
    /// What a person says of its weight, plus one; zero: nothing, the configuration's holds.
    weight_plus_one: AtomicU32,
    /// End of the present ejection by passive health; zero when not ejected.
    ejected_until_us: AtomicU64,
    /// Ejections in a row, for the growing time; falls back after a quiet while.
    pub ejections: AtomicU32,
    /// Failures of real requests since the last success, of any kind.
    pub consecutive_failures: AtomicU32,
    /// Those of them that no client can bring about: it could not be reached.
    pub consecutive_unreachable: AtomicU32,
    /// What it did in its service's present trial.
    pub trial: TrialCounts,
    /// When it last came up from Down or from an ejection (slow start); zero: was never away.
    up_since_us: AtomicU64,
    /// Peak-EWMA of the time to the response head, in microseconds (as f64 bits); 0.0: unknown.
    pub latency_us_bits: AtomicU64,
    /// When `latency_us_bits` was last written.
    pub latency_at_us: AtomicU64,
    /// Requests (or connections in tcp mode) given to this server, ever.
    pub requests: AtomicU64,
    /// Those of them that ended by the server's or the network's fault.
    pub failures: AtomicU64,
    /// Attempts that failed by the server's or the network's fault, by cause.
    pub failed_by: CauseCounts,
    /// Responses with a status of 500 and above, whatever passive health makes of them.
    pub answered_5xx: AtomicU64,
    /// Moment of the last response head from this server; a probe that times out while this moves
    /// is no failure of a server at its limit.
    last_response_us: AtomicU64,
    /// What TCP says of the way to it.
    pub tcp: TcpPath,
}

/// A count for each cause.
#[derive(Debug)]
pub struct CauseCounts([AtomicU32; Cause::ALL.len()]);

impl Default for CauseCounts {
    fn default() -> CauseCounts {
        CauseCounts(std::array::from_fn(|_| AtomicU32::new(0)))
    }
}

impl CauseCounts {
    /// Counts one of `cause`.
    pub fn count(&self, cause: Cause) {
        if let Some(count) = self.0.get(cause as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Those that have been counted, each with how often.
    pub fn counted(&self) -> Vec<(Cause, u64)> {
        let all = Cause::ALL.iter().zip(&self.0);
        let counts = all.map(|(&cause, count)| (cause, u64::from(count.load(Relaxed))));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

impl ServerState {
    /// What checks say.
    pub fn health(&self) -> Health {
        stored(Health::ALL, self.health.load(Relaxed))
    }

    /// Sets what checks say and returns what they said before.
    pub fn set_health(&self, health: Health, now: Moment) -> Health {
        let before = self.health.swap(health as u8, Relaxed);
        if before == Health::Down as u8 && health == Health::Up {
            self.up_since_us.store(now.as_micros(), Relaxed);
        }
        stored(Health::ALL, before)
    }

    /// What a person says.
    pub fn administrative(&self) -> Administrative {
        stored(Administrative::ALL, self.administrative.load(Relaxed))
    }

    /// Sets what a person says.
    pub fn set_administrative(&self, state: Administrative) {
        self.administrative.store(state as u8, Relaxed);
    }

    /// The weight that a person gave it at run time, in place of the configuration's.
    pub fn weight_set(&self) -> Option<u16> {
        self.weight_plus_one.load(Relaxed).checked_sub(1).map(|weight| weight as u16)
    }

    /// Sets a weight in place of the configuration's; `None`: the configuration's holds again.
    pub fn set_weight(&self, weight: Option<u16>) {
        self.weight_plus_one.store(weight.map_or(0, |weight| u32::from(weight) + 1), Relaxed);
    }

    /// The end of the present ejection, if one is set (it may lie in the past).
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

    /// Takes back an ejection that its maker found should not have been; unlike
    /// [`ServerState::readmit`] nothing else changes, since the server was never really away.
    pub fn cancel_ejection(&self) {
        self.ejected_until_us.store(0, Relaxed);
    }

    /// Whether new work may go to it: not down, not ejected, not put aside by a person. An
    /// ejection ends by [`ServerState::readmit`], not by itself, so that every reader agrees.
    pub fn is_ready(&self) -> bool {
        self.health() != Health::Down
            && self.ejected_until_us.load(Relaxed) == 0
            && self.administrative() == Administrative::Ready
    }

    /// When it last came back, if it was ever away.
    pub fn up_since(&self) -> Option<Moment> {
        match self.up_since_us.load(Relaxed) {
            0 => None,
            us => Some(Moment::from_micros(us)),
        }
    }

    /// Notes a response head from this server.
    pub fn note_response(&self, now: Moment) {
        self.last_response_us.store(now.as_micros(), Relaxed);
    }

    /// When the last response head came; [`Moment::ZERO`] if none ever did.
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
