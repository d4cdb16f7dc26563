//! The combined log format of Apache and nginx, as nginx writes it: a quote, a backslash, and every
//! byte that is not visible ASCII or a space becomes `\xNN`.
//!
//! `client - user [time] "request line" status bytes "referer" "user agent"`

use std::net::SocketAddr;

use model::{Fault, RedactQuery};

use super::AccessRecord;
use super::escape::{push_address, push_hex_upper};
use super::redact::push_url;
use crate::digits::push_u64;

/// nginx's status for a client that has gone before it was answered.
const CLIENT_GONE: u16 = 499;
/// nginx's status for a connection that was closed without an answer.
const NO_RESPONSE: u16 = 444;
/// nginx's status for a session in TCP mode that ended well.
const SESSION_COMPLETED: u16 = 200;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

impl AccessRecord<'_> {
    /// Appends the record as one line of the combined log format. `spare` is overwritten.
    pub fn write_combined(&self, redact: &RedactQuery, spare: &mut Vec<u8>, out: &mut Vec<u8>) {
        push_address(out, SocketAddr::new(self.client.ip(), 0));
        out.extend_from_slice(b" - ");
        match self.user.unwrap_or_default().as_bytes() {
            b"" => out.push(b'-'),
            // Alone it would mean that there is no user.
            b"-" => out.extend_from_slice(b"\\x2D"),
            // Not in quotes, so a space would begin the next field.
            user => push_escaped(user, |byte| byte == b' ', out),
        }
        out.extend_from_slice(b" [");
        self.push_clf_time(out);
        out.extend_from_slice(b"] \"");
        self.push_request_line(redact, spare, out);
        out.extend_from_slice(b"\" ");
        push_u64(out, u64::from(self.clf_status()));
        out.push(b' ');
        push_u64(out, self.response_bytes);
        for name in ["referer", "user-agent"] {
            out.extend_from_slice(b" \"");
            self.take_request_header(name, redact, spare);
            match spare.as_slice() {
                b"" => out.push(b'-'),
                value => push_escaped(value, |_| false, out),
            }
            out.push(b'"');
        }
        out.push(b'\n');
    }

    /// Appends the request line with the client's own target, or `-`.
    fn push_request_line(&self, redact: &RedactQuery, spare: &mut Vec<u8>, out: &mut Vec<u8>) {
        let Some(request) = self.request else {
            out.push(b'-');
            return;
        };
        push_escaped(self.method, |_| false, out);
        out.push(b' ');
        spare.clear();
        push_url(request.target().as_bytes(), redact, spare);
        push_escaped(spare, |byte| byte == b' ', out);
        out.push(b' ');
        out.extend_from_slice(self.clf_protocol().as_bytes());
    }

    /// Returns the protocol as Apache, nginx and HAProxy write it.
    pub(super) fn clf_protocol(&self) -> &str {
        if self.protocol == "HTTP/2" { "HTTP/2.0" } else { self.protocol }
    }

    /// Returns the status, or nginx's status for an exchange that has none.
    fn clf_status(&self) -> u16 {
        match (self.status, self.cause.fault()) {
            (Some(status), _) => status,
            (None, _) if self.protocol == "TCP" && self.cause.status() > 0 => self.cause.status(),
            (None, Fault::None) if self.protocol == "TCP" => SESSION_COMPLETED,
            (None, Fault::Client) => CLIENT_GONE,
            (None, _) => NO_RESPONSE,
        }
    }

    /// Appends `25/Nov/2026:18:38:07 +0000`.
    fn push_clf_time(&self, out: &mut Vec<u8>) {
        let text = self.time.as_bytes();
        push_clf_date(text, out);
        out.push(b':');
        out.extend_from_slice(&text[11..19]);
        out.extend_from_slice(b" +0000");
    }
}

/// Appends the date of an RFC 3339 time as `25/Nov/2026`.
pub(super) fn push_clf_date(text: &[u8; 24], out: &mut Vec<u8>) {
    let month = usize::from(text[5] - b'0') * 10 + usize::from(text[6] - b'0');
    out.extend_from_slice(&text[8..10]);
    out.push(b'/');
    out.extend_from_slice(MONTHS[(month.max(1) - 1).min(11)]);
    out.push(b'/');
    out.extend_from_slice(&text[..4]);
}

/// Appends text as nginx escapes it in a log; `also` escapes more.
fn push_escaped(text: &[u8], also: impl Fn(u8) -> bool, out: &mut Vec<u8>) {
    for &byte in text {
        if matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\') && !also(byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(b"\\x");
            push_hex_upper(out, byte);
        }
    }
}
