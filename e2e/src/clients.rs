//! The clients before Weir: wrk, ab, curl, and `clients/load.py` on Python's http.client.

use std::net::SocketAddr;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::servers::file;
use crate::{Finished, Process, Scene, find, wait};

/// What wrk reports.
#[derive(Debug)]
pub struct Wrk {
    /// Responses received.
    pub requests: u64,
    /// Responses per second.
    pub per_second: f64,
    /// Responses of another status than 2xx and 3xx.
    pub non_2xx_3xx: u64,
    /// Connect, read, write errors and timeouts.
    pub socket_errors: u64,
}

/// Runs `wrk -c CONNECTIONS -d SECONDS` (one thread) against `target` at `address`.
pub fn wrk(
    scene: &Scene,
    address: SocketAddr,
    target: &str,
    connections: u32,
    seconds: u32,
) -> Wrk {
    let url = format!("http://{address}{target}");
    let (connections, time) = (connections.to_string(), format!("{seconds}s"));
    let words = ["-t", "1", "-c", &connections, "-d", &time, "--timeout", "20s", &url];
    let finished = client(scene, "wrk", &words, u64::from(seconds) + 30);
    assert_eq!(finished.code, Some(0), "wrk: {}{}", finished.stdout, finished.stderr);
    let text = &finished.stdout;
    let line = |with: &str| text.lines().find(|line| line.contains(with));
    let number = |with: &str, at: usize| -> Option<f64> {
        line(with)?.split_whitespace().nth(at)?.trim_end_matches(',').parse().ok()
    };
    let errors = line("Socket errors")
        .map_or(0, |line| line.split([' ', ',']).filter_map(|word| word.parse::<u64>().ok()).sum());
    Wrk {
        requests: number("requests in", 0).expect("wrk's count") as u64,
        per_second: number("Requests/sec", 1).expect("wrk's rate"),
        non_2xx_3xx: number("Non-2xx", 4).unwrap_or(0.0) as u64,
        socket_errors: errors,
    }
}

/// What wrk's POSTs came to.
#[derive(Debug)]
pub struct Posts {
    /// Responses received.
    pub requests: u64,
    /// Responses of another status than 2xx and 3xx.
    pub bad_status: u64,
    /// Connections that could not be made, were reset, or closed with a request unanswered.
    pub socket_errors: u64,
    /// Requests without an answer for 20 s.
    pub timeouts: u64,
    /// The time that 99 of 100 responses took at most.
    pub p99: Duration,
    /// The longest.
    pub slowest: Duration,
}

impl Posts {
    /// Requests that did not end well.
    pub fn failed(&self) -> u64 {
        self.bad_status + self.socket_errors + self.timeouts
    }
}

/// Runs wrk (one thread) with POSTs of 2000 bytes to `target` at `address`: on each of the
/// connections the next one `pause` after each answer.
pub fn posts(
    scene: &Scene,
    address: SocketAddr,
    target: &str,
    connections: u32,
    pause: Duration,
    seconds: u32,
) -> Posts {
    let script = scene.file(
        &format!("posts-{}.lua", next_number()),
        format!(
            "wrk.method = \"POST\"\n\
             wrk.body = string.rep(\"x\", 2000)\n\
             wrk.headers[\"Content-Type\"] = \"text/plain\"\n\
             function delay() return {} end\n\
             function done(summary, latency)\n\
               local e = summary.errors\n\
               print(string.format('{{\"requests\":%d,\"status\":%d,\"socket\":%d,\"timeouts\":%d,\
             \"p99_us\":%d,\"max_us\":%d}}', summary.requests, e.status, e.connect + e.read + e.write, \
             e.timeout, latency:percentile(99), latency.max))\n\
             end\n",
            pause.as_millis()
        ),
    );
    let url = format!("http://{address}{target}");
    let (connections, time) = (connections.to_string(), format!("{seconds}s"));
    let script = script.to_string_lossy().into_owned();
    let words =
        ["-t", "1", "-c", &connections, "-d", &time, "--timeout", "20s", "-s", &script, &url];
    let finished = client(scene, "wrk", &words, u64::from(seconds) + 30);
    assert_eq!(finished.code, Some(0), "wrk: {}{}", finished.stdout, finished.stderr);
    let json = finished.stdout.lines().find(|line| line.starts_with('{')).expect("wrk's numbers");
    let json: Value = serde_json::from_str(json).expect("wrk's numbers as JSON");
    let number = |name: &str| json[name].as_u64().unwrap_or_else(|| panic!("{name} in {json}"));
    Posts {
        requests: number("requests"),
        bad_status: number("status"),
        socket_errors: number("socket"),
        timeouts: number("timeouts"),
        p99: Duration::from_micros(number("p99_us")),
        slowest: Duration::from_micros(number("max_us")),
    }
}

/// What ab reports.
#[derive(Debug)]
pub struct Ab {
    /// Responses received.
    pub complete: u64,
    /// Connections that failed, and responses that broke off.
    pub failed: u64,
    /// Responses of another status than 2xx.
    pub non_2xx: u64,
    /// Responses per second.
    pub per_second: f64,
}

/// Runs `ab -k -l -r -c CLIENTS -t SECONDS`; ab speaks HTTP/1.0 with keep-alive.
pub fn ab(scene: &Scene, address: SocketAddr, target: &str, clients: u32, seconds: u32) -> Ab {
    let url = format!("http://{address}{target}");
    let (clients, time) = (clients.to_string(), seconds.to_string());
    // -t sets -n to 50,000; -n behind it sets it back.
    let words =
        ["-q", "-k", "-l", "-r", "-c", &clients, "-t", &time, "-n", "10000000", "-s", "20", &url];
    let finished = client(scene, "ab", &words, u64::from(seconds) + 30);
    assert_eq!(finished.code, Some(0), "ab: {}{}", finished.stdout, finished.stderr);
    let number = |label: &str| -> Option<f64> {
        let line = finished.stdout.lines().find_map(|line| line.strip_prefix(label))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Ab {
        complete: number("Complete requests:").expect("ab's count") as u64,
        failed: number("Failed requests:").unwrap_or(0.0) as u64,
        non_2xx: number("Non-2xx responses:").unwrap_or(0.0) as u64,
        per_second: number("Requests per second:").expect("ab's rate"),
    }
}

/// Runs `curl WORDS`, silent but for errors, at most 20 seconds.
pub fn curl(scene: &Scene, words: &[&str]) -> Finished {
    let all = [&["--silent", "--show-error", "--max-time", "20"][..], words].concat();
    client(scene, "curl", &all, 25)
}

/// What h2load reports.
#[derive(Debug)]
pub struct H2load {
    /// Responses received whole.
    pub succeeded: u64,
    /// Requests that failed, broke off or took too long, and responses of another status than 2xx.
    pub failed: u64,
    /// All it said.
    pub text: String,
}

impl H2load {
    /// Reads it from what h2load wrote.
    pub fn read(text: &str) -> H2load {
        let line = |with: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(with));
            line.unwrap_or_else(|| panic!("no {with:?} in what h2load says:\n{text}"))
        };
        // "requests: 10 total, 10 started, 10 done, 10 succeeded, 0 failed, …"
        let number = |line: &str, label: &str| -> u64 {
            let part = line.split(',').find_map(|part| part.trim().strip_suffix(label));
            part.and_then(|number| number.trim().parse().ok()).expect("a count")
        };
        let (requests, statuses) = (line("requests:"), line("status codes:"));
        // What ended with another status has succeeded for h2load; one that did not end is both.
        let lost = number(requests, "total").saturating_sub(number(requests, "succeeded"));
        let odd: u64 = ["3xx", "4xx", "5xx"].iter().map(|kind| number(statuses, kind)).sum();
        let succeeded = number(requests, "succeeded");
        H2load { succeeded, failed: lost + odd, text: text.to_owned() }
    }
}

/// Runs `h2load WORDS` to its end, at most a minute.
pub fn h2load(scene: &Scene, words: &[&str]) -> H2load {
    let finished = client(scene, "h2load", words, 60);
    assert_eq!(finished.code, Some(0), "h2load: {}{}", finished.stdout, finished.stderr);
    H2load::read(&finished.stdout)
}

/// Runs `openssl s_client WORDS`, with `says` for the server once TLS stands; until the server
/// closes.
pub fn s_client(scene: &Scene, address: SocketAddr, words: &[&str], says: &str) -> Finished {
    let said = scene.file(&format!("said-{}", next_number()), says);
    // Stays until the server closes, though its own input has ended.
    let script = "exec openssl s_client -ign_eof \"$@\" <\"$SAID\""
        .replace("$SAID", &said.to_string_lossy());
    let address = address.to_string();
    let words = [&["-c", &script, "s_client", "-connect", &address][..], words].concat();
    client(scene, "sh", &words, 25)
}

/// Runs `SCRIPT WORDS` of this package by the Python that has the packages of
/// [`crate::PYTHON_PEERS`], to its end, at most a minute.
pub fn python_client(scene: &Scene, script: &str, words: &[&str]) -> Finished {
    let script = file(script).to_string_lossy().into_owned();
    client(scene, crate::PYTHON_PEERS, &[&[&*script][..], words].concat(), 60)
}

/// Runs `PROGRAM WORDS` to its end.
pub fn client(scene: &Scene, program: &str, words: &[&str], bound_seconds: u64) -> Finished {
    start(scene, program, words).wait(Duration::from_secs(bound_seconds))
}

/// Starts `PROGRAM WORDS`, with outputs of its own.
pub fn start(scene: &Scene, program: &str, words: &[&str]) -> Process {
    // Outputs are appended to, and a test may run a client many times: look at the new part.
    let path = find(program).unwrap_or_else(|| panic!("no {program}"));
    let name = program.rsplit('/').next().unwrap_or(program);
    Process::start(scene, &format!("{name}-{}", next_number()), &path, words)
}

pub(crate) fn next_number() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// `clients/load.py`, running: threads that each send one request after the other and note how
/// every single one ended.
pub struct Load {
    process: Process,
}

impl Load {
    /// Starts `threads` clients that GET `target` at `address` until [`Load::finish`].
    pub fn start(scene: &Scene, address: SocketAddr, target: &str, threads: u32) -> Load {
        Self::start_with(scene, address, target, threads, &[])
    }

    /// Runs `threads` clients for `seconds`, with further options of load.py.
    pub fn run(
        scene: &Scene,
        address: SocketAddr,
        target: &str,
        threads: u32,
        seconds: f64,
        words: &[&str],
    ) -> Report {
        let seconds = seconds.to_string();
        let words = [&["--seconds", &seconds][..], words].concat();
        Self::start_with(scene, address, target, threads, &words).report()
    }

    /// Starts them with further options of load.py, until [`Load::finish`].
    pub fn start_with(
        scene: &Scene,
        address: SocketAddr,
        target: &str,
        threads: u32,
        words: &[&str],
    ) -> Load {
        let mut all = vec![file("clients/load.py").to_string_lossy().into_owned()];
        let (address, threads) = (address.to_string(), threads.to_string());
        let own = ["--address", &address, "--target", target, "--threads", &threads];
        all.extend(own.iter().chain(words).map(|&word| word.to_owned()));
        let name = format!("load-{}", next_number());
        let python = find("python3").expect("python3");
        let process = Process::start(scene, &name, &python, all);
        // Before that, a signal would end it without a report.
        wait::until("load.py to start", Duration::from_secs(10), || {
            process.stdout().contains("started").then_some(())
        });
        Load { process }
    }

    /// Ends the load: running requests are waited for. Yields what load.py reports.
    pub fn finish(self) -> Report {
        self.process.signal(Signal::TERM);
        self.report()
    }

    fn report(mut self) -> Report {
        let finished = self.process.wait(Duration::from_mins(1));
        assert_eq!(finished.code, Some(0), "load.py: {}", finished.stderr);
        let json = finished.stdout.lines().last().unwrap_or_default();
        Report { json: serde_json::from_str(json).expect("load.py's report") }
    }
}

/// What `clients/load.py` reports.
#[derive(Debug)]
pub struct Report {
    /// All of it; load.py's header says what is in it.
    pub json: Value,
}

impl Report {
    /// Requests sent.
    pub fn requests(&self) -> u64 {
        self.json["requests"].as_u64().expect("a count")
    }

    /// Responses with that status.
    pub fn status(&self, status: u16) -> u64 {
        self.json["statuses"][status.to_string()].as_u64().unwrap_or(0)
    }

    /// Requests that had no response at all, and what the client saw instead.
    pub fn without_response(&self) -> u64 {
        self.json["without_response"].as_u64().expect("a count")
    }

    /// Responses that broke off in the middle.
    pub fn broken_off(&self) -> u64 {
        self.json["broken_off"].as_u64().expect("a count")
    }

    /// The longest that any request took.
    pub fn slowest(&self) -> Duration {
        Duration::from_secs_f64(self.json["slowest_s"].as_f64().expect("a time"))
    }

    /// Responses that the server of that name gave.
    pub fn served_by(&self, server: &str) -> u64 {
        self.json["servers"][server].as_u64().unwrap_or(0)
    }
}
