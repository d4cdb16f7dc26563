//! `weir doctor` in real situations, each in a private network: what it must find, and that it finds no
//! other serious problem; no findings on a quiet host; and that its numbers equal those of `ss`, `nstat`
//! and `ethtool`.

#[path = "doctor/agreement.rs"]
mod agreement;
#[path = "doctor/both.rs"]
mod both;
#[path = "doctor/faults.rs"]
#[allow(dead_code, reason = "the other faults are those of make prove")]
mod faults;
#[path = "doctor/make.rs"]
#[allow(dead_code, reason = "the other faults are those of make prove")]
mod make;
#[path = "doctor/stage.rs"]
mod stage;
#[path = "doctor/witness.rs"]
mod witness;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::raw::Raw;
use e2e::{NAMESPACES, Process, Scene, find, wait};
use rustix::process::Signal;
use serde_json::Value;

use stage::{SERVER, Stage, run};

#[test]
fn a_quiet_host_has_no_finding_of_weight() {
    run("doctor-quiet", &[], |stage| {
        let _nginx = stage.nginx("backlog=4096");
        let report = stage.look(Duration::from_secs(1), || {});
        report.expect_weight(&[]);
        // The machine as a whole may suffer all the same, as from those that it shares processors with.
        assert_eq!(report.code, Some(i32::from(report.has_weight())), "{:#}", report.report);
    });
}

/// Each in networks of its own, all at the same time.
#[test]
fn dead_peers_are_seen_and_nothing_false_is_said() {
    std::thread::scope(|scope| {
        let judge = |(number, fault): (usize, &'static faults::Fault)| {
            scope.spawn(move || faults::judge(fault, &format!("doctor-dead-{number}")))
        };
        let threads: Vec<_> = faults::DEAD_OR_FALSE.iter().enumerate().map(judge).collect();
        for outcome in threads.into_iter().flat_map(|thread| thread.join().expect("no panic")) {
            let (fault, side) = (outcome.fault, outcome.expected.side);
            assert!(outcome.is_found, "{fault}, {side:?}: missed {:?}", outcome.expected.finds);
            assert!(outcome.wrong.is_empty(), "{fault}, {side:?}: {:#?}", outcome.wrong);
        }
    });
}

#[test]
fn a_full_accept_queue_of_a_stopped_server() {
    run("doctor-accept", &["nginx"], |stage| {
        let nginx = stage.nginx("backlog=16");
        nginx.signal(Signal::STOP);
        let report = stage.look(Duration::from_secs(2), || {
            // Those that find the queue full send their SYN again after a second.
            let _held = stage.as_client(|| Stage::knock(60));
            wait::measure_for(Duration::from_millis(1800));
        });
        nginx.signal(Signal::CONT);
        let finding = report.expect_weight(&["listener_overflow"]);
        assert_eq!(finding["subject"], SERVER.to_string());
        assert_eq!(report.code, Some(1));
    });
}

#[test]
fn a_burst_of_syns_larger_than_the_backlog_brings_cookies() {
    run("doctor-cookies", &["nginx"], |stage| {
        let _nginx = stage.nginx("");
        let report = stage.look(Duration::from_secs(2), || stage.flood(3_000));
        let finding = report.expect_weight(&["syn_cookies"]);
        assert!(finding.to_string().contains("511 connections, at"), "{finding:#}");
    });
}

#[test]
fn a_burst_of_real_clients_is_no_flood() {
    run("doctor-burst", &["nginx"], |stage| {
        let _nginx = stage.nginx("");
        let report = stage.look(Duration::from_secs(4), || {
            // The server's answers are held back, as on a long way, so that its queue of half-open
            // connections fills, and come a few at a time, so that its accept queue does not where
            // other work keeps nginx from its processor.
            let _held = stage.as_client(|| {
                stage::nft(
                    "add table inet hold; \
                     add chain inet hold in { type filter hook input priority 0; }; \
                     add rule inet hold in tcp sport 8080 tcp flags syn \
                       limit rate over 150/second burst 5 packets drop",
                );
                Stage::knock(600)
            });
            wait::measure_for(Duration::from_millis(3_300));
        });
        let finding = report.expect_weight(&["syn_cookies"]);
        assert!(finding.to_string().contains("511 connections, at"), "{finding:#}");
    });
}

#[test]
fn without_cookies_the_same_burst_loses_syns() {
    run("doctor-no-cookies", &["nginx"], |stage| {
        stage::set("net/ipv4/tcp_syncookies", "0");
        let _nginx = stage.nginx("");
        let report = stage.look(Duration::from_secs(2), || stage.flood(3_000));
        report.expect_weight(&["syn_drops"]);
    });
}

#[test]
fn selective_acknowledgements_are_off() {
    run("doctor-sack", &[], |stage| {
        stage::set("net/ipv4/tcp_sack", "0");
        let report = stage.look(Duration::from_millis(300), || {});
        report.expect_weight(&["sack_off"]);
    });
}

#[test]
fn somaxconn_was_raised_after_the_start() {
    run("doctor-stale", &["nginx"], |stage| {
        stage::set("net/core/somaxconn", "128");
        let _nginx = stage.nginx("backlog=4096");
        stage::set("net/core/somaxconn", "4096");
        let report = stage.look(Duration::from_millis(300), || {});
        // Nothing is lost yet, so it is advice.
        report.expect_weight(&[]);
        let finding = report.finding("backlog_stale");
        assert_eq!(finding["subject"], SERVER.to_string());
    });
}

#[test]
fn ports_run_out_towards_one_server() {
    run("doctor-ports", &[], |stage| {
        stage::set("net/ipv4/ip_local_port_range", "40000 40099");
        let server = stage.as_client(|| TcpListener::bind("10.99.1.11:80").expect("a listener"));
        let held: Vec<_> = (0..95)
            .map(|_| TcpStream::connect("10.99.1.11:80").expect("a port that is left"))
            .collect();
        let report = stage.look(Duration::from_millis(500), || {});
        let finding = report.expect_weight(&["ports_exhausted"]);
        assert!(finding.to_string().contains("10.99.1.11:80"), "{finding:#}");
        drop((held, server));
    });
}

#[test]
fn a_connection_table_filled_by_short_flows() {
    run("doctor-conntrack", &[], |stage| {
        // Connections are tracked where a rule asks about them.
        stage::nft(
            "add table inet track; \
             add chain inet track in { type filter hook input priority 0; }; \
             add rule inet track in ct state new accept",
        );
        let max: u32 = stage::get("net/netfilter/nf_conntrack_max").parse().expect("a number");
        assert!(max <= 2_000_000, "a table of {max} entries takes too long to fill");
        let sink = UdpSocket::bind(("10.99.1.1", 9)).expect("a port that takes datagrams");
        stage.as_client(|| {
            let raw = Raw::open();
            // A little less than full, so that none is thrown out for another.
            for flow in 0..max / 100 * 95 {
                let [_, b, c, d] = (flow / 50_000).to_be_bytes();
                let from = Ipv4Addr::new(198, 18 + (b & 1), c, d);
                let port = 10_000 + (flow % 50_000) as u16;
                raw.datagram(SocketAddrV4::new(from, port), "10.99.1.1:9".parse().unwrap());
            }
        });
        let report = stage.look(Duration::from_millis(500), || {});
        report.expect_weight(&["conntrack_full"]);
        drop(sink);
    });
}

#[test]
fn a_program_that_reads_slowly() {
    run("doctor-reader", &[], |stage| {
        let listener = TcpListener::bind(SERVER).expect("a listener");
        let sender = stage.as_client(|| {
            let mut sender = TcpStream::connect(SERVER).expect("a connection");
            std::thread::spawn(move || {
                // Ends when the reader has gone.
                while sender.write_all(&vec![0; 65_536]).is_ok() {}
            })
        });
        let (mut reader, _) = listener.accept().expect("a client");
        let report = stage.look(Duration::from_secs(2), || {
            // A window's worth from time to time, so that it opens and closes again.
            for _ in 0..15 {
                wait::measure_for(Duration::from_millis(120));
                let mut taken = 0;
                let mut buffer = vec![0; 65_536];
                while taken < 4_000_000 {
                    taken += reader.read(&mut buffer).expect("what was sent");
                }
            }
        });
        drop(reader);
        sender.join().expect("the sender's thread");
        report.expect_weight(&["slow_reader"]);
    });
}

#[test]
fn three_packets_in_a_hundred_are_lost() {
    run("doctor-loss", &[], |stage| {
        stage.as_client(|| {
            // Lost on their way: whole packets of data, so that this is not about how SYNs are
            // sent again.
            stage::nft(
                "add table inet lose; \
                 add chain inet lose in { type filter hook input priority 0; }; \
                 add rule inet lose in ip length > 500 numgen random mod 100 < 3 drop",
            );
            let listener = TcpListener::bind("10.99.1.11:80").expect("a listener");
            std::thread::spawn(move || {
                while let Ok((mut from, _)) = listener.accept() {
                    std::thread::spawn(move || std::io::copy(&mut from, &mut std::io::sink()));
                }
            });
        });
        // Segments as on a wire: what is lost is one of them, not 64 KiB at once.
        e2e::offloads_off("zone1");
        let report = stage.look(Duration::from_secs(2), || {
            for _ in 0..20 {
                let mut to = TcpStream::connect("10.99.1.11:80").expect("a connection");
                to.write_all(&vec![0; 400_000]).expect("a server that reads");
            }
        });
        let finding = report.expect_weight(&["loss"]);
        let share = finding["evidence"].to_string();
        assert!(finding["what"].to_string().contains('%'), "{share}");
    });
}

#[test]
fn a_cgroup_with_a_quota_of_cpu_time() {
    let Some(scene) = Scene::alone("doctor-quota", &[NAMESPACES, "python3"]) else {
        return;
    };
    let root = Path::new("/sys/fs/cgroup/cpu");
    if !root.join("cpu.cfs_quota_us").exists() && !root.join("cpu.stat").exists() {
        eprintln!("doctor-quota: SKIPPED, this machine has no cgroups of the first interface");
        return;
    }
    let group = Group::make(root, 10_000);
    let busy = ["-c", "while True: pass"];
    let busy = Process::start(&scene, "busy", &find("python3").expect("python3"), busy);
    group.take(&busy);
    e2e::Zones::run(&["clients"], |zones| {
        let stage = Stage { scene: &scene, zones };
        let report = stage.look(Duration::from_secs(1), || {});
        let finding = report.finding("cgroup_throttled");
        assert!(finding["subject"].to_string().contains(&group.name()), "{finding:#}");
        assert_eq!(finding["severity"], "critical", "{finding:#}");
        report.expect_weight_but(&["cgroup_throttled"], &["cgroup_throttled"]);
    });
}

/// A cgroup of the first interface, removed with the test.
struct Group {
    folder: PathBuf,
}

impl Group {
    fn make(root: &Path, quota_us: u32) -> Group {
        let folder = root.join(format!("weir-test-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("a cgroup of the test's own");
        let group = Group { folder };
        std::fs::write(group.folder.join("cpu.cfs_quota_us"), quota_us.to_string())
            .expect("a quota");
        group
    }

    fn name(&self) -> String {
        self.folder.file_name().expect("a name").to_string_lossy().into_owned()
    }

    fn take(&self, process: &Process) {
        std::fs::write(self.folder.join("cgroup.procs"), process.pid().to_string())
            .expect("a place in the cgroup");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes go back to the root first: a cgroup is removed only when it is empty.
        let procs = std::fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        let above = self.folder.with_file_name("cgroup.procs");
        for pid in procs.lines() {
            drop(std::fs::write(&above, pid));
        }
        drop(std::fs::remove_dir(&self.folder));
    }
}

#[test]
fn saved_facts_lead_to_the_same_findings_elsewhere() {
    run("doctor-saved", &[], |stage| {
        stage::set("net/ipv4/tcp_sack", "0");
        let saved = stage.scene.folder().join("facts.json");
        let saved = saved.to_string_lossy();
        let here = stage.doctor(&["--netns", "own", "--for", "200ms", "--json", "--save", &saved]);
        let there = stage.doctor(&["--facts", &saved, "--json"]);
        assert_eq!((here.code, there.code), (Some(1), Some(1)), "{there:?}");
        let findings =
            |text: &str| serde_json::from_str::<Value>(text).unwrap()["findings"].clone();
        assert_eq!(findings(&here.stdout), findings(&there.stdout));
        std::fs::write(&*saved, "{\"format\": 99}").expect("a file");
        let later = stage.doctor(&["--facts", &saved]);
        assert_eq!(later.code, Some(2));
        assert!(later.stderr.contains("later version"), "{}", later.stderr);
    });
}

#[test]
fn a_balancer_tells_what_its_doctor_finds() {
    run("doctor-serve", &["python3"], |stage| {
        stage::set("net/ipv4/tcp_sack", "0");
        let scene = stage.scene;
        let app = e2e::App::start(scene, 11, &["--work-ms", "1"]);
        let config = scene.one_service("", &[app.address()]);
        let weir = e2e::Weir::start(scene, &(config + "[doctor]\ninterval = \"1s\"\n"));
        let answer = wait::until("the finding", Duration::from_secs(10), || {
            let answer = weir.api("/api/v1/findings");
            let mut findings = answer["findings"].as_array()?.iter();
            findings
                .any(|one| one["rule"] == "sack_off" && one["is_present"] == true)
                .then_some(answer)
        });
        assert_eq!((&answer["enabled"], &answer["interval_ms"]), (&true.into(), &1000.into()));
        weir.wait_for_log(&["sack_off", "SACK is off"], Duration::from_secs(5));
        let admin = scene.admin().to_string();
        let status = e2e::run(scene, &["status", "--admin", &admin]);
        assert!(status.stdout.contains("(sack_off)"), "{}", status.stdout);
        // Three looks later it has not been said again.
        wait::until("more looks", Duration::from_secs(10), || {
            (weir.api("/api/v1/findings")["looks"].as_u64()? >= 4).then_some(())
        });
        assert_eq!(weir.log().matches("sack_off").count(), 1, "{}", weir.log());
    });
}

#[test]
fn health_checks_and_settings_are_computed_from_files() {
    let Some(scene) = Scene::new("doctor-files", &[]) else {
        return;
    };
    let mut haproxy = "defaults\n  mode tcp\n  timeout connect 1s\n".to_owned();
    for service in 0..70 {
        haproxy += &format!("backend s{service}\n  server mesh 10.0.0.1:80 check inter 2s\n");
    }
    let file = scene.file("haproxy.cfg", haproxy);
    let words = ["doctor", "checks", &file.to_string_lossy(), "--nodes", "32"];
    let checks = e2e::run(&scene, &words);
    assert_eq!(checks.code, Some(1), "{checks:?}");
    assert!(checks.stdout.contains("1,120") && checks.stdout.contains("16"), "{}", checks.stdout);

    let file = scene.file("90.conf", "net.ipv4.tcp_mem=8388608 8388608 8388608\n");
    let settings = e2e::run(&scene, &["doctor", "sysctl", &file.to_string_lossy()]);
    assert!(settings.stdout.contains("32 GiB"), "{settings:?}");
    let page = e2e::run(&scene, &["doctor", "--explain", "syn_cookies"]);
    assert_eq!(page.code, Some(0), "{page:?}");
    let unknown = e2e::run(&scene, &["doctor", "--explain", "syn_cokies"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("did you mean syn_cookies?"), "{}", unknown.stderr);
}

#[test]
fn every_namespace_of_the_host_is_read() {
    run("doctor-netns", &["nginx"], |stage| {
        stage.as_client(|| stage::set("net/ipv4/tcp_sack", "0"));
        let finished = stage.doctor(&["--for", "200ms", "--json"]);
        let report: Value = serde_json::from_str(&finished.stdout).expect("a report");
        let name = stage.as_client(|| {
            let link = std::fs::read_link("/proc/thread-self/ns/net").expect("a namespace");
            let named = report["namespaces"].as_array().expect("namespaces").iter();
            let inode = |row: &Value| format!("net:[{}]", row["inode"]);
            let row = named.into_iter().find(|row| inode(row) == link.to_string_lossy());
            row.expect("the clients' namespace")["name"].clone()
        });
        let mut findings = report["findings"].as_array().expect("findings").iter();
        let off = findings.find(|one| one["rule"] == "sack_off" && one["namespace"] == name);
        assert!(off.is_some(), "{report:#}");
        let unknown = stage.doctor(&["--netns", "no-such-namespace"]);
        assert_eq!(unknown.code, Some(2), "{unknown:?}");
    });
}
