//! Tests of probes against real servers on loopback.

mod grpc;
mod http2;
mod pki;
mod secured;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use health::plan::{Consumer, ConsumerId};
use health::shared::tally::Tally;
use health::verdict::{Change, ProbeEvent, ServerLoad};
use model::{Check, CheckKind, Health, Service, StatusSet};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{Prober, What};
use crate::testing::{DEADLINE, block_on, service};

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// Answers every request with this status and keeps the connection.
    Answer(u16),
    /// Reads requests and never answers.
    Hang,
    /// Answers the first request of a connection and closes at the second without a response, as a
    /// server does whose idle timeout has just expired.
    CloseWhenAskedAgain,
}

/// A server that counts requests.
struct Server {
    address: SocketAddr,
    mode: Rc<Cell<Mode>>,
    seen: Rc<Seen>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    connections: Cell<usize>,
    open: Cell<usize>,
    open_max: Cell<usize>,
    requests: Cell<usize>,
    hosts: RefCell<HashMap<String, usize>>,
}

impl Server {
    async fn start(mode: Mode) -> Server {
        Server::start_at(SocketAddr::from((own_loopback(), 0)), mode).await
    }

    async fn start_at(address: SocketAddr, mode: Mode) -> Server {
        let listener = TcpListener::bind(address).await.expect("a port of loopback");
        let address = listener.local_addr().expect("bound");
        let mode = Rc::new(Cell::new(mode));
        let seen = Rc::new(Seen::default());
        let accepting = tokio::task::spawn_local({
            let (mode, seen) = (mode.clone(), seen.clone());
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    seen.connections.set(seen.connections.get() + 1);
                    seen.open.set(seen.open.get() + 1);
                    seen.open_max.set(seen.open_max.get().max(seen.open.get()));
                    let (mode, seen) = (mode.clone(), seen.clone());
                    tokio::task::spawn_local(async move {
                        serve(stream, &mode, &seen).await;
                        seen.open.set(seen.open.get() - 1);
                    });
                }
            }
        });
        Server { address, mode, seen, accepting }
    }

    /// Closes the listening socket: connections are refused from here on.
    async fn stop_listening(self) -> SocketAddr {
        self.accepting.abort();
        let _ = self.accepting.await;
        self.address
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, mode: &Cell<Mode>, seen: &Seen) {
    let mut buffer = Vec::new();
    for nth in 1.. {
        let head = loop {
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
                buffer.drain(..end + 4);
                break head;
            }
            match stream.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        };
        seen.requests.set(seen.requests.get() + 1);
        let host = head.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
        *seen.hosts.borrow_mut().entry(host.to_owned()).or_default() += 1;
        let status = match mode.get() {
            Mode::Hang => continue,
            Mode::CloseWhenAskedAgain if nth > 1 => return,
            Mode::CloseWhenAskedAgain => 200,
            Mode::Answer(status) => status,
        };
        let answer = format!("HTTP/1.1 {status} Whatever\r\nContent-Length: 2\r\n\r\nok");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// A prober with its consumers, driven as the control loop drives it.
struct Rig {
    prober: Prober,
    messages: mpsc::Receiver<super::Message>,
    verdicts: HashMap<ConsumerId, Tally>,
    changes: Vec<(u64, Change)>,
    /// Finished probes, and how many of them were failures.
    done: usize,
    failed: usize,
}

impl Rig {
    fn new(consumers: Vec<Consumer>, probes_running_max: usize) -> Rig {
        let (sender, messages) = mpsc::channel(64);
        let mut prober = Prober::new(probes_running_max, sender);
        let verdicts = consumers
            .iter()
            .map(|consumer| (consumer.id, Tally::new(&consumer.check, Health::Unknown)))
            .collect();
        prober.follow(consumers, os::clock::now());
        Rig { prober, messages, verdicts, changes: Vec::new(), done: 0, failed: 0 }
    }

    async fn until(&mut self, condition: impl Fn(&Rig) -> bool) {
        let driven = tokio::time::timeout(DEADLINE, async {
            while !condition(self) {
                self.step().await;
            }
        });
        driven.await.expect("the condition within the deadline");
    }

    async fn step(&mut self) {
        self.prober.start_due(os::clock::now(), |_| true, |_| false);
        let due = self.prober.next_due();
        let wait = due.map_or(DEADLINE, |due| due.since(os::clock::now()));
        tokio::select! {
            Some(message) = self.messages.recv() => {
                let Some(heard) = self.prober.on_message(message, os::clock::now()) else { return };
                let What::Own(event) = heard.what else { return };
                if let ProbeEvent::Done { result, .. } = event {
                    self.done += 1;
                    self.failed += usize::from(result.is_err());
                }
                for id in &heard.consumers {
                    let verdict = self.verdicts.get_mut(id).expect("a known consumer");
                    let change = verdict.on_event(event, ServerLoad::default());
                    self.changes.extend(change.map(|change| (id.0, change)));
                }
            }
            () = tokio::time::sleep(wait) => {}
        }
    }

    fn health(&self, id: u64) -> Health {
        self.verdicts[&ConsumerId(id)].health()
    }
}

fn http(host: Option<&str>, reuse: bool) -> CheckKind {
    CheckKind::Http {
        method: "GET".into(),
        path: "/status".into(),
        host: host.map(Into::into),
        fields: vec![],
        expect: StatusSet(vec![(200, 200)]),
        body: model::BodyExpectation::default(),
        reuse,
    }
}

fn consumer(id: u64, server: SocketAddr, kind: CheckKind, times_ms: (u64, u64)) -> Consumer {
    of_service(id, server, &server.to_string(), &checked_by(kind, times_ms))
}

/// Returns a service with this check and otherwise minimal settings.
fn checked_by(kind: CheckKind, times_ms: (u64, u64)) -> Service {
    let check = Check {
        kind,
        port: None,
        clear_text: false,
        http: None,
        interval: Duration::from_millis(times_ms.0),
        timeout: Duration::from_millis(times_ms.1),
        rise: 2,
        fall: 3,
    };
    service("listings", &[], Some(check))
}

/// Returns a server of `service`, with its configured name.
fn of_service(id: u64, server: SocketAddr, name: &str, service: &Service) -> Consumer {
    let probe = Arc::new(service.probe(name, server.into()).expect("a check"));
    let check = Arc::new(service.check.clone().expect("a check"));
    Consumer { id: ConsumerId(id), service: service.name.clone(), check, probe }
}

/// Runs the check of `service` on `address` until it is up or down; returns why.
async fn verdict(service: &Service, address: SocketAddr) -> (Health, String) {
    let all = vec![of_service(1, address, &address.to_string(), service)];
    let mut rig = Rig::new(all, 8);
    rig.until(|rig| rig.health(1) != Health::Unknown).await;
    (rig.health(1), rig.changes[0].1.evidence.to_string())
}

#[test]
fn nine_of_ten_probes_use_a_kept_connection() {
    block_on(async {
        let server = Server::start(Mode::Answer(200)).await;
        let all = vec![consumer(1, server.address, http(None, true), (10, 2000))];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.done == 40).await;
        assert_eq!(server.seen.requests.get(), 40);
        assert_eq!(server.seen.connections.get(), 4);
        assert_eq!(rig.failed, 0);
        let host = server.address.to_string();
        assert_eq!(server.seen.hosts.borrow().get(&host), Some(&40));
    });
}

#[test]
fn without_reuse_every_probe_has_its_own_connection() {
    block_on(async {
        let server = Server::start(Mode::Answer(200)).await;
        let all = vec![consumer(1, server.address, http(None, false), (10, 2000))];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.done == 12).await;
        assert_eq!((server.seen.requests.get(), server.seen.connections.get()), (12, 12));
        assert_eq!(rig.failed, 0);
    });
}

#[test]
fn a_kept_connection_that_the_server_closed_is_no_failure() {
    block_on(async {
        let server = Server::start(Mode::CloseWhenAskedAgain).await;
        let all = vec![consumer(1, server.address, http(None, true), (10, 2000))];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.done == 20).await;
        assert_eq!(rig.failed, 0);
        // The first probe, and from then on an attempt on the kept connection and one on a new one.
        assert_eq!(server.seen.connections.get(), 20);
        assert_eq!(server.seen.requests.get(), 39);
    });
}

#[test]
fn a_server_that_hangs_fails_each_consumer_at_its_own_timeout() {
    block_on(async {
        let server = Server::start(Mode::Hang).await;
        let all = vec![
            consumer(1, server.address, http(None, true), (30, 300)),
            consumer(2, server.address, http(None, true), (30, 20)),
        ];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.health(1) == Health::Down && rig.health(2) == Health::Down).await;
        let order: Vec<u64> = rig.changes.iter().map(|(id, _)| *id).collect();
        assert_eq!(order, [2, 1], "the hasty one knows first");
        assert_eq!(rig.changes[1].1.evidence.to_string(), "no answer in time 3 times");
        // One probe served both, and each run was abandoned with its connection.
        assert_eq!(rig.done, 3);
        assert_eq!(server.seen.connections.get(), 3);

        server.mode.set(Mode::Answer(200));
        rig.until(|rig| rig.health(1) == Health::Up && rig.health(2) == Health::Up).await;
    });
}

#[test]
fn a_server_that_refuses_is_down_and_probed_afresh_until_a_success() {
    block_on(async {
        let address = Server::start(Mode::Answer(200)).await.stop_listening().await;
        let all = vec![consumer(1, address, http(None, true), (20, 2000))];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.health(1) == Health::Down).await;
        let (_, change) = rig.changes[0];
        assert_eq!(change.evidence.to_string(), "connection refused 3 times");

        // It listens again but is unhealthy: every probe has its own connection.
        let server = Server::start_at(address, Mode::Answer(503)).await;
        rig.until(|_| server.seen.requests.get() == 5).await;
        assert_eq!(server.seen.connections.get(), 5);
        assert_eq!(rig.health(1), Health::Down);

        // It is healthy: the first success still uses a new connection, which is then kept.
        server.mode.set(Mode::Answer(200));
        rig.until(|rig| rig.health(1) == Health::Up).await;
        assert_eq!(rig.changes[1].1.evidence.to_string(), "2 successes in a row");
        let connections = server.seen.connections.get();
        let before = server.seen.requests.get();
        rig.until(|_| server.seen.requests.get() == before + 5).await;
        assert_eq!(server.seen.connections.get(), connections);
    });
}

#[test]
fn a_server_that_answers_500_goes_down_and_comes_back() {
    block_on(async {
        let server = Server::start(Mode::Answer(200)).await;
        let all = vec![consumer(1, server.address, http(None, true), (10, 2000))];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.health(1) == Health::Up).await;
        server.mode.set(Mode::Answer(500));
        rig.until(|rig| rig.health(1) == Health::Down).await;
        server.mode.set(Mode::Answer(200));
        rig.until(|rig| rig.health(1) == Health::Up).await;
        let evidence: Vec<_> = rig.changes.iter().map(|(_, c)| c.evidence.to_string()).collect();
        assert_eq!(evidence, ["1 success", "status 500 3 times", "2 successes in a row"]);
    });
}

#[test]
fn seventy_services_over_four_servers_are_probed_as_planned() {
    block_on(async {
        let mut servers = Vec::new();
        for _ in 0..4 {
            servers.push(Server::start(Mode::Answer(200)).await);
        }
        let all = (0..280)
            .map(|id| {
                let server = servers[(id % 4) as usize].address;
                consumer(id, server, http(Some("mesh"), true), (200, 2000))
            })
            .collect();
        let mut rig = Rig::new(all, 1024);
        let report = rig.prober.report();
        assert_eq!(report.rows.len(), 4);
        assert!((report.probes_per_s() - 20.0).abs() < 1e-9);
        assert!((report.unshared_per_s() - 1400.0).abs() < 1e-9);

        let begin = os::clock::now();
        rig.until(|rig| rig.done == 60).await;
        // Fifteen probes of each server: no more often than every 200 ms with a jitter of a tenth,
        // except for the first. A slow machine only makes them later.
        let took = os::clock::now().since(begin);
        assert!(took >= Duration::from_millis(13 * 180), "60 probes in {took:?}");
        for server in &servers {
            let arrived = server.seen.requests.get();
            assert!((13..=17).contains(&arrived), "{arrived} of 15 planned");
        }
        assert!(rig.verdicts.values().all(|verdict| verdict.health() == Health::Up));
    });
}

#[test]
fn two_checks_that_differ_in_host_stay_two() {
    block_on(async {
        let server = Server::start(Mode::Answer(200)).await;
        let all = vec![
            consumer(1, server.address, http(Some("a.example"), true), (20, 2000)),
            consumer(2, server.address, http(Some("b.example"), true), (20, 2000)),
            consumer(3, server.address, http(Some("a.example"), true), (20, 2000)),
        ];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.done == 30).await;
        let hosts = server.seen.hosts.borrow();
        assert_eq!(hosts.len(), 2);
        assert!(hosts.values().all(|count| (12..=18).contains(count)), "{hosts:?}");
        let near = &rig.prober.report().rows[0].near_duplicates;
        assert!(near[0].to_string().contains("differ in Host: a.example vs b.example"), "{near:?}");
    });
}

#[test]
fn no_more_probes_run_at_once_than_allowed() {
    block_on(async {
        let server = Server::start(Mode::Hang).await;
        let all = (0..12)
            .map(|id| {
                let kind = http(Some(&format!("host-{id}")), true);
                consumer(id, server.address, kind, (20, 60))
            })
            .collect();
        let mut rig = Rig::new(all, 3);
        rig.until(|rig| rig.done >= 24).await;
        let most = server.seen.open_max.get();
        // One more than allowed may still be open at the server while its close is on the way.
        assert!((3..=6).contains(&most), "{most} at once");
        assert_eq!(rig.failed, rig.done);
    });
}

#[test]
fn tcp_checks_leave_no_time_wait() {
    block_on(async {
        let server = Server::start(Mode::Answer(200)).await;
        let all = vec![consumer(1, server.address, CheckKind::Tcp, (10, 2000))];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.done == 30).await;
        assert_eq!(rig.failed, 0);
        assert_eq!(rig.health(1), Health::Up);
        assert_eq!(time_wait(server.address), 0);

        // An ordinary close does leave one: this shows that the check below detects it.
        let ordinary = Server::start(Mode::Answer(200)).await;
        let stream = TcpStream::connect(ordinary.address).await.expect("connects");
        drop(stream);
        rig.until(|_| ordinary.seen.connections.get() == 1 && ordinary.seen.open.get() == 0).await;
        rig.until(|_| time_wait(ordinary.address) == 1).await;
    });
}

#[test]
fn http_probes_leave_no_time_wait_either() {
    block_on(async {
        let server = Server::start(Mode::Answer(200)).await;
        let all = vec![
            consumer(1, server.address, http(None, false), (10, 2000)),
            consumer(2, server.address, http(None, true), (10, 2000)),
        ];
        let mut rig = Rig::new(all, 8);
        rig.until(|rig| rig.done == 60).await;
        assert_eq!(rig.failed, 0);
        assert_eq!(time_wait(server.address), 0);
    });
}

/// Returns a loopback address that no other test's connections use at either end: the kernel
/// assigns 127.0.0.1 to unbound ends.
fn own_loopback() -> Ipv4Addr {
    let [_, a, b, c] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 128 | (a & 63), b, c)
}

/// Counts the sockets in `TIME_WAIT` with `address` at either end.
fn time_wait(address: SocketAddr) -> usize {
    const TIME_WAIT: &str = "06";
    let IpAddr::V4(ip) = address.ip() else { panic!("{address} is not of IPv4") };
    // As the kernel prints it: the address in the machine's byte order.
    let end = format!("{:08X}:{:04X}", u32::from_ne_bytes(ip.octets()), address.port());
    let table = std::fs::read_to_string("/proc/net/tcp").expect("/proc/net/tcp");
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|columns| columns.len() > 3 && columns[3] == TIME_WAIT)
        .filter(|columns| columns[1] == end || columns[2] == end)
        .count()
}
