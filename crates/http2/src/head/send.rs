//! From the text of a head to a header block.

use memchr::memchr;
use wire::http1::Known;

use crate::hpack::{Encoder, index};

/// The text is not a message head. Heads are built from parsed messages and a checked
/// configuration, so no peer can cause this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unencodable;

/// Properties of a request that encoding found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentRequest<'a> {
    /// It is a HEAD.
    pub(crate) is_head: bool,
    /// It was an Upgrade to this protocol, and has become an extended CONNECT.
    pub(crate) upgrade: Option<&'a str>,
}

/// Returns whether a field frames a message or concerns one connection only: HTTP/2 has other means
/// (RFC 9113 section 8.2.2).
fn is_of_the_connection(known: Known) -> bool {
    known != Known::Te && known.is_hop_by_hop()
}

/// Returns the first line without its end, and the rest.
#[inline]
fn split_line(text: &[u8]) -> Result<(&[u8], &[u8]), Unencodable> {
    let end = memchr(b'\n', text).ok_or(Unencodable)?;
    let line = text[..end].strip_suffix(b"\r").ok_or(Unencodable)?;
    Ok((line, &text[end + 1..]))
}

/// Returns the Host line, including the line end before it, and the protocol of an Upgrade. Both
/// determine pseudo-header fields, which come first.
fn leading<'a>(
    text: &'a [u8],
    mut rest: &'a [u8],
) -> Result<(&'a [u8], Option<&'a str>), Unencodable> {
    let (mut host, mut upgrade) = (None, None);
    loop {
        let start = text.len() - rest.len();
        let (line, after) = split_line(rest)?;
        rest = after;
        let Some(&first) = line.first() else { break };
        if first | 0x20 == b'h' && is_field(line, b"host") {
            host = host.or(Some(&text[start - 1..start + line.len()]));
        } else if first | 0x20 == b'u' && is_field(line, b"upgrade") {
            let value = line[b"upgrade:".len()..].trim_ascii();
            upgrade = Some(std::str::from_utf8(value).map_err(|_| Unencodable)?);
        }
    }
    Ok((host.ok_or(Unencodable)?, upgrade))
}

fn is_field(line: &[u8], name: &[u8]) -> bool {
    line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name)
}

/// Appends the block of a request, for an `http` or `https` server. The stream delimits the body,
/// so HTTP/1.1 framing is left out.
pub(crate) fn request<'a>(
    text: &'a [u8],
    is_https: bool,
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
) -> Result<SentRequest<'a>, Unencodable> {
    let (line, mut rest) = split_line(text)?;
    let space = memchr(b' ', line).ok_or(Unencodable)?;
    let (method, after) = (&line[..space], &line[space..]);
    let target = after.strip_suffix(b" HTTP/1.1").ok_or(Unencodable)?;
    let (host, upgrade) = leading(text, rest)?;
    // An extended CONNECT has no other method; a server may ignore an Upgrade.
    let upgrade = upgrade.filter(|_| method == b"GET");
    match method {
        _ if upgrade.is_some() => Encoder::named(index::METHOD_GET, b"CONNECT", out),
        b"GET" => Encoder::indexed(index::METHOD_GET, out),
        b"POST" => Encoder::indexed(index::METHOD_POST, out),
        _ => Encoder::named(index::METHOD_GET, method, out),
    }
    if let Some(protocol) = upgrade {
        Encoder::unnamed(b":protocol", protocol.as_bytes(), out);
    }
    Encoder::indexed(if is_https { index::SCHEME_HTTPS } else { index::SCHEME_HTTP }, out);
    // The delimiter before it is part of the key, so that the encoder cannot confuse it with a
    // regular field.
    let authority = host[b"\nHost:".len()..].trim_ascii_start().len();
    encoder.pseudo(index::AUTHORITY, (host, authority), b":authority".len(), out);
    path(target, encoder, out);
    let host = host.as_ptr().wrapping_add(1);
    loop {
        let (line, after) = split_line(rest)?;
        rest = after;
        if line.is_empty() {
            return Ok(SentRequest { is_head: method == b"HEAD", upgrade });
        }
        // A tunnel has no length, and the key belongs to HTTP/1.1.
        let is_dropped = line.as_ptr() == host
            || (upgrade.is_some()
                && (is_field(line, b"content-length") || is_field(line, b"sec-websocket-key")));
        let drops = |known| known == Known::Host || is_of_the_connection(known);
        if !is_dropped && !encoder.line(line, drops, out) {
            return Err(Unencodable);
        }
    }
}

/// Appends `:path`; `target` has a space before it.
fn path(target: &[u8], encoder: &mut Encoder, out: &mut Vec<u8>) {
    let plain = &target[1..];
    if plain == b"/" {
        Encoder::indexed(index::PATH_ROOT, out);
    } else if plain.iter().all(|&byte| PATH[usize::from(byte)]) {
        encoder.pseudo(index::PATH_ROOT, (target, plain.len()), b":path".len(), out);
    } else {
        Encoder::named(index::PATH_ROOT, &percent_encoded(plain), out);
    }
}

/// RFC 3986 section 3.4: `pchar`, `/` and `?`; `%` starts a triplet that is already encoded.
static PATH: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let extra = b"-._~!$&'()*+,;=:@/?%";
    let mut index = 0;
    while index < extra.len() {
        table[extra[index] as usize] = true;
        index += 1;
    }
    table
};

/// Percent-encodes the bytes that RFC 3986 does not allow in a path or query. The octets that they
/// represent stay the same.
fn percent_encoded(target: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = Vec::with_capacity(target.len() + 16);
    for &byte in target {
        if PATH[usize::from(byte)] {
            out.push(byte);
        } else {
            let digits = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
            out.extend_from_slice(&[b'%', digits[0], digits[1]]);
        }
    }
    out
}

/// Appends the block of a response; returns its status as sent. `upgrades`: it answers an extended
/// CONNECT, which is accepted by 200 (RFC 8441 section 5).
pub(crate) fn response(
    text: &[u8],
    upgrades: bool,
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
) -> Result<u16, Unencodable> {
    let (line, mut rest) = split_line(text)?;
    let digits = line.get(b"HTTP/1.1 ".len()..).and_then(|rest| rest.first_chunk::<3>());
    let digits =
        digits.filter(|digits| digits.iter().all(u8::is_ascii_digit)).ok_or(Unencodable)?;
    let status = digits.iter().fold(0, |value, digit| value * 10 + u16::from(digit - b'0'));
    let accepts = upgrades && status == 101;
    let status = if accepts { 200 } else { status };
    match index::STATUSES.iter().position(|&known| known == status) {
        Some(at) => Encoder::indexed(index::STATUS_200 + at, out),
        None => Encoder::named(index::STATUS_200, digits, out),
    }
    loop {
        let (line, after) = split_line(rest)?;
        rest = after;
        if line.is_empty() {
            return Ok(status);
        }
        let is_dropped = accepts && is_field(line, b"sec-websocket-accept");
        if !is_dropped && !encoder.line(line, is_of_the_connection, out) {
            return Err(Unencodable);
        }
    }
}

/// Appends the block of trailers, which are lines without an empty one at their end.
pub(crate) fn trailers(
    mut text: &[u8],
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
) -> Result<(), Unencodable> {
    while !text.is_empty() {
        let (line, after) = split_line(text)?;
        text = after;
        if !encoder.line(line, is_of_the_connection, out) {
            return Err(Unencodable);
        }
    }
    Ok(())
}
