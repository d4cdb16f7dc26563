//! Clients that are slow on purpose, and what they do to others: what each of them costs is held in
//! `slow_clients.rs`, how long others wait in `measure_slow_clients.rs`.

use std::time::Duration;

use e2e::clients::{Posts, posts};
use e2e::{App, Nginx, Process, Scene, Weir, find, http, wait};

/// Attackers at once. They are killed long before they and Weir would have had enough.
const ATTACKERS: u32 = 400;
const ATTACK_S: u32 = 60;
const PATIENT: &str = "timeouts = { head = \"2m\" }";

/// A kind of attack.
#[derive(Debug)]
#[allow(dead_code, reason = "each test file uses what it needs")]
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// slowhttptest's arguments.
    words: &'static [&'static str],
    target: &'static str,
    /// What one attacker may make Weir keep.
    pub(crate) bytes_max: u64,
    /// And the kernel, in the buffers of Weir's sockets: it comes out of what all connections of
    /// the machine have together.
    pub(crate) kernel_bytes_max: u64,
}

static SLOWLORIS: Attack = Attack {
    name: "slow head",
    words: &["-H"],
    target: "/slow",
    bytes_max: 24_000,
    kernel_bytes_max: 64_000,
};
static SLOW_POST: Attack = Attack {
    name: "slow body",
    words: &["-B", "-s", "8192"],
    target: "/slow",
    bytes_max: 48_000,
    kernel_bytes_max: 64_000,
};
static SLOW_READ: Attack = Attack {
    name: "slow read",
    words: &["-X", "-w", "512", "-y", "1024", "-z", "32", "-n", "1"],
    target: "/files/large",
    bytes_max: 160_000,
    kernel_bytes_max: 1_000_000,
};

/// What an attack did.
#[derive(Debug)]
#[allow(dead_code, reason = "each test file uses what it needs")]
pub(crate) struct Harm {
    pub(crate) attack: &'static Attack,
    /// What each attacker made Weir keep, and the kernel.
    pub(crate) bytes: u64,
    pub(crate) kernel_bytes: u64,
    /// Requests of those who behave that failed.
    pub(crate) failed: u64,
    /// Those who behave, once all attackers are there.
    pub(crate) busy: Posts,
}

/// What was seen of those who behave.
#[allow(dead_code, reason = "each test file uses what it needs")]
pub(crate) struct Attacked {
    /// Without attackers.
    pub(crate) quiet: Posts,
    pub(crate) harms: Vec<Harm>,
}

/// Attacks in every way; `None` where a program for it is missing.
pub(crate) fn attack(name: &str) -> Option<Attacked> {
    let scene = Scene::alone(name, &["python3", "nginx", "wrk", "ss", "slowhttptest"])?;
    // One server for those who behave. The attacked one reads bodies to their end, however slow.
    let nginx = Nginx::start(&scene, 11, "");
    let app = App::start(&scene, 12, &[]);
    let large = std::fs::File::create(scene.folder().join("large")).unwrap();
    large.set_len(20_000_000).unwrap();
    let config = scene.config(
        "workers = 2\nlog = { access = \"off\" }",
        &format!(
            "{PATIENT}\n[[route]]\nservice = \"site\"\n[service.site]\n{}\
             [[route]]\npath = \"/slow\"\nservice = \"slow\"\n[service.slow]\n{}",
            e2e::server_tables("site", [nginx.address()]),
            e2e::server_tables("slow", [app.address()])
        ),
    );
    let mut weir = Weir::start(&scene, &config);
    // What is taken once and kept, such as buffers, is there before anything is measured.
    others(&scene, &weir, 1);
    let quiet = others(&scene, &weir, 2);
    let attacks = [&SLOWLORIS, &SLOW_POST, &SLOW_READ];
    let harms = attacks.map(|attack| harm(&scene, &mut weir, attack, &quiet)).into();
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
    Some(Attacked { quiet, harms })
}

/// Those who behave.
fn others(scene: &Scene, weir: &Weir, seconds: u32) -> Posts {
    posts(scene, weir.front(), "/", 8, Duration::from_millis(2), seconds)
}

/// Client connections of Weir.
fn open(weir: &Weir) -> f64 {
    weir.metric("weir_listener_connections_open", &["listener=\"public\""])
}

fn harm(scene: &Scene, weir: &mut Weir, attack: &'static Attack, quiet: &Posts) -> Harm {
    let resident = weir.process().resident_bytes();
    let url = format!("http://{}{}", weir.front(), attack.target);
    let (count, seconds) = (ATTACKERS.to_string(), ATTACK_S.to_string());
    let always = ["-c", &count, "-r", &count, "-l", &seconds, "-i", "1", "-x", "8", "-u", &url];
    let name = format!("slowhttptest-{}", attack.name.replace(' ', "-"));
    let program = find("slowhttptest").expect("slowhttptest");
    let mut attackers = Process::start(scene, &name, &program, [attack.words, &always].concat());
    let came = wait::within(Duration::from_secs(4), || {
        (open(weir) >= f64::from(ATTACKERS) * 0.9).then_some(())
    });
    // Until what fits has been sent to those who read slowly: as much as any large responses would
    // take that so many asked for at once.
    let first = others(scene, weir, 2);
    let held = open(weir);
    let grown = weir.process().resident_bytes().saturating_sub(resident);
    let bytes = grown / u64::from(ATTACKERS);
    let kernel_bytes = weir.process().tcp_memory_bytes() / u64::from(ATTACKERS);
    let busy = others(scene, weir, 2);
    assert!(
        came.is_some() && held >= f64::from(ATTACKERS) / 2.0,
        "{}: only {held} came",
        attack.name
    );
    attackers.kill();
    // No client is left, neither for good nor for the next measurement.
    wait::until("the attackers to be gone", Duration::from_secs(15), || {
        (open(weir) < 5.0).then_some(())
    });
    let failed = first.failed() + busy.failed();
    let harm = Harm { attack, bytes, kernel_bytes, failed, busy };
    println!(
        "{}: {held} connections open; each cost {bytes} bytes and {kernel_bytes} of the kernel; \
         others' p99 {:?} at first, then {} requests: p99 {:?} (quiet {:?}), slowest {:?} (quiet \
         {:?}), failed {}",
        attack.name,
        first.p99,
        harm.busy.requests,
        harm.busy.p99,
        quiet.p99,
        harm.busy.slowest,
        quiet.slowest,
        harm.failed
    );
    harm
}
