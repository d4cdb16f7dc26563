//! The load generator of `weir bench`: the schedule of requests, the engine that begins and counts
//! them, the search for a limit, and the verdict on what ran out.
//!
//! What a run came to is a [`load_report::Run`].

pub mod account;
pub mod engine;
pub mod host;
pub mod objective;
pub mod schedule;
pub mod search;
pub mod syn_steps;
pub mod verdict;
