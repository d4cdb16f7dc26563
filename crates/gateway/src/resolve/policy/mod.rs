//! Policies: objects that change how other objects are served.
//!
//! [`targets`] decides which policy of a kind applies to each of its targets. The other modules check the policies of one
//! kind each.

pub mod targets;
pub mod tls;
