//! What the configuration's keys are, for the reader, for editors (JSON Schema) and for people
//! (the reference).

mod json;
mod keys;
mod markdown;
pub(crate) mod names;
pub(crate) mod spec;

pub use json::schema;
pub use markdown::reference;

pub(crate) use keys::{CIPHERS, TOP};
