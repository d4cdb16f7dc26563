//! Obtains and renews certificates by ACME (RFC 8555).

mod placeholder;
mod store;

pub use placeholder::placeholder;
pub use store::{State, StateError, Stored, stored};
