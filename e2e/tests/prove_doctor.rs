//! What a look costs: 100,000 sockets within 0.3 s, and a whole run within 50 ms of CPU time.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use e2e::{NAMESPACES, Process, Scene, Zones, binary, find};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::Value;

/// Half of the sockets; each connection has two.
const CONNECTIONS: usize = 50_000;

#[test]
#[ignore = "takes long; run with make prove"]
fn prove_a_hundred_thousand_sockets_within_300_ms() {
    let Some(scene) = Scene::alone("prove-doctor", &[NAMESPACES]) else {
        return;
    };
    Zones::run(&[], |_| {
        let wanted = Some(2 * CONNECTIONS as u64 + 1_000);
        setrlimit(Resource::Nofile, Rlimit { current: wanted, maximum: wanted })
            .expect("more open files, which takes root");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080));
        let listener = TcpListener::bind(address).expect("a listener");
        let held: Vec<(TcpStream, TcpStream)> = (0..CONNECTIONS)
            .map(|number| {
                // A destination of loopback for each 10,000, since ports are 28,232 for each.
                let to = Ipv4Addr::new(127, 0, 0, 1 + (number / 10_000) as u8);
                let connect = || TcpStream::connect((to, 8080));
                let listener = if to == Ipv4Addr::LOCALHOST { &listener } else { other(to) };
                let client = connect().expect("a connection");
                (client, listener.accept().expect("its other end").0)
            })
            .collect();
        let mut times = Vec::new();
        for _ in 0..3 {
            let begin = Instant::now();
            let words = ["doctor", "sockets", "--netns", "own", "--json"];
            let mut doctor = Process::start(&scene, "doctor", binary(), words);
            let finished = doctor.wait(Duration::from_secs(10));
            times.push(begin.elapsed());
            let last = finished.stdout.rfind("\n{").map_or(0, |at| at + 1);
            let told: Value = serde_json::from_str(&finished.stdout[last..]).expect("JSON");
            let states = &told["namespaces"][0]["sockets"]["states"];
            assert!(states["established"].as_u64() >= Some(2 * CONNECTIONS as u64), "{states}");
        }
        let best = times.iter().min().expect("three times");
        eprintln!("100,000 sockets: {times:?}");
        assert!(*best < Duration::from_millis(300), "{times:?}");
        drop(held);
    });
}

/// A listener on another address of loopback, for the whole test.
fn other(address: Ipv4Addr) -> &'static TcpListener {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    static OTHERS: Mutex<BTreeMap<Ipv4Addr, &'static TcpListener>> = Mutex::new(BTreeMap::new());
    OTHERS.lock().expect("a lock").entry(address).or_insert_with(|| {
        Box::leak(Box::new(TcpListener::bind((address, 8080)).expect("a listener")))
    })
}

#[test]
#[ignore = "takes long; run with make prove"]
fn prove_a_run_takes_50_ms_of_cpu_time() {
    let Some(scene) = Scene::alone("prove-doctor-cpu", &[NAMESPACES, "bash"]) else {
        return;
    };
    Zones::run(&[], |_| {
        let script = format!(
            "TIMEFORMAT='%U %S'; time {} doctor --for 1s --json >/dev/null",
            binary().display()
        );
        let bash = find("bash").expect("bash");
        let mut timed = Process::start(&scene, "timed", &bash, ["-c", &script]);
        let finished = timed.wait(Duration::from_secs(20));
        let line = finished.stderr.lines().last().expect("times").to_owned();
        let used: f64 = line.split(' ').map(|part| part.parse::<f64>().expect("seconds")).sum();
        eprintln!("CPU time: {:.0} ms", used * 1e3);
        assert!(used <= 0.050, "{line}");
    });
}
