//! The networks of the doctor's situations: a namespace for a server, in which the doctor runs, and one
//! for its clients.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::time::Duration;

use e2e::raw::Raw;
use e2e::{Finished, NAMESPACES, Process, Scene, Zones, binary, find, wait};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use serde_json::Value;

/// Where the server listens.
pub(crate) const SERVER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 99, 1, 1)), 8080);

/// Rules about the machine as a whole: what others do to it meanwhile is not the test's.
const OF_THE_MACHINE: &[&str] = &[
    "cgroup_throttled",
    "cpu_steal",
    "softnet_drops",
    "softnet_squeeze",
    "interrupts_unbalanced",
    "tcp_memory",
    "orphans",
    "neighbour_table",
    "open_files",
];

/// The two namespaces of one situation.
pub(crate) struct Stage<'a> {
    pub(crate) scene: &'a Scene,
    pub(crate) zones: &'a Zones,
}

/// Runs `situation` in namespaces of its own; the calling thread is in the server's.
pub(crate) fn run(name: &str, needs: &[&str], situation: impl FnOnce(&Stage<'_>) + Send) {
    let needs = [&[NAMESPACES], needs].concat();
    let Some(scene) = Scene::new(name, &needs) else {
        return;
    };
    Zones::run(&["clients"], |zones| {
        // The route of packets to addresses that no host has.
        zones.ip(&["route", "add", "198.18.0.0/15", "via", "10.99.1.11"]);
        situation(&Stage { scene: &scene, zones });
    });
}

/// Sets a kernel setting in the calling thread's namespace.
pub(crate) fn set(name: &str, value: &str) {
    let path = format!("/proc/sys/{name}");
    std::fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// A kernel setting of the calling thread's namespace.
pub(crate) fn get(name: &str) -> String {
    let path = format!("/proc/sys/{name}");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.trim().to_owned()
}

/// Adds packet filter rules to the calling thread's namespace.
pub(crate) fn nft(rules: &str) {
    let output = std::process::Command::new(find("nft").expect("nft")).arg(rules).output();
    let output = output.expect("nft");
    assert!(output.status.success(), "{output:?}");
}

/// What the doctor said.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) code: Option<i32>,
    pub(crate) report: Value,
    /// Statements that the kernel's counters contradict, where they were held against them.
    pub(crate) contradictions: Vec<String>,
}

impl Stage<'_> {
    /// Does `work` in the clients' namespace.
    pub(crate) fn as_client<R>(&self, work: impl FnOnce() -> R) -> R {
        self.zones.inside("clients", work)
    }

    /// nginx on [`SERVER`], one process; `listen` stands behind its address.
    pub(crate) fn nginx(&self, listen: &str) -> Process {
        let folder = self.scene.folder().display();
        let text = format!(
            "daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr warn;
             events {{ worker_connections 4096; }}
             http {{
               access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
               fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
               server {{ listen {SERVER} {listen}; location / {{ return 200 'hello'; }} }}
             }}"
        );
        let config = self.scene.file("nginx.conf", text);
        let words = ["-p".into(), self.scene.folder().into(), "-c".into(), config];
        let nginx = find("nginx").expect("nginx");
        let mut process = Process::start(self.scene, "nginx", &nginx, words);
        wait::until("nginx to listen", Duration::from_secs(10), || {
            assert!(process.is_running(), "nginx ended at once:\n{}", process.stderr());
            std::net::TcpStream::connect(SERVER).ok()
        });
        process
    }

    /// Begins `count` connections to the server and waits for none of them; they end with
    /// their sockets.
    pub(crate) fn knock(count: usize) -> Vec<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let begun = (0..count).map(|_| {
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
            let socket = socket.expect("a socket");
            // EINPROGRESS: it is under way.
            let _ = connect(&socket, &SERVER);
            socket
        });
        begun.collect()
    }

    /// SYNs from `count` addresses that no host has, so that no host answers.
    pub(crate) fn flood(&self, count: u32) {
        let SocketAddr::V4(server) = SERVER else { unreachable!("it is IPv4") };
        self.as_client(|| {
            let raw = Raw::open();
            for number in 0..count {
                let [_, _, c, d] = number.to_be_bytes();
                let from = SocketAddrV4::new(Ipv4Addr::new(198, 18, c, d), 40_000);
                raw.syn(from, server);
            }
        });
    }

    /// Runs `weir doctor WORDS` to its end, in the server's namespace.
    pub(crate) fn doctor(&self, words: &[&str]) -> Finished {
        e2e::run(self.scene, &[&["doctor"], words].concat())
    }

    /// Looks at the server's namespace for `time`, while `meanwhile` happens.
    pub(crate) fn look(&self, time: Duration, meanwhile: impl FnOnce()) -> Looked {
        let millis = format!("{}ms", time.as_millis());
        let words = ["doctor", "--netns", "own", "--for", &millis, "--json", "--save"];
        let saved = self.scene.folder().join("facts.json");
        let words = words.iter().map(std::ffi::OsStr::new).chain([saved.as_os_str()]);
        let mut doctor = Process::start(self.scene, "doctor", binary(), words);
        // Its first sample comes before anything happens.
        wait::measure_for(Duration::from_millis(150));
        meanwhile();
        let Finished { code, stdout, stderr } = doctor.wait(time + Duration::from_secs(20));
        let report = serde_json::from_str(&stdout);
        let report = report.unwrap_or_else(|error| panic!("no report: {error}\n{stdout}{stderr}"));
        Looked { code, report, contradictions: Vec::new() }
    }
}

impl Looked {
    fn findings(&self) -> impl Iterator<Item = &Value> {
        self.report["findings"].as_array().expect("findings").iter()
    }

    /// The finding of `rule`.
    pub(crate) fn finding(&self, rule: &str) -> &Value {
        let found = self.findings().find(|finding| finding["rule"] == rule);
        found.unwrap_or_else(|| panic!("no {rule} in {:#}", self.report))
    }

    /// Findings that are not about the machine as a whole.
    pub(crate) fn of_the_network(&self) -> impl Iterator<Item = &Value> {
        self.findings().filter(|one| !OF_THE_MACHINE.iter().any(|rule| one["rule"] == *rule))
    }

    /// The rules of these findings, each once.
    pub(crate) fn rules(&self) -> Vec<String> {
        let rules = self.of_the_network().filter_map(|one| one["rule"].as_str());
        let mut rules: Vec<String> = rules.map(str::to_owned).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    /// Whether any finding has weight, the machine's too.
    pub(crate) fn has_weight(&self) -> bool {
        self.findings().any(weighs)
    }

    /// Demands that the findings of weight are those of `rules`, no more and no fewer, but for what
    /// the machine as a whole suffers from; yields the first, or null when none is wanted.
    pub(crate) fn expect_weight(&self, rules: &[&str]) -> &Value {
        self.expect_weight_but(rules, &[])
    }

    /// The same, counting those of the machine that are in `machine`.
    pub(crate) fn expect_weight_but(&self, rules: &[&str], machine: &[&str]) -> &Value {
        let rules_of_weight = self.findings().filter(|finding| weighs(finding));
        let mut found: Vec<&str> = rules_of_weight
            .filter_map(|finding| finding["rule"].as_str())
            .filter(|rule| machine.contains(rule) || !OF_THE_MACHINE.contains(rule))
            .collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, rules, "{:#}", self.report);
        rules.first().map_or(&Value::Null, |rule| self.finding(rule))
    }
}

fn weighs(finding: &Value) -> bool {
    finding["severity"] == "warning" || finding["severity"] == "critical"
}
