//! Configured responses, and the answers to health checks of a balancer in front of Weir.

use std::time::Duration;

use e2e::clients::curl;
use e2e::{App, Authority, Scene, Weir, http, run, server_tables, wait};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_route_answers_with_a_text_or_a_file() {
    let Some(scene) = Scene::new("respond", &["curl"]) else {
        return;
    };
    let page = scene.file("page.html", "<h1>Hello</h1>");
    let ca = Authority::new(&scene, "ca");
    let server = ca.issue("server", &["a.example.com"]);
    let rest = format!(
        "tls = {{ certificates = [{}] }}\n\
         [[route]]\npath = \"/text\"\nrespond = {{ body = \"ok\\n\", headers = {{ X-A = \"1\" }} }}\n\
         [[route]]\npath = \"/page\"\nrespond = {{ status = 503, file = \"{}\" }}\n\
         [[route]]\npath = \"/none\"\nrespond = {{ status = 204 }}\n\
         [reload]\nwatch = true\n",
        server.table(),
        page.display()
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let url = |path: &str| format!("https://{}{path}", weir.front());
    for version in ["--http1.1", "--http2"] {
        let get = |path: &str, more: &[&str]| {
            let url = url(path);
            let mut words = vec!["-k", "-i", version, &url];
            words.extend(more);
            curl(&scene, &words).stdout.replace('\r', "")
        };
        let text = get("/text", &[]);
        assert!(text.contains(" 200") && text.ends_with("\n\nok\n"), "{text}");
        for field in ["x-a: 1", "content-type: text/plain; charset=utf-8", "content-length: 3"] {
            assert!(text.to_ascii_lowercase().contains(&format!("\n{field}\n")), "{field}: {text}");
        }
        let page = get("/page", &[]);
        assert!(page.contains(" 503") && page.ends_with("\n\n<h1>Hello</h1>"), "{page}");
        assert!(page.to_ascii_lowercase().contains("\ncontent-type: text/html; charset=utf-8\n"));
        // A HEAD has the fields of a GET, and no content.
        let head = get("/text", &["--head"]).to_ascii_lowercase();
        assert!(head.contains("\ncontent-length: 3\n") && head.ends_with("\n\n"), "{head}");
        let none = get("/none", &[]).to_ascii_lowercase();
        assert!(none.contains(" 204") && !none.contains("content-"), "{none}");
        // A request body is read before the answer, so that the connection serves the next request.
        let text = url("/text");
        let posted = curl(&scene, &["-k", "-s", version, "-d", "abc", &text, &text]).stdout;
        assert_eq!(posted, "ok\nok\n");
    }
    let lines = wait::until("the access lines", SOON, || {
        Some(weir.access()).filter(|lines| lines.len() == 12)
    });
    assert!(lines.iter().all(|line| line["cause"] == "responded"), "{lines:#?}");
    // A changed file takes effect by itself.
    scene.file("page.html", "<h1>Bye</h1>");
    wait::until("the new page", SOON, || {
        let seen = curl(&scene, &["-k", "-s", &url("/page")]).stdout;
        (seen == "<h1>Bye</h1>").then_some(())
    });
}

#[test]
fn health_checks_are_told_before_connections_are_refused() {
    let Some(scene) = Scene::new("respond-ready", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let absent = scene.address(12, 8080);
    let rest = format!(
        "[[route]]\npath_exact = \"/healthz\"\nrespond = \"ready\"\n\
         [[route]]\npath_exact = \"/app\"\nrespond = {{ ready = \"app\" }}\n\
         [[route]]\npath_exact = \"/both\"\nrespond = {{ ready = [\"app\", \"gone\"] }}\n\
         [[route]]\nservice = \"app\"\n[[route]]\npath = \"/gone\"\nservice = \"gone\"\n\
         [service.app]\n{}\n\
         [service.gone]\ncheck = {{ kind = \"tcp\", interval = \"100ms\", timeout = \"50ms\" }}\n{}",
        server_tables("app", [app.address()]),
        server_tables("gone", [absent])
    );
    let mut weir = Weir::start(&scene, &scene.config("workers = 2\ndrain_delay = \"1h\"", &rest));
    let status = |path: &str| http::get(scene.front(), path).unwrap().status;
    wait::until("the check of the absent server", SOON, || (status("/both") == 503).then_some(()));
    assert_eq!(["/healthz", "/app", "/"].map(status), [200, 200, 200]);
    // As an operator takes the only server out.
    let switch = |verb: &str| {
        let (server, admin) = (app.address().to_string(), scene.admin().to_string());
        let seen = run(&scene, &[verb, "app", &server, "--admin", &admin]);
        assert_eq!(seen.code, Some(0), "{seen:?}");
    };
    switch("drain");
    wait::until("the drained server", SOON, || (status("/app") == 503).then_some(()));
    assert_eq!(status("/healthz"), 200);
    switch("ready");
    wait::until("the ready server", SOON, || (status("/app") == 200).then_some(()));

    weir.begin_to_stop();
    wait::until("the announcement", SOON, || (status("/healthz") == 503).then_some(()));
    // Everything else is served, on new connections.
    assert_eq!(["/app", "/both", "/"].map(status), [503, 503, 200]);
    assert_eq!(weir.api("/api/v1/status")["ready"], false);
    // A second signal does not wait for the hour.
    weir.begin_to_stop();
    weir.wait(SOON);
}

#[test]
fn connections_are_refused_after_the_delay() {
    let Some(scene) = Scene::new("respond-delay", &[]) else {
        return;
    };
    let rest = "[[route]]\nrespond = \"ready\"\n";
    let mut weir = Weir::start(&scene, &scene.config("workers = 1\ndrain_delay = \"500ms\"", rest));
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
    let began = std::time::Instant::now();
    weir.begin_to_stop();
    wait::until("the end of the delay", SOON, || {
        // Refused, or closed before it was accepted.
        http::get(scene.front(), "/").err().map(|_| ())
    });
    assert!(began.elapsed() >= Duration::from_millis(500), "{:?}", began.elapsed());
    weir.wait(SOON);
}
