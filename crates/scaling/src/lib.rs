//! How many servers a service should have, from the load that its balancers see.
//!
//! Pure: time is an argument, messages are values. Each instance counts its requests ([`Counts`]) and turns two
//! readings into a [`Load`]. Instances exchange their loads ([`wire`]) and add them. [`wanted`] turns the sum into a
//! number of servers and the reason for it, and keeps what it needs from one call to the next in a [`Memory`].
//!
//! The number follows from the requests that arrive, not from those that are refused. So it rises while the queue
//! and the free slots still absorb the load. Add first and round once: if ten instances each round up their own
//! need, the sum can be far above the true need.
//!
//! Where Weir itself sees to it that a service gets its number, a [`plan::Plan`] says which servers leave, and when to
//! call the program that starts and stops them.
//!
//! `docs/scaling.md` has the derivation, and what the simulation in `tests/sim` measures.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::wildcard_enum_match_arm))]

mod counts;
mod load;
mod memory;
pub mod plan;
mod reason;
pub mod staffing;
pub mod terms;
mod text;
mod wanted;
pub mod wire;

pub use counts::Counts;
pub use load::{LOAD_MAX, Load};
pub use memory::Memory;
pub use reason::{Figures, Reason, Wanted};
pub use terms::{Capacity, Terms};
pub use wanted::wanted;
