//! Reads this host into facts, once or repeatedly ([`Collector`]). A figure that cannot be read is
//! reported with the reason, never as zero. `diagnose` interprets the facts.
//!
//! All data come from files in /proc and /sys and from netlink, never from other programs; root is needed
//! only where the kernel requires it. A sample of a host with few sockets takes a few milliseconds of CPU
//! time.

mod collector;
mod file;
mod host;
mod namespace;
mod places;
mod programs;
mod text;

pub use collector::{Collector, Wanted};
pub use places::Which;
