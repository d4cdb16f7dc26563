//! Consul: the instances of a service with their health, and the rules of its blocking queries.

mod blocking;
mod health;

pub use blocking::{Blocking, Seen};
pub use health::{Reading, instances};
