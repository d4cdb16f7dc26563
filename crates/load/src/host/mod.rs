//! The load generator's own machine during a run: kernel counters and processors, second by second.

mod counters;
mod sampler;

pub use counters::{Counters, interface_towards};
pub use sampler::{Sampler, this_host};
