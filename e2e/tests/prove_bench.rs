//! What `weir bench` promises for long runs: `make prove`.

mod load;

use std::time::Duration;

use e2e::{Scene, wait};
use load::{Bench, light};

#[test]
#[ignore = "takes half a minute: make prove"]
fn memory_grows_neither_with_requests_nor_with_seconds() {
    let Some(scene) = Scene::alone("prove-bench-memory", &[]) else { return };
    let address = scene.address(11, 8080);
    light::serve(address, std::thread::available_parallelism().unwrap().get() - 1);
    let at = format!("http://{address}/");
    for words in [&["-c", "32"][..], &["--rate", "2000"]] {
        let running = Bench::start(&scene, &[&["-q", "-t", "25"], words, &[&at]].concat());
        wait::measure_for(Duration::from_secs(6));
        let early = running.process.resident_bytes();
        wait::measure_for(Duration::from_secs(17));
        let late = running.process.resident_bytes();
        let requests = running.end(Duration::from_mins(1)).code(0).number("totals.requests");
        println!(
            "{} kB after 6 s, {} kB after 23 s, {requests} requests",
            early / 1000,
            late / 1000
        );
        assert!(late < early + 1_000_000, "{early} bytes became {late}");
    }
}
