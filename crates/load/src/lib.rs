//! Load, and work to balance: the load generator of `weir bench`, a sample server whose cost is
//! known, and a small steady client. What a run of load came to, as a file and as a page.

pub mod account;
pub mod engine;
pub mod host;
pub mod objective;
pub mod report;
pub mod sample;
pub mod schedule;
pub mod search;
pub mod syn_steps;
pub mod trickle;
pub mod verdict;
