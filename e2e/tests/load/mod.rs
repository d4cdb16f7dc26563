//! What tests of `weir bench` have in common: the program run, its figures read.

#[allow(dead_code, reason = "each test file uses what it needs")]
pub(crate) mod light;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use e2e::{Finished, Process, Scene, binary, find, wait};
use serde_json::Value;

/// `weir bench` under way, with its figures as JSON at its end.
pub(crate) struct Bench {
    pub(crate) process: Process,
    json: PathBuf,
}

/// How it ended.
pub(crate) struct Ended {
    pub(crate) finished: Finished,
    /// Null when no file was written.
    pub(crate) json: Value,
}

impl Bench {
    /// Starts `weir bench WORDS --json FILE`.
    pub(crate) fn start(scene: &Scene, words: &[&str]) -> Bench {
        Bench::start_as(scene, binary(), &["bench"], words)
    }

    /// The same on one processor alone, by taskset.
    #[allow(dead_code, reason = "each test file uses what it needs")]
    pub(crate) fn start_on(scene: &Scene, cpu: usize, words: &[&str]) -> Bench {
        let (program, cpu) = (binary().to_string_lossy(), cpu.to_string());
        let taskset = find("taskset").expect("taskset, of util-linux");
        Bench::start_as(scene, &taskset, &["-c", &cpu, &program, "bench"], words)
    }

    fn start_as(scene: &Scene, program: &Path, before: &[&str], words: &[&str]) -> Bench {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("bench-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let json = scene.folder().join(format!("{name}.json"));
        let written = json.to_string_lossy();
        let all = [before, words, &["--json", &written]].concat();
        Bench { process: Process::start(scene, &name, program, all), json }
    }

    /// Waits for its end.
    pub(crate) fn end(mut self, within: Duration) -> Ended {
        let finished = self.process.wait(within);
        let text = std::fs::read(&self.json);
        assert!(!text.as_ref().is_ok_and(Vec::is_empty), "a file without figures was left");
        let json = serde_json::from_slice(&text.unwrap_or_default()).unwrap_or_default();
        Ended { finished, json }
    }
}

/// Runs it to its end.
#[allow(dead_code, reason = "each test file uses what it needs")]
pub(crate) fn bench(scene: &Scene, words: &[&str]) -> Ended {
    Bench::start(scene, words).end(Duration::from_mins(1))
}

impl Ended {
    /// A number, by its names with dots between.
    pub(crate) fn number(&self, path: &str) -> f64 {
        let found = path.split('.').fold(&self.json, |value, name| &value[name]);
        found.as_f64().unwrap_or_else(|| panic!("no number {path} in {}", self.finished.stdout))
    }

    /// Whether the load generator says that it, or this machine, ran out of processor time.
    #[allow(dead_code, reason = "each test file uses what it needs")]
    pub(crate) fn is_short_of_cpu(&self) -> bool {
        let ran_out = self.json["ran_out"].as_array().expect("what ran out");
        ran_out.iter().any(|found| found["whose"] == "generator" && found["what"] == "cpu")
    }

    /// Writes its figures into a file.
    #[allow(dead_code, reason = "each test file uses what it needs")]
    pub(crate) fn keep(&self, file: &str) {
        std::fs::write(file, self.json.to_string()).unwrap();
    }

    /// The run must have ended with this exit code.
    pub(crate) fn code(self, code: i32) -> Ended {
        let Finished { stdout, stderr, .. } = &self.finished;
        assert_eq!(self.finished.code, Some(code), "{stdout}\n{stderr}");
        self
    }

    /// Either output must hold this.
    #[allow(dead_code, reason = "each test file uses what it needs")]
    pub(crate) fn says(self, text: &str) -> Ended {
        let Finished { stdout, stderr, .. } = &self.finished;
        assert!(stdout.contains(text) || stderr.contains(text), "{text}?\n{stdout}\n{stderr}");
        self
    }
}

/// `servers/timing.py` with these words; does not wait until it listens.
#[allow(dead_code, reason = "each test file uses what it needs")]
pub(crate) fn timing(scene: &Scene, address: SocketAddr, words: &[&str]) -> Process {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/timing.py");
    let (script, at) = (script.to_string_lossy().into_owned(), address.to_string());
    let words = [&[&*script, "--address", &at][..], words].concat();
    Process::start(scene, "timing", &find("python3").expect("python3"), words)
}

/// Waits until a program listens there, without connecting: a connection would be counted.
#[allow(dead_code, reason = "each test file uses what it needs")]
pub(crate) fn wait_for_listener(address: SocketAddr) {
    let port = format!(":{:04X} ", address.port());
    wait::until("a listener", Duration::from_secs(10), || {
        let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
        let octets = match address.ip() {
            std::net::IpAddr::V4(ip) => u32::from_le_bytes(ip.octets()),
            std::net::IpAddr::V6(_) => return None,
        };
        let wanted = format!("{octets:08X}{port}");
        table.lines().any(|line| line.contains(&wanted) && line.contains(" 0A ")).then_some(())
    });
}
