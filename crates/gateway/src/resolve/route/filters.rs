//! The filters of a rule, and those of its backends.

use super::backends::Backends;
use super::{cors, syntax};
use crate::ir::backend::Backend;
use crate::ir::filter::{Filters, Mirror, PathChange, Redirect, Rewrite};
use crate::ir::headers::HeaderChanges;
use crate::objects::reference::BackendRef;
use crate::objects::route::{
    Filter, Header, HeaderModifier, PathModifier, RequestMirror, RequestRedirect, UrlRewrite,
};
use crate::resolve::status::Problem;

/// Creates a problem with a combination of filters.
fn incompatible(message: impl Into<String>) -> Problem {
    Problem::new("IncompatibleFilters", message)
}

/// Reads the filters of a rule. `is_grpc`: some filters are for HTTPRoutes only.
///
/// The second result is a filter that refers to an object that Weir does not support. Requests must then fail: the
/// filter may be one that protects the backends.
///
/// # Errors
///
/// Why the rule is invalid.
pub fn of_rule(
    stated: &[Filter],
    is_grpc: bool,
    backends: &mut Backends<'_>,
) -> Result<(Filters, Option<Problem>), Problem> {
    let mut seen: Vec<&str> = Vec::new();
    let mut filters = Filters::default();
    let mut unknown = None;
    for filter in stated {
        let kind = filter.kind.as_str();
        let may_repeat = matches!(kind, "RequestMirror" | "ExtensionRef");
        if seen.contains(&kind) && !may_repeat {
            return Err(incompatible(format!("The filter {kind} is stated twice. Remove one.")));
        }
        seen.push(kind);
        let is_http_only = matches!(kind, "RequestRedirect" | "URLRewrite" | "CORS");
        if is_grpc && is_http_only {
            return Err(Problem::unsupported(format!(
                "The filter {kind} is not supported in a GRPCRoute."
            )));
        }
        if kind == "ExtensionRef" {
            let reference = filter.extension_ref.clone().unwrap_or_default();
            let target = reference.kind.as_deref().unwrap_or("object");
            let name = &reference.name;
            let message = format!(
                "The filter ExtensionRef refers to {target} {name}, which Weir does not support. \
                 Requests of its rule receive the status 500."
            );
            unknown.get_or_insert(Problem::new("InvalidKind", message));
            continue;
        }
        add(&mut filters, filter, backends)?;
    }
    if filters.redirect.is_some() && filters.rewrite.is_some() {
        return Err(incompatible(
            "The filters RequestRedirect and URLRewrite cannot be combined. Remove one.",
        ));
    }
    Ok((filters, unknown))
}

fn add(filters: &mut Filters, filter: &Filter, backends: &mut Backends<'_>) -> Result<(), Problem> {
    let absent = || Problem::unsupported(format!("The filter {} states nothing.", filter.kind));
    match &*filter.kind {
        "RequestHeaderModifier" => {
            let changes = filter.request_header_modifier.as_ref().ok_or_else(absent)?;
            filters.request_headers = header_changes(changes)?;
        }
        "ResponseHeaderModifier" => {
            let changes = filter.response_header_modifier.as_ref().ok_or_else(absent)?;
            filters.response_headers = header_changes(changes)?;
        }
        "RequestMirror" => {
            let stated = filter.request_mirror.as_ref().ok_or_else(absent)?;
            filters.mirrors.push(mirror(stated, backends)?);
        }
        "RequestRedirect" => {
            let stated = filter.request_redirect.as_ref().ok_or_else(absent)?;
            filters.redirect = Some(redirect(stated)?);
        }
        "URLRewrite" => {
            let stated = filter.url_rewrite.as_ref().ok_or_else(absent)?;
            filters.rewrite = Some(rewrite(stated)?);
        }
        "CORS" => {
            let stated = filter.cors.as_ref().ok_or_else(absent)?;
            cors::check(stated)?;
            filters.cors = Some(stated.clone());
        }
        other => return Err(Problem::unsupported(format!("The filter {other} is not supported."))),
    }
    Ok(())
}

/// Returns the backends of a rule, with their own filters.
///
/// # Errors
///
/// Why the rule is invalid.
pub fn of_backends(
    stated: &[BackendRef<Filter>],
    backends: &mut Backends<'_>,
) -> Result<Vec<Backend>, Problem> {
    let mut read = Vec::with_capacity(stated.len());
    for reference in stated {
        let mut backend = Backend::new(reference.weight, backends.target(reference));
        for filter in &reference.filters {
            match (&*filter.kind, &filter.request_header_modifier, &filter.response_header_modifier)
            {
                ("RequestHeaderModifier", Some(changes), _) => {
                    backend.request_headers = header_changes(changes)?;
                }
                ("ResponseHeaderModifier", _, Some(changes)) => {
                    backend.response_headers = header_changes(changes)?;
                }
                (kind, _, _) => {
                    let message = format!(
                        "The filter {kind} is not supported in backendRefs. State it in the \
                         filters of the rule."
                    );
                    return Err(Problem::unsupported(message));
                }
            }
        }
        read.push(backend);
    }
    Ok(read)
}

fn header_changes(stated: &HeaderModifier) -> Result<HeaderChanges, Problem> {
    let remove = stated.remove.iter().map(|name| syntax::changeable_field(name));
    Ok(HeaderChanges {
        set: fields(&stated.set)?,
        add: fields(&stated.add)?,
        remove: remove.collect::<Result<_, _>>()?,
    })
}

/// Reads fields. Of several with the same name, the first counts (the API's rule).
fn fields(stated: &[Header]) -> Result<Vec<(String, String)>, Problem> {
    let mut read: Vec<(String, String)> = Vec::with_capacity(stated.len());
    for one in stated {
        let name = syntax::changeable_field(&one.name)?;
        let value = syntax::field_value(&name, &one.value)?;
        if !read.iter().any(|(known, _)| *known == name) {
            read.push((name, value));
        }
    }
    Ok(read)
}

fn mirror(stated: &RequestMirror, backends: &mut Backends<'_>) -> Result<Mirror, Problem> {
    let (numerator, denominator) = match (&stated.fraction, stated.percent) {
        (Some(_), Some(_)) => {
            return Err(Problem::unsupported(
                "A mirror states both percent and fraction. Remove one.",
            ));
        }
        (Some(fraction), None) => (fraction.numerator, fraction.denominator),
        (None, Some(percent)) => (percent, 100),
        (None, None) => (1, 1),
    };
    if denominator == 0 || numerator > denominator {
        let message = format!(
            "A mirror has the share {numerator}/{denominator}, which is not between 0 and 1."
        );
        return Err(Problem::unsupported(message));
    }
    Ok(Mirror { target: backends.target(&stated.backend_ref), numerator, denominator })
}

fn redirect(stated: &RequestRedirect) -> Result<Redirect, Problem> {
    if let Some(scheme) = stated.scheme.as_deref().filter(|text| !matches!(*text, "http" | "https"))
    {
        return Err(Problem::unsupported(format!(
            "The scheme {scheme} of a redirect is not supported."
        )));
    }
    let status = stated.status_code.unwrap_or(302);
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return Err(Problem::unsupported(format!(
            "The status {status} of a redirect is not supported."
        )));
    }
    Ok(Redirect {
        scheme: stated.scheme.clone(),
        hostname: host("The hostname of a redirect", stated.hostname.as_deref())?,
        path: stated.path.as_ref().map(path_change).transpose()?,
        port: stated.port,
        status,
    })
}

fn rewrite(stated: &UrlRewrite) -> Result<Rewrite, Problem> {
    let path = stated.path.as_ref().map(path_change).transpose()?;
    Ok(Rewrite { hostname: host("The hostname of a rewrite", stated.hostname.as_deref())?, path })
}

fn host(what: &str, stated: Option<&str>) -> Result<Option<String>, Problem> {
    stated.map(|text| syntax::exact_host(what, text)).transpose()
}

fn path_change(stated: &PathModifier) -> Result<PathChange, Problem> {
    match (&*stated.kind, &stated.replace_full_path, &stated.replace_prefix_match) {
        ("ReplaceFullPath", Some(path), _) => {
            Ok(PathChange::Full(syntax::path("replaceFullPath", path)?))
        }
        // The prefix is removed.
        ("ReplacePrefixMatch", _, Some(path)) if path.is_empty() => {
            Ok(PathChange::Prefix(String::new()))
        }
        ("ReplacePrefixMatch", _, Some(path)) => {
            Ok(PathChange::Prefix(syntax::path("replacePrefixMatch", path)?))
        }
        (kind, _, _) => Err(Problem::unsupported(format!(
            "The path modifier {kind} is not supported or states no path."
        ))),
    }
}
