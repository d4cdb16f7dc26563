//! Tests of the heads that the next hop receives.

use model::Networks;
use wire::http1::{Parsed, parse_request, parse_response};

use super::*;

const LIMITS: wire::http1::HeadLimits =
    wire::http1::HeadLimits { head_max_bytes: 4096, target_max_bytes: 1024, fields_max: 64 };
const ALL: ForwardFields = ForwardFields {
    x_forwarded: true,
    forwarded: true,
    request_id: true,
    traceparent: true,
    real_ip: true,
    via: true,
};

fn request(text: &str) -> RequestHead {
    let mut head = RequestHead::default();
    let parsed = parse_request(text.as_bytes(), &LIMITS, &mut head);
    assert!(matches!(parsed, Ok(Parsed::Complete { .. })), "{parsed:?}");
    head
}

fn forwarded(text: &str, trusted: &[&str]) -> String {
    forwarded_for(text, trusted, "192.0.2.8".parse().ok())
}

fn forwarded_for(text: &str, trusted: &[&str], client: Option<IpAddr>) -> String {
    let trusted: Networks = trusted.iter().map(|net| net.parse().unwrap()).collect();
    let peer = "192.0.2.7:4711".parse().unwrap();
    let origin = Origin::new(peer, &trusted, ALL, Scheme::Http);
    let changes = RequestChanges {
        client,
        identity: None,
        trace: None,
        attempt: 1,
        matched: &PathMatch::Prefix(String::new()),
        rewrite: &Rewrite::default(),
        fields: &FieldChanges::default(),
        server: "10.0.0.1:80".parse().unwrap(),
        http: HttpVersion::Http11,
        loop_mark: b"CDN-Loop: weir-1\r\n",
        continued: false,
        received: "1.1",
    };
    let mut out = Vec::new();
    write_request(&request(text), &origin, &RequestId::new(1), &changes, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_strangers_forwarding_fields_are_replaced() {
    let out = forwarded(
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n\
         X-Request-Id: mine\r\ntraceparent: mine\r\nX-Forwarded-Proto: https\r\n\r\n",
        &[],
    );
    assert!(!out.contains("6.6.6.6") && !out.contains("mine") && !out.contains("https"), "{out}");
    assert!(out.contains("X-Forwarded-For: 192.0.2.7\r\n"), "{out}");
    assert!(out.contains("Forwarded: for=192.0.2.7;proto=http;host=\"a\"\r\n"), "{out}");
    assert!(out.contains("X-Request-Id: 00000000000000000000000000000001\r\n"), "{out}");
    let id = RequestId::new(1);
    let span = String::from_utf8(id.span(1).to_vec()).unwrap();
    let parent = format!("traceparent: 00-00000000000000000000000000000001-{span}-00\r\n");
    assert!(out.contains(&parent), "{out}");
}

#[test]
fn x_real_ip_is_the_address_that_weir_has_found() {
    for trusted in [&[][..], &["192.0.2.0/24"]] {
        let out = forwarded("GET / HTTP/1.1\r\nHost: a\r\nX-Real-IP: 6.6.6.6\r\n\r\n", trusted);
        assert!(out.contains("\r\nX-Real-IP: 192.0.2.8\r\n") && !out.contains("6.6.6.6"), "{out}");
    }
    // Of a client that is unknown, a trusted proxy may say it here.
    let text = "GET / HTTP/1.1\r\nHost: a\r\nX-Real-IP: 6.6.6.6\r\n\r\n";
    assert!(forwarded_for(text, &["192.0.2.0/24"], None).contains("X-Real-IP: 6.6.6.6\r\n"));
    assert!(!forwarded_for(text, &[], None).contains("X-Real-IP"));
}

#[test]
fn a_trusted_peers_forwarding_fields_are_extended_or_kept() {
    let out = forwarded(
        "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\n\
         Forwarded: for=1.1.1.1\r\nX-Request-Id: theirs\r\nX-Forwarded-Proto: https\r\n\r\n",
        &["192.0.2.0/24"],
    );
    assert!(out.contains("X-Forwarded-For: 1.1.1.1, 2.2.2.2, 192.0.2.7\r\n"), "{out}");
    assert!(out.contains("Forwarded: for=1.1.1.1, for=192.0.2.7;"), "{out}");
    assert_eq!(out.matches("X-Request-Id").count(), 1, "{out}");
    assert!(out.contains("X-Request-Id: theirs\r\n"), "{out}");
    assert_eq!(out.matches("X-Forwarded-Proto").count(), 1, "{out}");
    assert!(out.contains("X-Forwarded-Proto: https\r\n"), "{out}");
}

#[test]
fn forwarded_keeps_the_client_of_a_trusted_proxy_that_sends_the_older_field() {
    for (given, expected) in [
        ("X-Forwarded-For: 1.1.1.1\r\n", "for=1.1.1.1, for=192.0.2.7;"),
        (
            "X-Forwarded-For: 1.1.1.1, 2001:db8::1\r\nX-Forwarded-For: ::ffff:2.2.2.2\r\n",
            "for=1.1.1.1, for=\"[2001:db8::1]\", for=2.2.2.2, for=192.0.2.7;",
        ),
        (
            "X-Forwarded-For: 1.1.1.1:80, [2001:db8::1]:80, a\"b;c=d,,\r\n",
            "for=\"1.1.1.1:80\", for=\"[2001:db8::1]:80\", for=unknown, for=192.0.2.7;",
        ),
        ("X-Forwarded-For: 1.1.1.1\r\nForwarded: for=3.3.3.3\r\n", "for=3.3.3.3, for=192.0.2.7;"),
    ] {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{given}\r\n");
        let out = forwarded(&text, &["192.0.2.0/24"]);
        assert!(out.contains(&format!("\r\nForwarded: {expected}")), "{given}: {out}");
        let out = forwarded(&text, &[]);
        assert!(out.contains("\r\nForwarded: for=192.0.2.7;"), "a stranger's: {out}");
    }
}

#[test]
fn paths_are_replaced_by_prefix_on_segment_boundaries_or_as_a_whole() {
    let prefix = |path: &str| PathMatch::Prefix(path.into());
    let part = |path: &str| PathChange::Prefix(path.into());
    let whole = |path: &str| PathChange::Whole(path.into());
    for (path, matched, change, expected) in [
        ("/a/b", prefix("/a"), part("/x"), "/x/b"),
        ("/a", prefix("/a"), part("/x"), "/x"),
        ("/a/b", prefix("/a"), part("/"), "/b"),
        ("/a", prefix("/a"), part("/"), "/"),
        ("/a/", prefix("/a"), part("/x/"), "/x/"),
        ("/b", prefix(""), part("/x"), "/x/b"),
        ("/", prefix(""), part("/x"), "/x/"),
        ("*", prefix(""), part("/x"), "*"),
        ("/a/b", prefix("/a"), whole("/c"), "/c"),
        ("/a/", prefix("/a"), whole("/"), "/"),
        ("*", prefix(""), whole("/x"), "*"),
        ("/a/b", PathMatch::Exact("/a/b".into()), whole("/c"), "/c"),
    ] {
        let mut out = Vec::new();
        write_path(path, &matched, Some(&change), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), expected, "{path} {matched:?} {change:?}");
    }
}

fn response(text: &str, version: Version, keep: bool) -> (String, ResponseForm) {
    let mut head = ResponseHead::default();
    let parsed = parse_response(text.as_bytes(), &LIMITS, &mut head);
    assert!(matches!(parsed, Ok(Parsed::Complete { .. })), "{parsed:?}");
    let form = ResponseForm::new(head.body(false), version, keep);
    let mut out = Vec::new();
    let additions = Additions::default();
    write_response(&head, form, &FieldChanges::default(), additions, &mut out);
    (String::from_utf8(out).unwrap(), form)
}

#[test]
fn a_response_is_framed_as_its_client_understands() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (out, form) = response(chunked, Version::Http11, true);
    assert_eq!(out, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert!(!form.close);
    let (out, form) = response(chunked, Version::Http10, true);
    assert_eq!(out, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    assert!(form.close && !form.chunked);

    let until_close = "HTTP/1.1 200 OK\r\nConnection: close\r\nX: y\r\n\r\n";
    let (out, form) = response(until_close, Version::Http11, true);
    assert_eq!(out, "HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert!(!form.close, "the server's close is not the client's");

    let length = "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n";
    let (out, _) = response(length, Version::Http10, true);
    assert_eq!(out, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n");
    let (out, _) = response(length, Version::Http11, false);
    assert_eq!(out, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
}

#[test]
fn only_weir_sets_the_session() {
    let text = "HTTP/1.1 200 OK\r\nSet-Cookie: s=theirs; Path=/\r\nset-cookie:  s =theirs\r\n\
                Set-Cookie: s\r\nSet-Cookie: S=1\r\nSet-Cookie: ss=2\r\nSet-Cookie: a=s=3\r\n\
                Shop_Session: theirs\r\nContent-Length: 0\r\n\r\n";
    let mut head = ResponseHead::default();
    parse_response(text.as_bytes(), &LIMITS, &mut head).unwrap();
    let form = ResponseForm::new(head.body(false), Version::Http11, true);
    let cookie = SessionCarrier::Cookie { name: "s".into(), is_permanent: false };
    let field = SessionCarrier::Field("shop-session".into());
    for (session, fields) in [(Some(&cookie), 5), (Some(&field), 7), (None, 8)] {
        let additions = Additions { session, ..Additions::default() };
        let mut out = Vec::new();
        write_response(&head, form, &FieldChanges::default(), additions, &mut out);
        let mut informational = Vec::new();
        write_informational(&head, &OwnFields::default(), session, &mut informational);
        let fields_of = |out: Vec<u8>| {
            let text = String::from_utf8(out).unwrap();
            text.lines().filter(|line| line.contains(": ")).map(str::to_owned).collect::<Vec<_>>()
        };
        let (of_response, of_informational) = (fields_of(out), fields_of(informational));
        assert_eq!(of_response.len(), fields, "{session:?}: {of_response:?}");
        assert_eq!(of_informational.len(), fields - 1, "no length: {of_informational:?}");
    }
}

#[test]
fn a_share_of_all_requests_is_that_share() {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut ids: Vec<_> = (0..100_000).map(|_| RequestId::new(rng.u128(..))).collect();
    ids.extend([RequestId::new(0), RequestId::new(u128::MAX)]);
    let within = |share: f64| ids.iter().filter(|id| id.is_within(share)).count();
    assert_eq!((within(0.0), within(1.0)), (0, ids.len()));
    assert!((9_500..10_500).contains(&within(0.1)), "{}", within(0.1));
}

#[test]
fn an_upgrade_has_the_grants_of_its_route_and_no_others() {
    let rules = model::Cors {
        origins: vec![model::CorsOrigin::parse("https://a.test").unwrap()],
        methods: String::new(),
        headers: String::new(),
        expose: String::new(),
        credentials: false,
        max_age: None,
    };
    let text = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
                Access-Control-Allow-Origin: https://evil.test\r\nX-Other: 1\r\n\r\n";
    let mut head = ResponseHead::default();
    parse_response(text.as_bytes(), &LIMITS, &mut head).unwrap();
    for (origin, granted) in [("https://a.test", 1), ("https://evil.test", 0)] {
        let asked = request(&format!("GET / HTTP/1.1\r\nHost: a\r\nOrigin: {origin}\r\n\r\n"));
        let cors = Some(decide::cors::verdict(&rules, &asked));
        let mut out = Vec::new();
        write_informational(&head, &OwnFields { cors, ..OwnFields::default() }, None, &mut out);
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out.matches("Access-Control-").count(), granted, "{out}");
        assert_eq!(out.matches(origin).count(), granted, "{out}");
        assert!(out.contains("X-Other: 1\r\n") && out.contains("Vary: Origin\r\n"), "{out}");
    }
}
