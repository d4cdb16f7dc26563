//! Servers that fail.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use e2e::rogue::{Peer, reset_on_close};
use e2e::wait;

use super::{Expected, Seen, Situation, Stage};

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Does what it should.
pub(crate) fn answers(peer: &mut Peer) {
    while peer.request().is_some() {
        peer.say(OK);
    }
}

/// Takes a request and never answers.
pub(crate) fn holds(peer: &mut Peer) {
    peer.request();
    peer.hold();
}

/// Says this and closes.
fn says(text: impl Into<Vec<u8>>) -> impl Fn(&mut Peer) {
    let text = text.into();
    move |peer| {
        peer.request();
        peer.say(&text);
    }
}

/// Says this and nothing more, without closing.
fn says_and_holds(text: impl Into<Vec<u8>>) -> impl Fn(&mut Peer) {
    let says = says(text);
    move |peer| {
        says(peer);
        peer.hold();
    }
}

/// Says this and resets the connection.
fn says_and_resets(text: impl Into<Vec<u8>>) -> impl Fn(&mut Peer) {
    let says = says(text);
    move |peer| {
        says(peer);
        peer.reset();
    }
}

fn response(fields: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}")
}

pub(super) fn table() -> Vec<Situation> {
    [refused(), closed(), reset(), slow(), malformed(), marked_down()]
        .into_iter()
        .flatten()
        .collect()
}

fn refused() -> Vec<Situation> {
    let refused = || Expected::answered("connection_refused", 502);
    vec![
        Situation::new("refused", refused().not_retried("no other server")).nobody(),
        Situation::new(
            "refused-by-both",
            refused().failed(&["connection_refused"]).not_retried("no attempts left"),
        )
        .nobody()
        .nobody(),
        Situation::new(
            "refused-and-another-stands-in",
            Expected::passed("completed", 200).failed(&["connection_refused"]),
        )
        .nobody()
        .backup(answers),
        // No server has seen it, so that a POST may go elsewhere too.
        Situation::new(
            "refused-post-and-another-stands-in",
            Expected::passed("completed", 200).failed(&["connection_refused"]),
        )
        .nobody()
        .backup(answers)
        .act(|stage| stage.post(b"body")),
        Situation::new("a-500-of-the-server-itself", Expected::passed("completed", 500))
            .server(says_and_holds("HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\noh")),
    ]
}

fn closed() -> Vec<Situation> {
    let terminated = || Expected::answered("connection_terminated", 502);
    let incomplete = || Expected::cut("http_response_incomplete", 200);
    vec![
        Situation::new(
            "closes-without-an-answer",
            terminated().failed(&["connection_terminated"]).not_retried("no attempts left"),
        )
        .server(says("")),
        Situation::new("closes-on-a-post", terminated().not_retried("not idempotent"))
            .server(says(""))
            .act(|stage| stage.post(b"body")),
        Situation::new(
            "closes-without-an-answer-and-another-stands-in",
            Expected::passed("completed", 200).failed(&["connection_terminated"]),
        )
        .server(says(""))
        .backup(answers),
        Situation::new("closes-in-the-head", terminated().not_retried("not idempotent"))
            .server(says("HTTP/1.1 200 OK\r\nContent-Le"))
            .act(|stage| stage.post(b"body")),
        Situation::new("closes-in-the-body", incomplete())
            .server(says(response("Content-Length: 100\r\n", "half"))),
        Situation::new("closes-before-the-last-chunk", incomplete())
            .server(says(response("Transfer-Encoding: chunked\r\n", "4\r\nhalf\r\n"))),
    ]
}

fn reset() -> Vec<Situation> {
    let reset = || Expected::answered("connection_reset", 502).not_retried("not idempotent");
    let in_body = || Expected::cut("connection_reset", 200);
    vec![
        Situation::new("resets-on-a-post", reset())
            .server(says_and_resets(""))
            .act(|stage| stage.post(b"body")),
        Situation::new("resets-in-the-head", reset())
            .server(says_and_resets("HTTP/1.1 200 OK\r\nContent-Le"))
            .act(|stage| stage.post(b"body")),
        Situation::new("resets-in-the-body", in_body())
            .server(says_and_resets(response("Content-Length: 100\r\n", "half"))),
        // Whose end is the connection's: it must not look whole to a client that knows no chunks.
        Situation::new("resets-in-a-body-without-length", in_body())
            .server(says_and_resets(response("", "half")))
            .act(|stage| stage.ask("GET /it HTTP/1.0\r\n\r\n")),
        Situation::new("resets-in-an-upload", reset())
            .server(|peer| {
                peer.head();
                reset_on_close(&peer.stream);
            })
            .act(|stage| stage.post(&vec![b'x'; 8_000_000])),
    ]
}

fn slow() -> Vec<Situation> {
    const RESPONSE: &str = "timeouts = { response = \"300ms\" }";
    const IDLE: &str = "timeouts = { idle = \"300ms\" }";
    let response_timeout =
        || Expected::answered("http_response_timeout", 504).not_retried("no use");
    vec![
        Situation::new("slow-head", response_timeout()).service(RESPONSE).server(holds),
        Situation::new("slow-in-the-head", response_timeout())
            .service(RESPONSE)
            .server(says_and_holds("HTTP/1.1 200 OK\r\nContent-Le")),
        Situation::new(
            "takes-too-long-in-all",
            Expected::answered("total_timeout", 504).not_retried("no use"),
        )
        .service("timeouts = { total = \"300ms\" }")
        .server(holds),
        // The head must be through before the time is over, beside all the others that are made at
        // the same time.
        Situation::new("takes-too-long-in-the-body", Expected::cut("total_timeout", 200))
            .service("timeouts = { total = \"3s\" }")
            .server(|peer| {
                peer.request();
                peer.say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
                // Always something, and never enough.
                while wait::within(Duration::from_millis(20), || None::<()>).is_none()
                    && std::io::Write::write_all(&mut peer.stream, b"x").is_ok()
                {}
            }),
        Situation::new(
            "attempt-takes-too-long",
            Expected::answered("attempt_timeout", 504)
                .failed(&["attempt_timeout"])
                .not_retried("no attempts left"),
        )
        .route("timeouts = { attempt = \"300ms\", total = \"0s\" }")
        .service("timeouts = { total = \"100ms\" }\nretries = { max = 1 }")
        .server(holds)
        .server(holds),
        Situation::new(
            "slow-attempt-is-repeated-elsewhere",
            Expected::passed("completed", 200).failed(&["attempt_timeout"]),
        )
        // The other server must answer in time, beside all the others.
        .route("timeouts = { attempt = \"3s\" }")
        .server(holds)
        .backup(answers),
        Situation::new(
            "attempt-of-a-post-takes-too-long",
            Expected::answered("attempt_timeout", 504).not_retried("not idempotent"),
        )
        .route("timeouts = { attempt = \"300ms\" }")
        .server(holds)
        .act(|stage| stage.post(b"body")),
        Situation::new(
            "status-is-repeated-elsewhere",
            Expected::passed("completed", 200).failed(&["http_response_status"]),
        )
        .route("retries = { status = [503] }")
        .server(says("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))
        .backup(answers),
        Situation::new("slow-body", Expected::cut("connection_read_timeout", 200))
            .service(IDLE)
            .server(says_and_holds(response("Content-Length: 100\r\n", "half"))),
        Situation::new(
            "does-not-take-the-upload",
            Expected::answered("connection_write_timeout", 504).not_retried("no use"),
        )
        .service(IDLE)
        .server(|peer| {
            peer.head();
            // Nothing of the body is read until Weir has given up.
            wait::measure_for(Duration::from_secs(3));
        })
        .act(uploads_a_lot),
        Situation::new(
            "does-not-take-the-upload-until-the-kernel-gives-up",
            Expected::answered("connection_write_timeout", 504).not_retried("no use"),
        )
        // Before the idle timeout: the kernel waits for 5 s at least.
        .service(RESPONSE)
        .server(|peer| {
            peer.head();
            // Nothing of the body is read until Weir has given up.
            wait::measure_for(Duration::from_secs(12));
        })
        .act(uploads_a_lot),
    ]
}

/// A client whose upload is far larger than all buffers on its way.
fn uploads_a_lot(stage: &Stage<'_>) -> Seen {
    let mut connection =
        stage.send("POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n");
    let mut writer = connection.stream.try_clone().expect("a second handle");
    // Ends when Weir has had enough.
    std::thread::spawn(move || {
        drop(std::io::Write::write_all(&mut writer, &vec![b'x'; 99_999_999]));
    });
    connection.response(false).into()
}

fn malformed() -> Vec<Situation> {
    let protocol_error =
        || Expected::answered("http_protocol_error", 502).not_retried("not idempotent");
    let coding = || Expected::cut("http_response_transfer_coding", 200);
    let head =
        || Expected::answered("http_response_header_section_size", 502).not_retried("no use");
    let post = |situation: Situation| situation.act(|stage| stage.post(b"body"));
    vec![
        post(
            Situation::new("is-no-http", protocol_error().detail("does not begin with HTTP/"))
                .server(says("SSH-2.0-OpenSSH_9.2\r\n")),
        ),
        post(
            Situation::new(
                "two-lengths",
                protocol_error().detail("Content-Length fields that differ"),
            )
            .server(says(response("Content-Length: 2\r\nContent-Length: 3\r\n", "ok"))),
        ),
        post(
            Situation::new("line-folding", protocol_error().detail("line folding"))
                .server(says(response("A: b\r\n c\r\n", ""))),
        ),
        Situation::new(
            "is-no-http-and-another-stands-in",
            Expected::passed("completed", 200).failed(&["http_protocol_error"]),
        )
        .server(says("SSH-2.0-OpenSSH_9.2\r\n"))
        .backup(answers),
        Situation::new("head-too-large", head())
            .server(says(response(&format!("A: {}\r\n", "x".repeat(70_000)), ""))),
        Situation::new("too-many-fields", head())
            .server(says(response(&"A: b\r\n".repeat(200), ""))),
        post(
            Situation::new(
                "unknown-transfer-coding",
                Expected::answered("http_response_transfer_coding", 502)
                    .not_retried("not idempotent"),
            )
            .server(says(response("Transfer-Encoding: gzip\r\n", "body"))),
        ),
        Situation::new("bad-chunk", coding())
            .server(says(response("Transfer-Encoding: chunked\r\n", "2\r\nok\r\nzz\r\n"))),
        Situation::new(
            "trailers-too-large",
            Expected::cut("http_response_trailer_section_size", 200),
        )
        .server(says(response(
            "Transfer-Encoding: chunked\r\n",
            &format!("2\r\nok\r\n0\r\nA: {}\r\n\r\n", "x".repeat(20_000)),
        ))),
        Situation::new(
            "switches-protocols-unasked",
            Expected::answered("http_upgrade_failed", 502),
        )
        .server(says_and_holds(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
        )),
        Situation::new(
            "informational-without-end",
            Expected::answered("http_protocol_error", 502).not_retried("not idempotent"),
        )
        .server(says("HTTP/1.1 102 Processing\r\n\r\n".repeat(100)))
        .act(|stage| {
            // HTTP/1.0 knows no informational responses, so that none are passed on.
            stage.ask("POST /it HTTP/1.0\r\nContent-Length: 0\r\nAccept: application/json\r\n\r\n")
        }),
    ]
}

/// Servers that their checks take out.
fn marked_down() -> Vec<Situation> {
    const CHECK: &str = "check = { path = \"/check\", interval = \"50ms\", timeout = \"1s\", \
                         rise = 1, fall = 1, expect = 200 }";
    /// Well until it has so many requests; it holds them, and from then on every check fails.
    fn fails_with(requests: u32) -> impl Fn(&mut Peer) {
        let held = AtomicU32::new(0);
        move |peer| {
            while let Some(request) = peer.request() {
                if !request.starts_with("GET /check") {
                    held.fetch_add(1, Ordering::Relaxed);
                    return peer.hold();
                }
                let well = held.load(Ordering::Relaxed) < requests;
                let status = if well { 200 } else { 503 };
                peer.say(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"));
            }
        }
    }
    vec![
        Situation::new("all-servers-down", Expected::answered("destination_unavailable", 503))
            .service(CHECK)
            .server(says("HTTP/1.1 500 Oh\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"))
            .act(|stage| {
                let service = format!("service=\"{}\"", stage.name);
                let mut admin = stage.weir.admin();
                wait::until("the server to be down", super::SOON, || {
                    (admin.metric("weir_server_up", &[&service]) == 0.0).then_some(())
                });
                stage.get()
            }),
        Situation::new(
            "marked-down-while-it-works-and-another-stands-in",
            Expected::passed("completed", 200).failed(&["server_marked_down"]),
        )
        .service(CHECK)
        .server(fails_with(1))
        .backup(answers),
        // More requests move over at once than the retry budget lets.
        Situation::new(
            "marked-down-with-more-requests-than-may-move",
            Expected::answered("server_marked_down", 502).not_retried("budget spent").one_of_many(),
        )
        .service(CHECK)
        .server(fails_with(100))
        .backup(answers)
        .act(|stage| {
            let mut sent: Vec<_> = (0..100).map(|_| stage.send_it()).collect();
            let answers = sent.iter_mut().map(|connection| connection.response(false));
            let mut answers: Vec<_> = answers.map(|answer| answer.expect("an answer")).collect();
            let failed = answers.iter().position(|answer| answer.status != 200);
            Seen::Whole(answers.swap_remove(failed.unwrap_or(0)))
        }),
    ]
}
