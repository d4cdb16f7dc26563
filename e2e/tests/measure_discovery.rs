//! How fast changes of many services take effect, and what they cost: `make measure`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use e2e::consul::{FakeConsul, Instance};
use e2e::{Process, Promises, Scene, Weir, wait};

const SERVICES: u32 = 2_000;
const SERVERS_EACH: u32 = 10;
const CHANGES_PER_S: u64 = 100;
/// How long each part of the measurement takes; there are as many quiet ones as busy ones.
const PART: Duration = Duration::from_secs(10);
const PARTS: usize = 4;

#[test]
#[ignore = "takes two minutes: make measure"]
fn changes_of_2000_services_are_in_use_within_milliseconds() {
    let Some(scene) = Scene::alone("measure-discovery", &[]) else { return };
    // Its CPU time is not Weir's: it gets what the others leave.
    let address = scene.address(9, 8500);
    let consul = at_low_priority(|| FakeConsul::start(address));
    let live = scene.address(7, 80);
    let listen = live.to_string();
    let words = ["bench", "serve", "--listen", &listen, "--work", "0ms", "--slots", "64"];
    let _server = Process::start(&scene, "server", e2e::binary(), words);
    consul.set("live", &[Instance::new("live", live)]);
    for service in 0..SERVICES {
        consul.set(&format!("s{service}"), &instances(service, 0));
    }
    let mut weir = Weir::start(&scene, &configuration(&scene, &consul));
    let servers = f64::from(SERVICES * SERVERS_EACH) + 1.0;
    wait::until("all servers", Duration::from_mins(1), || {
        let listed = weir.metric("weir_source_servers", &["standing=\"listed\""]);
        (listed >= servers).then_some(())
    });

    let mut quiet = Vec::new();
    let mut busy = Vec::new();
    let (mut cpu, mut changes) = (Duration::ZERO, 0);
    let mut turns = vec![0_u64; SERVICES as usize];
    let before = propagation(&weir);
    for part in 0..PARTS {
        quiet.push(p99_ms(&scene, &format!("quiet-{part}")));
        let control = control_thread(weir.process());
        let used = cpu_time(&control);
        let (p99, count) =
            with_changes(&consul, &mut turns, || p99_ms(&scene, &format!("busy-{part}")));
        cpu += cpu_time(&control).saturating_sub(used);
        changes += count;
        busy.push(p99);
    }
    let took = propagation(&weir);
    let count =
        took.last().copied().unwrap_or_default().1 - before.last().copied().unwrap_or_default().1;
    let within = |bound: f64| {
        let at =
            |all: &[(f64, f64)]| all.iter().find(|(le, _)| *le >= bound).map_or(0.0, |it| it.1);
        at(&took) - at(&before)
    };
    println!(
        "{changes} changes, {count} answers applied; quiet p99 {quiet:?} ms, busy {busy:?} ms"
    );
    let mut promises = Promises::of("measure_discovery");
    let share = within(0.025) / count * 100.0;
    promises.at_least("answers in use within 25 ms of their arrival", share, 99.0, "%");
    promises.at_least("answers in use within 5 ms", within(0.005) / count * 100.0, 99.0, "%");
    let of_a_core = cpu.as_secs_f64() / (PART.as_secs_f64() * PARTS as f64) * 100.0;
    promises.at_most("CPU of the control thread, HTTP and JSON included", of_a_core, 5.0, "%");
    let seen = count / changes as f64 * 100.0;
    promises.at_least("answers for each hundred changes", seen, 90.0, "");
    let ratio = median(&busy) / median(&quiet);
    promises.at_most("p99 of requests, beside that without changes", ratio, 1.1, "");
    promises.hold();
}

/// Runs `start` on a thread of low priority, which those that it starts inherit.
fn at_low_priority<T: Send>(start: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            low_priority();
            start()
        });
        thread.join().expect("it starts")
    })
}

fn low_priority() {
    // Of this thread alone, in Linux.
    rustix::process::setpriority_process(None, 19).expect("a lower priority");
}

/// The instances of a service; `turn` decides which of its addresses are in use.
fn instances(service: u32, turn: u64) -> Vec<Instance> {
    let one = |server: u32| {
        // Two addresses for each instance, of which one is in use; nothing listens there.
        let host = service * SERVERS_EACH + server;
        let port = if (turn >> server) & 1 == 1 { 9001 } else { 9000 };
        let ip = [127, 100 + (host >> 16) as u8, (host >> 8) as u8, host as u8];
        Instance::new(&format!("s{service}-{server}"), SocketAddr::from((ip, port)))
    };
    (0..SERVERS_EACH).map(one).collect()
}

fn configuration(scene: &Scene, consul: &FakeConsul) -> String {
    let mut rest =
        format!("[consul]\naddress = \"{}\"\nconnections_max = {}\n", consul.url(), SERVICES + 100);
    rest.push_str(
        "[[route]]\nservice = \"live\"\n[service.live]\ndiscover = { consul = \"live\" }\n",
    );
    for service in 0..SERVICES {
        rest.push_str(&format!(
            "[[route]]\nhost = \"s{service}.test\"\nservice = \"s{service}\"\n\
             [service.s{service}]\ndiscover = {{ consul = \"s{service}\" }}\n"
        ));
    }
    scene.config("", &rest)
}

/// Runs `measure` while services change, each change that of one server of one service. Returns how many.
fn with_changes<T: Send>(
    consul: &FakeConsul,
    turns: &mut [u64],
    measure: impl FnOnce() -> T + Send,
) -> (T, u64) {
    let stop = AtomicBool::new(false);
    let changes = AtomicU64::new(0);
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            low_priority();
            let begun = Instant::now();
            while !stop.load(Relaxed) {
                let count = changes.fetch_add(1, Relaxed);
                // A prime, so that each service has its turn.
                let service = (count * 977 % u64::from(SERVICES)) as u32;
                turns[service as usize] ^= 1 << (count % u64::from(SERVERS_EACH));
                consul.set(&format!("s{service}"), &instances(service, turns[service as usize]));
                let due = begun
                    + Duration::from_secs(1).mul_f64((count + 1) as f64 / CHANGES_PER_S as f64);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        });
        let measured = measure();
        stop.store(true, Relaxed);
        measured
    });
    (measured, changes.into_inner())
}

/// The 99th percentile of requests to the service that does not change, at a moderate rate.
fn p99_ms(scene: &Scene, name: &str) -> f64 {
    let file = scene.folder().join(format!("{name}.json"));
    let (url, time) = (format!("http://{}/", scene.front()), format!("{}s", PART.as_secs()));
    let file_text = file.to_string_lossy();
    let words =
        ["bench", &url, "--rate", "500", "-t", &time, "--json", &file_text, "--color", "never"];
    let finished =
        Process::start(scene, name, e2e::binary(), words).wait(PART + Duration::from_secs(20));
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let text = std::fs::read_to_string(&file).expect("the figures");
    let figures: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let p99 = e2e_p99(&figures).unwrap_or_else(|| panic!("no p99 in {figures:#}"));
    assert!(p99 > 0.0);
    p99
}

fn e2e_p99(figures: &serde_json::Value) -> Option<f64> {
    figures["latency"]["intended_start"]["p99_ms"].as_f64()
}

/// The task of Weir's control thread.
fn control_thread(process: &Process) -> std::path::PathBuf {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.pid())).expect("its threads");
    let named = |task: &Path| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "weir-control")
    };
    tasks.flatten().map(|task| task.path()).find(|task| named(task)).expect("the control thread")
}

/// CPU time of a thread, by the scheduler's count in nanoseconds.
fn cpu_time(task: &Path) -> Duration {
    let text = std::fs::read_to_string(task.join("schedstat")).expect("schedstat");
    let nanos = text.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}

/// The buckets of the histogram of propagation: bound in seconds, and count.
fn propagation(weir: &Weir) -> Vec<(f64, f64)> {
    const BOUNDS: [&str; 5] = ["0.0005", "0.005", "0.01", "0.025", "+Inf"];
    let bucket = |bound: &str| {
        let label = format!("le=\"{bound}\"");
        let count = weir.metric("weir_source_propagation_seconds_bucket", &[&label]);
        (bound.parse().unwrap_or(f64::INFINITY), count)
    };
    BOUNDS.iter().map(|bound| bucket(bound)).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    f64::midpoint(sorted[middle], sorted[(sorted.len() - 1) / 2])
}
