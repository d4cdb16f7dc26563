//! Which probe is due, what results mean, when real traffic says a server is bad.
//!
//! Pure: time is an argument, results are values. Whoever runs probes (`control`) asks
//! [`plan::Plan`] what is due, feeds each consumer's [`verdict::Verdict`] with what came back and
//! writes the answer into [`model::ServerState`]. Whoever carries requests (`proxy`) asks
//! [`blame::judge`] what the outcome of an attempt says about its server, and tells
//! [`outlier::on_outcome`]. No socket, no clock, no task here.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub mod attempt;
pub mod blame;
pub mod comparison;
pub mod outlier;
pub mod plan;
pub mod report;
#[cfg(test)]
mod testing;
pub mod verdict;
