//! The rules of GRPCRoutes.

use super::backends::Backends;
use super::{filters, http, matches, session};
use crate::ir::request::{RequestRule, Timeouts};
use crate::objects::route::{GrpcMatch, GrpcRule};
use crate::resolve::status::Problem;

/// Reads a rule.
///
/// # Errors
///
/// Why the rule is invalid.
pub fn rule(
    index: usize,
    stated: &GrpcRule,
    backends: &mut Backends<'_>,
) -> Result<RequestRule, Problem> {
    let matches = if stated.matches.is_empty() {
        vec![matches::grpc(&GrpcMatch::default())?]
    } else {
        stated.matches.iter().map(matches::grpc).collect::<Result<_, _>>()?
    };
    let found = filters::of_rule(&stated.filters, true, backends)?;
    let targets = filters::of_backends(&stated.backend_refs, backends)?;
    let (filters, targets) = http::combine(found, targets, backends);
    let session = stated.session_persistence.as_ref();
    let session = session.map(|stated| session::read(stated, &matches)).transpose()?;
    Ok(RequestRule {
        index,
        name: stated.name.clone(),
        matches,
        filters,
        timeouts: Timeouts::default(),
        retry: None,
        session,
        backends: targets,
        extras: None,
    })
}
