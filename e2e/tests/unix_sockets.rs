//! Servers and listeners on Unix sockets, with nginx, HAProxy and curl at the other end.

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use e2e::clients::curl;
use e2e::rogue::full_unix_queue;
use e2e::{Authority, Haproxy, Nginx, Process, Scene, Weir, http, run, wait};
use rustix::process::Signal;
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);

/// A socket's path in the scene's folder.
fn path(scene: &Scene, name: &str) -> PathBuf {
    scene.folder().join(name)
}

/// The same as an address.
fn address(scene: &Scene, name: &str) -> String {
    format!("unix:{}", path(scene, name).display())
}

/// An nginx that listens on the socket `name`, too.
fn nginx(scene: &Scene, host: u8, name: &str, extra: &str) -> Nginx {
    let listen = format!("listen {}; {extra}", address(scene, name));
    Nginx::start(scene, host, &listen)
}

/// A configuration with one service, and a listener `local` on the socket `http.sock`.
fn config(scene: &Scene, listener: &str, service: &str) -> String {
    let local = address(scene, "http.sock");
    scene.config(
        "workers = 2",
        &format!(
            "[[listener]]\nname = \"local\"\naddress = \"{local}\"\n{listener}\n\
             [[route]]\nservice = \"app\"\n[service.app]\n{service}\n"
        ),
    )
}

/// GET over a Unix socket, on a connection of its own; the status and the body.
fn get(scene: &Scene, name: &str, target: &str, fields: &str) -> std::io::Result<(u16, String)> {
    let mut stream = UnixStream::connect(path(scene, name))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let status = text.get(9..12).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other(format!("no response: {text:?}")))?;
    Ok((status, text.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned()))
}

#[test]
fn a_server_on_a_unix_socket_is_a_server_like_any_other() {
    let Some(scene) = Scene::new("unix-server", &["nginx", "curl"]) else {
        return;
    };
    let folder = scene.folder().display();
    let hosts = format!(
        "location = /host {{ return 200 '$host'; }}
         location /put/ {{ root {folder}; dav_methods PUT; create_full_put_path on; }}"
    );
    let mut one = nginx(&scene, 11, "one.sock", &hosts);
    let two = nginx(&scene, 12, "two.sock", &hosts);
    let servers = [address(&scene, "one.sock"), address(&scene, "two.sock")];
    let service = format!(
        "check = {{ kind = \"http\", path = \"/status\", interval = \"200ms\", fall = 1 }}\n\
         in_flight_max = 50\n\
         server = [{{ address = \"{}\" }}, {{ address = \"{}\" }}, {{ address = \"{}\" }}]",
        servers[0],
        servers[1],
        two.address()
    );
    let weir = Weir::start(&scene, &config(&scene, "", &service));
    let server_of = |response: &http::Response| response.field("x-served-by").unwrap().to_owned();
    let answers: Vec<_> = (0..6).map(|_| http::get(weir.front(), "/").unwrap()).collect();
    assert!(answers.iter().all(|answer| answer.text() == "hello"), "{answers:?}");
    let by_one = answers.iter().filter(|answer| server_of(answer) == "nginx11").count();
    assert_eq!(by_one, 2, "each of the three in turn");
    wait::until("the access lines", SOON, || {
        let lines = weir.access();
        (lines.iter().filter(|line| line["server"] == *servers[0]).count() == 2).then_some(())
    });
    // Without a Host of its own, a request names this machine.
    let named = [0; 3].map(|_| {
        let mut connection = http::Connection::open(weir.front()).unwrap();
        connection.send(b"GET /host HTTP/1.0\r\n\r\n").unwrap();
        String::from_utf8_lossy(&connection.rest().unwrap()).into_owned()
    });
    let local = named.iter().filter(|answer| answer.ends_with("\r\n\r\nlocalhost"));
    assert_eq!(local.count(), 2, "{named:?}");

    // Large bodies move inside the kernel.
    let big: Vec<u8> = (0..20_000_000_u32).map(|n| (n * 7 / 3) as u8).collect();
    scene.file("big", &big);
    for _ in 0..3 {
        let received = http::get(weir.front(), "/files/big").unwrap();
        assert!(received.body == big, "{} bytes", received.body.len());
    }
    let (socket, from) = (path(&scene, "http.sock"), path(&scene, "big"));
    let (socket, from) = (socket.display().to_string(), from.display().to_string());
    for name in ["one", "two", "three"] {
        let url = format!("http://a/put/{name}");
        let put = curl(&scene, &["--unix-socket", &socket, "-f", "-T", &from, &url]);
        assert_eq!(put.code, Some(0), "{put:?}");
        let stored = std::fs::read(scene.folder().join("put").join(name)).unwrap();
        assert!(stored == big, "{name}: {} bytes", stored.len());
        let url = format!("http://a/files/put/{name}");
        let copy = path(&scene, "copy").display().to_string();
        let got = curl(&scene, &["--unix-socket", &socket, "-f", "-o", &copy, &url]);
        assert_eq!(got.code, Some(0), "{got:?}");
        assert!(std::fs::read(&copy).unwrap() == big, "{name}");
    }
    let server = |name: &str| {
        let status = weir.api("/api/v1/services");
        let found = status["services"][0]["servers"].as_array().unwrap().iter();
        found.clone().find(|one| one["name"] == name).cloned().unwrap_or(Value::Null)
    };
    assert_eq!(server(&servers[0])["address"], *servers[0]);
    assert!(weir.metric("weir_server_requests_total", &["app", &servers[0]]) >= 2.0);

    // An operator names it as it is written.
    let admin = scene.admin().to_string();
    let drained = run(&scene, &["drain", "app", &servers[1], "--admin", &admin]);
    assert_eq!(drained.code, Some(0), "{drained:?}");
    wait::until("drained", SOON, || (server(&servers[1])["state"] == "drain").then_some(()));
    // Its process ends: the check notices, and no request fails.
    one.process.kill();
    wait::until("down", SOON, || (server(&servers[0])["health"] == "down").then_some(()));
    let rest: Vec<_> = (0..4).map(|_| http::get(weir.front(), "/").unwrap()).collect();
    assert!(rest.iter().all(|answer| server_of(answer) == "nginx12"), "{rest:?}");
}

#[test]
fn what_is_wrong_with_a_servers_socket_is_said() {
    let Some(scene) = Scene::new("unix-server-faults", &[]) else {
        return;
    };
    // No file; a file without a process; a process that never accepts.
    drop(UnixListener::bind(path(&scene, "left.sock")).unwrap());
    let (full, fill) = full_unix_queue(&path(&scene, "full.sock")).unwrap();
    let service = |name: &str| {
        format!(
            "[service.{name}]\ntimeouts = {{ connect = \"300ms\" }}\nretries = {{ max = 0 }}\npassive = false\n\
             server = [{{ address = \"{}\" }}]\n[[route]]\npath = \"/{name}\"\nservice = \"{name}\"\n",
            address(&scene, &format!("{name}.sock"))
        )
    };
    let rest = ["none", "left", "full"].map(service).concat();
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let begun = Instant::now();
    for (at, status, cause) in [
        ("/none", 502, "connection_refused"),
        ("/left", 502, "connection_refused"),
        ("/full", 504, "listen_queue_full"),
    ] {
        assert_eq!(http::get(weir.front(), at).unwrap().status, status, "{at}");
        let line = wait::until("the access line", SOON, || {
            weir.access().into_iter().find(|line| line["path"] == at)
        });
        assert_eq!(line["cause"], cause, "{line}");
    }
    assert!(begun.elapsed() >= Duration::from_millis(300));
    // Room in the queue: the connection is made while the request waits for it.
    std::thread::scope(|scope| {
        let request = scope.spawn(|| http::get(weir.front(), "/full").map(|answer| answer.status));
        std::thread::sleep(Duration::from_millis(100));
        drop(fill);
        let answer = "HTTP/1.1 204 No Content\r\n\r\n";
        while !request.is_finished() {
            let Ok((mut stream, _)) = full.accept() else { break };
            let mut head = [0; 1_024];
            if stream.read(&mut head).is_ok_and(|count| count > 0) {
                stream.write_all(answer.as_bytes()).unwrap();
                break;
            }
        }
        assert_eq!(request.join().unwrap().unwrap(), 204);
    });
}

#[test]
fn every_protocol_reaches_servers_on_unix_sockets() {
    let Some(scene) = Scene::new("unix-protocols", &["nginx", "curl", "haproxy"]) else {
        return;
    };
    let ca = Authority::new(&scene, "ca");
    let pair = ca.issue("a", &["localhost", "a.example.com"]);
    let (chain, key) = (pair.chain.display(), pair.key.display());
    let extra = format!(
        "listen {} ssl; ssl_certificate {chain}; ssl_certificate_key {key};
         listen {} http2; listen {} proxy_protocol;
         location = /seen {{ return 200 '$proxy_protocol_addr'; }}",
        address(&scene, "tls.sock"),
        address(&scene, "h2.sock"),
        address(&scene, "proxied.sock"),
    );
    let _nginx = nginx(&scene, 11, "clear.sock", &extra);
    let routes: String = [
        ("tls", format!("tls = {{ ca = \"{}\" }}", ca.pem().display())),
        ("named", format!("tls = {{ ca = \"{}\", name = \"a.example.com\" }}", ca.pem().display())),
        ("h2", "http = \"2\"".to_owned()),
        ("proxied", "send_proxy = \"v2\"".to_owned()),
        ("clear", String::new()),
    ]
    .map(|(name, keys)| {
        let socket = if name == "named" { "tls" } else { name };
        let socket = address(&scene, &format!("{socket}.sock"));
        format!(
            "[[route]]\npath = \"/{name}/\"\nrewrite = {{ prefix = \"/\" }}\nservice = \"{name}\"\n\
             [service.{name}]\ncheck = {{ kind = \"http\", path = \"/status\" }}\n{keys}\nserver = [{{ address = \"{socket}\" }}]\n"
        )
    })
    .concat();
    let tcp = scene.address(2, 7000);
    let listener = format!(
        "[[listener]]\nname = \"tcp\"\naddress = \"{tcp}\"\nprotocol = \"tcp\"\nservice = \"clear\"\n"
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &(listener + &routes)));
    for at in ["/tls/", "/named/", "/h2/", "/clear/"] {
        let answer = http::get(weir.front(), at).unwrap();
        assert_eq!((answer.status, answer.text()), (200, "hello".to_owned()), "{at}");
    }
    let own = scene.ip(77);
    let mut from = http::Connection::open_from(own, weir.front()).unwrap();
    assert_eq!(from.get("/proxied/seen", &[]).unwrap().text(), own.to_string());
    assert_eq!(http::get(tcp, "/").unwrap().text(), "hello");
    let services = weir.api("/api/v1/services");
    for service in services["services"].as_array().unwrap() {
        wait::until("up", SOON, || {
            let all = weir.api("/api/v1/services");
            let found = all["services"].as_array().unwrap().iter();
            found
                .clone()
                .find(|one| one["name"] == service["name"])
                .filter(|one| one["servers"][0]["health"] == "up")
                .map(|_| ())
        });
    }
}

#[test]
fn clients_of_a_listener_on_a_unix_socket_are_of_this_machine() {
    let Some(scene) = Scene::new("unix-listener", &["nginx", "curl", "haproxy"]) else {
        return;
    };
    let ca = Authority::new(&scene, "ca");
    let pair = ca.issue("a", &["a.example.com"]);
    let seen = "location = /seen { return 200 '$http_x_forwarded_for'; }";
    let app = Nginx::start(&scene, 11, seen);
    let service = format!("server = [{{ address = \"{}\" }}]", app.address());
    let more = |name: &str, keys: &str| {
        format!(
            "[[listener]]\nname = \"{name}\"\naddress = \"{}\"\n{keys}\n",
            address(&scene, &format!("{name}.sock"))
        )
    };
    let listeners = [
        more("trusting", "trusted = [\"127.0.0.1\"]"),
        more("proxied", "proxy_protocol = [\"127.0.0.1\"]"),
        more("tls", &format!("tls = {{ certificates = [{}] }}", pair.table())),
    ]
    .concat();
    let mut rest = listeners;
    rest += "[[route]]\nclient = [\"127.0.0.1\"]\npath_exact = \"/local\"\nrespond = { status = 200, body = \"local\" }\n";
    let config = config(&scene, "socket = { mode = \"600\" }", &service);
    let config = config.replacen("[[route]]", &format!("{rest}[[route]]"), 1);
    let weir = Weir::start(&scene, &config);
    let mode = |name: &str| path(&scene, name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("http.sock"), mode("trusting.sock")], [0o600, 0o660]);

    assert_eq!(get(&scene, "http.sock", "/", "").unwrap(), (200, "hello".to_owned()));
    assert_eq!(get(&scene, "http.sock", "/local", "").unwrap().1, "local");
    // What a client states counts only from peers that are trusted.
    let forged = "X-Forwarded-For: 192.0.2.9\r\n";
    assert_eq!(get(&scene, "http.sock", "/seen", forged).unwrap().1, "127.0.0.1");
    assert_eq!(get(&scene, "trusting.sock", "/seen", forged).unwrap().1, "192.0.2.9, 127.0.0.1");
    assert_eq!(get(&scene, "trusting.sock", "/local", forged).unwrap().0, 404);
    let line = wait::until("the access line", SOON, || {
        weir.access().into_iter().find(|line| line["path"] == "/local" && line["status"] == 404)
    });
    assert_eq!((&line["client"], &line["peer"]), (&"192.0.2.9".into(), &"127.0.0.1".into()));

    // HAProxy hands clients on over the socket, with their addresses.
    let front = scene.address(50, 9000);
    let haproxy = format!(
        "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 20s\n  timeout server 20s\n\
         listen in\n  bind {front}\n  server weir unix@{} send-proxy-v2\n",
        path(&scene, "proxied.sock").display()
    );
    let _haproxy = Haproxy::start(&scene, &haproxy, front);
    let own = scene.ip(77);
    let mut from = http::Connection::open_from(own, front).unwrap();
    assert_eq!(from.get("/seen", &[]).unwrap().text(), own.to_string());

    // TLS and HTTP/2, as over TCP.
    let socket = path(&scene, "tls.sock").display().to_string();
    let root = ca.pem().display().to_string();
    for version in ["--http1.1", "--http2"] {
        let words = [
            "--unix-socket",
            &socket,
            "--cacert",
            &root,
            version,
            "-w",
            " %{http_version}",
            "https://a.example.com/",
        ];
        let answer = curl(&scene, &words);
        let expected = if version == "--http2" { "hello 2" } else { "hello 1.1" };
        assert_eq!(answer.stdout, expected, "{answer:?}");
    }
    let status = run(&scene, &["status", "--admin", &scene.admin().to_string()]);
    assert!(
        status.stdout.contains(&format!("local ({})", address(&scene, "http.sock"))),
        "{status:?}"
    );
}

/// Ends the clients of a test when it is dropped.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn no_request_is_lost_when_a_listeners_socket_changes_hands() {
    let Some(scene) = Scene::new("unix-changes", &["nginx"]) else {
        return;
    };
    let app = Nginx::start(&scene, 11, "");
    let service = format!("server = [{{ address = \"{}\" }}]", app.address());
    let with = |listener: &str| config(&scene, listener, &service);
    // A file that an earlier process left.
    drop(UnixListener::bind(path(&scene, "http.sock")).unwrap());
    let mut weir = Weir::start(&scene, &with(""));
    let mode =
        || path(&scene, "http.sock").metadata().map(|file| file.permissions().mode() & 0o777);
    assert_eq!(mode().unwrap(), 0o660);
    let inode = || path(&scene, "http.sock").metadata().unwrap().ino();

    let (done, answered, failed) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let successor = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    match get(&scene, "http.sock", "/", "") {
                        Ok((200, _)) => answered.fetch_add(1, Relaxed),
                        other => {
                            eprintln!("{other:?}");
                            failed.fetch_add(1, Relaxed)
                        }
                    };
                }
            });
        }
        // However this ends.
        let _done = Done(&done);
        let some = |what: &str| {
            let from = answered.load(Relaxed);
            wait::until(what, SOON, || (answered.load(Relaxed) > from + 50).then_some(()));
        };
        some("requests");
        // The same socket, though the listener has another name and backlog.
        let before = inode();
        let renamed = with("backlog = 64").replace("name = \"local\"", "name = \"renamed\"");
        scene.file("weir.toml", &renamed);
        assert_eq!(weir.ask("/api/v1/reload").status, 200);
        some("requests after a reload");
        assert_eq!(inode(), before);
        // A reload that fails changes nothing.
        let taken = format!("[[listener]]\naddress = \"{}\"\n", app.address());
        scene.file("weir.toml", with("socket = { mode = \"666\" }") + &taken);
        assert_ne!(weir.ask("/api/v1/reload").status, 200);
        some("requests after a reload that failed");
        assert_eq!((inode(), mode().unwrap()), (before, 0o660));
        assert!(!path(&scene, "http.sock.new").exists());
        // Others have access: connections stay.
        scene.file("weir.toml", with(""));
        assert_eq!(weir.ask("/api/v1/reload").status, 200);
        some("requests after the name is back");
        let mut kept = UnixStream::connect(path(&scene, "http.sock")).unwrap();
        scene.file("weir.toml", with("socket = { mode = \"666\" }"));
        assert_eq!(weir.ask("/api/v1/reload").status, 200);
        assert_eq!((inode(), mode().unwrap()), (before, 0o666));
        kept.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        kept.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        // An upgrade that fails leaves this process its socket, whatever the new one would change.
        let folder = scene.folder().display();
        let failing =
            format!("{}[log]\naccess = \"{folder}\"\n", with("socket = { mode = \"600\" }"));
        scene.file("weir.toml", failing);
        assert_ne!(weir.ask("/api/v1/upgrade").status, 200);
        some("requests after an upgrade that failed");
        assert_eq!((inode(), mode().unwrap()), (before, 0o666));
        scene.file("weir.toml", with("socket = { mode = \"666\" }"));
        // A new process takes it over.
        let (_, successor) = weir.upgrade(Duration::from_secs(30));
        some("requests to the new process");
        assert_eq!(inode(), before);
        successor
    });
    assert_eq!(failed.load(Relaxed), 0, "of {}", answered.load(Relaxed));

    // A second balancer leaves it alone.
    let second = scene.file(
        "second.toml",
        format!("[admin]\naddress = \"off\"\n[[listener]]\naddress = \"{}\"\n[[route]]\nrespond = {{ status = 200, body = \"\" }}\n",
            address(&scene, "http.sock")),
    );
    let refused = run(&scene, &["serve", &second.display().to_string()]);
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("another program does already"), "{refused:?}");
    assert_eq!(get(&scene, "http.sock", "/", "").unwrap().0, 200);

    // The listener goes, and its file with it; so does a stop with what is left.
    let other = with("").replace("http.sock", "other.sock");
    scene.file("weir.toml", &other);
    let admin = |target: &str| {
        let mut connection = http::Connection::open(scene.admin()).unwrap();
        connection.request("POST", target, &[], b"").unwrap()
    };
    assert_eq!(admin("/api/v1/reload").status, 200);
    assert!(!path(&scene, "http.sock").exists());
    assert_eq!(get(&scene, "other.sock", "/", "").unwrap().0, 200);
    // A file that was removed by hand is made again; another program's is left alone.
    std::fs::remove_file(path(&scene, "other.sock")).unwrap();
    assert_eq!(admin("/api/v1/reload").status, 200);
    assert_eq!(get(&scene, "other.sock", "/", "").unwrap().0, 200);
    std::fs::remove_file(path(&scene, "other.sock")).unwrap();
    scene.file("other.sock", "precious");
    for target in ["/api/v1/reload", "/api/v1/upgrade"] {
        assert_ne!(admin(target).status, 200, "{target}");
    }
    assert_eq!(std::fs::read(path(&scene, "other.sock")).unwrap(), b"precious");
    std::fs::remove_file(path(&scene, "other.sock")).unwrap();
    assert_eq!(admin("/api/v1/reload").status, 200);
    successor.signal(Signal::TERM);
    wait::until("the end", SOON, || (!successor.is_running()).then_some(()));
    assert!(!path(&scene, "other.sock").exists());
}

/// Once privileges are dropped, files and upgrades are the user's.
#[test]
fn a_user_without_privileges_keeps_its_sockets() {
    let Some(scene) = Scene::new("unix-user", &[]) else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // Where that user may go, and with a program that it may start again.
    let program = path(&scene, "weir");
    std::fs::copy(e2e::binary(), &program).unwrap();
    let everybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(scene.folder(), everybody).unwrap();
    let text = |listener: &str| {
        format!(
            "user = \"nobody\"\n{}[[route]]\nrespond = {{ status = 200, body = \"here\" }}\n",
            scene.config(
                "",
                &format!(
                    "[[listener]]\nname = \"local\"\naddress = \"{}\"\n{listener}\n",
                    address(&scene, "http.sock")
                )
            )
        )
    };
    let file = scene.file("weir.toml", text(""));
    let words = ["serve".as_ref(), file.as_os_str()];
    let mut first = Process::start(&scene, "weir", &program, words);
    wait::until("it to serve", SOON, || get(&scene, "http.sock", "/", "").ok());
    let owner =
        |name: &str| path(&scene, name).metadata().map(|file| (file.uid(), file.mode() & 0o777));
    let (uid, mode) = owner("http.sock").unwrap();
    assert!(uid != 0 && mode == 0o660, "{uid} {mode:o}");
    let admin = |target: &str| {
        let mut connection = http::Connection::open(scene.admin()).unwrap();
        connection.request("POST", target, &[], b"").unwrap()
    };
    // Its own group, but no other.
    scene.file("weir.toml", text("socket = { mode = \"600\" }"));
    assert_eq!(admin("/api/v1/reload").status, 200);
    assert_eq!(owner("http.sock").unwrap(), (uid, 0o600));
    scene.file("weir.toml", text("socket = { mode = \"600\", group = \"root\" }"));
    let refused = admin("/api/v1/reload");
    assert!(
        refused.status != 200 && refused.text().contains("only root can"),
        "{}",
        refused.text()
    );
    scene.file("weir.toml", text("socket = { mode = \"666\" }"));
    let upgraded = admin("/api/v1/upgrade");
    assert_eq!(upgraded.status, 200, "{}", upgraded.text());
    let successor = e2e::NewProcess::of(&upgraded.json());
    first.wait(Duration::from_secs(30));
    assert_eq!(get(&scene, "http.sock", "/", "").unwrap().1, "here");
    assert_eq!(owner("http.sock").unwrap(), (uid, 0o666));
    successor.signal(Signal::TERM);
    wait::until("the end", SOON, || (!successor.is_running()).then_some(()));
    assert!(!path(&scene, "http.sock").exists());

    // A start that fails leaves nothing.
    let failing = format!("{}[log]\naccess = \"{}\"\n", text(""), scene.folder().display());
    let file = scene.file("weir.toml", failing);
    let failed = run(&scene, &["serve", &file.display().to_string()]);
    assert_ne!(failed.code, Some(0), "{failed:?}");
    assert!(!path(&scene, "http.sock").exists() && !path(&scene, "http.sock.new").exists());
}
