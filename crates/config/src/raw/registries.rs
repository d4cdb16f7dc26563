//! Reads `[consul]`, `[nomad]` and `[etcd]`.

use std::path::PathBuf;
use std::sync::Arc;

use model::{
    BlockingQueries, Consul, Etcd, HostPattern, HttpPeer, HttpUrl, Nomad, RouteTagFormat,
    ServerSourceWord, TagRoutes, Text,
};

use super::discover::registry_name;
use super::table::{Table, choose, is_empty_list};
use super::tls::{self, RawCertificate};
use super::{http, name, net, paths};
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Wrong};

/// Members that are asked one after the other. Clusters have three or five.
const ENDPOINTS_MAX: usize = 16;

/// A registry of servers, and the files that say how TLS with it works.
#[derive(Debug)]
pub(crate) struct RawRegistry<T> {
    /// The source that it is.
    pub(crate) kind: ServerSourceWord,
    /// The table is there.
    pub(crate) is_stated: bool,
    /// At least one.
    pub(crate) urls: Vec<At<HttpUrl>>,
    /// `None`: the system's.
    pub(crate) ca: Option<At<PathBuf>>,
    pub(crate) certificate: Option<RawCertificate>,
    /// What is sent is secret: a token, a password.
    pub(crate) has_secret: bool,
    /// The listeners that routes from there are for.
    pub(crate) route_listeners: Vec<At<Arc<str>>>,
    /// Without peers, or with one that has no files.
    pub(crate) settings: T,
}

/// The three of them; `None` after a mistake in the addresses, which is reported.
#[derive(Debug)]
pub(crate) struct RawRegistries {
    pub(crate) consul: Option<RawRegistry<Consul>>,
    pub(crate) nomad: Option<RawRegistry<Nomad>>,
    pub(crate) etcd: Option<RawRegistry<Etcd>>,
}

/// The defaults of a registry that is asked by blocking queries.
struct Usual {
    kind: ServerSourceWord,
    url: &'static str,
    connections_max: u64,
}

/// What all three tables have.
struct Reached {
    kind: ServerSourceWord,
    is_stated: bool,
    urls: Vec<At<HttpUrl>>,
    ca: Option<At<PathBuf>>,
    certificate: Option<RawCertificate>,
}

/// Reads the tables of the configuration's top level.
pub(super) fn read(table: &mut Table<'_>) -> RawRegistries {
    RawRegistries { consul: consul(table), nomad: nomad(table), etcd: etcd(table) }
}

fn consul(top: &mut Table<'_>) -> Option<RawRegistry<Consul>> {
    let usual = Usual {
        kind: ServerSourceWord::Consul,
        url: defaults::CONSUL,
        connections_max: defaults::CONSUL_CONNECTIONS_MAX,
    };
    let (mut token, mut datacenters, mut routes) = (None, Vec::new(), None);
    let (reached, queries) = of_agent(top, &usual, |table| {
        routes = table.table("routes").map(tag_routes);
        token = table.text("token", token_text).map(|at| table.problems.text(at));
        datacenters = table.texts("datacenters", registry_name).unwrap_or_default();
    })?;
    let datacenters = datacenters.into_iter().map(|at| (*at.value).into()).collect();
    let has_secret = token.is_some();
    let peer = reached.peer()?;
    let (routes, route_listeners) = routes.unzip();
    let raw = reached.with(has_secret, Consul { peer, token, datacenters, queries, routes });
    Some(RawRegistry { route_listeners: route_listeners.unwrap_or_default(), ..raw })
}

/// Reads `routes` of `[consul]`. Returns its listeners with their places, too.
fn tag_routes(mut table: Table<'_>) -> (TagRoutes, Vec<At<Arc<str>>>) {
    let hosts = table.texts("hosts", allowed_host).unwrap_or_default();
    let formats = table.texts("formats", |text| choose(text, RouteTagFormat::WORDS));
    for (key, example) in [("hosts", "*.apps.example.com"), ("formats", "weir")] {
        if is_empty_list(table.peek(key)) {
            let label = "no service could publish a route";
            let title = format!("`{key}` is empty");
            let error = Diagnostic::error(title, table.span_of(key), label);
            table.problems.report(error.help(format!("write {key} = [\"{example}\"]")));
        }
    }
    let hold_max = table.duration("hold_max").value;
    let listeners = table.texts("listener", name).unwrap_or_default();
    table.finish();
    let formats = match formats {
        Some(all) => all.into_iter().filter_map(|at| at.value.parse().ok()).collect(),
        None => vec![RouteTagFormat::Weir],
    };
    let routes = TagRoutes {
        hosts: hosts.into_iter().map(|at| at.value).collect(),
        formats,
        listeners: listeners.iter().map(|at| Arc::clone(&at.value)).collect(),
        hold_max,
    };
    (routes, listeners)
}

/// Parses a host that services may publish. Not every host: any client that may register a service could take over
/// any of them.
fn allowed_host(text: &str) -> Result<HostPattern, Wrong> {
    net::host_pattern(text)?.ok_or_else(|| {
        let help = "name the hosts that services may have, such as \"*.apps.example.com\"";
        Wrong::new("every service could then take over every host").help(help)
    })
}

fn nomad(top: &mut Table<'_>) -> Option<RawRegistry<Nomad>> {
    let usual = Usual {
        kind: ServerSourceWord::Nomad,
        url: defaults::NOMAD,
        connections_max: defaults::NOMAD_CONNECTIONS_MAX,
    };
    let (mut token, mut namespace, mut region) = (None, None, None);
    let (reached, queries) = of_agent(top, &usual, |table| {
        token = table.text("token", token_text).map(|at| table.problems.text(at));
        namespace = table.text("namespace", registry_name).map(|at| (*at.value).into());
        region = table.text("region", registry_name).map(|at| (*at.value).into());
    })?;
    let has_secret = token.is_some();
    let peer = reached.peer()?;
    Some(reached.with(has_secret, Nomad { peer, token, namespace, region, queries }))
}

/// Reads the table of a registry with blocking queries; `more` reads the keys that it has alone.
fn of_agent(
    top: &mut Table<'_>,
    usual: &Usual,
    more: impl FnOnce(&mut Table<'_>),
) -> Option<(Reached, BlockingQueries)> {
    let Some(mut table) = top.table(usual.kind.as_str()) else {
        let queries = BlockingQueries {
            stale: defaults::STALE,
            wait: defaults::QUERY_WAIT,
            connections_max: usual.connections_max as u32,
        };
        return Some((Reached::usual(usual.kind, usual.url)?, queries));
    };
    let is_missing = !table.has_or_means("address");
    let url = table.text("address", |text| address(text, usual.url));
    let (ca, certificate) = files(&mut table);
    more(&mut table);
    let queries = BlockingQueries {
        stale: table.boolean("stale"),
        wait: table.duration("wait").value,
        connections_max: table.integer("connections_max").value,
    };
    let default = At { value: usual.url.parse().ok()?, span: table.span.clone() };
    table.finish();
    let url = url.or_else(|| is_missing.then_some(default))?;
    let kind = usual.kind;
    Some((Reached { kind, is_stated: true, urls: vec![url], ca, certificate }, queries))
}

fn etcd(top: &mut Table<'_>) -> Option<RawRegistry<Etcd>> {
    let kind = ServerSourceWord::Etcd;
    let none = Etcd { endpoints: Vec::new(), user: None };
    let Some(mut table) = top.table("etcd") else {
        return Some(Reached::usual(kind, defaults::ETCD)?.with(false, none));
    };
    let is_missing = !table.has_or_means("endpoints");
    let urls = table.texts("endpoints", |text| address(text, defaults::ETCD)).unwrap_or_default();
    let label = match urls.len() {
        0 if is_empty_list(table.peek("endpoints")) => Some("which members?"),
        0..=ENDPOINTS_MAX => None,
        _ => Some("too many"),
    };
    if let Some(label) = label {
        let title = format!("`endpoints` has one to {ENDPOINTS_MAX} URLs");
        let error = Diagnostic::error(title, table.span_of("endpoints"), label);
        table.problems.report(error.help(format!("write [\"{}\"]", defaults::ETCD)));
    }
    let (ca, certificate) = files(&mut table);
    let user = user(&mut table);
    let usual = At { value: defaults::ETCD.parse().ok()?, span: table.span.clone() };
    table.finish();
    let urls = if is_missing { vec![usual] } else { urls };
    let has_secret = user.is_some();
    let reached = Reached { kind, is_stated: true, urls, ca, certificate };
    (!reached.urls.is_empty()).then(|| reached.with(has_secret, Etcd { user, ..none }))
}

/// Reads the user's name and password; `None` also after a mistake, which is reported.
fn user(table: &mut Table<'_>) -> Option<(Text, Text)> {
    let spans = ["user", "password"].map(|key| table.key_span(key));
    if let [Some(span), None] | [None, Some(span)] = spans {
        let label = "the other is missing";
        let error = Diagnostic::error("one of `user` and `password` alone", span, label);
        table.problems.report_absence(error.help("write both, or neither"));
    }
    let name = table.text("user", |text| registry_name(text).map(|name| name.to_string()));
    let password = table.text("password", |text| Ok(text.to_owned()));
    Some((table.problems.text(name?), table.problems.text(password?)))
}

fn files(table: &mut Table<'_>) -> (Option<At<PathBuf>>, Option<RawCertificate>) {
    let ca = table.text("ca", paths::file_path);
    (ca, table.table("certificate").map(tls::certificate))
}

impl Reached {
    /// Returns what a table that is not there means.
    fn usual(kind: ServerSourceWord, url: &str) -> Option<Reached> {
        let url = At { value: url.parse().ok()?, span: 0..0 };
        Some(Reached { kind, is_stated: false, urls: vec![url], ca: None, certificate: None })
    }

    fn peer(&self) -> Option<HttpPeer> {
        let url = self.urls.first()?.value.clone();
        Some(HttpPeer { url, ca: None, certificate: None })
    }

    fn with<T>(self, has_secret: bool, settings: T) -> RawRegistry<T> {
        let Reached { kind, is_stated, urls, ca, certificate } = self;
        let route_listeners = Vec::new();
        RawRegistry {
            kind,
            is_stated,
            urls,
            ca,
            certificate,
            has_secret,
            route_listeners,
            settings,
        }
    }
}

/// Parses a token, which is sent in a header field.
fn token_text(text: &str) -> Result<String, Wrong> {
    if text.is_empty() {
        return Err(Wrong::new("the token is empty").help("leave `token` out to send none"));
    }
    http::field_value(text)
}

/// Parses the URL of an agent, or a member of a cluster.
fn address(text: &str, example: &str) -> Result<HttpUrl, Wrong> {
    let example = format!("write it as \"{example}\"");
    let url: HttpUrl = text
        .parse()
        .map_err(|error: model::UrlError| Wrong::new(error.to_string()).help(&*example))?;
    match url.target() {
        "/" | "" => Ok(url),
        _ => Err(Wrong::new("such an address has no path").help(example)),
    }
}
