//! What one member says about one run of a probe.

use std::time::Duration;

use crate::evidence::Failure;

/// What a run of a probe showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server answered as expected.
    Success,
    /// It did not.
    Failure(Failure),
    /// Nothing about the server: the prober could not send the probe, or says it in a way that this
    /// version does not know.
    Unknown,
}

impl Outcome {
    /// Returns the outcome of a run as its prober reports it.
    pub fn of(result: Result<(), Failure>) -> Outcome {
        match result {
            Ok(()) => Outcome::Success,
            Err(failure) if failure.is_local() => Outcome::Unknown,
            Err(failure) => Outcome::Failure(failure),
        }
    }
}

/// One result, as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// What the run showed.
    pub outcome: Outcome,
    /// Time from the start of the run to its end.
    pub elapsed: Duration,
    /// Time from the end of the run to the sending of this message, by the sender's monotonic clock.
    pub age_at_sending: Duration,
    /// Number of the run at its prober, which wraps around: recognises repetitions.
    pub run: u16,
    /// Outcomes of this kind (success or failure) in a row at the prober, this one included: makes
    /// up for lost messages. At least 1.
    pub in_a_row: u8,
}

impl Heard {
    /// Returns whether the server answered as expected, however slowly.
    pub(crate) fn is_success(&self) -> bool {
        self.outcome == Outcome::Success
    }

    /// Returns what it means for a consumer that waits for `timeout`; `None` if it means nothing:
    /// it says nothing about the server, or the prober gave up earlier than that.
    pub fn read(&self, timeout: Duration) -> Option<Result<(), Failure>> {
        match self.outcome {
            Outcome::Unknown => None,
            Outcome::Failure(Failure::Timeout) if self.elapsed < timeout => None,
            _ if self.elapsed > timeout => Some(Err(Failure::Timeout)),
            Outcome::Success => Some(Ok(())),
            Outcome::Failure(failure) => Some(Err(failure)),
        }
    }
}
