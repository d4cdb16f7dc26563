//! The configuration's keys, as used by the reader, by editors (JSON Schema) and by the reference
//! documentation.

mod json;
mod keys;
mod markdown;
pub(crate) mod names;
pub(crate) mod spec;

pub use json::schema;
pub use markdown::reference;

pub(crate) use json::{DURATION, SIZE};
pub(crate) use keys::{AUTHENTICATION, CIPHERS, INCLUDED, ROUTE, SERVICE, TOP};
