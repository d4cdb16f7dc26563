//! Concurrency limits that hold over a fleet of balancers (`in_flight_scope = "fleet"`): the slots of each server
//! are divided among the members, which lend each other those that they do not need.
//!
//! Pure: time is an argument, messages are values. [`Lending`] is one member. At each turn a shell tells it how
//! many requests are in flight and wait at each server, does what it says (how many slots may be used from now
//! on), and sends its messages.
//!
//! **The sum of the slots that all members use never exceeds the limit**, whatever messages are lost, late or cut
//! off, if the lists name all members, requests end in the time stated for them, and no lender is restarted while
//! a borrower is cut off:
//!
//! - Each member has a *share* of each server ([`Table::share`]), computed from the list of members. A member
//!   whose list has changed uses the smallest of its shares under the old and all later lists, until each member of
//!   the new one has said that it does the same ([`agreement`]).
//! - A slot is *lent*, not copied: the lender no longer counts it as its own, and the borrower gives it back. Both
//!   sides tell totals that only grow (slots lent, slots given back), so that messages may be lost, repeated or
//!   late.
//! - A loan is a *lease*. A borrower that has had no acknowledgement from the lender for [`LEASE`] starts no
//!   request with the slot. The lender takes it back when it has not heard from the borrower for that time and as
//!   long as a request may take.
//!
//! What a partition or a death costs is capacity: shares of members that do not answer are unused until they
//! are back, or until the list of members no longer names them.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::wildcard_enum_match_arm))]

mod agreement;
mod allot;
mod lending;
mod peer;
mod server;
mod table;
pub mod wire;

pub use lending::{Lending, MemberAt, ServerLimit, Slots, Standing};
pub use peer::LEASE;
pub use server::{SLOTS_MAX, Usage};
pub use table::Table;
