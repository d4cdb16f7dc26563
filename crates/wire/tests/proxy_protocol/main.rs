//! Tests with PROXY headers of real `HAProxy`s (`captured/README.md`), those in the protocol's
//! document, those that Weir writes, and invalid ones.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

#[path = "../common/mod.rs"]
mod common;
mod written;

use std::net::Ipv6Addr;
use std::path::Path;

use wire::proxy_protocol::{
    Header, Origin, Parsed, ProxyError, Ssl, V1_MAX_BYTES, V2_MAX_BYTES, parse,
};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn captured(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captured/proxy_protocol");
    std::fs::read(folder.join(name).with_extension("bin")).unwrap()
}

fn tcp(source: &str, destination: &str) -> Origin {
    Origin::Tcp { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
}

/// Returns the header at the start of `input`, and what follows it.
fn complete(input: &[u8]) -> (Header<'_>, &[u8]) {
    match parse(input) {
        Ok(Parsed::Complete { consumed, header }) => (header, &input[consumed..]),
        other => panic!("{other:?}: {}", input.escape_ascii()),
    }
}

fn origin(line: &str) -> Origin {
    complete(line.as_bytes()).0.origin
}

/// Returns a version 2 header: command, family, then what follows the length.
fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let len = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[command, family], &len, rest].concat()
}

const ADDRESSES: &[u8] = &[192, 0, 2, 1, 198, 51, 100, 2, 0xdc, 0x04, 0x01, 0xbb];

fn field(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[kind][..], &u16::try_from(value.len()).unwrap().to_be_bytes(), value].concat()
}

/// Returns a header for TCP over IPv4 with `fields`.
fn with(fields: &[Vec<u8>]) -> Vec<u8> {
    v2(0x21, 0x11, &[ADDRESSES, &fields.concat()].concat())
}

#[test]
fn as_haproxy_sends_them() {
    let request = &b"GET / HTTP/1.1\r\n"[..];
    let both = |header: Header<'_>, ip: &str| match header.origin {
        Origin::Tcp { source, destination } => {
            assert_eq!(source.ip().to_string(), ip);
            assert_eq!(destination.ip().to_string(), ip);
            assert!(source.port() > 1024 && destination.port() > 1024);
        }
        other => panic!("{other:?}"),
    };
    for (file, ip) in
        [("haproxy_v1", "127.0.0.1"), ("haproxy_v1_ipv6", "::1"), ("haproxy_v2", "127.0.0.1")]
    {
        let input = captured(file);
        let (header, rest) = complete(&input);
        both(header, ip);
        assert_eq!(rest, request);
        assert_eq!(header, Header { origin: header.origin, ..Header::default() });
    }

    let input = captured("haproxy_v2_ipv6");
    let (header, rest) = complete(&input);
    both(header, "::1");
    assert_eq!(rest, request);
    assert!(header.unique_id.unwrap().starts_with(b"0000"));

    let input = captured("haproxy_v2_check");
    let (header, rest) = complete(&input);
    assert_eq!(header, Header { origin: Origin::Local, ..Header::default() });
    assert!(rest.starts_with(b"OPTIONS "));

    let input = captured("haproxy_v2_tls");
    let (header, rest) = complete(&input);
    both(header, "127.0.0.1");
    assert_eq!(rest, request);
    assert_eq!(header.authority, Some("www.example.com"));
    assert_eq!(header.alpn, Some(&b"http/1.1"[..]));
    assert_eq!(header.unique_id.unwrap().len(), 41);
    let ssl = header.ssl.unwrap();
    assert!(ssl.is_verified());
    let expected = Ssl {
        tls: true,
        certificate_in_connection: true,
        certificate_in_session: true,
        verify: 0,
        version: Some("TLSv1.3"),
        cipher: Some("TLS_AES_256_GCM_SHA384"),
        common_name: Some(b"a client"),
    };
    assert_eq!(ssl, expected);
}

#[test]
fn cut_off_anywhere_they_wait() {
    for file in [
        "haproxy_v1",
        "haproxy_v1_ipv6",
        "haproxy_v2",
        "haproxy_v2_ipv6",
        "haproxy_v2_check",
        "haproxy_v2_tls",
    ] {
        let input = captured(file);
        let consumed = input.len() - complete(&input).1.len();
        for len in 0..consumed {
            assert_eq!(parse(&input[..len]), Ok(Parsed::Partial), "{file} at {len}");
        }
        assert_eq!(complete(&input[..consumed]).0, complete(&input).0);
    }
}

/// Section 2.1 of the document.
#[test]
fn lines() {
    let input = b"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\nGET / HTTP/1.1\r\nHost: 192.168.0.11\r\n\r\n";
    let (header, rest) = complete(input);
    assert_eq!(header.origin, tcp("192.168.0.1:56324", "192.168.0.11:443"));
    assert!(rest.starts_with(b"GET / HTTP/1.1\r\n"));

    let all = ["ffff"; 8].join(":");
    for (line, len, expected) in [
        (
            "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n".to_owned(),
            56,
            tcp("255.255.255.255:65535", "255.255.255.255:65535"),
        ),
        (
            format!("PROXY TCP6 {all} {all} 65535 65535\r\n"),
            104,
            tcp(&format!("[{all}]:65535"), &format!("[{all}]:65535")),
        ),
        ("PROXY UNKNOWN\r\n".to_owned(), 15, Origin::Unknown),
        (format!("PROXY UNKNOWN {all} {all} 65535 65535\r\n"), V1_MAX_BYTES, Origin::Unknown),
        ("PROXY UNKNOWN  what\0ever\r\n".to_owned(), 26, Origin::Unknown),
        ("PROXY TCP6 2001:DB8::1 ::1 0 1\r\n".to_owned(), 32, tcp("[2001:db8::1]:0", "[::1]:1")),
        // One client has one address.
        ("PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n".to_owned(), 37, tcp("192.0.2.1:1", "[::1]:2")),
    ] {
        assert_eq!(line.len(), len, "{line:?}");
        assert_eq!(origin(&line), expected, "{line:?}");
    }
}

#[test]
fn lines_that_are_refused() {
    let long = |len: usize| format!("PROXY UNKNOWN {}", "x".repeat(len - 14));
    for (line, error) in [
        ("GET / HTTP/1.1\r\n", ProxyError::NotProxy),
        ("\x16\x03\x01", ProxyError::NotProxy),
        ("proxy TCP4 ", ProxyError::NotProxy),
        ("PROXYTCP4 ", ProxyError::NotProxy),
        ("PROXY\r\n", ProxyError::NotProxy),
        (" PROXY TCP4", ProxyError::NotProxy),
        ("PROXY \r\n", ProxyError::BadProtocol),
        ("PROXY  TCP4 1.1.1.1 2.2.2.2 1 2\r\n", ProxyError::BadProtocol),
        ("PROXY TCP5 1.1.1.1 2.2.2.2 1 2\r\n", ProxyError::BadProtocol),
        ("PROXY tcp4 1.1.1.1 2.2.2.2 1 2\r\n", ProxyError::BadProtocol),
        ("PROXY UNKNOWNX\r\n", ProxyError::BadProtocol),
        ("PROXY TCP4\t1.1.1.1 2.2.2.2 1 2\r\n", ProxyError::BadProtocol),
        ("PROXY TCP4\r\n", ProxyError::BadLine),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n", ProxyError::BadLine),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1 2 \r\n", ProxyError::BadLine),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1 2 3\r\n", ProxyError::BadLine),
        ("PROXY TCP4 1.1.1.1  2.2.2.2 1 2\r\n", ProxyError::BadLine),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1  2\r\n", ProxyError::BadLine),
        ("PROXY TCP4  2.2.2.2 1 2\r\n", ProxyError::BadAddress),
        ("PROXY TCP4 1.1.1 2.2.2.2 1 2\r\n", ProxyError::BadAddress),
        ("PROXY TCP4 1.1.1.01 2.2.2.2 1 2\r\n", ProxyError::BadAddress),
        ("PROXY TCP4 1.1.1.256 2.2.2.2 1 2\r\n", ProxyError::BadAddress),
        ("PROXY TCP4 1.1.1.1 ::1 1 2\r\n", ProxyError::BadAddress),
        ("PROXY TCP6 1.1.1.1 ::1 1 2\r\n", ProxyError::BadAddress),
        ("PROXY TCP6 [::1] ::1 1 2\r\n", ProxyError::BadAddress),
        ("PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n", ProxyError::BadAddress),
        ("PROXY TCP6 1::2::3 ::1 1 2\r\n", ProxyError::BadAddress),
        ("PROXY TCP4 localhost 2.2.2.2 1 2\r\n", ProxyError::BadAddress),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 01 2\r\n", ProxyError::BadPort),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 +1 2\r\n", ProxyError::BadPort),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1 65536\r\n", ProxyError::BadPort),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 -1 2\r\n", ProxyError::BadPort),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 x 2\r\n", ProxyError::BadPort),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1 \r\n", ProxyError::BadPort),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1 2\n", ProxyError::BareLineEnd),
        ("PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\r\n", ProxyError::BareLineEnd),
        ("PROXY UNKNOWN a\nb\r\n", ProxyError::BareLineEnd),
        ("PROXY UNKNOWN a\rb\r\n", ProxyError::BareLineEnd),
        (&long(V1_MAX_BYTES), ProxyError::LineTooLong),
        (&format!("{}\r\n", long(V1_MAX_BYTES - 1)), ProxyError::LineTooLong),
    ] {
        assert_eq!(parse(line.as_bytes()), Err(error), "{line:?}");
    }
    // The maximum length of a line, with only its LF missing.
    let line = format!("{}\r", long(V1_MAX_BYTES - 2));
    assert_eq!(parse(line.as_bytes()), Ok(Parsed::Partial));
    assert_eq!(parse(b"PROXY TCP4 \xff 2.2.2.2 1 2\r\n"), Err(ProxyError::BadLine));
}

/// Section 2.2: what is used of each command and family, and when the peer's address is used.
#[test]
fn families() {
    let known = tcp("192.0.2.1:56324", "198.51.100.2:443");
    let six: Vec<u8> = (0..36).collect();
    let expected = tcp(
        "[1:203:405:607:809:a0b:c0d:e0f]:8225",
        "[1011:1213:1415:1617:1819:1a1b:1c1d:1e1f]:8739",
    );
    let mapped = ["::ffff:192.0.2.1", "::ffff:198.51.100.2"]
        .map(|ip| ip.parse::<Ipv6Addr>().unwrap().octets());
    let mapped = [&mapped.concat()[..], &ADDRESSES[8..]].concat();
    let garbage = [0xff; 40];
    for (command, family, rest, expected) in [
        (0x21, 0x11, ADDRESSES, known),
        (0x21, 0x21, &six, expected),
        (0x21, 0x21, &mapped, known),
        (0x20, 0x00, b"", Origin::Local),
        // LOCAL: anything that follows is skipped.
        (0x20, 0x11, ADDRESSES, Origin::Local),
        (0x20, 0x11, b"x", Origin::Local),
        (0x20, 0xff, &garbage, Origin::Local),
        (0x21, 0x00, b"", Origin::Unknown),
        (0x21, 0x01, &garbage, Origin::Unknown),
        // Not TCP: datagrams and Unix sockets.
        (0x21, 0x12, ADDRESSES, Origin::Unknown),
        (0x21, 0x22, &six, Origin::Unknown),
        (0x21, 0x10, ADDRESSES, Origin::Unknown),
        (0x21, 0x31, &[b'/'; 216], Origin::Unknown),
        (0x21, 0x32, &[b'/'; 216], Origin::Unknown),
    ] {
        let input = [&v2(command, family, rest)[..], b"after"].concat();
        assert_eq!(
            complete(&input),
            (Header { origin: expected, ..Header::default() }, &b"after"[..])
        );
    }
    for (command, family, rest, error) in [
        (0x11, 0x11, ADDRESSES, ProxyError::BadVersion),
        (0x31, 0x11, ADDRESSES, ProxyError::BadVersion),
        (0x22, 0x11, ADDRESSES, ProxyError::BadCommand),
        (0x21, 0x41, ADDRESSES, ProxyError::BadFamily),
        (0x21, 0x13, ADDRESSES, ProxyError::BadFamily),
        (0x21, 0x11, &ADDRESSES[..11], ProxyError::AddressesCutOff),
        (0x21, 0x21, &six[..35], ProxyError::AddressesCutOff),
        (0x21, 0x31, &[b'/'; 215], ProxyError::AddressesCutOff),
    ] {
        assert_eq!(parse(&v2(command, family, rest)), Err(error), "{command:x} {family:x}");
    }
}

#[test]
fn fields_that_are_refused() {
    let twice = |kind, value| [field(kind, value), field(kind, value)].concat();
    let ssl = |sub: &[u8]| field(0x20, &[&[7, 0, 0, 0, 0], sub].concat());
    for (fields, error) in [
        (vec![1], ProxyError::FieldCutOff),
        (vec![1, 0], ProxyError::FieldCutOff),
        (vec![1, 0, 1], ProxyError::FieldCutOff),
        (vec![0xee, 0xff, 0xff, 0], ProxyError::FieldCutOff),
        (twice(0x01, b"h2"), ProxyError::RepeatedField),
        (twice(0x02, b"a"), ProxyError::RepeatedField),
        (twice(0x05, b"a"), ProxyError::RepeatedField),
        (twice(0x20, &[1, 0, 0, 0, 0]), ProxyError::RepeatedField),
        (field(0x02, b"a\xff"), ProxyError::BadText),
        (field(0x02, b"a\r\nb"), ProxyError::BadText),
        (field(0x02, b"a\0"), ProxyError::BadText),
        (field(0x05, &[7; 129]), ProxyError::UniqueIdTooLong),
        (field(0x20, &[1, 0, 0, 0]), ProxyError::FieldCutOff),
        (ssl(&[0x21, 0, 1]), ProxyError::FieldCutOff),
        (ssl(&twice(0x22, b"cn")), ProxyError::RepeatedField),
        (ssl(&field(0x21, b"\x1b")), ProxyError::BadText),
        (ssl(&field(0x23, b"\xff")), ProxyError::BadText),
        (field(0x03, &[0; 4]), ProxyError::BadChecksum),
        (field(0x03, &[0; 3]), ProxyError::BadChecksum),
        (field(0x03, &[]), ProxyError::BadChecksum),
    ] {
        assert_eq!(parse(&with(std::slice::from_ref(&fields))), Err(error), "{fields:?}");
    }
    // Others are skipped, however often: NOOP, NETNS, those of applications.
    let others =
        with(&[field(4, b"pad"), field(4, b""), field(0x30, b"blue"), field(0xe0, &[0xff; 300])]);
    let known = tcp("192.0.2.1:56324", "198.51.100.2:443");
    assert_eq!(complete(&others).0, Header { origin: known, ..Header::default() });
    // A common name may be in any encoding.
    let input = with(&[ssl(&field(0x22, b"M\xfcller"))]);
    assert_eq!(complete(&input).0.ssl.unwrap().common_name, Some(&b"M\xfcller"[..]));
}

/// A changed bit in what `HAProxy`'s checksum covers is detected.
#[test]
fn checksums() {
    for (file, addresses) in [("haproxy_v2_tls", 16..28), ("haproxy_v2_ipv6", 16..52)] {
        let input = captured(file);
        let end = input.len() - complete(&input).1.len();
        let sum = addresses.end + 3..addresses.end + 7;
        for at in addresses.chain(sum).chain(end - 1..end) {
            let mut input = input.clone();
            input[at] ^= 1;
            assert_eq!(parse(&input), Err(ProxyError::BadChecksum), "{file} at {at}");
        }
    }
}

#[test]
fn the_longest() {
    let room = V2_MAX_BYTES - 16 - ADDRESSES.len() - 3;
    let input = with(&[field(4, &vec![0; room])]);
    assert_eq!(input.len(), V2_MAX_BYTES);
    assert_eq!(complete(&input).1, b"");
    assert_eq!(parse(&input[..V2_MAX_BYTES - 1]), Ok(Parsed::Partial));
    // Refused before it has arrived, in LOCAL too.
    let longer = with(&[field(4, &vec![0; room + 1])]);
    assert_eq!(parse(&longer[..15]), Ok(Parsed::Partial));
    assert_eq!(parse(&longer[..16]), Err(ProxyError::HeaderTooLong));
    assert_eq!(parse(&v2(0x20, 0, &vec![0; V2_MAX_BYTES])), Err(ProxyError::HeaderTooLong));
}

#[test]
fn who_is_verified() {
    let all = Ssl { tls: true, certificate_in_connection: true, ..Ssl::default() };
    assert!(all.is_verified());
    assert!(!Ssl { verify: 18, ..all }.is_verified());
    assert!(!Ssl { tls: false, ..all }.is_verified());
    // What HAProxy sends for a client without a certificate.
    assert!(!Ssl { certificate_in_connection: false, ..all }.is_verified());
}

/// For any header there is a result that does not change.
#[test]
fn disturbed() {
    let mut rng = common::rng();
    let whole =
        ["haproxy_v1", "haproxy_v1_ipv6", "haproxy_v2", "haproxy_v2_ipv6", "haproxy_v2_tls"]
            .map(captured);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..30_000 {
        let mut input = whole[rng.usize(..whole.len())].clone();
        for _ in 0..rng.usize(1..3) {
            let at = rng.usize(..input.len());
            match rng.u8(..5) {
                0 => drop(input.remove(at)),
                1 => input.insert(at, rng.u8(..)),
                2 => input[at] = b"\r\n 0.:\xff"[rng.usize(..7)],
                _ => input[at] ^= 1 << rng.u8(..8),
            }
        }
        let verdict = parse(&input);
        let cut = rng.usize(..=input.len());
        match parse(&input[..cut]) {
            Ok(Parsed::Partial) => {}
            earlier => assert_eq!(earlier, verdict, "{cut}: {}", input.escape_ascii()),
        }
        match verdict {
            Ok(Parsed::Complete { consumed, .. }) => {
                read += 1;
                assert!(consumed <= input.len());
            }
            Err(_) => refused += 1,
            Ok(Parsed::Partial) => {}
        }
    }
    assert!(read > 1000 && refused > 1000, "a mixture: {read} read, {refused} not");
}
