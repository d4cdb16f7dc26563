//! The pure decisions about a request: configuration, server state and time in; a server, a place
//! in the queue or a refusal out, each with its reason.
//!
//! Nothing here reads a clock or touches a socket. The path of a request through this crate:
//! [`route::Router::find`] returns its route, [`rate::RateTable::take`] may refuse it,
//! [`LiveService::admit`] gives it a [`Slot`] on a server, a [`Waiter`] in the service's queue, or
//! a [`Refusal`]. Two things are shared by all workers and kept across configurations: the count of
//! requests in flight at an address ([`limits::Slots`]) and the queues; everything else is a value
//! computed when something changes and read through one pointer.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub mod accept;
pub mod body_rate;
pub mod client_address;
pub mod compression;
pub mod cors;
pub mod deadline;
pub mod error_page;
pub mod explain;
pub mod foresee;
pub mod limits;
pub mod maintenance;
pub mod pick;
pub mod placement;
pub mod rate;
pub mod retry;
pub mod reuse;
pub mod route;
pub mod session;
mod slot;
pub mod slow_start;
pub mod weights;
pub mod zones;

mod admission;
mod change;
mod count;
mod drain;
mod elsewhere;
mod endpoint;
mod endpoints;
mod live;
mod news;
mod query;
mod queue;
mod registry;
mod sync;
mod tickets;
mod token;
mod view;

#[cfg(test)]
mod tests;

pub use admission::{Admission, Ask, Refusal, Waiter};
pub use change::ServerChange;
pub use endpoint::Endpoint;
pub use endpoints::Endpoints;
pub use limits::{Slots, Usage};
pub use live::{LiveService, TierChange};
pub use pick::peak_ewma::observe_latency;
pub use registry::{FirstUse, Published, Registry};
pub use slot::Slot;
pub use token::{affinity_token, hash_key, hash_parameter, hash_path, server_token};
pub use view::{EndpointView, ServiceView, UnresolvedView};
pub use zones::{Reason, Tier};
