//! `weir serve` from its start to its end: obstacles at the start, signals at the end.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// A configuration file of its own, removed with it.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("weir-{name}-{}.toml", std::process::id()));
        fs::write(&path, text).unwrap();
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn configuration(public: SocketAddr, server: SocketAddr) -> String {
    format!(
        "workers = 2\n\
         connections_max = 100\n\
         admin = {{ address = \"off\" }}\n\
         log = {{ access = \"off\" }}\n\
         listener = [{{ name = \"public\", address = \"{public}\" }}]\n\
         route = [{{ service = \"s\" }}]\n\
         [service.s]\n\
         idle_connections_max = 1\n\
         server = [{{ address = \"{server}\" }}]\n"
    )
}

/// An address that no other test and no other process uses: of the loopback network's 16 million,
/// one for this process and test; the port is none that the system gives away by itself.
fn own_address(name: &str) -> SocketAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    let test = name.bytes().fold(1, u8::wrapping_add);
    SocketAddr::from(([127, test, high, low], 18_473))
}

fn weir(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(words).stdin(Stdio::null());
    command
}

fn serve_fails(file: &str) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = weir(&["serve", file]).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// A balancer before one server that answers on request of the test.
struct Balancer {
    process: Child,
    log: BufReader<ChildStderr>,
    public: SocketAddr,
    server: TcpListener,
    _file: File,
}

impl Balancer {
    fn start(name: &str) -> Balancer {
        Balancer::start_with(name, |text| text, Stdio::inherit())
    }

    fn start_with(name: &str, change: impl Fn(String) -> String, stdout: Stdio) -> Balancer {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        // The log says which port it got in the end.
        let public = own_address(name);
        let text = change(configuration(public, server.local_addr().unwrap()));
        let file = File::new(name, &text);
        let mut command = weir(&["serve", file.0.to_str().unwrap()]);
        let mut process = command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(process.stderr.take().unwrap());
        let mut balancer = Balancer { process, log, public, server, _file: file };
        balancer.read_log_until("ready");
        balancer
    }

    #[track_caller]
    fn read_log_until(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.log.read_line(&mut line).unwrap(), 0, "the log ended without {text:?}");
        }
    }

    /// Sends a request and yields both its ends: the client's, and the server's that has read it.
    fn request_under_way(&self) -> (TcpStream, TcpStream) {
        let mut client = TcpStream::connect(self.public).unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n").unwrap();
        let (mut server, _) = self.server.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            server.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        (client, server)
    }

    fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    fn exit_code(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // Both fail only when it has ended, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn what_runs_is_finished_after_a_signal() {
    let mut balancer = Balancer::start("drain");
    let (mut client, mut server) = balancer.request_under_way();
    balancer.signal("TERM");
    balancer.read_log_until("SIGTERM: stopping");
    server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("Connection: close\r\n"), "{answer}");
    assert!(answer.ends_with("whole"), "{answer}");
    assert_eq!(balancer.exit_code(), Some(0));
    assert!(TcpStream::connect(balancer.public).is_err());
}

#[test]
fn a_second_signal_stops_at_once() {
    let mut balancer = Balancer::start("twice");
    let (mut client, _server) = balancer.request_under_way();
    balancer.signal("INT");
    balancer.read_log_until("SIGINT: stopping");
    balancer.signal("INT");
    assert_eq!(balancer.exit_code(), Some(0));
    balancer.read_log_until("connections were aborted");
    // Closed or reset: either way no answer.
    let mut answer = Vec::new();
    let _ = client.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
}

#[test]
fn who_reads_the_access_log_and_stands_still_does_not_hold_up_the_end() {
    // Answered by the balancer itself, with lines on a pipe that is not read.
    let change = |text: String| {
        let to_stdout = text.replace("access = \"off\"", "access = \"stdout\"");
        to_stdout.replace("route = [{ service", "route = [{ path = \"/no\", service")
    };
    let mut balancer = Balancer::start_with("stuck-log", change, Stdio::piped());
    let mut client = TcpStream::connect(balancer.public).unwrap();
    let request = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(1_000));
    let mut answers = BufReader::new(client.try_clone().unwrap());
    // More than a pipe takes.
    for _ in 0..500 {
        client.write_all(request.as_bytes()).unwrap();
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            assert_ne!(answers.read_line(&mut line).unwrap(), 0, "no answer");
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        answers.read_exact(&mut vec![0; length]).unwrap();
    }
    balancer.signal("TERM");
    balancer.read_log_until("lines are lost");
    assert_eq!(balancer.exit_code(), Some(0));
}

/// Only root can change the user; for others there is nothing to test.
#[test]
fn a_new_access_log_belongs_to_whom_the_balancer_becomes() {
    let folder = std::env::temp_dir().join(format!("weir-owned-log-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    if fs::metadata(&folder).unwrap().uid() == 0 {
        let (log, precious) = (folder.join("access.log"), folder.join("precious"));
        let change = |text: String| {
            let log = format!("access = \"{}\"", log.display());
            format!("user = \"nobody\"\n{}", text.replace("access = \"off\"", &log))
        };
        // What the directory's owner could do before the start.
        std::os::unix::fs::symlink(&precious, &log).unwrap();
        let text = change(configuration(own_address("owned"), "127.0.0.1:9".parse().unwrap()));
        let file = File::new("linked-log", &text);
        let (code, errors) = serve_fails(file.0.to_str().unwrap());
        assert_eq!(code, Some(1), "{errors}");
        assert!(errors.contains("symbolic link"), "{errors}");
        assert!(!precious.exists());

        fs::remove_file(&log).unwrap();
        let mut balancer = Balancer::start_with("owned-log", change, Stdio::inherit());
        assert_ne!(fs::metadata(&log).unwrap().uid(), 0);
        // So it can be opened again by whom it belongs to.
        balancer.signal("HUP");
        balancer.read_log_until("was reopened");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_port_in_use_is_one_line_that_says_how_to_mend_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let file = File::new("taken", &configuration(address, "127.0.0.1:5999".parse().unwrap()));
    let (code, errors) = serve_fails(file.0.to_str().unwrap());
    assert_eq!(code, Some(1));
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains(&address.to_string()) && errors.contains("already in use"), "{errors}");
    assert!(errors.contains("ss -ltnp"), "{errors}");
}

#[test]
fn a_missing_file_is_one_line() {
    let (code, errors) = serve_fails("/nonexistent/weir.toml");
    assert_eq!(code, Some(2));
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("/nonexistent/weir.toml"), "{errors}");
}

#[test]
fn a_mistake_in_the_file_is_shown_with_its_place() {
    let server = "127.0.0.1:5999".parse().unwrap();
    let text = configuration("127.0.0.1:0".parse().unwrap(), server).replace("workers", "wrokers");
    let file = File::new("mistake", &text);
    let (code, errors) = serve_fails(file.0.to_str().unwrap());
    assert_eq!(code, Some(2));
    assert!(errors.contains("wrokers") && errors.contains("did you mean"), "{errors}");
}
