//! Pages of other origins: what browsers are told, by servers' responses and by Weir's own.

use std::time::Duration;

use e2e::clients::{client, curl};
use e2e::http::{self, Connection, Response};
use e2e::{App, Scene, Weir, server_tables, wait};

const APP: &str = "https://app.example.com";
const EVIL: &str = "https://evil.test";

/// A scene with routes that allow listed origins (with credentials) or every origin, and others that
/// answer without a server.
fn start(name: &str) -> Option<(Scene, App, Weir)> {
    let scene = Scene::new(name, &["python3", "curl"])?;
    let app = App::start(&scene, 11, &[]);
    // The password is `a`.
    let users =
        scene.file("users", "ann:$2y$05$OecfciXTMNNujlgzhVWYgetHwjTg7XHgZu2umPshlGPDh.2RFdhmy\n");
    let listed = format!(
        "cors = {{ origins = [\"{APP}\", \"https://*.example.net\"], methods = [\"PUT\"], \
         headers = [\"X-Key\"], expose = [\"X-Total\"], credentials = true, max_age = \"10m\" }}\n"
    );
    let rest = format!(
        "[[route]]\npath = \"/listed\"\nservice = \"app\"\n{listed}\
         response_header = {{ set = {{ Access-Control-Allow-Origin = \"{EVIL}\" }}, add = {{ Vary = \"Accept\" }} }}\n\
         [[route]]\npath = \"/staff\"\nauthenticate = \"staff\"\nservice = \"app\"\n{listed}\
         [[route]]\npath = \"/refused\"\nservice = \"refused\"\n{listed}\
         error_page = [{{ status = 502, body = \"sorry\", headers = {{ Access-Control-Allow-Origin = \"{EVIL}\" }} }}]\n\
         [[route]]\npath = \"/limited\"\nrate_limit = {{ requests = 1, per = \"1h\" }}\nservice = \"app\"\n{listed}\
         [[route]]\npath = \"/post\"\nmethod = \"POST\"\nservice = \"app\"\n{listed}\
         [[route]]\npath = \"/any\"\nservice = \"app\"\ncors = {{ origins = [\"*\"], methods = [\"*\"] }}\n\
         [[route]]\npath = \"/none\"\nservice = \"app\"\n\
         [authentication.staff]\nbasic = {{ users_file = \"{}\" }}\n\
         [service.app]\n{}\n[service.refused]\npassive = false\nretries = {{ max = 0 }}\n{}",
        users.display(),
        server_tables("app", [app.address()]),
        server_tables("refused", [scene.address(12, 8080)]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    Some((scene, app, weir))
}

/// The fields that matter to browsers and caches, in a fixed order.
fn said(response: &Response) -> Vec<String> {
    let is_one = |name: &str| name.starts_with("access-control-") || name == "vary";
    let fields = response.fields.iter().filter(|(name, _)| is_one(name));
    let short = |name: &str| name.trim_start_matches("access-control-").to_owned();
    let mut said: Vec<_> = fields.map(|(name, value)| short(name) + "=" + value).collect();
    said.sort();
    said
}

fn preflight(weir: &Weir, path: &str, origin: &str) -> Response {
    let origin = format!("Origin: {origin}");
    let fields =
        [&*origin, "Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: x-key"];
    let mut connection = Connection::open(weir.front()).unwrap();
    let answer = connection.request("OPTIONS", path, &fields, b"").unwrap();
    // The connection stays usable: nothing of the answer is left over.
    assert_eq!(connection.get("/none", &[]).unwrap().status, 200, "{path}");
    answer
}

#[test]
fn preflights_are_answered_before_authentication_and_by_no_server() {
    let Some((_scene, _app, weir)) = start("cors-preflight") else {
        return;
    };
    let allowed = [
        "allow-credentials=true",
        "allow-headers=x-key",
        "allow-methods=PUT",
        "allow-origin=https://app.example.com",
        "expose-headers=x-total",
        "max-age=600",
        "vary=Origin",
    ];
    for path in ["/listed", "/staff", "/refused", "/limited"] {
        let answer = preflight(&weir, path, APP);
        assert_eq!((answer.status, said(&answer)), (204, allowed.map(str::to_owned).to_vec()));
        assert_eq!(answer.field("content-length"), None, "{}", answer.head);
        assert_eq!(answer.field("www-authenticate"), None, "{}", answer.head);
    }
    for origin in [EVIL, "null", "https://example.net", "https://evil-example.net", "*", ""] {
        let answer = preflight(&weir, "/staff", origin);
        assert_eq!((answer.status, said(&answer)), (204, vec!["vary=Origin".into()]), "{origin}");
    }
    let long = format!("https://{}.example.net", "a".repeat(2_000));
    assert_eq!(said(&preflight(&weir, "/staff", &long)), ["vary=Origin"]);
    let any = preflight(&weir, "/any", EVIL);
    assert_eq!(
        (any.status, said(&any)),
        (204, vec!["allow-methods=*".into(), "allow-origin=*".into()])
    );

    // A route for POST does not match the preflight.
    assert_eq!(preflight(&weir, "/post", APP).status, 404);
    // An OPTIONS request that is no preflight goes to the server, which has no CORS of its own.
    let mut connection = Connection::open(weir.front()).unwrap();
    let plain = connection.request("OPTIONS", "/none", &[&format!("Origin: {APP}")], b"").unwrap();
    let mut connection = Connection::open(weir.front()).unwrap();
    let with = connection.request("OPTIONS", "/listed", &[&format!("Origin: {APP}")], b"").unwrap();
    assert_eq!((plain.status, said(&plain)), (with.status, vec![]));
    assert_ne!(with.status, 204);
    assert!(said(&with).contains(&format!("allow-origin={APP}")), "{}", with.head);
    // Without credentials everything else is still refused.
    let mut connection = Connection::open(weir.front()).unwrap();
    let fields = [&*format!("Origin: {APP}"), "Access-Control-Request-Method: PUT"];
    assert_eq!(connection.request("PUT", "/staff", &fields, b"").unwrap().status, 401);
    let no_origin = ["Access-Control-Request-Method: PUT"];
    let mut connection = Connection::open(weir.front()).unwrap();
    assert_eq!(connection.request("OPTIONS", "/staff", &no_origin, b"").unwrap().status, 401);
    let line = wait::until("the access line of a preflight", Duration::from_secs(10), || {
        weir.access().into_iter().find(|line| line["status"] == 204)
    });
    assert_eq!((&line["cause"], &line["detail"]), (&"responded".into(), &"preflight".into()));
}

#[test]
fn pages_can_read_responses_of_servers_and_of_weir() {
    let Some((_scene, _app, weir)) = start("cors-responses") else {
        return;
    };
    let get = |path: &str, origin: &str| {
        http::get_with(weir.front(), path, &[&format!("Origin: {origin}")]).unwrap()
    };
    let allowed = |origin: &str| {
        vec![
            "allow-credentials=true".to_owned(),
            format!("allow-origin={origin}"),
            "expose-headers=x-total".to_owned(),
            "vary=Origin".to_owned(),
        ]
    };
    assert_eq!(http::get(weir.front(), "/limited").unwrap().status, 200);
    for (path, status) in [("/staff", 401), ("/refused", 502), ("/limited", 429)] {
        for origin in [APP, "https://a.b.example.net"] {
            let seen = get(path, origin);
            assert_eq!((seen.status, said(&seen)), (status, allowed(origin)), "{path}");
        }
        let seen = get(path, EVIL);
        assert_eq!((seen.status, said(&seen)), (status, vec!["vary=Origin".into()]), "{path}");
    }
    // The configuration's own field does not come second, and other fields of `Vary` stay.
    let seen = get("/listed", APP);
    let mut expected = allowed(APP);
    expected.insert(3, "vary=Accept".into());
    assert_eq!((seen.status, said(&seen)), (200, expected));
    for fields in [&[][..], &["Origin: https://evil.test"]] {
        let seen = http::get_with(weir.front(), "/listed", fields).unwrap();
        assert_eq!(
            (seen.status, said(&seen)),
            (200, vec!["vary=Accept".into(), "vary=Origin".into()])
        );
    }
    // Two origins are none.
    let twice = [&*format!("Origin: {APP}"), &*format!("Origin: {EVIL}")];
    let seen = http::get_with(weir.front(), "/staff", &twice).unwrap();
    assert_eq!(said(&seen), ["vary=Origin"]);
    // Without an origin too, so that a cached response serves all.
    let seen = http::get(weir.front(), "/any").unwrap();
    assert_eq!((seen.status, said(&seen)), (200, vec!["allow-origin=*".into()]));
    assert_eq!(said(&get("/none", APP)), Vec::<String>::new());
}

#[test]
fn http2_is_told_the_same() {
    let Some((scene, _app, weir)) = start("cors-http2") else {
        return;
    };
    let origin = format!("Origin: {APP}");
    let ask = |path: &str, words: &[&str]| {
        let url = format!("http://{}{path}", weir.front());
        let all = [&["-i", "--http2-prior-knowledge", "-H", &origin][..], words, &[&url]].concat();
        curl(&scene, &all).stdout.replace('\r', "")
    };
    let asked = ["-X", "OPTIONS", "-H", "Access-Control-Request-Method: PUT"];
    let seen = ask("/staff", &asked);
    assert!(seen.starts_with("HTTP/2 204") && !seen.contains("content-length"), "{seen}");
    for line in ["access-control-allow-methods: PUT", "access-control-max-age: 600"] {
        assert!(seen.contains(line), "{seen}");
    }
    for (path, status) in [("/staff", 401), ("/listed", 200), ("/refused", 502)] {
        let seen = ask(path, &[]);
        assert!(seen.starts_with(&format!("HTTP/2 {status}")), "{seen}");
        let line = format!("access-control-allow-origin: {APP}\n");
        assert_eq!(seen.matches("access-control-allow-origin").count(), 1, "{seen}");
        assert!(seen.contains(&line) && seen.contains("vary: Origin"), "{seen}");
    }
}

/// What a page notes of each request: the status and `X-Total` that it may read, or that it may not.
const PAGE: &str = r#"<!doctype html><title>page</title><pre id="notes"></pre><script>
const all = [
  ["/listed", {}],
  ["/listed", { method: "PUT", headers: { "X-Key": "1" }, credentials: "include" }],
  ["/listed", { method: "DELETE" }],
  ["/listed", { headers: { "X-Other": "1" } }],
  ["/staff", {}],
  ["/staff", { headers: { "Authorization": "Basic " + btoa("ann:a") } }],
  ["/refused", {}],
  ["/any", {}],
  ["/any", { method: "DELETE" }],
  ["/any", { credentials: "include" }],
  ["/none", {}],
];
(async () => {
  for (const [path, options] of all) {
    let seen;
    try {
      const response = await fetch("http://FRONT" + path, options);
      seen = response.status + " " + (response.headers.get("X-Total") ?? "-");
    } catch { seen = "blocked"; }
    notes.append((options.method ?? "GET") + " " + path + " " + seen + "\n");
  }
  notes.append("end");
})();
</script>"#;

#[test]
fn a_browser_lets_pages_of_listed_origins_read_responses() {
    let Some(scene) = Scene::new("cors-browser", &["python3", "chromium"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let (listed, other) = (scene.address(20, 8080), scene.address(21, 8080));
    let page = scene.file("page.html", PAGE.replace("FRONT", &scene.front().to_string()));
    // The password is `a`.
    let users =
        scene.file("users", "ann:$2y$05$OecfciXTMNNujlgzhVWYgetHwjTg7XHgZu2umPshlGPDh.2RFdhmy\n");
    let cors = format!(
        "cors = {{ origins = [\"http://{listed}\"], methods = [\"PUT\"], \
         headers = [\"X-Key\", \"Authorization\"], expose = [\"X-Total\"], credentials = true }}\n\
         response_header = {{ set = {{ X-Total = \"3\" }} }}\n"
    );
    let rest = format!(
        "[[listener]]\nname = \"listed\"\naddress = \"{listed}\"\n\
         [[listener]]\nname = \"other\"\naddress = \"{other}\"\n\
         [[route]]\nlistener = [\"listed\", \"other\"]\n\
         respond = {{ file = \"{}\", content_type = \"text/html\" }}\n\
         [[route]]\nlistener = \"public\"\npath = \"/listed\"\nservice = \"app\"\n{cors}\
         [[route]]\nlistener = \"public\"\npath = \"/staff\"\nauthenticate = \"staff\"\nservice = \"app\"\n{cors}\
         [[route]]\nlistener = \"public\"\npath = \"/refused\"\nservice = \"refused\"\n{cors}\
         [[route]]\nlistener = \"public\"\npath = \"/any\"\nservice = \"app\"\ncors = {{ origins = [\"*\"], methods = [\"*\"] }}\n\
         [[route]]\nlistener = \"public\"\npath = \"/none\"\nservice = \"app\"\n\
         [authentication.staff]\nbasic = {{ users_file = \"{}\" }}\n\
         [service.app]\n{}\n[service.refused]\npassive = false\nretries = {{ max = 0 }}\n{}",
        page.display(),
        users.display(),
        server_tables("app", [app.address()]),
        server_tables("refused", [scene.address(12, 8080)]),
    );
    let _weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let notes = |origin| {
        let profile = format!("--user-data-dir={}", scene.folder().join("profile").display());
        let url = format!("http://{origin}/");
        let words = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.*",
            "--virtual-time-budget=60000",
            &profile,
            "--dump-dom",
            &url,
        ];
        let shown = client(&scene, "chromium", &words, 60);
        let notes = shown.stdout.split_once("<pre id=\"notes\">").and_then(|(_, rest)| {
            rest.split_once("\nend</pre>").map(|(notes, _)| notes.to_owned())
        });
        notes.unwrap_or_else(|| panic!("{}\n{}", shown.stdout, shown.stderr))
    };
    let may_read = [
        "GET /listed 200 3",
        "PUT /listed 200 3",
        "DELETE /listed blocked",
        "GET /listed blocked",
        "GET /staff 401 -",
        "GET /staff 200 3",
        "GET /refused 502 -",
        "GET /any 200 -",
        "DELETE /any 200 -",
        "GET /any blocked",
        "GET /none blocked",
    ];
    assert_eq!(notes(listed).lines().collect::<Vec<_>>(), may_read);
    let before = app.stat("requests");
    let may_read = [
        "GET /listed blocked",
        "PUT /listed blocked",
        "DELETE /listed blocked",
        "GET /listed blocked",
        "GET /staff blocked",
        "GET /staff blocked",
        "GET /refused blocked",
        "GET /any 200 -",
        "DELETE /any 200 -",
        "GET /any blocked",
        "GET /none blocked",
    ];
    assert_eq!(notes(other).lines().collect::<Vec<_>>(), may_read);
    // Browsers send simple requests and withhold the responses: one of /listed, two of /any and that
    // of /none. DELETE /any is the fifth; preflights kept the others away.
    assert_eq!(app.stat("requests") - before, 5);
}
