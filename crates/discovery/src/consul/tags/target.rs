//! The host and path that a tag states.

use config::{listed_host, listed_path, listed_path_exact};
use model::{HostPattern, PathMatch, Text};

/// What a tag states.
pub(super) struct Target {
    pub(super) host: HostPattern,
    pub(super) path: PathMatch,
    /// The prefix that is removed, as [`PublishedRoute::strip`](super::PublishedRoute::strip) has it.
    pub(super) strip: Option<Text>,
    /// The listeners that it is for, by name; empty: all.
    pub(super) listeners: Vec<Text>,
}

/// Returns a host by the rules of `host` of `[[route]]`.
///
/// # Errors
/// There is none, or it is not valid.
pub(super) fn host(text: &str) -> Result<HostPattern, String> {
    if text.is_empty() {
        return Err("no host".to_owned());
    }
    listed_host(text)
}

/// Returns a path by the rules of `path_exact` of `[[route]]`, or of `path`.
///
/// # Errors
/// It is not valid.
pub(super) fn path(text: &str, is_exact: bool) -> Result<PathMatch, String> {
    if is_exact { listed_path_exact(text) } else { listed_path(text) }
}

/// Returns the prefix that is removed from requests for `path`; `None`: it is `/`, so nothing is removed.
///
/// # Errors
/// It is not valid, or requests for `path` need not begin with it.
pub(super) fn strip(text: &str, path: &PathMatch) -> Result<Option<Text>, String> {
    let (PathMatch::Prefix(prefix) | PathMatch::Exact(prefix)) = listed_path(text)?;
    let (PathMatch::Prefix(path) | PathMatch::Exact(path)) = path;
    match path.strip_prefix(&*prefix) {
        _ if prefix.is_empty() => Ok(None),
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Ok(Some(prefix.into())),
        _ => Err(format!("strip: the path does not begin with the segments of {prefix}")),
    }
}
