//! Peers of HTTP/2 that misbehave, frame by frame: clients that attack, and servers that refuse
//! streams or leave. Other clients must not be affected.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use e2e::clients::{curl, h2load};
use e2e::frames::{ACK, END_HEADERS, END_STREAM, Frame, Frames, block, code, kind, request};
use e2e::rogue::{Peer, Rogue};
use e2e::{App, Scene, Weir, http, server_tables, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);

fn wait_for_cause(weir: &Weir, cause: &str) -> Value {
    wait::until(&format!("an access line with {cause}"), SOON, || {
        weir.access().into_iter().rev().find(|line| line["cause"] == cause)
    })
}

/// How a connection that is attacked with `flood` ends: the GOAWAY's code, if there was one.
fn ends_with(mut frames: Frames, flood: impl FnOnce(&mut Frames) -> io::Result<()>) -> Option<u32> {
    // The other side may end it before the flood does.
    let flooded = flood(&mut frames);
    let goaway = frames.until(|frame| frame.kind == kind::GOAWAY);
    let ended = goaway.as_ref().ok().map(Frame::code);
    assert!(
        ended.is_some() || flooded.is_err() || goaway.is_err_and(|e| !is_timeout(&e)),
        "the connection goes on"
    );
    ended
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

#[test]
fn a_connection_that_was_idle_is_served_as_before() {
    let Some(scene) = Scene::new("http2-idle", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let mut frames = Frames::client(weir.front()).unwrap();
    for stream in [1, 3, 5, 7, 9] {
        // Weir frees what an idle connection does not need after a second.
        std::thread::sleep(Duration::from_millis(if stream >= 7 { 1500 } else { 0 }));
        frames.headers(stream, &request("GET", "/"), true).unwrap();
        assert_eq!(frames.response(stream).unwrap().0, 200, "stream {stream}");
    }
}

#[test]
fn floods_end_their_connection_and_no_other() {
    let Some(scene) = Scene::alone("http2-floods", &["python3", "curl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let mut weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let front = weir.front();
    let mut other = Frames::client(front).unwrap();
    let mut asked = 1;
    let mut others_are_well = |weir: &mut Weir, what: &str| {
        other.headers(asked, &request("GET", "/"), true).unwrap();
        assert_eq!(other.response(asked).unwrap().0, 200, "after {what}");
        asked += 2;
        assert_eq!(http::get(front, "/").unwrap().status, 200, "after {what}");
        let resident = weir.process().resident_bytes();
        assert!(resident < 100_000_000, "{resident} bytes resident after {what}");
    };
    others_are_well(&mut weir, "nothing");

    // Rapid reset (CVE-2023-44487).
    let ended = ends_with(Frames::client(front).unwrap(), |frames| {
        for number in 0..20_000 {
            frames.headers(number * 2 + 1, &request("GET", "/?work_ms=50"), true)?;
            frames.reset(number * 2 + 1, code::CANCEL)?;
        }
        Ok(())
    });
    assert_eq!(ended, Some(code::ENHANCE_YOUR_CALM));
    let line = wait_for_cause(&weir, "enhance_your_calm");
    assert!(
        line["client"].as_str().is_some_and(|client| client.starts_with("127.0.0.1:")),
        "{line}"
    );
    others_are_well(&mut weir, "a rapid reset");

    // The same at a pace that lets each request begin.
    let before = weir.access().iter().filter(|line| line["cause"] == "enhance_your_calm").count();
    let ended = ends_with(Frames::client(front).unwrap(), |frames| {
        for number in 0..2000 {
            frames.headers(number * 2 + 1, &request("GET", "/?work_ms=20"), true)?;
            frames.send(kind::PING, 0, 0, &[0; 8])?;
            let next =
                frames.until(|frame| frame.kind == kind::GOAWAY || frame.kind == kind::PING)?;
            if next.kind == kind::GOAWAY {
                assert_eq!(next.code(), code::ENHANCE_YOUR_CALM);
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            frames.reset(number * 2 + 1, code::CANCEL)?;
        }
        Ok(())
    });
    println!("a reset of each request that has begun: GOAWAY {ended:?}");
    wait::until("its access line", SOON, || {
        let lines = weir.access();
        let of_it = lines.iter().filter(|line| line["cause"] == "enhance_your_calm");
        (of_it.count() > before).then_some(())
    });
    others_are_well(&mut weir, "a reset of each request");

    // CONTINUATION without an end (CVE-2024-27316).
    let ended = ends_with(Frames::client(front).unwrap(), |frames| {
        frames.send(kind::HEADERS, END_STREAM, 1, &block(&request("GET", "/")))?;
        let more = block(&[("x-field", &"x".repeat(8000))]);
        for _ in 0..100_000 {
            frames.send(kind::CONTINUATION, 0, 1, &more)?;
        }
        Ok(())
    });
    println!("CONTINUATION without an end: GOAWAY {ended:?}");
    others_are_well(&mut weir, "endless CONTINUATION");
    // The same with frames that hold nothing.
    let ended = ends_with(Frames::client(front).unwrap(), |frames| {
        frames.send(kind::HEADERS, END_STREAM, 1, &block(&request("GET", "/")))?;
        let many = Frames::encode(kind::CONTINUATION, 0, 1, &[]).repeat(1000);
        for _ in 0..2000 {
            io::Write::write_all(&mut frames.stream, &many)?;
        }
        Ok(())
    });
    println!("CONTINUATION of nothing: GOAWAY {ended:?}");
    others_are_well(&mut weir, "empty CONTINUATION");

    // A list of fields that HPACK makes huge out of little (CVE-2016-6581): one entry of 4 kB in
    // the table, then a reference to it in each byte.
    let mut frames = Frames::client(front).unwrap();
    let mut bomb = block(&request("GET", "/"));
    bomb.extend([0x40, 1, b'x', 0x7f, 0x81, 0x1e]);
    bomb.extend(vec![b'a'; 4000]);
    bomb.extend(vec![0xbe; 12_000]);
    frames.send(kind::HEADERS, END_STREAM | END_HEADERS, 1, &bomb).unwrap();
    let answer = frames.response(1);
    println!("an HPACK bomb: {answer:?}");
    assert!(answer.is_err() || answer.is_ok_and(|(status, _)| status == 431));
    others_are_well(&mut weir, "an HPACK bomb");

    // Heads that are merely too large are answered, and the connection goes on.
    let mut frames = Frames::client(front).unwrap();
    for (number, size) in [(1, 20_000), (3, 100_000)] {
        let value = "x".repeat(size);
        let mut fields = request("GET", "/").to_vec();
        fields.push(("cookie", &value));
        let block = block(&fields);
        let mut pieces = block.chunks(16_000).peekable();
        frames.send(kind::HEADERS, END_STREAM, number, pieces.next().unwrap()).unwrap();
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() { END_HEADERS } else { 0 };
            frames.send(kind::CONTINUATION, flags, number, piece).unwrap();
        }
        let answer = frames.response(number);
        println!("a head of {size} bytes: {answer:?}");
        assert!(answer.is_err() || answer.is_ok_and(|(status, _)| status == 431), "{size}");
        if number == 1 {
            frames.headers(21, &request("GET", "/"), true).unwrap();
            let after = frames.response(21);
            println!("and after it: {after:?}");
            frames = Frames::client(front).unwrap();
        }
    }
    others_are_well(&mut weir, "large heads");

    // Pings and settings whose answers are not read (CVE-2019-9512, CVE-2019-9515).
    for (what, frame) in [
        ("pings", Frames::encode(kind::PING, 0, 0, &[0; 8])),
        ("settings", Frames::encode(kind::SETTINGS, 0, 0, &[])),
        ("empty data", Frames::encode(kind::DATA, 0, 1, &[])),
    ] {
        let mut frames = Frames::client(front).unwrap();
        frames.headers(1, &request("POST", "/"), false).unwrap();
        frames.stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
        let many = frame.repeat(1000);
        let mut sent = 0;
        let ended = loop {
            match io::Write::write_all(&mut frames.stream, &many) {
                Ok(()) if sent < 300 => sent += 1,
                other => break other,
            }
        };
        println!("{sent} thousand {what}: {ended:?}");
        others_are_well(&mut weir, what);
    }
}

#[test]
fn more_streams_than_are_taken_are_refused_and_the_others_served() {
    let Some(scene) = Scene::new("http2-streams", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let text = scene.one_service("", &[app.address()]);
    let listener = "name = \"public\"\n";
    let text = text.replace(listener, &format!("{listener}http2 = {{ streams_max = 5 }}\n"));
    let weir = Weir::start(&scene, &text);
    let mut frames = Frames::client(weir.front()).unwrap();
    let announced =
        frames.until(|frame| frame.kind == kind::SETTINGS && frame.flags & ACK == 0).unwrap();
    let mut settings = announced.payload.chunks(6);
    assert!(settings.any(|pair| pair == [0, 3, 0, 0, 0, 5]), "{announced:?}");
    for number in 0..10 {
        frames.headers(number * 2 + 1, &request("GET", "/?work_ms=300"), true).unwrap();
    }
    let (mut refused, mut answered) = (0, 0);
    while refused + answered < 10 {
        let frame = frames.next_frame().unwrap();
        match frame.kind {
            kind::RST_STREAM => {
                assert_eq!(frame.code(), code::REFUSED_STREAM, "{frame:?}");
                refused += 1;
            }
            kind::HEADERS => answered += 1,
            kind::GOAWAY => panic!("{frame:?}"),
            _ => {}
        }
    }
    assert_eq!((refused, answered), (5, 5));
}

/// Answers with 200 and this body.
fn answers(frames: &mut Frames, stream: u32, body: &str) -> io::Result<()> {
    frames.headers(stream, &[(":status", "200"), ("x-served-by", "rogue")], false)?;
    frames.send(kind::DATA, END_STREAM, stream, body.as_bytes())
}

/// A server that does `with` each request once it has come whole.
fn server(
    address: SocketAddr,
    with: impl Fn(&mut Frames, u32, u32) -> io::Result<()> + Send + Sync + 'static,
) -> Rogue {
    let count = Arc::new(AtomicU32::new(0));
    Rogue::start(address, move |peer: &mut Peer| {
        let Ok(mut frames) = Frames::server(&peer.stream, &[]) else { return };
        while let Ok(frame) = frames.until(Frame::ends_stream) {
            let so_far = count.fetch_add(1, Ordering::Relaxed);
            if with(&mut frames, frame.stream, so_far).is_err() {
                return;
            }
        }
    })
}

#[test]
fn what_a_server_refuses_goes_elsewhere_whatever_its_method() {
    let Some(scene) = Scene::new("http2-refused", &["python3", "curl"]) else {
        return;
    };
    let refuses = server(scene.address(11, 8080), |frames, stream, _| {
        frames.reset(stream, code::REFUSED_STREAM)
    });
    // Says after the request that it has not taken it, and closes.
    let leaves = server(scene.address(12, 8080), |frames, _, _| {
        frames.go_away(0, code::NO_ERROR)?;
        Err(io::ErrorKind::Other.into())
    });
    // The same, but stays with what it has.
    let leaves_later = server(scene.address(13, 8080), |frames, stream, so_far| {
        if so_far == 0 {
            frames.go_away(stream, code::NO_ERROR)?;
        }
        answers(frames, stream, "late")
    });
    let well = server(scene.address(14, 8080), |frames, stream, _| answers(frames, stream, "well"));
    let service = |name: &str, first: &Rogue| {
        format!(
            "[[route]]\npath = \"/{name}\"\nservice = \"{name}\"\n[service.{name}]\nhttp = \"2\"\n\
             passive = false\n{}{}backup = true\n",
            server_tables(name, [first.address()]),
            server_tables(name, [well.address()])
        )
    };
    let rest = service("refuses", &refuses)
        + &service("leaves", &leaves)
        + &service("later", &leaves_later);
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    for path in ["/refuses", "/leaves"] {
        for method in ["GET", "POST", "PATCH"] {
            for version in ["--http1.1", "--http2-prior-knowledge"] {
                let url = format!("http://{}{path}", weir.front());
                let mut words = vec![version, "-X", method, "-w", " %{response_code}", &url];
                if method != "GET" {
                    words.extend(["-d", "body"]);
                }
                let seen = curl(&scene, &words);
                assert_eq!(seen.stdout, "well 200", "{path} {method} {version} {seen:?}");
            }
        }
    }
    let lines = wait::until("the access lines", SOON, || {
        Some(weir.access()).filter(|lines| lines.len() >= 12)
    });
    for line in &lines {
        assert_eq!(line["cause"], "completed", "{line}");
        assert_eq!(line["failed_attempts"][0]["cause"], "http_stream_refused", "{line}");
    }
    // One that is leaving ends what it has, and further requests find a new connection.
    for _ in 0..3 {
        let answer = http::get(weir.front(), "/later").unwrap();
        assert_eq!((answer.status, answer.text().as_str()), (200, "late"));
    }
}

/// A server that refuses further streams on a connection must not get each request there first, nor a
/// new connection for each.
#[test]
fn a_connection_that_refuses_streams_is_left_alone() {
    few_connections_are_opened("http2-refusing", "", |number| number == 0, 200);
}

/// A server that refuses everything must not get a connection for each request either.
#[test]
fn a_server_that_refuses_all_streams_gets_few_connections() {
    let service = "retries = { max = 0 }";
    few_connections_are_opened("http2-refusing-all", service, |_| true, 502);
}

/// Sends 100 requests, each of which receives `status`, to a server that refuses all streams of some
/// connections, by their number.
fn few_connections_are_opened(name: &str, service: &str, refuses: fn(u32) -> bool, status: u16) {
    let Some(scene) = Scene::new(name, &[]) else {
        return;
    };
    for how in [code::REFUSED_STREAM, code::ENHANCE_YOUR_CALM] {
        let connections = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&connections);
        let host = 11 + how as u8;
        let refusing = Rogue::start(scene.address(host, 8080), move |peer: &mut Peer| {
            let Ok(mut frames) = Frames::server(&peer.stream, &[]) else { return };
            let refuses = refuses(count.fetch_add(1, Ordering::Relaxed));
            while let Ok(frame) = frames.until(Frame::ends_stream) {
                let done = if refuses {
                    frames.reset(frame.stream, how)
                } else {
                    answers(&mut frames, frame.stream, "well")
                };
                if done.is_err() {
                    return;
                }
            }
        });
        let service = format!("http = \"2\"\npassive = false\n{service}");
        let text = scene.one_service(&service, &[refusing.address()]);
        let weir = Weir::start(&scene, &text.replace("workers = 2", "workers = 1"));
        for _ in 0..100 {
            assert_eq!(http::get(weir.front(), "/").unwrap().status, status);
        }
        let opened = connections.load(Ordering::Relaxed);
        assert!(opened < 20, "{opened} connections");
    }
}

#[test]
fn a_limit_on_streams_is_kept_towards_servers() {
    let Some(scene) = Scene::alone("http2-upstream-limit", &["nginx", "h2load"]) else {
        return;
    };
    let address = scene.address(11, 8081);
    let extra = format!("listen {address} http2; http2_max_concurrent_streams 4;");
    let _nginx = e2e::Nginx::start(&scene, 11, &extra);
    let weir = Weir::start(&scene, &scene.one_service("http = \"2\"", &[address]));
    let url = format!("http://{}/status", weir.front());
    let seen = h2load(&scene, &["-n", "2000", "-c", "4", "-m", "50", &url]);
    assert_eq!((seen.succeeded, seen.failed), (2000, 0), "{}", seen.text);
}

/// nginx ends each connection of HTTP/2 after `keepalive_requests`, by default 1000, with a GOAWAY
/// that refuses what is on its way.
#[test]
fn servers_that_end_connections_all_the_time_lose_nothing() {
    let Some(scene) = Scene::alone("http2-goaway", &["nginx", "h2load"]) else {
        return;
    };
    let address = scene.address(11, 8081);
    let extra = format!(
        "listen {address} http2; keepalive_requests 1000; location = /post {{ return 200 'ok'; }}"
    );
    let _nginx = e2e::Nginx::start(&scene, 11, &extra);
    let weir = Weir::start(&scene, &scene.one_service("http = \"2\"", &[address]));
    let body = scene.file("body", "x".repeat(2000)).display().to_string();
    for (path, words) in [("/status", &[][..]), ("/post", &["-d", &body][..])] {
        let url = format!("http://{}{path}", weir.front());
        let own = ["-n", "5000", "-c", "8", "-m", "10", &*url];
        let seen = h2load(&scene, &[&own[..], words].concat());
        let failed = weir.access().into_iter().find(|line| line["cause"] != "completed");
        assert_eq!((seen.succeeded, seen.failed), (5000, 0), "{failed:?} {}", seen.text);
    }
}
