//! Counts in total, over time, and by connection.

mod counts;
mod direction;
mod intervals;
mod repeats;
mod story;
mod stretches;

pub use counts::Counts;
pub use direction::{Direction, Handshake, OPENINGS_MAX, Rtt};
pub use intervals::{INTERVALS_MAX, Interval, Intervals};
pub use story::{Ending, Story};
