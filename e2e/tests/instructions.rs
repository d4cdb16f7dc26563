//! Instructions for deciding one request, held to a budget: a figure that a busy machine does not
//! move, so that a change which makes every request dearer is noticed when it is made.

use std::path::PathBuf;
use std::process::Command;

use e2e::Scene;

/// Instructions for each request of `src/bin/one_request.rs`, built as the tests are (the dev
/// profile: the optimised program needs a third of it). Whoever makes it cheaper lowers the budget
/// to what is printed plus a twentieth; whoever needs more says in the commit what for.
const BUDGET: u64 = 35_600;

#[test]
fn deciding_a_request_stays_within_its_budget() {
    let Some(_scene) = Scene::new("instructions", &["valgrind"]) else {
        return;
    };
    // What the start costs is in both and cancels out.
    let (few, many) = (1_000, 3_000);
    let each = (counted(many) - counted(few)) / (many - few);
    println!("{each} instructions a request");
    assert!(each <= BUDGET, "{each} instructions a request; the budget is {BUDGET}");
    assert!(each * 4 > BUDGET * 3, "{each} instructions a request: lower the budget of {BUDGET}");
}

/// All instructions of a run of so many requests.
fn counted(times: u64) -> u64 {
    let out =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("one_request-{times}.callgrind"));
    let run = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env!("CARGO_BIN_EXE_one_request"))
        .arg(times.to_string())
        .output()
        .expect("valgrind starts");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    let collected = said.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = collected.unwrap_or_else(|| panic!("no count in: {said}"));
    count.trim().parse().expect("a count")
}
