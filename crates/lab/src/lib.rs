//! Networks with faults on one machine: hosts are network namespaces; links delay, lose, reorder, shape
//! and throttle packets; incidents are data files.
//!
//! Needs root, changes nothing outside of its namespaces, and removes them again. Programs on hosts (Weir,
//! the load generator and others) run as separate processes. Their names come from the incident and from
//! the caller: this crate depends on no other shell.

pub mod figures;
pub mod incident;
pub mod link;
pub mod network;
pub mod page;
pub mod run;
pub mod stop;
mod template;
pub mod units;
