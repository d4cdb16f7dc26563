//! Writes what a client sent so that it stays within its value: as JSON, as text, and addresses.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};

use crate::digits::push_u64;

/// Appends `bytes` as a JSON string, or `null` if there are none. Invalid UTF-8 becomes U+FFFD;
/// control characters are escaped, including those above ASCII, since terminals interpret them.
pub(super) fn push_json(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.is_empty() {
        out.extend_from_slice(b"null");
        return;
    }
    out.push(b'"');
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    // Nearly every string is plain to its end.
    match bytes.iter().position(|byte| !plain(byte)) {
        None => out.extend_from_slice(bytes),
        Some(at) => {
            out.extend_from_slice(&bytes[..at]);
            push_json_escaped(out, &bytes[at..]);
        }
    }
    out.push(b'"');
}

#[cold]
fn push_json_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                // There is no control character above U+009F.
                _ if character.is_control() => {
                    out.extend_from_slice(b"\\u00");
                    push_hex(out, character as u8);
                }
                _ => push_char(out, character),
            }
        }
        if !chunk.invalid().is_empty() {
            push_char(out, char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Appends `bytes` as a value of a text line; see [`super::AccessRecord::write_text`].
pub(super) fn push_text(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.is_empty() {
        out.push(b'-');
    } else if bytes != b"-" && bytes.iter().all(|b| b.is_ascii_graphic() && *b != b'"') {
        out.extend_from_slice(bytes);
    } else {
        push_text_quoted(out, bytes);
    }
}

#[cold]
fn push_text_quoted(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => out.extend_from_slice(&[b'\\', character as u8]),
                _ if character.is_control() => {
                    let mut utf8 = [0; 4];
                    push_hex_escapes(out, character.encode_utf8(&mut utf8).as_bytes());
                }
                _ => push_char(out, character),
            }
        }
        push_hex_escapes(out, chunk.invalid());
    }
    out.push(b'"');
}

fn push_hex_escapes(out: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        out.extend_from_slice(b"\\x");
        push_hex(out, byte);
    }
}

fn push_hex(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

/// As [`push_hex`], as nginx and HAProxy write it.
pub(super) fn push_hex_upper(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

fn push_char(out: &mut Vec<u8>, character: char) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Appends an address as `192.0.2.1:80` or `[2001:db8::1]:80`, without the port if that is 0.
pub(super) fn push_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            push_u64(out, u64::from(a));
            for octet in [b, c, d] {
                out.push(b'.');
                push_u64(out, u64::from(octet));
            }
            if address.port() != 0 {
                out.push(b':');
                push_u64(out, u64::from(address.port()));
            }
        }
        // Writing to a Vec cannot fail.
        IpAddr::V6(ip) if address.port() == 0 => drop(write!(out, "{ip}")),
        IpAddr::V6(_) => drop(write!(out, "{address}")),
    }
}
