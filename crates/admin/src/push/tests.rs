//! Pushing to real receivers on loopback.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, UdpSocket};

use model::{Cause, Timings};
use rustix::net::{AddressFamily, SocketType};

use super::*;

/// Far beyond what any of these tests takes; reaching it is a failure.
const DEADLINE: Duration = Duration::from_secs(20);

/// Short, so that the tests are.
const INTERVAL: Duration = Duration::from_millis(20);

const CONFIGURATION: &str = r#"
[[listener]]
name = "public"
address = "127.0.0.1:8080"
[[route]]
service = "list/ings.v2"
[service."list/ings.v2"]
server = [{ address = "127.0.0.1:5001" }, { address = "127.0.0.1:5002" }]
"#;

/// A balancer's counters and services, and what a worker counts into.
struct Rig {
    registry: Arc<Registry>,
    counters: Arc<observe::Registry>,
    shard: Arc<observe::Shard>,
}

impl Rig {
    fn new() -> Rig {
        let checked = config::check(CONFIGURATION, "weir.toml", &())
            .unwrap_or_else(|errors| panic!("{errors:#?}"));
        let registry = Arc::new(Registry::with_seed(0));
        registry.publish(Arc::new(checked.snapshot), model::Moment::from_millis(1));
        let counters = Arc::new(observe::Registry::new());
        let shard = counters.add_shard();
        Rig { registry, counters, shard }
    }

    /// Ends of exchanges that took this long.
    fn exchanges(&self, cause: Cause, status: u16, millis: impl Iterator<Item = u64>) {
        let service = self.shard.service(&Arc::from("list/ings.v2"));
        let listener = self.shard.listener(&Arc::from("public"));
        for millis in millis {
            let timings = Timings { total: Duration::from_millis(millis), ..Timings::default() };
            service.exchange_ended(cause, Some(status), 1, &timings);
            listener.exchanges.count(cause, Some(status));
        }
    }

    fn push(&self, statsd: Option<SocketAddr>, graphite: Option<SocketAddr>) -> Handle {
        let metrics = Metrics {
            listener: None,
            server_histograms: false,
            statsd: statsd.map(HostPort::from),
            graphite: graphite.map(HostPort::from),
            interval: INTERVAL,
            prefix: "europe.weir-1".to_owned(),
        };
        let (registry, counters) = (Arc::clone(&self.registry), Arc::clone(&self.counters));
        start(Options { metrics, registry, counters }).unwrap().unwrap()
    }
}

/// What came, by name: counts added up, of gauges the last.
#[derive(Debug, Default)]
struct Received(BTreeMap<String, f64>);

impl Received {
    fn get(&self, name: &str) -> f64 {
        let name = format!("europe.weir-1.{name}");
        *self.0.get(&name).unwrap_or_else(|| panic!("no {name} in {:#?}", self.0))
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(&format!("europe.weir-1.{name}"))
    }

    /// Takes in a datagram of statsd, by the rules of its format.
    fn statsd(&mut self, datagram: &str) {
        for line in datagram.split('\n') {
            let (name, rest) = line.split_once(':').unwrap_or_else(|| panic!("{line:?}"));
            let (value, kind) = rest.split_once('|').unwrap_or_else(|| panic!("{line:?}"));
            assert_name(name);
            assert!(value.starts_with(|c: char| c.is_ascii_digit()), "no sign: {line:?}");
            let value: f64 = value.parse().unwrap();
            let entry = self.0.entry(name.to_owned()).or_default();
            match kind {
                "c" => *entry += value,
                "g" => *entry = value,
                _ => panic!("{line:?}"),
            }
        }
    }

    /// Takes in a line of graphite; yields its time. `gauges` are recognised by their names.
    fn graphite(&mut self, line: &str) -> u64 {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, value, at] = words[..] else { panic!("{line:?}") };
        assert_name(name);
        let value: f64 = value.parse().unwrap();
        let entry = self.0.entry(name.to_owned()).or_default();
        let is_gauge = [".p50", ".p90", ".p99", "_open", "_length", "servers", "_ready"];
        if is_gauge.iter().any(|end| name.ends_with(end)) {
            *entry = value;
        } else {
            *entry += value;
        }
        at.parse().unwrap()
    }
}

fn assert_name(name: &str) {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    assert!(name.split('.').all(|w| !w.is_empty() && w.bytes().all(allowed)), "{name:?}");
}

fn udp() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// A port that is ours and refuses connections until it is made to listen.
fn refusing() -> (TcpListener, SocketAddr) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn tcp() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// The lines of the next connection.
fn lines(listener: &TcpListener) -> impl Iterator<Item = String> + use<> {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    BufReader::new(stream).lines().map(Result::unwrap)
}

const SERVICE: &str = "service.list_ings_v2";

#[test]
fn statsd_gets_what_happened_in_each_interval() {
    let (socket, address) = udp();
    let rig = Rig::new();
    // Before it began; not pushed.
    rig.exchanges(Cause::Completed, 200, 1..=7);
    let handle = rig.push(Some(address), None);
    rig.exchanges(Cause::Completed, 200, 1..=100);
    rig.exchanges(Cause::QueueFull, 429, 1..=3);
    rig.shard.listener(&Arc::from("public")).connections_accepted.add(5);
    let mut received = Received::default();
    let mut datagram = [0; 2_048];
    while !received.has(&format!("{SERVICE}.cause.queue_full"))
        || received.get("listener.public.requests.4xx") < 3.0
    {
        let length = socket.recv(&mut datagram).unwrap();
        assert!(length <= 1_432, "{length}");
        received.statsd(std::str::from_utf8(&datagram[..length]).unwrap());
    }
    rig.exchanges(Cause::Completed, 200, 1..=10);
    // What was counted since the last push is pushed at the end, and then the thread is gone.
    handle.stop();
    socket.set_nonblocking(true).unwrap();
    while let Ok(length) = socket.recv(&mut datagram) {
        received.statsd(std::str::from_utf8(&datagram[..length]).unwrap());
    }
    let of_service = |name: &str| received.get(&format!("{SERVICE}.{name}"));
    assert!((of_service("requests.2xx") - 110.0).abs() < 0.5);
    assert!((of_service("cause.completed") - 110.0).abs() < 0.5);
    assert!((of_service("cause.queue_full") - 3.0).abs() < 0.5);
    assert!((of_service("attempts") - 113.0).abs() < 0.5);
    assert!((of_service("servers_ready") - 2.0).abs() < 0.5);
    assert!((received.get("listener.public.connections_accepted") - 5.0).abs() < 0.5);
    assert!((received.get("listener.public.connections_open") - 5.0).abs() < 0.5);
    assert!(received.get("process.resident_bytes") > 100_000.0);
    assert!(!received.has(&format!("{SERVICE}.queue_ms.p50")), "no request waited");
}

#[test]
fn quantiles_are_of_the_interval() {
    let rig = Rig::new();
    rig.exchanges(Cause::Completed, 200, std::iter::repeat_n(5_000, 1_000));
    let before = rig.counters.totals();
    rig.exchanges(Cause::Completed, 200, 1..=100);
    let totals = rig.counters.totals();
    let services = gather::views(&rig.registry.load_full(), model::Moment::from_millis(2));
    let moment = Moment { totals: &totals, before: &before, services: &services, process: None };
    let mut received = Received::default();
    moment.each("europe.weir-1", &mut |name, sample| {
        let (Sample::Count(_) | Sample::Gauge(_)) = sample;
        let value = match sample {
            Sample::Count(count) => count as f64,
            Sample::Gauge(value) => value,
        };
        assert!(received.0.insert(name.to_owned(), value).is_none(), "{name} stands twice");
    });
    for (name, expected) in [("p50", 50.0), ("p90", 90.0), ("p99", 99.0)] {
        let found = received.get(&format!("{SERVICE}.response_ms.{name}"));
        assert!((found - expected).abs() <= 0.05 * expected, "{name}: {found}");
    }
}

#[test]
fn graphite_gets_lines_with_their_time_over_one_connection() {
    let (listener, address) = tcp();
    let rig = Rig::new();
    let handle = rig.push(None, Some(address));
    rig.exchanges(Cause::Completed, 200, 1..=50);
    let begin = os::clock::wall().as_secs();
    let mut received = Received::default();
    let name = format!("{SERVICE}.requests.2xx");
    let mut lines = lines(&listener);
    while !received.has(&name) || received.get(&name) < 50.0 {
        let at = received.graphite(&lines.next().unwrap());
        assert!((begin..begin + DEADLINE.as_secs()).contains(&at), "{at}");
    }
    rig.exchanges(Cause::Completed, 200, 1..=25);
    handle.stop();
    // The same connection, until it ends.
    for line in lines {
        received.graphite(&line);
    }
    assert!((received.get(&name) - 75.0).abs() < 0.5);
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "one connection was enough");
}

#[test]
fn nothing_is_lost_while_graphite_is_away_or_when_it_hangs_up() {
    let (listener, address) = refusing();
    let rig = Rig::new();
    let handle = rig.push(None, Some(address));
    rig.exchanges(Cause::Completed, 200, 1..=50);
    // It comes up late.
    rustix::net::listen(&listener, 16).unwrap();
    let mut received = Received::default();
    let name = format!("{SERVICE}.requests.2xx");
    let mut first = lines(&listener);
    while !received.has(&name) || received.get(&name) < 50.0 {
        received.graphite(&first.next().unwrap());
    }
    // It closes once it has read whatever is there, at the end of a line; the client connects again
    // when it notices the close.
    drop(first);
    rig.exchanges(Cause::Completed, 200, 1..=25);
    let mut second = lines(&listener);
    received.graphite(&second.next().unwrap());
    rig.exchanges(Cause::Completed, 200, 1..=5);
    handle.stop();
    for line in second {
        received.graphite(&line);
    }
    assert!(received.get(&name) >= 55.0, "{}", received.get(&name));
}

#[test]
fn what_waits_is_bounded_and_the_oldest_goes_first() {
    let (listener, address) = refusing();
    let mut graphite = Graphite::new(address.into());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for batch in 0..10 {
            let text = format!("{batch}\n").repeat(150_000);
            graphite.push(text, DEADLINE).await;
        }
    });
    rustix::net::listen(&listener, 16).unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        text
    });
    runtime.block_on(async {
        graphite.push("end\n".to_owned(), DEADLINE).await;
        drop(graphite);
    });
    let text = reader.join().unwrap();
    assert!(text.len() <= (1 << 20) + 4, "{}", text.len());
    assert!(text.starts_with("7\n") && text.ends_with("9\nend\n"), "{:?}", &text[..4]);
}

#[test]
fn with_nowhere_to_push_to_nothing_is_started() {
    let rig = Rig::new();
    let (registry, counters) = (Arc::clone(&rig.registry), Arc::clone(&rig.counters));
    assert!(start(Options { metrics: Metrics::none(), registry, counters }).unwrap().is_none());
}

#[test]
fn names_are_looked_up() {
    // The first address that the name has, whichever it is.
    let socket = UdpSocket::bind("localhost:0").unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let port = socket.local_addr().unwrap().port();
    let rig = Rig::new();
    let target = HostPort { host: "localhost".to_owned(), port };
    let metrics =
        Metrics { statsd: Some(target), interval: Duration::from_hours(1), ..Metrics::none() };
    let (registry, counters) = (Arc::clone(&rig.registry), Arc::clone(&rig.counters));
    let handle = start(Options { metrics, registry, counters }).unwrap().unwrap();
    rig.exchanges(Cause::Completed, 200, 1..=2);
    // The end of the first interval is an hour away.
    handle.stop();
    let mut datagram = [0; 2_048];
    let length = socket.recv(&mut datagram).unwrap();
    assert!(datagram[..length].starts_with(b"weir."));
}

#[test]
fn a_name_that_is_still_being_looked_up_does_not_hold_up_the_end() {
    use std::sync::mpsc::channel;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ((release, held), (say_done, done)) = (channel::<()>(), channel());
    let thread = std::thread::spawn(move || {
        to_its_end(runtime, async move {
            // As the system's resolver does it: on a thread that blocks.
            let (begin, begun) = tokio::sync::oneshot::channel();
            drop(tokio::task::spawn_blocking(move || {
                begin.send(()).unwrap();
                held.recv()
            }));
            begun.await.unwrap();
        });
        say_done.send(()).unwrap();
    });
    let ended = done.recv_timeout(DEADLINE);
    drop(release);
    thread.join().unwrap();
    assert!(ended.is_ok(), "the end waited for the look-up");
}
