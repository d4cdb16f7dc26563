//! Why a run is refused before it starts.

use std::fmt;

/// Why there will be no run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What was asked for cannot be.
    Mistake(String),
    /// The server cannot be reached.
    Unreachable(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Mistake(text) | Refusal::Unreachable(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Refusal {}

/// Refuses what was asked for.
pub(super) fn mistake<T>(text: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Mistake(text.into()))
}
