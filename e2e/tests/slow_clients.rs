//! Clients that are slow on purpose: they may hold connections for as long as the timeouts allow,
//! but others must not notice, and what each of them costs is bounded.

use std::time::Duration;

use e2e::clients::{Posts, posts};
use e2e::{App, Nginx, Process, Scene, Weir, find, http, wait};

/// Attackers at once, and for how long.
const ATTACKERS: u32 = 400;
const ATTACK_S: u32 = 5;

/// A kind of attack.
struct Attack {
    name: &'static str,
    /// What slowhttptest is told.
    words: &'static [&'static str],
    target: &'static str,
    /// What one attacker may make Weir keep.
    bytes_max: u64,
    /// And the kernel, in the buffers of Weir's sockets: it comes out of what all connections of
    /// the machine have together.
    kernel_bytes_max: u64,
}

const SLOWLORIS: Attack = Attack {
    name: "slow head",
    words: &["-H"],
    target: "/slow",
    bytes_max: 24_000,
    kernel_bytes_max: 64_000,
};
const SLOW_POST: Attack = Attack {
    name: "slow body",
    words: &["-B", "-s", "8192"],
    target: "/slow",
    bytes_max: 48_000,
    kernel_bytes_max: 64_000,
};
const SLOW_READ: Attack = Attack {
    name: "slow read",
    words: &["-X", "-w", "512", "-y", "1024", "-z", "32", "-n", "1"],
    target: "/files/large",
    bytes_max: 160_000,
    kernel_bytes_max: 1_000_000,
};

#[test]
fn slow_clients_harm_nobody_else_and_cost_little() {
    let Some(scene) = Scene::alone("slow", &["python3", "nginx", "wrk", "ss", "slowhttptest"])
    else {
        return;
    };
    // One server for those who behave. The attacked one reads bodies to their end, however slow.
    let nginx = Nginx::start(&scene, 11, "");
    let app = App::start(&scene, 12, &[]);
    let large = std::fs::File::create(scene.folder().join("large")).unwrap();
    large.set_len(20_000_000).unwrap();
    let config = scene.config(
        "workers = 2\nlog = { access = \"off\" }",
        &format!(
            "[[route]]\nservice = \"site\"\n[service.site]\n{}\
             [[route]]\npath = \"/slow\"\nservice = \"slow\"\n[service.slow]\n{}",
            e2e::server_tables("site", [nginx.address()]),
            e2e::server_tables("slow", [app.address()])
        ),
    );
    let mut weir = Weir::start(&scene, &config);
    // What is taken once and kept, such as buffers, is there before anything is measured.
    others(&scene, &weir, 1);
    let quiet = others(&scene, &weir, 2);
    let mut wrong = Vec::new();
    for attack in [SLOWLORIS, SLOW_POST, SLOW_READ] {
        wrong.extend(harm(&scene, &mut weir, &attack, &quiet));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Nobody is left behind.
    wait::until("the attackers to be gone", Duration::from_secs(15), || {
        let open = weir.metric("weir_listener_connections_open", &["listener=\"public\""]);
        (open < 5.0).then_some(())
    });
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
}

/// Those who behave.
fn others(scene: &Scene, weir: &Weir, seconds: u32) -> Posts {
    posts(scene, weir.front(), "/", 8, Duration::from_millis(2), seconds)
}

/// Attacks; yields what is not as it should be.
fn harm(scene: &Scene, weir: &mut Weir, attack: &Attack, quiet: &Posts) -> Vec<String> {
    let resident = weir.process().resident_bytes();
    let url = format!("http://{}{}", weir.front(), attack.target);
    let (count, seconds) = (ATTACKERS.to_string(), ATTACK_S.to_string());
    let always = ["-c", &count, "-r", &count, "-l", &seconds, "-i", "1", "-x", "8", "-u", &url];
    let name = format!("slowhttptest-{}", attack.name.replace(' ', "-"));
    let program = find("slowhttptest").expect("slowhttptest");
    let mut attackers = Process::start(scene, &name, &program, [attack.words, &always].concat());
    let open = || weir.metric("weir_listener_connections_open", &["listener=\"public\""]);
    let came = wait::within(Duration::from_secs(4), || {
        (open() >= f64::from(ATTACKERS) * 0.9).then_some(())
    });
    let busy = others(scene, weir, 2);
    let held = weir.metric("weir_listener_connections_open", &["listener=\"public\""]);
    let grown = weir.process().resident_bytes().saturating_sub(resident);
    let each = grown / u64::from(ATTACKERS);
    let kernel = weir.process().tcp_memory_bytes() / u64::from(ATTACKERS);
    println!(
        "{}: {held} connections open; each cost {each} bytes and {kernel} of the kernel; others' \
         {} requests: p99 {:?} (quiet {:?}), \
         slowest {:?} (quiet {:?}), failed {}",
        attack.name,
        busy.requests,
        busy.p99,
        quiet.p99,
        busy.slowest,
        quiet.slowest,
        busy.failed()
    );
    attackers.kill();
    let mut wrong = Vec::new();
    let mut expect = |well: bool, what: String| {
        if !well {
            wrong.push(format!("{}: {what}", attack.name));
        }
    };
    expect(came.is_some() && held >= f64::from(ATTACKERS) / 2.0, format!("only {held} came"));
    expect(busy.failed() == 0, format!("others' requests failed: {busy:?}"));
    // Generous: the attackers take CPU of the same machine, as may whatever else runs on it.
    let p99_max = quiet.p99 * 3 + Duration::from_millis(250);
    expect(busy.p99 <= p99_max, format!("others' p99 is {:?}, above {p99_max:?}", busy.p99));
    expect(busy.requests > 200, format!("others had only {} requests answered", busy.requests));
    expect(each <= attack.bytes_max, format!("{each} bytes each"));
    let max = attack.kernel_bytes_max;
    expect(kernel <= max, format!("{kernel} bytes each in the kernel, above {max}"));
    wrong
}
