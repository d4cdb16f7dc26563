//! Tests of real panics in the middle of exchanges: the data plane on real sockets, and an exchange
//! that panics once its server has received something. Only the test build of this crate can do
//! that.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::{
    AccessLog, Action, ClientAddress, ClientTimeouts, Forward, ForwardFields, Listener, LogFormat,
    MessageChanges, Networks, Protocol, Rewrite, RouteMatch, RouteRetries, RouteTimeouts,
    ServerSpec, ServerTarget, ServiceId, Snapshot, Split,
};

use crate::{AccessSink, AccessTarget, AccessWriter, Handle, Identity, ListenerSockets, Options};

/// An instance whose exchanges panic once it is armed.
struct Panicking {
    /// The instance's identity.
    number: u64,
    armed: AtomicBool,
}

static HTTP: Panicking = Panicking { number: 0xbad1, armed: AtomicBool::new(false) };
static TCP: Panicking = Panicking { number: 0xbad2, armed: AtomicBool::new(false) };

/// Panics if the instance of this ID is armed.
pub(super) fn panic_if_armed(id: &str) {
    for Panicking { number, armed } in [&HTTP, &TCP] {
        let is_it = armed.load(Ordering::SeqCst) && Identity::new(*number).id() == id;
        assert!(!is_it, "made by a test");
    }
}

const MINUTE: Duration = Duration::from_mins(1);

/// Returns a snapshot with a listener, a catch-all route, and a service with one server.
pub(crate) fn snapshot(protocol: Protocol, front: SocketAddr, server: SocketAddr) -> Snapshot {
    let fields = ForwardFields {
        x_forwarded: false,
        forwarded: false,
        request_id: false,
        traceparent: false,
        real_ip: false,
        via: false,
    };
    let listener = Listener {
        register: None,
        name: "front".into(),
        address: front.into(),
        socket: model::SocketAccess::default(),
        protocol,
        backlog: None,
        connections_max: 100,
        trusted: Networks::default(),
        client_address: ClientAddress::default(),
        forward_fields: fields,
        timeouts: ClientTimeouts { head: MINUTE, idle: MINUTE, body: MINUTE },
        head_max_bytes: 16_000,
        body_max_bytes: None,
        proxy_status: true,
        error_pages: Vec::new(),
        tls: None,
        http2: None,
        hosts: None,
        upgrade_protocols: Vec::new(),
        proxy_protocol: Networks::default(),
    };
    let matches = RouteMatch::any();
    let forward = Forward {
        to: vec![Split::only(ServiceId(0))],
        rewrite: Rewrite::default(),
        mirrors: Vec::new(),
        filters: Vec::new(),
        fields: MessageChanges::default(),
        timeouts: RouteTimeouts::default(),
        retries: RouteRetries::default(),
        affinity: None,
    };
    let action = Action::Forward(Box::new(forward));
    let route = model::Route {
        name: "all".into(),
        matches,
        action,
        filters: Vec::new(),
        maintenance: None,
        error_pages: Vec::new(),
        written_at: model::WrittenAt::default(),
    };
    let published = crate::explain::tests::live().0.load_full();
    let mut service = model::Service::clone(&published.snapshot.services[0]);
    service.timeouts.response = MINUTE;
    service.servers = vec![only(server)];
    Snapshot {
        connections_max: 100,
        listeners: vec![listener],
        routes: vec![Arc::new(route)],
        services: vec![service.into()],
        ..Snapshot::empty()
    }
}

fn only(server: SocketAddr) -> ServerSpec {
    ServerSpec {
        target: ServerTarget::Address(server.into()),
        zone: None,
        weight: 1,
        backup: false,
        in_flight_max: None,
        version: None,
    }
}

/// The data plane, with one listener and one server, whose exchanges panic once `panicking` is
/// armed.
struct Running {
    proxy: Handle,
    front: SocketAddr,
    log: PathBuf,
    writer: AccessWriter,
}

impl Running {
    fn start(panicking: &Panicking, protocol: Protocol, server: SocketAddr) -> Running {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let front = socket.local_addr().unwrap();
        let name = format!("weir-panics-{}-{}.log", std::process::id(), panicking.number);
        let log = std::env::temp_dir().join(name);
        let target = AccessLog::File(log.clone());
        let registry = Arc::new(decide::Registry::new());
        let mut snapshot = snapshot(protocol, front, server);
        snapshot.log.access = target.clone();
        snapshot.log.format = LogFormat::Json;
        registry.publish(Arc::new(snapshot), os::clock::now());
        let (access, writer) = AccessSink::start(
            AccessTarget::open(&target, None, || Box::new(std::io::sink())).unwrap(),
        )
        .unwrap();
        let options = Options {
            challenges: Arc::default(),
            tickets: Arc::default(),
            registry,
            counters: Arc::new(observe::Registry::new()),
            workers: 1,
            access,
            spans: Arc::new(|_| {}),
            may_explain: None,
            identity: Identity::new(panicking.number),
        };
        let proxy = crate::start(options).unwrap();
        let listener = ListenerSockets { name: "front".into(), sockets: vec![socket] };
        proxy.apply(vec![listener], &[], os::clock::now());
        Running { proxy, front, log, writer }
    }

    /// Stops it once no connection is left, and returns its access log.
    fn end(self) -> String {
        let Running { proxy, log, writer, .. } = self;
        proxy.begin_drain();
        assert_eq!(proxy.finish(MINUTE), 0, "connections left");
        assert!(writer.finish(), "lines were lost");
        let lines = std::fs::read_to_string(&log).unwrap();
        std::fs::remove_file(&log).unwrap();
        lines
    }
}

/// Reads until `last` has arrived, arms the panic, and answers; returns the bytes received.
fn serve_once(listener: &TcpListener, panicking: &Panicking, last: &[u8]) -> Vec<u8> {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(MINUTE)).unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(last) {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the data was cut off");
        seen.extend_from_slice(&piece[..count]);
    }
    panicking.armed.store(true, Ordering::SeqCst);
    // Weir may have closed the connection by now.
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    seen
}

#[test]
fn a_connection_is_closed_after_a_panic_because_its_position_is_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let running = Running::start(&HTTP, Protocol::Http, listener.local_addr().unwrap());
    let server = std::thread::spawn(move || serve_once(&listener, &HTTP, b"0123456789"));
    let mut client = TcpStream::connect(running.front).unwrap();
    client.set_read_timeout(Some(MINUTE)).unwrap();
    // The second request is longer than the first one's body. If Weir looked for that body again,
    // although it has been read already, the second request would lose its first 10 bytes to it,
    // and the connection would continue with the rest.
    client
        .write_all(
            b"POST /panic HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789\
              GET /after HTTP/1.1\r\nHost: a\r\n\r\n",
        )
        .unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    drop(client);
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(answer.contains("\r\nProxy-Status: weir; error=proxy_internal_error\r\n"), "{answer}");
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "only one answer: {answer}");
    let seen = String::from_utf8(server.join().unwrap()).unwrap();
    assert!(seen.starts_with("POST /panic HTTP/1.1\r\n"), "{seen}");
    let log = running.end();
    assert!(log.contains("\"cause\":\"proxy_internal_error\""), "{log}");
    assert!(log.contains("\"request_bytes\":10,"), "{log}");
}

#[test]
fn a_connection_in_tcp_mode_is_reset_and_logged_after_a_panic() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let protocol = Protocol::Tcp(model::TcpSplit::only(ServiceId(0)));
    let running = Running::start(&TCP, protocol, listener.local_addr().unwrap());
    let server = std::thread::spawn(move || serve_once(&listener, &TCP, b"hello"));
    let mut client = TcpStream::connect(running.front).unwrap();
    client.set_read_timeout(Some(MINUTE)).unwrap();
    client.write_all(b"hello").unwrap();
    let error = client.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(server.join().unwrap(), b"hello");
    let log = running.end();
    assert!(log.contains("\"cause\":\"proxy_internal_error\""), "{log}");
    assert!(log.contains("\"request_bytes\":5,"), "{log}");
}
