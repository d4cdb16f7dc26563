//! The JSON that one Weir process writes and another reads: receipts and refusals of the admin API, and
//! what an upgrade hands to the next process.
//!
//! Writer and reader may be of different versions. A member that is absent reads as its default, and
//! a member that is not known is ignored.

pub mod handover;
pub mod receipt;

use serde::{Deserialize, Serialize};

/// The answer of the admin API to a request that failed. Both members are always there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// A stable name, for programs.
    pub error: String,
    /// What is wrong, for people.
    pub message: String,
}
