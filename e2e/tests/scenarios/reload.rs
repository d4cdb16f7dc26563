//! Reloads and upgrades under load, with the time and the number as arguments: short ones run in
//! `reload.rs`, long ones in `prove_reload.rs`, timed ones in `measure_reload.rs`.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use e2e::clients::{Posts, posts};
use e2e::{NewProcess, Nginx, Scene, Weir, server_tables, wait};
use serde_json::Value;

/// Clients that are busy, with a machine that is not: each connection sends its next POST this long
/// after an answer.
pub(crate) const PACED: Duration = Duration::from_millis(40);
/// As fast as it goes: the next POST follows at once.
pub(crate) const FLAT_OUT: Duration = Duration::ZERO;

/// How long an old process may take until its last connection has ended.
pub(crate) const DRAIN: Duration = Duration::from_secs(4);

/// The clients that send POSTs while something happens.
#[derive(Clone, Copy)]
pub(crate) struct Clients {
    pub(crate) connections: u32,
    /// [`PACED`] or [`FLAT_OUT`].
    pub(crate) pause: Duration,
    /// They send for as long again afterwards, when nothing happens, so that times can be compared.
    pub(crate) and_quiet: bool,
}

impl Clients {
    fn send(self, scene: &Scene, front: SocketAddr, seconds: u32) -> Posts {
        posts(scene, front, "/", self.connections, self.pause, seconds)
    }
}

/// What was measured while something happened, and for [`Clients::and_quiet`] with nothing happening.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) busy: Posts,
    pub(crate) quiet: Option<Posts>,
}

impl Measured {
    /// Nothing failed, and there was load.
    pub(crate) fn assert_nothing_lost(&self) {
        println!("{self:#?}");
        assert_eq!(self.failed(), 0, "{self:#?}");
        assert!(self.busy.requests > 400, "{self:#?}");
    }

    /// Requests that did not end well.
    pub(crate) fn failed(&self) -> u64 {
        self.busy.failed() + self.quiet.as_ref().map_or(0, Posts::failed)
    }
}

/// The configuration that a test changes back and forth. Each generation differs from the one
/// before in a listener, a route, a service, a server and a few values; what carries the load stays.
fn configuration(scene: &Scene, servers: &[Nginx], generation: u32) -> String {
    let odd = generation % 2 == 1;
    let mut text = scene.config(
        &format!(
            "workers = 2\ndrain_max = \"{}s\"\nreload = {{ watch = false }}\n\
             log = {{ access = \"off\" }}",
            DRAIN.as_secs()
        ),
        &format!(
            "[[route]]\nservice = \"app\"\n\
             [[route]]\npath = \"/generation-{generation}\"\ndeny = 418\n\
             [service.app]\nin_flight_max = {}\nqueue = {{ length_max = 1000, wait_max = \"20s\" }}\n\
             check = {{ path = \"/status\", interval = \"200ms\" }}\n",
            500 + generation
        ),
    );
    let used = if odd { servers } else { &servers[..servers.len() - 1] };
    text += &server_tables("app", used.iter().map(Nginx::address));
    if odd {
        let extra = scene.address(1, 8081);
        // Writing into a String cannot fail.
        let _ = write!(text, "[[listener]]\nname = \"extra\"\naddress = \"{extra}\"\n");
        text += "[service.other]\n";
        text += &server_tables("other", [servers[0].address()]);
    }
    text
}

/// The number of the configuration in force.
fn generation(weir: &Weir) -> u64 {
    weir.api("/api/v1/status")["generation"].as_u64().expect("a generation")
}

/// Exchanges that did not end well, by Weir's own count. Those that wrk breaks off when its time is
/// over are its own.
fn not_well(weir: &Weir) -> u64 {
    let with = |labels: &[&str]| weir.metric("weir_listener_requests_total", labels);
    let well = ["completed", "client_closed", "client_reset", "http_request_incomplete"];
    let of = |cause: &&str| with(&[&format!("cause=\"{cause}\"")]);
    (with(&[]) - well.iter().map(of).sum::<f64>()) as u64
}

/// `count` reloads in `time` under the load of `clients`.
pub(crate) fn reloads(scene: &Scene, count: u32, time: Duration, clients: Clients) -> Measured {
    let servers: Vec<Nginx> = (11..14).map(|host| Nginx::start(scene, host, "")).collect();
    let weir = Weir::start(scene, &configuration(scene, &servers, 0));
    let (front, every) = (weir.front(), time / count);
    let seconds = time.as_secs() as u32 + 1;
    let busy = std::thread::scope(|scope| {
        let load = scope.spawn(move || clients.send(scene, front, seconds));
        wait::until("the clients to be there", Duration::from_secs(10), || {
            let open = weir.metric("weir_listener_connections_open", &["listener=\"public\""]);
            (open >= f64::from(clients.connections)).then_some(())
        });
        let began = Instant::now();
        for n in 1..=count {
            let due = every * n;
            wait::measure_for(due.saturating_sub(began.elapsed()));
            reload(scene, &weir, &servers, n);
        }
        load.join().expect("wrk")
    });
    assert!(!load_ended_early(&busy, clients.connections), "{busy:?}");
    assert_eq!(not_well(&weir), 0, "by Weir's own count");
    let quiet = clients.and_quiet.then(|| clients.send(scene, front, seconds));
    let kept = weir.api("/api/v1/reloads");
    let kept = kept["reloads"].as_array().expect("receipts");
    assert_eq!(kept.len(), 50.min(count as usize));
    assert!(kept.iter().all(|receipt| receipt["result"] == "applied"), "{kept:?}");
    let took: Vec<f64> = kept.iter().filter_map(|receipt| receipt["took_ms"].as_f64()).collect();
    let used = kept.iter().filter_map(|receipt| receipt["first_used_after_ms"].as_f64());
    let slowest = |times: &mut dyn Iterator<Item = f64>| times.fold(0.0, f64::max);
    println!(
        "slowest reload: in force after {:.1} ms, used after {:.1} ms",
        slowest(&mut took.into_iter()),
        slowest(&mut used.into_iter())
    );
    Measured { busy, quiet }
}

/// By signal and by the API in turn; each must come into force.
fn reload(scene: &Scene, weir: &Weir, servers: &[Nginx], n: u32) {
    let before = generation(weir);
    scene.file("weir.toml", configuration(scene, servers, n));
    if n.is_multiple_of(2) {
        weir.hang_up();
        wait::until("the reload", Duration::from_secs(5), || {
            (generation(weir) > before).then_some(())
        });
    } else {
        let answer = weir.ask("/api/v1/reload");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let receipt = answer.json();
        assert_eq!(receipt["result"], "applied", "{receipt:#}");
        assert_eq!(receipt["generation"], before + 1, "{receipt:#}");
    }
}

/// A client that could not connect any more would send next to nothing.
fn load_ended_early(seen: &Posts, connections: u32) -> bool {
    seen.requests < u64::from(connections)
}

/// An upgrade in the middle of `seconds` of load by `clients`. The process that took over is still
/// there.
pub(crate) fn upgrade(
    scene: &Scene,
    seconds: u32,
    clients: Clients,
) -> (Measured, Value, NewProcess) {
    let servers: Vec<Nginx> = (11..14).map(|host| Nginx::start(scene, host, "")).collect();
    let mut weir = Weir::start(scene, &configuration(scene, &servers, 0));
    let old = weir.process().pid();
    let front = weir.front();
    let (busy, receipt, successor) = std::thread::scope(|scope| {
        let load = scope.spawn(move || clients.send(scene, front, seconds));
        wait::measure_for(Duration::from_secs(u64::from(seconds) / 3));
        let (receipt, successor) = weir.upgrade(DRAIN + Duration::from_secs(5));
        (load.join().expect("wrk"), receipt, successor)
    });
    assert_ne!(successor.pid(), old);
    assert!(successor.is_running());
    assert_eq!(weir.api("/api/v1/status")["pid"], successor.pid());
    let quiet = clients.and_quiet.then(|| clients.send(scene, front, seconds));
    (Measured { busy, quiet }, receipt, successor)
}
