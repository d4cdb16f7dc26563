//! What goes wrong before HTTP begins, on either side, and in the frames of HTTP/2.

use e2e::frames::{Frame, Frames, code, kind, request};
use e2e::rogue::Peer;
use e2e::speak_tls;

use super::{Expected, Seen, Situation};

// The time for connecting is that for the handshake too, which takes long on a busy machine.
const TLS: &str = "tls = { verify = false }\ntimeouts = { connect = \"30s\" }";
const VERIFIED: &str = "tls = { name = \"a.example.com\" }\ntimeouts = { connect = \"30s\" }";
const TLS_HTTP2: &str = "tls = { verify = false }\nhttp = \"2\"\ntimeouts = { connect = \"30s\" }";
const HTTP2: &str = "http = \"2\"\ntimeouts = { connect = \"30s\" }";

pub(super) fn table() -> Vec<Situation> {
    [clients(), tls_servers(), streams()].into_iter().flatten().collect()
}

fn clients() -> Vec<Situation> {
    vec![
        Situation::new(
            "no-proxy-header",
            Expected::closed("proxy_protocol_error").detail("PROXY"),
        )
        .listener("proxy_protocol = [\"127.0.0.0/8\"]")
        .server(super::servers::answers)
        .act(|stage| stage.ask("GET /it HTTP/1.1\r\nHost: a\r\n\r\n")),
        Situation::new(
            "slow-proxy-header",
            Expected::closed("proxy_protocol_error").detail("in time"),
        )
        .listener("proxy_protocol = [\"127.0.0.0/8\"]\ntimeouts = { head = \"300ms\" }")
        .server(super::servers::answers)
        .act(|stage| stage.ask("PROXY TCP4 ")),
        Situation::new(
            "no-clienthello-in-time",
            Expected::closed("client_tls_error").detail("in time"),
        )
        .tcp()
        .listener("server_names = { \"a\" = \"no-clienthello-in-time\" }\ntimeouts = { head = \"300ms\" }")
        .server(super::servers::answers)
        .act(|stage| stage.ask("\x16\x03\x01")),
        Situation::new("malformed-over-http2", Expected::closed("http2_protocol_error"))
            .server(super::servers::answers)
            .act(|stage| {
                let mut frames = Frames::client(stage.front).expect("a connection");
                // Upper case is malformed (RFC 9113 section 8.2.1).
                let upper = [("X-Upper", "a")];
                let fields: Vec<_> = request("GET", "/it").into_iter().chain(upper).collect();
                frames.headers(1, &fields, true).expect("sent");
                let refused = |frame: &Frame| {
                    frame.kind == kind::GOAWAY || frame.kind == kind::RST_STREAM
                };
                frames.until(refused).expect("a refusal");
                Seen::Broken(std::io::ErrorKind::ConnectionReset.into())
            }),
        Situation::new("too-many-streams", Expected::closed("http2_streams_exceeded"))
            .listener("http2 = { streams_max = 1 }")
            .server(super::servers::holds)
            .act(|stage| {
                let mut frames = Frames::client(stage.front).expect("a connection");
                frames.headers(1, &request("GET", "/beside"), true).expect("sent");
                frames.headers(3, &request("GET", "/it"), true).expect("sent");
                let reset = frames.until(|frame| frame.kind == kind::RST_STREAM);
                assert_eq!(reset.expect("a refusal").code(), code::REFUSED_STREAM);
                Seen::Broken(std::io::ErrorKind::ConnectionReset.into())
            }),
        Situation::new("rapid-reset", Expected::closed("enhance_your_calm"))
            .server(super::servers::answers)
            .act(|stage| {
                let mut frames = Frames::client(stage.front).expect("a connection");
                for number in 0..10_000 {
                    let stream = number * 2 + 1;
                    let begun = frames.headers(stream, &request("GET", "/beside"), true);
                    if begun.and_then(|()| frames.reset(stream, code::CANCEL)).is_err() {
                        break;
                    }
                }
                let ended = frames.until(|frame| frame.kind == kind::GOAWAY);
                let ended = ended.map(|frame| frame.code());
                assert_eq!(ended.expect("a last word"), code::ENHANCE_YOUR_CALM);
                Seen::Broken(std::io::ErrorKind::ConnectionReset.into())
            }),
    ]
}

fn tls_servers() -> Vec<Situation> {
    let refused = |cause| Expected::answered(cause, 502).not_retried("no other server");
    vec![
        Situation::new("server-speaks-clear-text", refused("tls_protocol_error"))
            .service(TLS)
            .server(|peer| {
                peer.say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
                peer.hold();
            }),
        Situation::new("server-refuses-by-alert", refused("tls_alert_received"))
            .service(TLS)
            // Fatal, handshake_failure (RFC 8446 section 6.2).
            .server(|peer| {
                peer.say([21, 3, 3, 0, 2, 2, 40]);
                peer.hold();
            }),
        // None of the system's authorities has signed it.
        Situation::new("server-of-unknown-authority", refused("tls_certificate_error"))
            .service(VERIFIED)
            .server(|peer| {
                speak_tls(peer, "a.example.com");
            }),
        Situation::new("server-without-http2-by-alpn", refused("tls_protocol_error"))
            .service(TLS_HTTP2)
            .server(|peer| {
                speak_tls(peer, "a.example.com");
            }),
    ]
}

fn streams() -> Vec<Situation> {
    fn refuses(peer: &mut Peer) {
        let Ok(mut frames) = Frames::server(&peer.stream, &[]) else { return };
        while let Ok(frame) = frames.until(Frame::ends_stream) {
            if frames.reset(frame.stream, code::REFUSED_STREAM).is_err() {
                return;
            }
        }
    }
    let refused = || {
        Expected::answered("http_stream_refused", 502)
            .failed(&["http_stream_refused", "http_stream_refused"])
            .not_retried("no attempts left")
    };
    vec![
        Situation::new("stream-refused", refused()).service(HTTP2).server(refuses),
        Situation::new("stream-of-a-post-refused", refused())
            .service(HTTP2)
            .server(refuses)
            .act(|stage| stage.post(b"body")),
        Situation::new(
            "stream-reset",
            Expected::answered("http_stream_reset", 502)
                .failed(&["http_stream_reset"])
                .not_retried("no attempts left"),
        )
        .service(HTTP2)
        .server(|peer| {
            let Ok(mut frames) = Frames::server(&peer.stream, &[]) else { return };
            while let Ok(frame) = frames.until(Frame::ends_stream) {
                if frames.reset(frame.stream, code::INTERNAL_ERROR).is_err() {
                    return;
                }
            }
        }),
        Situation::new(
            "server-of-http1-asked-for-http2",
            Expected::answered("http_protocol_error", 502)
                .failed(&["http_protocol_error"])
                .not_retried("no attempts left"),
        )
        .service(HTTP2)
        .server(|peer| {
            peer.say("HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: 0\r\n\r\n");
            peer.hold();
        }),
    ]
}
