//! The load itself: threads that start requests when they are due and count the outcomes.

mod carry;
mod connection;
mod exchange;
mod failure;
mod gathered;
mod http1;
mod http2;
mod link;
mod metronome;
pub mod plan;
pub mod prepare;
mod recorder;
mod refusal;
mod room;
mod round_trip;
mod running;
mod sources;
mod streams;
mod turn;
mod worker;

pub use failure::Failure;
pub use metronome::TimerLateness;
pub(crate) use recorder::histogram;
pub use recorder::{Counts, Interval, Recorder, Times};
pub use refusal::Refusal;
pub use running::{Outcome, Running, start};
