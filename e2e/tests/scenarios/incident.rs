//! Runs an incident of the lab and checks its record: everything as the incident's file expects, nothing left behind.

use std::path::Path;
use std::time::Duration;

use e2e::{NAMESPACES, Process, Scene, binary};
use serde_json::Value;

/// Namespaces of the lab's run by process `pid`.
pub(crate) fn namespaces_of(pid: u32) -> Vec<String> {
    let names = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("weir-lab-{pid}-"))).collect()
}

/// What a run of the lab leaves behind: nothing.
pub(crate) fn assert_clean(pid: u32) {
    assert_eq!(namespaces_of(pid), [""; 0]);
    for path in [format!("/run/weir-lab/{pid}.json"), format!("/tmp/weir-lab-{pid}")] {
        assert!(!Path::new(&path).exists(), "{path} is still there");
    }
}

/// Runs an incident, shortened or in full length, within a time, and expects everything to come out as its file
/// says.
pub(crate) fn incident(name: &str, needs: &[&str], is_short: bool, within: Duration) {
    let all = [&[NAMESPACES, "tcpdump"][..], needs].concat();
    let Some(scene) = Scene::alone(&format!("lab-{name}"), &all) else { return };
    let words = ["lab", "run", name, "--json"].into_iter().chain(is_short.then_some("--short"));
    let mut lab = Process::start(&scene, "lab", binary(), words);
    let pid = lab.pid();
    let finished = lab.wait(within);
    assert_clean(pid);
    let record: Value = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", finished.stderr));
    for check in record["checks"].as_array().expect("checks") {
        println!("{}: {} {}", check["what"], check["value"], check["unit"]);
    }
    assert_eq!(finished.code, Some(0), "{} {}", record["checks"], record["findings"]);
    assert!(!record["checks"].as_array().expect("checks").is_empty());
}
