//! Rate limits that hold over a fleet of balancers (`scope = "fleet"`), by exchanged counts.
//!
//! Pure: time is an argument, messages are values. [`Quota`] is one member. At each turn it reads how many requests
//! of each key came and passed here, says what part of each limit this balancer may use until the next turn, and
//! returns messages for the others. What they say is charged to the allowances here ([`Buckets`]).
//!
//! Two things keep the rate:
//!
//! - Every member charges to its own allowance of a key what all others let pass. So the mean rate is right, however
//!   requests are spread: what passed in excess, before the counts arrived, is charged afterwards.
//! - While a key has more requests than its limit allows, each member lets only its part of the rate pass: in
//!   proportion to the requests that it gets. So no excess arises between the exchanges.
//!
//! Members that are listed and do not answer may be on the other side of a partition. Their part of every limit is
//! not used here ([`Quota::side`]), so both sides together keep the limit.
//!
//! Counts are not exact: they are late by a turn, and keys with few requests are not sent. A row states the total
//! and what is new, so that a message that is lost or late, and a key that was forgotten, do not matter.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::wildcard_enum_match_arm))]

mod key;
mod quota;
pub mod wire;

pub use quota::{Buckets, MemberAt, Quota, TURN};

#[cfg(test)]
mod tests;
