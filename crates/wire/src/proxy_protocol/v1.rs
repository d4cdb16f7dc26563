//! Version 1 of the PROXY protocol, a line of text (section 2.1 of `HAProxy`'s
//! `doc/proxy-protocol.txt`).

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{
    Header, OneFamily, Origin, Parsed, ProxyError, V1_MAX_BYTES, canonical, in_one_family,
};

/// The start of a line.
pub(super) const START: &[u8] = b"PROXY ";

/// Parses the line at the start of `input`, which begins with [`START`] as far as it goes.
pub(super) fn parse(input: &[u8]) -> Result<Parsed<'_>, ProxyError> {
    let seen = &input[..input.len().min(V1_MAX_BYTES)];
    let Some(end) = memchr::memchr2(b'\r', b'\n', seen) else {
        return if seen.len() < V1_MAX_BYTES {
            Ok(Parsed::Partial)
        } else {
            Err(ProxyError::LineTooLong)
        };
    };
    match (seen[end], seen.get(end + 1)) {
        (b'\r', Some(b'\n')) => {}
        (b'\r', None) if seen.len() < V1_MAX_BYTES => return Ok(Parsed::Partial),
        (b'\r', None) => return Err(ProxyError::LineTooLong),
        _ => return Err(ProxyError::BareLineEnd),
    }
    let origin = origin(&seen[START.len()..end])?;
    Ok(Parsed::Complete { consumed: end + 2, header: Header { origin, ..Header::default() } })
}

/// Parses what is between [`START`] and CRLF.
fn origin(line: &[u8]) -> Result<Origin, ProxyError> {
    let mut words = line.split(|&byte| byte == b' ');
    let ip: fn(&str) -> Option<IpAddr> = match words.next() {
        // What follows must be ignored, whatever it is.
        Some(b"UNKNOWN") => return Ok(Origin::Unknown),
        // The standard library's parsers accept no leading zeros and no zone.
        Some(b"TCP4") => |word| word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        Some(b"TCP6") => |word| word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        _ => return Err(ProxyError::BadProtocol),
    };
    let mut word = || {
        let word = words.next().ok_or(ProxyError::BadLine)?;
        std::str::from_utf8(word).map_err(|_| ProxyError::BadLine)
    };
    let [source, destination] = [word()?, word()?];
    let [source_port, destination_port] = [word()?, word()?];
    if words.next().is_some() {
        return Err(ProxyError::BadLine);
    }
    let ip = |word| ip(word).ok_or(ProxyError::BadAddress);
    Ok(Origin::Tcp {
        source: canonical(ip(source)?, port(source_port)?),
        destination: canonical(ip(destination)?, port(destination_port)?),
    })
}

fn port(word: &str) -> Result<u16, ProxyError> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain || word.len() > 1 && word.starts_with('0') {
        return Err(ProxyError::BadPort);
    }
    word.parse().map_err(|_| ProxyError::BadPort)
}

/// Appends the line for `origin`. Version 1 cannot express LOCAL: UNKNOWN is the nearest, and means
/// the same to the receiver. Addresses of two families are both written as IPv6.
pub fn write_v1(out: &mut Vec<u8>, origin: Origin) {
    let Origin::Tcp { source, destination } = origin else {
        out.extend_from_slice(b"PROXY UNKNOWN\r\n");
        return;
    };
    let ports = (source.port(), destination.port());
    // Writing to a Vec does not fail.
    let _ = match in_one_family(source, destination) {
        OneFamily::V4(one, other) => {
            let (one, other) = (Ipv4Addr::from(one), Ipv4Addr::from(other));
            write!(out, "PROXY TCP4 {one} {other} {} {}\r\n", ports.0, ports.1)
        }
        OneFamily::V6(one, other) => {
            write!(out, "PROXY TCP6 {one} {other} {} {}\r\n", ports.0, ports.1)
        }
    };
}
