//! What the annotations of an Ingress state for its rules.

use std::sync::Arc;
use std::time::Duration;

use model::{Condition, HostPattern, LimitScope, RateKey, RateLimit};

use super::access;
use super::annotations::{Annotations, list, shown};
use super::backends::Backends;
use super::canary::{self, Canary};
use super::cors;
use super::redirects::{self, Redirects};
use super::unsupported;
use super::upstream::{self, Upstream};
use crate::hosts;
use crate::ir::backend::Target;
use crate::ir::extras::Extras;
use crate::ir::filter::{Filters, Mirror};
use crate::objects::Meta;
use crate::resolve::cluster::Cluster;
use crate::resolve::route::syntax;

/// At most this many further names of a host.
const ALIASES_MAX: usize = 50;
/// The most requests of a limit.
const RATE_MAX: u32 = 1_000_000;

/// What annotations state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// Whether all requests are refused: an annotation that protects the backends cannot be used.
    pub is_refused: bool,
    /// Conditions on clients. Others are refused.
    pub clients: Vec<Condition>,
    /// Changes to requests and responses, without the path.
    pub filters: Filters,
    /// Replaces the host of requests.
    pub host: Option<String>,
    /// Rate limits and authentication.
    pub extras: Option<Arc<Extras>>,
    /// Redirects.
    pub redirects: Redirects,
    /// Whether paths may be regular expressions.
    pub is_regex: bool,
    /// The target of paths.
    pub rewrite: Option<String>,
    /// Further names of the host.
    pub aliases: Vec<HostPattern>,
    /// Whether TLS is not decrypted.
    pub is_passthrough: bool,
    /// The Ingress is a canary.
    pub canary: Option<Canary>,
    /// Settings of the backends.
    pub upstream: Upstream,
}

impl Terms {
    /// Returns whether annotations protect the backends.
    pub fn is_protected(&self) -> bool {
        let has_authentication =
            self.extras.as_ref().is_some_and(|extras| extras.authentication.is_some());
        self.is_refused || !self.clients.is_empty() || has_authentication
    }
}

/// Reads all annotations, and records those that have no effect.
pub fn read(
    annotations: &mut Annotations<'_>,
    metadata: &Meta,
    cluster: &Cluster<'_>,
    backends: &mut Backends<'_>,
) -> Terms {
    let canary = canary::read(annotations);
    if canary.is_some() {
        return of_canary(annotations, canary);
    }
    let clients = access::clients(annotations);
    let authentication = access::authentication(annotations, metadata, cluster, backends);
    let limits = limits(annotations);
    let redirects = redirects::read(annotations);
    let has_regex = annotations.is_on("use-regex");
    let rewrite = annotations.text("rewrite-target").map(str::to_owned);
    let filters = filters(annotations, backends);
    let host = host(annotations);
    let aliases = aliases(annotations);
    let upstream = upstream::read(annotations, metadata, cluster);
    let mut is_passthrough = annotations.is_on("ssl-passthrough");
    unsupported::report(annotations);
    let is_protected = !clients.is_empty() || authentication.is_some() || annotations.is_refused();
    if is_passthrough && is_protected {
        is_passthrough = false;
        let why = "cannot be combined with annotations that protect the backends, which need \
                   decrypted requests";
        annotations.unsupported("ssl-passthrough", why);
    }
    let authentication = authentication.map(Arc::new);
    let extras = Extras { limits, authentication, ..Extras::default() };
    Terms {
        is_refused: annotations.is_refused(),
        clients,
        filters,
        host,
        extras: (extras != Extras::default()).then(|| Arc::new(extras)),
        redirects,
        is_regex: has_regex || rewrite.is_some(),
        rewrite,
        aliases,
        is_passthrough,
        canary: None,
        upstream,
    }
}

/// Of a canary, only the annotations about its share count. The others are those of the Ingress that it is for.
fn of_canary(annotations: &mut Annotations<'_>, canary: Option<Canary>) -> Terms {
    let is_regex = annotations.is_on("use-regex");
    let rewrite = annotations.text("rewrite-target").map(str::to_owned);
    let mut others = Vec::new();
    for (name, _) in annotations.take_unread() {
        if super::annotations::is_protective(name) {
            annotations.refuse_canary(name, "is not that of the Ingress without canary");
        } else {
            others.push(shown(name));
        }
    }
    if !others.is_empty() {
        others.truncate(12);
        let message = format!(
            "In a canary, these annotations have no effect: {}. Those of the Ingress without \
             canary count.",
            others.join(", ")
        );
        annotations.add(crate::resolve::status::Problem::new("UnsupportedAnnotation", message));
    }
    Terms {
        is_refused: annotations.is_refused(),
        is_regex: is_regex || rewrite.is_some(),
        rewrite,
        canary,
        ..Terms::default()
    }
}

fn filters(annotations: &mut Annotations<'_>, backends: &mut Backends<'_>) -> Filters {
    let mut filters = Filters { cors: cors::read(annotations), ..Filters::default() };
    if let Some(prefix) = annotations.text("x-forwarded-prefix") {
        match syntax::path("The prefix", prefix) {
            Ok(prefix) => {
                filters.request_headers.set.push(("x-forwarded-prefix".to_owned(), prefix));
            }
            Err(problem) => {
                let why = format!("is invalid: {}", problem.message);
                annotations.invalid("x-forwarded-prefix", &why);
            }
        }
    }
    if let Some(url) = annotations.text("mirror-target") {
        let located = backends.of_url(url).and_then(|located| match &*located.rest {
            "$request_uri" | "" => Ok(located.port),
            _ => Err("has a path. End it with $request_uri".to_owned()),
        });
        match located {
            Ok(port) => {
                let target = Target::Service(Arc::new(port));
                filters.mirrors.push(Mirror { target, numerator: 1, denominator: 1 });
            }
            Err(why) => {
                annotations.unsupported("mirror-target", &format!("({}) {why}", shown(url)));
            }
        }
    }
    filters
}

fn host(annotations: &mut Annotations<'_>) -> Option<String> {
    let text = annotations.text("upstream-vhost")?;
    let host = syntax::exact_host("The host", text).ok();
    if host.is_none() {
        let why = format!("is {}, which is not the name of a host", shown(text));
        annotations.invalid("upstream-vhost", &why);
    }
    host
}

fn aliases(annotations: &mut Annotations<'_>) -> Vec<HostPattern> {
    let mut read: Vec<HostPattern> = Vec::new();
    for name in annotations.text("server-alias").into_iter().flat_map(list) {
        match hosts::host(name) {
            Ok(host) if read.contains(&host) => {}
            Ok(host) if read.len() < ALIASES_MAX => read.push(host),
            Ok(_) => {
                let why = format!("has more than {ALIASES_MAX} names; the others are left out");
                annotations.remark("server-alias", &why);
                break;
            }
            Err(why) => {
                let why = format!("has {}, which {why}. It is left out", shown(name));
                annotations.remark("server-alias", &why);
            }
        }
    }
    read
}

fn limits(annotations: &mut Annotations<'_>) -> Vec<RateLimit> {
    let multiplier = annotations.number("limit-burst-multiplier", 1..=1000).unwrap_or(5);
    let mut limits = Vec::new();
    for (name, short, seconds) in [("limit-rps", "rps", 1), ("limit-rpm", "rpm", 60)] {
        let Some(requests) = annotations.number(name, 1..=RATE_MAX) else { continue };
        limits.push(RateLimit {
            name: short.into(),
            by: RateKey::Client,
            scope: LimitScope::Balancer,
            requests,
            per: Duration::from_secs(seconds),
            burst: requests.saturating_mul(multiplier).min(RATE_MAX),
            wait_max: Duration::ZERO,
            is_announced: false,
        });
    }
    limits
}
