//! The doctor's numbers equal those of `ss`, `nstat` and `ethtool`, where these show them.

use std::process::Command;
use std::time::Duration;

use e2e::find;
use serde_json::Value;

use crate::stage::{SERVER, Stage, run};

#[test]
fn numbers_are_those_of_other_tools() {
    run("doctor-agrees", &["nginx", "ss", "nstat", "ethtool"], |stage| {
        let _nginx = stage.nginx("backlog=77");
        // Connections that stay, some bytes, and what they leave in the counters.
        let held: Vec<_> = (0..5).map(|_| e2e::http::get(SERVER, "/").expect("hello")).collect();
        let facts = facts(stage);
        let namespace = &facts["namespaces"][0];
        let newest = namespace["samples"].as_array().expect("samples").last().expect("a sample");
        listeners_agree(newest);
        counters_agree(newest);
        interfaces_agree(newest);
        drop(held);
    });
}

fn facts(stage: &Stage<'_>) -> Value {
    let path = stage.scene.folder().join("facts.json");
    stage.look(Duration::from_millis(100), || {});
    serde_json::from_str(&std::fs::read_to_string(path).expect("facts")).expect("facts")
}

/// `ss -ltn`: Recv-Q is who waits, Send-Q the backlog.
fn listeners_agree(sample: &Value) {
    let shown = say("ss", &["--listening", "--tcp", "--numeric", "--no-header"]);
    let row = shown.lines().find(|line| line.contains(&SERVER.to_string())).expect("a row of ss");
    let columns: Vec<&str> = row.split_whitespace().collect();
    let listeners = sample["listeners"].as_array().expect("listeners");
    let ours = listeners.iter().find(|one| one["address"] == SERVER.to_string());
    let ours = ours.expect("our listener");
    assert_eq!(ours["waiting"].to_string(), columns[1], "{shown}");
    assert_eq!(ours["backlog"].to_string(), columns[2], "{shown}");
    assert_eq!(ours["backlog"], 77);
    assert_eq!(ours["program"], "nginx");
    assert_eq!(listeners.len(), shown.lines().count(), "{shown}");
}

/// `nstat -az`, in a namespace in which nothing happens meanwhile.
fn counters_agree(sample: &Value) {
    let shown = say("nstat", &["-asz", "--json"]);
    let shown: Value = serde_json::from_str(&shown).expect("nstat's JSON");
    let shown = shown["kernel"].as_object().expect("counters");
    let counters = sample["counters"].as_object().expect("counters");
    let mut compared = 0;
    // Those of IPv6 move by themselves: the interfaces have just come up.
    for (name, value) in counters.iter().filter(|(name, _)| name.starts_with("Tcp")) {
        // nstat leaves out some of Tcp's settings, which are no counters.
        let Some(theirs) = shown.get(name) else { continue };
        assert_eq!(theirs, value, "{name}");
        compared += 1;
    }
    assert!(compared > 100, "only {compared} counters compared");
    assert!(counters["TcpPassiveOpens"].as_u64() >= Some(5), "{counters:?}");
}

/// `ethtool -S` and `ethtool -l`.
fn interfaces_agree(sample: &Value) {
    let interfaces = sample["interfaces"].as_array().expect("interfaces");
    let ours = interfaces.iter().find(|one| one["name"] == "zone1").expect("zone1");
    assert_eq!(ours["driver"], "veth");
    assert_eq!(ours["mtu_bytes"], 1500);
    let shown = say("ethtool", &["-S", "zone1"]);
    let statistics = ours["statistics"].as_object().expect("statistics");
    let mut compared = 0;
    for line in shown.lines().skip(1) {
        let Some((name, value)) = line.trim().rsplit_once(": ") else { continue };
        assert_eq!(statistics[name].to_string(), value, "{name}");
        compared += 1;
    }
    assert!(compared > 1 && compared == statistics.len(), "{shown}");
    let shown = say("ethtool", &["-l", "zone1"]);
    let now = shown.split("Current hardware settings:").nth(1).expect("queues in use");
    let queues = now.lines().find_map(|line| line.strip_prefix("RX:")).expect("RX").trim();
    assert_eq!(ours["rx_queues"].to_string(), queues, "{shown}");
}

fn say(program: &str, words: &[&str]) -> String {
    let output = Command::new(find(program).expect("it is needed")).args(words).output();
    let output = output.expect("a program that starts");
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
