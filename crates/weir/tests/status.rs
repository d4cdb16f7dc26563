//! The verbs that ask a running balancer: `weir status`, `weir drain` and its like.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use admin_api::checks::Plan;
use serde_json::Value;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A balancer with its admin API on a Unix socket, and a server behind it that answers everything.
struct Balancer {
    process: Child,
    log: BufReader<ChildStderr>,
    directory: PathBuf,
    server: String,
}

impl Balancer {
    fn start(name: &str) -> Balancer {
        let directory = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                std::thread::spawn(move || answer(stream));
            }
        });
        let at = directory.display();
        fs::write(directory.join("token"), TOKEN).unwrap();
        fs::set_permissions(directory.join("token"), Permissions::from_mode(0o600)).unwrap();
        let text = format!(
            "workers = 1\n\
             connections_max = 100\n\
             admin = {{ address = \"unix:{at}/admin.sock\", token_file = \"{at}/token\" }}\n\
             log = {{ access = \"off\" }}\n\
             listener = [{{ name = \"public\", address = \"127.0.0.1:0\" }}]\n\
             route = [{{ service = \"a/b\" }}]\n\
             [service.\"a/b\"]\n\
             in_flight_max = 4\n\
             check = {{ path = \"/status\", interval = \"20ms\", rise = 1 }}\n\
             server = [{{ address = \"{server}\" }}]\n"
        );
        fs::write(directory.join("weir.toml"), text).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["serve", directory.join("weir.toml").to_str().unwrap()])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "it ended before it was ready");
        }
        Balancer { process, log, directory, server }
    }

    /// `weir` with the flags that lead to this balancer.
    fn weir(&self, words: &[&str]) -> Output {
        let socket = format!("unix:{}", self.directory.join("admin.sock").display());
        let token = self.directory.join("token");
        weir(&[words, &["--admin", &socket, "--token-file", token.to_str().unwrap()]].concat())
    }

    /// What the admin API has at `path`.
    fn get(&self, path: &str) -> Value {
        let mut stream = UnixStream::connect(self.directory.join("admin.sock")).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer {TOKEN}\r\n\
             Connection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{text}");
        serde_json::from_str(body).unwrap()
    }

    /// What `weir status --json` says, once `condition` holds of it.
    fn status_when(&self, condition: impl Fn(&Value) -> bool) -> Value {
        loop {
            let status = serde_json::from_slice(&done(&self.weir(&["status", "--json"]))).unwrap();
            if condition(&status) {
                return status;
            }
        }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // All fail only when there is nothing left to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn answer(mut stream: TcpStream) {
    let mut byte = [0];
    let mut seen = Vec::new();
    while stream.read_exact(&mut byte).is_ok() {
        seen.push(byte[0]);
        if seen.ends_with(b"\r\n\r\n") {
            seen.clear();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
    }
}

fn weir(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(words).stdin(Stdio::null()).output().unwrap()
}

/// What a `weir` that ended well has printed.
#[track_caller]
fn done(output: &Output) -> Vec<u8> {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    output.stdout.clone()
}

#[track_caller]
fn done_text(output: &Output) -> String {
    String::from_utf8(done(output)).unwrap()
}

/// The one line that a `weir` that failed has said.
#[track_caller]
fn failed(output: &Output, code: i32) -> String {
    let errors = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(output.stdout.is_empty());
    errors
}

#[test]
fn a_balancer_shows_what_it_does_and_a_server_is_put_aside_and_back() {
    let balancer = Balancer::start("verbs");
    let server = balancer.server.as_str();
    let status =
        balancer.status_when(|status| status["services"][0]["servers"][0]["health"] == "up");
    assert_eq!(status["ready"], true);
    assert_eq!(status["pid"], balancer.process.id());
    assert_eq!(status["services"][0]["servers"][0]["in_flight_max"], 4);
    let text = done_text(&balancer.weir(&["status"]));
    assert!(text.contains(": ready, up ") && text.contains(server), "{text}");
    assert!(text.contains("a/b: 1 of 1 servers take new work"), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours through a pipe: {text:?}");

    let said = done_text(&balancer.weir(&["drain", "a/b", server]));
    assert_eq!(said.lines().next(), Some(&*format!("{server} of a/b: drain, 0 in flight")));
    let state = |status: &Value| status["services"][0]["servers"][0]["state"].clone();
    assert_eq!(state(&balancer.status_when(|_| true)), "drain");
    done(&balancer.weir(&["maintenance", "a/b", server]));
    assert_eq!(state(&balancer.status_when(|_| true)), "maintenance");
    let said = done_text(&balancer.weir(&["ready", "a/b", server]));
    assert!(said.contains("ready") && said.contains("1 of 1 servers take new work"), "{said}");

    let said = failed(&balancer.weir(&["drain", "a/b", "127.0.0.1:9"]), 2);
    assert!(said.contains("no server at \"127.0.0.1:9\"") && said.contains(server), "{said}");
    let said = failed(&balancer.weir(&["drain", "a", server]), 2);
    assert!(said.contains("no service is named \"a\"") && said.contains("a/b"), "{said}");
}

#[test]
fn what_is_watched_is_shown_again_until_nobody_reads() {
    let balancer = Balancer::start("watch");
    let socket = format!("unix:{}", balancer.directory.join("admin.sock").display());
    let token = balancer.directory.join("token");
    let mut watch = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["status", "--json", "--watch=10ms", "--admin", &socket, "--token-file"])
        .arg(token)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let uptimes: Vec<u64> = lines
        .take(3)
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["uptime_s"].clone())
        .map(|uptime| uptime.as_u64().unwrap())
        .collect();
    assert_eq!(uptimes.len(), 3);
    assert_eq!(watch.wait().unwrap().code(), Some(0));
}

#[test]
fn the_plan_shows_the_results_of_its_probes() {
    let balancer = Balancer::start("plan");
    balancer.status_when(|status| status["services"][0]["servers"][0]["health"] == "up");
    let plan: Plan = serde_json::from_value(balancer.get("/api/v1/checks")).unwrap();
    let endpoint = &plan.endpoints[0];
    assert_eq!((plan.probes, endpoint.probes.len()), (1, 1), "{plan:?}");
    let results = endpoint.results.unwrap();
    assert!(results.ended > 0 && results.last_ms.unwrap() > 0.0, "{plan:?}");
    assert_eq!(results.failed, 0, "{plan:?}");
}

#[test]
fn a_balancer_that_is_not_there_is_one_line() {
    // One of the loopback network's 16 million addresses, which is not in use.
    let address = "127.77.66.55:1";
    let said = failed(&weir(&["status", "--admin", address]), 1);
    assert!(said.starts_with(&format!("weir: nothing listens at {address}")), "{said}");
    let said = failed(&weir(&["drain", "a", "b", "--admin", "unix:/nonexistent/x.sock"]), 1);
    assert!(said.contains("nothing listens at unix:/nonexistent/x.sock"), "{said}");
    let said = failed(&weir(&["status", "--token-file", "/nonexistent/token"]), 2);
    assert!(said.contains("/nonexistent/token"), "{said}");
}

#[test]
fn without_the_token_the_api_says_no_and_the_log_keeps_it() {
    let mut balancer = Balancer::start("token");
    let socket = format!("unix:{}", balancer.directory.join("admin.sock").display());
    let said = failed(&weir(&["status", "--admin", &socket]), 1);
    assert!(said.contains("--token-file"), "{said}");
    let path = balancer.directory.join("admin.sock");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let pid = balancer.process.id().to_string();
    Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap();
    assert_eq!(balancer.process.wait().unwrap().code(), Some(0));
    assert!(!path.exists(), "the socket's file is removed at the end");
    let mut log = String::new();
    balancer.log.read_to_string(&mut log).unwrap();
    assert!(!log.contains(TOKEN), "{log}");
}

#[test]
fn a_token_that_others_may_read_is_one_line_at_the_start() {
    let directory = std::env::temp_dir().join(format!("weir-readable-{}", std::process::id()));
    fs::create_dir(&directory).unwrap();
    let token = directory.join("token");
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, Permissions::from_mode(0o644)).unwrap();
    let file = directory.join("weir.toml");
    let text = format!(
        "admin = {{ address = \"127.0.0.1:0\", token_file = \"{}\" }}\n\
         listener = [{{ address = \"127.0.0.1:0\" }}]\n\
         route = [{{ service = \"s\" }}]\n\
         service.s = {{ server = [{{ address = \"127.0.0.1:5999\" }}] }}\n",
        token.display()
    );
    fs::write(&file, text).unwrap();
    let output = weir(&["serve", file.to_str().unwrap()]);
    fs::remove_dir_all(&directory).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("chmod 600"), "{errors}");
}
