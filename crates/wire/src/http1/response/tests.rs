//! Tests of which response heads are accepted or refused, and how they are parsed.

use super::*;

fn parse(input: &str) -> Result<ResponseHead, ResponseError> {
    let mut head = ResponseHead::default();
    match parse_response(input.as_bytes(), &HeadLimits::default(), &mut head)? {
        Parsed::Complete { consumed } => {
            assert_eq!(consumed, input.find("\r\n\r\n").unwrap() + 4, "{input:?}");
            Ok(head)
        }
        Parsed::Partial => panic!("partial: {input:?}"),
    }
}

fn ok(fields: &str) -> Result<ResponseHead, ResponseError> {
    parse(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"))
}

fn forwarded(head: &ResponseHead) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let kept = head.fields().filter(|field| !field.hop_by_hop);
    kept.map(|field| (text(field.name), text(field.value))).collect()
}

#[test]
fn a_response_and_its_parts() {
    let head = parse(
        "HTTP/1.1 404 Not here\r\nContent-Length: 3\r\nServer : x\r\nKeep-Alive: timeout=5\r\n\
         Connection: X-Y\r\nX-Y: 1\r\n\r\n",
    )
    .unwrap();
    assert_eq!((head.status(), head.reason()), (404, &b"Not here"[..]));
    assert_eq!(head.version(), Version::Http11);
    assert_eq!(head.body(false), ResponseBody::Length(3));
    assert_eq!(head.body(true), ResponseBody::None);
    assert_eq!(head.content_length(), Some(3));
    assert!(head.keep_alive() && !head.is_informational());
    assert_eq!(head.field("SERVER"), Some(&b"x"[..]));
    let expected = [("Content-Length", "3"), ("Server", "x")];
    assert_eq!(forwarded(&head), expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

#[test]
fn status_lines() {
    for (line, status, reason) in [
        ("HTTP/1.1 200 OK", 200, "OK"),
        ("HTTP/1.1 200 ", 200, ""),
        ("HTTP/1.1 200", 200, ""),
        ("HTTP/1.0 999 \tx", 999, "\tx"),
        ("HTTP/1.1 200 caf\u{e9}", 200, ""),
    ] {
        let head = parse(&format!("{line}\r\n\r\n")).unwrap();
        assert_eq!((head.status(), head.reason()), (status, reason.as_bytes()), "{line}");
    }
    for (line, error) in [
        ("HTTP/1.2 200 OK", ResponseError::VersionNotSupported),
        ("HTTP/2.0 200 OK", ResponseError::VersionNotSupported),
        ("HTTP/2 200 OK", ResponseError::BadStatusLine),
        ("HTTP/1.1", ResponseError::BadStatusLine),
        ("HTTP/1.1 ", ResponseError::BadStatusLine),
        ("HTTP/1.1 20 OK", ResponseError::BadStatusLine),
        ("HTTP/1.1 2000 OK", ResponseError::BadStatusLine),
        ("HTTP/1.1 099 OK", ResponseError::BadStatusLine),
        ("HTTP/1.1  200 OK", ResponseError::BadStatusLine),
        ("HTTP/1.1 200 O\0K", ResponseError::BadStatusLine),
        ("HTTP/1.1 200 O\rK", ResponseError::BareCarriageReturn),
        ("http/1.1 200 OK", ResponseError::NotHttp),
        ("ICY 200 OK", ResponseError::NotHttp),
        ("\r\nHTTP/1.1 200 OK", ResponseError::NotHttp),
    ] {
        assert_eq!(parse(&format!("{line}\r\n\r\n")).err(), Some(error), "{line:?}");
    }
}

#[test]
fn bodies() {
    let body = |status: u16, fields: &str| {
        parse(&format!("HTTP/1.1 {status} x\r\n{fields}\r\n")).unwrap().body(false)
    };
    assert_eq!(body(200, ""), ResponseBody::UntilClose);
    assert_eq!(body(200, "Content-Length: 0\r\n"), ResponseBody::Length(0));
    assert_eq!(body(500, "Transfer-Encoding: Chunked\r\n"), ResponseBody::Chunked);
    for status in [100, 101, 103, 199, 204, 304] {
        assert_eq!(body(status, "Content-Length: 5\r\n"), ResponseBody::None, "{status}");
        assert_eq!(body(status, "Transfer-Encoding: chunked\r\n"), ResponseBody::None, "{status}");
    }
}

#[test]
fn framing_that_is_refused() {
    for (fields, error) in [
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            ResponseError::LengthAndTransferEncoding,
        ),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", ResponseError::DifferingContentLengths),
        ("Content-Length: 5, 6\r\n", ResponseError::DifferingContentLengths),
        ("Content-Length: 5,\r\n", ResponseError::BadContentLength),
        ("Content-Length: -5\r\n", ResponseError::BadContentLength),
        ("Content-Length:\r\n", ResponseError::BadContentLength),
        ("Transfer-Encoding: gzip, chunked\r\n", ResponseError::BadTransferEncoding),
        ("Transfer-Encoding: identity\r\n", ResponseError::BadTransferEncoding),
        ("A: b\n", ResponseError::BareLineFeed),
        ("A: b\r\n c\r\n", ResponseError::LineFolding),
        ("A: b\rc\r\n", ResponseError::BareCarriageReturn),
        ("A: b\0c\r\n", ResponseError::BadFieldValue),
        ("A b: c\r\n", ResponseError::BadFieldName),
        ("A\r\n", ResponseError::MissingColon),
        (": x\r\n", ResponseError::BadFieldName),
    ] {
        assert_eq!(ok(fields).err(), Some(error), "{fields:?}");
    }
    let old = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(parse(old).err(), Some(ResponseError::TransferEncodingIn10));
}

#[test]
fn equal_lengths_become_one() {
    for fields in [
        "Content-Length: 5, 5\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5 , 05\r\nContent-Length: 5\r\n",
    ] {
        let head = ok(fields).unwrap();
        assert_eq!(head.body(false), ResponseBody::Length(5));
        assert_eq!(forwarded(&head), [("Content-Length".to_owned(), "5".to_owned())], "{fields:?}");
        assert_eq!(head.known(Known::ContentLength), Some(&b"5"[..]));
    }
}

#[test]
fn no_length_is_forwarded_where_none_may_stand() {
    for (status, kept) in [(204, 0), (100, 0), (304, 1), (200, 1)] {
        let head = parse(&format!("HTTP/1.1 {status} x\r\nContent-Length: 5\r\n\r\n")).unwrap();
        assert_eq!(forwarded(&head).len(), kept, "{status}");
        assert_eq!(head.keep_alive(), status != 204);
    }
}

#[test]
fn persistence_and_switching() {
    assert!(ok("").unwrap().keep_alive());
    assert!(!ok("Connection: Close\r\n").unwrap().keep_alive());
    assert!(!parse("HTTP/1.0 200 OK\r\n\r\n").unwrap().keep_alive());
    assert!(parse("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n").unwrap().keep_alive());
    let switched = "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let head = parse(switched).unwrap();
    assert_eq!(head.upgrade(), Some(&b"websocket"[..]));
    assert!(!head.is_informational());
    assert_eq!(ok("Connection: upgrade\r\nUpgrade: h2\r\n").unwrap().upgrade(), None);
    assert!(parse("HTTP/1.1 103 x\r\n\r\n").unwrap().is_informational());
}

#[test]
fn not_http_is_seen_at_the_first_bytes() {
    let mut head = ResponseHead::default();
    let limits = HeadLimits::default();
    assert_eq!(parse_response(b"", &limits, &mut head), Ok(Parsed::Partial));
    assert_eq!(parse_response(b"HT", &limits, &mut head), Ok(Parsed::Partial));
    assert_eq!(parse_response(b"SSH-2", &limits, &mut head), Err(ResponseError::NotHttp));
}
