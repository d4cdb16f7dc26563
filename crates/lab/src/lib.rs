//! A network of one's own on one machine: hosts that are network namespaces, links between them
//! that delay, lose, reorder, shape and throttle, and incidents as data files.
//!
//! Needs root for what it makes, touches nothing outside of it, and removes it again. What runs on
//! the hosts (Weir, the load generator, other programs) is started as processes of their own; their
//! names come from the incident and from the caller, since this room knows no other shell.

pub mod figures;
pub mod incident;
pub mod link;
pub mod network;
pub mod page;
pub mod run;
pub mod stop;
mod template;
pub mod units;
