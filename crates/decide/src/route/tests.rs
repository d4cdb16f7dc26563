//! Tests the router against the Gateway API's table of precedence, against a linear search of the
//! sorted list, and against its promise that many routes cost no more than a few.

use std::sync::Arc;

use fastrand::Rng;
use model::{
    Action, CertificateNames, CertificatePart, Condition, ConditionOn, FieldMatch, Forward,
    HostPattern, ListenerId, ObjectAge, PathMatch, Rewrite, Route, RouteAge, RouteMatch,
    RouteRetries, RouteTimeouts, ServiceId, Split, SplitTarget, Test,
};

use super::index::counting::take_probes;
use super::{Arrival, OfHost, RequestView, Router, Unmet, split};

/// The parts of a request that rules match.
#[derive(Clone, Debug, Default)]
struct Request {
    method: String,
    host: String,
    path: String,
    query: Option<String>,
    fields: Vec<(String, String)>,
    cookies: Vec<(String, String)>,
}

impl RequestView for Request {
    fn method(&self) -> &str {
        &self.method
    }
    fn host(&self) -> &str {
        &self.host
    }
    fn path(&self) -> &str {
        &self.path
    }
    fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }
    fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_bytes())
    }
    fn field_values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.fields.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_bytes())
    }
    fn field_names(&self) -> impl Iterator<Item = &[u8]> {
        self.fields.iter().map(|(name, _)| name.as_bytes())
    }
    fn cookie_values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.cookies.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_bytes())
    }
}

/// A request accepted by this listener, from 192.0.2.1.
fn by(listener: ListenerId) -> Arrival<'static> {
    Arrival { listener, client: Some([192, 0, 2, 1].into()), certificate: None }
}

/// `GET api.example.com/a?x=1`, with fields as `name: value`.
fn request(line: &str, fields: &[&str]) -> Request {
    let (method, target) = line.split_once(' ').unwrap();
    let at = target.find(['/', '*']).unwrap();
    let (host, target) = target.split_at(at);
    let (path, query) = target.split_once('?').map_or((target, None), |(p, q)| (p, Some(q)));
    Request {
        method: method.into(),
        host: host.into(),
        path: path.into(),
        query: query.map(Into::into),
        fields: fields.iter().map(|f| pair(f, ": ")).collect(),
        cookies: Vec::new(),
    }
}

fn pair(text: &str, between: &str) -> (String, String) {
    let (name, value) = text.split_once(between).unwrap();
    (name.to_owned(), value.to_owned())
}

/// Parses a rule in short form: `*.example.com =/exact GET x-a:1 ?q=1 @0`; a path without `=` is a
/// prefix, `@` names a listener, `+name` requires a field and `-name` forbids one, `#` is the order of equally
/// specific ones, `!` the priority, everything is optional.
fn rule(text: &str) -> RouteMatch {
    let mut rule = RouteMatch::any();
    let condition = |text: &str, between| {
        let (name, value) = pair(text, between);
        FieldMatch { name, value: value.into() }
    };
    for word in text.split_whitespace() {
        if let Some(path) = word.strip_prefix('=') {
            rule.path = PathMatch::Exact(path.into());
        } else if word.starts_with('/') {
            rule.path = PathMatch::Prefix(word.trim_end_matches('/').into());
        } else if let Some(query) = word.strip_prefix('?') {
            rule.query.push(condition(query, "="));
        } else if let Some(listener) = word.strip_prefix('@') {
            rule.listeners.push(ListenerId(listener.parse().unwrap()));
        } else if let Some(name) = word.strip_prefix(['+', '-']) {
            let (on, test) = (ConditionOn::Field(name.into()), Test::Present);
            rule.conditions.push(Condition { on, test, negated: word.starts_with('-') });
        } else if let Some(priority) = word.strip_prefix('!') {
            rule.priority = priority.parse().unwrap();
        } else if let Some(order) = word.strip_prefix('#') {
            rule.age = Some(age(order.parse().unwrap()));
        } else if word.contains(':') {
            rule.fields.push(condition(word, ":"));
        } else if let Some(suffix) = word.strip_prefix("*.") {
            rule.host = Some(HostPattern::Wildcard(suffix.into()));
        } else if word.contains('.') {
            rule.host = Some(HostPattern::Exact(word.into()));
        } else {
            rule.method = Some(word.into());
        }
    }
    rule.fields.sort();
    rule.query.sort();
    rule.conditions.sort();
    rule
}

fn age(position: u32) -> RouteAge {
    let object = ObjectAge { created: None, namespace: "n".into(), name: "r".into() };
    RouteAge { rank: 0, object: Arc::new(object), position }
}

fn route(matches: RouteMatch) -> Route {
    Route {
        name: Arc::from("r"),
        matches,
        action: Action::Deny(model::Denial::configured(403)),
        filters: Vec::new(),
        maintenance: None,
        error_pages: Vec::new(),
        written_at: model::WrittenAt::default(),
    }
}

/// Searches a router over `rules`, in the order given and in reverse: the order must not matter.
fn found<'r>(rules: &[&'r str], request: &Request) -> Option<&'r str> {
    let forward: Vec<Route> = rules.iter().map(|text| route(rule(text))).collect();
    let mut backward = forward.clone();
    backward.reverse();
    let one = Router::new(&forward).find(request, &by(ListenerId(0)));
    let other =
        Router::new(&backward).find(request, &by(ListenerId(0))).map(|at| rules.len() - 1 - at);
    assert_eq!(one, other, "the order of the file matters: {rules:?} {request:?}");
    one.map(|at| rules[at])
}

#[test]
fn precedence_is_the_gateway_apis() {
    // In each line the first rule wins over all others, for a request that all of them match.
    let cases: &[(&str, &[&str], &[&str])] = &[
        // Priority before everything else.
        (
            "GET a.b.example.com/x",
            &[],
            &["/x !2", "*.example.com !1", "!1", "a.b.example.com =/x GET"],
        ),
        // Host before everything else of the same priority.
        ("GET a.b.example.com/x", &[], &["a.b.example.com", "*.b.example.com =/x GET", "=/x GET"]),
        ("GET a.b.example.com/x", &[], &["*.b.example.com", "*.example.com =/x", "*.com", "/x"]),
        // Exact path before any prefix, a longer prefix before a shorter, before a method.
        ("GET h.com/a/b", &[], &["=/a/b", "/a/b GET", "/a", "/"]),
        ("GET h.com/a/b", &["x: 1"], &["/a/b", "/a GET x:1", "GET"]),
        // A method before fields, fields before parameters.
        ("GET h.com/?q=1", &["x: 1", "y: 2"], &["GET", "x:1 y:2 ?q=1"]),
        ("GET h.com/?q=1&r=2", &["x: 1", "y: 2"], &["x:1 y:2", "x:1 ?q=1 ?r=2"]),
        ("GET h.com/?q=1&r=2", &["x: 1"], &["x:1 ?q=1 ?r=2", "x:1 ?q=1", "x:1", "?q=1 ?r=2"]),
        // A named listener before all listeners, when all else is equal.
        ("GET h.com/a", &[], &["/a @0", "/a", "@0"]),
        // Ties by canonical form.
        ("GET h.com/", &["a: 1", "b: 1"], &["a:1", "b:1"]),
    ];
    for (line, fields, rules) in cases {
        let request = request(line, fields);
        for rest in 0..rules.len() {
            assert_eq!(found(&rules[rest..], &request), Some(rules[rest]), "{line}");
        }
    }
}

#[test]
fn each_condition_holds_or_does_not() {
    let cases = [
        ("api.example.com", "GET API.Example.COM/", true),
        ("api.example.com", "GET api.example.com./", true),
        ("api.example.com", "GET x.api.example.com/", false),
        ("api.example.com", "GET example.com/", false),
        ("api.example.com", "GET /", false),
        ("*.example.com", "GET a.example.com/", true),
        ("*.example.com", "GET a.b.EXAMPLE.com/", true),
        ("*.example.com", "GET example.com/", false),
        ("*.example.com", "GET aexample.com/", false),
        ("*.example.com", "GET a.example.org/", false),
        ("/a", "GET h/a", true),
        ("/a", "GET h/a/", true),
        ("/a", "GET h/a/b", true),
        ("/a", "GET h/ab", false),
        ("/a", "GET h/", false),
        ("/a", "GET h/A", false),
        ("/a/b", "GET h/a//b", false),
        ("/", "OPTIONS h*", true),
        ("/a", "OPTIONS h*", false),
        ("=/a", "GET h/a", true),
        ("=/a", "GET h/a?x=1", true),
        ("=/a", "GET h/a/", false),
        ("=/a/", "GET h/a/", true),
        ("=/", "GET h/", true),
        ("=/", "GET h/a", false),
        ("GET", "get h/", false),
        ("?q=1", "GET h/?q=1", true),
        ("?q=1", "GET h/?p=0&q=1", true),
        ("?q=1", "GET h/?q=2&q=1", false),
        ("?q=1", "GET h/?%71=%31", true),
        ("?q=1", "GET h/?Q=1", false),
        ("?q=1", "GET h/", false),
        ("@1", "GET h/", false),
        ("@1 @0", "GET h/", true),
        // Encodings of the same path, and of others.
        ("/admin", "GET h/%61dmin/x", true),
        ("=/admin", "GET h/%61%64min", true),
        ("/admin/x", "GET h/admin%2Fx", false),
        ("/%61dmin", "GET h/admin", true),
        ("/caf\u{e9}", "GET h/caf%c3%a9/x", true),
    ];
    for (text, line, expected) in cases {
        assert_eq!(found(&[text], &request(line, &[])).is_some(), expected, "{text} | {line}");
    }
    for (text, fields, expected) in [
        ("x:1", &["x: 1"][..], true),
        ("x:1", &["x: 2", "x: 1"], false),
        ("x:1", &["x: 1 "], false),
        ("x:1", &[], false),
        ("x:1 y:2", &["y: 2", "x: 1"], true),
        ("x:1 y:2", &["y: 2"], false),
    ] {
        assert_eq!(found(&[text], &request("GET h/", fields)).is_some(), expected, "{text}");
    }
}

#[test]
fn a_path_with_dot_segments_reaches_no_route() {
    let rules = ["/public", "/admin", "/", "=/public/../admin"];
    for path in ["/public/../admin", "/public/%2e%2e/admin", "/public/..%2Fadmin", "/./public"] {
        assert_eq!(found(&rules, &request(&format!("GET h{path}"), &[])), None, "{path}");
    }
    assert_eq!(found(&rules, &request("GET h/public/..admin/.x", &[])), Some("/public"));
}

#[test]
fn a_less_specific_host_answers_what_a_more_specific_one_has_no_rule_for() {
    let rules = ["a.example.com /a", "*.example.com /b", "*.com /c", "/d", "a.example.com =/a/x"];
    for (path, expected) in
        [("/a/y", 0), ("/b", 1), ("/c", 2), ("/d", 3), ("/a/x", 4)].map(|(p, at)| (p, rules[at]))
    {
        let request = request(&format!("GET a.example.com{path}"), &[]);
        assert_eq!(found(&rules, &request), Some(expected), "{path}");
    }
    assert_eq!(found(&rules, &request("GET a.example.com/e", &[])), None);
}

/// Reference implementation: does this rule match? Written for clarity, on strings.
fn matches(rule: &RouteMatch, request: &Request, listener: ListenerId) -> bool {
    let host = request.host.to_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    let path = model::path::canonical(&request.path);
    let first = |pairs: &[(String, String)], wanted: &FieldMatch| {
        pairs.iter().find(|(n, _)| *n == wanted.name).is_some_and(|(_, v)| **v == *wanted.value)
    };
    let parameters: Vec<(String, String)> = request
        .query
        .iter()
        .flat_map(|query| query.split('&'))
        .map(|p| p.split_once('=').map_or((p.into(), String::new()), |_| pair(p, "=")))
        .collect();
    (rule.listeners.is_empty() || rule.listeners.contains(&listener))
        && match &rule.host {
            None => true,
            Some(HostPattern::Exact(name)) => host == *name,
            Some(HostPattern::Wildcard(suffix)) => host.ends_with(&format!(".{suffix}")),
        }
        && match &rule.path {
            PathMatch::Exact(exact) => path == *exact,
            PathMatch::Prefix(prefix) => {
                prefix.is_empty() || path == *prefix || path.starts_with(&format!("{prefix}/"))
            }
        }
        && rule.method.as_ref().is_none_or(|method| *method == request.method)
        && rule.fields.iter().all(|wanted| first(&request.fields, wanted))
        && rule.query.iter().all(|wanted| first(&parameters, wanted))
        && rule.conditions.iter().all(|condition| {
            let ConditionOn::Field(name) = &condition.on else { panic!("{condition}") };
            request.fields.iter().any(|(n, _)| n == name) != condition.negated
        })
}

fn some<'a>(rng: &mut Rng, words: &[&'a str]) -> &'a str {
    words[rng.usize(..words.len())]
}

const HOSTS: [&str; 7] = ["a.x", "b.a.x", "c.b.a.x", "x.y", "b.x", "a.b.x", "x"];
const PATHS: [&str; 9] = ["/", "/a", "/a/", "/a/b", "/a/b/c", "/b", "/ab", "/a/a/b", "/a//b"];

fn random_rule(rng: &mut Rng) -> RouteMatch {
    let mut text = String::new();
    let mut add = |word: String| {
        text.push(' ');
        text.push_str(&word);
    };
    match rng.u8(0..4) {
        0 => add(format!("*.{}", some(rng, &HOSTS))),
        1 => add(some(rng, &HOSTS[..6]).to_owned()),
        _ => (),
    }
    match rng.u8(0..3) {
        0 => add(format!("={}", some(rng, &PATHS))),
        1 => add(some(rng, &PATHS).to_owned()),
        _ => (),
    }
    if rng.u8(0..4) == 0 {
        add(some(rng, &["GET", "PUT"]).to_owned());
    }
    for name in ["f", "g"] {
        if rng.u8(0..4) == 0 {
            add(format!("{name}:{}", rng.u8(0..12)));
        }
    }
    for name in ["p", "q"] {
        if rng.u8(0..6) == 0 {
            add(format!("?{name}={}", rng.u8(0..2)));
        }
    }
    if rng.u8(0..5) == 0 {
        add(format!("@{}", rng.u8(0..2)));
    }
    if rng.u8(0..5) == 0 {
        add(format!("{}{}", some(rng, &["+", "-"]), some(rng, &["f", "g"])));
    }
    if rng.bool() {
        add(format!("#{}", rng.u8(0..4)));
    }
    if rng.u8(0..3) == 0 {
        add(format!("!{}", rng.u8(0..3)));
    }
    rule(&text)
}

fn random_request(rng: &mut Rng) -> Request {
    let mut request = Request {
        method: some(rng, &["GET", "PUT", "POST"]).to_owned(),
        host: some(rng, &HOSTS).to_owned(),
        path: some(rng, &PATHS).to_owned(),
        ..Request::default()
    };
    if rng.u8(0..4) == 0 {
        request.host = some(rng, &["A.X", "b.A.x.", "", "z.b.a.x", "unknown.x"]).to_owned();
    }
    if rng.u8(0..4) == 0 {
        request.path = some(rng, &["*", "/%61", "/%61/b/", "/a%2Fb", "/z/a", "/a/b/d"]).to_owned();
    }
    for name in ["f", "g", "f"] {
        if rng.bool() {
            request.fields.push((name.to_owned(), rng.u8(0..12).to_string()));
        }
    }
    if rng.bool() {
        let pairs: Vec<String> = (0..rng.u8(0..4))
            .map(|_| format!("{}={}", some(rng, &["p", "q"]), rng.u8(0..2)))
            .collect();
        request.query = Some(pairs.join("&"));
    }
    request
}

#[test]
fn the_router_finds_what_a_reader_of_the_sorted_list_finds() {
    let seed = Rng::new().u64(..);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let (mut matched, mut searched) = (0_u32, 0_u32);
    for _ in 0..150 {
        let mut rules: Vec<RouteMatch> =
            (0..rng.usize(1..200)).map(|_| random_rule(&mut rng)).collect();
        rules.sort_by(RouteMatch::precedence);
        rules.dedup();
        let in_order = rules.clone();
        rng.shuffle(&mut rules);
        let routes: Vec<Route> = rules.iter().cloned().map(route).collect();
        let router = Router::new(&routes);
        for _ in 0..100 {
            let request = random_request(&mut rng);
            let listener = ListenerId(rng.u32(0..3));
            let found = router.find(&request, &by(listener)).map(|at| &rules[at]);
            let expected = in_order.iter().find(|rule| matches(rule, &request, listener));
            assert_eq!(found, expected, "seed {seed}: {request:?} {listener:?}");
            matched += u32::from(expected.is_some());
            searched += 1;
        }
    }
    // The test is only meaningful if both outcomes are frequent.
    assert!(matched > searched / 4 && matched < searched, "{matched} of {searched}");
}

#[test]
fn a_router_after_another_one_is_like_a_new_one() {
    let seed = Rng::new().u64(..);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    for _ in 0..20 {
        let mut routes: Vec<Arc<Route>> = Vec::new();
        let mut router = Router::new(&routes);
        for _ in 0..20 {
            let before = routes.clone();
            for _ in 0..rng.usize(0..10) {
                let rule = random_rule(&mut rng);
                let is_known = |one: &Arc<Route>| one.matches.precedence(&rule).is_eq();
                if !routes.iter().any(is_known) {
                    routes.push(Arc::new(route(rule)));
                }
            }
            for _ in 0..rng.usize(0..5).min(routes.len()) {
                routes.swap_remove(rng.usize(..routes.len()));
            }
            if rng.bool() {
                routes.sort_by(|one, other| one.matches.precedence(&other.matches));
            } else {
                rng.shuffle(&mut routes);
            }
            router = Router::after(&router, &before, &routes);
            let new = Router::new(&routes);
            for _ in 0..50 {
                let (request, by) = (random_request(&mut rng), by(ListenerId(rng.u32(0..3))));
                assert_eq!(router.find(&request, &by), new.find(&request, &by), "seed {seed}");
            }
        }
    }
}

#[test]
fn a_router_shares_what_has_not_changed() {
    let rules = |names: &[&str]| -> Vec<Arc<Route>> {
        names.iter().map(|name| Arc::new(route(rule(name)))).collect()
    };
    let before = rules(&["a.com /x", "a.com /y", "b.com", "*.c.com", "c.com", "/z"]);
    let router = Router::new(&before);
    let shared = |routes: &[Arc<Route>]| {
        let after = Router::after(&router, &before, routes);
        let known =
            |one: &OfHost| router.of_hosts.iter().any(|old| Arc::ptr_eq(&old.paths, &one.paths));
        (after.of_hosts.iter().filter(|one| known(one)).count(), after.of_hosts.len())
    };
    assert_eq!(shared(&before), (5, 5));
    let mut changed = before.clone();
    changed.insert(0, rules(&["0.com"])[0].clone());
    assert_eq!(shared(&changed), (5, 6));
    changed.remove(3);
    assert_eq!(shared(&changed), (4, 5));
    changed.push(rules(&["c.com /q"])[0].clone());
    assert_eq!(shared(&changed), (3, 5));
    changed.swap(1, 2);
    assert_eq!(shared(&changed), (2, 5), "in another order, they are sorted again");
}

/// What the explanation says about a rule; empty: it matches.
fn unmet(rule: &RouteMatch, request: &Request, listener: ListenerId) -> String {
    let first = Unmet::first(rule, request, &by(listener));
    first.map_or_else(String::new, |(_, unmet)| unmet.words(request))
}

#[test]
fn the_first_condition_that_does_not_hold_is_named() {
    let cases: &[(&str, &str, &[&str], &str)] = &[
        ("", "GET h.com/x", &[], ""),
        ("h.com /a GET", "GET h.com/a/b", &[], ""),
        ("@1 h.com", "GET other.com/", &[], "it holds on other listeners only"),
        ("*.h.com /a", "GET h.com/x", &[], "host h.com is not *.h.com"),
        ("h.com", "GET /", &[], "the request has no host, and the route is for h.com"),
        ("h.com /a POST", "GET h.com/ab", &[], "path /ab is not /a or below it"),
        ("=/a", "GET h.com/a/", &[], "path /a/ is not exactly /a"),
        ("/a POST x:1", "GET h.com/a", &[], "method GET is not POST"),
        ("x:1 ?q=1", "GET h.com/", &[], "header x is absent"),
        ("x:1 ?q=1", "GET h.com/", &["x: 2"], "header x is not \"1\""),
        ("x:1 y:1", "GET h.com/", &["x: 1"], "header y is absent"),
        ("x:1 ?q=1", "GET h.com/?q=2", &["x: 1"], "query parameter q is absent or not \"1\""),
        ("+x", "GET h.com/", &[], "header x is absent"),
        ("-x", "GET h.com/", &["x: 1"], "this does not hold: not header x present"),
        ("/a", "GET h.com/a/../a", &[], "a path with dot segments matches no route"),
    ];
    for (rule_text, line, fields, words) in cases {
        let request = request(line, fields);
        assert_eq!(unmet(&rule(rule_text), &request, ListenerId(0)), *words, "{rule_text}: {line}");
    }
    // What a request repeats is bounded, and cannot change a terminal.
    let hostile = request(&format!("GET h.com/\u{1b}{}", "x".repeat(9_000)), &[]);
    let said = unmet(&rule("/a"), &hostile, ListenerId(0));
    assert!(said.len() < 300 && !said.contains('\u{1b}'), "{said}");
}

#[test]
fn the_explanation_agrees_with_the_router() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    for _ in 0..300 {
        let mut rules: Vec<RouteMatch> = (0..12).map(|_| random_rule(&mut rng)).collect();
        rules.sort_by(RouteMatch::precedence);
        rules.dedup();
        let routes: Vec<Route> = rules.iter().cloned().map(route).collect();
        let router = Router::new(&routes);
        for _ in 0..10 {
            let (request, listener) = (random_request(&mut rng), ListenerId(rng.u32(..2)));
            let first = rules.iter().position(|rule| unmet(rule, &request, listener).is_empty());
            assert_eq!(router.find(&request, &by(listener)), first, "seed {seed}: {request:?}");
        }
    }
}

/// `count` routes over many hosts, wildcards, prefixes, exact paths and header values.
fn many_routes(count: usize) -> Vec<Route> {
    (0..count)
        .map(|i| {
            let n = i / 5;
            route(rule(&match i % 5 {
                0 => format!("host{n}.example.com /app"),
                1 => format!("*.zone{n}.example.com"),
                2 => format!("api.example.com /v1/kind{n}"),
                3 => format!("api.example.com =/v1/list/{n}"),
                _ => format!("api.example.com /v1/tenant x-tenant:t{n}"),
            }))
        })
        .collect()
}

#[test]
fn a_thousand_routes_cost_what_ten_cost() {
    let requests = [
        request("GET host1.example.com/app/x", &[]),
        request("GET a.b.zone1.example.com/x", &[]),
        request("GET api.example.com/v1/kind1/a/b/c", &[]),
        request("GET api.example.com/v1/list/1", &[]),
        request("GET api.example.com/v1/tenant/x", &["x-tenant: t1"]),
        request("GET unknown.example.org/nowhere", &[]),
        request("GET api.example.com/nowhere/at/all", &["x-tenant: t99999"]),
    ];
    let cost = |router: &Router| -> Vec<u32> {
        requests
            .iter()
            .map(|request| {
                take_probes();
                let _ = router.find(request, &by(ListenerId(0)));
                take_probes()
            })
            .collect()
    };
    let ten = cost(&Router::new(&many_routes(10)));
    let thousand = cost(&Router::new(&many_routes(1_000)));
    let hundred_thousand = cost(&Router::new(&many_routes(100_000)));
    println!("probes: 10 routes {ten:?}, 1,000 {thousand:?}, 100,000 {hundred_thousand:?}");
    for (request, (few, many)) in
        requests.iter().zip(ten.iter().zip(thousand.iter().zip(&hundred_thousand)))
    {
        // A label or a segment is one step, and a step examines one slot or, if hashes collide in a
        // half-empty table, a few.
        let labels = request.host.split('.').count();
        let segments = request.path.split('/').count();
        let steps = (labels + segments + 1) as u32;
        for (routes, probes) in [(10, few), (1_000, many.0), (100_000, many.1)] {
            assert!(*probes <= 2 * steps, "{routes} routes: {probes} probes for {request:?}");
        }
    }
}

#[test]
fn a_hostile_request_costs_no_more_than_the_rules_are_deep() {
    let router = Router::new(&many_routes(1_000));
    let mut deep = request("GET api.example.com/v1/kind1", &[]);
    deep.path.push_str(&"/x".repeat(4_000));
    deep.host = format!("{}api.example.com", "a.".repeat(4_000));
    take_probes();
    assert_eq!(router.find(&deep, &by(ListenerId(0))), None);
    let probes = take_probes();
    assert!(probes <= 16, "{probes} probes");
}

#[test]
fn routes_for_fields_that_a_request_lacks_cost_it_nothing() {
    let cost = |routes: u32, request: &Request| {
        let by_name = (0..routes).map(|n| route(rule(&format!("/p x-{n}:1"))));
        let by_listener = (0..routes).map(|n| route(rule(&format!("/p x-tenant:{n} @{n}"))));
        let rest = ["/p", "/p ?q=1", "/p PUT"].map(|text| route(rule(text)));
        let router = Router::new(&by_name.chain(by_listener).chain(rest).collect::<Vec<_>>());
        take_probes();
        let found = router.find(request, &by(ListenerId(0)));
        (take_probes(), found)
    };
    let plain = request("GET a.example.com/p", &["accept: x", "cookie: y"]);
    let (few, many) = (cost(10, &plain), cost(10_000, &plain));
    println!("{} probes with 10 routes of each kind, {} with 10,000", few.0, many.0);
    assert_eq!((few.1, many.1), (Some(20), Some(20_000)), "the route that asks for nothing");
    assert!(many.0 <= few.0 + 4, "{} probes with 10 routes, {} with 10,000", few.0, many.0);
    // A request with one of the fields finds its route just as fast.
    let with = request("GET a.example.com/p", &["accept: x", "x-77: 1"]);
    let (probes, found) = cost(10_000, &with);
    assert_eq!(found, Some(77));
    assert!(probes <= few.0 + 8, "{probes} probes");
}

#[test]
fn a_head_from_the_wire_is_routed() {
    use wire::http1::{HeadLimits, Parsed, RequestHead, parse_request};
    let limits = HeadLimits { head_max_bytes: 8_192, target_max_bytes: 4_096, fields_max: 64 };
    let routes = ["api.example.com /v1 GET x-tenant:blue ?q=a%b", "/"].map(|r| route(rule(r)));
    let router = Router::new(&routes);
    for (bytes, expected) in [
        ("GET /v1/x?q=a%25b HTTP/1.1\r\nhost: API.example.com:8080\r\nX-Tenant: blue\r\n\r\n", 0),
        ("GET http://api.example.com/v1?q=a%25b HTTP/1.1\r\nhost: x\r\nx-tenant:blue\r\n\r\n", 0),
        ("GET /v1 HTTP/1.1\r\nhost: api.example.com\r\nx-tenant: blue\r\n\r\n", 1),
        ("OPTIONS * HTTP/1.1\r\nhost: api.example.com\r\n\r\n", 1),
        ("GET / HTTP/1.0\r\n\r\n", 1),
    ] {
        let mut head = RequestHead::default();
        let parsed = parse_request(bytes.as_bytes(), &limits, &mut head);
        assert!(matches!(parsed, Ok(Parsed::Complete { .. })), "{bytes}");
        assert_eq!(router.find(&head, &by(ListenerId(0))), Some(expected), "{bytes}");
    }
}

#[test]
fn a_split_draws_by_weight() {
    let branch = |service, weight| Split { weight, ..Split::only(ServiceId(service)) };
    let forward = |to| Forward {
        to,
        rewrite: Rewrite::default(),
        mirrors: Vec::new(),
        filters: Vec::new(),
        fields: model::MessageChanges::default(),
        timeouts: RouteTimeouts::default(),
        retries: RouteRetries::default(),
        affinity: None,
    };
    let mut rng = Rng::with_seed(7);
    assert_eq!(split(&forward(vec![branch(3, 0)]), &mut rng), &branch(3, 0));
    let canary = forward(vec![branch(0, 90), branch(1, 0), branch(2, 10)]);
    let mut drawn = [0_u32; 3];
    for _ in 0..100_000 {
        let SplitTarget::Service(id) = split(&canary, &mut rng).to else { unreachable!() };
        drawn[id.0 as usize] += 1;
    }
    assert_eq!(drawn[1], 0, "weight 0 takes nothing");
    assert!((89_500..90_500).contains(&drawn[0]), "{drawn:?}");
}

#[test]
fn other_conditions_hold_for_any_value_and_negated_ones_for_none() {
    let mut names = CertificateNames::default();
    names.set(CertificatePart::Dns, Some(vec!["a.example.com".into(), "b.example.com".into()]));
    names.set(CertificatePart::Uri, Some(Vec::new()));
    let mut request = request("GET x/%61/b?n=1&n=2&m=%31", &["x-a: one", "x-a: two"]);
    request.cookies = vec![("c".into(), "1".into()), ("c".into(), "2".into())];
    let text = |text: &str| Test::Exact(text.into());
    let pattern = |text: &str| Test::Pattern(model::Pattern::parse(text).unwrap());
    let networks =
        |texts: &[&str]| Test::Among(Arc::new(texts.iter().map(|t| t.parse().unwrap()).collect()));
    let field = |name: &str| ConditionOn::Field(name.into());
    let query = |name: &str| ConditionOn::Query(name.into());
    let cookie = |name: &str| ConditionOn::Cookie(name.into());
    let dns = ConditionOn::Certificate(CertificatePart::Dns);
    for (on, test, expected) in [
        (field("x-a"), text("two"), true),
        (field("x-a"), text("three"), false),
        (field("x-a"), pattern("^t"), true),
        (field("x-b"), Test::Present, false),
        (query("n"), text("2"), true),
        (query("m"), pattern("^1$"), true),
        (query("n"), pattern("3"), false),
        (query("n"), Test::Present, true),
        (cookie("c"), text("2"), true),
        (cookie("d"), Test::Present, false),
        (ConditionOn::Path, pattern("^/a/b$"), true),
        (ConditionOn::Path, pattern("%61"), false),
        (ConditionOn::Client, networks(&["192.0.2.0/24"]), true),
        (ConditionOn::Client, networks(&["10.0.0.0/8", "2001:db8::/32"]), false),
        (dns.clone(), text("b.example.com"), true),
        (dns.clone(), pattern("^c"), false),
        (ConditionOn::Certificate(CertificatePart::Uri), Test::Present, false),
    ] {
        for negated in [false, true] {
            let condition = Condition { on: on.clone(), test: test.clone(), negated };
            let conditions = vec![condition];
            let router = Router::new(&[route(RouteMatch { conditions, ..rule("") })]);
            let arrival = Arrival { certificate: Some(&names), ..by(ListenerId(0)) };
            let found = router.find(&request, &arrival).is_some();
            assert_eq!(found, expected != negated, "{on:?} {test:?} {negated}");
        }
    }
    // Without a certificate, nothing is in it.
    let is_met = |on: &ConditionOn, test: &Test, negated, arrival: &Arrival<'_>| {
        let condition = Condition { on: on.clone(), test: test.clone(), negated };
        let matches = RouteMatch { conditions: vec![condition], ..rule("") };
        Router::new(&[route(matches)]).find(&request, arrival).is_some()
    };
    let without = by(ListenerId(0));
    assert_eq!([false, true].map(|not| is_met(&dns, &Test::Present, not, &without)), [false, true]);
    // What is unknown meets no condition, in either direction.
    let unreadable = CertificateNames::unreadable();
    let unknown = Arrival { client: None, certificate: Some(&unreadable), ..without };
    for (on, test) in [
        (&dns, Test::Present),
        (&dns, text("a.example.com")),
        (&ConditionOn::Client, networks(&["0.0.0.0/0", "::/0"])),
        (&ConditionOn::Client, networks(&[])),
    ] {
        for negated in [false, true] {
            assert!(!is_met(on, &test, negated, &unknown), "{on:?} {test:?} {negated}");
        }
    }
}
