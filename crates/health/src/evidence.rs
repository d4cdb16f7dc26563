//! Results of probes as evidence: why one failed, how many of a kind came in a row, and the phrases
//! in which logs say so.

use std::fmt;

use model::{Cause, Fault};

/// Why a probe failed. Displays as a readable phrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No result in time.
    Timeout,
    /// A response with a status that was not expected.
    Status(u16),
    /// No connection, or no valid response on it.
    Broken(Cause),
    /// The failure in these words: TLS was refused by one side, or a gRPC health service reports
    /// the server as not serving.
    Said(&'static str),
}

impl Failure {
    /// Returns whether it says nothing about the server, since this machine could not send the
    /// probe.
    pub fn is_local(self) -> bool {
        matches!(self, Failure::Broken(cause) if cause.fault() == Fault::Balancer)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Timeout => f.write_str("no answer in time"),
            Failure::Status(status) => write!(f, "status {status}"),
            Failure::Said(words) => f.write_str(words),
            Failure::Broken(cause) => {
                for (n, word) in cause.name().split('_').enumerate() {
                    let space = if n == 0 { "" } else { " " };
                    write!(f, "{space}{word}")?;
                }
                Ok(())
            }
        }
    }
}

/// The evidence for a change. Displays as `connection refused 3 times`, `2 successes in a row`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Successes in a row.
    Successes(u32),
    /// Failures in a row.
    Failures {
        /// How many.
        count: u32,
        /// How many of them, counted back from the last, were alike.
        alike: u32,
        /// The last.
        last: Failure,
    },
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Evidence::Successes(1) => f.write_str("1 success"),
            Evidence::Successes(n) => write!(f, "{n} successes in a row"),
            Evidence::Failures { count: 1, last, .. } => last.fmt(f),
            Evidence::Failures { count, alike, last } if alike >= count => {
                write!(f, "{last} {count} times")
            }
            Evidence::Failures { count, last, .. } => {
                write!(f, "{count} failures in a row, the last: {last}")
            }
        }
    }
}

/// How many results of one kind came last, in a row, from one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Streak {
    successes: u32,
    failures: u32,
    /// How many of the failures in a row were like the last.
    alike: u32,
    last: Option<Failure>,
}

impl Streak {
    /// Counts a result. Its source says that it is the last of `in_a_row` of its kind; those that did
    /// not arrive here are counted with it.
    pub(crate) fn count(&mut self, result: Result<(), Failure>, in_a_row: u32) {
        match result {
            Ok(()) => {
                let successes = self.successes.saturating_add(1).max(in_a_row);
                *self = Streak { successes, ..Streak::default() };
            }
            Err(failure) => {
                self.successes = 0;
                self.failures = self.failures.saturating_add(1).max(in_a_row);
                let alike = if self.last == Some(failure) { self.alike } else { 0 };
                self.alike = alike.saturating_add(1);
                self.last = Some(failure);
            }
        }
    }

    /// Returns the successes in a row.
    pub(crate) fn successes(&self) -> u32 {
        self.successes
    }

    /// Returns the failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns whether the last results of the two are of different kinds.
    pub(crate) fn contradicts(&self, other: &Streak) -> bool {
        self.successes > 0 && other.failures > 0 || self.failures > 0 && other.successes > 0
    }

    /// Returns the number of failures in a row and the last of them.
    pub(crate) fn failing(&self) -> Option<(u32, Failure)> {
        self.last.map(|last| (self.failures, last))
    }

    /// Returns it as the evidence for a change.
    pub(crate) fn evidence(&self) -> Evidence {
        match self.last {
            None => Evidence::Successes(self.successes),
            Some(last) => Evidence::Failures { count: self.failures, alike: self.alike, last },
        }
    }
}
