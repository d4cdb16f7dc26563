//! The way in: tokens and Unix sockets.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use admin::Door;
use model::{Address, Admin};

use crate::rig::{Api, sources};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A directory of its own, removed with everything in it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("weir-door-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn without_the_token_nothing_is_told() {
    let api = Api::with_token(TOKEN);
    for path in ["/", "/metrics", "/api/v1/status", "/nothing"] {
        let answer = api.get(path);
        answer.problem(401, "token_missing");
        assert!(answer.head.contains("www-authenticate: bearer\r\n"), "{}", answer.head);
        assert!(answer.head.contains("cache-control: no-store"), "{}", answer.head);
    }
    let path = "/api/v1/services/listings/servers/127.0.0.1:5001/state";
    api.post(path, r#"{"state": "drain"}"#).problem(401, "token_missing");
    assert!(api.registry.current().services[0].endpoints().all[0].state.is_ready());
}

#[test]
fn only_the_token_opens() {
    let api = Api::with_token(TOKEN);
    let status = |field: &str| api.get_with("/api/v1/status", field);
    assert_eq!(status(&format!("Authorization: Bearer {TOKEN}")).status, 200);
    assert_eq!(status(&format!("authorization: bearer {TOKEN}")).status, 200);
    let wrong = [
        format!("Authorization: Bearer {}", &TOKEN[1..]),
        format!("Authorization: Bearer {TOKEN}0"),
        format!("Authorization: Basic {TOKEN}"),
        format!("Authorization: {TOKEN}"),
        "Authorization: Bearer".to_owned(),
        format!("Authorization: Bearer {TOKEN}\r\nAuthorization: Bearer {TOKEN}"),
    ];
    for field in wrong {
        let answer = status(&field);
        answer.problem(401, "token_wrong");
        let challenge = "www-authenticate: bearer error=\"invalid_token\"";
        assert!(answer.head.contains(challenge), "{field}: {}", answer.head);
        assert!(!answer.body.contains(TOKEN));
    }
    // Who has it may still not be a web page.
    let page = format!("Authorization: Bearer {TOKEN}\r\nOrigin: https://evil.example");
    status(&page).problem(403, "origin_not_allowed");
}

#[test]
fn connections_that_ask_for_nothing_do_not_lock_out_those_that_do() {
    let api = Api::with_token(TOKEN);
    let Address::Ip(address) = api.handle.address() else { panic!("on loopback") };
    let open = || TcpStream::connect(address).unwrap();
    let host = api.authority();
    // One with the token, which is idle; beside it many without, silent or with half a request.
    let allowed = format!(
        "GET /api/v1/status HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    );
    let mut kept = open();
    kept.write_all(allowed.as_bytes()).unwrap();
    assert!(kept.read(&mut vec![0; 64 * 1024]).unwrap() > 0);
    let mut idle: Vec<TcpStream> = (0..70).map(|_| open()).collect();
    for half in idle.iter_mut().step_by(2) {
        half.write_all(b"GET /api/v1/status HTTP/1.1\r\n").unwrap();
    }
    let asked = os::clock::now();
    let field = format!("Authorization: Bearer {TOKEN}");
    assert_eq!(api.get_with("/api/v1/status", &field).status, 200);
    let waited = os::clock::now() - asked;
    assert!(waited < Duration::from_secs(2), "answered after {waited:?}");
    // The one with the token was not what made room.
    kept.write_all(allowed.as_bytes()).unwrap();
    assert!(kept.read(&mut vec![0; 64 * 1024]).unwrap() > 0);
    // What is silent, or never ends its request, is closed within seconds: an end or a reset.
    for mut silent in idle {
        silent.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
        let closed = match silent.read(&mut [0; 1]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        };
        assert!(closed);
    }
}

fn unix(path: &Path) -> Address {
    format!("unix:{}", path.display()).parse().unwrap()
}

#[test]
fn a_unix_socket_serves_whoever_may_open_it() {
    let directory = Directory::new("unix");
    let path = directory.0.join("admin.sock");
    let token_file = directory.0.join("token");
    fs::write(&token_file, format!("{TOKEN}\n")).unwrap();
    fs::set_permissions(&token_file, Permissions::from_mode(0o600)).unwrap();
    let mut admin = Admin { address: unix(&path), token_file: None };
    let api = Api::behind(Door::open(&admin, None).unwrap(), sources());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(api.get("/api/v1/status").json()["workers"], 3);
    // Any word is good here, for instance the one that curl was given.
    let any = "GET /api/v1/status HTTP/1.1\r\nHost: weir\r\n";
    assert_eq!(api.send(any, "").status, 200);
    // Through a tunnel, browsers reach it as well.
    let tunnelled = "GET /api/v1/status HTTP/1.1\r\nHost: evil.example:8080\r\n";
    api.send(tunnelled, "").problem(421, "host_not_allowed");
    let page = |origin: &str| api.get_with("/", &format!("Origin: {origin}"));
    assert_eq!(page("http://localhost").status, 200);
    page("http://localhost:8080").problem(403, "origin_not_allowed");

    // A second one does not replace the first.
    let error = Door::open(&admin, None).unwrap_err();
    assert!(error.is_address_in_use());
    assert_eq!(error.to_string().lines().count(), 1);
    assert_eq!(api.get("/api/v1/status").status, 200);
    api.handle.stop();
    assert!(!path.exists());

    admin.token_file = Some(token_file);
    let door = Door::open(&admin, None).unwrap();
    let with_another_process = door.as_fd().try_clone_to_owned().unwrap();
    let api = Api::behind(door, sources());
    api.get("/api/v1/status").problem(401, "token_missing");
    let field = format!("Authorization: Bearer {TOKEN}");
    assert_eq!(api.get_with("/api/v1/status", &field).status, 200);
    // Another process listens on it, too.
    api.handle.stop();
    assert!(path.exists());
    drop(with_another_process);
}

#[test]
fn a_door_that_cannot_be_opened_says_why_in_one_line() {
    let directory = Directory::new("shut");
    let tcp = |text: &str| Address::Ip(text.parse().unwrap());
    let readable = directory.0.join("readable");
    fs::write(&readable, TOKEN).unwrap();
    fs::set_permissions(&readable, Permissions::from_mode(0o644)).unwrap();
    let cases = [
        (tcp("192.0.2.1:9900"), None, "TLS"),
        (tcp("127.0.0.1:0"), Some(directory.0.join("none")), "openssl rand"),
        (tcp("127.0.0.1:0"), Some(readable), "chmod 600"),
        (unix(&directory.0.join("no/admin.sock")), None, "make the directory"),
    ];
    for (address, token_file, said) in cases {
        let message = Door::open(&Admin { address, token_file }, None).unwrap_err().to_string();
        assert!(message.contains(said), "{message}");
        assert_eq!(message.lines().count(), 1);
    }
}
