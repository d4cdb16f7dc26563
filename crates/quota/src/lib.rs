//! Rate limits that hold over a fleet of balancers (`scope = "fleet"`), by exchanged counts.
//!
//! Pure: time is an argument, messages are values. [`Quota`] is one member. At each turn it reads how many requests
//! of each key arrived and passed here, sets the part of each limit that this balancer may use until the next turn,
//! and returns messages for the others. Counts from their messages are charged to the allowances here ([`Buckets`]).
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
//! Counts are not exact: they are late by a turn, and counts of keys with few requests are sent in batches. A row
//! states the total and what is new, so a lost or late message is made up for by the next row about the key. Only the
//! first row about a key is not.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::wildcard_enum_match_arm))]

mod key;
mod quota;
pub mod wire;

pub use quota::{Buckets, MemberAt, Quota, TURN};

#[cfg(test)]
mod tests;
