//! Tests of chosen fields and of other programs' formats: their exact lines, and that no client can
//! forge a line or a field.

use model::{LogField, LogMember, RedactQuery};
use wire::http1::{HeadLimits, Parsed, RequestHead, ResponseHead, parse_request, parse_response};

use super::*;

/// A request whose parts try to end what they stand in.
const HOSTILE: &[u8] =
    b"GET /a\"b\\c%0d%0a{|}?token=s3cret&x=\"1\" HTTP/1.1\r\nHost: a.example\r\n\
    Referer: https://b.example/?to%6ben=s3cret\" 200 1 \"-\" \"forged\r\n\
    User-Agent: a\"b\\\"c\t\x80\xff] \" 200 0 \r\nX-Long: \xc3\xa9\r\n\
    X-Two: 1\r\nx-two: 2\"}\r\nCookie: s3cret\r\n\r\n";

fn request(head: &[u8]) -> RequestHead {
    let mut request = RequestHead::default();
    let parsed = parse_request(head, &HeadLimits::default(), &mut request);
    assert_eq!(parsed, Ok(Parsed::Complete { consumed: head.len() }));
    request
}

fn response() -> ResponseHead {
    let head = b"HTTP/1.1 200 OK\r\nX-Cache: hit\r\nLocation: /b?token=s3cret#x\r\n\r\n";
    let mut response = ResponseHead::default();
    let parsed = parse_response(head, &HeadLimits::default(), &mut response);
    assert_eq!(parsed, Ok(Parsed::Complete { consumed: head.len() }));
    response
}

fn of<'a>(request: &'a RequestHead, response: &'a ResponseHead) -> AccessRecord<'a> {
    AccessRecord {
        method: request.method().as_bytes(),
        host: request.authority().as_bytes(),
        path: request.path().as_bytes(),
        route: Some("api"),
        request: Some(request),
        response: Some(response),
        ..record()
    }
}

fn token() -> RedactQuery {
    RedactQuery::Names(vec!["token".to_owned()])
}

fn fields_of(record: &AccessRecord<'_>, fields: &[LogField]) -> Vec<u8> {
    let mut out = Vec::new();
    record.write_fields(fields, &token(), &mut b"stale".to_vec(), &mut out);
    out
}

fn combined(record: &AccessRecord<'_>) -> String {
    let mut out = Vec::new();
    record.write_combined(&token(), &mut b"stale".to_vec(), &mut out);
    one_line(out)
}

fn haproxy(record: &AccessRecord<'_>) -> String {
    let mut out = Vec::new();
    let started = TimestampCache::default().at(Duration::from_millis(1_763_619_179_822));
    let concurrency = Concurrency { process: 4, listener: 3, server: 2 };
    record.write_haproxy(&started, &concurrency, &token(), &mut b"stale".to_vec(), &mut out);
    one_line(out)
}

fn one_line(mut out: Vec<u8>) -> String {
    assert_eq!(out.pop(), Some(b'\n'));
    assert!(out.iter().all(|byte| matches!(byte, b' '..=b'~')), "{out:?}");
    String::from_utf8(out).unwrap()
}

#[test]
fn the_members_by_default_are_the_line_by_default() {
    let (request, response) = (request(HOSTILE), response());
    let failed = [Attempt {
        server: "[::1]:80".parse().unwrap(),
        cause: Cause::ConnectionReset,
        status: Some(503),
        after: Duration::ZERO,
        took: Duration::ZERO,
    }];
    let tls = TlsRecord { version: "TLSv1.3", cipher: "x", server_name: None, resumed: true };
    let side = TcpSide { round_trip: Duration::from_millis(3), retransmits: 1 };
    let rich = AccessRecord {
        peer: Some("10.0.0.1:1".parse().unwrap()),
        user: Some("a\"b"),
        tls: Some(tls),
        grpc_status: Some(3),
        detail: Some("why"),
        failed_attempts: &failed,
        not_retried: Some("budget"),
        tcp: Some(TcpRecord { client: Some(side), server: None }),
        decision: Some("[]"),
        sample_rate: Some(0.25),
        ..of(&request, &response)
    };
    let bare = AccessRecord { status: None, detail: None, ..record() };
    let all: Vec<_> = LogMember::ALL.iter().copied().map(LogField::Member).collect();
    for record in [&rich, &bare] {
        let mut line = Vec::new();
        record.write_json(&mut line);
        assert_eq!(fields_of(record, &all[..LogMember::DEFAULTS]), line);
        let members = serde_json::from_slice::<Value>(&fields_of(record, &all)).unwrap();
        assert_eq!(members.as_object().unwrap().len(), LogMember::ALL.len());
    }
}

#[test]
fn chosen_fields_stand_in_their_order_with_headers_escaped() {
    let (request, response) = (request(HOSTILE), response());
    let header = |name: &str| LogField::RequestHeader(name.to_owned());
    let fields = [
        LogField::Member(LogMember::Route),
        LogField::ResponseHeader("location".to_owned()),
        header("user-agent"),
        LogField::Member(LogMember::Query),
        header("referer"),
        header("x-two"),
        header("absent"),
        LogField::ResponseHeader("absent".to_owned()),
        LogField::Member(LogMember::UserAgent),
    ];
    let line = String::from_utf8(fields_of(&of(&request, &response), &fields)).unwrap();
    assert_eq!(
        line,
        concat!(
            r#"{"route":"api","response_header.location":"/b?token=[redacted]#x","#,
            r#""request_header.user-agent":"a\"b\\\"c\t"#,
            "\u{fffd}\u{fffd}",
            r#"] \" 200 0","#,
            r#""query":"token=[redacted]&x=\"1\"","#,
            r#""request_header.referer":"https://b.example/?to%6ben=[redacted]","#,
            r#""request_header.x-two":"1, 2\"}","request_header.absent":null,"#,
            r#""response_header.absent":null,"user_agent":"a\"b\\\"c\t"#,
            "\u{fffd}\u{fffd}",
            r#"] \" 200 0"}"#,
            "\n"
        )
    );
    let none = String::from_utf8(fields_of(&record(), &fields)).unwrap();
    let none: Value = serde_json::from_str(&none).unwrap();
    assert!(none.as_object().unwrap().values().all(Value::is_null), "{none}");
}

#[test]
fn a_long_header_is_cut_and_says_so() {
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\nX: y\r\n\r\n", "x".repeat(5000));
    let (request, response) = (request(head.as_bytes()), response());
    let line = fields_of(&of(&request, &response), &[LogField::RequestHeader("x".to_owned())]);
    let line: Value = serde_json::from_slice(&line).unwrap();
    let value = line["request_header.x"].as_str().unwrap();
    assert_eq!(value, format!("{}[truncated]", "x".repeat(1024)));
}

#[test]
fn the_rate_is_always_said_once() {
    let sampled = AccessRecord { sample_rate: Some(0.01), ..record() };
    let status = LogField::Member(LogMember::Status);
    let rate = LogField::Member(LogMember::SampleRate);
    for fields in [vec![status.clone()], vec![status.clone(), rate.clone()]] {
        let line = String::from_utf8(fields_of(&sampled, &fields)).unwrap();
        assert_eq!(line, "{\"status\":200,\"sample_rate\":0.01}\n");
    }
    assert!(
        json_of(&sampled)["sample_rate"] == 0.01
            && text_of(&sampled).ends_with(" sample_rate=0.01\n")
    );
    assert!(json_of(&record()).get("sample_rate").is_none());
    assert_eq!(fields_of(&record(), &[rate]), b"{\"sample_rate\":1}\n");
}

#[test]
fn combined_is_what_nginx_writes() {
    let plain = request(b"GET /a?x=1&token=s HTTP/1.1\r\nHost: a\r\nReferer: https://b/\r\nUser-Agent: curl/8 (x; y)\r\n\r\n");
    let response = response();
    let plain = of(&plain, &response);
    assert_eq!(
        combined(&plain),
        "203.0.113.9 - - [20/Nov/2025:06:13:00 +0000] \"GET /a?x=1&token=[redacted] HTTP/1.1\" \
         200 50000 \"https://b/\" \"curl/8 (x; y)\""
    );
    let hostile = request(HOSTILE);
    let hostile =
        AccessRecord { user: Some("eve] \"x\" 1"), protocol: "HTTP/2", ..of(&hostile, &response) };
    assert_eq!(
        combined(&hostile),
        "203.0.113.9 - eve]\\x20\\x22x\\x22\\x201 [20/Nov/2025:06:13:00 +0000] \
         \"GET /a\\x22b\\x5Cc%0d%0a{|}?token=[redacted]&x=\\x221\\x22 HTTP/2.0\" 200 50000 \
         \"https://b.example/?to%6ben=[redacted]\" \"a\\x22b\\x5C\\x22c\\x09\\x80\\xFF] \\x22 200 0\""
    );
    let refused = AccessRecord { status: Some(400), cause: Cause::HttpRequestError, ..record() };
    assert!(combined(&refused).ends_with("\"-\" 400 50000 \"-\" \"-\""));
    for (cause, protocol, status) in [
        (Cause::ClientClosed, "HTTP/1.1", 499),
        (Cause::ShuttingDown, "HTTP/1.1", 444),
        (Cause::Completed, "TCP", 200),
        (Cause::ConnectionRefused, "TCP", 502),
    ] {
        let line = combined(&AccessRecord { status: None, cause, protocol, ..record() });
        assert!(line.contains(&format!("\" {status} ")), "{line}");
    }
    let hyphen = AccessRecord { user: Some("-"), ..record() };
    assert!(combined(&hyphen).contains(" - \\x2D ["));
}

#[test]
fn haproxy_is_what_haproxy_writes() {
    let (plain, response) = (request(b"GET /a?token=s HTTP/1.1\r\nHost: a\r\n\r\n"), response());
    let plain = of(&plain, &response);
    assert_eq!(
        haproxy(&plain),
        "203.0.113.9:50000 [20/Nov/2025:06:12:59.822] public listings/10.0.1.5:8080 0/0/0/300/301 \
         200 50000 - - ---- 4/3/0/2/0 0/0 \"GET /a?token=[redacted] HTTP/1.1\""
    );
    let hostile = request(HOSTILE);
    let tls = TlsRecord { version: "TLSv1.3", cipher: "x", server_name: None, resumed: true };
    let hostile = AccessRecord {
        service: Some("a/b"),
        tls: Some(tls),
        protocol: "HTTP/2",
        ..of(&hostile, &response)
    };
    let line = haproxy(&hostile);
    assert!(line.contains(" public~ a#2Fb/10.0.1.5:8080 "), "{line}");
    assert!(
        line.ends_with("\"GET /a#22b\\c%0d%0a{|}?token=[redacted]&x=#221#22 HTTP/2.0\""),
        "{line}"
    );
    let tcp = AccessRecord {
        method: b"",
        protocol: "TCP",
        status: None,
        request: None,
        response: None,
        ..record()
    };
    assert_eq!(
        haproxy(&tcp),
        "203.0.113.9:50000 [20/Nov/2025:06:12:59.822] public listings/10.0.1.5:8080 0/0/301 50000 \
         -- 4/3/0/2/0 0/0"
    );
}

#[test]
fn termination_states_are_those_of_haproxys_manual() {
    let (parsed, response) = (request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), response());
    let at_server = of(&parsed, &response);
    let waiting = AccessRecord { response: None, status: None, ..at_server };
    let queued = AccessRecord {
        server: None,
        attempts: 0,
        timings: Timings { queue: Duration::from_millis(7), ..waiting.timings },
        ..waiting
    };
    let early = AccessRecord { request: None, method: b"", service: None, server: None, ..waiting };
    for (record, cause, timers_and_status, state) in [
        (early, Cause::HttpRequestTimeout, "-1/-1/-1/-1/301 -1", "cR--"),
        (early, Cause::HttpRequestIncomplete, "-1/-1/-1/-1/301 -1", "CR--"),
        (early, Cause::HttpRequestError, "-1/-1/-1/-1/301 -1", "PR--"),
        (queued, Cause::QueueWaitExceeded, "0/7/-1/-1/301 -1", "sQ--"),
        (queued, Cause::ClientClosed, "0/7/-1/-1/301 -1", "CQ--"),
        (waiting, Cause::ConnectionRefused, "0/0/-1/-1/301 -1", "SC--"),
        (waiting, Cause::ConnectionTimeout, "0/0/-1/-1/301 -1", "sC--"),
        (waiting, Cause::ClientClosed, "0/0/0/-1/301 -1", "CH--"),
        (waiting, Cause::HttpResponseTimeout, "0/0/0/-1/301 -1", "sH--"),
        (waiting, Cause::HttpProtocolError, "0/0/0/-1/301 -1", "PH--"),
        (at_server, Cause::ClientReset, "0/0/0/300/301 200", "CD--"),
        (at_server, Cause::HttpResponseIncomplete, "0/0/0/300/301 200", "SD--"),
        (at_server, Cause::ConnectionReadTimeout, "0/0/0/300/301 200", "sD--"),
        (at_server, Cause::ServerMarkedDown, "0/0/0/300/301 200", "DD--"),
        (at_server, Cause::ShuttingDown, "0/0/0/300/301 200", "KD--"),
    ] {
        let line = haproxy(&AccessRecord { cause, ..record });
        assert!(
            line.contains(&format!(" {timers_and_status} 50000 - - {state} ")),
            "{}: {line}",
            cause.name()
        );
    }
    let local = AccessRecord {
        server: None,
        service: None,
        response: None,
        cause: Cause::Redirected,
        status: Some(302),
        ..at_server
    };
    assert!(haproxy(&local).contains(" public public/<NOSRV> 0/-1/-1/-1/301 302 50000 - - LR-- "));
}

/// Whatever a client sends, in each format a line has as many fields as it should.
#[test]
fn no_client_forges_a_line_or_a_field() {
    let mut rng = fastrand::Rng::with_seed(11);
    let response = response();
    let bytes = b"\" \\[]{}|#?&=;%-/\tx\x80\xe9\xff'<>";
    for _ in 0..2000 {
        let mut some = |visible: bool| -> Vec<u8> {
            let pick = |rng: &mut fastrand::Rng| bytes[rng.usize(..bytes.len())];
            let text: Vec<u8> = (0..rng.usize(..40)).map(|_| pick(&mut rng)).collect();
            text.into_iter().filter(|byte| !visible || byte.is_ascii_graphic()).collect()
        };
        let (target, referer, agent) = (some(true), some(false), some(false));
        let mut head = b"GET /".to_vec();
        head.extend(target.into_iter().filter(|byte| !matches!(byte, b'#')));
        head.extend_from_slice(b" HTTP/1.1\r\nHost: a\r\nReferer: ");
        head.extend(referer);
        head.extend_from_slice(b"\r\nUser-Agent: ");
        head.extend(agent);
        head.extend_from_slice(b"\r\n\r\n");
        let mut request = RequestHead::default();
        if parse_request(&head, &HeadLimits::default(), &mut request).is_err() {
            continue;
        }
        let record = of(&request, &response);
        // Outside quotes six fields, and three pairs of quotes.
        let line = combined(&record);
        let parts: Vec<&str> = line.split('"').collect();
        assert_eq!(
            (parts.len(), parts[0].split(' ').count(), parts[2], parts[4]),
            (7, 6, " 200 50000 ", " "),
            "{line}"
        );
        assert_eq!(parts[1].split(' ').count(), 3, "{line}");
        let line = haproxy(&record);
        assert_eq!(line.split(' ').count(), 15, "{line}");
        assert_eq!(line.matches('"').count(), 2, "{line}");
        let fields = [
            LogField::RequestHeader("referer".to_owned()),
            LogField::Member(LogMember::UserAgent),
            LogField::Member(LogMember::Query),
        ];
        let line = fields_of(&record, &fields);
        assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
        assert_eq!(serde_json::from_slice::<Value>(&line).unwrap().as_object().unwrap().len(), 3);
    }
}
