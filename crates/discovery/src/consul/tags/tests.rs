//! Tags and the routes that they publish: each case of `cases.txt`, the bounds, and random tags.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use model::{HostPattern, PathMatch, PublishedRoute, RouteTagFormat};

use super::*;
use crate::REFUSED_MAX;

fn allowed() -> Vec<HostPattern> {
    vec![
        HostPattern::Exact("web.example".to_owned()),
        HostPattern::Exact("10.0.0.1".to_owned()),
        HostPattern::Wildcard("apps.example".to_owned()),
    ]
}

fn read(services: &BTreeMap<&str, Vec<String>>, formats: &[RouteTagFormat]) -> Published {
    let body = serde_json::to_vec(services).expect("JSON");
    published(&body, formats, &allowed(), &[]).expect("an answer of Consul")
}

fn of_web(tags: Vec<String>) -> Published {
    read(&BTreeMap::from([("web", tags)]), RouteTagFormat::ALL)
}

/// Returns a route as `cases.txt` has it.
fn shown(route: &PublishedRoute) -> String {
    let mut text = match &*route.service {
        "web" => String::new(),
        other => format!("{other}: "),
    };
    let (path, exact) = match &route.path {
        PathMatch::Prefix(path) if path.is_empty() => ("/", ""),
        PathMatch::Prefix(path) => (path.as_str(), ""),
        PathMatch::Exact(path) => (path.as_str(), " exact"),
    };
    let _ = write!(text, "{}{path}{exact}", route.host);
    if let Some(strip) = &route.strip {
        let _ = write!(text, " strip {}", &**strip);
    }
    for listener in &route.listeners {
        let _ = write!(text, " on {}", &**listener);
    }
    text
}

fn outcome(published: &Published) -> Vec<String> {
    let routes = published.routes.iter().map(shown);
    let refused = published.refused.examples.iter().map(|one| format!("refused: {}", one.why));
    routes.chain(refused).collect()
}

/// Publishes the tags of each case in `cases.txt`, and compares the outcome.
#[test]
fn tags_and_their_routes() {
    let text = include_str!("cases.txt");
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let cases = lines.split(|line| line.is_empty()).filter(|case| !case.is_empty());
    let (mut count, mut wrong) = (0, String::new());
    for case in cases {
        let (wanted, given): (Vec<&str>, Vec<&str>) =
            case.iter().partition(|line| line.starts_with(' '));
        let wanted: Vec<_> = wanted.iter().map(|line| line.trim()).collect();
        let found = outcome(&perform(&given));
        let found =
            if wanted == ["none"] && found.is_empty() { vec!["none".into()] } else { found };
        if found != wanted {
            let _ = writeln!(wrong, "{}\n  {}\n", given.join("\n"), found.join("\n  "));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "not as expected:\n{wrong}");
    assert!(count >= 60, "{count} cases");
}

fn perform(lines: &[&str]) -> Published {
    let mut services: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let (mut name, mut settles) = ("web", false);
    let mut formats = RouteTagFormat::ALL.to_vec();
    let mut before = Vec::new();
    for line in lines {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("formats", words) => {
                let words = words.split_whitespace();
                formats = words.map(|word| word.parse().expect("a format")).collect();
            }
            ("settle", "") => settles = true,
            ("before", route) => {
                let (service, place) = route.split_once(' ').expect("a service and a place");
                let tags = vec![format!("weir.route={place}")];
                before.extend(read(&BTreeMap::from([(service, tags)]), &formats).routes);
            }
            _ if line.starts_with('[') => name = line.trim_matches(['[', ']']),
            _ => {
                let tag = if line.starts_with('"') {
                    serde_json::from_str(line).expect("a tag in JSON")
                } else {
                    (*line).to_owned()
                };
                services.entry(name).or_default().push(tag);
            }
        }
    }
    let published = read(&services, &formats);
    // The order of tags does not matter.
    for tags in services.values_mut() {
        tags.reverse();
    }
    assert_eq!(read(&services, &formats), published, "{lines:?}");
    if settles { settle(&before, published) } else { published }
}

#[test]
fn a_body_that_is_not_of_the_format_is_refused_in_one_line() {
    for body in [
        "",
        "[]",
        "null",
        "{",
        "{}x",
        r#"{"web":{}}"#,
        r#"{"web":"weir.route=web.example"}"#,
        r#"{"web":[1]}"#,
        r#"{"web":[["weir.route=web.example"]]}"#,
        "{\"web\":[\"\u{1b}\"]}",
        "{\"web\":[\"weir.route=web.example\"]",
    ] {
        let why = published(body.as_bytes(), RouteTagFormat::ALL, &allowed(), &[]).unwrap_err();
        assert!(!why.is_empty() && why.len() <= 512 && !why.contains(char::is_control), "{why}");
    }
    for (body, routes) in [
        ("{}", 0),
        (r#"{"consul":[],"web":null}"#, 0),
        (r#"{"web":["weir.route=web.example/a"],"web":["weir.route=web.example/b"]}"#, 2),
    ] {
        let published = published(body.as_bytes(), RouteTagFormat::ALL, &allowed(), &[]).unwrap();
        assert_eq!((published.routes.len(), published.refused.count), (routes, 0), "{body}");
    }
}

#[test]
fn a_service_has_a_bounded_number_of_tags_and_routes() {
    let tag = |at: usize| format!("weir.route=web.example/{at:03}");
    let published = of_web((0..SERVICE_TAGS_MAX + 10).map(tag).collect());
    assert_eq!((published.routes.len(), published.refused.count), (SERVICE_TAGS_MAX, 10));
    let in_another_order = of_web((0..SERVICE_TAGS_MAX + 10).rev().map(tag).collect());
    assert_eq!(in_another_order, published);
    let [refused] = published.refused.examples.as_slice() else { panic!("{published:?}") };
    assert_eq!(refused.object, "web: weir.route=web.example/064");
    assert_eq!(refused.why, "a service has at most 64 tags about routes");
    // Other tags do not count.
    let others = (0..1_000).map(|at| format!("v{at}"));
    assert_eq!(of_web(others.chain([tag(1)]).collect()).routes.len(), 1);

    let hosts = |router: usize| {
        let hosts: Vec<_> = (0..40).map(|at| format!("`h{at}.apps.example`")).collect();
        let hosts = hosts.join(",");
        format!("traefik.http.routers.r{router}.rule=Host({hosts}) && Path(`/{router}`)")
    };
    let published = of_web((0..2).map(hosts).collect());
    assert_eq!((published.routes.len(), published.refused.count), (SERVICE_ROUTES_MAX, 16));
}

#[test]
fn a_long_tag_is_refused() {
    for length in [TAG_BYTES_MAX, TAG_BYTES_MAX + 1, 100 * TAG_BYTES_MAX] {
        let begin = "weir.route=web.example/";
        let tag = format!("{begin}{}", "a".repeat(length - begin.len()));
        let published = of_web(vec![tag]);
        let fits = length <= TAG_BYTES_MAX;
        assert_eq!(
            (published.routes.len(), published.refused.count),
            (fits.into(), (!fits).into())
        );
    }
    // In the middle of a character.
    assert_eq!(of_web(vec![format!("weir.route={}", "é".repeat(2_000))]).refused.count, 1);
}

/// What is not read might have been what protects the router.
#[test]
fn a_router_that_may_be_incomplete_is_refused() {
    let rule = "traefik.http.routers.a.rule=Host(`web.example`)".to_owned();
    assert_eq!(of_web(vec![rule.clone()]).routes.len(), 1);
    let long = format!("traefik.http.routers.a.middlewares={}", "m,".repeat(1_000));
    let published = of_web(vec![rule.clone(), long]);
    assert_eq!((published.routes.len(), published.refused.count), (0, 2));
    let many =
        (0..SERVICE_TAGS_MAX).map(|at| format!("traefik.http.routers.a.tls.domains[{at}].main=v"));
    let published = of_web(many.chain([rule]).collect());
    assert_eq!((published.routes.len(), published.refused.count), (0, 2));
    let whys: Vec<_> = published.refused.examples.iter().map(|one| one.why.as_str()).collect();
    assert!(whys.iter().all(|why| why.contains("64 tags")), "{whys:?}");
}

#[test]
fn all_services_together_have_a_bounded_number_of_routes() {
    let names: Vec<_> = (0..ROUTES_MAX / 50 + 2).map(|at| format!("s{at:04}")).collect();
    let tags: Vec<_> = (0..50).map(|at| format!("weir.route=web.example/{at}")).collect();
    let services = names.iter().map(|name| (name.as_str(), tags.clone())).collect();
    let published = read(&services, RouteTagFormat::ALL);
    assert_eq!((published.routes.len(), published.refused.count), (ROUTES_MAX, 100));
    assert_eq!(published.refused.examples.len(), REFUSED_MAX);
    let settled = settle(&[], published);
    assert_eq!((settled.routes.len(), settled.refused.count), (50, 10_050));
}

/// Returns a random text of pieces that matter to one of the formats.
fn random_tag(random: &mut fastrand::Rng) -> String {
    const PIECES: [&str; 40] = [
        "weir.route=",
        "urlprefix-",
        "traefik.http.routers.r",
        ".rule=",
        ".middlewares=",
        ".tls",
        "traefik.enable=false",
        "Host(",
        "Path(",
        "PathPrefix(",
        "`",
        "\"",
        ")",
        "(",
        ",",
        " && ",
        " || ",
        "!",
        "web.example",
        "a.apps.example",
        "*.apps.example",
        "evil.example",
        "apps.example",
        ".",
        "*",
        "/",
        "/a",
        "..",
        "%2f",
        "%2e",
        " strip",
        " exact",
        " strip=/a",
        ":80",
        "@",
        "\0",
        "\u{1b}",
        "é",
        " ",
        "\n",
    ];
    const BEGINS: [&str; 7] = [
        "weir.route=",
        "weir.route=a.apps.example/",
        "urlprefix-",
        "urlprefix-web.example/",
        "traefik.http.routers.r.rule=Host(`",
        "traefik.http.routers.q.rule=Host(`web.example`) && ",
        "traefik.http.routers.p.rule=",
    ];
    let mut tag = String::new();
    if random.u8(..8) > 0 {
        tag.push_str(random.choice(BEGINS).unwrap_or_default());
    }
    for _ in 0..random.usize(..8) {
        tag.push_str(random.choice(PIECES).unwrap_or_default());
    }
    tag
}

fn check_bounds(published: &Published, case: &str) {
    for route in &published.routes {
        let host = route.host.to_string();
        let is_allowed =
            host == "web.example" || host == "10.0.0.1" || host.ends_with(".apps.example");
        assert!(is_allowed, "{case}: {host}");
        let (PathMatch::Prefix(path) | PathMatch::Exact(path)) = &route.path;
        assert!(!model::path::has_dot_segments(path), "{case}: {path}");
    }
    for refused in &published.refused.examples {
        let is_line = |text: &str| text.len() <= 512 && !text.contains(char::is_control);
        assert!(is_line(&refused.object) && is_line(&refused.why), "{case}: {refused:?}");
    }
}

#[test]
fn no_route_has_a_host_that_is_not_allowed_whatever_the_bytes() {
    let seed = fastrand::u64(..);
    let case = format!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut routes = 0;
    for _ in 0..5_000 {
        let services = ["a", "b\u{1b}"]
            .into_iter()
            .map(|name| (name, (0..random.usize(..6)).map(|_| random_tag(&mut random)).collect()));
        let services: BTreeMap<_, Vec<String>> = services.collect();
        let found = read(&services, RouteTagFormat::ALL);
        check_bounds(&found, &case);
        routes += found.routes.len();
        let mut body = serde_json::to_vec(&services).expect("JSON");
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..body.len());
            body[at] = random.u8(..);
        }
        match published(&body, RouteTagFormat::ALL, &allowed(), &[]) {
            Ok(found) => check_bounds(&found, &case),
            Err(why) => {
                assert!(why.len() <= 512 && !why.contains(char::is_control), "{case}: {why}");
            }
        }
    }
    assert!(routes > 100, "{case}: only {routes} routes");
}
