//! Reads this host into facts: once, or again and again ([`Collector`]). What can't be read is
//! told with the reason, never taken for zero. What the facts mean is `diagnose`'s.
//!
//! Everything is read from files of /proc and /sys and over netlink, nothing by running other
//! programs, and without root as far as the kernel shows it to everyone. A sample of a host with a
//! few sockets takes a few milliseconds of CPU time.

mod collector;
mod file;
mod host;
mod namespace;
mod places;
mod programs;
mod text;

pub use collector::{Collector, Wanted};
pub use places::Which;
