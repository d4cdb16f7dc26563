//! Tests with `ClientHello`s of real clients (`captured/README.md`) and with invalid ones: whole,
//! truncated, split over records in every way, and mutated.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that fails fails its test")]

mod common;

use std::path::Path;

use fastrand::Rng;
use wire::tls::client_hello::{EXTENSIONS_MAX, HelloError, PEEK_MAX_BYTES, Peeked, peek};

/// File, server name, the first two of ALPN without GREASE.
const CAPTURED: [(&str, Option<&str>, &[&str]); 13] = [
    ("openssl_tls13", Some("www.example.com"), &["h2", "http/1.1"]),
    ("openssl_tls12", Some("old.example.com"), &[]),
    ("openssl_no_name", None, &[]),
    ("openssl_address", None, &[]),
    ("openssl_two_records", Some("split.example.com"), &["protocol-000", "protocol-001"]),
    ("curl_http2", Some("curl.example.com"), &["h2", "http/1.1"]),
    ("curl_no_alpn", Some("curl.example.com"), &[]),
    ("node", Some("node.example.com"), &["http/1.1"]),
    ("python", Some("xn--bcher-kva.example.com"), &["http/1.1"]),
    ("go", Some("go.example.com"), &["h2"]),
    ("like_chrome", Some("browser.example.com"), &["h2", "http/1.1"]),
    ("like_firefox", Some("browser.example.com"), &["h2", "http/1.1"]),
    ("like_safari", Some("browser.example.com"), &["h2", "http/1.1"]),
];

fn captured(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured/client_hello");
    std::fs::read(folder.join(name).with_extension("bin")).unwrap()
}

/// The name and the protocols, or why it was refused; `None`: partial.
type Verdict = Option<Result<(Option<String>, Vec<Vec<u8>>), HelloError>>;

fn verdict(input: &[u8]) -> Verdict {
    match peek(input) {
        Ok(Peeked::Partial) => None,
        Ok(Peeked::Complete(hello)) => {
            let alpn = hello.alpn().map(<[u8]>::to_vec).collect();
            Some(Ok((hello.server_name().map(str::to_owned), alpn)))
        }
        Err(error) => Some(Err(error)),
    }
}

fn name_of(input: &[u8]) -> Result<Option<String>, HelloError> {
    verdict(input).expect("complete").map(|(name, _)| name)
}

fn record(fragment: &[u8]) -> Vec<u8> {
    let len = u16::try_from(fragment.len()).unwrap();
    [&[22, 3, 1][..], &len.to_be_bytes(), fragment].concat()
}

/// Prefixes a value with its length.
fn sized16(value: &[u8]) -> Vec<u8> {
    [&u16::try_from(value.len()).unwrap().to_be_bytes()[..], value].concat()
}

fn extension(kind: u16, value: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &sized16(value)].concat()
}

fn names(entries: &[(u8, &[u8])]) -> Vec<u8> {
    let list: Vec<u8> =
        entries.iter().flat_map(|(kind, name)| [&[*kind][..], &sized16(name)].concat()).collect();
    extension(0, &sized16(&list))
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind, len[1], len[2], len[3]][..], body].concat()
}

/// Returns a body whose extension block, including its length, is `tail`.
fn body(tail: &[u8]) -> Vec<u8> {
    [&[3, 3][..], &[7; 32], &[0], &[0, 2, 0x13, 0x01], &[1, 0], tail].concat()
}

fn hello(extensions: &[Vec<u8>]) -> Vec<u8> {
    record(&message(1, &body(&sized16(&extensions.concat()))))
}

/// Returns the message inside the records of `stream`.
fn unwrap_records(mut stream: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = stream {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        message.extend_from_slice(&rest[..len]);
        stream = &rest[len..];
    }
    message
}

#[test]
fn clients_as_they_are() {
    for (file, name, alpn) in CAPTURED {
        let (found, protocols) = verdict(&captured(file)).unwrap().unwrap();
        assert_eq!(found.as_deref(), name, "{file}");
        // GREASE (RFC 8701 section 3): two equal bytes that end in A.
        let is_grease = |name: &[u8]| matches!(name, [a, b] if a == b && a & 0xf == 0xa);
        let known = protocols.iter().filter(|name| !is_grease(name)).take(2);
        assert!(known.eq(alpn.iter().map(|name| name.as_bytes())), "{file}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured/client_hello");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), CAPTURED.len());
}

#[test]
fn cut_off_anywhere_they_wait() {
    for (file, ..) in CAPTURED {
        let stream = captured(file);
        for len in 0..stream.len() {
            assert_eq!(verdict(&stream[..len]), None, "{file} at {len}");
        }
        let followed = [&stream[..], b"\x14\x03\x03\x00\x01\x01anything"].concat();
        assert_eq!(verdict(&followed), verdict(&stream), "{file}");
    }
}

/// RFC 8446 section 5.1 lets a message be split over records anywhere, its header included.
#[test]
fn split_over_records_they_are_the_same() {
    let mut rng = common::rng();
    for (file, ..) in CAPTURED {
        let whole = captured(file);
        let message = unwrap_records(&whole);
        for most in [1, 2, 3, 4, 5, 100, 700] {
            let mut stream = Vec::new();
            let mut rest = &message[..];
            while !rest.is_empty() {
                let (fragment, after) = rest.split_at(rng.usize(1..=most.min(rest.len())));
                stream.extend(record(fragment));
                rest = after;
            }
            assert_eq!(verdict(&stream), verdict(&whole), "{file} in pieces of {most}");
            for _ in 0..50 {
                assert_eq!(verdict(&stream[..rng.usize(..stream.len())]), None, "{file}");
            }
        }
    }
}

#[test]
fn what_does_not_speak_tls() {
    for (input, error) in [
        (&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], HelloError::NotTls),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", HelloError::NotTls),
        (b"PROXY TCP4 ", HelloError::NotTls),
        (b"SSH-2.0-x\r\n", HelloError::NotTls),
        (b"\x00", HelloError::NotTls),
        // SSL 2.0's own hello, and one compatible with it.
        (b"\x80\x2e\x01\x03\x01", HelloError::NotTls),
        // An alert, and application data.
        (b"\x15\x03\x01\x00\x02\x01\x00", HelloError::NotTls),
        (b"\x17\x03\x03\x00\x01x", HelloError::NotTls),
        // Another version of the record layer.
        (b"\x16\x02", HelloError::NotTls),
        // A ServerHello.
        (b"\x16\x03\x03\x00\x04\x02", HelloError::NotClientHello),
        (b"\x16\x03\x03\x00\x00", HelloError::BadRecordLength),
        (b"\x16\x03\x03\x40\x01", HelloError::BadRecordLength),
        // Something else before the message is complete.
        (b"\x16\x03\x03\x00\x02\x01\x00\x14", HelloError::BadRecord),
        (b"\x16\x03\x03\x00\x02\x01\x00\x16\x04", HelloError::BadRecord),
        (b"\x16\x03\x03\x00\x02\x01\x00\x16\x03\x03\x00\x00", HelloError::BadRecordLength),
    ] {
        assert_eq!(verdict(input), Some(Err(error)), "{}", input.escape_ascii());
        let earlier = verdict(&input[..input.len() - 1]);
        assert!(earlier.is_none() || error == HelloError::NotTls, "{}", input.escape_ascii());
    }
}

#[test]
fn server_names() {
    let long =
        format!("{}.{}.{}.{}", "a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61));
    for (sent, read) in [
        ("example.com", Some("example.com")),
        ("WWW.Example.COM", Some("www.example.com")),
        ("example.com.", Some("example.com")),
        ("localhost", Some("localhost")),
        ("my_service.internal", Some("my_service.internal")),
        ("xn--bcher-kva.example", Some("xn--bcher-kva.example")),
        (&long, Some(&long)),
        // Addresses are ignored.
        ("192.0.2.1", None),
        ("2001:db8::1", None),
        ("::ffff:192.0.2.1", None),
    ] {
        let input = hello(&[names(&[(0, sent.as_bytes())])]);
        assert_eq!(name_of(&input), Ok(read.map(str::to_owned)), "{sent}");
    }
    let (label, longer) = ("a".repeat(64), format!("{long}e"));
    for bad in [
        ".",
        "..",
        ".example.com",
        "a..b",
        "example.com..",
        "*.example.com",
        "a b",
        "a/b",
        "a:1",
        "[2001:db8::1]",
        "a\0",
        "a\r\nb",
        "bücher.example",
        "a%00",
        "user@a",
        &label,
        &longer,
    ] {
        let input = hello(&[names(&[(0, bad.as_bytes())])]);
        assert_eq!(name_of(&input), Err(HelloError::BadServerName), "{bad:?}");
    }
    let input = hello(&[names(&[(0, b"a\xff")])]);
    assert_eq!(name_of(&input), Err(HelloError::BadServerName));
}

/// RFC 6066 section 3.
#[test]
fn lists_of_names() {
    let other = (7, &b"anything at all"[..]);
    assert_eq!(name_of(&hello(&[names(&[other])])), Ok(None));
    assert_eq!(name_of(&hello(&[names(&[other, (0, b"a.b"), other])])), Ok(Some("a.b".to_owned())));
    for bad in [
        names(&[]),
        names(&[(0, b"")]),
        names(&[(0, b"a"), (0, b"a")]),
        names(&[(0, b"a"), other, (0, b"b")]),
        extension(0, b""),
        extension(0, b"\0"),
        // The list, and a name in it, longer and shorter than the data.
        extension(0, b"\0\x05\0\0\x01a"),
        extension(0, b"\0\x03\0\0\x01a"),
        extension(0, b"\0\x04\0\0\x02a"),
        extension(0, b"\0\x05\0\0\x01a\0"),
        extension(0, b"\0\x04\0\0\x01a "),
    ] {
        assert_eq!(
            name_of(&hello(std::slice::from_ref(&bad))),
            Err(HelloError::BadNameList),
            "{bad:?}"
        );
    }
}

/// RFC 7301 section 3.1.
#[test]
fn lists_of_protocols() {
    let input = hello(&[extension(16, b"\0\x0c\x02h2\x08http/1.1")]);
    let expected = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    assert_eq!(verdict(&input), Some(Ok((None, expected))));
    for bad in [&b""[..], b"\0\0", b"\0\x01\0", b"\0\x03\x02h2 ", b"\0\x03\x03h2", b"\0\x04\x02h2"]
    {
        let input = hello(&[extension(16, bad)]);
        assert_eq!(name_of(&input), Err(HelloError::BadAlpn), "{}", bad.escape_ascii());
    }
}

#[test]
fn extensions_that_do_not_fit() {
    let name = || names(&[(0, b"a.example")]);
    let grease = || extension(0x0a0a, b"");
    assert_eq!(name_of(&hello(&[grease(), name()])), Ok(Some("a.example".to_owned())));
    for repeated in [[name(), name()], [grease(), grease()]] {
        assert_eq!(name_of(&hello(&repeated)), Err(HelloError::RepeatedExtension));
    }
    let most: Vec<_> = (100..).take(EXTENSIONS_MAX).map(|kind| extension(kind, b"")).collect();
    assert_eq!(name_of(&hello(&most)), Ok(None));
    let more = [&most[..], &[name()]].concat();
    assert_eq!(name_of(&hello(&more)), Err(HelloError::TooManyExtensions));
    // Before TLS 1.3 there need not be any.
    assert_eq!(name_of(&record(&message(1, &body(b"")))), Ok(None));
    assert_eq!(name_of(&record(&message(1, &body(b"\0\0")))), Ok(None));
    for tail in
        [&b"\0"[..], b"\0\x01", b"\0\0\0", b"\0\x01\0", b"\0\x03\0\x01\0", b"\0\x04\0\x01\0\x01"]
    {
        let input = record(&message(1, &body(tail)));
        assert_eq!(name_of(&input), Err(HelloError::BadMessage), "{tail:?}");
    }
}

#[test]
fn bodies_that_do_not_fit() {
    let start = [&[3, 3][..], &[7; 32]].concat();
    let (id, ciphers, methods) = (&b"\0"[..], &b"\0\x02\x13\x01"[..], &b"\x01\0"[..]);
    let longest_id = [&[32][..], &[1; 32]].concat();
    let longer_id = [&[33][..], &[1; 33]].concat();
    let read = |parts: &[&[u8]]| name_of(&record(&message(1, &parts.concat())));
    assert_eq!(read(&[&start, id, ciphers, methods]), Ok(None));
    assert_eq!(read(&[&start, &longest_id, ciphers, methods]), Ok(None));
    for parts in [
        &[&b""[..]][..],
        &[&start[..33]],
        &[&start],
        &[&start, id],
        &[&start, id, ciphers],
        &[&start, &longer_id, ciphers, methods],
        &[&start, id, b"\0\0", methods],
        &[&start, id, b"\0\x03\x13\x01\0", methods],
        &[&start, id, b"\0\x09\x13\x01", methods],
        &[&start, id, ciphers, b"\0"],
        &[&start, id, ciphers, b"\x02\0"],
    ] {
        assert_eq!(read(parts), Err(HelloError::BadMessage), "{parts:?}");
    }
}

/// Returns a hello of `len` bytes in `records` records.
fn filled(records: usize, len: usize) -> Vec<u8> {
    let room = len - 5 * records;
    let empty = message(1, &body(&sized16(&extension(21, b""))));
    let padding = extension(21, &vec![0; room - empty.len()]);
    let message = message(1, &body(&sized16(&padding)));
    let cut = |record| record * message.len() / records;
    (0..records).flat_map(|at| record(&message[cut(at)..cut(at + 1)])).collect()
}

#[test]
fn the_longest() {
    for records in [1, 2, 7, 1000] {
        let input = filled(records, PEEK_MAX_BYTES);
        assert_eq!(input.len(), PEEK_MAX_BYTES);
        assert_eq!(name_of(&input), Ok(None));
        assert_eq!(verdict(&input[..PEEK_MAX_BYTES - 1]), None);
        // One more: refused as too long before it has arrived.
        let input = filled(records, PEEK_MAX_BYTES + 1);
        assert_eq!(verdict(&input), Some(Err(HelloError::TooLong)));
        assert_eq!(verdict(&input[..PEEK_MAX_BYTES]), Some(Err(HelloError::TooLong)));
    }
    // The length shows it, as soon as it arrives.
    assert_eq!(verdict(b"\x16\x03\x01\x40\x00\x01\x00\x3f\xf7"), None);
    assert_eq!(verdict(b"\x16\x03\x01\x40\x00\x01\x00\x3f\xf8"), Some(Err(HelloError::TooLong)));
    // The last byte is in a separate record, whose header exceeds the limit.
    let message = filled(1, PEEK_MAX_BYTES - 2).split_off(5);
    let (most, last) = message.split_at(message.len() - 1);
    let input = [record(most), record(last)].concat();
    assert_eq!(verdict(&input[..PEEK_MAX_BYTES - 1]), None);
    assert_eq!(verdict(&input[..PEEK_MAX_BYTES]), Some(Err(HelloError::TooLong)));
    assert_eq!(verdict(&input), Some(Err(HelloError::TooLong)));
    // Records so short that their headers fill it.
    let short = filled(1, PEEK_MAX_BYTES)[5..].chunks(1).flat_map(record).collect::<Vec<u8>>();
    assert_eq!(verdict(&short[..PEEK_MAX_BYTES]), Some(Err(HelloError::TooLong)));
}

/// For any hello there is a result that does not change, and a name that is found is valid.
#[test]
fn disturbed() {
    let mut rng = common::rng();
    let whole: Vec<_> = CAPTURED.iter().map(|(file, ..)| captured(file)).collect();
    let (mut read, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut input = whole[rng.usize(..whole.len())].clone();
        disturb(&mut rng, &mut input);
        let verdict_whole = verdict(&input);
        let cut = rng.usize(..=input.len());
        if let Some(earlier) = verdict(&input[..cut]) {
            assert_eq!(Some(earlier), verdict_whole, "{cut}: {}", input.escape_ascii());
        }
        match verdict_whole {
            Some(Ok((name, alpn))) => {
                read += 1;
                let name = name.unwrap_or_else(|| "none".to_owned());
                assert!(!name.is_empty() && name.len() <= 253 && !name.ends_with('.'));
                assert!(
                    name.bytes()
                        .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'))
                );
                assert!(alpn.iter().all(|name| (1..=255).contains(&name.len())));
            }
            Some(Err(_)) => refused += 1,
            None => {}
        }
    }
    assert!(read > 1000 && refused > 1000, "the hellos are a mixture: {read} read, {refused} not");
}

fn disturb(rng: &mut Rng, input: &mut Vec<u8>) {
    for _ in 0..rng.usize(1..4) {
        // Lengths and types are at the start more often than at the end.
        let at = rng.usize(..input.len()).min(rng.usize(..input.len()));
        match rng.u8(..6) {
            0 if input.len() > 1 => drop(input.remove(at)),
            1 => input.insert(at, rng.u8(..)),
            2 => input.truncate(at + 2),
            3 => input[at] = input[at].wrapping_add(1),
            _ => input[at] ^= 1 << rng.u8(..8),
        }
    }
}
