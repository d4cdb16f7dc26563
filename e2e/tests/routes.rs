//! Routing on real requests: precedence, redirects, denials, changes, splits, hash and affinity.
//! (The rules themselves are tested case by case in `decide`.)

use std::collections::HashMap;
use std::time::Duration;

use e2e::{App, Scene, Weir, http};

/// Three servers named app11 to app13, and services `one`, `two` and `three` on one each.
fn three(scene: &Scene) -> (Vec<App>, String) {
    let apps: Vec<App> = [11, 12, 13].map(|host| App::start(scene, host, &[])).into();
    let services = ["one", "two", "three"]
        .iter()
        .zip(&apps)
        .map(|(name, app)| {
            format!("[service.{name}]\n{}", e2e::server_tables(name, [app.address()]))
        })
        .collect();
    (apps, services)
}

fn served_by(answer: &http::Response) -> &str {
    answer.field("x-served-by").unwrap_or("nobody")
}

#[test]
fn the_most_specific_rule_wins_whatever_the_order() {
    let Some(scene) = Scene::new("routes-precedence", &["python3"]) else {
        return;
    };
    let (_apps, services) = three(&scene);
    let routes = "
        [[route]]
        service = \"one\"
        [[route]]
        path = \"/a\"
        service = \"two\"
        [[route]]
        path_exact = \"/a\"
        service = \"three\"
        [[route]]
        host = \"*.example.com\"
        service = \"two\"
        [[route]]
        host = \"api.example.com\"
        service = \"three\"
        [[route]]
        path = \"/a\"
        method = \"POST\"
        service = \"one\"
        [[route]]
        path = \"/a\"
        header = { X-Canary = \"yes\" }
        service = \"one\"
        [[route]]
        path = \"/a\"
        query = { canary = \"yes\" }
        service = \"three\"
        [[route]]
        path = \"/gone\"
        deny = 410
    ";
    let weir = Weir::start(&scene, &scene.config("", &format!("{routes}\n{services}")));
    let get = |target: &str, fields: &[&str]| http::get_with(weir.front(), target, fields).unwrap();
    for (target, fields, server) in [
        ("/", &[][..], "app11"),
        ("/ab", &[], "app11"),
        ("/a", &[], "app13"),
        ("/a/", &[], "app12"),
        ("/a/b", &[], "app12"),
        ("/a/b", &["X-Canary: yes"], "app11"),
        ("/a/b", &["X-Canary: no"], "app12"),
        ("/a/b?x=1&canary=yes", &[], "app13"),
        ("/a", &["Host: www.example.com"], "app12"),
        ("/a", &["Host: API.example.com:8080"], "app13"),
        ("/", &["Host: example.com"], "app11"),
    ] {
        let answer = get(target, fields);
        assert_eq!(served_by(&answer), server, "{target} {fields:?}");
    }
    let mut connection = http::Connection::open(weir.front()).unwrap();
    assert_eq!(served_by(&connection.request("POST", "/a/b", &[], b"x").unwrap()), "app11");
    assert_eq!(get("/gone/for/good", &[]).status, 410);
}

#[test]
fn what_no_rule_matches_is_404() {
    let Some(scene) = Scene::new("routes-none", &["python3"]) else {
        return;
    };
    let (_apps, services) = three(&scene);
    let routes = "[[route]]\nhost = \"a.example\"\nservice = \"one\"\n";
    let weir = Weir::start(&scene, &scene.config("", &format!("{routes}{services}")));
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 404);
}

#[test]
fn redirects_keep_what_they_do_not_name() {
    let Some(scene) = Scene::new("routes-redirect", &[]) else {
        return;
    };
    let routes = "
        [[route]]
        host = \"old.example\"
        redirect = { status = 301, scheme = \"https\", host = \"new.example\" }
        [[route]]
        path = \"/docs\"
        redirect = { path = \"/manual\" }
        [[route]]
        path = \"/news\"
        redirect = { full_path = \"/\" }
    ";
    let weir = Weir::start(&scene, &scene.config("", routes));
    let location = |target: &str, host: &str| {
        let host = format!("Host: {host}");
        let answer = http::get_with(weir.front(), target, &[&host]).unwrap();
        (answer.status, answer.field("location").unwrap_or_default().to_owned())
    };
    let (status, to) = location("/a/b?c=d", "old.example:8080");
    assert_eq!((status, to.as_str()), (301, "https://new.example/a/b?c=d"));
    let (status, to) = location("/docs/page?x", "a.example");
    assert_eq!(status, 308);
    assert!(to.ends_with("/manual/page?x"), "{to}");
    assert_eq!(location("/news/2026/11?x", "a.example").1, "http://a.example/?x");
    let mut connection = http::Connection::open(weir.front()).unwrap();
    let answer = connection.request("OPTIONS", "*", &["Host: old.example"], b"").unwrap();
    assert_eq!(answer.field("location"), Some("https://new.example"));
}

#[test]
fn targets_and_fields_are_changed_as_told() {
    let Some(scene) = Scene::new("routes-changes", &["python3"]) else {
        return;
    };
    let (_apps, services) = three(&scene);
    let routes = "
        [[route]]
        path = \"/api/v1\"
        service = \"one\"
        rewrite = { prefix = \"/\", host = \"inner.example\" }
        request_header = { remove = [\"X-Secret\"], set = { X-Team = \"search\" }, add = { X-Via = \"weir\" } }
        response_header = { remove = [\"Server\"], set = { X-Frame-Options = \"DENY\" } }
    ";
    let weir = Weir::start(&scene, &scene.config("", &format!("{routes}\n{services}")));
    let fields = ["Host: outer.example", "X-Secret: s", "X-Team: a", "X-Team: b", "X-Via: me"];
    let answer = http::get_with(weir.front(), "/api/v1/items?q=1", &fields).unwrap();
    assert_eq!(answer.field("server"), None, "{}", answer.head);
    assert_eq!(answer.field("x-frame-options"), Some("DENY"));
    let echo = answer.json();
    assert_eq!(echo["target"], "/items?q=1");
    let values = |name: &str| -> Vec<&str> {
        let rows = echo["fields"].as_array().unwrap().iter();
        let named = rows.filter(|row| row[0].as_str().unwrap().eq_ignore_ascii_case(name));
        named.map(|row| row[1].as_str().unwrap()).collect()
    };
    assert_eq!(values("host"), ["inner.example"]);
    assert!(values("x-secret").is_empty());
    assert_eq!(values("x-team"), ["search"]);
    assert_eq!(values("x-via"), ["me", "weir"]);
}

#[test]
fn a_split_follows_its_weights() {
    let Some(scene) = Scene::new("routes-split", &["python3"]) else {
        return;
    };
    let (_apps, services) = three(&scene);
    let routes = "[[route]]\nsplit = [{ service = \"one\", weight = 9 }, { service = \"two\", weight = 1 }]\n";
    let weir = Weir::start(&scene, &scene.config("", &format!("{routes}{services}")));
    let mut connection = http::Connection::open(weir.front()).unwrap();
    let mut seen: HashMap<String, u32> = HashMap::new();
    for _ in 0..1000 {
        let answer = connection.get("/", &[]).unwrap();
        *seen.entry(served_by(&answer).to_owned()).or_default() += 1;
    }
    // Binomial with p = 0.1: a standard deviation of 9.5; five of them on both sides.
    let second = seen["app12"];
    assert!((52..=148).contains(&second), "{seen:?}");
}

#[test]
fn a_branch_changes_fields_after_its_route_or_refuses_its_share() {
    let Some(scene) = Scene::new("routes-branches", &["python3"]) else {
        return;
    };
    let (_apps, services) = three(&scene);
    let routes = "
        [[route]]
        path = \"/app\"
        rewrite = { full_path = \"/index.html\" }
        request_header = { set = { X-A = \"route\", X-B = \"route\" } }
        response_header = { set = { X-From = \"route\" } }
        split = [
          { service = \"one\" },
          { service = \"two\", request_header = { set = { X-A = \"branch\" }, remove = [\"X-B\"] }, response_header = { add = { X-From = \"branch\" } } },
          { deny = 503 },
        ]
    ";
    let weir = Weir::start(&scene, &scene.config("", &format!("{routes}\n{services}")));
    let mut connection = http::Connection::open(weir.front()).unwrap();
    let mut seen: HashMap<String, u32> = HashMap::new();
    for _ in 0..300 {
        let answer = connection.get("/app/deep?q", &[]).unwrap();
        if answer.status == 503 {
            assert_eq!(answer.field("x-from"), None, "it is no response of a server");
            assert!(answer.field("proxy-status").unwrap().contains("http_request_denied"));
            *seen.entry("refused".to_owned()).or_default() += 1;
            continue;
        }
        let echo = answer.json();
        assert_eq!(echo["target"], "/index.html?q");
        let value = |name: &str| {
            let rows = echo["fields"].as_array().unwrap().iter();
            let mut named = rows.filter(|row| row[0].as_str().unwrap().eq_ignore_ascii_case(name));
            named.next().map(|row| row[1].as_str().unwrap().to_owned())
        };
        let from: Vec<_> = answer.head.lines().filter(|line| line.starts_with("x-from:")).collect();
        let (a, b, from_expected) = match served_by(&answer) {
            "app11" => ("route", Some("route"), 1),
            _ => ("branch", None, 2),
        };
        assert_eq!(value("x-a").as_deref(), Some(a), "{echo}");
        assert_eq!(value("x-b").as_deref(), b, "{echo}");
        assert_eq!(from.len(), from_expected, "{}", answer.head);
        *seen.entry(served_by(&answer).to_owned()).or_default() += 1;
    }
    // Binomial with p = 1/3: a standard deviation of 8.2; five of them on both sides.
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(seen.values().all(|count| (59..=141).contains(count)), "{seen:?}");
}

#[test]
fn a_hash_keeps_a_key_with_its_server() {
    let Some(scene) = Scene::new("routes-hash", &["python3"]) else {
        return;
    };
    let (mut apps, _) = three(&scene);
    let servers: Vec<_> = apps.iter().map(App::address).collect();
    let service = "balance = \"hash\"\nhash = { on = \"header:X-User\" }\n\
                   check = { path = \"/status\", interval = \"50ms\", timeout = \"40ms\", rise = 1, fall = 1 }";
    let weir = Weir::start(&scene, &scene.one_service(service, &servers));
    let place = |user: u32| {
        let field = format!("X-User: u{user}");
        let answer = http::get_with(weir.front(), "/", &[&field]).unwrap();
        served_by(&answer).to_owned()
    };
    let before: Vec<String> = (0..60).map(place).collect();
    assert_eq!((0..60).map(place).collect::<Vec<_>>(), before, "the same key, the same server");
    for app in ["app11", "app12", "app13"] {
        assert!(before.iter().any(|server| server == app), "{app} has keys: {before:?}");
    }
    apps[1].kill();
    weir.wait_for_log(&[&servers[1].to_string(), "down"], Duration::from_secs(5));
    for (user, was) in (0..60).zip(&before) {
        let now = place(user);
        assert!(now == *was || was == "app12", "only keys of the dead server move");
    }
}

#[test]
fn a_path_or_a_parameter_keeps_its_server() {
    let Some(scene) = Scene::new("routes-hash-parts", &["python3"]) else {
        return;
    };
    let (apps, _) = three(&scene);
    let servers = |name: &str| e2e::server_tables(name, apps.iter().map(App::address));
    let service = |name: &str, on: &str| {
        let hash = format!("balance = \"hash\"\nhash = {{ on = \"{on}\" }}\n");
        let route = format!("[[route]]\nhost = \"{name}\"\nservice = \"{name}\"\n");
        format!("{route}[service.{name}]\n{hash}{}", servers(name))
    };
    let services = service("path", "path") + &service("query", "query:id");
    let weir = Weir::start(&scene, &scene.config("workers = 2", &services));
    let place = |host: &str, target: &str| {
        let mut connection = http::Connection::open(weir.front()).unwrap();
        let answer = connection.get(target, &[&format!("Host: {host}")]).unwrap();
        served_by(&answer).to_owned()
    };
    let mut used = [const { std::collections::BTreeSet::new() }; 2];
    for n in 0..40 {
        // The query is no part of the path; how it is encoded does not matter.
        let first = place("path", &format!("/item/{n}"));
        for same in [format!("/item/{n}?page=2"), format!("/%69tem/{n}?id={}", n + 1)] {
            assert_eq!(place("path", &same), first, "{same}");
        }
        used[0].insert(first);
        let first = place("query", &format!("/item?id={n}x"));
        for same in [format!("/other/{n}?a=1&id={n}x"), format!("/?id={n}%78&id=2")] {
            assert_eq!(place("query", &same), first, "{same}");
        }
        used[1].insert(first);
    }
    // Without the parameter the servers are drawn, as without any other key.
    let drawn: std::collections::BTreeSet<_> = (0..60).map(|_| place("query", "/item")).collect();
    assert_eq!((used[0].len(), used[1].len(), drawn.len()), (3, 3, 3));
}

#[test]
fn a_cookie_keeps_a_client_with_its_server() {
    let Some(scene) = Scene::new("routes-affinity", &["python3"]) else {
        return;
    };
    let (_apps, _) = three(&scene);
    let servers = [11, 12, 13].map(|host| scene.address(host, 8080));
    let service = "affinity = { cookie = \"shop\", max_age = \"1h\" }";
    let weir = Weir::start(&scene, &scene.one_service(service, &servers));
    let first = http::get(weir.front(), "/").unwrap();
    let set = first.field("set-cookie").expect("a cookie").to_owned();
    assert!(set.starts_with("shop=") && set.contains("Max-Age=3600"), "{set}");
    assert!(set.contains("HttpOnly") && set.contains("Path=/"), "{set}");
    let cookie = format!("Cookie: a=b; {}; c=d", set.split(';').next().unwrap());
    for _ in 0..20 {
        let answer = http::get_with(weir.front(), "/", &[&cookie]).unwrap();
        assert_eq!(served_by(&answer), served_by(&first));
    }
    let strange = http::get_with(weir.front(), "/", &["Cookie: shop=nonsense"]).unwrap();
    assert_eq!(strange.status, 200, "a cookie that means nothing does no harm");
}
