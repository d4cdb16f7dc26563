//! What one consumer reads from an event of a probe: a success, a failure, or nothing.
//!
//! A result that took longer than this consumer's timeout is a failure for it, whatever it was, and
//! is counted at that timeout: [`ProbeEvent::Pending`] triggers this while the probe may continue
//! for others. Two kinds of result count neither way: a probe that this machine could not even send
//! (no descriptor, no port), and a timeout of a server that is at its concurrency limit and
//! meanwhile answers requests, since the probe had to wait behind work that Weir itself sent.

use std::time::Duration;

use model::{Check, Health};

pub use crate::evidence::{Evidence, Failure};

/// An event of a running probe. Every run ends with exactly one `Done`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeEvent {
    /// It is still running.
    Pending {
        /// Time since its start.
        elapsed: Duration,
    },
    /// It ended.
    Done {
        /// Time since its start.
        elapsed: Duration,
        /// The result.
        result: Result<(), Failure>,
    },
}

/// What the server did while the probe ran; used when a probe times out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLoad {
    /// Its concurrency limit is reached (false without a limit).
    pub at_limit: bool,
    /// It answered a real request since the probe started.
    pub answered_since_start: bool,
}

impl ServerLoad {
    pub(crate) fn excuses(self, failure: Failure) -> bool {
        failure == Failure::Timeout && self.at_limit && self.answered_since_start
    }
}

/// A change of health, with its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The health before.
    pub from: Health,
    /// The health now.
    pub to: Health,
    /// The reason.
    pub evidence: Evidence,
}

/// Reads events by one consumer's timeout, so that each run counts once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    timeout: Duration,
    /// The running probe has already been counted, at this consumer's timeout.
    judged: bool,
}

impl Reading {
    pub(crate) fn new(check: &Check) -> Reading {
        Reading { timeout: check.timeout, judged: false }
    }

    /// See [`crate::shared::tally::Tally::retune`].
    pub(crate) fn retune(&mut self, check: &Check, same_probe: bool) {
        self.timeout = check.timeout;
        self.judged &= same_probe;
    }

    /// Returns the result to count; `None`: the event counts neither way.
    pub(crate) fn read(
        &mut self,
        event: ProbeEvent,
        load: ServerLoad,
    ) -> Option<Result<(), Failure>> {
        let result = match event {
            ProbeEvent::Pending { elapsed } => {
                if self.judged || elapsed < self.timeout {
                    return None;
                }
                self.judged = true;
                Err(Failure::Timeout)
            }
            ProbeEvent::Done { elapsed, result } => {
                if std::mem::take(&mut self.judged) {
                    return None;
                }
                // Abandoned before this consumer's timeout (which has just been raised).
                if result == Err(Failure::Timeout) && elapsed < self.timeout {
                    return None;
                }
                if elapsed > self.timeout { Err(Failure::Timeout) } else { result }
            }
        };
        match result {
            Err(failure) if failure.is_local() || load.excuses(failure) => None,
            Ok(()) | Err(_) => Some(result),
        }
    }
}
