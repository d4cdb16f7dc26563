//! What the machine that makes the load does meanwhile: the kernel's counters and the processors,
//! second by second.

mod counters;
mod sampler;

pub use counters::{Counters, interface_towards};
pub use sampler::{Sampler, this_host};
