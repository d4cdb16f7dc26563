//! Start and stop: errors at startup, what happens to requests during a stop, and what `weir check`, `weir schema` and `weir demo` print.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use e2e::{App, Finished, NAMESPACES, Scene, Weir, Zones, binary, http, run, run_by, wait};

/// A configuration that is fine, for servers that need not exist. It asks for few connections, so
/// that no machine's limit on open files is worth a warning.
fn valid(scene: &Scene) -> String {
    let config = scene.one_service("", &[scene.address(11, 8080)]);
    format!("connections_max = 1000\n{config}")
}

/// The one line that `finished` wrote to standard error.
fn one_line(finished: &Finished) -> &str {
    let lines: Vec<&str> = finished.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    assert_eq!(lines.len(), 1, "one line, not: {}", finished.stderr);
    lines[0]
}

#[test]
fn a_missing_file_is_said_in_one_line() {
    let Some(scene) = Scene::new("life-missing", &[]) else {
        return;
    };
    for verb in ["serve", "check"] {
        let finished = run(&scene, &[verb, "/nowhere/weir.toml"]);
        assert!(matches!(finished.code, Some(1 | 2)), "{finished:?}");
        let line = one_line(&finished);
        assert!(line.contains("/nowhere/weir.toml"), "{line}");
    }
}

#[test]
fn a_port_in_use_is_said_in_one_line() {
    let Some(scene) = Scene::new("life-port", &[]) else {
        return;
    };
    let _taken = std::net::TcpListener::bind(scene.front()).unwrap();
    let file = scene.file("weir.toml", valid(&scene));
    let finished = run(&scene, &["serve", &file.to_string_lossy()]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let line = one_line(&finished).to_lowercase();
    assert!(line.contains(&scene.front().to_string()) && line.contains("in use"), "{line}");
}

#[test]
fn a_second_weir_on_the_same_address_is_refused() {
    let Some(scene) = Scene::new("life-second", &[]) else {
        return;
    };
    let weir = Weir::start(&scene, &valid(&scene));
    // SO_REUSEPORT alone would let it share the port in silence.
    let text = valid(&scene).replace(":9900", ":9901");
    let file = scene.file("second.toml", text);
    let finished = run(&scene, &["serve", &file.to_string_lossy()]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(one_line(&finished).contains(&weir.front().to_string()), "{finished:?}");
}

#[test]
fn no_permission_is_said_in_one_line() {
    let needs = ["setpriv", NAMESPACES];
    let Some(scene) = Scene::new("life-permission", &needs) else {
        return;
    };
    // The user `nobody` must be able to run the program, wherever it was built.
    let program = scene.folder().join("weir");
    std::fs::copy(binary(), &program).unwrap();
    let nobody = |words: &[&str]| {
        let program = program.to_string_lossy();
        let by = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", &*program];
        run_by(&scene, &by, words)
    };
    let secret = scene.file("secret.toml", valid(&scene));
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    let finished = nobody(&["check", &secret.to_string_lossy()]);
    assert!(matches!(finished.code, Some(1 | 2)), "{finished:?}");
    let line = one_line(&finished);
    assert!(line.contains("secret.toml") && line.to_lowercase().contains("permission"), "{line}");

    // In a namespace of its own ports below 1024 are privileged, whatever the machine says.
    Zones::run(&[], |_| {
        let text = valid(&scene).replace(&scene.front().to_string(), "127.0.0.1:80");
        let file = scene.file("low-port.toml", text);
        let finished = nobody(&["serve", &file.to_string_lossy()]);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        let line = one_line(&finished);
        assert!(line.contains("127.0.0.1:80"), "{line}");
        assert!(line.to_lowercase().contains("permission") || line.contains("1024"), "{line}");
    });
}

#[test]
fn every_mistake_is_said_at_once_with_its_place() {
    let Some(scene) = Scene::new("life-mistakes", &[]) else {
        return;
    };
    let text = "workers = 2\n\
                [[listener]]\n\
                adress = \"0.0.0.0:8080\"\n\
                [[route]]\n\
                service = \"listing\"\n\
                [service.listings]\n\
                in_flight_max = \"four\"\n\
                queue = { wait_max = \"5 sec\" }\n\
                [[service.listings.server]]\n\
                address = \"10.0.1.5\"\n";
    let file = scene.file("wrong.toml", text);
    for verb in ["check", "serve"] {
        let finished = run(&scene, &[verb, &file.to_string_lossy()]);
        assert_eq!(finished.code, Some(2), "{verb}: {finished:?}");
        let said = finished.stdout + &finished.stderr;
        for line in [3, 5, 7, 8, 10] {
            assert!(said.contains(&format!("wrong.toml:{line}:")), "{verb}: line {line} of {said}");
        }
        assert!(said.contains("did you mean"), "{verb}: {said}");
        for meant in ["address", "listings", "5s"] {
            assert!(said.contains(meant), "{verb}: {meant} in {said}");
        }
    }
}

#[test]
fn two_limits_for_one_address_and_two_equal_routes_are_mistakes() {
    let Some(scene) = Scene::new("life-limits", &[]) else {
        return;
    };
    let service = |name: &str, limit: u32| {
        let servers = e2e::server_tables(name, ["10.0.1.5:8080"]);
        format!("[service.{name}]\nin_flight_max = {limit}\n{servers}")
    };
    let route = |service: &str| format!("[[route]]\npath = \"/same\"\nservice = \"{service}\"\n");
    let limits = service("one", 4) + &service("two", 5);
    let text = scene.config("", &(route("one") + &limits));
    let finished = run(&scene, &["check", &scene.file("limits.toml", text).to_string_lossy()]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!((finished.stdout + &finished.stderr).contains("10.0.1.5:8080"));

    let services = service("one", 4) + &service("two", 4);
    let text = scene.config("", &(route("one") + &route("two") + &services));
    let finished = run(&scene, &["check", &scene.file("routes.toml", text).to_string_lossy()]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!((finished.stdout + &finished.stderr).contains("/same"));
}

#[test]
fn check_says_what_the_file_will_do() {
    let Some(scene) = Scene::new("life-check", &[]) else {
        return;
    };
    let text = scene.config(
        "zone = \"a\"",
        "[[route]]\nservice = \"app\"\n\
         [[route]]\nhost = \"api.example.com\"\npath = \"/listings\"\nservice = \"app\"\n\
         [service.app]\ncheck = { path = \"/status\" }\n\
         [[service.app.server]]\naddress = \"10.0.1.5:8080\"\nzone = \"a\"\n\
         [[service.app.server]]\naddress = \"10.0.2.5:8080\"\nzone = \"b\"\n",
    );
    let finished = run(&scene, &["check", &scene.file("weir.toml", text).to_string_lossy()]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let said = finished.stdout;
    let front = scene.front().to_string();
    for word in [&front, "api.example.com", "/listings", "10.0.1.5:8080", "10.0.2.5:8080", "probe"]
    {
        assert!(said.contains(word), "{word} in {said}");
    }
}

#[test]
fn the_configurations_in_the_documents_are_valid() {
    let Some(scene) = Scene::new("life-documents", &[]) else {
        return;
    };
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let readme = read("README.md");
    let first = readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let first = first.expect("a first configuration in README.md");
    assert!(first.lines().count() <= 10, "a first configuration fits ten lines");
    let packaged = read("packaging/weir.toml");
    // Where the unit makes its directory; here there is another.
    let logs = scene.folder().to_string_lossy().into_owned();
    assert!(packaged.contains("access = \"/var/log/weir/"), "{packaged}");
    let packaged = packaged.replace("/var/log/weir", &logs);
    for (name, text) in [("readme.toml", first), ("packaging.toml", &*packaged)] {
        let finished = run(&scene, &["check", &scene.file(name, text).to_string_lossy()]);
        assert_eq!(finished.code, Some(0), "{name}: {finished:?}");
    }
}

#[test]
fn schema_is_json() {
    let Some(scene) = Scene::new("life-schema", &[]) else {
        return;
    };
    let finished = run(&scene, &["schema"]);
    assert_eq!(finished.code, Some(0));
    let schema: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert!(schema["$schema"].is_string() && schema["properties"]["listener"].is_object());
}

#[test]
fn a_backlog_that_is_not_granted_is_said_with_both_numbers() {
    let Some(scene) = Scene::new("life-backlog", &[]) else {
        return;
    };
    let text = valid(&scene).replace("name = \"public\"", "name = \"public\"\nbacklog = 7654321");
    let weir = Weir::start(&scene, &text);
    let granted = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    weir.wait_for_log(&["7654321", granted.trim()], Duration::from_secs(5));
}

#[test]
fn sigterm_finishes_what_runs_and_refuses_what_comes() {
    let Some(scene) = Scene::new("life-drain", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let mut weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let front = weir.front();
    let mut idle = http::Connection::open(front).unwrap();
    assert_eq!(idle.get("/", &[]).unwrap().status, 200);
    wait::measure_for(http::SILENCE);
    let mut running = http::Connection::open(front).unwrap();
    running.send(b"GET /?work_ms=5000 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let in_flight = || (app.stat("in_flight") == 1).then_some(());
    wait::until("the request to run", Duration::from_secs(5), in_flight);

    weir.begin_to_stop();
    wait::until("connections to be refused", Duration::from_secs(4), || {
        std::net::TcpStream::connect(front).err()
    });
    assert!(idle.is_closed_within(Duration::from_secs(4)), "an idle connection is closed");
    assert_eq!(app.stat("in_flight"), 1, "while the request still runs");
    let answer = running.response(false).unwrap();
    assert_eq!(answer.status, 200);
    let connection = answer.field("connection").unwrap_or_default().to_lowercase();
    assert_eq!(connection, "close", "{}", answer.head);
    assert_eq!(weir.wait(Duration::from_secs(10)).code, Some(0));
}

#[test]
fn a_client_that_waits_at_the_connection_limit_is_served_before_the_stop() {
    let Some(scene) = Scene::new("life-drain-limit", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let config = scene.one_service("", &[app.address()]);
    let mut weir = Weir::start(&scene, &format!("connections_max = 1\n{config}"));
    let mut running = http::Connection::open(weir.front()).unwrap();
    running.send(b"GET /?work_ms=2000 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let in_flight = || (app.stat("in_flight") == 1).then_some(());
    wait::until("the request to run", Duration::from_secs(5), in_flight);
    // The kernel has accepted it; Weir has no room for it.
    let mut waiting = http::Connection::open(weir.front()).unwrap();
    waiting.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    weir.begin_to_stop();
    assert_eq!(running.response(false).unwrap().status, 200);
    assert_eq!(waiting.response(false).unwrap().status, 200);
    assert_eq!(weir.wait(Duration::from_secs(10)).code, Some(0));
}

#[test]
fn draining_ends_at_its_limit() {
    let Some(scene) = Scene::new("life-drain-max", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let config = format!("drain_max = \"300ms\"\n{}", scene.one_service("", &[app.address()]));
    let mut weir = Weir::start(&scene, &config);
    let mut running = http::Connection::open(weir.front()).unwrap();
    running.send(b"GET /?work_ms=20000 HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let in_flight = || (app.stat("in_flight") == 1).then_some(());
    wait::until("the request to run", Duration::from_secs(5), in_flight);
    weir.begin_to_stop();
    let finished = weir.wait(Duration::from_secs(3));
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[test]
fn the_demo_needs_nothing_and_says_where_to_look() {
    let Some(scene) = Scene::new("life-demo", &[NAMESPACES]) else {
        return;
    };
    // A network of its own, so that its usual ports are free.
    Zones::run(&[], |_| {
        let finished = run(&scene, &["demo", "--for", "3s"]);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let said = finished.stdout + &finished.stderr;
        assert!(said.contains("http://127.0.0.1:"), "{said}");
    });
}
