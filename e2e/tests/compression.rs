//! Compressed responses: real codings, read by curl and byte by byte.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use e2e::rogue::{Peer, Rogue};
use e2e::{Scene, Weir, clients, http, wait};
use flate2::write::GzDecoder;

/// Long enough to be read in many pieces, and no piece like another.
fn text() -> String {
    (0..20_000).map(|number| format!("line {number} of a text that repeats itself\n")).collect()
}

/// Serves [`text`] by length at `/length`, in chunks at `/chunks`, until it closes at `/close`.
fn serve_text(peer: &mut Peer) {
    while let Some(head) = peer.request() {
        let is_head = head.starts_with("HEAD");
        let body = if is_head { String::new() } else { text() };
        let start = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: \"one\"\r\nAccept-Ranges: bytes\r\n";
        if head.contains("If-None-Match") {
            peer.say("HTTP/1.1 304 Not Modified\r\nETag: \"one\"\r\n\r\n");
        } else if head.contains(" /length") {
            peer.say(format!("{start}Content-Length: {}\r\n\r\n{body}", text().len()));
        } else if head.contains(" /chunks") {
            let chunks: String = body
                .as_bytes()
                .chunks(10_000)
                .map(|c| format!("{:x}\r\n{}\r\n", c.len(), String::from_utf8_lossy(c)))
                .collect();
            peer.say(format!(
                "{start}Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\nx-end: yes\r\n\r\n"
            ));
        } else {
            peer.say(format!("{start}Connection: close\r\n\r\n{body}"));
            return;
        }
    }
}

fn configuration(scene: &Scene, top: &str, server: &Rogue, compress: &str) -> String {
    let servers = e2e::server_tables("app", [server.address()]);
    let rest = format!(
        "[[route]]\nservice = \"app\"\ncompress = {compress}\n\n[service.app]\npassive = false\n{servers}"
    );
    scene.config(&format!("workers = 2\n{top}"), &rest)
}

/// What is sent up to `end`, and that.
fn read_to(connection: &mut http::Connection, end: &str) -> String {
    let mut read = String::new();
    while !read.ends_with(end) {
        read.push(char::from(connection.exactly(1).expect("more")[0]));
    }
    read
}

const BOUND: Duration = Duration::from_secs(20);
const ALL: &str = "{ codings = [\"zstd\", \"br\", \"gzip\"] }";

#[test]
fn curl_reads_every_coding_in_http_1_and_2() {
    let Some(scene) = Scene::new("compression-curl", &["curl"]) else { return };
    let server = Rogue::start(scene.address(11, 8080), serve_text);
    let weir = Weir::start(&scene, &configuration(&scene, "", &server, ALL));
    let expected = text();
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        for coding in ["zstd", "br", "gzip"] {
            for path in ["length", "chunks", "close"] {
                let url = format!("http://{}/{path}", weir.front());
                let accept = format!("Accept-Encoding: {coding}");
                // It decodes by what the response says.
                let words = ["--include", "--compressed", version, "--header", &accept, &url];
                let got = clients::curl(&scene, &words).stdout;
                let (head, body) = got.split_once("\r\n\r\n").expect("a head");
                let head = head.to_lowercase();
                // Trailers stand behind the body then.
                let body = body.strip_suffix("x-end: yes\r\n").unwrap_or(body);
                let what = format!("{version} {coding} {path}\n{head}");
                assert!(body == expected, "{what}: {} bytes", body.len());
                for line in [
                    format!("\r\ncontent-encoding: {coding}"),
                    "\r\nvary: accept-encoding".to_owned(),
                    "\r\netag: w/\"one\"".to_owned(),
                ] {
                    assert!(head.contains(&line), "{line:?} in {what}");
                }
                for name in ["\r\ncontent-length:", "\r\naccept-ranges:"] {
                    assert!(!head.contains(name), "{name:?} in {what}");
                }
            }
        }
    }
    // What was sent is what is logged: far less than the text.
    let sent = weir.access().iter().filter_map(|line| line["response_bytes"].as_u64()).max();
    assert!(sent.is_some_and(|sent| (1..expected.len() as u64 / 4).contains(&sent)), "{sent:?}");
    wait::until("the memory is given back", BOUND, || {
        (weir.metric("weir_compression_memory_bytes", &[]) == 0.0).then_some(())
    });
}

#[test]
fn heads_agree_whatever_the_variant() {
    let Some(scene) = Scene::new("compression-heads", &[]) else { return };
    let server = Rogue::start(scene.address(11, 8080), serve_text);
    let weir = Weir::start(&scene, &configuration(&scene, "", &server, "true"));
    let mut connection = http::Connection::open(weir.front()).expect("a connection");
    let mut ask = |method: &str, fields: &[&str]| {
        let answer = connection.request(method, "/length", fields, b"").expect("an answer");
        let field = |name: &str| answer.field(name).map(str::to_owned);
        let coding = field("content-encoding");
        (answer.status, coding, field("vary"), field("etag"), field("content-length"))
    };
    let some = |text: &str| Some(text.to_owned());
    let varies = some("Accept-Encoding");
    let gzip = "Accept-Encoding: gzip";
    let coded = (200, some("gzip"), varies.clone(), some("W/\"one\""), None);
    assert_eq!(ask("GET", &[gzip]), coded);
    assert_eq!(ask("HEAD", &[gzip]), coded);
    let length = Some(text().len().to_string());
    let plain = (200, None, varies.clone(), some("\"one\""), length);
    assert_eq!(ask("GET", &[]), plain);
    assert_eq!(ask("HEAD", &["Accept-Encoding: br"]), plain);
    let unchanged = (304, None, varies, some("W/\"one\""), None);
    assert_eq!(ask("GET", &[gzip, "If-None-Match: W/\"one\""]), unchanged);
}

/// What a route does to the response's fields cannot hide that there are variants.
#[test]
fn changes_of_fields_go_with_compression() {
    let Some(scene) = Scene::new("compression-fields", &[]) else { return };
    let server = Rogue::start(scene.address(11, 8080), |peer| {
        while peer.request().is_some() {
            peer.say(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nVary: Accept-Encoding\r\n\
                 Content-Length: 2000\r\n\r\n",
            );
            peer.say("x".repeat(2000));
        }
    });
    let servers = e2e::server_tables("app", [server.address()]);
    let route = |path: &str, change: &str| {
        format!(
            "[[route]]\npath = \"{path}\"\nservice = \"app\"\ncompress = true\n\
             response_header = {{ {change} }}\n"
        )
    };
    let rest = [
        route("/removed", "remove = [\"Vary\"]"),
        route("/set", "set = { Vary = \"Cookie\", ETag = '\"two\"' }"),
        route("/same", "set = { Vary = \"Accept-Encoding\", Content-Encoding = \"none\" }"),
        format!("[service.app]\n{servers}"),
    ];
    let weir = Weir::start(&scene, &scene.config("", &rest.concat()));
    let ask = |path: &str| {
        http::get_with(weir.front(), path, &["Accept-Encoding: gzip"]).expect("an answer")
    };
    let all = |answer: &http::Response, name: &str| -> Vec<String> {
        let fields = answer.fields.iter().filter(|(key, _)| key == name);
        fields.map(|(_, value)| value.clone()).collect()
    };
    for (path, vary) in [
        ("/removed", &["Accept-Encoding"][..]),
        ("/set", &["Cookie", "Accept-Encoding"]),
        ("/same", &["Accept-Encoding"]),
    ] {
        let answer = ask(path);
        assert_eq!(all(&answer, "vary"), vary, "{path}");
        assert_eq!(all(&answer, "content-encoding"), ["gzip"], "{path}");
    }
    assert_eq!(all(&ask("/set"), "etag"), ["W/\"two\""]);
}

/// Each event is sent when the client has read the one before: if one were held back, neither would
/// go on.
#[test]
fn events_are_not_held_back() {
    let Some(scene) = Scene::new("compression-events", &[]) else { return };
    let (read, was_read) = mpsc::channel();
    let was_read = Mutex::new(was_read);
    let server = Rogue::start(scene.address(11, 8080), move |peer| {
        if peer.request().is_none() {
            return;
        }
        peer.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        for number in 0..20 {
            peer.say(format!("data: {number}\n\n"));
            was_read.lock().expect("the only user").recv().expect("read");
        }
    });
    let weir = Weir::start(&scene, &configuration(&scene, "", &server, "true"));
    let mut connection = http::Connection::open(weir.front()).expect("a connection");
    connection.send(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n").expect("sent");
    let mut gzip = GzDecoder::new(Vec::new());
    let head = read_to(&mut connection, "\r\n\r\n");
    assert!(head.contains("Content-Encoding: gzip"), "{head}");
    for number in 0..20 {
        let event = format!("data: {number}\n\n");
        let mut got = String::new();
        while got.len() < event.len() {
            let length = read_to(&mut connection, "\r\n");
            let length = usize::from_str_radix(length.trim(), 16).expect("a chunk's length");
            let chunk = connection.exactly(length + 2).expect("a chunk");
            gzip.write_all(&chunk[..length]).expect("gzip");
            gzip.flush().expect("gzip");
            got += &String::from_utf8(std::mem::take(gzip.get_mut())).expect("text");
        }
        assert_eq!(got, event);
        read.send(()).expect("a server");
    }
}

#[test]
fn beyond_the_memory_responses_pass_as_they_are() {
    let Some(scene) = Scene::new("compression-memory", &[]) else { return };
    let (go_on, told) = mpsc::channel::<()>();
    let told = Mutex::new(told);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let server = Rogue::start(scene.address(11, 8080), move |peer| {
        while peer.request().is_some() {
            let number = count.fetch_add(1, Ordering::SeqCst);
            peer.say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n");
            if number == 0 {
                told.lock().expect("the only user").recv().expect("told");
            }
            peer.say("x".repeat(5000));
        }
    });
    // Of gzip there is room for one.
    let top = "compression_memory_max = \"600kB\"";
    let weir = Weir::start(&scene, &configuration(&scene, top, &server, "true"));
    let gzip = &["Accept-Encoding: gzip"];
    std::thread::scope(|scope| {
        let first = scope.spawn(|| http::get_with(weir.front(), "/", gzip).expect("an answer"));
        wait::until("the first is under way", BOUND, || {
            (weir.metric("weir_compression_memory_bytes", &[]) > 0.0).then_some(())
        });
        let second = http::get_with(weir.front(), "/", gzip).expect("an answer");
        assert_eq!(second.field("content-encoding"), None);
        assert_eq!(second.field("vary"), Some("Accept-Encoding"));
        assert_eq!(second.body.len(), 5000);
        assert!(weir.metric("weir_compression_memory_exhausted_total", &[]) > 0.5);
        go_on.send(()).expect("a server");
        let first = first.join().expect("the first");
        assert_eq!(first.field("content-encoding"), Some("gzip"));
    });
    wait::until("the memory is given back", BOUND, || {
        (weir.metric("weir_compression_memory_bytes", &[]) == 0.0).then_some(())
    });
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

/// A body that breaks off must not look whole once it is in chunks.
#[test]
fn a_body_that_breaks_off_has_no_end() {
    let Some(scene) = Scene::new("compression-broken", &[]) else { return };
    let server = Rogue::start(scene.address(11, 8080), |peer| {
        if peer.request().is_some() {
            peer.say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9000\r\n\r\n");
            peer.say("x".repeat(5000));
        }
    });
    let weir = Weir::start(&scene, &configuration(&scene, "", &server, "true"));
    let mut connection = http::Connection::open(weir.front()).expect("a connection");
    connection.send(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n").expect("sent");
    let got = connection.rest().expect("what there is");
    assert!(String::from_utf8_lossy(&got).contains("Transfer-Encoding: chunked"));
    assert!(!got.ends_with(b"0\r\n\r\n"));
    let line = wait::until("the access line", BOUND, || weir.access().into_iter().next());
    assert_eq!(line["cause"], "http_response_incomplete");
}

/// Weir never decompresses, whatever a client accepts: what is small on the network stays small in memory.
#[test]
fn nothing_is_decompressed() {
    let Some(scene) = Scene::new("compression-bomb", &[]) else { return };
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..64 {
        encoder.write_all(&zeros).unwrap();
    }
    let bomb = Arc::new(encoder.finish().unwrap());
    assert!(bomb.len() < 100_000, "{}", bomb.len());
    let (uploads, served) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(&bomb));
    let seen = Arc::clone(&uploads);
    let server = Rogue::start(scene.address(11, 8080), move |peer| {
        while let Some((_, body)) = peer.message() {
            seen.lock().unwrap().push(body);
            peer.say(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                served.len()
            ));
            peer.say(&*served);
        }
    });
    let mut weir = Weir::start(&scene, &configuration(&scene, "", &server, "true"));
    let before = weir.process().resident_bytes();
    for accepted in [None, Some("identity"), Some("gzip;q=0"), Some("br")] {
        let mut connection = http::Connection::open(weir.front()).unwrap();
        let field = accepted.map(|codings| format!("Accept-Encoding: {codings}"));
        let mut fields = vec!["Content-Encoding: gzip"];
        fields.extend(field.as_deref());
        let answer = connection.request("POST", "/", &fields, &bomb).unwrap();
        assert_eq!((answer.status, answer.field("content-encoding")), (200, Some("gzip")));
        assert!(answer.body == *bomb, "{accepted:?}: {} bytes", answer.body.len());
    }
    let uploads = uploads.lock().unwrap();
    assert!(uploads.len() == 4 && uploads.iter().all(|body| *body == *bomb));
    let grown_bytes = weir.process().resident_bytes().saturating_sub(before);
    assert!(grown_bytes < 16 << 20, "{grown_bytes} bytes");
}
