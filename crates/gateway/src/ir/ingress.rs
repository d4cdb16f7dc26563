//! What an IngressClass of Weir's is among Gateways.

use std::sync::Arc;

use crate::objects::Key;

/// Returns the key of what an IngressClass implies among Gateways. No Gateway has it: each has a namespace.
pub fn implied_key(class: impl Into<Arc<str>>) -> Key {
    Key::new("", class)
}

/// Returns whether it is the key of what an IngressClass implies.
pub fn is_implied(gateway: &Key) -> bool {
    gateway.namespace.is_empty()
}
