//! Captures of real connections with real faults, in namespaces: Weir's flags for each frame equal
//! tshark's, and it names the cause that was made and no other serious one.
//!
//! A client at 10.99.1.11, a server at 10.99.2.11, and a router between them, which loses, shapes, or
//! takes only small packets.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Duration;

use e2e::{NAMESPACES, Scene, Zones, find, run, wait};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

use crate::oracle;
use crate::tcpdump::Tcpdump;

const SOON: Duration = Duration::from_secs(20);
const CLIENT: &str = "client";
const SERVER: &str = "server";
/// What all of these need.
const NEEDS: [&str; 5] = [NAMESPACES, "tshark", "tcpdump", "ethtool", "ip"];

/// The three of them.
struct Path<'a> {
    scene: &'a Scene,
    zones: &'a Zones,
}

/// Runs `test` in networks of its own.
fn on_a_path(name: &str, needs: &[&str], test: impl FnOnce(&Path<'_>) + Send) {
    let needs = [&NEEDS, needs].concat();
    let Some(scene) = Scene::new(name, &needs) else { return };
    if !oracle::is_the_one() {
        return;
    }
    Zones::run(&[CLIENT, SERVER], |zones| {
        set("net/ipv4/ip_forward", "1");
        for (zone, near, far) in [(CLIENT, 1, 2), (SERVER, 2, 1)] {
            offloads_off(&format!("zone{near}"));
            zones.inside(zone, || {
                offloads_off("eth0");
                let (net, via) = (format!("10.99.{far}.0/24"), format!("10.99.{near}.1"));
                command("ip", &["route", "add", &net, "via", &via]);
                // Whatever the machine prefers; every namespace has it.
                set("net/ipv4/tcp_congestion_control", "reno");
            });
        }
        test(&Path { scene: &scene, zones });
    });
}

fn command(program: &str, words: &[&str]) {
    let output = Command::new(find(program).expect(program)).args(words).output().expect(program);
    assert!(output.status.success(), "{program} {words:?}: {output:?}");
}

/// Packets are those of a wire, not the large ones that segmentation offload makes of them.
fn offloads_off(interface: &str) {
    command("ethtool", &["-K", interface, "tso", "off", "gso", "off", "gro", "off", "tx", "off"]);
}

fn set(name: &str, value: &str) {
    let path = format!("/proc/sys/{name}");
    std::fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// This thread, and those that it starts from now on, run on one processor. The kernel queues what
/// goes through a veth by the processor that sends it: two of them let packets overtake each other.
pub(crate) fn one_processor() {
    let allowed = sched_getaffinity(None).expect("processors");
    let first = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).expect("a processor");
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).expect("one processor");
}

/// Packets to the server that the router forwards meet these rules.
fn on_the_way(rules: &str) {
    let table =
        "add table inet way; add chain inet way on { type filter hook forward priority 0; }; ";
    command("nft", &[&format!("{table}add rule inet way on tcp dport 8080 {rules}")]);
}

/// Three in a hundred. Not by chance, so that the test says the same each time.
const LOSES: &str = "numgen inc mod 33 == 7 drop";

impl Path<'_> {
    fn server(&self) -> SocketAddr {
        self.zones.address(SERVER, 11, 8080)
    }

    fn listen(&self) -> TcpListener {
        self.zones.inside(SERVER, || TcpListener::bind(self.server()).expect("a listener"))
    }

    fn connect(&self) -> TcpStream {
        let connect = || TcpStream::connect_timeout(&self.server(), SOON).expect("a connection");
        self.zones.inside(CLIENT, connect)
    }

    fn capture(&self, name: &str, zone: &str, interface: &str, filter: &str) -> Tcpdump {
        let start = || Tcpdump::start(self.scene, name, interface, 120, filter);
        if zone.is_empty() { start() } else { self.zones.inside(zone, start) }
    }

    /// The client sends `bytes` and waits for an answer; the server reads them to the end.
    fn upload(&self, bytes: usize) {
        let listener = self.listen();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut connection, _) = listener.accept().expect("a client");
                connection.set_read_timeout(Some(SOON)).unwrap();
                let read = std::io::copy(&mut connection, &mut std::io::sink()).expect("a body");
                assert_eq!(read, bytes as u64);
                connection.write_all(b"thanks").expect("an answer");
            });
            let mut connection = self.connect();
            connection.write_all(&vec![b'x'; bytes]).expect("a body");
            connection.shutdown(Shutdown::Write).expect("its end");
            connection.set_read_timeout(Some(SOON)).unwrap();
            let mut answer = String::new();
            connection.read_to_string(&mut answer).expect("an answer");
            assert_eq!(answer, "thanks");
        });
    }

    /// Ends the capture, compares it with tshark frame by frame, and demands that the findings of weight
    /// are those of `rules`; yields the whole report.
    fn judge(&self, dump: Tcpdump, rules: &[&str]) -> Value {
        let dumped = dump.stop();
        assert_eq!(dumped.dropped, 0, "tcpdump was too slow");
        let file = dumped.path.to_string_lossy().into_owned();
        let frames = oracle::compare(&dumped.path, |_| file.clone());
        let said = run(self.scene, &["trace", "--json", &file]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let report: Value = serde_json::from_str(&said.stdout).expect("JSON");
        println!("trace: {file}: {frames} frames, {}", report["totals"]);
        let findings = report["diagnosis"]["findings"].as_array().expect("findings");
        let weighs = |one: &&Value| one["severity"] == "warning" || one["severity"] == "critical";
        let mut found: Vec<&str> =
            findings.iter().filter(weighs).filter_map(|one| one["rule"].as_str()).collect();
        found.sort_unstable();
        let text = || run(self.scene, &["trace", &file]).stdout;
        assert_eq!(found, rules, "{file}:\n{}", text());
        report
    }
}

/// The finding of `rule`.
fn finding<'a>(report: &'a Value, rule: &str) -> &'a Value {
    let findings = report["diagnosis"]["findings"].as_array().expect("findings");
    let found = findings.iter().find(|one| one["rule"] == rule);
    found.unwrap_or_else(|| panic!("no {rule} in {:#}", report["diagnosis"]))
}

#[test]
fn nothing_is_wrong() {
    on_a_path("real-clean", &[], |path| {
        let dump = path.capture("clean", CLIENT, "eth0", "tcp");
        one_processor();
        path.upload(3_000_000);
        let report = path.judge(dump, &[]);
        assert_eq!(report["diagnosis"]["findings"].as_array().map(Vec::len), Some(0), "{report:#}");
    });
}

#[test]
fn three_in_a_hundred_are_lost() {
    on_a_path("real-loss", &["nft"], |path| {
        on_the_way(LOSES);
        let dump = path.capture("loss", CLIENT, "eth0", "tcp");
        let behind = path.capture("behind", SERVER, "eth0", "tcp");
        let one_way = path.capture("one-way", CLIENT, "eth0", "tcp dst port 8080");
        path.upload(3_000_000);
        let evidence = |report: &Value, name: &str| {
            let all = finding(report, "capture_loss")["evidence"].as_array().unwrap().clone();
            let one = all.iter().find(|one| one["name"] == name).expect(name);
            one["figure"].as_u64().unwrap_or_else(|| panic!("{one}"))
        };
        let (here, before) = ("lost after the place of the capture", "lost before it");
        let report = path.judge(dump, &["capture_loss"]);
        assert_eq!(finding(&report, "capture_loss")["certainty"], "likely");
        assert!(evidence(&report, here) > 10 * evidence(&report, before), "{report:#}");
        // At the server what was lost is missing, and comes late.
        let report = path.judge(behind, &["capture_loss"]);
        assert!(evidence(&report, before) > 10 * evidence(&report, here), "{report:#}");
        // Without the answers it is one of several explanations.
        let report = path.judge(one_way, &["capture_loss"]);
        assert_eq!(finding(&report, "capture_loss")["certainty"], "possible");
        assert_eq!(report["connections_in_one_direction"], 1);
    });
}

#[test]
fn a_slow_link_has_a_short_queue() {
    on_a_path("real-shaped", &["tc"], |path| {
        let shape = ["rate", "20mbit", "burst", "4kb", "limit", "16kb"];
        command("tc", &[&["qdisc", "add", "dev", "zone2", "root", "tbf"][..], &shape].concat());
        let dump = path.capture("shaped", CLIENT, "eth0", "tcp");
        path.upload(3_000_000);
        path.judge(dump, &["capture_loss"]);
    });
}

#[test]
fn a_server_accepts_nothing() {
    on_a_path("real-queue", &[], |path| {
        // The way back takes a while, so that several are answered before the first has a place.
        let link = "both = { delay = \"20ms\" }";
        let _link = path.zones.join(path.scene, [CLIENT, SERVER], link);
        path.zones.inside(SERVER, || set("net/core/somaxconn", "8"));
        let _listener = path.listen();
        let dump = path.capture("queue", CLIENT, "link0", "tcp");
        let _waiting: Vec<TcpStream> = (0..6).map(|_| path.connect()).collect();
        // Nine fill the queue: of seven that knock together all are answered, and four forgotten.
        let _knocking = knock(path, 7);
        wait::measure_for(Duration::from_millis(3_200));
        path.judge(dump, &["capture_queue_full"]);
        // Now that it is full, no connection is answered.
        let dump = path.capture("full", CLIENT, "link0", "tcp");
        let _knocking = knock(path, 2);
        wait::measure_for(Duration::from_millis(3_200));
        path.judge(dump, &["capture_syn_lost"]);
    });
}

/// Begins connections to the server, all at once, and waits for none of them.
fn knock(path: &Path<'_>, count: usize) -> Vec<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    path.zones.inside(CLIENT, || {
        let begun = (0..count).map(|_| {
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None);
            let socket = socket.expect("a socket");
            // EINPROGRESS: it is under way.
            let _ = connect(&socket, &path.server());
            socket
        });
        begun.collect()
    })
}

#[test]
fn a_firewall_drops_syns() {
    on_a_path("real-syns", &["nft"], |path| {
        on_the_way("drop");
        let dump = path.capture("syns", CLIENT, "eth0", "tcp");
        let connect = || TcpStream::connect_timeout(&path.server(), Duration::from_millis(3_500));
        path.zones.inside(CLIENT, connect).expect_err("no answer");
        let report = path.judge(dump, &["capture_syn_lost"]);
        assert_eq!(finding(&report, "capture_syn_lost")["severity"], "critical");
    });
}

#[test]
fn a_server_reads_slowly() {
    on_a_path("real-slow", &[], |path| {
        path.zones.inside(SERVER, || set("net/ipv4/tcp_rmem", "4096 16384 32768"));
        let dump = path.capture("slow", CLIENT, "eth0", "tcp");
        let readers = path.capture("readers", CLIENT, "eth0", "tcp src port 8080");
        let listener = path.listen();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut connection, _) = listener.accept().expect("a client");
                // What it does instead of reading.
                wait::measure_for(Duration::from_millis(900));
                std::io::copy(&mut connection, &mut std::io::sink()).expect("a body");
            });
            let mut connection = path.connect();
            connection.write_all(&vec![b'x'; 400_000]).expect("a body");
        });
        let report = path.judge(dump, &["capture_slow_reader"]);
        assert_eq!(finding(&report, "capture_slow_reader")["certainty"], "certain");
        // A window of zero is the reader's own word: its direction alone is enough.
        let report = path.judge(readers, &["capture_slow_reader"]);
        assert_eq!(finding(&report, "capture_slow_reader")["certainty"], "certain");
        assert_eq!(report["connections_in_one_direction"], 1);
    });
}

#[test]
fn sack_is_off_where_packets_are_lost() {
    on_a_path("real-sack", &["nft"], |path| {
        path.zones.inside(SERVER, || set("net/ipv4/tcp_sack", "0"));
        on_the_way(LOSES);
        let dump = path.capture("sack", CLIENT, "eth0", "tcp");
        path.upload(2_000_000);
        let report = path.judge(dump, &["capture_sack_off"]);
        let by = &finding(&report, "capture_sack_off")["evidence"];
        assert!(by.to_string().contains("10.99.2.11:8080"), "{by:#}");
    });
}

#[test]
fn the_path_takes_only_smaller_packets_and_does_not_say_so() {
    on_a_path("real-mtu", &["nft"], |path| {
        path.zones.ip(&["link", "set", "zone2", "mtu", "1300"]);
        let silent = "add table inet way; add chain inet way out { type filter hook output priority 0; }; \
                      add rule inet way out icmp type destination-unreachable drop";
        command("nft", &[silent]);
        let dump = path.capture("mtu", CLIENT, "eth0", "tcp");
        let listener = path.listen();
        let mut connection = path.connect();
        let (mut accepted, _) = listener.accept().expect("a client");
        // The head of a request passes, its body does not.
        connection.write_all(b"PUT /a HTTP/1.1\r\nContent-Length: 100000\r\n\r\n").unwrap();
        let mut head = [0; 43];
        accepted.read_exact(&mut head).expect("the head");
        connection.set_nonblocking(true).unwrap();
        assert!(connection.write(&vec![b'x'; 100_000]).expect("room in the buffer") > 10_000);
        wait::measure_for(Duration::from_secs(3));
        path.judge(dump, &["capture_mtu"]);
    });
}

/// The client's connections write `bytes` each; yields them.
fn write_all_at_once(path: &Path<'_>, count: usize, bytes: usize) -> Vec<TcpStream> {
    let write = |_| {
        let mut connection = path.connect();
        connection.set_nonblocking(true).unwrap();
        let written = connection.write(&vec![b'x'; bytes]).expect("room in the buffer");
        assert!(written >= bytes.min(10_000), "{written} bytes");
        connection
    };
    (0..count).map(write).collect()
}

#[test]
fn nothing_but_handshakes_passes_a_path_of_smaller_packets() {
    on_a_path("real-mtu-first", &["nft"], |path| {
        path.zones.ip(&["link", "set", "zone2", "mtu", "1300"]);
        let silent = "add table inet way; add chain inet way out { type filter hook output priority 0; }; \
                      add rule inet way out icmp type destination-unreachable drop";
        command("nft", &[silent]);
        let dump = path.capture("mtu-first", CLIENT, "eth0", "tcp");
        let _listener = path.listen();
        let _connections = write_all_at_once(path, 20, 100_000);
        wait::measure_for(Duration::from_secs(3));
        let report = path.judge(dump, &["capture_mtu"]);
        assert_eq!(finding(&report, "capture_mtu")["certainty"], "likely");
    });
}

#[test]
fn a_server_dies_while_it_is_sent_to() {
    on_a_path("real-dead", &["nft"], |path| {
        let dump = path.capture("dead", CLIENT, "eth0", "tcp");
        let listener = path.listen();
        let mut connections: Vec<TcpStream> = (0..3).map(|_| path.connect()).collect();
        let accepted: Vec<TcpStream> =
            (0..3).map(|_| listener.accept().expect("a client").0).collect();
        for (connection, mut accepted) in connections.iter_mut().zip(&accepted) {
            let mut answer = [0; 4];
            connection.write_all(b"ping").unwrap();
            accepted.read_exact(&mut answer).expect("a request");
            accepted.write_all(b"pong").unwrap();
            connection.read_exact(&mut answer).expect("an answer");
        }
        // From now on nothing passes, either way.
        let dead = "add table inet way; add chain inet way on { type filter hook forward priority 0; policy drop; }";
        command("nft", &[dead]);
        for connection in &mut connections {
            connection.write_all(b"ping").unwrap();
        }
        wait::measure_for(Duration::from_millis(3_500));
        let report = path.judge(dump, &["capture_dead_peer"]);
        assert_eq!(finding(&report, "capture_dead_peer")["certainty"], "likely");
    });
}

#[test]
fn a_mirror_shows_everything_twice() {
    on_a_path("real-mirror", &[], |path| {
        // The router sees each packet come and go.
        let dump = path.capture("mirror", "", "any", "tcp");
        path.upload(500_000);
        let report = path.judge(dump, &[]);
        assert_eq!(finding(&report, "capture_twice")["certainty"], "certain");
    });
}

#[test]
fn the_capture_misses_packets() {
    on_a_path("real-gaps", &[], |path| {
        // One in eight of the client's packets, by their IP identification.
        let dump =
            path.capture("gaps", CLIENT, "eth0", "tcp and not (dst port 8080 and ip[5] & 7 = 3)");
        path.upload(2_000_000);
        let report = path.judge(dump, &[]);
        assert_eq!(finding(&report, "capture_gaps")["certainty"], "certain");
    });
}

#[test]
fn the_last_packet_of_each_answer_is_lost() {
    on_a_path("real-tail", &["nft"], |path| {
        let table =
            "add table inet way; add chain inet way on { type filter hook forward priority 0; }; ";
        // What has data, one in eight: of an answer of one segment that is its last.
        let rule =
            "add rule inet way on tcp sport 8080 meta length > 200 numgen inc mod 8 == 5 drop";
        command("nft", &[&format!("{table}{rule}")]);
        let dump = path.capture("tail", SERVER, "eth0", "tcp");
        let listener = path.listen();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut connection, _) = listener.accept().expect("a client");
                let mut asked = [0; 10];
                while connection.read_exact(&mut asked).is_ok() {
                    connection.write_all(&[b'x'; 900]).expect("an answer");
                }
            });
            let mut connection = path.connect();
            connection.set_nodelay(true).unwrap();
            let mut answer = [0; 900];
            for _ in 0..40 {
                connection.write_all(b"0123456789").unwrap();
                connection.read_exact(&mut answer).expect("an answer");
            }
        });
        path.judge(dump, &["capture_tail_loss"]);
    });
}

/// A link between the two, in the router's place, on which every packet to the server takes 4 ms and
/// one in twenty 2 ms more.
const OVERTAKES: &str = "there = { delay = \"4ms\", reorder = { share = \"5%\", by = \"2ms\" } }\nback = { delay = \"4ms\" }";

#[test]
fn packets_overtake_each_other_and_sack_is_off() {
    on_a_path("real-reordered", &[], |path| {
        let _link = path.zones.join(path.scene, [CLIENT, SERVER], OVERTAKES);
        path.zones.inside(SERVER, || set("net/ipv4/tcp_sack", "0"));
        let sender = path.capture("reordered-sender", CLIENT, "link0", "tcp");
        let receiver = path.capture("reordered-receiver", SERVER, "link0", "tcp");
        path.upload(2_000_000);
        path.judge(receiver, &["capture_sack_off"]);
        path.judge(sender, &["capture_sack_off"]);
    });
}

#[test]
fn packets_overtake_each_other_and_sack_helps() {
    on_a_path("real-overtaken", &[], |path| {
        let _link = path.zones.join(path.scene, [CLIENT, SERVER], OVERTAKES);
        let sender = path.capture("overtaken-sender", CLIENT, "link0", "tcp");
        let receiver = path.capture("overtaken-receiver", SERVER, "link0", "tcp");
        path.upload(2_000_000);
        // At the receiver it is reported as what it is, by the D-SACKs too, and never as loss.
        let report = path.judge(receiver, &[]);
        let reordering = finding(&report, "capture_reordering");
        assert_eq!(reordering["severity"], "advice", "{reordering:#}");
        path.judge(sender, &[]);
    });
}
