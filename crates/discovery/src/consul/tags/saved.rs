//! A published route in the file that is read by the next process.

use config::{listed_host, listed_path, listed_path_exact};
use model::{PathMatch, PublishedRoute};
use serde::{Deserialize, Serialize};

/// A published route, as it is saved: not its tag, from which another service could seem to have the route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRoute {
    service: String,
    host: String,
    path: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    exact: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    strip: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    listeners: Vec<String>,
    format: String,
    tag: String,
    /// For how many seconds it is still held; `None`: its service is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) held_s: Option<u32>,
}

impl SavedRoute {
    pub(super) fn of(route: &PublishedRoute, held_s: Option<u32>) -> SavedRoute {
        let (path, exact) = match &route.path {
            PathMatch::Prefix(path) => (path, false),
            PathMatch::Exact(path) => (path, true),
        };
        SavedRoute {
            service: route.service.to_string(),
            host: route.host.to_string(),
            path: config::written_path(path),
            exact,
            strip: route.strip.as_deref().map(str::to_owned),
            listeners: route.listeners.iter().map(|name| str::to_owned(name)).collect(),
            format: route.format.as_str().to_owned(),
            tag: route.tag.to_string(),
            held_s,
        }
    }

    /// Returns the route; `None`: it does not pass the checks of published routes.
    pub(super) fn route(&self) -> Option<PublishedRoute> {
        let path = if self.exact { listed_path_exact(&self.path) } else { listed_path(&self.path) };
        let path = path.ok()?;
        let (PathMatch::Prefix(text) | PathMatch::Exact(text)) = &path;
        let begins = |strip: &String| {
            !strip.is_empty()
                && text
                    .strip_prefix(&**strip)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if !self.strip.iter().all(begins) {
            return None;
        }
        Some(PublishedRoute {
            service: self.service.as_str().into(),
            host: listed_host(&self.host).ok()?,
            strip: self.strip.as_deref().map(Into::into),
            path,
            listeners: self.listeners.iter().map(|name| name.as_str().into()).collect(),
            format: self.format.parse().ok()?,
            tag: self.tag.as_str().into(),
        })
    }
}
