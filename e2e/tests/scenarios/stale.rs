//! Servers that close idle connections without notice, under POSTs paced so that some of them meet
//! the close: none may fail, and none may be executed twice. A second balancer that reuses
//! connections blindly, with its own servers, shows that the situation is real. A short one runs in
//! `stale.rs`, a long one in `prove_stale.rs`.
//!
//! The servers of the second kind are behind a link with a delay: a close and a request cross on
//! the way, and do so for a time that does not depend on how quick the machine is.

use std::time::Duration;

use e2e::paced::{Answered, Pace, Paced};
use e2e::{Counting, Haproxy, Linked, NAMESPACES, Scene, Weir, server_tables};

pub(crate) const NEEDS: &[&str] = &["python3", "uwsgi", "haproxy", NAMESPACES];

/// When the server of the second kind closes.
const IDLE_S: f64 = 2.0;

/// The way to it. A request that is sent in the last 10 ms before the close, or in the 10 ms until
/// the balancer sees the close, is lost: a ninth of the range of the pauses.
const LINK: &str = "both = { delay = \"10ms\" }";

/// How many POSTs each kind of server gets.
pub(crate) struct Size {
    /// By way of Weir.
    pub(crate) requests: u32,
    /// By way of the balancer that reuses blindly.
    pub(crate) beside: u32,
    /// Clients of the server that closes when idle, who come in waves.
    pub(crate) wave: u32,
    pub(crate) within: Duration,
}

/// What came of it, by kind of server.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) weir: [Answered; 2],
    pub(crate) blind: [Answered; 2],
    pub(crate) duplicates: u64,
    /// Of connections by Weir, how many POSTs went over kept ones, by kind.
    pub(crate) reused: [f64; 2],
}

impl Results {
    /// Nothing failed and nothing was done twice.
    pub(crate) fn assert_nothing_lost(&self) {
        for (kind, answered) in ["uWSGI", "idle close"].iter().zip(&self.weir) {
            assert_eq!(answered.failed(), 0, "{kind}: {answered:?}");
        }
        assert_eq!(self.duplicates, 0, "{self:?}");
    }
}

impl std::fmt::Display for Results {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, kind) in ["uWSGI, closes at once", "closes when idle for 2 s"].iter().enumerate() {
            let (weir, blind) = (&self.weir[n], &self.blind[n]);
            writeln!(
                f,
                "{kind}: Weir {} of {} failed ({} over kept connections), blind reuse {} of {}",
                weir.failed(),
                weir.requests,
                self.reused[n],
                blind.failed(),
                blind.requests
            )?;
        }
        writeln!(f, "done twice: {}", self.duplicates)
    }
}

/// Runs all four at once.
pub(crate) fn run(scene: &Scene, size: &Size) -> Results {
    Linked::run(scene, LINK, &[], |linked| run_linked(scene, linked, size))
}

fn run_linked(scene: &Scene, linked: &Linked, size: &Size) -> Results {
    let idle = |port| linked.inside_far(|| Counting::idle(scene, linked.far(port), IDLE_S));
    let servers = [Counting::uwsgi(scene, 11), idle(8001)];
    let beside = [Counting::uwsgi(scene, 21), idle(8002)];
    let weir = Weir::start(scene, &config(scene, &servers));
    let blind = scene.address(2, 8080);
    let _haproxy = Haproxy::start(scene, &blind_config(blind, &beside), blind);

    let paces = |requests| {
        let at_once = Pace { connections: 8, requests, pause_ms: (0, 4), together: false };
        // Both sides of the two seconds, less the 20 ms that the last answer and the next request
        // are on their way.
        let idle = (1900, 2080);
        [at_once, Pace { connections: size.wave, requests, pause_ms: idle, together: true }]
    };
    let start = |address, requests| {
        let [at_once, idle] = paces(requests);
        [
            Paced::start(scene, address, "/uwsgi", at_once),
            Paced::start(scene, address, "/idle", idle),
        ]
    };
    let [weirs, blinds] = [start(weir.front(), size.requests), start(blind, size.beside)];
    let blind = blinds.map(|paced| paced.finish(size.within));
    let answered = weirs.map(|paced| paced.finish(size.within));
    let reused = ["uwsgi", "idle"].map(|service| {
        let label = format!("service=\"{service}\"");
        weir.metric("weir_server_connections_reused_total", &[&label])
    });
    let duplicates = servers.iter().map(|server| server.stat("duplicates")).sum();
    println!("what Weir says of them:");
    weir.log().lines().filter(|line| line.contains("idle connections")).for_each(|line| {
        println!("  {line}");
    });
    let results = Results { weir: answered, blind, duplicates, reused };
    println!("{results}{results:?}");
    results
}

fn config(scene: &Scene, servers: &[Counting; 2]) -> String {
    let service = |name: &str, server: &Counting| {
        format!(
            "[[route]]\npath = \"/{name}\"\nservice = \"{name}\"\n\
             [service.{name}]\nidle_connections_max = 2000\n{}",
            server_tables(name, [server.address()])
        )
    };
    let [uwsgi, idle] = servers;
    scene.config(
        "workers = 2",
        &(service("uwsgi", uwsgi) + &service("idle", idle) + "[log]\naccess = \"off\"\n"),
    )
}

/// HAProxy, configured to reuse all connections and never to retry.
fn blind_config(front: std::net::SocketAddr, servers: &[Counting; 2]) -> String {
    let [uwsgi, idle] = servers.each_ref().map(Counting::address);
    format!(
        "global
           maxconn 8000
         defaults
           mode http
           timeout connect 5s
           timeout client 60s
           timeout server 60s
           retries 0
           http-reuse always
         frontend front
           bind {front}
           use_backend uwsgi if {{ path_beg /uwsgi }}
           default_backend idle
         backend uwsgi
           server s {uwsgi} pool-purge-delay 60s
         backend idle
           server s {idle} pool-purge-delay 60s
"
    )
}
