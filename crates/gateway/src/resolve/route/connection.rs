//! The rules of TLSRoutes and TCPRoutes. They cannot be invalid, only their backends can.

use super::backends::Backends;
use crate::ir::ConnectionRule;
use crate::ir::backend::Backend;
use crate::objects::route;

/// Reads a rule.
pub fn rule(
    index: usize,
    stated: &route::ConnectionRule,
    backends: &mut Backends<'_>,
) -> ConnectionRule {
    let targets = stated.backend_refs.iter();
    let backends = targets.map(|one| Backend::new(one.weight, backends.target(one))).collect();
    ConnectionRule { index, name: stated.name.clone(), backends }
}
