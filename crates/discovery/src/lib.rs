//! The servers of a service as an external source lists them.
//!
//! One module for each format reads it:
//!
//! | module | source |
//! |---|---|
//! | [`consul`] | Consul's health endpoint; the routes that services publish in their tags |
//! | [`nomad`] | the registrations of Nomad's service discovery |
//! | [`etcd`] | the keys of a prefix in etcd, as a list and a watch |
//! | [`srv`] | SRV records |
//! | [`prometheus`] | target lists of `file_sd` and `http_sd` |
//! | [`rows`] | files in TOML with the keys of `[[service.NAME.server]]` |
//!
//! Each turns the bytes of an answer into an [`Answer`]: one [`Row`] for each server, and examples of the
//! entries that were refused. Values obey the rules of `[[service.NAME.server]]` ([`config::listed_server`]).
//! [`Blocking`] has the index of blocking queries of Consul and Nomad.
//!
//! Pure: the caller fetches the answer, bounds its length, decides when to ask again, and keeps the last good
//! answer when one cannot be read. No input causes a panic.

mod address;
mod blocking;
pub mod consul;
pub mod etcd;
mod merged;
pub mod nomad;
pub mod prometheus;
mod row;
pub mod rows;
mod saved;
mod set;
mod source;
pub mod srv;
mod stated;

pub use blocking::{Blocking, Seen};
pub use row::{Answer, REFUSED_MAX, ROWS_MAX, Readiness, Refused, Row};
pub use saved::{Saved, SavedService};
pub use set::{Listed, Outcome, Set, SetState};
pub use source::{Effect, ServiceSource};
