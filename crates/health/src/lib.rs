//! Health checking: which probe is due, what results mean, and when real traffic shows that a
//! server is bad.
//!
//! Pure: time is an argument, results are values. The probe runner (`control`) asks [`plan::Plan`]
//! what is due, passes results to each consumer's [`shared::tally::Tally`] and writes the health into
//! [`model::ServerState`]. The data plane (`proxy`) asks [`blame::judge`] what the outcome of an
//! attempt says about its server, and reports it to [`outlier::on_outcome`]. [`shared`] decides for
//! checks that the balancers of a fleet share. No socket, no clock, no task here.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

pub mod attempt;
pub mod blame;
pub mod comparison;
mod evidence;
pub mod outlier;
pub mod plan;
pub mod report;
pub mod shared;
#[cfg(test)]
mod testing;
pub mod verdict;
