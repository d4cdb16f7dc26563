//! When requests are due: a rate over time, and the times of its arrivals. Pure: no clock.

mod arrivals;
mod profile;

pub use arrivals::{Arrivals, Spacing};
pub use profile::{Profile, ProfileError, RATE_MAX_PER_S, Stage};
