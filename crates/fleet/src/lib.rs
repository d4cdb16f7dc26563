//! A fleet of balancers: who its members are, and sealed datagrams between them.
//!
//! Pure: time and the seed of random numbers are arguments, datagrams are values. A shell reads a socket, passes
//! each datagram through [`seal::Opener`] and [`Message::read`] to [`Membership`], and sends what comes out
//! through [`seal::Sealer`]. So a simulation (`tests/sim`) runs a thousand members in one thread.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::wildcard_enum_match_arm))]

mod draws;
mod member;
mod membership;
mod message;
pub mod seal;
mod start;
mod wire;

pub use member::{Member, TEXT_BYTES_MAX};
pub use membership::{Counts, JOIN_ADDRESSES_MAX, MemberRefused, Membership, Output};
pub use message::Message;
pub use start::StartId;
pub use wire::MEMBERS_MAX;
