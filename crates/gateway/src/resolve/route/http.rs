//! The rules of HTTPRoutes.

use std::time::Duration;

use super::backends::Backends;
use super::filters;
use super::matches;
use super::{duration, session};
use crate::ir::backend::Backend;
use crate::ir::filter::{Filters, PathChange};
use crate::ir::request::{PathCondition, RequestMatch, RequestRule, Retry, Timeouts};
use crate::objects::route::{self, HttpMatch, HttpRule};
use crate::resolve::status::Problem;

/// Reads a rule.
///
/// # Errors
///
/// Why the rule is invalid.
pub fn rule(
    index: usize,
    stated: &HttpRule,
    backends: &mut Backends<'_>,
) -> Result<RequestRule, Problem> {
    let matches = if stated.matches.is_empty() {
        vec![matches::http(&HttpMatch::default())?]
    } else {
        stated.matches.iter().map(matches::http).collect::<Result<_, _>>()?
    };
    let found = filters::of_rule(&stated.filters, false, backends)?;
    let targets = filters::of_backends(&stated.backend_refs, backends)?;
    let (filters, targets) = combine(found, targets, backends);
    check(&filters, &matches, &targets)?;
    let session = stated.session_persistence.as_ref();
    let session = session.map(|stated| session::read(stated, &matches)).transpose()?;
    Ok(RequestRule {
        index,
        name: stated.name.clone(),
        matches,
        filters,
        timeouts: timeouts(&stated.timeouts)?,
        retry: stated.retry.as_ref().map(retry).transpose()?,
        session,
        backends: targets,
        extras: None,
    })
}

/// Returns the filters and backends of a rule. With an unsupported filter, all requests fail.
pub fn combine(
    (filters, unsupported): (Filters, Option<Problem>),
    targets: Vec<Backend>,
    backends: &mut Backends<'_>,
) -> (Filters, Vec<Backend>) {
    let Some(problem) = unsupported else { return (filters, targets) };
    (Filters::default(), vec![Backend::new(1, backends.invalid(problem))])
}

/// Checks the filters against the rest of the rule.
fn check(filters: &Filters, matches: &[RequestMatch], targets: &[Backend]) -> Result<(), Problem> {
    if filters.redirect.is_some() && !targets.is_empty() {
        let message = "The filter RequestRedirect cannot be combined with backendRefs. Remove one.";
        return Err(Problem::new("IncompatibleFilters", message));
    }
    let redirect = filters.redirect.as_ref().and_then(|redirect| redirect.path.as_ref());
    let rewrite = filters.rewrite.as_ref().and_then(|rewrite| rewrite.path.as_ref());
    let has_prefix_change =
        [redirect, rewrite].iter().any(|path| matches!(path, Some(PathChange::Prefix(_))));
    let is_prefix = |one: &RequestMatch| matches!(one.path, PathCondition::Prefix(_));
    if has_prefix_change && !(matches.len() == 1 && matches.iter().all(is_prefix)) {
        return Err(Problem::unsupported(
            "ReplacePrefixMatch needs exactly one match in the same rule, of the type PathPrefix.",
        ));
    }
    Ok(())
}

fn timeouts(stated: &route::Timeouts) -> Result<Timeouts, Problem> {
    let read = |text: &Option<String>| text.as_deref().map(of_text).transpose();
    let timeouts =
        Timeouts { request: read(&stated.request)?, attempt: read(&stated.backend_request)? };
    if let (Some(request), Some(attempt)) = (timeouts.request, timeouts.attempt)
        && request < attempt
        && !request.is_zero()
    {
        return Err(Problem::unsupported(
            "timeouts.backendRequest is longer than timeouts.request.",
        ));
    }
    Ok(timeouts)
}

fn retry(stated: &route::Retry) -> Result<Retry, Problem> {
    if let Some(code) = stated.codes.iter().find(|code| !(400..=599).contains(*code)) {
        return Err(Problem::unsupported(format!(
            "retry.codes has {code}, which is not a status of an error."
        )));
    }
    let backoff = stated.backoff.as_deref().map(of_text).transpose()?;
    let count = |number: i64| {
        u32::try_from(number).map_err(|_| {
            Problem::unsupported(format!("retry.attempts is {number}, which is not a count."))
        })
    };
    let attempts = stated.attempts.map(count).transpose()?;
    Ok(Retry { codes: stated.codes.clone(), attempts, backoff })
}

fn of_text(text: &str) -> Result<Duration, Problem> {
    duration::read(text).ok_or_else(|| {
        Problem::unsupported(format!(
            "{text} is not a duration. Use a form like 500ms, 10s or 1h30m."
        ))
    })
}
