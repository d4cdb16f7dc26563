//! Ingresses, with annotations of ingress-nginx.
//!
//! Each IngressClass of Weir's implies a Gateway with the ports 80 and 443 ([`implied_key`](crate::ir::ingress::implied_key)), which exists while
//! an Ingress is of the class. [`resolve`] reads one Ingress at a time, and [`merge::Merged`] puts those of a class together.
//! [`Ingresses`] keeps the results between changes.
//!
//! An Ingress has no conditions. What is wrong with it, and what Weir does not support, becomes a
//! [`Notice`](super::status::Notice). The rest of the Ingress is served, unless an annotation that protects the backends
//! cannot be used.

pub mod access;
pub mod annotations;
pub mod backends;
pub mod canary;
pub mod cors;
pub mod expand;
pub mod kept;
pub mod merge;
pub mod paths;
pub mod redirects;
pub mod references;
pub mod rules;
pub mod site;
pub mod terms;
pub mod unsupported;
pub mod upstream;
pub mod wildcard;

pub use kept::Ingresses;
pub use rules::{Resolved, resolve};
