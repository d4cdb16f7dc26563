//! Changes to requests and responses.

use super::backend::Target;
use super::headers::HeaderChanges;
use crate::objects::route::Cors;

/// What happens to requests besides forwarding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    /// Changes to the fields of requests.
    pub request_headers: HeaderChanges,
    /// Changes to the fields of responses.
    pub response_headers: HeaderChanges,
    /// A redirect: requests are answered, not forwarded.
    pub redirect: Option<Redirect>,
    /// A change to the target of requests.
    pub rewrite: Option<Rewrite>,
    /// Backends that receive copies of requests.
    pub mirrors: Vec<Mirror>,
    /// Rules for pages of other origins.
    pub cors: Option<Cors>,
}

/// A redirect. Absent parts are those of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// `http` or `https`.
    pub scheme: Option<String>,
    /// The host.
    pub hostname: Option<String>,
    /// The path.
    pub path: Option<PathChange>,
    /// The port. `None`: the port of `scheme`, or of the listener if `scheme` is absent too.
    pub port: Option<u16>,
    /// The status.
    pub status: u16,
}

/// A change to the target of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// The host.
    pub hostname: Option<String>,
    /// The path.
    pub path: Option<PathChange>,
}

/// A change to a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// Replaces the whole path.
    Full(String),
    /// Replaces the prefix that matched.
    Prefix(String),
}

/// A backend that receives copies of requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    /// The backend.
    pub target: Target,
    /// The share of requests that are copied: numerator…
    pub numerator: u32,
    /// …and denominator, which is at least 1.
    pub denominator: u32,
}
