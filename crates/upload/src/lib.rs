//! Uploads in parts to S3-compatible endpoints: each part's time and retries, and what the whole
//! cost in CPU time and real time, endpoint by endpoint.
//!
//! Signing and the protocol's XML are `rusty-s3`'s (presigned URLs, so that bodies are not hashed);
//! connections are `transport`'s.

mod error;
pub mod figures;
mod object;
mod parts;
mod plan;
mod retry;
mod s3;
#[cfg(test)]
mod tests;

pub use error::UploadError;
pub use figures::{Endpoint, Figures, Part};
pub use object::{Stop, upload};
pub use plan::{Event, PARTS_MAX, Plan};
pub use rusty_s3::Credentials;
pub use s3::{Addressing, Store};
