//! What the tests of service discovery have in common: servers that count, a steady client that notes how each
//! request ended, and what Weir shows of a source.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use e2e::etcd::Etcd;
use e2e::http::Connection;
use e2e::rogue::{Peer, Rogue};
use e2e::{Scene, Weir, wait};
use serde_json::Value;

/// For anything that has to happen at some time, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Between two requests of one of the steady client's connections.
const PAUSE: Duration = Duration::from_millis(5);
/// So many requests in a row that reach the right servers show that all workers use these.
const SETTLED: usize = 60;

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    first_at: OnceLock<Instant>,
    in_flight: AtomicU64,
    in_flight_max: AtomicU64,
    work_ms: AtomicU64,
    is_ill: AtomicBool,
    /// How many requests for `/held` wait, and whether they may go on.
    held: Mutex<(usize, bool)>,
    released: Condvar,
}

impl Counts {
    fn serve(&self, peer: &mut Peer, host: u8) {
        while let Some(head) = peer.request() {
            let mut status = 200;
            if head.starts_with("GET /status ") {
                status = if self.is_ill.load(Ordering::Relaxed) { 500 } else { 200 };
            } else {
                self.work(&head);
            }
            peer.say(format!(
                "HTTP/1.1 {status} Some\r\nX-Served-By: {host}\r\nContent-Length: 2\r\n\r\nok"
            ));
        }
    }

    fn work(&self, head: &str) {
        self.first_at.get_or_init(Instant::now);
        self.requests.fetch_add(1, Ordering::Relaxed);
        let now = self.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        self.in_flight_max.fetch_max(now, Ordering::Relaxed);
        if head.starts_with("GET /held ") {
            let mut held = self.held.lock().unwrap();
            held.0 += 1;
            drop(self.released.wait_while(held, |held| !held.1).unwrap());
        }
        std::thread::sleep(Duration::from_millis(self.work_ms.load(Ordering::Relaxed)));
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A server that counts. It answers at once, `/held` once it is released, and `/status` for health checks.
pub(crate) struct Server {
    rogue: Rogue,
    counts: Arc<Counts>,
}

impl Server {
    /// Starts one at the scene's address `host`, which is its name, too.
    pub(crate) fn start(scene: &Scene, host: u8) -> Server {
        let counts = Arc::<Counts>::default();
        let serving = Arc::clone(&counts);
        let rogue = Rogue::start(scene.address(host, 8080), move |peer| serving.serve(peer, host));
        Server { rogue, counts }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.rogue.address()
    }

    /// Requests, without health checks.
    pub(crate) fn requests(&self) -> u64 {
        self.counts.requests.load(Ordering::Relaxed)
    }

    /// When the first request came.
    pub(crate) fn first_at(&self) -> Option<Instant> {
        self.counts.first_at.get().copied()
    }

    /// The highest number of requests at the same time since the last call.
    pub(crate) fn take_in_flight_max(&self) -> u64 {
        let now = self.counts.in_flight.load(Ordering::Relaxed);
        self.counts.in_flight_max.swap(now, Ordering::Relaxed)
    }

    pub(crate) fn set_work_ms(&self, ms: u64) {
        self.counts.work_ms.store(ms, Ordering::Relaxed);
    }

    /// Fails its health checks from now on; requests are answered as before.
    pub(crate) fn fall_ill(&self) {
        self.counts.is_ill.store(true, Ordering::Relaxed);
    }

    /// How many requests for `/held` have come.
    pub(crate) fn held(&self) -> usize {
        self.counts.held.lock().unwrap().0
    }

    /// Lets them go on.
    pub(crate) fn release(&self) {
        self.counts.held.lock().unwrap().1 = true;
        self.counts.released.notify_all();
    }
}

/// A request: when it began, and which server answered it, or what happened instead.
type Noted = (Instant, Result<String, String>);

/// Clients that send one request after the other and note how every single one ended.
pub(crate) struct Steady {
    is_over: Arc<AtomicBool>,
    noted: Arc<Mutex<Vec<Noted>>>,
    clients: Vec<JoinHandle<()>>,
}

impl Steady {
    /// Starts four that ask for `/`.
    pub(crate) fn start(weir: &Weir) -> Steady {
        Self::start_with(weir, "/", 4)
    }

    pub(crate) fn start_with(weir: &Weir, target: &'static str, clients: usize) -> Steady {
        Self::start_as(weir, target, &[], clients)
    }

    /// As [`Steady::start_with`], with these fields in each request.
    pub(crate) fn start_as(
        weir: &Weir,
        target: &'static str,
        fields: &'static [&'static str],
        clients: usize,
    ) -> Steady {
        let is_over = Arc::new(AtomicBool::new(false));
        let noted = Arc::<Mutex<Vec<Noted>>>::default();
        let client = |_| {
            let (front, is_over, noted) = (weir.front(), Arc::clone(&is_over), Arc::clone(&noted));
            std::thread::spawn(move || ask_on(front, (target, fields), &is_over, &noted))
        };
        let clients = (0..clients).map(client).collect();
        Steady { is_over, noted, clients }
    }

    /// Waits for `count` requests that begin from now on; returns how many each server has answered.
    pub(crate) fn next(&self, count: usize) -> BTreeMap<String, usize> {
        let from = Instant::now();
        wait::until("requests of the steady client", SOON, || {
            let noted = self.noted.lock().unwrap();
            let recent = noted.iter().rev().take(count + 100).filter(|(begun, _)| *begun > from);
            let mut servers = BTreeMap::new();
            for (_, result) in recent.clone() {
                *servers.entry(result.clone().unwrap_or_else(|lost| lost)).or_insert(0) += 1;
            }
            (recent.count() >= count).then_some(servers)
        })
    }

    /// Waits until requests reach exactly these servers; then they must for a while.
    pub(crate) fn only(&self, hosts: &[u8]) {
        let wanted: BTreeSet<String> = hosts.iter().map(u8::to_string).collect();
        let is_so = |seen: &BTreeMap<String, usize>| wanted.iter().eq(seen.keys());
        let mut last = BTreeMap::new();
        let settled = wait::within(SOON, || {
            last = self.next(SETTLED);
            is_so(&last).then_some(())
        });
        assert!(settled.is_some(), "waited for requests at {wanted:?} only; they reach {last:?}");
        let seen = self.next(2 * SETTLED);
        assert!(is_so(&seen), "requests reach {seen:?}, not {wanted:?} only");
    }

    /// How many requests have ended, and those that were not answered well.
    pub(crate) fn so_far(&self) -> (usize, Vec<String>) {
        let noted = self.noted.lock().unwrap();
        let lost = noted.iter().filter_map(|(_, result)| result.clone().err());
        (noted.len(), lost.collect())
    }

    /// Ends it. Every request must have been answered well. Returns how many there were.
    pub(crate) fn finish(mut self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            client.join().expect("a client that ends");
        }
        let (count, lost) = self.so_far();
        let shown = &lost[..lost.len().min(10)];
        assert!(lost.is_empty(), "{} of {count} requests are lost: {shown:?}", lost.len());
        count
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn ask_on(
    front: SocketAddr,
    (target, fields): (&str, &[&str]),
    is_over: &AtomicBool,
    noted: &Mutex<Vec<Noted>>,
) {
    let mut kept = None;
    while !is_over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let connection = match kept.take() {
            Some(connection) => Ok(connection),
            None => Connection::open(front),
        };
        let answer = connection.and_then(|mut connection| {
            let answer = connection.get(target, fields)?;
            if answer.field("connection") != Some("close") {
                kept = Some(connection);
            }
            Ok(answer)
        });
        let result = match answer {
            Ok(answer) if answer.status == 200 => {
                Ok(answer.field("x-served-by").unwrap_or_default().to_owned())
            }
            Ok(answer) => Err(format!("lost: {} {}", answer.status, answer.text())),
            Err(error) => Err(format!("lost: {error}")),
        };
        noted.lock().unwrap().push((begun, result));
        std::thread::sleep(PAUSE);
    }
}

/// A configuration with one service `app` whose servers come from `discover`, with further lines of it; `top`
/// ends in the table of a source, for instance `[consul]`, if there is one.
pub(crate) fn config(scene: &Scene, top: &str, discover: &str, service: &str) -> String {
    let at = if top.starts_with('[') { Some(0) } else { top.find("\n[") };
    let (before, tables) = top.split_at(at.unwrap_or(top.len()));
    scene.config(
        &format!("workers = 2\nreload = {{ watch = false }}\n{before}"),
        &format!(
            "{tables}\n[[route]]\nservice = \"app\"\n[service.app]\ndiscover = {{ {discover} }}\n{service}"
        ),
    )
}

/// The table `[consul]` for an agent at `url`, which holds questions for a second.
pub(crate) fn consul_at(url: &str) -> String {
    format!("[consul]\naddress = \"{url}\"\nwait = \"1s\"")
}

/// The table `[etcd]` with these endpoints.
pub(crate) fn etcd_at(urls: &[&str]) -> String {
    format!("[etcd]\nendpoints = {urls:?}")
}

/// The prefix of the keys of etcd, which [`WATCH_ETCD`] names.
pub(crate) const ETCD_PREFIX: &str = "/services/web/";
/// What `discover` says for etcd.
pub(crate) const WATCH_ETCD: &str = "etcd = \"/services/web/\"";

/// The key of a server in etcd.
pub(crate) fn key(server: &Server) -> String {
    format!("{ETCD_PREFIX}{}", server.address().ip())
}

/// Sets the key of each server to its address.
pub(crate) fn put(etcd: &Etcd, servers: &[&Server]) {
    for server in servers {
        etcd.put(&key(server), &server.address().to_string());
    }
}

/// The table `[nomad]` for an agent at `url`, which holds questions for a second.
pub(crate) fn nomad_at(url: &str) -> String {
    format!("[nomad]\naddress = \"{url}\"\nwait = \"1s\"")
}

/// What Weir has logged, and what its admin API shows.
pub(crate) fn all_shown(scene: &Scene, weir: &Weir) -> Vec<String> {
    let paths = ["configuration", "services", "status", "changes", "findings"];
    let paths = paths.map(|path| format!("/api/v1/{path}"));
    let get = |path: &str| e2e::http::get(scene.admin(), path).expect("an answer").text();
    let mut shown: Vec<String> = paths.iter().map(|path| get(path)).collect();
    shown.extend([weir.log(), get("/metrics")]);
    shown
}

/// Fails if one of these texts has one of the secrets.
pub(crate) fn has_no_secret(shown: &[String], secrets: &[&str]) {
    let leak = shown.iter().find(|text| secrets.iter().any(|secret| text.contains(secret)));
    assert!(leak.is_none(), "{}", leak.expect("a leak"));
}

/// What Weir shows of the source of a service.
pub(crate) fn source(weir: &Weir, service: &str) -> Value {
    weir.api(&format!("/api/v1/services/{service}"))["source"].clone()
}

/// What Weir shows of a server of the service `app`, by its address; null if there is none.
pub(crate) fn server(weir: &Weir, address: SocketAddr) -> Value {
    let view = weir.api("/api/v1/services/app");
    let servers = view["servers"].as_array().cloned().unwrap_or_default();
    let address = address.to_string();
    servers.into_iter().find(|one| one["address"] == address.as_str()).unwrap_or_default()
}

/// The servers of a service, each with its host and what its source makes of it.
pub(crate) fn standings(weir: &Weir, service: &str) -> Vec<(u8, String)> {
    let view = weir.api(&format!("/api/v1/services/{service}"));
    let servers = view["servers"].as_array().into_iter().flatten();
    let mut all: Vec<_> = servers
        .map(|one| {
            let address: SocketAddr = one["address"].as_str().unwrap().parse().unwrap();
            let host = match address.ip() {
                std::net::IpAddr::V4(ip) => ip.octets()[3],
                std::net::IpAddr::V6(_) => 0,
            };
            (host, one["listing"]["standing"].as_str().unwrap_or("in the file").to_owned())
        })
        .collect();
    all.sort();
    all
}

/// Waits until the servers of the service `app` are these, with these standings.
pub(crate) fn wait_for_standings(weir: &Weir, wanted: &[(&[u8], &str)]) {
    let mut wanted: Vec<(u8, String)> = wanted
        .iter()
        .flat_map(|(hosts, standing)| hosts.iter().map(|host| (*host, (*standing).to_owned())))
        .collect();
    wanted.sort();
    let mut last = Vec::new();
    let found = wait::within(SOON, || {
        last = standings(weir, "app");
        (last == wanted).then_some(())
    });
    let source = source(weir, "app");
    assert!(found.is_some(), "waited for {wanted:?}; Weir shows {last:?} and {source:#}");
}

/// Waits until the source of `service` fails with an error that has all of `words`, and the metric says so.
pub(crate) fn wait_for_error(weir: &Weir, service: &str, words: &[&str]) -> String {
    let label = format!("service=\"{service}\"");
    let mut last = Value::Null;
    let found = wait::within(2 * SOON, || {
        last = source(weir, service);
        let error = last["error"].as_str()?;
        let is_it =
            words.iter().all(|word| error.contains(word)) && last["failing_for_ms"].is_f64();
        let is_counted = is_it && weir.metric("weir_source_failing", &[&label]) > 0.5;
        is_counted.then(|| error.to_owned())
    });
    found.unwrap_or_else(|| panic!("waited for an error with {words:?}; Weir shows {last:#}"))
}

/// Waits until the source of `service` is good again.
pub(crate) fn wait_for_recovery(weir: &Weir, service: &str) {
    let label = format!("service=\"{service}\"");
    wait::until("the source to answer again", SOON, || {
        let source = source(weir, service);
        let is_good = source["error"].is_null() && source["failing_for_ms"].is_null();
        (is_good && weir.metric("weir_source_failing", &[&label]) < 0.5).then_some(())
    });
}

/// Waits until these servers are in the file that the next process reads.
pub(crate) fn wait_until_saved(scene: &Scene, servers: &[SocketAddr]) {
    let file = scene.folder().join("state/servers.json");
    let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
    wait::until("the servers to be saved", SOON, || {
        let text = std::fs::read_to_string(&file).ok()?;
        servers.iter().all(|server| text.contains(server)).then_some(())
    });
}
