//! `weir demo` as a person starts it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A demo under way. Killed when the test is over, whatever came of it.
struct Demo {
    process: Child,
    out: BufReader<ChildStdout>,
}

impl Demo {
    fn start(words: &[&str]) -> Demo {
        let mut process = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg("demo")
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        Demo { process, out }
    }

    /// Reads on until a line that starts with `label`, and yields the URL in it.
    fn url(&mut self, label: &str) -> String {
        let mut line = String::new();
        while !line.starts_with(label) {
            line.clear();
            assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "no line {label:?}");
        }
        let start = line.find("http://").unwrap();
        line[start..].trim_end().to_owned()
    }

    fn exit_code(mut self) -> Option<i32> {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Both fail only when it has ended, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn get(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_balances_and_ends_by_itself() {
    let mut demo = Demo::start(&["--for", "2s"]);
    let answer = get(&demo.url("Send a request"));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("eu-west-1a"), "of its own zone: {answer}");
    let services = get(&demo.url("See every server"));
    assert!(services.contains("\"name\": \"catalog\""), "{services}");
    let metrics = get(&demo.url("See the metrics"));
    assert!(metrics.contains("weir_requests"), "{metrics}");
    assert_eq!(demo.exit_code(), Some(0));
}

#[test]
fn whoever_has_read_enough_may_close_the_pipe() {
    let mut demo = Demo::start(&["--for", "1s"]);
    demo.url("Send a request");
    let Demo { out, process } = &mut demo;
    // Replaces the pipe's only reader, which closes it.
    let nothing = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
    let mut nothing = nothing;
    *out = BufReader::new(nothing.stdout.take().unwrap());
    nothing.wait().unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
}
