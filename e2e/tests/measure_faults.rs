//! How soon Weir finds ten faults, what it says about each, and how its page shows it. Each fault is made
//! with real servers, each in a network namespace of its own, while clients send requests. With
//! `UPDATE_EXPECT=1` this writes docs/faults.md and its pictures.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use e2e::{NAMESPACES, Promises, Scene, Zones, find, wait};
use serde_json::Value;

#[path = "faults/make.rs"]
mod make;
#[path = "faults/stage.rs"]
mod stage;

use stage::{Plan, Stage};

/// A fault, how it is made, and what must come of it.
struct Fault {
    name: &'static str,
    /// Of its picture, without the ending.
    file: &'static str,
    made: &'static str,
    plan: Plan,
    make: fn(&mut Stage<'_>),
    /// Before the time runs.
    prepare: fn(&mut Stage<'_>),
    rule: &'static str,
    /// Whether the finding must name the server that has the fault, and no other.
    names_server: bool,
    within_s: f64,
    /// Why it cannot be found sooner, where the bound is not that of rules on traffic.
    why: &'static str,
}

/// What rules on traffic promise at 100 requests a second over three servers.
const TRAFFIC_S: f64 = 10.0;
/// Two sampling intervals of 10 s, the default, and 1 s to evaluate.
const HOST_S: f64 = 21.0;
/// Longer than any promise: what is not found by then is not found.
const FOUND_MAX: Duration = Duration::from_secs(90);

const FAULTS: &[Fault] = &[
    Fault {
        name: "A server becomes slow",
        file: "slow-server",
        made: "one of three servers takes 60 ms for a response instead of 20 ms",
        plan: Plan::THREE,
        make: make::slow_server,
        prepare: make::nothing,
        rule: "server_slow",
        names_server: true,
        within_s: TRAFFIC_S,
        why: "",
    },
    Fault {
        name: "One of many servers becomes slow",
        file: "one-slow-of-many",
        made: "one of 21 servers takes 60 ms instead of 20 ms; each has 5 requests a second",
        plan: Plan { per_zone: 7, ..Plan::THREE },
        make: make::slow_server,
        prepare: make::nothing,
        rule: "server_slow",
        names_server: true,
        within_s: 20.0,
        why: "a server with 5 requests a second gives fewer samples",
    },
    Fault {
        name: "Half-open connections",
        file: "half-open",
        made: "a firewall before one of three servers loses its state: it drops the packets of connections that exist, \
               and lets new ones pass",
        plan: Plan::THREE,
        make: make::half_open,
        prepare: make::nothing,
        rule: "connections_stalled",
        names_server: true,
        within_s: HOST_S,
        why: "seen in samples of the host, which are 10 s apart by default",
    },
    Fault {
        name: "A server responds 500, and quickly",
        file: "quick-500",
        made: "one of three servers responds 500 at once; its health check still passes",
        plan: Plan { service: "passive = false", ..Plan::THREE },
        make: make::quick_500,
        prepare: make::nothing,
        rule: "checks_blind",
        names_server: true,
        within_s: 12.0,
        why: "the rule needs failures in two consecutive windows; `server_failing` reports them sooner",
    },
    Fault {
        name: "A client floods",
        file: "flood",
        made: "after 45 s of normal traffic, one client sends as much as it can on 12 connections",
        plan: Plan { warm_up_s: 45, ..Plan::THREE },
        make: make::flood,
        prepare: make::nothing,
        rule: "client_spike",
        names_server: false,
        within_s: TRAFFIC_S,
        why: "",
    },
    Fault {
        name: "A path loses packets",
        file: "lossy-path",
        made: "5 % of the packets that arrive at one of three servers are dropped; request bodies have 20 kB",
        plan: Plan { clients: &["--method", "POST", "--body-bytes", "20000"], ..Plan::THREE },
        make: make::lossy_path,
        prepare: make::nothing,
        rule: "server_loss",
        names_server: true,
        within_s: HOST_S,
        why: "the rule compares the counters of connections every 10 s",
    },
    Fault {
        name: "A listen queue is full",
        file: "listen-queue",
        made: "one of three servers has a listen backlog of 4 and accepts four connections a second",
        plan: Plan { rogue: true, ..Plan::THREE },
        make: make::listen_queue,
        prepare: make::nothing,
        rule: "server_syns",
        names_server: true,
        within_s: HOST_S,
        why: "seen in samples of the host, which are 10 s apart by default",
    },
    Fault {
        name: "A service is saturated",
        file: "saturated",
        made: "three servers have a limit of 2 requests each; 16 more clients begin to send",
        plan: Plan {
            service: "in_flight_max = 2\nqueue = { length_max = 10, wait_max = \"1s\" }",
            ..Plan::THREE
        },
        make: make::saturated,
        prepare: make::nothing,
        rule: "service_saturated",
        names_server: false,
        within_s: TRAFFIC_S,
        why: "",
    },
    Fault {
        name: "A bad deployment",
        file: "deployment",
        made: "one of three servers is drained and restarted with version 2.8.1, which takes 60 ms instead of 20 ms; \
               the time runs from the end of the drain",
        plan: Plan {
            service: "version_field = \"X-App-Version\"",
            server: &["--work-ms", "20", "--version", "2.8.0"],
            ..Plan::THREE
        },
        make: make::deployment,
        prepare: make::drained_and_restarted,
        rule: "deploy_regression",
        names_server: true,
        within_s: TRAFFIC_S,
        why: "",
    },
    Fault {
        name: "A certificate expires soon",
        file: "certificate",
        made: "the file of a certificate is replaced by one that ends in 30 hours",
        plan: Plan { tls: true, ..Plan::THREE },
        make: make::certificate,
        prepare: make::nothing,
        rule: "certificate_expiring",
        names_server: false,
        within_s: HOST_S,
        why: "changed files are noticed within 10 s, and certificates are examined every 10 s",
    },
];

/// What was found.
struct Found {
    /// The first finding, if it was another, and how soon it came.
    first: Option<(String, Duration)>,
    after: Duration,
    finding: Value,
}

#[test]
#[ignore = "takes minutes; run with make measure"]
fn ten_faults_are_found_soon() {
    let only = std::env::var("FAULT").unwrap_or_default();
    let mut promises = Promises::of("measure_faults");
    let mut rows = Vec::new();
    for fault in FAULTS.iter().filter(|fault| fault.file.contains(&only)) {
        let Some(found) = observe(fault) else {
            promises.left_out(fault.name, "a program is missing");
            continue;
        };
        let measured = found.after.as_secs_f64();
        println!("{}: {:#}", fault.file, found.finding);
        promises.at_most(&format!("{}: found after", fault.name), measured, fault.within_s, "s");
        rows.push((fault, found));
    }
    assert!(FAULTS.iter().any(|fault| fault.file.contains(&only)), "no fault is called {only}");
    promises.hold();
    if updates() && rows.len() == FAULTS.len() {
        std::fs::write(docs().join("faults.md"), page(&rows)).expect("docs/faults.md");
    }
}

/// Makes the fault and waits for its finding; `None` if that is not possible here.
fn observe(fault: &Fault) -> Option<Found> {
    let pictures: &[&str] = if updates() { &["node", "chromium"] } else { &[] };
    let needs = [&[NAMESPACES, "python3", "nft", "ethtool"], pictures].concat();
    let scene = Scene::alone(&format!("faults-{}", fault.file), &needs)?;
    let seen = Mutex::new(None);
    Zones::run(&stage::ZONES, |zones| {
        let mut stage = Stage::start(&scene, zones, &fault.plan);
        stage.warm_up(&fault.plan);
        (fault.prepare)(&mut stage);
        let before = present(&stage);
        assert!(
            before.iter().all(|one| one["rule"] != fault.rule),
            "before the fault: {before:#?}"
        );
        let is_new = |one: &Value| {
            !before.iter().any(|old| ["rule", "subject"].iter().all(|key| old[key] == one[key]))
        };
        let begun = Instant::now();
        (fault.make)(&mut stage);
        let mut first = None;
        let found = wait::within(FOUND_MAX, || {
            // The polls should not be what keeps the machine busy.
            std::thread::sleep(Duration::from_millis(100));
            let now = present(&stage);
            if let Some(one) = now.iter().find(|one| is_new(one)) {
                first.get_or_insert((one["rule"].as_str()?.to_owned(), begun.elapsed()));
            }
            now.into_iter().find(|one| one["rule"] == fault.rule)
        });
        let after = begun.elapsed();
        let Some(finding) = found else {
            panic!("{}: no {} in {:#?}", fault.name, fault.rule, present(&stage))
        };
        if fault.names_server {
            assert_eq!(
                finding["servers"],
                serde_json::json!([stage.faulty_address()]),
                "{finding:#}"
            );
        }
        let first = first.filter(|(rule, _)| rule != fault.rule);
        if updates() {
            picture(&scene, fault.file);
        }
        stage.end();
        let folder = scene.folder().to_string_lossy();
        let finding = finding.to_string().replace(&*folder, "/etc/weir");
        let finding = serde_json::from_str(&finding).expect("JSON");
        *seen.lock().expect("no panic") = Some(Found { first, after, finding });
    });
    seen.into_inner().expect("no panic")
}

/// The findings that are present.
fn present(stage: &Stage<'_>) -> Vec<Value> {
    let document = stage.weir.api("/api/v1/findings");
    let findings = document["findings"].as_array().expect("findings");
    findings.iter().filter(|one| one["is_present"] == true).cloned().collect()
}

fn updates() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn docs() -> std::path::PathBuf {
    root().join("docs")
}

/// Opens the page in a browser in this thread's namespace, and keeps a picture of the overview.
fn picture(scene: &Scene, name: &str) {
    let node = find("node").expect("node takes the pictures");
    let url = format!("http://{}/ui/", scene.admin());
    let folder = scene.folder().join("pictures");
    let status = Command::new(node)
        .current_dir(root().join("web"))
        .args(["tools/look.js", &url, &folder.to_string_lossy(), "overview-1400-light"])
        .envs([("FORMAT", "webp"), ("HEIGHT", "900")])
        .status()
        .expect("a program that starts");
    assert!(status.success(), "look.js reports problems");
    let kept = docs().join("faults");
    std::fs::create_dir_all(&kept).expect("docs/faults");
    let taken = folder.join("overview-1400-light.webp");
    std::fs::copy(taken, kept.join(format!("{name}.webp"))).expect("a picture");
}

const HEAD: &str = "\
# Ten faults, and how soon Weir finds them

Each fault is made with real servers, each in a network namespace of its own, while clients send about 100 \
requests a second. The time runs from the moment at which the fault is made until `/api/v1/findings` has the \
finding. `[doctor]` has its defaults: rules on traffic are evaluated every second, samples of the host are \
taken every 10 s.

`make measure` makes the faults and holds the bounds. Written by `UPDATE_EXPECT=1 cargo test -p weir-e2e \
--test measure_faults -- --ignored`.

| fault | first finding | found after | bound | finding |
|---|---|--:|--:|---|
";

fn page(rows: &[(&Fault, Found)]) -> String {
    let mut out = HEAD.to_owned();
    for (fault, Found { first, after, .. }) in rows {
        let anchor = fault.name.to_lowercase().replace(',', "").replace(' ', "-");
        let (name, rule, bound) = (fault.name, fault.rule, fault.within_s);
        let after = after.as_secs_f64();
        let first = first.as_ref().map_or_else(
            || "the same".to_owned(),
            |(rule, after)| format!("[`{rule}`](rules.md#{rule}), {:.1} s", after.as_secs_f64()),
        );
        let _ = writeln!(
            out,
            "| [{name}](#{anchor}) | {first} | {after:.1} s | {bound:.0} s | [`{rule}`](rules.md#{rule}) |",
        );
    }
    for (fault, Found { after, finding, .. }) in rows {
        let text = |key: &str| finding[key].as_str().expect("a text");
        let remedy = finding["remedy"][0]["action"].as_str().expect("a remedy");
        let late = if fault.why.is_empty() {
            String::new()
        } else {
            format!(" Bound {:.0} s: {}.", fault.within_s, fault.why)
        };
        let _ = write!(
            out,
            "\n## {}\n\nSetup: {}. Found after {:.1} s, {}, {}.{late}\n\n> {}\n>\n> {}\n>\n> What to do: {remedy}.\n\n\
             ![The overview of the dashboard during this fault](faults/{}.webp)\n",
            fault.name,
            fault.made,
            after.as_secs_f64(),
            text("severity"),
            text("certainty"),
            text("what"),
            text("why"),
            fault.file,
        );
    }
    out
}
