//! Routes: which request goes where, and how it is changed on its way.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    AuthenticationId, Cause, Condition, Cors, ErrorPage, LimitScope, ListenerId, Maintenance,
    RequestFilter, ResponseFilter, RouteAffinity, ServiceId, StatusSet, Text, WrittenAt,
};

/// A route: its conditions and its action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// As configured, or derived from its conditions. A rule with several hosts becomes several
    /// routes of the same name.
    pub name: Arc<str>,
    /// The conditions on a request.
    pub matches: RouteMatch,
    /// The action.
    pub action: Action,
    /// Filters that its requests pass through first, in order.
    pub filters: Vec<RequestFilter>,
    /// Whether it is in maintenance according to the file.
    pub maintenance: Option<Maintenance>,
    /// Pages in place of the answers to its errors that Weir generates; before the service's and the
    /// listener's.
    pub error_pages: Vec<ErrorPage>,
    /// Where the configuration has it.
    pub written_at: WrittenAt,
}

impl Route {
    /// Returns whether a request of this method is refused instead of forwarded: TRACE, unless the
    /// route names it.
    pub fn refuses(&self, method: &str) -> bool {
        matches!(self.action, Action::Forward(_))
            && method == "TRACE"
            && self.matches.method.as_deref() != Some("TRACE")
    }

    /// Returns the services that receive copies of the requests.
    pub fn mirrors(&self) -> &[Mirror] {
        match &self.action {
            Action::Forward(forward) => &forward.mirrors,
            Action::Redirect(_) | Action::Deny(_) | Action::Respond(_) => &[],
        }
    }

    /// Returns the authentication that it requires, if any.
    pub fn authentication(&self) -> Option<AuthenticationId> {
        self.filters.iter().find_map(|filter| match filter {
            RequestFilter::Authenticate(id) => Some(*id),
            RequestFilter::RateLimits(_) | RequestFilter::Cors(_) => None,
        })
    }

    /// Returns its rules for pages of other origins, if it has some.
    pub fn cors(&self) -> Option<&Cors> {
        self.filters.iter().find_map(|filter| match filter {
            RequestFilter::Cors(rules) => Some(&**rules),
            RequestFilter::RateLimits(_) | RequestFilter::Authenticate(_) => None,
        })
    }

    /// Returns its rate limits, in the order in which they count.
    pub fn rate_limits(&self) -> impl Iterator<Item = &RateLimit> {
        self.filters.iter().flat_map(|filter| match filter {
            RequestFilter::RateLimits(limits) => limits.as_slice(),
            RequestFilter::Cors(_) | RequestFilter::Authenticate(_) => &[],
        })
    }
}

/// Conditions that must all hold. Precedence among routes of one priority is the Kubernetes Gateway API's: exact
/// host, longer wildcard host, any host; exact path, longer prefix; method; more fields; more
/// query parameters. After these, more of the other conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RouteMatch {
    /// Routes of a higher priority are tried first. No condition.
    pub priority: u32,
    /// Listeners it applies to; empty: all.
    pub listeners: Vec<ListenerId>,
    /// Host without port, lower case; `None`: any.
    pub host: Option<HostPattern>,
    /// Path.
    pub path: PathMatch,
    /// Method, as sent (methods are case-sensitive, RFC 9110 section 9.1).
    pub method: Option<String>,
    /// Request fields, sorted by name.
    pub fields: Vec<FieldMatch>,
    /// Query parameters, sorted by name.
    pub query: Vec<FieldMatch>,
    /// All other conditions, sorted.
    pub conditions: Vec<Condition>,
    /// Of equally specific ones, the older one is tried first; `None` in files. No condition.
    pub age: Option<RouteAge>,
}

/// Where a route of Kubernetes stands among equally specific ones: the older one is less.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteAge {
    /// What counts before the age: 0, except for Ingresses.
    pub rank: u32,
    /// The object that states the route.
    pub object: Arc<ObjectAge>,
    /// Its position in the object.
    pub position: u32,
}

/// What objects of Kubernetes are ordered by if they are in conflict: the older one is less, of two of the same second that
/// with the lesser namespace, then name (`HTTPRouteRule.matches` of the Gateway API).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectAge {
    /// When it was created: RFC 3339 in UTC, which is ordered like text.
    pub created: Option<Arc<str>>,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl RouteMatch {
    /// Returns the conditions that every request meets, unless its path has dot segments.
    pub fn any() -> RouteMatch {
        RouteMatch {
            priority: 0,
            listeners: Vec::new(),
            host: None,
            path: PathMatch::Prefix(String::new()),
            method: None,
            fields: Vec::new(),
            query: Vec::new(),
            conditions: Vec::new(),
            age: None,
        }
    }
}

/// A host to match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// The whole name.
    Exact(String),
    /// `*.example.com` is stored as `example.com`: matches with one or more labels before it.
    Wildcard(String),
}

impl HostPattern {
    /// Returns whether it covers `host`, a name in lower case.
    pub fn covers(&self, host: &str) -> bool {
        match self {
            HostPattern::Exact(name) => host == name,
            HostPattern::Wildcard(suffix) => host
                .strip_suffix(&**suffix)
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        }
    }

    /// Returns whether it covers every host that `other` covers.
    pub fn covers_all_of(&self, other: &HostPattern) -> bool {
        match other {
            HostPattern::Exact(host) => self.covers(host),
            HostPattern::Wildcard(_) if self == other => true,
            HostPattern::Wildcard(suffix) => {
                matches!(self, HostPattern::Wildcard(_)) && self.covers(suffix)
            }
        }
    }
}

/// As a configuration has it: `a.example.com`, `*.example.com`.
impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Exact(name) => f.write_str(name),
            HostPattern::Wildcard(suffix) => write!(f, "*.{suffix}"),
        }
    }
}

/// A path condition, stored in canonical form ([`crate::path::canonical`]) and compared with the
/// canonical form of the request's path before the `?`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathMatch {
    /// On segment boundaries: `/a` matches `/a` and `/a/b`, not `/ab`. Stored without a trailing
    /// slash; `/` is the empty prefix.
    Prefix(String),
    /// The whole path.
    Exact(String),
}

/// A name and the exact value it must have. Of several fields or parameters of that name the first
/// counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldMatch {
    /// Field name in lower case, or parameter name as it is after decoding (a form's encoding:
    /// `%XX` is a byte and `+` a space).
    pub name: String,
    /// Its value; a parameter's after decoding, empty if there is no `=`.
    pub value: Text,
}

/// A route's action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Forward it to a server.
    Forward(Box<Forward>),
    /// Answer with a redirect.
    Redirect(Redirect),
    /// Refuse it.
    Deny(Denial),
    /// Answer as configured.
    Respond(Respond),
}

/// The settings of forwarding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The branches of its split, by weight; never empty, weights not all 0.
    pub to: Vec<Split>,
    /// Changes to target and Host.
    pub rewrite: Rewrite,
    /// Filters that responses pass through, in order.
    pub filters: Vec<ResponseFilter>,
    /// Changes to the fields of requests, and to those of responses after the filters.
    pub fields: MessageChanges,
    /// Services that receive copies of the requests, besides.
    pub mirrors: Vec<Mirror>,
    /// Time limits of its requests.
    pub timeouts: RouteTimeouts,
    /// When its requests are retried.
    pub retries: RouteRetries,
    /// The affinity of its requests, in place of the service's.
    pub affinity: Option<Box<RouteAffinity>>,
}

/// Time limits of the requests of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteTimeouts {
    /// In place of the service's [`ServiceTimeouts::total`](crate::ServiceTimeouts::total); zero: no limit.
    pub total: Option<Duration>,
    /// In place of the service's [`ServiceTimeouts::response`](crate::ServiceTimeouts::response): when it
    /// passes, another attempt is made if there may be one. Zero: no limit.
    pub attempt: Option<Duration>,
}

/// When the requests of a route are retried, in place of what their service's
/// [`Retries`](crate::Retries) say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteRetries {
    /// In place of [`Retries::attempts_max`](crate::Retries::attempts_max).
    pub attempts_max: Option<u32>,
    /// In place of [`Retries::statuses`](crate::Retries::statuses).
    pub statuses: Option<StatusSet>,
    /// In place of [`Retries::backoff`](crate::Retries::backoff).
    pub backoff: Option<Duration>,
}

impl RouteRetries {
    /// As the service says.
    pub const OF_SERVICE: RouteRetries =
        RouteRetries { attempts_max: None, statuses: None, backoff: None };
}

impl Forward {
    /// Returns the services that requests go to.
    pub fn services(&self) -> impl Iterator<Item = ServiceId> {
        self.to.iter().filter_map(|branch| match branch.to {
            SplitTarget::Service(id) => Some(id),
            SplitTarget::Deny(_) => None,
        })
    }

    /// Returns the changes to the fields of messages of one of its branches.
    pub fn fields_of<'a>(&'a self, branch: &'a Split) -> &'a MessageChanges {
        branch.fields.as_ref().map_or(&self.fields, |changes| &changes.all)
    }
}

/// A service that receives copies of a route's requests. Its responses are discarded.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    /// The service.
    pub service: ServiceId,
    /// The share of the requests that are copied: above 0, at most 1.
    pub share: f64,
    /// The longest body of a request that is copied.
    pub body_max_bytes: u32,
}

// A share is never NaN.
impl Eq for Mirror {}

crate::words! {
    /// What became of a request that was to be copied to a [`Mirror`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Mirrored {
        /// The response to the copy has the same status as that to the request.
        SameStatus = "same_status",
        /// The statuses differ.
        OtherStatus = "other_status",
        /// No complete response came to the copy.
        Failed = "failed",
        /// Not copied: its body is too long, or has not arrived when the response began.
        NoBody = "no_body",
        /// Not copied: too many copies, or too many bytes of bodies, are in flight.
        Overloaded = "overloaded",
    }
}

/// One branch of a weighted split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Where its requests go.
    pub to: SplitTarget,
    /// Its share relative to the other branches.
    pub weight: u32,
    /// Changes to the fields of its messages besides the route's.
    pub fields: Option<Box<BranchChanges>>,
}

/// Changes to the fields of messages of one branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchChanges {
    /// The branch's own.
    pub own: MessageChanges,
    /// The route's, and then the branch's own.
    pub all: MessageChanges,
}

impl Split {
    /// Returns the branch that all requests take, without changes of its own.
    pub fn only(service: ServiceId) -> Split {
        Split { to: SplitTarget::Service(service), weight: 1, fields: None }
    }
}

/// Where the requests of a branch go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitTarget {
    /// To a server of this service.
    Service(ServiceId),
    /// Nowhere: they are refused.
    Deny(Denial),
}

/// A refusal in place of forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The status of the answer: 4xx or 5xx.
    pub status: u16,
    /// Why.
    pub cause: DenialCause,
}

/// Why a route refuses requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialCause {
    /// The configuration says so.
    Configured,
    /// They are for a listener of a Gateway that has no route for them.
    NoRoute,
    /// What they would be forwarded to does not exist or is not valid.
    NoBackend,
}

impl Denial {
    /// Creates the refusal that a configuration demands.
    pub fn configured(status: u16) -> Denial {
        Denial { status, cause: DenialCause::Configured }
    }

    /// Creates the refusal of requests that have no route: 404.
    pub fn no_route() -> Denial {
        Denial { status: 404, cause: DenialCause::NoRoute }
    }

    /// Creates the refusal of requests that have no valid backend: 500, the status that the Gateway API
    /// demands for them.
    pub fn no_backend() -> Denial {
        Denial { status: 500, cause: DenialCause::NoBackend }
    }
}

impl DenialCause {
    /// Returns the cause that an exchange ends with.
    pub fn cause(self) -> Cause {
        match self {
            DenialCause::Configured => Cause::HttpRequestDenied,
            DenialCause::NoRoute => Cause::DestinationNotFound,
            DenialCause::NoBackend => Cause::ProxyConfigurationError,
        }
    }
}

/// Changes to a request's target and Host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// The path.
    pub path: Option<PathChange>,
    /// Host to send.
    pub host: Option<String>,
}

/// What a path becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// This replaces the prefix that the route matches. Stored like that prefix, without a trailing
    /// slash, so `/` is empty; a path that becomes empty is `/`.
    Prefix(String),
    /// This replaces all of it.
    Whole(String),
}

/// As a configuration has it, with a mark after a whole path: `/api`, `/index.html (whole path)`.
impl fmt::Display for PathChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathChange::Prefix(prefix) if prefix.is_empty() => f.write_str("/"),
            PathChange::Prefix(prefix) => f.write_str(prefix),
            PathChange::Whole(path) => write!(f, "{path} (whole path)"),
        }
    }
}

/// Changes to a message's fields: removed first, then set, then added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldChanges {
    /// Names, lower case.
    pub remove: Vec<String>,
    /// Name and value; replaces every field of that name.
    pub set: Vec<(String, Text)>,
    /// Name and value; added to those already there.
    pub add: Vec<(String, Text)>,
}

impl FieldChanges {
    /// Returns whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }

    /// Returns changes that have the effect of these and then `later` ones. `is_same`: whether two names
    /// are of one field.
    fn then(&self, later: &FieldChanges, is_same: impl Fn(&str, &str) -> bool) -> FieldChanges {
        let is_replaced = |name: &String| {
            let mut set = later.set.iter().map(|(name, _)| name);
            later.remove.iter().any(|one| is_same(one, name)) || set.any(|one| is_same(one, name))
        };
        let kept = |pairs: &[(String, Text)]| -> Vec<_> {
            pairs.iter().filter(|(name, _)| !is_replaced(name)).cloned().collect()
        };
        let mut all = FieldChanges {
            remove: self.remove.clone(),
            set: kept(&self.set),
            add: kept(&self.add),
        };
        let new = later.remove.iter().filter(|name| !self.remove.contains(name));
        all.remove.extend(new.cloned());
        all.set.extend_from_slice(&later.set);
        all.add.extend_from_slice(&later.add);
        all
    }
}

/// Changes to the fields of both messages of an exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageChanges {
    /// To the request's.
    pub request: FieldChanges,
    /// To the response's.
    pub response: FieldChanges,
}

impl MessageChanges {
    /// Returns whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        self.request.is_empty() && self.response.is_empty()
    }

    /// Returns changes that have the effect of these and then `later` ones.
    ///
    /// In requests, a change applies to all fields whose names a CGI-like server may take for one, with
    /// `_` read as `-`.
    #[must_use]
    pub fn then(&self, later: &MessageChanges) -> MessageChanges {
        let is_same = |one: &str, other: &str| {
            let hyphened = |byte: u8| if byte == b'_' { b'-' } else { byte };
            one.bytes().map(hyphened).eq(other.bytes().map(hyphened))
        };
        MessageChanges {
            request: self.request.then(&later.request, is_same),
            response: self.response.then(&later.response, |one, other| one == other),
        }
    }
}

/// A redirect. `None` keeps the request's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// `http` or `https`.
    pub scheme: Option<String>,
    /// Host.
    pub host: Option<String>,
    /// Port; `None` with a scheme given: that scheme's default.
    pub port: Option<u16>,
    /// The path.
    pub path: Option<PathChange>,
}

/// A response that is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Respond {
    /// Always the same.
    Fixed {
        /// 200 to 599, without 304.
        status: u16,
        /// Its fields and body.
        content: Arc<Content>,
    },
    /// 200 while this process takes new work and each of these services has a ready server, otherwise
    /// 503.
    Ready(Vec<ServiceId>),
}

/// The content of a response that is configured (RFC 9110 section 6.4), and further fields.
#[derive(Clone, PartialEq, Eq)]
pub struct Content {
    /// The value of Content-Type; `None`: there is no content.
    pub media_type: Option<String>,
    /// Further fields, sorted by name.
    pub fields: Vec<(String, Text)>,
    /// The body, at most 1 MiB.
    pub body: Arc<[u8]>,
}

/// Without the body, which may be long, and the values of fields, which may be secrets.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.fields.iter().map(|(name, _)| name).collect();
        write!(f, "{:?}, {} bytes, {names:?}", self.media_type, self.body.len())
    }
}

/// Requests per time and key; a token bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Unique within its route, and the same across reloads, so that allowances are kept. Clients see
    /// it in the fields of [`RateLimit::is_announced`].
    pub name: Arc<str>,
    /// Which requests share a bucket.
    pub by: RateKey,
    /// Whose requests it counts.
    pub scope: LimitScope,
    /// Requests allowed…
    pub requests: u32,
    /// …in this time.
    pub per: Duration,
    /// Requests that may come at once before the rate applies.
    pub burst: u32,
    /// How long a request beyond that waits for its turn; one that would have to wait longer is
    /// refused.
    pub wait_max: Duration,
    /// Whether responses tell the client what is left (`RateLimit`, `RateLimit-Policy`).
    pub is_announced: bool,
}

/// Which requests share a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateKey {
    /// The client's address; an IPv6 client's /64, since one host usually controls all of it.
    Client,
    /// A request field's value; the name in lower case. Requests without it share one bucket, and so do
    /// those with several lines of it: which one a server would read is unknown.
    Field(String),
    /// A cookie's value; as for a field.
    Cookie(String),
    /// The user that the request has proven to come from. Requests without a name share one bucket.
    User,
    /// A claim of the token, by path. Requests whose token does not have it share one bucket.
    Claim(String),
}

impl RateKey {
    /// Returns whether the request must have been authenticated before.
    pub fn needs_identity(&self) -> bool {
        matches!(self, RateKey::User | RateKey::Claim(_))
    }
}

crate::word_of! {
    /// The word for a [`RateKey`], before the colon and the name.
    RateKey as RateKeyWord {
        Client = "client",
        Field(_) = "header",
        Cookie(_) = "cookie",
        User = "user",
        Claim(_) = "claim",
    }
}

/// Writes the key as a configuration has it: `client`, `header:NAME`.
impl fmt::Display for RateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateKey::Client | RateKey::User => f.write_str(self.as_str()),
            RateKey::Field(name) | RateKey::Cookie(name) | RateKey::Claim(name) => {
                write!(f, "{}:{name}", self.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConditionOn, Test};

    /// Applies changes as messages are changed: removed first, then set, then added.
    fn applied(changes: &FieldChanges, fields: &[(&str, &str)]) -> Vec<(String, String)> {
        let is_gone = |name: &str| {
            changes.remove.iter().any(|one| one == name)
                || changes.set.iter().any(|(one, _)| one == name)
        };
        let kept = fields.iter().filter(|(name, _)| !is_gone(name));
        let kept = kept.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let new = changes.set.iter().chain(&changes.add);
        kept.chain(new.map(|(name, value)| (name.clone(), value.to_string()))).collect()
    }

    #[test]
    fn composed_changes_have_the_effect_of_one_after_the_other() {
        let sent = [("a", "1"), ("b", "2"), ("b", "3")];
        let choices: Vec<FieldChanges> = (0..27)
            .map(|number: u32| {
                let mut changes = FieldChanges::default();
                // Each of three kinds of change is made to no field, to `a` or to `b`.
                let name = |of: u32| [None, Some("a"), Some("b")][(number / of % 3) as usize];
                changes.remove.extend(name(1).map(str::to_owned));
                let pair = |name: &str, value: &str| {
                    (name.to_owned(), format!("{value}{number}").as_str().into())
                };
                changes.set.extend(name(3).map(|name| pair(name, "set")));
                changes.add.extend(name(9).map(|name| pair(name, "add")));
                changes
            })
            .collect();
        for first in &choices {
            for later in &choices {
                let between = applied(first, &sent);
                let between: Vec<_> = between.iter().map(|(n, v)| (&**n, &**v)).collect();
                let mut expected = applied(later, &between);
                let mut all = applied(&first.then(later, |one, other| one == other), &sent);
                // Fields of different names have no order; those of one name keep theirs.
                expected.sort_by(|(one, _), (other, _)| one.cmp(other));
                all.sort_by(|(one, _), (other, _)| one.cmp(other));
                assert_eq!(all, expected, "{first:?} {later:?}");
            }
        }
    }

    fn field(name: &str) -> FieldMatch {
        FieldMatch { name: name.into(), value: "1".into() }
    }

    fn present(name: &str) -> Condition {
        Condition { on: ConditionOn::Field(name.into()), test: Test::Present, negated: false }
    }

    #[test]
    fn a_later_change_of_a_request_applies_to_names_that_servers_may_take_for_one() {
        let set = |name: &str| FieldChanges {
            set: vec![(name.to_owned(), "1".into())],
            ..FieldChanges::default()
        };
        let both = |name: &str| MessageChanges { request: set(name), response: set(name) };
        let all = both("x_team").then(&both("x-team"));
        assert_eq!(all.request, set("x-team"));
        assert_eq!(all.response.set.len(), 2);
    }

    #[test]
    fn routes_are_tried_as_the_gateway_api_orders_them_whatever_the_file_does() {
        let exact = |h: &str| Some(HostPattern::Exact(h.into()));
        let wild = |h: &str| Some(HostPattern::Wildcard(h.into()));
        let prefix = |p: &str| PathMatch::Prefix(p.into());
        let age = |created: &str, name: &str, position| {
            let created = Some(created.into());
            let object = Arc::new(ObjectAge { created, namespace: "n".into(), name: name.into() });
            Some(RouteAge { rank: 0, object, position })
        };
        let ordered = [
            RouteMatch { host: exact("a.example.com"), ..RouteMatch::any() },
            RouteMatch { host: exact("b.example.com"), ..RouteMatch::any() },
            RouteMatch { host: wild("long.example.com"), ..RouteMatch::any() },
            RouteMatch { host: wild("example.com"), path: prefix("/a"), ..RouteMatch::any() },
            RouteMatch { path: PathMatch::Exact("/a".into()), ..RouteMatch::any() },
            RouteMatch { path: prefix("/a/b"), ..RouteMatch::any() },
            RouteMatch { path: prefix("/a"), method: Some("GET".into()), ..RouteMatch::any() },
            RouteMatch { path: prefix("/a"), method: Some("PUT".into()), ..RouteMatch::any() },
            RouteMatch {
                path: prefix("/a"),
                fields: vec![field("x"), field("y")],
                ..RouteMatch::any()
            },
            RouteMatch { path: prefix("/a"), fields: vec![field("x")], ..RouteMatch::any() },
            RouteMatch { path: prefix("/a"), query: vec![field("x")], ..RouteMatch::any() },
            RouteMatch {
                path: prefix("/a"),
                conditions: vec![present("x"), present("y")],
                ..RouteMatch::any()
            },
            RouteMatch { path: prefix("/a"), conditions: vec![present("x")], ..RouteMatch::any() },
            RouteMatch { path: prefix("/a"), listeners: vec![ListenerId(0)], ..RouteMatch::any() },
            RouteMatch { path: prefix("/a"), age: age("2026-01-01", "b", 1), ..RouteMatch::any() },
            RouteMatch { path: prefix("/a"), age: age("2026-01-01", "b", 2), ..RouteMatch::any() },
            RouteMatch { path: prefix("/a"), age: age("2026-01-01", "c", 0), ..RouteMatch::any() },
            RouteMatch { path: prefix("/a"), age: age("2026-01-02", "a", 0), ..RouteMatch::any() },
            RouteMatch { path: prefix("/a"), ..RouteMatch::any() },
            RouteMatch::any(),
        ];
        for (i, one) in ordered.iter().enumerate() {
            for (j, other) in ordered.iter().enumerate() {
                assert_eq!(one.precedence(other), i.cmp(&j), "{one:?}\n{other:?}");
            }
        }
    }
}
