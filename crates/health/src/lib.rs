//! Health checking: which probe is due, what results mean, and when real traffic shows that a
//! server is bad.
//!
//! Pure: time is an argument, results are values. The probe runner (`control`) asks [`plan::Plan`]
//! what is due, passes results to each consumer's [`verdict::Verdict`] and writes the health into
//! [`model::ServerState`]. The data plane (`proxy`) asks [`blame::judge`] what the outcome of an
//! attempt says about its server, and reports it to [`outlier::on_outcome`]. No socket, no clock,
//! no task here.

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
