//! gRPC by grpcio on either side: every kind of call, statuses and metadata, and many at once.

use std::time::Duration;

use e2e::clients::python_client;
use e2e::frames::{Frame, Frames, code, kind};
use e2e::rogue::{Peer, Rogue};
use e2e::{Authority, PYTHON_PEERS, Scene, Weir, python_server, server_tables, wait};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn calls_of_every_kind_pass_whole() {
    let Some(scene) = Scene::alone("grpc", &[PYTHON_PEERS]) else {
        return;
    };
    let ca = Authority::new(&scene, "ca");
    let front = ca.issue("front", &["a.example.com"]);
    let inner = ca.issue("inner", &["inner.example.com"]);
    let [clear, secure] = [11, 12].map(|host| scene.address(host, 8080));
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let certificate = ["--certificate", &path(&inner.chain), &path(&inner.key)];
    let echo = "servers/grpc_echo.py";
    let _clear = python_server(&scene, echo, "clear", clear, &[]);
    let _secure = python_server(&scene, echo, "secure", secure, &certificate);
    let [tls, far] = [8443, 8444].map(|port| scene.address(1, port));
    let listener = |name: &str, address| {
        let pair = front.table();
        format!(
            "[[listener]]\nname = \"{name}\"\naddress = \"{address}\"\n\
             tls = {{ certificates = [{pair}] }}\n"
        )
    };
    let rest = format!(
        "{}{}[[route]]\nlistener = \"far\"\nservice = \"secure\"\n[[route]]\nservice = \"clear\"\n\
         [service.clear]\nhttp = \"2\"\n{}[service.secure]\nhttp = \"2\"\n\
         tls = {{ {}, name = \"inner.example.com\" }}\n{}",
        listener("tls", tls),
        listener("far", far),
        server_tables("clear", [clear]),
        ca.ca(),
        server_tables("secure", [secure]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    let authorities = path(ca.pem());
    for (address, words, calls) in [
        (weir.front(), &[][..], 4000),
        (tls, &["--ca", &authorities], 4000),
        (far, &["--ca", &authorities], 2000),
    ] {
        let (address, count) = (address.to_string(), calls.to_string());
        let own = ["--address", &address, "--calls", &count];
        let seen = python_client(&scene, "clients/grpc_calls.py", &[&own[..], words].concat());
        let said = seen.stdout.trim();
        assert_eq!(said, format!("calls {calls} failed 0 StatusCode.OK"), "{address}: {seen:?}");
    }
    // Every call has its line, with the status that its trailers end with.
    wait::until("all access lines", SOON, || (weir.access().len() >= 10_000).then_some(()));
    let lines = weir.access();
    let with = |status: i64| lines.iter().filter(|line| line["grpc_status"] == status).count();
    assert_eq!(with(5), 2 * 30, "NOT_FOUND");
    assert_eq!(with(16), 30, "UNAUTHENTICATED");
    assert_eq!(with(12), 30, "UNIMPLEMENTED");
    let odd: Vec<_> = lines.iter().filter(|line| line["cause"] != "completed").collect();
    assert!(odd.is_empty(), "{odd:#?}");
}

/// What Weir answers itself has the form that gRPC clients expect: 200, and the status of the call in a
/// head that ends the stream.
#[test]
fn answers_of_weir_have_the_status_of_the_call() {
    let Some(scene) = Scene::new("grpc-answers", &[]) else {
        return;
    };
    let server = Rogue::start(scene.address(11, 8080), |peer: &mut Peer| {
        let Ok(mut frames) = Frames::server(&peer.stream, &[]) else { return };
        while let Ok(frame) = frames.until(Frame::ends_stream) {
            let has = |text: &[u8]| frame.payload.windows(text.len()).any(|part| part == text);
            // Servers cancel calls at the deadline themselves. The others are never answered.
            if has(b"100m") {
                wait::measure_for(Duration::from_millis(100));
            }
            if has(b"cancel") || has(b"100m") {
                let _ = frames.reset(frame.stream, code::CANCEL);
            }
        }
    });
    let rest = format!(
        "[[route]]\nservice = \"app\"\n[[route]]\npath = \"/denied\"\ndeny = 403\n\
         [service.app]\nhttp = \"2\"\npassive = false\nretries = {{ max = 0 }}\n{}",
        server_tables("app", [server.address()])
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let mut frames = Frames::client(weir.front()).unwrap();
    let mut call = |stream: u32, path: &str, last: (&str, &str)| {
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "a.example.com"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            last,
        ];
        frames.headers(stream, &fields, true).unwrap();
        let head = frames.until(|frame| frame.stream == stream).unwrap();
        assert_eq!((head.kind, head.status()), (kind::HEADERS, Some(200)), "{path}: {head:?}");
        assert!(head.ends_stream(), "{path}: {head:?}");
        // Literal, with the length of the value before it.
        let name = b"grpc-status";
        let at = head.payload.windows(name.len()).position(|part| part == name).unwrap();
        let rest = &head.payload[at + name.len()..];
        let length = usize::from(rest[0]);
        String::from_utf8(rest[1..=length].to_vec()).unwrap()
    };
    assert_eq!(call(1, "/a.B/Wait", ("grpc-timeout", "300m")), "4", "DEADLINE_EXCEEDED");
    assert_eq!(call(7, "/a.B/Late", ("grpc-timeout", "100m")), "4", "DEADLINE_EXCEEDED");
    assert_eq!(call(9, "/a.B/Do", ("x-last", "cancel")), "1", "CANCELLED");
    assert_eq!(call(11, "/denied", ("x-last", "y")), "7", "PERMISSION_DENIED");
    let lines = wait::until("the access lines", SOON, || {
        Some(weir.access()).filter(|lines| lines.len() == 4)
    });
    let seen: Vec<_> = lines
        .iter()
        .map(|line| {
            (line["cause"].as_str().unwrap(), line["status"].clone(), line["grpc_status"].clone())
        })
        .collect();
    for (line, (cause, grpc)) in seen.iter().zip([
        ("client_deadline_exceeded", 4),
        ("client_deadline_exceeded", 4),
        ("http_stream_reset", 1),
        ("http_request_denied", 7),
    ]) {
        assert_eq!(*line, (cause, 200.into(), grpc.into()));
    }
    assert_eq!(lines[2]["detail"], "CANCEL");
}
