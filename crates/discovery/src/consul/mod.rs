//! Consul: the instances of a service with their health, and the registration of Weir itself.

mod health;
pub mod register;

pub use health::{Reading, instances};
