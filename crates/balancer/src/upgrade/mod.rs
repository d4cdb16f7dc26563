//! Upgrades: a new process takes over from this one without refusing a connection.
//!
//! ```text
//! old: starts the program ──▶ new: reads the file, takes the sockets, starts to accept
//!      reads "ready"      ◀──      writes to a pipe
//!      stops accepting
//!      leaves its entries in Consul,
//!      closes the pipe        ──▶  registers in Consul
//!      finishes its requests, exits
//! ```
//!
//! Both processes hold the same sockets, so there is always a listener, and no queued connection is
//! lost. If the new process fails for any reason, the old one has changed nothing. The caller cannot
//! choose the program: it is this process's own path and arguments.

mod predecessor;
mod program;
mod successor;

pub(crate) use predecessor::Predecessor;
pub use program::Program;
pub(crate) use successor::{Successor, begin, hang_up};
