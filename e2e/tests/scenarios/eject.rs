//! Hostile clients against servers that work. Each kind of client has a service of its own,
//! through which good requests go too: none of those may fail, and no server may be ejected.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use e2e::frames::{END_STREAM, Frames, code, kind, request as pseudo};
use e2e::rogue::reset_on_close;
use e2e::{PYTHON_PEERS, Scene, Weir, http, python_server, wait};

/// What is spoken to Weir, and by Weir to the servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Http {
    One,
    Two,
}

/// How much, for how long.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Good requests a second, of all services together.
    pub(crate) good_per_s: u32,
    pub(crate) time: Duration,
}

/// A body as it is sent.
#[derive(Clone, Copy)]
enum Body {
    None,
    Whole(usize),
    /// So many bytes are announced and one is sent.
    Withheld(usize),
    /// A byte every tenth of a second, of so many.
    Trickle(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// Waits for the response.
    Stays,
    /// Leaves, as soon as the request is sent, in good order…
    Leaves,
    /// …or by a reset.
    Resets,
}

/// One request of a hostile client.
struct Request {
    method: &'static str,
    /// Behind the service's own prefix.
    path: &'static str,
    fields: &'static [(&'static str, &'static str)],
    /// A field of this many bytes beside them.
    large: usize,
    body: Body,
    after: After,
}

const GET: Request = Request {
    method: "GET",
    path: "/good",
    fields: &[],
    large: 0,
    body: Body::None,
    after: After::Stays,
};
const POST: Request = Request { method: "POST", body: Body::Whole(20), ..GET };

/// A kind of hostile client: what it sends, over and over. Requests that wait for their bodies or
/// for answers are under way `at_once`.
struct Kind {
    name: &'static str,
    requests: &'static [Request],
    at_once: u32,
}

const GRPC: &[(&str, &str)] =
    &[("content-type", "application/grpc"), ("te", "trailers"), ("grpc-timeout", "10m")];

#[rustfmt::skip]
const KINDS: &[Kind] = &[
    Kind { name: "errors", requests: &[Request { path: "/error", ..GET }], at_once: 2 },
    Kind { name: "errors-in-turn", requests: &[GET, Request { path: "/error", ..GET }], at_once: 1 },
    Kind { name: "crashes", requests: &[Request { path: "/crash", ..GET }], at_once: 2 },
    Kind { name: "crashes-post", requests: &[Request { path: "/crash", ..POST }], at_once: 2 },
    Kind { name: "crashes-in-turn", requests: &[POST, Request { path: "/crash", ..POST }], at_once: 1 },
    Kind { name: "hangs-and-leaves", requests: &[Request { path: "/hang", after: After::Leaves, ..GET }], at_once: 1 },
    Kind { name: "resets-uploads", requests: &[Request { body: Body::Withheld(5000), after: After::Resets, ..POST }], at_once: 1 },
    Kind { name: "deadline-without-grpc", requests: &[Request { fields: &[("grpc-timeout", "1n")], ..GET }], at_once: 1 },
    Kind { name: "deadline", requests: &[Request { path: "/hang", fields: GRPC, ..POST }], at_once: 1 },
    Kind { name: "methods", requests: &[Request { method: "BREW", ..GET }], at_once: 1 },
    Kind { name: "versions", requests: &[Request { path: "/v505", ..GET }], at_once: 1 },
    Kind { name: "withholds-bodies", requests: &[Request { body: Body::Withheld(1000), ..POST }], at_once: 4 },
    Kind { name: "withholds-puts", requests: &[Request { method: "PUT", body: Body::Withheld(1000), ..POST }], at_once: 4 },
    Kind { name: "trickles-bodies", requests: &[Request { path: "/patient", body: Body::Trickle(80), ..POST }], at_once: 12 },
    Kind { name: "large-heads", requests: &[Request { large: 12_000, ..GET }], at_once: 1 },
    Kind { name: "odd-targets", requests: &[Request { path: "/a<b`c/good", ..GET }], at_once: 1 },
    Kind { name: "odd-hosts", requests: &[Request { fields: &[("host", "a%41")], ..GET }], at_once: 1 },
    Kind { name: "unread-uploads", requests: &[Request { path: "/unread", body: Body::Whole(69_000), ..POST }], at_once: 4 },
    Kind { name: "malformed-answers", requests: &[Request { path: "/malformed", ..GET }], at_once: 1 },
    Kind { name: "switches", requests: &[Request { path: "/switch", ..GET }], at_once: 1 },
    Kind { name: "early-answers", requests: &[Request { path: "/early", body: Body::Withheld(1000), ..POST }], at_once: 1 },
    Kind { name: "slow-failures", requests: &[Request { path: "/slowfail", ..POST }, POST], at_once: 4 },
    Kind { name: "large-answers", requests: &[Request { path: "/big", after: After::Resets, ..GET }], at_once: 1 },
];

/// The last numbers of the servers' addresses. Connections of HTTP/2 are shared by all services of an
/// address, and some kinds make a server end them: such a connection would end before Weir names the
/// client that keeps a body back (1 s).
const OTHERS: [u8; 2] = [11, 12];
const TRICKLED: [u8; 2] = [13, 14];
const WITHHELD: [u8; 2] = [15, 16];

fn hosts(kind: &str) -> [u8; 2] {
    match kind {
        "trickles-bodies" => TRICKLED,
        "withholds-bodies" | "withholds-puts" => WITHHELD,
        _ => OTHERS,
    }
}

/// Runs one pairing; fails if a server is ejected or a good request is lost.
pub(crate) fn nobody_can_eject(name: &str, front: Http, back: Http, load: Load) {
    let Some(scene) = Scene::alone(name, &[PYTHON_PEERS]) else { return };
    let words: &[&str] = if back == Http::Two { &["--http2"] } else { &[] };
    let servers = [OTHERS, TRICKLED, WITHHELD].concat().into_iter().map(|host| {
        let address = scene.address(host, 8080);
        python_server(&scene, "servers/frail.py", &format!("frail{host}"), address, words)
    });
    let _servers: Vec<_> = servers.collect();
    let weir = Weir::start(&scene, &configuration(&scene, back));
    let address = weir.front();
    let over = AtomicBool::new(false);
    let mut lost = Vec::new();
    std::thread::scope(|scope| {
        let over = &over;
        for kind in KINDS {
            for _ in 0..kind.at_once {
                scope.spawn(move || attack(address, front, kind, over));
            }
        }
        lost = good_requests(address, front, load);
        over.store(true, Ordering::Relaxed);
    });
    let log = weir.log();
    let ejected: Vec<&str> = log.lines().filter(|line| line.contains("ejected: ")).collect();
    assert!(ejected.is_empty(), "{front:?} to {back:?}: {}", ejected.join("\n"));
    assert!(lost.is_empty(), "{front:?} to {back:?}: {} good requests: {lost:#?}", lost.len());
    // Had it had no effect, this would prove nothing.
    let seen: std::collections::BTreeSet<(String, String)> = weir
        .access()
        .iter()
        .filter_map(|line| Some((line["service"].as_str()?.into(), line["cause"].as_str()?.into())))
        .collect();
    for (kind, cause) in [
        ("deadline", "client_deadline_exceeded"),
        ("withholds-bodies", "http_request_body_slow"),
        ("trickles-bodies", "http_request_body_slow"),
    ] {
        let pair = (kind.to_owned(), cause.to_owned());
        assert!(seen.contains(&pair), "{front:?} to {back:?}: no {cause} of {kind} in {seen:?}");
    }
}

fn configuration(scene: &Scene, back: Http) -> String {
    let mut rest = String::new();
    for Kind { name, .. } in KINDS {
        let http = if back == Http::Two { "http = \"2\"\n" } else { "" };
        // Short enough to pass during the attack, and long beside what a good request ever takes:
        // the total while bodies still trickle, the others while a server reads nothing.
        let timeouts = match *name {
            "trickles-bodies" => "timeouts.total = \"4s\"\n",
            "unread-uploads" => "timeouts = { response = \"4s\", idle = \"4s\" }\n",
            _ => "",
        };
        let servers = e2e::server_tables(name, hosts(name).map(|host| scene.address(host, 8080)));
        rest += &format!(
            "[[route]]\npath = \"/{name}\"\nservice = \"{name}\"\n\
             [service.{name}]\n{http}{timeouts}{servers}\n"
        );
    }
    scene.config("workers = 2", &rest)
}

/// Sends good requests by the clock, to all services in turn; yields what became of those that were
/// not answered with 200.
fn good_requests(address: SocketAddr, front: Http, load: Load) -> Vec<String> {
    let began = Instant::now();
    let (mut due, mut number) = (Duration::ZERO, 0);
    let (tell, answers) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        while due < load.time {
            wait::measure_for(due.saturating_sub(began.elapsed()));
            let kind = &KINDS[number % KINDS.len()];
            let tell = tell.clone();
            scope.spawn(move || {
                let sent = began.elapsed();
                let seen =
                    send(address, front, &format!("/{}", kind.name), &GET, &AtomicBool::new(false));
                if !matches!(seen, Ok(Some(200))) {
                    let _ = tell.send(format!("{} after {sent:?}: {seen:?}", kind.name));
                }
            });
            number += 1;
            due += Duration::from_secs(1) / load.good_per_s;
        }
    });
    drop(tell);
    answers.into_iter().collect()
}

fn attack(address: SocketAddr, front: Http, kind: &Kind, over: &AtomicBool) {
    let prefix = format!("/{}", kind.name);
    for request in kind.requests.iter().cycle() {
        if over.load(Ordering::Relaxed) {
            return;
        }
        // Whatever becomes of it.
        let _ = send(address, front, &prefix, request, over);
        // As fast as this, two servers in Python leave a third of two cores to everybody else.
        wait::measure_for(Duration::from_millis(50));
    }
}

/// Sends a request on a connection of its own; yields the status of its answer, if it waits for one.
fn send(
    address: SocketAddr,
    front: Http,
    prefix: &str,
    request: &Request,
    over: &AtomicBool,
) -> io::Result<Option<u16>> {
    let target = format!("{prefix}{}", request.path);
    let large = "x".repeat(request.large);
    let mut fields = request.fields.to_vec();
    if request.large > 0 {
        fields.push(("x-large", &large));
    }
    match front {
        Http::One => send_1(address, &target, request, &fields, over),
        Http::Two => send_2(address, &target, request, &fields, over),
    }
}

/// Gives the body's bytes to `write`, as the client sends them.
fn write_body(
    body: Body,
    over: &AtomicBool,
    mut write: impl FnMut(&[u8], bool) -> io::Result<()>,
) -> io::Result<()> {
    match body {
        Body::None => Ok(()),
        Body::Whole(length) => write(&vec![b'x'; length], true),
        Body::Withheld(_) => write(b"x", false),
        Body::Trickle(length) => {
            for sent in 1..=length {
                if over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                write(b"x", sent == length)?;
                wait::measure_for(Duration::from_millis(100));
            }
            Ok(())
        }
    }
}

fn length(body: Body) -> Option<usize> {
    match body {
        Body::None => None,
        Body::Whole(length) | Body::Withheld(length) | Body::Trickle(length) => Some(length),
    }
}

fn send_1(
    address: SocketAddr,
    target: &str,
    request: &Request,
    fields: &[(&str, &str)],
    over: &AtomicBool,
) -> io::Result<Option<u16>> {
    let mut connection = http::Connection::open(address)?;
    let mut head = format!("{} {target} HTTP/1.1\r\n", request.method);
    if !fields.iter().any(|(name, _)| *name == "host") {
        head += "Host: a.example.com\r\n";
    }
    for (name, value) in fields {
        head += &format!("{name}: {value}\r\n");
    }
    if let Some(length) = length(request.body) {
        head += &format!("Content-Length: {length}\r\n");
    }
    connection.send(format!("{head}\r\n").as_bytes())?;
    let mut stream = connection.stream.try_clone()?;
    write_body(request.body, over, |bytes, _| stream.write_all(bytes))?;
    match request.after {
        After::Stays => return connection.response(false).map(|answer| Some(answer.status)),
        After::Leaves => {}
        After::Resets => reset_on_close(&connection.stream),
    }
    // Something has to be under way when it leaves.
    connection.stream.set_read_timeout(Some(Duration::from_millis(50)))?;
    let _ = connection.stream.read(&mut [0; 100]);
    Ok(None)
}

fn send_2(
    address: SocketAddr,
    target: &str,
    request: &Request,
    fields: &[(&str, &str)],
    over: &AtomicBool,
) -> io::Result<Option<u16>> {
    let mut frames = Frames::client(address)?;
    let mut all = pseudo(request.method, target).to_vec();
    for &(name, value) in fields {
        match name {
            "host" => all[3].1 = value,
            _ => all.push((name, value)),
        }
    }
    let announced = length(request.body).map(|length| length.to_string());
    if let Some(announced) = &announced {
        all.push(("content-length", announced));
    }
    frames.headers(1, &all, announced.is_none())?;
    write_body(request.body, over, |bytes, last| {
        let mut pieces = bytes.chunks(16_000).peekable();
        while let Some(piece) = pieces.next() {
            let ends = last && pieces.peek().is_none();
            frames.send(kind::DATA, if ends { END_STREAM } else { 0 }, 1, piece)?;
        }
        Ok(())
    })?;
    if request.after == After::Stays {
        let head = frames.until(|frame| {
            frame.stream == 1 && matches!(frame.kind, kind::HEADERS | kind::RST_STREAM)
        })?;
        return match head.kind {
            kind::HEADERS => Ok(head.status()),
            _ => Err(io::Error::other(format!("reset with code {}", head.code()))),
        };
    }
    frames.stream.set_read_timeout(Some(Duration::from_millis(50)))?;
    let _ = frames.until(|frame| frame.kind == kind::DATA);
    match request.after {
        After::Resets => frames.reset(1, code::CANCEL)?,
        _ => reset_on_close(&frames.stream),
    }
    Ok(None)
}
