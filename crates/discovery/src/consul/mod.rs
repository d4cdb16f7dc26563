//! Consul: the instances of a service with their health.

mod health;

pub use health::{Reading, instances};
