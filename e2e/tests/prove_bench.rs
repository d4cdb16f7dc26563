//! What `weir bench` promises for long runs: `make prove`.

mod load;

use std::time::Duration;

use e2e::{Scene, wait};
use load::{Bench, light};

/// Until everything that is kept has been made.
const EARLY_S: u64 = 6;

#[test]
#[ignore = "takes half a minute: make prove"]
fn memory_grows_neither_with_requests_nor_with_seconds() {
    let Some(scene) = Scene::alone("prove-bench-memory", &[]) else { return };
    let address = scene.address(11, 8080);
    light::serve(address, std::thread::available_parallelism().unwrap().get() - 1);
    let at = format!("http://{address}/");
    let later_s = if e2e::is_long() { 17 } else { 10 };
    for words in [&["-c", "32"][..], &["--rate", "2000"]] {
        let time = format!("{}", EARLY_S + later_s + 2);
        let running = Bench::start(&scene, &[&["-q", "-t", &*time], words, &[&at]].concat());
        wait::measure_for(Duration::from_secs(EARLY_S));
        let early = running.process.resident_bytes();
        wait::measure_for(Duration::from_secs(later_s));
        let late = running.process.resident_bytes();
        let requests = running.end(Duration::from_mins(1)).code(0).number("totals.requests");
        println!(
            "{} kB after {EARLY_S} s, {} kB {later_s} s later, {requests} requests",
            early / 1000,
            late / 1000
        );
        assert!(late < early + 1_000_000, "{early} bytes became {late}");
    }
}
