//! Traefik's tags (<https://doc.traefik.io/traefik/v2.11/routing/providers/consul-catalog/>). Keys are compared
//! without regard to case.
//!
//! | tag | effect |
//! |---|---|
//! | `traefik.http.routers.NAME.rule=RULE` | a route for each host of the rule |
//! | `.entrypoints` of the same router | the route is for the listeners of these names |
//! | `.tls`, `.tls.certresolver`, `.tls.domains…` of the same router | none: certificates are those of the file |
//! | `.service` of the same router | none if it is the service's own name; otherwise the router is refused |
//! | `.middlewares`, `.priority`, `.tls.options`, any other key of the router | the router is refused |
//! | `traefik.http.services.NAME.loadbalancer.server.…` | the routers of the service are refused: they have other servers |
//! | `traefik.enable=false` | the service publishes nothing in this format |
//! | `traefik.tcp.routers.…`, `traefik.udp.routers.…` | refused |
//!
//! Other tags of Traefik are not about routes and are ignored.
//!
//! A rule needs a `Host`, which may have several names. Wildcards and patterns in braces are refused. Traefik
//! compares the path of `PathPrefix` as plain text: `/foo` matches `/foobar`, too. Here it is a prefix on segment
//! boundaries, as `path` of `[[route]]`.
//!
//! The tags are those of all instances. If they state two rules for a router, or one of them disables Traefik, that
//! counts for the service as a whole.

use std::collections::BTreeMap;

use config::quote;
use model::Text;

use super::rule::{self, Rule};
use super::target::{self, Target};

/// The key that switches the service on or off.
const ENABLE: &str = "traefik.enable";

/// How keys of routers begin; the first kind can be routes.
const ROUTERS: [&str; 3] =
    ["traefik.http.routers.", "traefik.tcp.routers.", "traefik.udp.routers."];

/// The name of the provider whose services are those of Consul.
const PROVIDER: &str = "consulcatalog";

/// A tag, and what is read from it.
type OfTag<'t, T> = (&'t str, T);

/// Returns whether a tag decides about routes.
pub(super) fn is_about_routes(tag: &str) -> bool {
    let begins_with =
        |start: &str| tag.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start));
    ROUTERS.into_iter().any(begins_with)
        || is_server(&tag.to_ascii_lowercase())
        || begins_with(ENABLE)
            && tag.get(ENABLE.len()..).is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// Returns whether a key, in lower case, states which port or scheme servers have.
fn is_server(key: &str) -> bool {
    key.strip_prefix("traefik.http.services.")
        .is_some_and(|rest| rest.contains(".loadbalancer.server."))
}

/// Reads the tags of a service that are about routes. Returns what each rule states for each of its hosts, or why a
/// router is refused, each with the tag. `incomplete`: why there may be further tags, so that no router is known.
pub(super) fn read<'t>(
    service: &str,
    tags: impl Iterator<Item = &'t str>,
    incomplete: Option<&str>,
) -> Vec<OfTag<'t, Result<Target, String>>> {
    let mut routers: BTreeMap<(usize, String), Router<'t>> = BTreeMap::new();
    let mut unclear = None;
    for tag in tags {
        let (key, value) = tag.split_once('=').unwrap_or((tag, ""));
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        if key == ENABLE {
            match value.to_ascii_lowercase().as_str() {
                "false" | "f" | "0" => return Vec::new(),
                "true" | "t" | "1" => {}
                _ => unclear = Some(format!("{ENABLE} is neither true nor false")),
            }
        }
        if is_server(&key) {
            unclear =
                Some("the service states other servers for Traefik than for Consul".to_owned());
        }
        let mut kinds = ROUTERS.iter().enumerate();
        let found = kinds.find_map(|(kind, start)| Some((kind, key.strip_prefix(start)?)));
        if let Some((kind, rest)) = found {
            let (name, option) = rest.split_once('.').unwrap_or((rest, ""));
            let router = routers.entry((kind, name.to_owned())).or_insert_with(|| Router::of(tag));
            router.add(service, tag, option, value);
        }
    }
    let incomplete = incomplete.or(unclear.as_deref());
    let mut read = Vec::new();
    for ((kind, _), router) in routers {
        match router.targets(kind, incomplete) {
            Ok((tag, targets)) => read.extend(targets.into_iter().map(|target| (tag, target))),
            Err((tag, why)) => read.push((tag, Err(why))),
        }
    }
    read
}

/// The tags of one router.
struct Router<'t> {
    /// Any of its tags.
    tag: &'t str,
    /// The listeners that it is for; empty: all.
    entry_points: Vec<Text>,
    /// The tag with its rule, and the rule.
    rule: Option<(&'t str, &'t str)>,
    /// The first tag for which it is refused, and why.
    refused: Option<OfTag<'t, String>>,
}

impl<'t> Router<'t> {
    fn of(tag: &'t str) -> Router<'t> {
        Router { tag, entry_points: Vec::new(), rule: None, refused: None }
    }

    /// Adds what a tag of the router states.
    fn add(&mut self, service: &str, tag: &'t str, option: &str, value: &'t str) {
        let why = match option {
            "rule" if self.rule.is_none() => {
                self.rule = Some((tag, value));
                return;
            }
            "entrypoints" => {
                let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
                self.entry_points.extend(names.map(Text::from));
                self.entry_points.sort_unstable();
                self.entry_points.dedup();
                return;
            }
            "tls" | "tls.certresolver" => return,
            domains if domains.starts_with("tls.domains") => return,
            "service" if is_own(value, service) => return,
            "service" => format!("it is for another service, {}", quote(value)),
            "rule" => "the router has more than one rule".to_owned(),
            "middlewares" | "priority" => format!("`{option}` is not supported"),
            other => format!("unknown key {}", quote(other)),
        };
        self.refused.get_or_insert((tag, why));
    }

    /// Returns the tag with the rule, and what the rule states for each host.
    fn targets(
        self,
        kind: usize,
        incomplete: Option<&str>,
    ) -> Result<OfTag<'t, Vec<Result<Target, String>>>, OfTag<'t, String>> {
        if kind > 0 {
            return Err((self.tag, "only HTTP routers are supported".to_owned()));
        }
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        let (tag, rule) = self.rule.ok_or((self.tag, "the router has no rule".to_owned()))?;
        if let Some(why) = incomplete {
            return Err((tag, why.to_owned()));
        }
        let targets = rule::read(rule).and_then(|rule| targets(&rule, &self.entry_points));
        let targets = targets.map_err(|why| (tag, why))?;
        Ok((tag, targets))
    }
}

/// Returns whether `service` of a router names the service that has the tag.
fn is_own(name: &str, service: &str) -> bool {
    let (name, provider) = name.split_once('@').unwrap_or((name, PROVIDER));
    name.eq_ignore_ascii_case(service) && provider.eq_ignore_ascii_case(PROVIDER)
}

/// Returns what a rule states for each of its hosts.
///
/// # Errors
/// It has no host, or its path is not valid.
fn targets(rule: &Rule<'_>, entry_points: &[Text]) -> Result<Vec<Result<Target, String>>, String> {
    if rule.hosts.is_empty() {
        return Err("the rule has no Host".to_owned());
    }
    let path = match &rule.path {
        None => target::path("/", false)?,
        Some(path) if path.text.contains(['{', '}']) => {
            return Err(format!("path {}: patterns are not supported", quote(path.text)));
        }
        Some(path) => target::path(path.text, path.is_exact)?,
    };
    let target = |text: &&str| {
        if text.contains('*') {
            return Err(format!("host {}: wildcards are not supported", quote(text)));
        }
        let (host, path, listeners) = (target::host(text)?, path.clone(), entry_points.to_vec());
        Ok(Target { host, path, strip: None, listeners })
    };
    Ok(rule.hosts.iter().map(target).collect())
}
