//! A new process takes over from this one without a connection being refused.
//!
//! ```text
//! old: starts the program ──▶ new: reads the file, takes the sockets, begins to accept
//!      hears "ready"      ◀──      says so on a pipe
//!      accepts no more, finishes what runs, ends
//! ```
//!
//! Both hold the same sockets, so that there is no moment at which nobody listens, and the sockets'
//! number never shrinks. If the new process fails, whatever the reason, the old one has changed
//! nothing. Which program is started is not up to whoever asks: it is this one's own path and words.

mod predecessor;
mod program;
mod successor;

pub(crate) use predecessor::Predecessor;
pub use program::Program;
pub(crate) use successor::{Successor, begin, hang_up};
