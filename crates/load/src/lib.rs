//! Load, and work to balance: the load generator of `weir bench`, a sample server whose cost is
//! known, and a small steady client. What a run of load came to, as a file and as a page. Uploads in
//! parts, timed.

pub mod account;
pub mod engine;
pub mod host;
pub mod objective;
mod pattern;
pub mod report;
pub mod sample;
pub mod schedule;
pub mod search;
pub mod syn_steps;
pub mod trickle;
pub mod upload;
pub mod verdict;
