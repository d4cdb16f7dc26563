//! `weir explain route`: the route and the server that it names are those of a real request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use e2e::http::Connection;
use e2e::{App, Dice, Finished, Scene, Weir, http, run, server_tables};
use serde_json::Value;

/// `weir explain route` with these words, of the balancer of `scene`.
fn explain(scene: &Scene, words: &[&str]) -> Finished {
    let admin = scene.admin().to_string();
    run(scene, &[&["explain", "route", "--admin", &admin], words].concat())
}

/// What it prints; it must end with this exit code.
fn said(scene: &Scene, code: i32, words: &[&str]) -> String {
    let seen = explain(scene, words);
    assert_eq!(seen.code, Some(code), "{words:?}: {seen:?}");
    seen.stdout
}

/// A word as a parameter of a query.
fn encoded(word: &str) -> String {
    word.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").unwrap();
        }
        out
    })
}

/// The explanation of a request by the API.
fn asked(weir: &Weir, url: &str, others: &[(&str, &str)]) -> Value {
    let mut path = format!("/api/v1/routes/explain?url={}", encoded(url));
    for (name, value) in others {
        write!(path, "&{name}={}", encoded(value)).unwrap();
    }
    weir.api(&path)
}

const HOSTS: [&str; 8] = [
    "a.example.com",
    "b.example.com",
    "x.a.example.com",
    "example.com",
    "A.EXAMPLE.COM.",
    "other.org",
    "[::1]",
    "[2001:db8::A]",
];
/// The first is empty: a client sends `/`.
const PATHS: [&str; 9] = ["", "/", "/a", "/a/", "/a/b", "/ab", "/a%62", "/%61/b/c", "/A"];
const METHODS: [&str; 3] = ["GET", "POST", "DELETE"];

/// Conditions of a route, each of them perhaps.
fn conditions(dice: &mut Dice) -> String {
    let hosts = ["a.example.com", "example.com", "*.example.com", "*.a.example.com", "other.org"];
    let mut lines = String::new();
    let mut add = |share: u64, line: String, dice: &mut Dice| {
        if dice.permille(share) {
            lines += &line;
            lines.push('\n');
        }
    };
    let line = format!("host = \"{}\"", dice.pick(&hosts));
    add(600, line, dice);
    let paths = [
        "path = \"/a\"",
        "path = \"/a/b\"",
        "path = \"/ab\"",
        "path_exact = \"/\"",
        "path_exact = \"/a\"",
    ];
    let line = dice.pick(&paths).to_owned();
    add(700, line, dice);
    let line = format!("method = \"{}\"", dice.pick(&METHODS));
    add(250, line, dice);
    let line = format!("header = {{ X-Beta = \"{}\" }}", dice.below(2));
    add(250, line, dice);
    let line = format!("query = {{ q = \"{}\" }}", dice.below(2));
    add(250, line, dice);
    let line = dice.pick(&["client_not = \"192.0.2.0/24\"", "cookie = { c = \"1\" }"]);
    add(150, line.to_owned(), dice);
    add(150, "listener = \"public\"".to_owned(), dice);
    lines
}

/// Routes that answer with their names, no two with the same conditions.
fn routes(dice: &mut Dice) -> String {
    let different: BTreeSet<String> = (0..2 + dice.below(25)).map(|_| conditions(dice)).collect();
    let route = |(number, conditions): (usize, String)| {
        format!(
            "[[route]]\nname = \"r{number}\"\n{conditions}respond = {{ body = \"r{number}\" }}\n"
        )
    };
    different.into_iter().enumerate().map(route).collect()
}

#[test]
fn the_route_that_is_named_is_the_one_that_a_request_takes() {
    let Some(scene) = Scene::new("explain-route-random", &[]) else { return };
    let second = scene.address(1, 8081);
    let listener = format!("[[listener]]\nname = \"second\"\naddress = \"{second}\"\n\n");
    let config = |dice: &mut Dice| scene.config("workers = 1", &(listener.clone() + &routes(dice)));
    let weir = Weir::start(&scene, &scene.config("workers = 1", &listener));
    let (mut taken, mut none) = (0, 0);
    for seed in e2e::seeds() {
        println!("explain_route: WEIR_SEED={seed}");
        let dice = &mut Dice::new(seed);
        for _ in 0..6 {
            let text = config(dice);
            scene.file("weir.toml", &text);
            let reloaded = weir.ask("/api/v1/reload");
            assert_eq!(reloaded.status, 200, "seed {seed}: {}\n{text}", reloaded.text());
            for _ in 0..40 {
                let address = dice.pick(&[scene.front(), second]);
                let (host, method) = (dice.pick(&HOSTS), dice.pick(&METHODS));
                let query = dice.pick(&["", "", "?q=0", "?q=1", "?x=2&q=%31", "?q"]);
                let path = dice.pick(&PATHS);
                let target = format!("{}{query}", if path.is_empty() { "/" } else { path });
                let field =
                    dice.pick(&["X-Beta: 0", "x-beta: 1", "Cookie: a=2; c=1", "X-Other: 1"]);
                let url = format!("http://{host}:{}{path}{query}", address.port());
                let explained = asked(
                    &weir,
                    &url,
                    &[("method", method), ("field", field), ("client", "127.0.0.1")],
                );
                let host = format!("Host: {host}:{}", address.port());
                let mut connection = Connection::open(address).unwrap();
                let answer = connection.request(method, &target, &[&host, field], b"").unwrap();
                let what = format!("seed {seed}: {method} {url} {field}\n{explained:#}\n{text}");
                match explained["route"]["name"].as_str() {
                    Some(name) => assert_eq!(answer.text(), name, "{what}"),
                    None => assert_eq!(answer.status, 404, "{what}"),
                }
                match answer.status {
                    200 => taken += 1,
                    _ => none += 1,
                }
            }
        }
    }
    assert!(taken > 200 && none > 5, "{taken} taken, {none} not");
}

#[test]
fn the_server_that_is_named_is_the_one_that_serves() {
    let Some(scene) = Scene::new("explain-route-server", &["python3"]) else { return };
    let apps: Vec<App> = [11, 12, 13].map(|host| App::start(&scene, host, &[])).into();
    let names: BTreeMap<String, &str> =
        apps.iter().map(|app| (app.address().to_string(), app.name())).collect();
    let tables = |service: &str| server_tables(service, apps.iter().map(App::address));
    let rest = format!(
        "[[route]]\npath = \"/hash\"\nservice = \"hash\"\n\
         [[route]]\npath = \"/turn\"\nservice = \"turn\"\n\
         [[route]]\npath = \"/bound\"\nservice = \"bound\"\n\
         [[route]]\npath = \"/split\"\nsplit = [{{ service = \"hash\", weight = 1 }}, {{ service = \"turn\", weight = 1 }}]\n\
         [[route]]\npath = \"/all\"\nsplit = [{{ service = \"hash\", weight = 0 }}, {{ service = \"turn\", weight = 1 }}]\n\
         [service.hash]\nbalance = \"hash\"\nhash = {{ on = \"header:X-User\" }}\n{}\n\
         [service.turn]\nbalance = \"round-robin\"\n{}\n\
         [service.bound]\nbalance = \"random\"\naffinity = {{ cookie = \"c\" }}\n{}\n",
        tables("hash"),
        tables("turn"),
        tables("bound"),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    let front = format!("http://{}", weir.front());
    let foreseen = |path: &str, fields: &[&str]| {
        let fields: Vec<_> = fields.iter().map(|field| ("field", *field)).collect();
        let server = asked(&weir, &format!("{front}{path}"), &fields)["server"].take();
        let address = server["address"].as_str().unwrap_or_default().to_owned();
        (names.get(&address).copied().unwrap_or("none"), server)
    };
    let served = |path: &str, fields: &[&str]| {
        let answer = http::get_with(weir.front(), path, fields).unwrap();
        answer.field("x-served-by").unwrap_or_default().to_owned()
    };
    for user in 0..20 {
        let field = format!("X-User: {user}");
        let (name, server) = foreseen("/hash", &[&field]);
        assert_eq!(server["example"], false, "{server:#}");
        assert_eq!(name, served("/hash", &[&field]), "{server:#}");
    }
    assert_eq!(foreseen("/hash", &[]).1["example"], true, "there is no key");
    // Asking takes no turn.
    for _ in 0..4 {
        let (name, again) = (foreseen("/turn", &[]).0, foreseen("/turn", &[]).0);
        assert_eq!(name, again);
        assert_eq!(name, served("/turn", &[]));
    }
    let first = http::get(weir.front(), "/bound").unwrap();
    let cookie = first.field("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let (name, server) = foreseen("/bound", &[&format!("Cookie: {cookie}")]);
    assert_eq!((Some(name), &server["by"]), (first.field("x-served-by"), &"affinity".into()));
    // Chance draws the service, unless only one has a weight.
    let drawn: BTreeSet<String> = (0..64)
        .map(|_| {
            let server = foreseen("/split", &["X-User: 1"]).1;
            assert_eq!(server["example"], true, "{server:#}");
            assert!(server["why"].as_str().unwrap().contains("drawn by weight"), "{server:#}");
            server["service"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(Vec::from_iter(drawn), ["hash", "turn"]);
    let (name, server) = foreseen("/all", &[]);
    assert_eq!((&server["service"], &server["example"]), (&"turn".into(), &false.into()));
    assert_eq!(name, served("/all", &[]));
    // None of it counts as a request.
    let requests: u64 = apps.iter().map(|app| app.stat("requests")).sum();
    assert_eq!(requests, 20 + 4 + 1 + 1);
    let drained = weir.api("/api/v1/services/turn");
    assert_eq!(drained["servers"][0]["in_flight"], 0);
}

#[test]
fn a_request_without_a_server_is_explained_with_its_answer() {
    let Some(scene) = Scene::new("explain-route-none", &["python3"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let rest = format!(
        "[[route]]\nhost = \"www.example.com\"\nname = \"site\"\nservice = \"app\"\n\
         [[route]]\nhost = \"www.example.com\"\npath = \"/api\"\nheader = {{ X-Beta = \"1\" }}\n\
         name = \"beta\"\ndeny = 403\n\
         [service.app]\n{}",
        server_tables("app", [app.address()]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let port = weir.front().port();
    let site = format!("http://www.example.com:{port}/api/x");
    let text = said(&scene, 0, &[&site]);
    let file = scene.folder().join("weir.toml");
    for part in [
        "listener public (",
        "Route 2 \"site\", ",
        "forwards to app",
        &format!("Server {} of service app", app.address()),
        "1 \"beta\", ",
        "header x-beta is absent",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let text = said(&scene, 0, &[&site, "-H", "X-Beta: 1"]);
    assert!(text.contains("Route 1 \"beta\"") && text.contains("Answer 403"), "{text}");
    let lower = "it matches, too; route 1 is tried before it because its path is longer";
    assert!(text.contains(lower), "{text}");

    let text = said(&scene, 1, &[&format!("http://example.com:{port}/")]);
    assert!(text.contains("No route matches\n  nearest  route 1 \"beta\""), "{text}");
    assert!(text.contains("host example.com is not www.example.com"), "{text}");
    assert!(text.contains("Answer 404") && text.contains("destination_not_found"), "{text}");
    let text = said(&scene, 1, &[&format!("http://www.example.com:{port}/a/../b")]);
    assert!(text.contains("Answer 400") && text.contains("dot segments"), "{text}");

    let real = || http::get_with(weir.front(), "/", &["Host: www.example.com"]).unwrap().status;
    let admin = scene.admin().to_string();
    let turn = |words: &[&str]| {
        let done = run(&scene, &[words, &["--admin", &admin]].concat());
        assert_eq!(done.code, Some(0), "{done:?}");
    };
    turn(&["maintenance", "app"]);
    let explained = asked(&weir, &site, &[]);
    assert_eq!(explained["answer"]["cause"], "maintenance", "{explained:#}");
    assert_eq!(explained["answer"]["status"], real());
    turn(&["maintenance", "app", "--off"]);
    turn(&["maintenance", "--route", "site"]);
    assert!(said(&scene, 0, &[&site]).contains("but it is in maintenance"));
    turn(&["maintenance", "--route", "site", "--off"]);
    turn(&["drain", "app", &app.address().to_string()]);
    let explained = asked(&weir, &site, &[]);
    assert_eq!(explained["answer"]["cause"], "destination_unavailable", "{explained:#}");
    assert_eq!(explained["answer"]["status"], real());
    assert_eq!(explained["server"]["servers"][0]["why"], "draining");

    // Without a balancer, by the file.
    let file = file.to_string_lossy();
    let by_file = run(&scene, &["explain", "route", "--json", "--config", &file, &site]);
    let explained: Value = serde_json::from_str(&by_file.stdout).expect("JSON");
    assert_eq!((by_file.code, &explained["route"]["name"]), (Some(0), &"site".into()));
    assert_eq!(explained["server"], Value::Null);
}

#[test]
fn what_weir_answers_before_a_service_is_explained() {
    let Some(scene) = Scene::new("explain-route-own", &["python3"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let rest = format!(
        "[[listener]]\nname = \"small\"\naddress = \"{}\"\nbody_max = 10\n\
         trusted = [\"127.0.0.0/8\"]\n\
         [[route]]\nname = \"cors\"\npath = \"/cors\"\ncors = {{ origins = [\"https://a.example\"] }}\n\
         service = \"app\"\n\
         [[route]]\nname = \"office\"\npath = \"/office\"\nclient = [\"192.0.2.0/24\"]\nservice = \"app\"\n\
         [service.app]\n{}",
        scene.address(1, 8081),
        server_tables("app", [app.address()]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let small = scene.address(1, 8081);
    let statuses = |address, method: &str, path: &str, fields: &[&str]| {
        let mut parameters = vec![("method", method), ("client", "127.0.0.1")];
        parameters.extend(fields.iter().map(|field| ("field", *field)));
        let explained = asked(&weir, &format!("http://{address}{path}"), &parameters);
        let mut connection = Connection::open(address).unwrap();
        let real = connection.request(method, path, fields, b"").unwrap().status;
        (explained["answer"]["status"].as_u64(), u64::from(real))
    };
    let asks = "Access-Control-Request-Method: PUT";
    let origin = "Origin: https://a.example";
    let preflight = statuses(weir.front(), "OPTIONS", "/cors", &[origin, asks]);
    assert_eq!(preflight, (Some(204), 204));
    assert_eq!(statuses(weir.front(), "OPTIONS", "/cors", &[origin]).0, None, "no preflight");
    let large = asked(
        &weir,
        &format!("http://{small}/cors"),
        &[("method", "POST"), ("field", "Content-Length: 11")],
    );
    assert_eq!(large["answer"]["status"], 413, "{large:#}");
    // The client that a trusted proxy names.
    let office = "X-Forwarded-For: 192.0.2.7";
    assert_eq!(statuses(small, "GET", "/office", &[office]), (None, 200));
    assert_eq!(statuses(weir.front(), "GET", "/office", &[office]), (Some(404), 404));
}

#[test]
fn a_file_says_what_is_in_maintenance_unless_chance_decides() {
    let Some(scene) = Scene::new("explain-route-file", &[]) else { return };
    let rest = "[[route]]\npath = \"/one\"\nservice = \"shut\"\n\
         [[route]]\npath = \"/split\"\nsplit = [{ service = \"shut\", weight = 1 }, { service = \"gone\", weight = 1 }]\n\
         [service.shut]\nmaintenance = true\n[[service.shut.server]]\naddress = \"127.0.0.1:1\"\n\
         [service.gone]\nmaintenance = true\n[[service.gone.server]]\naddress = \"127.0.0.1:1\"\n";
    let file = scene.file("weir.toml", scene.config("workers = 1", rest));
    let file = file.to_string_lossy();
    let answer = |path: &str| {
        let url = format!("http://www.example.com{path}");
        let seen = run(&scene, &["explain", "route", "--json", "--config", &file, &url]);
        let mut explained: Value = serde_json::from_str(&seen.stdout).expect("JSON");
        explained["answer"]["cause"].take()
    };
    assert_eq!(answer("/one"), "maintenance");
    assert_eq!(answer("/split"), Value::Null);
}

#[test]
fn the_place_of_a_route_follows_its_file() {
    let Some(scene) = Scene::new("explain-route-place", &[]) else { return };
    fs::create_dir_all(scene.folder().join("conf.d")).unwrap();
    let included = scene.folder().join("conf.d/a.toml");
    let route = "[[route]]\npath = \"/a\"\ndeny = 403\n";
    fs::write(&included, route).unwrap();
    let top = "include = [\"conf.d/*.toml\"]\nworkers = 1\nreload = { watch = false }";
    let weir = Weir::start(&scene, &scene.config(top, ""));
    let url = format!("http://{}/a", weir.front());
    let place = || asked(&weir, &url, &[])["route"]["written_at"].take();
    assert_eq!(place(), format!("{}:1", included.display()));
    fs::write(&included, format!("# a comment\n\n{route}")).unwrap();
    let reloaded = weir.ask("/api/v1/reload").json();
    assert_eq!(reloaded["result"], "unchanged", "{reloaded:#}");
    assert_eq!(place(), format!("{}:3", included.display()));
}

#[test]
fn a_wrong_question_is_refused_in_one_line() {
    let Some(scene) = Scene::new("explain-route-wrong", &[]) else { return };
    let weir = Weir::start(&scene, &scene.config("workers = 1", "[[route]]\ndeny = 403\n"));
    let url = format!("http://{}/", weir.front());
    for (words, why) in [
        (&["www.example.com/a"][..], "must begin with http:// or https://"),
        (&[&url, "--listener", "other"], "no listener is named \"other\"; there are: public"),
        (&[&url, "-H", "x"], "not of the form Name: value"),
        (&[&url, "-H", "Content-Length: x"], "would refuse this request with 400"),
        (&[&url, "-X", "A B"], "is no method"),
    ] {
        let seen = explain(&scene, words);
        assert_eq!((seen.code, seen.stdout.as_str()), (Some(2), ""), "{words:?}: {seen:?}");
        assert!(seen.stderr.contains(why) && seen.stderr.lines().count() == 1, "{seen:?}");
    }
    let seen = run(&scene, &["explain", "route", &url, "--admin", "127.0.0.1:1"]);
    assert!(seen.code == Some(1) && seen.stderr.contains("nothing listens at"), "{seen:?}");
}
