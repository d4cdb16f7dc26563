//! Request and response heads, and the resulting compression.

use model::{Compression, ContentCoding, MediaRange};
use wire::http1::{HeadLimits, Parsed, RequestHead, ResponseHead, parse_request, parse_response};

use super::{Effect, effect};
use ContentCoding::{Brotli, Gzip, Zstd};

const LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 8192, target_max_bytes: 1024, fields_max: 64 };

fn rules() -> Compression {
    Compression {
        codings: vec![Zstd, Brotli, Gzip],
        types: ["text/*", "application/json"].into_iter().filter_map(MediaRange::parse).collect(),
        length_min_bytes: 100,
    }
}

/// Returns the effect on a response with these lines, for a request with those.
fn of(request: &str, response: &str) -> Effect {
    let request = if request.starts_with("GET") || request.starts_with("HEAD") {
        format!("{request}\r\n\r\n")
    } else {
        format!("GET / HTTP/1.1\r\nHost: a\r\n{request}\r\n\r\n")
    };
    let response = if response.starts_with("HTTP") {
        format!("{response}\r\n\r\n")
    } else {
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{response}\r\n\r\n")
    };
    let (mut asked, mut answered) = (RequestHead::default(), ResponseHead::default());
    let parsed = parse_request(request.as_bytes(), &LIMITS, &mut asked);
    assert!(matches!(parsed, Ok(Parsed::Complete { .. })), "{request}");
    let parsed = parse_response(response.as_bytes(), &LIMITS, &mut answered);
    assert!(matches!(parsed, Ok(Parsed::Complete { .. })), "{response}");
    effect(&rules(), &asked, &answered)
}

const LONG: &str = "Content-Length: 1000";
const NOTHING: Effect = Effect { coding: None, varies: false, weakens: false };
const PLAIN_VARIANT: Effect = Effect { coding: None, varies: true, weakens: false };

fn by(coding: ContentCoding) -> Effect {
    Effect { coding: Some(coding), varies: true, weakens: true }
}

#[test]
fn the_client_chooses_and_order_decides_among_equals() {
    for (accepted, expected) in [
        ("gzip", Some(Gzip)),
        ("x-gzip", Some(Gzip)),
        ("GZIP", Some(Gzip)),
        ("gzip, deflate, br, zstd", Some(Zstd)),
        ("gzip;q=1.0, br;q=0.5", Some(Gzip)),
        ("br;q=0.9,gzip;q=0.91", Some(Gzip)),
        ("*", Some(Zstd)),
        ("*;q=0.1, zstd;q=0", Some(Brotli)),
        ("gzip;q=0", None),
        ("gzip;q=0.000", None),
        ("identity, gzip;q=0.5", None),
        ("identity;q=0.5, gzip;q=0.5", Some(Gzip)),
        ("deflate", None),
        ("", None),
        (", ,gzip,", Some(Gzip)),
        // A malformed weight is a refusal, whatever else is accepted.
        ("gzip;q=0.0000, *;q=0.5, br;q=0, zstd;q=0", None),
        ("gzip;level=9;q=0, x-gzip, br;q=0", None),
        ("gzip;level=9;q=0.5", Some(Gzip)),
        ("gzip;q=high", None),
        ("gzip;q=1.5", None),
        ("gzip;q=0.1234, br", Some(Brotli)),
        ("gzip ; q=0.4, br;q=0.3", Some(Gzip)),
    ] {
        let expected = expected.map_or(PLAIN_VARIANT, by);
        assert_eq!(of(&format!("Accept-Encoding: {accepted}"), LONG), expected, "{accepted}");
    }
    assert_eq!(of("X: y", LONG), PLAIN_VARIANT);
    assert_eq!(of("Accept-Encoding: br;q=0.1\r\nAccept-Encoding: gzip", LONG), by(Gzip));
}

#[test]
fn what_must_not_be_changed_is_left_alone() {
    for response in [
        "Content-Length: 99",
        "Content-Encoding: br\r\nContent-Length: 1000",
        "Content-Encoding: identity, gzip\r\nContent-Length: 1000",
        "Cache-Control: public, No-Transform\r\nContent-Length: 1000",
        "Cache-Control: public\r\nCache-Control: no-transform\r\nContent-Length: 1000",
        "Content-Digest: sha-256=:AA==:\r\nContent-Length: 1000",
        "Content-MD5: AA==\r\nContent-Length: 1000",
        "HTTP/1.1 206 Partial\r\nContent-Type: text/html\r\nContent-Length: 1000",
        "HTTP/1.1 204 No Content\r\nContent-Type: text/html",
        "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 1000",
        "HTTP/1.1 200 OK\r\nContent-Length: 1000",
    ] {
        assert_eq!(of("Accept-Encoding: gzip", response), NOTHING, "{response}");
    }
    let asked = "Accept-Encoding: gzip\r\nCache-Control: no-transform";
    assert_eq!(of(asked, LONG), PLAIN_VARIANT);
}

#[test]
fn any_length_that_is_not_known_is_compressed() {
    for response in [
        "Transfer-Encoding: chunked",
        "X-Until-Close: yes",
        "Content-Encoding: identity\r\nContent-Length: 100",
        "HTTP/1.1 404 Not Found\r\nContent-Type: Application/JSON; charset=utf-8\r\nContent-Length: 1000",
    ] {
        assert_eq!(of("Accept-Encoding: gzip", response), by(Gzip), "{response}");
    }
}

#[test]
fn head_and_304_agree_with_get() {
    let head = "HEAD / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip";
    assert_eq!(of(head, LONG), by(Gzip));
    assert_eq!(of(head, "Content-Length: 99"), NOTHING);
    let unchanged = Effect { coding: None, varies: true, weakens: true };
    let not_modified = "HTTP/1.1 304 Not Modified\r\nETag: \"1\"";
    assert_eq!(of("Accept-Encoding: gzip", not_modified), unchanged);
    assert_eq!(of("Accept-Encoding: deflate", not_modified), PLAIN_VARIANT);
    let typed = "HTTP/1.1 304 Not Modified\r\nContent-Type: image/png";
    assert_eq!(of("Accept-Encoding: gzip", typed), NOTHING);
}

#[test]
fn http_1_0_gets_the_plain_variant() {
    assert_eq!(of("GET / HTTP/1.0\r\nAccept-Encoding: gzip", LONG), PLAIN_VARIANT);
}
