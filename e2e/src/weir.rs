//! The program under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{Finished, Process, Scene, http, wait};

/// How long it may take from exec to serving, on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(15);

/// The built program: `WEIR_BIN`, or the one beside this test in the target folder, built first
/// if need be. (Cargo holds no lock while tests run, so a build from within a test is safe.)
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("WEIR_BIN") {
        Some(path) => {
            // Cargo runs tests in the package's folder; people give paths from the workspace's.
            let given = PathBuf::from(path);
            let from_root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&given);
            let found = [given, from_root].into_iter().find_map(|path| path.canonicalize().ok());
            found.expect("WEIR_BIN names a program")
        }
        None => build(),
    })
}

fn build() -> PathBuf {
    // This test is target/<profile>/deps/<name>.
    let test = std::env::current_exe().expect("the test's own path");
    let folder = test.parent().and_then(Path::parent).expect("the target folder").to_path_buf();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // The whole workspace, so that features are the same as for the tests: nothing builds twice.
    command.args(["build", "--quiet", "--workspace", "--bin", "weir"]);
    if folder.file_name().is_some_and(|profile| profile == "release") {
        command.arg("--release");
    }
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    assert!(command.status().expect("cargo").success(), "weir does not build");
    folder.join("weir")
}

/// Runs `weir WORDS` to its end.
pub fn run(scene: &Scene, words: &[&str]) -> Finished {
    run_by(scene, &[&binary().to_string_lossy()], words)
}

/// Runs `BY WORDS`, where `by` ends in a path of `weir`: `setpriv --reuid=65534 /tmp/weir`.
pub fn run_by(scene: &Scene, by: &[&str], words: &[&str]) -> Finished {
    // Each run has outputs of its own.
    let mut names = (0..).map(|n| format!("weir-run-{n}"));
    let free = |name: &String| !scene.folder().join(format!("{name}.out")).exists();
    let name = names.find(free).unwrap_or_default();
    let program = crate::find(by[0]).unwrap_or_else(|| PathBuf::from(by[0]));
    let words = by[1..].iter().chain(words);
    Process::start(scene, &name, &program, words).wait(Duration::from_secs(20))
}

/// A kept connection to the admin API of a [`Weir`]. Those who ask again and again use one: the API
/// closes idle connections beyond its limit, and each connection takes a local port for a second.
pub struct Admin(http::Connection);

impl Admin {
    /// A document of the admin API.
    pub fn api(&mut self, path: &str) -> Value {
        self.get(path).json()
    }

    /// How many requests of `service` are at its servers. Cheaper than a look at all metrics.
    pub fn in_flight(&mut self, service: &str) -> u64 {
        let view = self.api(&format!("/api/v1/services/{service}"));
        let servers =
            view["servers"].as_array().unwrap_or_else(|| panic!("no servers in {view:#}"));
        servers.iter().filter_map(|server| server["in_flight"].as_u64()).sum()
    }

    /// How many requests of `service` wait for a slot.
    pub fn queue_length(&mut self, service: &str) -> u64 {
        let view = self.api(&format!("/api/v1/services/{service}"));
        let length = &view["queue"]["length"];
        length.as_u64().unwrap_or_else(|| panic!("no queue length in {view:#}"))
    }

    /// The sum of the samples of the metric `name` whose labels contain each of `labels`
    /// (written as in the exposition: `service="app"`).
    pub fn metric(&mut self, name: &str, labels: &[&str]) -> f64 {
        let text = self.get("/metrics").text();
        let samples = text.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let (set, value) = rest.rsplit_once(' ')?;
            let whole_name = set.is_empty() || set.starts_with('{');
            let matches = whole_name && labels.iter().all(|label| set.contains(label));
            matches.then(|| value.parse::<f64>().ok())?
        });
        samples.sum()
    }

    fn get(&mut self, path: &str) -> http::Response {
        let answer = self.0.get(path, &[]).unwrap_or_else(|e| panic!("{path}: {e}"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer
    }
}

/// A running `weir serve`.
pub struct Weir {
    process: Process,
    front: std::net::SocketAddr,
    admin: std::net::SocketAddr,
}

impl Weir {
    /// Starts `weir serve` with `config` (see [`Scene::config`]) and waits until it serves.
    pub fn start(scene: &Scene, config: &str) -> Weir {
        Self::start_by(scene, config, &[])
    }

    /// Like [`Weir::start`], by way of a program that becomes it: `prlimit --nofile=64`.
    pub fn start_by(scene: &Scene, config: &str, by: &[&str]) -> Weir {
        let mut weir = Self::start_unready(scene, config, by);
        weir.wait_until_ready();
        weir
    }

    /// Starts it without waiting.
    pub fn start_unready(scene: &Scene, config: &str, by: &[&str]) -> Weir {
        let file = scene.file("weir.toml", config);
        let mut words: Vec<String> = by.iter().skip(1).map(|&word| word.to_owned()).collect();
        let program = match by.first() {
            Some(program) => {
                words.push(binary().to_string_lossy().into_owned());
                crate::find(program).unwrap_or_else(|| panic!("no {program}"))
            }
            None => binary().to_path_buf(),
        };
        words.extend(["serve".to_owned(), file.to_string_lossy().into_owned()]);
        let process = Process::start(scene, "weir", &program, words);
        Weir { process, front: scene.front(), admin: scene.admin() }
    }

    /// Waits until the admin API says that it serves.
    pub fn wait_until_ready(&mut self) {
        wait::until("weir to be ready", READY_WITHIN, || {
            assert!(self.process.is_running(), "weir ended at once:\n{}", self.process.stderr());
            let status = http::get(self.admin, "/api/v1/status").ok()?;
            (status.json().get("ready") == Some(&Value::Bool(true))).then_some(())
        });
    }

    /// Where clients connect.
    pub fn front(&self) -> std::net::SocketAddr {
        self.front
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Opens a connection to the admin API, for many questions in a row.
    pub fn admin(&self) -> Admin {
        Admin(http::Connection::open(self.admin).expect("the admin API"))
    }

    /// A document of the admin API.
    pub fn api(&self, path: &str) -> Value {
        self.admin().api(path)
    }

    /// How many requests of `service` wait for a slot, by the admin API.
    pub fn queue_length(&self, service: &str) -> u64 {
        self.admin().queue_length(service)
    }

    /// See [`Admin::metric`].
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        self.admin().metric(name, labels)
    }

    /// What it has logged so far (its own log, not the access log).
    pub fn log(&self) -> String {
        self.process.stderr()
    }

    /// The access lines so far, as JSON.
    pub fn access(&self) -> Vec<Value> {
        let text = self.process.stdout();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits for a log line that contains every one of `words`, whatever their case; yields it.
    pub fn wait_for_log(&self, words: &[&str], bound: Duration) -> String {
        self.wait_for_log_from(0, words, bound)
    }

    /// Like [`Weir::wait_for_log`], among the lines after the first `from` bytes of the log.
    pub fn wait_for_log_from(&self, from: usize, words: &[&str], bound: Duration) -> String {
        wait::until(&format!("a log line with {words:?}"), bound, || {
            let log = self.log();
            let lines = log.get(from..).unwrap_or("").lines();
            let has_all = |line: &&str| {
                let line = line.to_lowercase();
                words.iter().all(|word| line.contains(&word.to_lowercase()))
            };
            lines.into_iter().find(has_all).map(str::to_owned)
        })
    }

    /// Sends SIGHUP: reload the configuration.
    pub fn hang_up(&self) {
        self.process.signal(Signal::HUP);
    }

    /// Asks the admin API to do something; yields its answer.
    pub fn ask(&self, path: &str) -> http::Response {
        let Admin(mut connection) = self.admin();
        connection.request("POST", path, &[], b"").unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// Has a new process take over, and waits until the old one has ended. Yields the receipt and
    /// the new process; from here on [`Weir::process`] is one that has ended.
    pub fn upgrade(&mut self, old_ends_within: Duration) -> (Value, NewProcess) {
        let answer = self.ask("/api/v1/upgrade");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let receipt = answer.json();
        let successor = NewProcess::of(&receipt);
        let finished = self.process.wait(old_ends_within);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        (receipt, successor)
    }

    /// SIGKILLs it; for tests that are done with it.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends SIGTERM.
    pub fn begin_to_stop(&self) {
        self.process.signal(Signal::TERM);
    }

    /// Waits for its end.
    pub fn wait(&mut self, bound: Duration) -> Finished {
        self.process.wait(bound)
    }
}

/// A process that took over from one of the test's own, and is no child of the test: ended when
/// this is dropped.
#[derive(Debug)]
pub struct NewProcess {
    pid: Pid,
}

impl NewProcess {
    /// The one that an upgrade's receipt names.
    pub fn of(receipt: &Value) -> NewProcess {
        let pid = receipt["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        NewProcess { pid: pid.and_then(Pid::from_raw).expect("a pid") }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends `signal`.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("a running process");
    }

    /// Whether it is still there.
    pub fn is_running(&self) -> bool {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state.is_some_and(|state| state != 'Z')
    }
}

impl Drop for NewProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = kill_process(self.pid, Signal::KILL);
    }
}
