//! Any bytes as a request head. What is accepted must be sound: inside its bounds, unambiguous,
//! the same however it was split, and the same again once Weir has rewritten it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::http1::encode::{put_field, put_request_line};
use wire::http1::{
    HeadLimits, Known, Parsed, RequestBody, RequestHead, Version, forwarded, parse_request,
};

const LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 2048, target_max_bytes: 512, fields_max: 32 };

fuzz_target!(|data: &[u8]| {
    let mut head = RequestHead::default();
    let verdict = parse_request(data, &LIMITS, &mut head);
    check_prefixes(data, verdict.is_ok());
    let Ok(Parsed::Complete { consumed }) = verdict else {
        return;
    };

    assert!(consumed <= data.len());
    assert!(data[..consumed].ends_with(b"\r\n\r\n"));
    check_parts(&head);

    // What follows the head changes nothing.
    let mut again = RequestHead::default();
    let alone = parse_request(&data[..consumed], &LIMITS, &mut again);
    assert_eq!(alone, Ok(Parsed::Complete { consumed }));
    assert_eq!(format!("{head:?}"), format!("{again:?}"));

    // As it came, but written by us.
    let limits = HeadLimits { head_max_bytes: usize::MAX, ..LIMITS };
    let mut written = Vec::new();
    put_request_line(&mut written, head.method(), head.target());
    if head.version() == Version::Http10 {
        let digit = written.len() - 3;
        written[digit] = b'0';
    }
    for field in head.fields() {
        put_field(&mut written, field.name, field.value);
    }
    written.extend_from_slice(b"\r\n");
    let length = written.len();
    let reread = parse_request(&written, &limits, &mut again);
    assert_eq!(reread, Ok(Parsed::Complete { consumed: length }));
    assert_same(&head, &again);
    assert_eq!(head.version(), again.version());
    assert_eq!(head.expects_continue(), again.expects_continue());
    assert_eq!(head.upgrade(), again.upgrade());
    assert_eq!(head.keep_alive(), again.keep_alive());

    check_forwarded(&head);
});

/// A verdict is never taken back when more bytes come, and an accepted head's prefixes wait.
fn check_prefixes(data: &[u8], accepted: bool) {
    let mut head = RequestHead::default();
    for len in [data.len() / 3, data.len() / 2, data.len().saturating_sub(1)] {
        match parse_request(&data[..len], &LIMITS, &mut head) {
            Ok(Parsed::Complete { .. }) => assert!(accepted),
            Ok(Parsed::Partial) => {}
            Err(_) => assert!(!accepted),
        }
    }
}

fn check_parts(head: &RequestHead) {
    assert!(!head.method().is_empty() && head.method() != "CONNECT");
    assert!(head.target().bytes().all(|b| b.is_ascii_graphic() && b != b'#'));
    assert!(head.target().len() <= LIMITS.target_max_bytes);
    assert!(head.path() == "*" || head.path().starts_with('/') && !head.path().contains('?'));
    assert!(head.authority().starts_with(head.host()));
    assert!(head.version() == Version::Http10 || !head.host().is_empty());
    assert!(head.fields().len() <= LIMITS.fields_max);
    let count = |known| head.fields().filter(|field| field.known == known).count();
    assert!(count(Known::Host) <= 1);
    assert!(count(Known::ContentLength) <= 1);
    assert!(count(Known::ContentLength) == 0 || count(Known::TransferEncoding) == 0);
    let framed = count(Known::ContentLength) + count(Known::TransferEncoding) > 0;
    assert_eq!(framed, head.body() != RequestBody::None);
    for value in head.cookies("a") {
        assert!(!value.contains(&b';') && !value.starts_with(b" ") && !value.ends_with(b"\t"));
    }
    for field in head.fields() {
        // An element takes a comma.
        let nodes = forwarded::nodes(field.value);
        assert!(nodes.len() <= field.value.len() + 1);
        assert!(!field.name.is_empty() && field.name.is_ascii());
        assert!(!field.name.iter().any(|b| b" \t:\r\n\0".contains(b)));
        assert!(field.value.iter().all(|&b| b == b'\t' || b >= b' ' && b != 0x7f));
        assert!(!field.value.starts_with(b" ") && !field.value.ends_with(b"\t"));
        assert_eq!(field.known, Known::of(field.name));
        assert!(field.hop_by_hop || !field.known.is_hop_by_hop());
        assert!(!(field.hop_by_hop && matches!(field.known, Known::Host | Known::ContentLength)));
    }
}

/// As a gateway would send it on: origin form, its own Host and framing, nothing hop-by-hop.
fn check_forwarded(head: &RequestHead) {
    let mut out = Vec::new();
    let target = match head.query() {
        Some(query) => format!("{}?{query}", head.path()),
        None => head.path().to_owned(),
    };
    put_request_line(&mut out, head.method(), &target);
    let authority = if head.authority().is_empty() { "server" } else { head.authority() };
    put_field(&mut out, b"Host", authority.as_bytes());
    for field in head.fields() {
        if !field.hop_by_hop && field.known != Known::Host {
            put_field(&mut out, field.name, field.value);
        }
    }
    if head.body() == RequestBody::Chunked {
        put_field(&mut out, b"Transfer-Encoding", b"chunked");
    }
    out.extend_from_slice(b"\r\n");
    let limits = HeadLimits { head_max_bytes: usize::MAX, target_max_bytes: 600, fields_max: 64 };
    let mut behind = RequestHead::default();
    let verdict = parse_request(&out, &limits, &mut behind);
    assert_eq!(verdict, Ok(Parsed::Complete { consumed: out.len() }), "{}", out.escape_ascii());
    assert_eq!(behind.method(), head.method());
    assert_eq!(behind.body(), head.body());
    assert_eq!(behind.path(), head.path());
    assert_eq!(behind.query(), head.query());
    assert_eq!(behind.authority(), authority);
    assert_eq!(behind.upgrade(), None);
}

fn assert_same(one: &RequestHead, other: &RequestHead) {
    assert_eq!(one.method(), other.method());
    assert_eq!(one.target(), other.target());
    assert_eq!(one.path(), other.path());
    assert_eq!(one.query(), other.query());
    assert_eq!(one.authority(), other.authority());
    assert_eq!(one.host(), other.host());
    assert_eq!(one.body(), other.body());
    assert!(one.fields().eq(other.fields()));
}
