//! How HTTP/2 connections and streams end, frame by frame: drains, reloads, clients that do not
//! acknowledge or do not read, requests that are cancelled, servers that close at once.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use e2e::frames::{END_HEADERS, END_STREAM, Frame, Frames, block, code, kind, request};
use e2e::rogue::{Peer, Rogue};
use e2e::{App, Scene, Weir, http, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);
/// Timeouts that no test waits for.
const NEVER: &str = "timeouts = { idle = \"300s\", head = \"300s\" }";

fn wait_for_cause(weir: &Weir, cause: &str) -> Value {
    wait::until(&format!("an access line with {cause}"), SOON, || {
        weir.access().into_iter().rev().find(|line| line["cause"] == cause)
    })
}

/// Returns the configuration of one service, with these settings of the listener.
fn with_listener(text: &str, settings: &str) -> String {
    let listener = "name = \"public\"\n";
    assert!(text.contains(listener));
    text.replace(listener, &format!("{listener}{settings}\n"))
}

/// Reads the next frame without acknowledging anything.
fn next_silently(frames: &mut Frames) -> std::io::Result<Frame> {
    let mut head = [0; 9];
    frames.stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let mut payload = vec![0; length];
    frames.stream.read_exact(&mut payload)?;
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
    Ok(Frame { kind: head[3], flags: head[4], stream, payload })
}

fn last_of_goaway(frame: &Frame) -> u32 {
    u32::from_be_bytes([frame.payload[0], frame.payload[1], frame.payload[2], frame.payload[3]])
}

/// Neither a client that acknowledges the announcement nor one that does not makes a drain wait for
/// the idle timeout or `drain_max`.
#[test]
fn a_drain_does_not_wait_for_idle_clients() {
    let Some(scene) = Scene::new("http2-drain-idle", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let text = with_listener(&scene.one_service("", &[app.address()]), NEVER);
    let text = format!("drain_max = \"300s\"\n{text}");
    let mut weir = Weir::start(&scene, &text);
    let mut polite = Frames::client(weir.front()).unwrap();
    let mut silent = Frames::client(weir.front()).unwrap();
    for frames in [&mut polite, &mut silent] {
        frames.headers(1, &request("GET", "/"), true).unwrap();
        assert_eq!(frames.response(1).unwrap().0, 200);
    }
    weir.begin_to_stop();
    let polite = std::thread::spawn(move || {
        let mut lasts = Vec::new();
        while let Ok(frame) = polite.next_frame() {
            if frame.kind == kind::GOAWAY {
                lasts.push(last_of_goaway(&frame));
            }
        }
        lasts
    });
    let mut lasts = Vec::new();
    while let Ok(frame) = next_silently(&mut silent) {
        if frame.kind == kind::GOAWAY {
            lasts.push(last_of_goaway(&frame));
        }
    }
    assert_eq!(lasts, [0x7fff_ffff, 1], "without an acknowledgement");
    assert_eq!(polite.join().unwrap(), [0x7fff_ffff, 1], "with one");
    assert_eq!(weir.wait(SOON).code, Some(0));
}

/// A client that never acknowledges must not have further requests served under the rules from
/// before a reload.
#[test]
fn a_reload_ends_connections_of_a_changed_listener() {
    let Some(scene) = Scene::new("http2-reload-rules", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let text = with_listener(&scene.one_service("", &[app.address()]), NEVER);
    let weir = Weir::start(&scene, &text);
    let mut frames = Frames::client(weir.front()).unwrap();
    // One request is in progress, so that the connection stays.
    frames.headers(1, &request("GET", "/?work_ms=4000"), true).unwrap();
    wait::until("the request to run", SOON, || {
        (weir.metric("weir_server_in_flight", &[]) >= 1.0).then_some(())
    });
    let moved = text.replace(&scene.front().to_string(), &scene.address(1, 8099).to_string());
    assert_ne!(moved, text);
    scene.file("weir.toml", moved);
    weir.hang_up();
    let mut goaways = 0;
    while goaways < 2 {
        let frame = next_silently(&mut frames).unwrap();
        goaways += u32::from(frame.kind == kind::GOAWAY);
    }
    frames.headers(3, &request("GET", "/"), true).unwrap();
    let (mut refused, mut answered) = (None, false);
    while let Ok(frame) = next_silently(&mut frames) {
        match (frame.kind, frame.stream) {
            (kind::RST_STREAM, 3) => refused = Some(frame.code()),
            (kind::HEADERS, 1) => answered = true,
            (kind::HEADERS, 3) => panic!("a later request was served"),
            _ => {}
        }
    }
    assert_eq!((refused, answered), (Some(code::REFUSED_STREAM), true));
}

#[test]
fn a_header_block_must_arrive_in_time() {
    let Some(scene) = Scene::new("http2-slow-head", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let settings = "timeouts = { idle = \"300s\", head = \"500ms\" }";
    let weir =
        Weir::start(&scene, &with_listener(&scene.one_service("", &[app.address()]), settings));
    for continues in [true, false] {
        let mut frames = Frames::client(weir.front()).unwrap();
        // Another request keeps the connection busy.
        frames.headers(1, &request("GET", "/?work_ms=60000"), true).unwrap();
        let head = block(&request("GET", "/"));
        if continues {
            frames.send(kind::HEADERS, END_STREAM, 3, &head).unwrap();
        } else {
            let whole = Frames::encode(kind::HEADERS, END_HEADERS | END_STREAM, 3, &head);
            frames.stream.write_all(&whole[..whole.len() - 1]).unwrap();
        }
        // Nothing may come between the pieces of a block, not even an acknowledgement.
        while next_silently(&mut frames).is_ok() {}
        let line = wait_for_cause(&weir, "http_request_timeout");
        assert!(line["detail"].as_str().unwrap().contains("not complete in time"), "{line}");
        // The request beside it ends with the connection.
        wait::until("both access lines", SOON, || {
            let lines = weir.access();
            let other = lines.iter().filter(|line| line["cause"] == "http2_protocol_error");
            (other.count() == usize::from(!continues) + 1).then_some(())
        });
        // The same connection, frame by frame, is not slow.
        let mut frames = Frames::client(weir.front()).unwrap();
        frames.headers(1, &request("GET", "/"), true).unwrap();
        assert_eq!(frames.response(1).unwrap().0, 200);
    }
}

/// A request that is cancelled together with its head is not sent to a server.
#[test]
fn a_request_that_is_cancelled_at_once_reaches_no_server() {
    let Some(scene) = Scene::new("http2-cancelled", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let mut frames = Frames::client(weir.front()).unwrap();
    let mut burst = Vec::new();
    for number in 0..50_u32 {
        let stream = 2 * number + 1;
        let head = block(&request("GET", "/?work_ms=5000"));
        burst.extend(Frames::encode(kind::HEADERS, END_HEADERS | END_STREAM, stream, &head));
        burst.extend(Frames::encode(kind::RST_STREAM, 0, stream, &code::CANCEL.to_be_bytes()));
    }
    frames.stream.write_all(&burst).unwrap();
    frames.headers(1001, &request("GET", "/"), true).unwrap();
    assert_eq!(frames.response(1001).unwrap().0, 200);
    let lines = wait::until("the access lines", SOON, || {
        Some(weir.access()).filter(|lines| lines.len() == 51)
    });
    let cancelled = lines.iter().filter(|line| line["cause"] == "client_closed").count();
    assert_eq!(cancelled, 50);
    assert_eq!(app.stat("requests"), 1, "only the one that was not cancelled");
}

/// A client's reset is noticed although nothing is read from it, because its upload waits for a
/// server that does not read.
#[test]
fn a_reset_is_noticed_while_its_upload_is_blocked() {
    let Some(scene) = Scene::new("http2-reset-upload", &[]) else {
        return;
    };
    // Open, and never read.
    let unread = Mutex::new(Vec::new());
    let deaf = Rogue::start(scene.address(11, 8080), move |peer: &mut Peer| {
        unread.lock().unwrap().push(peer.stream.try_clone());
    });
    let service = "timeouts = { idle = \"300s\", response = \"300s\" }";
    let weir = Weir::start(&scene, &scene.one_service(service, &[deaf.address()]));
    let mut frames = Frames::client(weir.front()).unwrap();
    frames.headers(1, &request("POST", "/"), false).unwrap();
    // Until the window is used up: Weir and the kernels hold what the server does not read.
    let (mut connection, mut stream) = (65_535, 65_535);
    frames.stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    loop {
        let room = connection.min(stream).min(16_384);
        if room > 0 {
            frames.send(kind::DATA, 0, 1, &vec![0; room]).unwrap();
            (connection, stream) = (connection - room, stream - room);
            continue;
        }
        let Ok(update) = frames.until(|frame| frame.kind == kind::WINDOW_UPDATE) else { break };
        let more = u32::from_be_bytes(update.payload[..4].try_into().unwrap()) as usize;
        match update.stream {
            0 => connection += more,
            _ => stream += more,
        }
    }
    frames.reset(1, code::CANCEL).unwrap();
    wait_for_cause(&weir, "client_closed");
}

/// A server whose connection ends together with its settings: the request must not wait for the
/// response timeout.
#[test]
fn a_server_that_closes_at_once_is_noticed_at_once() {
    let Some(scene) = Scene::new("http2-closes", &[]) else {
        return;
    };
    let closes = Rogue::start(scene.address(11, 8080), |peer: &mut Peer| {
        let mut preface = [0; 24];
        let _ = peer.stream.read_exact(&mut preface);
        let settings = Frames::encode(kind::SETTINGS, 0, 0, &[]);
        let goaway = Frames::encode(kind::GOAWAY, 0, 0, &[0; 8]);
        let _ = peer.stream.write_all(&[settings, goaway].concat());
    });
    let service = "http = \"2\"\npassive = false\ntimeouts = { response = \"300s\" }";
    let weir = Weir::start(&scene, &scene.one_service(service, &[closes.address()]));
    for _ in 0..20 {
        let answer = http::get(weir.front(), "/").unwrap();
        assert!((500..505).contains(&answer.status), "{}", answer.status);
    }
    for line in weir.access() {
        let cause = line["cause"].as_str().unwrap();
        assert_ne!(cause, "http_response_timeout", "{line}");
    }
}

/// A server that allows no streams at first: the request waits until it does.
#[test]
fn a_server_that_allows_no_streams_yet_gets_none() {
    let Some(scene) = Scene::new("http2-no-streams", &[]) else {
        return;
    };
    let early = Arc::new(AtomicU32::new(0));
    let too_early = Arc::clone(&early);
    let server = Rogue::start(scene.address(11, 8080), move |peer: &mut Peer| {
        let Ok(mut frames) = Frames::server(&peer.stream, &[(3, 0)]) else { return };
        frames.stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        while let Ok(frame) = frames.next_frame() {
            too_early.fetch_add(u32::from(frame.kind == kind::HEADERS), Ordering::Relaxed);
        }
        frames.stream.set_read_timeout(Some(SOON)).unwrap();
        let _ = frames.send(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 10]);
        while let Ok(frame) = frames.until(Frame::ends_stream) {
            let _ = frames.headers(frame.stream, &[(":status", "200")], true);
        }
    });
    let weir = Weir::start(&scene, &scene.one_service("http = \"2\"", &[server.address()]));
    for _ in 0..3 {
        assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
    }
    assert_eq!(early.load(Ordering::Relaxed), 0);
}

/// A client that sends much and reads nothing is not read from either; once it reads, everything is
/// there.
#[test]
fn a_client_that_does_not_read_is_held_back_and_served() {
    let Some(scene) = Scene::new("http2-held-back", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let text = with_listener(&scene.one_service("", &[app.address()]), NEVER);
    let weir = Weir::start(&scene, &text);
    let mut frames = Frames::client(weir.front()).unwrap();
    let mut writer = Frames { stream: frames.stream.try_clone().unwrap() };
    const REQUESTS: u32 = 4_000;
    let sending = std::thread::spawn(move || {
        for number in 0..REQUESTS {
            // HEAD needs no window.
            writer.headers(2 * number + 1, &request("HEAD", "/"), true)?;
            if number >= 90 {
                // About as fast as it is answered: few more than the streams allowed are open.
                std::thread::sleep(Duration::from_micros(300));
            }
        }
        Ok::<_, std::io::Error>(())
    });
    let (mut answered, mut refused) = (0, 0);
    while answered + refused < REQUESTS {
        let frame = frames.next_frame().unwrap();
        match frame.kind {
            kind::HEADERS => answered += 1,
            kind::RST_STREAM => refused += 1,
            kind::GOAWAY => panic!("{frame:?}"),
            _ => {}
        }
        if answered == 1 {
            // Let the output pile up.
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    sending.join().unwrap().unwrap();
    println!("{answered} answered, {refused} refused");
    assert!(answered > REQUESTS / 2);
}

/// A response that the kernel still holds when a connection ends reaches a client that reads slowly,
/// although it goes on to send: closing earlier would reset the connection.
#[test]
fn a_slow_client_gets_the_rest_after_the_end() {
    let Some(scene) = Scene::new("http2-slow-end", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &["--size", "3000000"]);
    let settings = "timeouts = { idle = \"500ms\", head = \"300s\" }";
    let weir =
        Weir::start(&scene, &with_listener(&scene.one_service("", &[app.address()]), settings));
    let mut frames = Frames::client(weir.front()).unwrap();
    let window = 0x7000_0000_u32.to_be_bytes();
    frames.send(kind::SETTINGS, 0, 0, &[&[0, 4][..], &window].concat()).unwrap();
    frames.send(kind::WINDOW_UPDATE, 0, 0, &window).unwrap();
    frames.headers(1, &request("GET", "/"), true).unwrap();
    let (mut size, mut ended, mut frames_read) = (0, false, 0);
    while !ended {
        let frame = frames.next_frame().unwrap();
        size += if frame.kind == kind::DATA { frame.payload.len() } else { 0 };
        ended = frame.ends_stream();
        frames_read += 1;
        if frames_read % 10 == 0 {
            // 3 MB take 6 s or more: longer than the idle timeout and a lingering close.
            std::thread::sleep(Duration::from_millis(300));
            frames.send(kind::PING, 0, 0, &[1; 8]).ok();
        }
    }
    assert_eq!(size, 3_000_000);
}
