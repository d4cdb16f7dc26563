//! Work to balance: a sample server, and a small steady client ([`trickle`]).
//!
//! The sample server is an application with a fixed work time, a fixed answer and, if wanted, a fixed
//! number of workers, that counts what it sees.
//!
//! Paths: `/status` answers at once (200, or the configured status) with the counts as JSON;
//! `/stats` is the same, always with 200; `POST /fail?status=503` makes `/status` say so, `POST
//! /fail?status=200` heals it; all others do the work and answer. A request that is being worked on is worked on to its end, even
//! if its client has gone, as in most real applications.

mod pauses;
mod sample;
mod serve;
mod slots;
mod stats;
#[cfg(test)]
mod tests;
pub mod trickle;
mod work;

pub use sample::{Payload, Sample, SampleSpec};
pub use serve::{serve, serve_beside};
pub use stats::Stats;
