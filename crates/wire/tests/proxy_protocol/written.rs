//! Tests that Weir writes headers as `HAProxy` does, and that they are parsed correctly.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use fastrand::Rng;
use wire::proxy_protocol::{
    Header, Origin, Parsed, Ssl, V1_MAX_BYTES, V2_MAX_BYTES, VALUE_MAX_BYTES, parse, write_v1,
    write_v2,
};

use super::{captured, common, complete, tcp};

#[test]
fn as_weir_writes_them() {
    let mut out = b"before ".to_vec();
    write_v1(&mut out, tcp("192.0.2.1:56324", "198.51.100.2:443"));
    assert_eq!(out, b"before PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n");
    let line = |origin| {
        let mut out = Vec::new();
        write_v1(&mut out, origin);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(line(tcp("[2001:db8::1]:1", "[::1]:2")), "PROXY TCP6 2001:db8::1 ::1 1 2\r\n");
    assert_eq!(line(tcp("192.0.2.1:1", "[::1]:2")), "PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n");
    assert_eq!(
        line(tcp("[::ffff:192.0.2.1]:1", "192.0.2.2:2")),
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"
    );
    assert_eq!(line(Origin::Unknown), "PROXY UNKNOWN\r\n");
    assert_eq!(line(Origin::Local), "PROXY UNKNOWN\r\n");

    // Byte for byte as HAProxy, where both write the same fields.
    for file in ["haproxy_v2", "haproxy_v2_check"] {
        let input = captured(file);
        let (header, rest) = complete(&input);
        let mut out = Vec::new();
        write_v2(&mut out, &header);
        out.extend_from_slice(rest);
        assert_eq!(out, input);
    }

    // Values that are too long are left out.
    let header = Header {
        origin: tcp("192.0.2.1:56324", "198.51.100.2:443"),
        authority: Some(&"a".repeat(VALUE_MAX_BYTES + 1)),
        alpn: Some(&[b'h'; VALUE_MAX_BYTES]),
        unique_id: Some(&[0; 129]),
        ssl: None,
    };
    let mut out = Vec::new();
    write_v2(&mut out, &header);
    assert_eq!(complete(&out).0, Header { authority: None, unique_id: None, ..header });
}

fn address(rng: &mut Rng) -> SocketAddr {
    if rng.bool() {
        (Ipv4Addr::from(rng.u32(..)), rng.u16(..)).into()
    } else {
        (Ipv6Addr::from(rng.u128(..) >> rng.u32(..100)).to_canonical(), rng.u16(..)).into()
    }
}

fn maybe<T>(rng: &mut Rng, value: T) -> Option<T> {
    rng.bool().then_some(value)
}

/// Everything written is parsed to the same value, whole and only when complete.
#[test]
fn there_and_back() {
    let mut rng = common::rng();
    for _ in 0..3_000 {
        let len = rng.usize(..=VALUE_MAX_BYTES);
        let bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
        let text = "aé".repeat(len / 3);
        let ssl = Ssl {
            tls: rng.bool(),
            certificate_in_connection: rng.bool(),
            certificate_in_session: rng.bool(),
            verify: rng.u32(..3),
            version: maybe(&mut rng, "TLSv1.2"),
            cipher: maybe(&mut rng, &text),
            common_name: maybe(&mut rng, &bytes),
        };
        let header = Header {
            origin: Origin::Tcp { source: address(&mut rng), destination: address(&mut rng) },
            authority: maybe(&mut rng, &text),
            alpn: maybe(&mut rng, &bytes),
            unique_id: maybe(&mut rng, &bytes[..len.min(128)]),
            ssl: maybe(&mut rng, ssl),
        };
        let (mut line, mut binary) = (Vec::new(), Vec::new());
        write_v1(&mut line, header.origin);
        write_v2(&mut binary, &header);
        assert!(line.len() <= V1_MAX_BYTES && binary.len() <= V2_MAX_BYTES);
        for written in [&mut line, &mut binary] {
            let cut = rng.usize(..written.len());
            assert_eq!(parse(&written[..cut]), Ok(Parsed::Partial));
            written.extend_from_slice(b"\r\nrest");
        }
        assert_eq!(
            complete(&line),
            (Header { origin: header.origin, ..Header::default() }, &b"\r\nrest"[..])
        );
        assert_eq!(complete(&binary), (header, &b"\r\nrest"[..]));
    }
}
