//! Routes that services publish in the registry that lists them.

use std::fmt;

use crate::{HostPattern, PathMatch, RouteTagFormat, TagRoutes, Text};

/// A route that a service publishes in its tags.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PublishedRoute {
    /// The name of the service in Consul, as it is there: not escaped.
    pub service: Text,
    /// An allowed host.
    pub host: HostPattern,
    /// The path.
    pub path: PathMatch,
    /// The prefix that is removed before the request is forwarded: the path or a part of it that ends before a
    /// slash. In canonical form, without a trailing slash, and not empty.
    pub strip: Option<Text>,
    /// The listeners that it is for, by name; empty: all that services may publish for.
    pub listeners: Vec<Text>,
    /// The format of the tag.
    pub format: RouteTagFormat,
    /// The tag as it was written: not escaped.
    pub tag: Text,
}

impl PublishedRoute {
    /// Returns whether services may publish it according to `settings`.
    pub fn is_allowed(&self, settings: &TagRoutes) -> bool {
        settings.formats.contains(&self.format)
            && settings.hosts.iter().any(|allowed| allowed.covers_all_of(&self.host))
    }

    /// Returns what it is decided by.
    pub fn place(&self) -> (&HostPattern, &PathMatch) {
        (&self.host, &self.path)
    }
}

/// Displays host and path: `web.example/api`, `web.example/api (exact)`.
impl fmt::Display for PublishedRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            PathMatch::Prefix(path) if path.is_empty() => write!(f, "{}/", self.host),
            PathMatch::Prefix(path) => write!(f, "{}{path}", self.host),
            PathMatch::Exact(path) => write!(f, "{}{path} (exact)", self.host),
        }
    }
}
