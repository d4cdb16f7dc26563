//! Converts routes that services publish in Consul to tables, which are then checked as those of an included file:
//! defaults apply to them, and no rule is written twice.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use model::{HostPattern, PathMatch, PublishedRoute, ServerSource, Snapshot, TagRoutes};

use crate::diagnostic::quote;
use crate::listed::{listed_path, listed_path_exact, written_path};
use crate::raw::name;

/// Tables that are in no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// Where they come from, in place of a file's name.
    pub name: String,
    /// The tables.
    pub text: Arc<str>,
}

/// Returns the tables of published routes, one addition for each service, and the routes that `file`, the
/// configuration without them, does not admit, each with the reason in one line.
///
/// The file wins: a published host must neither be covered by a host that one of its routes names nor cover one, and
/// it keeps the names of its services. A service of the file that takes its servers from the publishing one is used
/// in its place.
pub fn additions<'r>(
    file: &Snapshot,
    routes: &'r [PublishedRoute],
) -> (Vec<Addition>, Vec<(&'r PublishedRoute, String)>) {
    let rules = Rules::of(file);
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let mut refused = Vec::new();
    for route in routes {
        let admitted = rules.service_of(route).and_then(|service| {
            Ok((service, table(route, service, rules.listeners_of(route)?.as_deref())?))
        });
        match admitted {
            Ok((service, table)) => {
                let text = texts.entry(&route.service).or_insert_with(|| {
                    if rules.services.contains(service) {
                        return String::new();
                    }
                    let (key, source) = (literal(service), literal(&route.service));
                    format!("[service.{key}]\ndiscover = {{ consul = {source} }}\n")
                });
                text.push_str(&table);
            }
            Err(why) => refused.push((route, why)),
        }
    }
    let additions = texts
        .into_iter()
        .map(|(service, text)| Addition { name: addition_of(service), text: text.into() });
    (additions.collect(), refused)
}

/// Returns the name of the addition that has the routes of a service.
pub fn addition_of(service: &str) -> String {
    format!("tags of {service} in Consul")
}

/// What the file says that matters for published routes.
struct Rules<'a> {
    /// `None`: no service may publish.
    settings: Option<&'a TagRoutes>,
    /// The hosts that routes of the file name.
    exact: HashSet<&'a str>,
    /// Without their `*.`.
    wildcards: HashSet<&'a str>,
    /// A host of the file for each domain that it is below.
    above: HashMap<&'a str, String>,
    /// The http listeners that published routes may be for.
    listeners: Vec<&'a str>,
    services: HashSet<&'a str>,
    /// The services of the file for each name in Consul, and whether they take all instances.
    by_source: HashMap<&'a str, Vec<(&'a str, bool)>>,
}

impl<'a> Rules<'a> {
    fn of(file: &'a Snapshot) -> Rules<'a> {
        let settings = file.registries.consul.as_ref().and_then(|consul| consul.routes.as_ref());
        let (mut exact, mut wildcards) = (HashSet::new(), HashSet::new());
        let mut above = HashMap::new();
        for host in file.routes.iter().filter_map(|route| route.matches.host.as_ref()) {
            let (HostPattern::Exact(name) | HostPattern::Wildcard(name)) = host;
            match host {
                HostPattern::Exact(name) => exact.insert(&**name),
                HostPattern::Wildcard(suffix) => wildcards.insert(&**suffix),
            };
            for (at, _) in name.match_indices('.') {
                above.entry(&name[at + 1..]).or_insert_with(|| host.to_string());
            }
        }
        let mut by_source: HashMap<&str, Vec<_>> = HashMap::new();
        for service in &file.services {
            if let Some(ServerSource::Consul { service: source, tag }) =
                service.discover.as_ref().map(|discover| &discover.source)
            {
                by_source.entry(source).or_default().push((&*service.name, tag.is_none()));
            }
        }
        let of_routes = settings.map_or(&[][..], |settings| &settings.listeners);
        let http = file.listeners.iter().filter(|one| one.protocol.has_requests());
        let names = http.map(|listener| &*listener.name);
        let may = |name: &&str| of_routes.is_empty() || of_routes.iter().any(|of| **of == **name);
        Rules {
            settings,
            exact,
            wildcards,
            above,
            listeners: names.filter(may).collect(),
            services: file.services.iter().map(|service| &*service.name).collect(),
            by_source,
        }
    }

    /// Returns the name of the service that a route forwards to, or why it is refused.
    fn service_of<'r>(&self, route: &'r PublishedRoute) -> Result<&'r str, String>
    where
        'a: 'r,
    {
        let formats = self.settings.map_or(&[][..], |settings| &settings.formats);
        if !formats.contains(&route.format) {
            return Err(format!("tags of the format {} are not read", route.format.as_str()));
        }
        if !self.settings.is_some_and(|settings| route.is_allowed(settings)) {
            let host = quote(&route.host.to_string());
            return Err(format!("host {host} is not among the allowed ones"));
        }
        if let Some(of_file) = self.host_of_file(&route.host) {
            return Err(format!("the file has rules for the host {of_file}"));
        }
        let service = &*route.service;
        if let Some(own) = self.by_source.get(service) {
            let of_all = || own.iter().filter(|(_, takes_all)| *takes_all).map(|(name, _)| *name);
            return match (own.as_slice(), of_all().collect::<Vec<_>>().as_slice()) {
                ([(one, _)], _) | (_, [one]) => Ok(one),
                (_, many) if many.contains(&service) => Ok(service),
                ([(one, _), (other, _), ..], _) => Err(format!(
                    "the services {one} and {other} of the file both take their servers from {service}"
                )),
                ([], _) => Err(format!("no service takes its servers from {service}")),
            };
        }
        if let Err(wrong) = name(service) {
            return Err(format!("the service's name: {}", wrong.why));
        }
        if self.services.contains(service) {
            return Err(format!("the file has a service {service} with other servers"));
        }
        Ok(service)
    }

    /// Returns the host in the file that covers `host`, or that it covers.
    fn host_of_file(&self, host: &HostPattern) -> Option<String> {
        let (HostPattern::Exact(name) | HostPattern::Wildcard(name)) = host;
        let is_exact = matches!(host, HostPattern::Exact(_));
        if is_exact && self.exact.contains(&**name) {
            return Some(name.clone());
        }
        // The domain itself is not one of its subdomains.
        let own = (!is_exact).then_some(&**name);
        let above = name.match_indices('.').map(|(at, _)| &name[at + 1..]);
        if let Some(suffix) = own.into_iter().chain(above).find(|it| self.wildcards.contains(it)) {
            return Some(format!("*.{suffix}"));
        }
        if is_exact { None } else { self.above.get(&**name).cloned() }
    }

    /// Returns the listeners that a route names in the file's table; `None`: it is for all.
    fn listeners_of(&self, route: &PublishedRoute) -> Result<Option<Vec<&str>>, String> {
        if let Some(unknown) = route.listeners.iter().find(|one| !self.listeners.contains(&&***one))
        {
            let (unknown, known) = (quote(unknown), self.listeners.join(", "));
            return Err(format!(
                "entry point {unknown} is not an http listener for published routes; there are: {known}"
            ));
        }
        let is_for_all = self.settings.is_none_or(|settings| settings.listeners.is_empty());
        Ok(match (route.listeners.as_slice(), is_for_all) {
            ([], true) => None,
            ([], false) => Some(self.listeners.clone()),
            (named, _) => Some(
                self.listeners
                    .iter()
                    .copied()
                    .filter(|one| named.iter().any(|it| **it == **one))
                    .collect(),
            ),
        })
    }
}

/// Returns the table of a route.
///
/// # Errors
/// It has a path that cannot be written.
fn table(
    route: &PublishedRoute,
    service: &str,
    listeners: Option<&[&str]>,
) -> Result<String, String> {
    let (key, path, is_exact) = match &route.path {
        PathMatch::Prefix(path) => ("path", path, false),
        PathMatch::Exact(path) => ("path_exact", path, true),
    };
    let written = written_path(path);
    let read = if is_exact { listed_path_exact(&written) } else { listed_path(&written) };
    if read? != route.path {
        return Err(format!("path {}: it cannot be written in a file", quote(path)));
    }
    let mut text = format!(
        "[[route]]\nhost = {}\n{key} = {}\nservice = {}\n",
        literal(&route.host.to_string()),
        literal(&written),
        literal(service),
    );
    // Writing to a string cannot fail.
    if let Some(listeners) = listeners {
        let names: Vec<_> = listeners.iter().map(|name| literal(name)).collect();
        let _ = writeln!(text, "listener = [{}]", names.join(", "));
    }
    if let Some(strip) = &route.strip {
        let rest = path.strip_prefix(&**strip).unwrap_or(path);
        let _ = writeln!(text, "rewrite = {{ prefix = {} }}", literal(&written_path(rest)));
    }
    Ok(text)
}

/// Returns a text as a string of TOML.
fn literal(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use model::{Action, PathChange, RouteTagFormat};

    use super::*;
    use crate::{Checked, check, check_with};

    const FILE: &str = r#"
        [[listener]]
        name = "public"
        address = "127.0.0.1:8080"

        [consul]
        routes = { hosts = ["*.apps.example"] }

        [[route]]
        host = "own.apps.example"
        respond = { status = 200 }

        [[route]]
        service = "tuned"

        [[route]]
        host = "*.of-file.apps.example"
        respond = { status = 404 }

        [service.one]
        discover = { consul = "two", tag = "x" }

        [service.three]
        discover = { consul = "two", tag = "y" }

        [service.tuned]
        discover = { consul = "web" }

        [[service.other.server]]
        address = "127.0.0.1:9000"

        [[route]]
        path = "/other"
        service = "other"

        [defaults.route]
        request_header = { set = { X-From = "tags" } }

        [defaults.service]
        timeouts = { response = "7s" }
    "#;

    fn route(service: &str, host: &str, path: &str, strip: Option<&str>) -> PublishedRoute {
        let host = match host.strip_prefix("*.") {
            Some(suffix) => HostPattern::Wildcard(suffix.to_owned()),
            None => HostPattern::Exact(host.to_owned()),
        };
        PublishedRoute {
            service: service.into(),
            host,
            path: PathMatch::Prefix(model::path::canonical(path.trim_end_matches('/'))),
            strip: strip.map(|strip| model::path::canonical(strip).into()),
            listeners: Vec::new(),
            format: RouteTagFormat::Weir,
            tag: "a tag".into(),
        }
    }

    fn file() -> Snapshot {
        check(FILE, "weir.toml", &())
            .unwrap_or_else(|report| panic!("{}", report.render(false)))
            .snapshot
    }

    /// The configuration with these routes, and why some are refused.
    fn with(routes: &[PublishedRoute]) -> (Snapshot, Vec<String>) {
        let file = file();
        let (additions, refused) = additions(&file, routes);
        let checked = check_with(FILE, "weir.toml", &(), &additions);
        let Checked { snapshot, .. } =
            checked.unwrap_or_else(|report| panic!("{}", report.render(false)));
        (snapshot, refused.into_iter().map(|(_, why)| why).collect())
    }

    #[test]
    fn published_routes_have_the_defaults_of_the_file_and_say_where_they_come_from() {
        let (snapshot, refused) = with(&[
            route("shop", "shop.apps.example", "/cart/v2", Some("/cart")),
            route("web", "*.web.apps.example", "/", None),
        ]);
        assert!(refused.is_empty(), "{refused:?}");
        let of = |host: &str| {
            let is_it = |route: &&Arc<model::Route>| {
                route.matches.host.as_ref().is_some_and(|known| known.to_string() == host)
            };
            snapshot.routes.iter().find(is_it).unwrap()
        };
        let (shop, web) = (of("shop.apps.example"), of("*.web.apps.example"));
        assert_eq!(shop.written_at.to_string(), "tags of shop in Consul");
        let Action::Forward(forward) = &shop.action else { panic!("{shop:?}") };
        assert_eq!(forward.fields.request.set.len(), 1, "{forward:?}");
        assert_eq!(forward.rewrite.path, Some(PathChange::Prefix("/v2".into())), "{forward:?}");
        let service = snapshot.service(forward.services().next().unwrap());
        assert_eq!((&*service.name, service.timeouts.response.as_secs()), ("shop", 7));
        let Action::Forward(forward) = &web.action else { panic!("{web:?}") };
        assert_eq!(&*snapshot.service(forward.services().next().unwrap()).name, "tuned");
        assert!(snapshot.services.iter().all(|service| &*service.name != "web"));
    }

    #[test]
    fn the_file_wins_and_texts_stay_texts() {
        let hostile = "x\"]\ndeny = 404\n[service.other]";
        let (snapshot, refused) = with(&[
            route("shop", "own.apps.example", "/deep/below", None),
            route("shop", "*.apps.example", "/", None),
            route("shop", "a.of-file.apps.example", "/", None),
            route("shop", "*.b.of-file.apps.example", "/", None),
            route("shop", "apps.example", "/", None),
            route("shop", "evil.example", "/", None),
            route("other", "a.apps.example", "/", None),
            route(hostile, "b.apps.example", "/", None),
            route("two", "two.apps.example", "/", None),
            route("shop", "c.apps.example", "/*", None),
            PublishedRoute {
                listeners: vec!["websecure".into()],
                ..route("shop", "d.apps.example", "/", None)
            },
            PublishedRoute {
                format: RouteTagFormat::Fabio,
                ..route("shop", "e.apps.example", "/", None)
            },
            route(
                "web",
                "of-file.apps.example",
                "/%5C%22%0A${HOME}$$?#/x",
                Some("/%5C%22%0A${HOME}$$?#"),
            ),
        ]);
        let starts = [
            "the file has rules for the host own.apps.example",
            "the file has rules for the host ",
            "the file has rules for the host *.of-file.apps.example",
            "the file has rules for the host *.of-file.apps.example",
            "host \"apps.example\" is not among the allowed ones",
            "host \"evil.example\" is not among the allowed ones",
            "the file has a service other with other servers",
            "the service's name: ",
            "the services one and three of the file both take their servers from two",
            "path \"/*\": ",
            "entry point \"websecure\" is not an http listener for published routes; there are: public",
            "tags of the format fabio are not read",
        ];
        assert_eq!(refused.len(), starts.len(), "{refused:?}");
        for (why, start) in refused.iter().zip(starts) {
            assert!(why.starts_with(start), "{why}");
        }
        assert_eq!(snapshot.routes.len(), file().routes.len() + 1);
        let published =
            snapshot.routes.iter().find(|route| route.written_at.to_string().contains("web"));
        let path = &published.unwrap().matches.path;
        assert_eq!(*path, PathMatch::Prefix("/\\\"%0A${HOME}$$?#/x".to_owned()));
    }

    #[test]
    fn an_addition_with_a_mistake_is_named() {
        let addition =
            |name: &str, text: &str| Addition { name: name.to_owned(), text: text.into() };
        let good = addition("good", "[[route]]\nhost = \"g.apps.example\"\nservice = \"tuned\"");
        let bad = addition("bad", "[[route]]\nhost = \"b.apps.example\"\nservice = \"nowhere\"");
        let Err(report) = check_with(FILE, "weir.toml", &(), &[good, bad]) else {
            panic!("no such service");
        };
        let at_fault = report.additions_at_fault();
        assert!(matches!(&*at_fault, [("bad", why)] if why.contains("nowhere")), "{at_fault:?}");
    }
}
