//! Consul: the instances of a service with their health, the routes that services publish in their tags, and the
//! registration of Weir itself.

mod health;
pub mod register;
pub mod tags;

pub use health::{Reading, instances};
