//! Test of a real panic in the middle of an exchange: the data plane on real sockets, and an
//! exchange that panics once its server has the request. Only the test build of this crate can do
//! that.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::{
    Action, ClientTimeouts, FieldChanges, Forward, ForwardFields, Listener, PathMatch, Protocol,
    Rewrite, RouteMatch, ServerSpec, ServerTarget, ServiceId, Snapshot, Split,
};
use wire::http1::RequestHead;

use crate::{AccessSink, AccessTarget, Handle, Identity, ListenerSockets, Options};

/// The path of requests whose exchange panics…
const PATH: &str = "/panic";
/// …once this is set.
static ARMED: AtomicBool = AtomicBool::new(false);

pub(super) fn is_to_panic(request: &RequestHead) -> bool {
    request.path() == PATH
}

pub(super) fn panic_if(panics: bool) {
    assert!(!(panics && ARMED.load(Ordering::SeqCst)), "made by a test");
}

const MINUTE: Duration = Duration::from_mins(1);

/// Returns a snapshot with a listener, a catch-all route, and a service with one server.
fn snapshot(front: SocketAddr, server: SocketAddr) -> Snapshot {
    let fields = ForwardFields {
        x_forwarded: false,
        forwarded: false,
        request_id: false,
        traceparent: false,
        via: false,
    };
    let listener = Listener {
        name: "front".into(),
        address: front,
        protocol: Protocol::Http,
        backlog: None,
        connections_max: 100,
        trusted: Vec::new(),
        forward_fields: fields,
        timeouts: ClientTimeouts { head: MINUTE, idle: MINUTE, body: MINUTE },
        head_max_bytes: 16_000,
        body_max_bytes: None,
        proxy_status: true,
        tls: None,
        http2: None,
        upgrade_protocols: Vec::new(),
        proxy_protocol: Vec::new(),
    };
    let matches = RouteMatch {
        listeners: Vec::new(),
        host: None,
        path: PathMatch::Prefix(String::new()),
        method: None,
        fields: Vec::new(),
        query: Vec::new(),
    };
    let forward = Forward {
        to: vec![Split { service: ServiceId(0), weight: 1 }],
        rewrite: Rewrite::default(),
        request_fields: FieldChanges::default(),
        filters: Vec::new(),
        response_fields: FieldChanges::default(),
    };
    let action = Action::Forward(Box::new(forward));
    let route = model::Route { name: "all".into(), matches, action, filters: Vec::new() };
    let published = crate::explain::tests::live().0.load_full();
    let mut service = published.snapshot.services[0].clone();
    service.timeouts.response = MINUTE;
    service.servers = vec![ServerSpec {
        target: ServerTarget::Address(server),
        zone: None,
        weight: 1,
        backup: false,
    }];
    Snapshot {
        connections_max: 100,
        listeners: vec![listener],
        routes: vec![route],
        services: vec![service],
        ..Snapshot::empty()
    }
}

fn start(server: SocketAddr) -> (Handle, SocketAddr) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let front = socket.local_addr().unwrap();
    let registry = Arc::new(decide::Registry::new());
    registry.publish(Arc::new(snapshot(front, server)), os::clock::now());
    let (access, _writer) =
        AccessSink::start(AccessTarget::open(&model::AccessLog::Off, None).unwrap()).unwrap();
    let options = Options {
        registry,
        counters: Arc::new(observe::Registry::new()),
        listeners: vec![ListenerSockets { name: "front".into(), sockets: vec![socket] }],
        workers: 1,
        access,
        may_explain: None,
        identity: Identity::new(1),
    };
    (crate::start(options).unwrap(), front)
}

/// Reads one request with a body of 10 bytes, arms the panic, and answers; returns the bytes
/// received.
fn serve_once(listener: &TcpListener) -> Vec<u8> {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(MINUTE)).unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"0123456789") {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the request was cut off");
        seen.extend_from_slice(&piece[..count]);
    }
    ARMED.store(true, Ordering::SeqCst);
    // Weir may have closed the connection by now.
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    seen
}

#[test]
fn a_connection_is_closed_after_a_panic_because_its_position_is_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (proxy, front) = start(listener.local_addr().unwrap());
    let server = std::thread::spawn(move || serve_once(&listener));
    let mut client = TcpStream::connect(front).unwrap();
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
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(answer.contains("\r\nProxy-Status: weir; error=proxy_internal_error\r\n"), "{answer}");
    assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "only one answer: {answer}");
    let seen = String::from_utf8(server.join().unwrap()).unwrap();
    assert!(seen.starts_with("POST /panic HTTP/1.1\r\n"), "{seen}");
    proxy.begin_drain();
    assert_eq!(proxy.finish(MINUTE), 0, "connections left");
}
