//! Clients that fail, and requests that are not allowed.

use std::time::Duration;

use e2e::rogue::{Peer, reset_on_close};

use super::servers::{answers, holds};
use super::{Expected, Seen, Situation};

const POST: &str = "POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n";

pub(super) fn table() -> Vec<Situation> {
    [bad_heads(), bad_bodies(), slow(), leaving(), routes()].into_iter().flatten().collect()
}

fn bad_heads() -> Vec<Situation> {
    let bad = |name, cause, status, detail, head: &'static str| {
        Situation::new(name, Expected::answered(cause, status).detail(detail))
            .server(answers)
            .act(move |stage| stage.ask(head))
    };
    let large = |name, cause, status, head: fn() -> String| {
        Situation::new(name, Expected::answered(cause, status))
            .server(answers)
            .act(move |stage| stage.ask(head()))
    };
    vec![
        bad(
            "line-without-colon",
            "http_request_error",
            400,
            "no colon",
            "GET /it HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n",
        ),
        bad(
            "length-and-chunks",
            "http_request_error",
            400,
            "both Content-Length and Transfer-Encoding",
            "POST /it HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        bad(
            "tls-on-a-plain-port",
            "http_request_error",
            400,
            "TLS",
            "\x16\x03\x01\x02\0\x01\0\x01\x7c\x03\x03",
        ),
        bad(
            "dot-segments",
            "http_request_error",
            400,
            "dot segments",
            "GET /it/../other HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        bad(
            "connect",
            "http_request_not_implemented",
            501,
            "CONNECT",
            "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
        ),
        bad("trace", "http_method_not_allowed", 405, "", "TRACE /it HTTP/1.1\r\nHost: a\r\n\r\n"),
        bad(
            "unknown-coding",
            "http_request_not_implemented",
            501,
            "coding",
            "POST /it HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        ),
        bad(
            "version-2",
            "http_version_not_supported",
            505,
            "version",
            "GET /it HTTP/2.0\r\nHost: a\r\n\r\n",
        ),
        bad(
            "unknown-expectation",
            "http_expectation_failed",
            417,
            "100-continue",
            "GET /it HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\n\r\n",
        ),
        large("long-target", "uri_too_long", 414, || {
            format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(9000))
        }),
        large("large-head", "http_request_head_too_large", 431, || {
            format!("GET /it HTTP/1.1\r\nHost: a\r\nCookie: {}\r\n\r\n", "x".repeat(20_000))
        }),
        Situation::new("large-head-that-is-allowed", Expected::passed("completed", 200))
            .listener("head_max = \"60kB\"")
            .server(answers)
            .act(|stage| {
                let cookie = "x".repeat(50_000);
                stage.ask(format!("GET /it HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"))
            }),
        large("many-fields", "http_request_head_too_large", 431, || {
            format!("GET /it HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(200))
        }),
    ]
}

fn bad_bodies() -> Vec<Situation> {
    const CHUNKED: &str = "POST /it HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let too_large = || Expected::answered("http_request_body_too_large", 413);
    const LIMIT: &str = "body_max = 1000";
    vec![
        Situation::new("body-too-large", too_large())
            .listener(LIMIT)
            .server(answers)
            .act(|stage| stage.post(&[b'x'; 1001])),
        Situation::new("body-too-large-in-chunks", too_large().not_retried("no use"))
            .listener(LIMIT)
            .server(holds)
            .act(|stage| stage.ask(format!("{CHUNKED}3e9\r\n{}\r\n", "x".repeat(1001)))),
        Situation::new(
            "bad-chunk-from-the-client",
            Expected::answered("http_request_error", 400).not_retried("no use").detail("chunk"),
        )
        .server(holds)
        .act(|stage| stage.ask(format!("{CHUNKED}zz\r\n"))),
    ]
}

fn slow() -> Vec<Situation> {
    vec![
        Situation::new("slow-request-head", Expected::answered("http_request_timeout", 408))
            .listener("timeouts = { head = \"300ms\" }")
            .server(answers)
            .act(|stage| stage.ask("GET /it HTTP/1.1\r\nHost")),
        Situation::new(
            "slow-request-body",
            Expected::answered("http_request_body_timeout", 408).not_retried("no use"),
        )
        .listener("timeouts = { body = \"300ms\" }")
        .server(holds)
        .act(|stage| stage.ask(format!("{POST}half"))),
        // The server waits for the rest longer than blame takes for slow, and then closes.
        Situation::new(
            "slow-request-body-that-the-server-gives-up",
            Expected::answered("http_request_body_slow", 408).not_retried("no use"),
        )
        .server(|peer| {
            peer.head();
            peer.stream.set_read_timeout(Some(Duration::from_millis(1500))).expect("a timeout");
            peer.hold();
        })
        .act(|stage| stage.ask(format!("{POST}half"))),
        Situation::new(
            "slow-request-body-and-the-total-time",
            Expected::answered("http_request_body_slow", 408).not_retried("no use"),
        )
        // Long enough that it does not pass while the server is connected to, beside all others.
        .service("timeouts = { total = \"2s\" }")
        .server(holds)
        .act(|stage| stage.ask(format!("{POST}half"))),
        Situation::new(
            "deadline-of-a-call",
            Expected::answered("client_deadline_exceeded", 408).not_retried("no use"),
        )
        .server(holds)
        .act(|stage| {
            stage.ask(
                "POST /it HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\n\
                 grpc-timeout: 300m\r\nContent-Length: 0\r\n\r\n",
            )
        }),
        // It means nothing but to gRPC.
        Situation::new("deadline-of-no-call", Expected::passed("completed", 200))
            .server(answers)
            .act(|stage| stage.ask("GET /it HTTP/1.1\r\nHost: a\r\ngrpc-timeout: 1n\r\n\r\n")),
        Situation::new("slow-reader", Expected::gone("client_write_timeout", Some(200)))
            .listener("timeouts = { body = \"300ms\" }")
            .server(endless)
            .act(|stage| {
                let connection = stage.send_it();
                stage.wait_for_line();
                drop(connection);
                Seen::Left
            }),
        Situation::new("tunnel-that-is-idle", Expected::passed("tunnel_idle_timeout", 101))
            .service("timeouts = { idle = \"300ms\" }")
            .server(upgrades)
            .act(|stage| {
                let mut tunnel = stage.send(
                    "GET /it HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
                );
                let seen = tunnel.response(false);
                assert!(tunnel.is_closed_within(super::SOON), "the tunnel stays");
                seen.into()
            }),
    ]
}

fn endless(peer: &mut Peer) {
    peer.request();
    peer.say("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n");
    peer.say(vec![b'x'; 99_999_999]);
}

/// Agrees to another protocol, and says nothing in it.
pub(super) fn upgrades(peer: &mut Peer) {
    peer.request();
    peer.say("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    peer.hold();
}

fn leaving() -> Vec<Situation> {
    fn half(peer: &mut Peer) {
        peer.request();
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        peer.hold();
    }
    vec![
        Situation::new(
            "leaves-while-connecting",
            Expected::gone("client_closed", None).not_retried("no use"),
        )
        .service("timeouts = { connect = \"20s\" }")
        .full_listen_queue()
        .act(|stage| {
            let connection = stage.send_it();
            stage.wait_for_in_flight(1);
            drop(connection);
            stage.wait_for_line();
            Seen::Left
        }),
        Situation::new("leaves-in-the-head", Expected::gone("http_request_incomplete", None))
            .server(answers)
            .act(|stage| {
                drop(stage.send("GET /it HTTP/1.1\r\nHo"));
                Seen::Left
            }),
        Situation::new(
            "leaves-in-the-body",
            Expected::gone("http_request_incomplete", None).not_retried("no use"),
        )
        .server(holds)
        .act(|stage| {
            let connection = stage.send(format!("{POST}half"));
            stage.wait_for_in_flight(1);
            drop(connection);
            Seen::Left
        }),
        Situation::new(
            "leaves-while-waiting",
            Expected::gone("client_closed", None).not_retried("no use"),
        )
        .server(holds)
        .act(|stage| {
            let connection = stage.send_it();
            stage.wait_for_in_flight(1);
            drop(connection);
            Seen::Left
        }),
        Situation::new(
            "resets-while-waiting",
            Expected::gone("client_reset", None).not_retried("no use"),
        )
        .server(holds)
        .act(|stage| {
            let connection = stage.send_it();
            stage.wait_for_in_flight(1);
            reset_on_close(&connection.stream);
            drop(connection);
            Seen::Left
        }),
        Situation::new("leaves-in-the-response", Expected::gone("client_closed", Some(200)))
            .server(half)
            .act(|stage| {
                let mut connection = stage.send_it();
                connection.exactly(20).expect("the beginning of a response");
                // All that was sent has been read, so that this is no reset.
                let rest = Duration::from_millis(100);
                connection.stream.set_read_timeout(Some(rest)).expect("a timeout");
                let _ = connection.rest();
                drop(connection);
                Seen::Left
            }),
        Situation::new("resets-in-the-response", Expected::gone("client_reset", Some(200)))
            .server(half)
            .act(|stage| {
                let mut connection = stage.send_it();
                connection.exactly(20).expect("the beginning of a response");
                reset_on_close(&connection.stream);
                drop(connection);
                Seen::Left
            }),
    ]
}

/// Answers with the mark that a request carries.
fn marks(peer: &mut Peer) {
    while let Some(head) = peer.request() {
        let mark = head.lines().find_map(|line| line.strip_prefix("CDN-Loop: "));
        let mark = mark.unwrap_or_default();
        peer.say(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{mark}", mark.len()));
    }
}

fn routes() -> Vec<Situation> {
    vec![
        Situation::new("no-route", Expected::answered("destination_not_found", 404))
            .route("path = \"/other\"")
            .server(answers),
        Situation::new("loop", Expected::answered("proxy_loop_detected", 508))
            .server(marks)
            .act(|stage| {
                // What a server sends back to Weir carries Weir's mark, once for each pass.
                let first = stage.send_beside().response(false).expect("the first pass");
                let mark = first.text();
                let marks = [&*mark; 5].join(", ");
                stage.ask(format!(
                    "GET /it HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\nCDN-Loop: {marks}\r\n\r\n"
                ))
            }),
        Situation::new("denied", Expected::answered("http_request_denied", 403))
            .route("deny = 403"),
        Situation::new("redirected", Expected::passed("redirected", 308))
            .route("redirect = { host = \"b\" }"),
        Situation::new("responded", Expected::passed("responded", 200))
            .route("respond = { body = \"ok\" }"),
        Situation::new("without-credentials", Expected::answered("unauthenticated", 401))
            .route("authenticate = \"staff\"")
            .server(answers),
        Situation::new("service-in-maintenance", Expected::answered("maintenance", 503).retry_after())
            .service("maintenance = { retry_after = \"10m\" }")
            .server(answers),
        Situation::new("rate-limited", Expected::answered("rate_limited", 429).retry_after())
            .route("rate_limit = { requests = 1, per = \"1h\", burst = 1 }")
            .server(answers)
            .act(|stage| {
                stage.send_beside().response(false).expect("the one that is allowed");
                stage.get()
            }),
    ]
}
