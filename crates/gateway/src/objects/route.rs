//! Routes: which requests go to which servers, and how they are changed on their way.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::reference::{BackendRef, ObjectRef, ParentRef};
use super::{Condition, Meta};

/// A route of HTTP requests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct HttpRoute {
    /// Its metadata.
    pub metadata: Meta,
    /// What it states.
    pub spec: RouteSpec<HttpRule>,
    /// Its status: other controllers have parts of it.
    pub status: RouteStatus,
}

/// A route of gRPC calls.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct GrpcRoute {
    /// Its metadata.
    pub metadata: Meta,
    /// What it states.
    pub spec: RouteSpec<GrpcRule>,
    /// Its status: other controllers have parts of it.
    pub status: RouteStatus,
}

/// A route of TLS connections by server name, or (without host names) of TCP connections.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ConnectionRoute {
    /// Its metadata.
    pub metadata: Meta,
    /// What it states.
    pub spec: RouteSpec<ConnectionRule>,
    /// Its status: other controllers have parts of it.
    pub status: RouteStatus,
}

/// What a route states.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteSpec<Rule> {
    /// The Gateways and ListenerSets that it attaches to.
    pub parent_refs: Vec<ParentRef>,
    /// The hosts (or server names) that it is for; empty: those of the listeners. `*.` at the start is a wildcard.
    pub hostnames: Vec<String>,
    /// Its rules.
    pub rules: Vec<Rule>,
}

impl<Rule> Default for RouteSpec<Rule> {
    fn default() -> RouteSpec<Rule> {
        RouteSpec { parent_refs: Vec::new(), hostnames: Vec::new(), rules: Vec::new() }
    }
}

/// A rule of an HTTPRoute.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRule {
    /// Its name, unique in the route.
    pub name: Option<Arc<str>>,
    /// The requests that it is for: those that meet one of these; empty: all.
    pub matches: Vec<HttpMatch>,
    /// What happens to them besides.
    pub filters: Vec<Filter>,
    /// Where they go; empty: nowhere.
    pub backend_refs: Vec<BackendRef<Filter>>,
    /// How long they may take.
    pub timeouts: Timeouts,
    /// When they are retried (experimental channel).
    pub retry: Option<Retry>,
    /// Session affinity (experimental channel).
    pub session_persistence: Option<SessionPersistence>,
}

/// Conditions on a request, which must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpMatch {
    /// On its path.
    pub path: PathMatch,
    /// On its fields, each of another name.
    pub headers: Vec<ValueMatch>,
    /// On its query parameters, each of another name.
    pub query_params: Vec<ValueMatch>,
    /// On its method.
    pub method: Option<String>,
}

/// A condition on a path.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PathMatch {
    /// `Exact`, `PathPrefix` or `RegularExpression`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The path, a part of it, or the expression.
    pub value: String,
}

impl Default for PathMatch {
    fn default() -> PathMatch {
        PathMatch { kind: "PathPrefix".to_owned(), value: "/".to_owned() }
    }
}

/// A condition on a field or a query parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ValueMatch {
    /// `Exact` (also if absent) or `RegularExpression`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Its name.
    pub name: String,
    /// Its value, or the expression.
    pub value: String,
}

/// A rule of a GRPCRoute.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GrpcRule {
    /// Its name, unique in the route.
    pub name: Option<Arc<str>>,
    /// The calls that it is for: those that meet one of these; empty: all.
    pub matches: Vec<GrpcMatch>,
    /// What happens to them besides.
    pub filters: Vec<Filter>,
    /// Where they go; empty: nowhere.
    pub backend_refs: Vec<BackendRef<Filter>>,
    /// Session affinity (experimental channel).
    pub session_persistence: Option<SessionPersistence>,
}

/// Conditions on a call, which must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GrpcMatch {
    /// On its service and method.
    pub method: Option<MethodMatch>,
    /// On its metadata.
    pub headers: Vec<ValueMatch>,
}

/// A condition on a gRPC method. At least one of the two names is stated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MethodMatch {
    /// `Exact` (also if absent) or `RegularExpression`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The service, with its package.
    pub service: Option<String>,
    /// The method.
    pub method: Option<String>,
}

/// The rule of a TLSRoute or TCPRoute.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConnectionRule {
    /// Its name.
    pub name: Option<Arc<str>>,
    /// Where connections go.
    pub backend_refs: Vec<BackendRef>,
}

/// What happens to requests, and to responses, besides forwarding.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Filter {
    /// Which of the following it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// `RequestHeaderModifier`.
    pub request_header_modifier: Option<HeaderModifier>,
    /// `ResponseHeaderModifier`.
    pub response_header_modifier: Option<HeaderModifier>,
    /// `RequestMirror`.
    pub request_mirror: Option<RequestMirror>,
    /// `RequestRedirect`.
    pub request_redirect: Option<RequestRedirect>,
    /// `URLRewrite`.
    pub url_rewrite: Option<UrlRewrite>,
    /// `CORS`.
    pub cors: Option<Cors>,
    /// `ExtensionRef`.
    pub extension_ref: Option<ObjectRef>,
}

/// Changes to the fields of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HeaderModifier {
    /// Replace all fields of the name.
    pub set: Vec<Header>,
    /// Added to those already there.
    pub add: Vec<Header>,
    /// Names of those that are removed.
    pub remove: Vec<String>,
}

/// A field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Copies requests to another backend, all of them unless a share is stated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestMirror {
    /// The backend.
    pub backend_ref: BackendRef,
    /// The share, in per cent.
    pub percent: Option<u32>,
    /// The share, as a fraction.
    pub fraction: Option<Fraction>,
}

/// A share.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Fraction {
    /// At most the denominator.
    pub numerator: u32,
    /// At least 1.
    pub denominator: u32,
}

impl Default for Fraction {
    fn default() -> Fraction {
        Fraction { numerator: 0, denominator: 100 }
    }
}

/// Answers with a redirect. What is absent is as in the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestRedirect {
    /// `http` or `https`.
    pub scheme: Option<String>,
    /// The host.
    pub hostname: Option<String>,
    /// The path.
    pub path: Option<PathModifier>,
    /// The port; absent: that of the scheme if one is stated, else the listener's.
    pub port: Option<u16>,
    /// The status; absent: 302.
    pub status_code: Option<u16>,
}

/// Changes the target of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UrlRewrite {
    /// The host.
    pub hostname: Option<String>,
    /// The path.
    pub path: Option<PathModifier>,
}

/// A change of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PathModifier {
    /// `ReplaceFullPath` or `ReplacePrefixMatch`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The new path.
    pub replace_full_path: Option<String>,
    /// What replaces the prefix that matched.
    pub replace_prefix_match: Option<String>,
}

/// Rules for pages of other origins (CORS).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cors {
    /// Origins whose pages may read responses: `*`, `https://a.example`, `https://*.example`.
    pub allow_origins: Vec<String>,
    /// Whether with cookies.
    pub allow_credentials: bool,
    /// Methods, or `*`.
    pub allow_methods: Vec<String>,
    /// Names of request fields, or `*`.
    pub allow_headers: Vec<String>,
    /// Names of response fields, or `*`.
    pub expose_headers: Vec<String>,
    /// How long a browser keeps the answer, in seconds.
    pub max_age: u32,
}

impl Default for Cors {
    fn default() -> Cors {
        Cors {
            allow_origins: Vec::new(),
            allow_credentials: false,
            allow_methods: Vec::new(),
            allow_headers: Vec::new(),
            expose_headers: Vec::new(),
            max_age: 5,
        }
    }
}

/// How long requests may take: durations as in GEP-2257, such as `1h30m`; `0s`: no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Timeouts {
    /// A request, with all attempts.
    pub request: Option<String>,
    /// One attempt at a server.
    pub backend_request: Option<String>,
}

/// When requests are retried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Retry {
    /// After these statuses.
    pub codes: Vec<u16>,
    /// How often. The API has no bounds for it.
    pub attempts: Option<i64>,
    /// The least pause before (GEP-2257).
    pub backoff: Option<String>,
}

/// Session affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionPersistence {
    /// The cookie's (or field's) name.
    pub session_name: Option<String>,
    /// `Cookie` (also if absent) or `Header`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// How long it lasts (GEP-2257).
    pub absolute_timeout: Option<String>,
    /// The cookie.
    pub cookie_config: Option<CookieConfig>,
}

/// A cookie for session affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CookieConfig {
    /// `Session` (also if absent) or `Permanent`.
    pub lifetime_type: Option<String>,
}

/// The status of a route: for each parent, what its controller says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteStatus {
    /// At most 32.
    pub parents: Vec<ParentStatus>,
}

/// What a controller says about a route at one of its parents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ParentStatus {
    /// The parent, as the route has it.
    pub parent_ref: ParentRef,
    /// The controller.
    pub controller_name: String,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}
