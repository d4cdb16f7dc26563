//! Maintenance of services and routes: switched by the API, the command line and the file, over HTTP/1.1,
//! HTTP/2 and in TCP mode, across reloads and upgrades.

use std::net::SocketAddr;
use std::time::Duration;

use e2e::clients::curl;
use e2e::frames::{Frames, kind};
use e2e::http::{self, Connection};
use e2e::{App, Finished, Scene, Weir, run, server_tables, wait};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(10);

/// A configuration with a public route, one for the office, and an error page; `service` are further
/// lines of the service.
fn config(scene: &Scene, app: SocketAddr, service: &str) -> String {
    let office = scene.ip(1);
    let rest = format!(
        "[[route]]\nname = \"public\"\nservice = \"app\"\n\
         error_page = [{{ cause = \"maintenance\", body = \"back soon\\n\" }}]\n\
         [[route]]\nname = \"office\"\nclient = \"{office}\"\nservice = \"app\"\n\
         [[route]]\nname = \"other/a\"\npath = \"/other\"\nservice = \"other\"\n\
         [service.app]\ncheck = {{ path = \"/status\", interval = \"50ms\" }}\n{service}\n{}\n\
         [service.other]\n{}",
        server_tables("app", [app]),
        server_tables("other", [app]),
    );
    scene.config("workers = 2", &rest)
}

/// `weir maintenance` with these words.
fn maintenance(scene: &Scene, words: &[&str]) -> Finished {
    let admin = scene.admin().to_string();
    run(scene, &[&["maintenance"], words, &["--admin", &admin]].concat())
}

fn set(scene: &Scene, words: &[&str]) -> String {
    let seen = maintenance(scene, words);
    assert_eq!(seen.code, Some(0), "{seen:?}");
    seen.stdout
}

/// The rows of `/api/v1/status`: kind, name, in the file, by an operator.
fn rows(weir: &Weir) -> Vec<Value> {
    let rows = weir.api("/api/v1/status")["maintenance"].as_array().unwrap().clone();
    let row = |row: &Value| json!([row["kind"], row["name"], row["in_file"], row["by_operator"]]);
    rows.iter().map(row).collect()
}

#[test]
fn a_service_in_maintenance_gets_no_request_and_is_still_checked() {
    let Some(scene) = Scene::new("maintenance-service", &["python3", "curl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &config(&scene, app.address(), ""));
    let get = |path: &str| http::get(weir.front(), path).unwrap();
    assert_eq!(get("/").status, 200);
    assert_eq!(rows(&weir), Vec::<Value>::new());
    assert_eq!(weir.metric("weir_service_maintenance", &["service=\"app\""]) as u32, 0);

    // One is in flight, and finishes.
    let mut under_way = Connection::open(weir.front()).unwrap();
    under_way.send(b"GET /?work_ms=1000 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    wait::until("the request at the server", SOON, || (app.stat("in_flight") == 1).then_some(()));
    let said = set(&scene, &["app", "--retry-after", "10m"]);
    assert_eq!(said, "service app: in maintenance (an operator), Retry-After 10m\n");
    assert_eq!(under_way.response(false).unwrap().status, 200);
    let (requests, probes) = (app.stat("requests"), app.stat("probes"));

    let refused = get("/");
    assert_eq!((refused.status, refused.text().as_str()), (503, "back soon\n"));
    assert_eq!(refused.field("retry-after"), Some("600"));
    assert_eq!(refused.field("proxy-status"), Some("weir; error=maintenance"));
    // Another service on the same server is not.
    assert_eq!(get("/other").status, 200);
    let url = format!("http://{}/", weir.front());
    let h2 = curl(&scene, &["-s", "-i", "--http2-prior-knowledge", &url]).stdout;
    assert!(h2.starts_with("HTTP/2 503") && h2.ends_with("back soon\n"), "{h2}");
    let posted = Connection::open(weir.front()).unwrap().request("POST", "/", &[], b"abc");
    assert_eq!(posted.unwrap().status, 503);

    assert_eq!(rows(&weir), [json!(["service", "app", false, true])]);
    assert_eq!(weir.metric("weir_service_maintenance", &["service=\"app\""]) as u32, 1);
    assert_eq!(weir.metric("weir_service_maintenance", &["service=\"other\""]) as u32, 0);
    let status = run(&scene, &["status", "--admin", &scene.admin().to_string()]);
    assert!(status.stdout.contains("\nservice app: in maintenance (an operator)"), "{status:?}");
    wait::until("further probes", SOON, || (app.stat("probes") > probes + 2).then_some(()));
    assert_eq!(app.stat("requests"), requests + 1, "that of the other service");
    let servers = weir.api("/api/v1/services/app")["servers"].clone();
    assert_eq!((&servers[0]["failures"], &servers[0]["health"]), (&json!(0), &json!("up")));
    let refused: Vec<_> =
        weir.access().into_iter().filter(|line| line["cause"] == "maintenance").collect();
    assert_eq!(refused.len(), 3, "{refused:#?}");
    for line in &refused {
        assert_eq!((&line["service"], &line["server"]), (&json!("app"), &Value::Null));
        assert_eq!((&line["fault"], &line["status"]), (&json!("none"), &json!(503)));
    }

    assert_eq!(set(&scene, &["app", "--off"]), "service app: not in maintenance\n");
    assert_eq!(get("/").status, 200);
    assert_eq!(weir.metric("weir_service_maintenance", &["service=\"app\""]) as u32, 0);
}

#[test]
fn a_route_in_maintenance_leaves_other_routes_to_the_service() {
    let Some(scene) = Scene::new("maintenance-route", &["python3", "curl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &config(&scene, app.address(), ""));
    set(&scene, &["--route", "public"]);
    // This client comes from another address than the office's.
    let refused = http::get(weir.front(), "/").unwrap();
    assert_eq!((refused.status, refused.text().as_str()), (503, "back soon\n"));
    assert_eq!(refused.field("retry-after"), None);
    let (url, office) = (format!("http://{}/", weir.front()), scene.ip(1).to_string());
    let seen = curl(
        &scene,
        &["-s", "-o", "/dev/null", "-w", "%{http_code}", "--interface", &office, &url],
    );
    assert_eq!(seen.stdout, "200");
    assert_eq!(weir.metric("weir_route_maintenance", &["route=\"public\""]) as u32, 1);
    // A name with a slash.
    set(&scene, &["--route", "other/a"]);
    assert_eq!(http::get(weir.front(), "/other").unwrap().status, 503);
    assert_eq!(
        rows(&weir),
        [json!(["route", "other/a", false, true]), json!(["route", "public", false, true])]
    );
    // A gRPC call has the status of a server that is unavailable.
    let mut frames = Frames::client(weir.front()).unwrap();
    let head = frames.grpc_answer("a", "/a.B/C").unwrap();
    assert_eq!((head.kind, head.status()), (kind::HEADERS, Some(200)), "{head:?}");
    assert!(head.ends_stream(), "{head:?}");
    set(&scene, &["--route", "public", "--off"]);
    set(&scene, &["--route", "other/a", "--off"]);
    assert_eq!(rows(&weir), Vec::<Value>::new());
    assert_eq!(http::get(weir.front(), "/other").unwrap().status, 200);
}

#[test]
fn mistakes_change_nothing() {
    let Some(scene) = Scene::new("maintenance-mistakes", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &config(&scene, app.address(), ""));
    for (words, said) in [
        (&["ap"][..], "no service is named \"ap\""),
        (&["--route", "pub"], "no route is named \"pub\"; there are: office, other/a, public"),
        (&["app", "--retry-after", "8d"], "retry_after_ms"),
        (&["app", "10.0.0.1:80"], "has no server"),
    ] {
        let seen = maintenance(&scene, words);
        assert_eq!(seen.code, Some(2), "{seen:?}");
        assert!(seen.stderr.contains(said), "{words:?}: {seen:?}");
    }
    for words in [&[][..], &["app", "--route", "public"], &["app", "--off", "--retry-after", "1m"]]
    {
        let seen = maintenance(&scene, words);
        assert_eq!(seen.code, Some(2), "{seen:?}");
    }
    let mut api = Connection::open(scene.admin()).unwrap();
    for body in [
        &b"{}"[..],
        b"{\"on\": 1}",
        b"{\"on\": true, \"retry_after_ms\": 0}",
        b"{\"on\": true, \"x\": 1}",
    ] {
        let fields = ["Content-Type: application/json"];
        let answer =
            api.request("POST", "/api/v1/services/app/maintenance", &fields, body).unwrap();
        assert_eq!(answer.status, 422, "{}", answer.text());
    }
    assert_eq!(rows(&weir), Vec::<Value>::new());
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
}

#[test]
fn the_file_and_the_operator_count_separately_across_reloads() {
    let Some(scene) = Scene::new("maintenance-reload", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let text = |service: &str| config(&scene, app.address(), service);
    let weir = Weir::start(&scene, &text("maintenance = { retry_after = \"30s\" }"));
    let get = || http::get(weir.front(), "/").unwrap();
    let reload = |service: &str| {
        scene.file("weir.toml", text(service));
        let seen = run(&scene, &["reload", "--admin", &scene.admin().to_string()]);
        assert_eq!(seen.code, Some(0), "{seen:?}");
        seen.stdout
    };
    assert_eq!((get().status, get().field("retry-after")), (503, Some("30")));
    assert_eq!(rows(&weir), [json!(["service", "app", true, false])]);
    // An operator cannot end what the file says, and is told so.
    let said = set(&scene, &["app", "--off"]);
    assert_eq!(said, "service app: in maintenance (the configuration file), Retry-After 30s\n");
    assert_eq!(get().status, 503);
    set(&scene, &["app", "--retry-after", "2m"]);
    assert_eq!(get().field("retry-after"), Some("120"));
    assert_eq!(rows(&weir), [json!(["service", "app", true, true])]);

    let receipt = reload("");
    assert!(receipt.contains("maintenance: on, Retry-After 30s → off"), "{receipt}");
    // The operator's stays.
    assert_eq!((get().status, get().field("retry-after")), (503, Some("120")));
    set(&scene, &["app", "--off"]);
    assert_eq!(get().status, 200);
    reload("maintenance = true");
    assert_eq!((get().status, get().field("retry-after")), (503, None));
    reload("");
    assert_eq!(get().status, 200);

    // What leaves the configuration is forgotten.
    set(&scene, &["--route", "public"]);
    scene.file("weir.toml", text("").replace("\"public\"\nservice", "\"renamed\"\nservice"));
    let seen = run(&scene, &["reload", "--admin", &scene.admin().to_string()]);
    assert_eq!(seen.code, Some(0), "{seen:?}");
    assert_eq!(rows(&weir), Vec::<Value>::new());
    reload("");
    assert_eq!(get().status, 200);
}

#[test]
fn an_upgrade_passes_it_on() {
    let Some(scene) = Scene::new("maintenance-upgrade", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let mut weir = Weir::start(&scene, &config(&scene, app.address(), ""));
    set(&scene, &["app", "--retry-after", "5m"]);
    set(&scene, &["--route", "other/a"]);
    let (_, new) = weir.upgrade(SOON);
    let get = |path: &str| http::get(scene.front(), path).unwrap();
    assert_eq!((get("/").status, get("/").field("retry-after")), (503, Some("300")));
    assert_eq!(get("/other").status, 503);
    set(&scene, &["app", "--off"]);
    set(&scene, &["--route", "other/a", "--off"]);
    assert_eq!([get("/").status, get("/other").status], [200, 200]);
    drop(new);
}

#[test]
fn connections_of_a_tcp_listener_are_closed() {
    let Some(scene) = Scene::new("maintenance-tcp", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let tcp = scene.address(1, 8081);
    let text = config(&scene, app.address(), "")
        + &format!(
            "[[listener]]\nname = \"tcp\"\naddress = \"{tcp}\"\nprotocol = \"tcp\"\nservice = \"app\"\n"
        );
    let weir = Weir::start(&scene, &text);
    // An open tunnel goes on.
    let mut open = Connection::open(tcp).unwrap();
    assert_eq!(open.get("/", &[]).unwrap().status, 200);
    set(&scene, &["app"]);
    assert_eq!(open.get("/", &[]).unwrap().status, 200);
    assert!(http::get(tcp, "/").is_err());
    let line = wait::until("the access line", SOON, || {
        weir.access().into_iter().find(|line| line["cause"] == "maintenance")
    });
    assert_eq!((&line["protocol"], &line["listener"]), (&json!("TCP"), &json!("tcp")));
    assert_eq!((&line["status"], &line["server"]), (&Value::Null, &Value::Null));
    set(&scene, &["app", "--off"]);
    assert_eq!(http::get(tcp, "/").unwrap().status, 200);
}

/// Requests that wait when maintenance begins have not reached a server.
#[test]
fn waiting_requests_are_answered_when_their_turn_comes() {
    let Some(scene) = Scene::new("maintenance-queue", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &config(&scene, app.address(), "in_flight_max = 1"));
    let begin = |target: &str| {
        let mut connection = Connection::open(weir.front()).unwrap();
        connection.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
        connection
    };
    let mut first = begin("/?work_ms=1500");
    wait::until("the request at the server", SOON, || (app.stat("in_flight") == 1).then_some(()));
    let mut second = begin("/");
    wait::until("the waiting request", SOON, || (weir.queue_length("app") == 1).then_some(()));
    set(&scene, &["app"]);
    assert_eq!(first.response(false).unwrap().status, 200);
    assert_eq!(second.response(false).unwrap().status, 503);
    assert_eq!(app.stat("requests"), 1);
    set(&scene, &["app", "--off"]);

    // The same with a reload.
    let mut first = begin("/?work_ms=1500");
    wait::until("the request at the server", SOON, || (app.stat("in_flight") == 1).then_some(()));
    let mut second = begin("/");
    wait::until("the waiting request", SOON, || (weir.queue_length("app") == 1).then_some(()));
    scene.file("weir.toml", config(&scene, app.address(), "in_flight_max = 1\nmaintenance = true"));
    let seen = run(&scene, &["reload", "--admin", &scene.admin().to_string()]);
    assert_eq!(seen.code, Some(0), "{seen:?}");
    assert_eq!(first.response(false).unwrap().status, 200);
    assert_eq!(second.response(false).unwrap().status, 503);
    assert_eq!(app.stat("requests"), 2);
}
