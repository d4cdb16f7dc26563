//! Error pages: which errors get which page, what stays of Weir's own answer, and what is never
//! replaced.

use std::time::Duration;

use e2e::clients::curl;
use e2e::frames::{Frames, kind};
use e2e::http::{self, Connection};
use e2e::{App, Scene, Weir, server_tables, wait};

const SOON: Duration = Duration::from_secs(10);

/// A scene with a server that answers, one that refuses connections, a route without servers, and
/// pages at every level.
fn start(name: &str) -> Option<(Scene, App, Weir)> {
    let scene = Scene::new(name, &["python3", "curl"])?;
    let app = App::start(&scene, 11, &[]);
    let page = |name: &str, text: &str| scene.file(name, text).display().to_string();
    let (html, json) = (page("sorry.html", "<h1>Sorry</h1>"), page("sorry.json", "{\"sorry\":1}"));
    let (service, route) = (page("service.html", "<h1>Service</h1>"), page("route.txt", "Route\n"));
    let front = scene.front();
    let text = format!(
        "workers = 1\n[admin]\naddress = \"{}\"\n[reload]\nwatch = true\n\
         [[listener]]\nname = \"public\"\naddress = \"{front}\"\nerror_page = [\
         {{ status = [\"4xx\", \"5xx\"], file = \"{html}\", headers = {{ X-Page = \"html\" }} }},\
         {{ status = [\"400-599\"], file = \"{json}\" }}]\n\
         [[route]]\npath = \"/app\"\nservice = \"app\"\n\
         [[route]]\npath = \"/refused\"\nservice = \"refused\"\n\
         [[route]]\npath = \"/limited\"\nservice = \"app\"\n\
         rate_limit = {{ requests = 1, per = \"1h\" }}\n\
         error_page = [{{ cause = [\"rate_limited\"], file = \"{route}\" }}]\n\
         [[route]]\npath = \"/denied\"\ndeny = 410\n\
         error_page = [{{ status = 410, body = \"gone\", headers = {{ Cache-Control = \"max-age=9\" }} }}]\n\
         [[route]]\npath = \"/moved\"\nredirect = {{ status = 302, path = \"/\" }}\n\
         [[route]]\npath = \"/own\"\nrespond = {{ status = 503, body = \"own\" }}\n\
         [service.app]\npassive = false\n{}\n\
         [service.refused]\npassive = false\nretries = {{ max = 0 }}\n\
         error_page = [{{ cause = \"connection_refused\", file = \"{service}\" }}]\n{}",
        scene.admin(),
        server_tables("app", [app.address()]),
        server_tables("refused", [scene.address(12, 8080)]),
    );
    let weir = Weir::start(&scene, &text);
    Some((scene, app, weir))
}

#[test]
fn each_error_gets_the_page_of_its_route_service_or_listener() {
    let Some((scene, app, weir)) = start("error-pages") else {
        return;
    };
    let get = |target: &str| http::get(weir.front(), target).unwrap();
    // Without a route only the listener has pages.
    let none = get("/");
    assert_eq!((none.status, none.text().as_str()), (404, "<h1>Sorry</h1>"));
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("vary", "Accept"),
        ("x-page", "html"),
        ("proxy-status", "weir; error=destination_not_found"),
        ("content-length", "14"),
    ] {
        assert_eq!(none.field(name), Some(value), "{}", none.head);
    }
    assert!(none.field("x-request-id").is_some(), "{}", none.head);

    let refused = get("/refused");
    assert_eq!((refused.status, refused.text().as_str()), (502, "<h1>Service</h1>"));
    assert_eq!(refused.field("vary"), None);

    assert_eq!(get("/limited").status, 200);
    let limited = get("/limited");
    assert_eq!((limited.status, limited.text().as_str()), (429, "Route\n"));
    let seconds: u32 = limited.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=3600).contains(&seconds), "{seconds}");

    let denied = get("/denied");
    assert_eq!((denied.status, denied.text().as_str()), (410, "gone"));
    assert_eq!(denied.field("cache-control"), Some("max-age=9"));
    assert_eq!(denied.fields.iter().filter(|(name, _)| name == "cache-control").count(), 1);

    // No server is ready: the service's page is for another cause.
    let admin = scene.admin().to_string();
    let drained =
        e2e::run(&scene, &["drain", "app", &app.address().to_string(), "--admin", &admin]);
    assert_eq!(drained.code, Some(0), "{drained:?}");
    let unavailable = wait::until("the drained server", SOON, || {
        Some(get("/app")).filter(|response| response.status == 503)
    });
    assert_eq!(unavailable.text(), "<h1>Sorry</h1>");

    // A malformed head, which has no route.
    let malformed = http::raw(weir.front(), b"GET /app HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n");
    let malformed = String::from_utf8(malformed.unwrap()).unwrap();
    assert!(malformed.starts_with("HTTP/1.1 400 "), "{malformed}");
    assert!(malformed.ends_with("\r\n\r\n<h1>Sorry</h1>"), "{malformed}");
    // The log still tells the cause.
    let lines = wait::until("the access lines", SOON, || {
        Some(weir.access()).filter(|lines| lines.len() >= 7)
    });
    let last = lines.iter().find(|line| line["status"] == 400).unwrap();
    assert_eq!(last["cause"], "http_request_error");
}

#[test]
fn the_client_chooses_the_media_type_over_both_versions_of_http() {
    let Some((scene, _app, weir)) = start("error-pages-accept") else {
        return;
    };
    let url = format!("http://{}/", weir.front());
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let get = |accept: &str, more: &[&str]| {
            let accept = format!("Accept: {accept}");
            let mut words = vec!["-i", version, "-H", &accept, &url];
            words.extend(more);
            curl(&scene, &words).stdout.replace('\r', "")
        };
        let json = get("application/json", &[]);
        assert!(json.contains(" 404") && json.ends_with("\n\n{\"sorry\":1}"), "{json}");
        assert!(json.to_ascii_lowercase().contains("\nvary: accept\n"), "{json}");
        let better = get("text/html;q=0.1, application/*;q=0.2", &[]);
        assert!(better.ends_with("\n\n{\"sorry\":1}"), "{better}");
        // A browser's image tag, and a client that accepts neither.
        for accept in ["image/avif,image/webp,*/*;q=0.8", "image/png", "text/html;q=nonsense"] {
            let html = get(accept, &[]);
            assert!(html.ends_with("\n\n<h1>Sorry</h1>"), "{accept}: {html}");
        }
        // HEAD has the length of the page that GET would get.
        for (accept, length) in [("application/json", 11), ("text/html", 14)] {
            let head = get(accept, &["--head"]).to_ascii_lowercase();
            assert!(head.contains(&format!("\ncontent-length: {length}\n")), "{head}");
            assert!(head.ends_with("\n\n"), "{head}");
        }
    }
    // The connection stays usable after a HEAD and after a GET.
    let mut connection = Connection::open(weir.front()).unwrap();
    for method in ["HEAD", "GET", "HEAD", "GET"] {
        let response = connection.request(method, "/", &[], b"").unwrap();
        assert_eq!(response.status, 404, "{method}");
        assert_eq!(response.text(), if method == "GET" { "<h1>Sorry</h1>" } else { "" });
    }
}

#[test]
fn what_a_server_or_a_route_answers_is_never_replaced() {
    let Some((scene, app, weir)) = start("error-pages-others") else {
        return;
    };
    let get = |target: &str| http::get(weir.front(), target).unwrap();
    let own = get("/app?status=503");
    assert_eq!(own.status, 503);
    assert_eq!(own.field("x-served-by"), Some(app.name()));
    assert!(!own.text().contains("Sorry"), "{}", own.text());
    let moved = get("/moved");
    assert_eq!((moved.status, moved.text().as_str()), (302, ""));
    let respond = get("/own");
    assert_eq!((respond.status, respond.text().as_str()), (503, "own"));
    assert_eq!(respond.field("vary"), None);
    // A gRPC call reads its status, not a page.
    let mut frames = Frames::client(weir.front()).unwrap();
    let head = frames.grpc_answer("a.example.com", "/denied").unwrap();
    assert_eq!((head.kind, head.status()), (kind::HEADERS, Some(200)), "{head:?}");
    assert!(head.ends_stream(), "{head:?}");
    drop(scene);
}

#[test]
fn a_changed_page_takes_effect_by_itself_and_a_missing_one_changes_nothing() {
    let Some((scene, _app, mut weir)) = start("error-pages-reload") else {
        return;
    };
    let text = || http::get(scene.front(), "/").unwrap().text();
    assert_eq!(text(), "<h1>Sorry</h1>");
    // A connection that stays open gets the new page, too.
    let mut connection = Connection::open(weir.front()).unwrap();
    assert_eq!(connection.get("/", &[]).unwrap().text(), "<h1>Sorry</h1>");
    scene.file("sorry.html", "<h1>Later</h1>");
    wait::until("the new page", SOON, || (text() == "<h1>Later</h1>").then_some(()));
    wait::until("the new page on the old connection", SOON, || {
        let seen = connection.get("/", &[]).unwrap().text();
        (seen == "<h1>Later</h1>").then_some(())
    });
    std::fs::remove_file(scene.folder().join("sorry.json")).unwrap();
    weir.hang_up();
    weir.wait_for_log(&["sorry.json"], SOON);
    let json = http::get_with(weir.front(), "/", &["Accept: application/json"]).unwrap();
    assert_eq!(json.text(), "{\"sorry\":1}");
    assert!(weir.process().is_running());
}

/// As large as a page may be, which is more than a window of HTTP/2.
#[test]
fn a_long_page_arrives_whole() {
    let Some(scene) = Scene::new("error-pages-long", &["curl"]) else {
        return;
    };
    let long = "x".repeat(1 << 20);
    let page = scene.file("long.html", &long);
    let rest = format!("error_page = [{{ status = \"4xx\", file = \"{}\" }}]\n", page.display());
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let url = format!("http://{}/", weir.front());
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let seen = curl(&scene, &["-s", version, &url]).stdout;
        assert_eq!(seen.len(), 1 << 20, "{version}");
    }
    scene.file("long.html", format!("{long}y"));
    let admin = scene.admin().to_string();
    let seen = e2e::run(&scene, &["reload", "--admin", &admin]);
    assert_ne!(seen.code, Some(0), "{seen:?}");
    let said = format!("{}{}", seen.stdout, seen.stderr);
    assert!(said.contains("more than 1048576 bytes"), "{said}");
}
