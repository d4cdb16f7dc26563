//! The servers of a service as an external source lists them.
//!
//! [`consul`] reads Consul's health endpoint, and [`prometheus`] the target lists of `file_sd` and `http_sd`.
//! Either turns the bytes of an answer into an [`Answer`]: one [`Row`] for each server, and examples of the
//! entries that were refused. Values obey the rules of `[[service.NAME.server]]`
//! ([`config::listed_server`]).
//!
//! Pure: the caller fetches the answer, bounds its length, decides when to ask again, and keeps the last good
//! answer when one cannot be read. No input causes a panic.

pub mod consul;
pub mod prometheus;
mod row;
mod saved;
mod set;
mod source;
mod stated;

pub use row::{Answer, REFUSED_MAX, ROWS_MAX, Readiness, Refused, Row};
pub use saved::{Saved, SavedService};
pub use set::{Listed, Outcome, Set, SetState};
pub use source::{Effect, ServiceSource};
