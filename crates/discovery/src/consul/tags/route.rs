//! What an answer contains: routes, and examples of refused tags.

use std::collections::BTreeSet;

use model::{PathMatch, PublishedRoute, visible};

use crate::Refused;

/// The maximum number of routes of all services. Those of services that are later by name are refused.
pub const ROUTES_MAX: usize = 10_000;

/// The maximum number of routes of a service: one tag may have many hosts.
pub const SERVICE_ROUTES_MAX: usize = 64;

/// The maximum number of tags of a service that are about routes, in all formats that are read.
pub const SERVICE_TAGS_MAX: usize = 64;

/// The maximum length of a tag that is about routes.
pub const TAG_BYTES_MAX: usize = 1_024;

/// The maximum length of a service's name in the name of a refused tag.
const SERVICE_SHOWN_BYTES_MAX: usize = 128;

/// The routes in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Sorted by service, host and path; at most [`ROUTES_MAX`]. A service has each host and path once.
    pub routes: Vec<PublishedRoute>,
    /// The names of all services in the answer.
    pub listed: BTreeSet<String>,
    /// The tags that publish no route, although they are about routes.
    pub refused: RefusedTags,
}

/// Returns the key of the order of a service's routes.
pub(super) fn order(route: &PublishedRoute) -> (String, String, bool) {
    let (path, is_exact) = match &route.path {
        PathMatch::Prefix(path) => (path, false),
        PathMatch::Exact(path) => (path, true),
    };
    (route.host.to_string(), path.clone(), is_exact)
}

/// Refused tags.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedTags {
    /// The first ones, at most [`REFUSED_MAX`](crate::REFUSED_MAX). An object is `SERVICE: TAG`.
    pub examples: Vec<Refused>,
    /// How many there are. A tag with several hosts counts for each.
    pub count: u64,
}

impl RefusedTags {
    /// Records a refused tag; all texts are bounded and escaped here.
    pub(super) fn refuse(&mut self, service: &str, tag: &str, why: &str) {
        self.refuse_all(1, service, tag, why);
    }

    /// Records that something could not be read.
    pub fn note(&mut self, object: &str, why: &str) {
        self.count += 1;
        Refused::keep(&mut self.examples, object, why);
    }

    /// Records `count` tags that are refused for the same reason, with one of them as an example.
    pub(super) fn refuse_all(&mut self, count: u64, service: &str, tag: &str, why: &str) {
        self.count += count;
        let object = format!("{}: {tag}", visible(service, SERVICE_SHOWN_BYTES_MAX));
        Refused::keep(&mut self.examples, &object, why);
    }
}
