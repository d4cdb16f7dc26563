//! Commands to a balancer during an upgrade. The new process is a program that waits for the test to
//! decide its fate, so that nothing depends on time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

/// A folder of its own, removed with everything in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An address of loopback that is this process's and this test's own.
fn own_address(test: u8, port: u16) -> SocketAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, test, high, low], port))
}

fn command(program: &str, words: &[&str]) {
    assert!(Command::new(program).args(words).status().unwrap().success());
}

/// A balancer whose program is exchanged for one that waits at a pipe: `go` makes it the balancer
/// that it stands for, anything else lets it fail.
struct Balancer {
    process: Child,
    log: BufReader<ChildStderr>,
    admin: SocketAddr,
    public: SocketAddr,
    folder: Folder,
}

impl Balancer {
    fn start(name: &str, test: u8) -> Balancer {
        let folder = Folder::new(name);
        let at = |name: &str| folder.0.join(name);
        let (public, admin) = (own_address(test, 18_473), own_address(test, 18_474));
        let text = format!(
            "workers = 1\nconnections_max = 100\nadmin = {{ address = \"{admin}\" }}\n\
             log = {{ access = \"{}\" }}\nreload = {{ watch = false }}\n\
             listener = [{{ name = \"public\", address = \"{public}\" }}]\n\
             route = [{{ deny = 403 }}, {{ path = \"/s\", service = \"s\" }}]\n\
             [service.s]\nserver = [{{ address = \"127.0.0.1:9\" }}]\n",
            at("access.log").display()
        );
        fs::write(at("weir.toml"), text).unwrap();
        let weir = env!("CARGO_BIN_EXE_weir");
        symlink(weir, at("weir")).unwrap();
        let mut process = Command::new(at("weir"))
            .args(["serve".as_ref(), at("weir.toml").as_os_str()])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(process.stderr.take().unwrap());
        let mut balancer = Balancer { process, log, admin, public, folder };
        balancer.read_log_until("ready");

        let pipe = balancer.at("pipe");
        command("mkfifo", &[pipe.to_str().unwrap()]);
        let script = format!(
            "#!/bin/sh\nread word <'{}'\n[ \"$word\" = go ] && exec '{weir}' \"$@\"\nexit 3\n",
            pipe.display()
        );
        fs::write(balancer.at("waits"), script).unwrap();
        fs::set_permissions(balancer.at("waits"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(balancer.at("weir")).unwrap();
        symlink(balancer.at("waits"), balancer.at("weir")).unwrap();
        balancer
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    /// The first line from here on that contains `text`.
    #[track_caller]
    fn read_log_until(&mut self, text: &str) -> String {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.log.read_line(&mut line).unwrap(), 0, "the log ended without {text:?}");
        }
        line
    }

    /// Reads on until a line contains one of `texts`, and yields which.
    #[track_caller]
    fn read_log_until_any(&mut self, texts: [&str; 2]) -> usize {
        let mut line = String::new();
        loop {
            if let Some(found) = texts.iter().position(|text| line.contains(text)) {
                return found;
            }
            line.clear();
            assert_ne!(
                self.log.read_line(&mut line).unwrap(),
                0,
                "the log ended without {texts:?}"
            );
        }
    }

    fn signal(&self, name: &str) {
        command("kill", &["-s", name, &self.process.id().to_string()]);
    }

    /// A new process has been started, and waits.
    fn begin_upgrade(&mut self) {
        self.signal("USR2");
        self.read_log_until("a new process is starting");
    }

    /// Tells the new process what becomes of it.
    fn tell(&self, word: &str) {
        fs::write(self.at("pipe"), format!("{word}\n")).unwrap();
    }

    /// The status of an answer to a request, and all of it.
    fn ask(to: SocketAddr, method: &str, path: &str, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(to).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap_or_default().to_owned(), answer)
    }

    fn drain(&self) -> (String, String) {
        let path = "/api/v1/services/s/servers/127.0.0.1:9/state";
        Balancer::ask(self.admin, "POST", path, r#"{"state": "drain"}"#)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // Both fail only when it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Renames the log as logrotate does. A new one appears under the old name.
fn move_away(log: &Path) {
    fs::rename(log, log.with_extension("1")).unwrap();
}

#[test]
fn what_is_said_during_an_upgrade_that_fails_is_refused_or_made_up_for() {
    let mut balancer = Balancer::start("upgrade-fails", 201);
    balancer.begin_upgrade();
    let (status, answer) = balancer.drain();
    assert_eq!(status, "503", "{answer}");
    assert!(answer.contains("upgrade_under_way"), "{answer}");

    // The log is reopened at once, and the configuration read when the upgrade has ended.
    let log = balancer.at("access.log");
    move_away(&log);
    let text = fs::read_to_string(balancer.at("weir.toml")).unwrap();
    fs::write(balancer.at("weir.toml"), text.replace("deny = 403", "deny = 410")).unwrap();
    balancer.signal("HUP");
    balancer.read_log_until("an upgrade is in progress");
    assert!(log.exists(), "opened before it is said");
    assert_eq!(Balancer::ask(balancer.public, "GET", "/", "").0, "403");

    balancer.tell("fail");
    balancer.read_log_until("continues to serve");
    let line = balancer.read_log_until("reloaded");
    assert!(line.contains("SIGHUP"), "{line}");
    assert_eq!(Balancer::ask(balancer.public, "GET", "/", "").0, "410");
    let (status, answer) = balancer.drain();
    assert_eq!(status, "200", "{answer}");
}

#[test]
fn a_signal_during_an_upgrade_reaches_whoever_serves_then() {
    let mut balancer = Balancer::start("upgrade-passes-on", 202);
    // Kept open, so that the old process stays.
    let mut client = TcpStream::connect(balancer.public).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut status = [0; 12];
    client.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 403");
    balancer.begin_upgrade();
    balancer.signal("HUP");
    balancer.read_log_until("an upgrade is in progress");
    balancer.tell("go");
    let serves = balancer.read_log_until("a new process serves");
    let pid = serves.split("pid=").nth(1).unwrap();
    let successor = Successor(pid.split(|c: char| !c.is_ascii_digit()).next().unwrap().to_owned());
    // Both write to the same log, in any order.
    let words = ["leaving", "the file says what is in force"];
    let first = balancer.read_log_until_any(words);
    balancer.read_log_until(words[1 - first]);

    // One that drains writes to the log too, and follows its rotation.
    let log = balancer.at("access.log");
    move_away(&log);
    balancer.signal("HUP");
    balancer.read_log_until("was reopened");
    client.write_all(b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("HTTP/1.1 403"), "{rest}");
    assert_eq!(balancer.process.wait().unwrap().code(), Some(0));
    let lines = fs::read_to_string(&log).unwrap_or_default();
    assert!(lines.contains("/last"), "{lines}");
    drop(successor);
}

/// The process that took over.
struct Successor(String);

impl Drop for Successor {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-s", "KILL", &self.0]).status();
    }
}
