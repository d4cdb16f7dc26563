//! Conversion of request heads.

use http::header::{CONTENT_LENGTH, COOKIE, HOST};
use std::borrow::Cow;
use std::fmt::Write as _;

use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, Method, Request, Uri, Version};

use super::is_of_the_connection;
use super::read::{TextError, field_map, fields, first_line};
use crate::http1::{Known, encode, is_token};

/// The protocol of an extended CONNECT (RFC 8441 section 4), and a key for the text: HTTP/2 needs
/// none, HTTP/1.1 does.
#[derive(Clone, Copy, Debug)]
pub struct Protocol<'a> {
    /// `websocket`.
    pub name: &'a str,
    /// Any 16 bytes in base64 (RFC 6455 section 4.1).
    pub key: &'a str,
}

/// Returns whether `:protocol` is a valid protocol name (RFC 9110 section 7.8). It may be any text,
/// and a line end in it would add a field to the text.
pub fn is_protocol(name: &str) -> bool {
    is_token(name.as_bytes())
}

/// Appends the text of a request head. `ended`: there is no body and there are no trailers.
///
/// An extended CONNECT becomes the equivalent GET with Upgrade (RFC 8441 section 5).
pub fn write_request(
    head: &Request<()>,
    protocol: Option<Protocol<'_>>,
    ended: bool,
    out: &mut Vec<u8>,
) {
    let uri = head.uri();
    let fields = head.headers();
    let method = protocol.map_or(head.method().as_str(), |_| "GET");
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    match uri.path_and_query() {
        // Plain CONNECT only has an authority (RFC 9113 section 8.5).
        _ if head.method() == Method::CONNECT && protocol.is_none() => {
            out.extend_from_slice(authority(uri, fields));
        }
        Some(target) => out.extend_from_slice(target.as_str().as_bytes()),
        None => out.push(b'/'),
    }
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    out.extend_from_slice(authority(uri, fields));
    out.extend_from_slice(b"\r\n");
    for host in fields.get_all(HOST).iter().skip(1) {
        // The parser refuses this: HTTP/1.1 allows no second one (RFC 9112 section 3.2).
        encode::put_field(out, b"Host", host.as_bytes());
    }
    let mut cookies = false;
    for (name, value) in fields {
        if name == COOKIE {
            cookies = true;
        } else if name != HOST && !is_of_the_connection(Known::of(name.as_str().as_bytes())) {
            encode::put_field(out, name.as_str().as_bytes(), value.as_bytes());
        }
    }
    if cookies {
        write_cookies(fields, out);
    }
    match protocol {
        Some(protocol) => {
            out.extend_from_slice(b"Connection: Upgrade\r\n");
            encode::put_field(out, b"Upgrade", protocol.name.as_bytes());
            if protocol.name.eq_ignore_ascii_case("websocket") {
                encode::put_field(out, b"Sec-WebSocket-Key", protocol.key.as_bytes());
            }
        }
        None if !ended && !fields.contains_key(CONTENT_LENGTH) => {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        None => {}
    }
    out.extend_from_slice(b"\r\n");
}

/// Returns `:authority`, which overrides Host (RFC 9113 section 8.3.1).
fn authority<'a>(uri: &'a Uri, fields: &'a HeaderMap) -> &'a [u8] {
    match uri.authority() {
        Some(authority) => authority.as_str().as_bytes(),
        None => fields.get(HOST).map_or(b"", |host| host.as_bytes()),
    }
}

/// Cookies may be split into several fields; HTTP/1.1 has one (RFC 9113 section 8.2.3).
fn write_cookies(fields: &HeaderMap, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Cookie: ");
    for (index, crumb) in fields.get_all(COOKIE).iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(crumb.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

/// Returns whether HTTP/2 can carry this authority, which is valid in HTTP/1.1. The `http` crate
/// refuses a percent-encoded host, which RFC 3986 section 3.2.2 allows and no real host has.
pub fn can_carry_authority(authority: &str) -> bool {
    !authority.contains('%') || authority.parse::<Authority>().is_ok()
}

/// Returns a request target valid in `:path`: bytes that RFC 3986 requires to be percent-encoded
/// are encoded, where the `http` crate does not accept them otherwise. The octets that they stand
/// for stay the same.
fn path_and_query(target: &[u8]) -> Result<PathAndQuery, TextError> {
    if let Ok(parsed) = PathAndQuery::try_from(target) {
        return Ok(parsed);
    }
    let encoded = percent_encoded(std::str::from_utf8(target).map_err(|_| TextError)?);
    PathAndQuery::try_from(&*encoded).map_err(|_| TextError)
}

fn percent_encoded(target: &str) -> Cow<'_, str> {
    // RFC 3986 section 3.4: pchar, "/" and "?"; "%" begins what is encoded already.
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
    if target.bytes().all(is_plain) {
        return Cow::Borrowed(target);
    }
    let mut out = String::with_capacity(target.len() + 16);
    for byte in target.bytes() {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    Cow::Owned(out)
}

/// Parses a complete request head in `text`, for an HTTP/2 server reached over `scheme`; also
/// returns the protocol that it asks to upgrade to. Body framing of HTTP/1.1 is left out; the
/// stream delimits the body.
///
/// # Errors
/// The text is not a request head that HTTP/2 can carry.
pub fn read_request<'a>(
    text: &'a [u8],
    scheme: &str,
) -> Result<(Request<()>, Option<&'a str>), TextError> {
    let (line, rest) = first_line(text)?;
    let mut words = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(TextError);
    };
    let method = Method::from_bytes(method).map_err(|_| TextError)?;
    let mut host: &[u8] = b"";
    let mut upgrade = None;
    for (known, _, value) in fields(rest) {
        match known {
            Known::Host => host = value,
            Known::Upgrade => upgrade = Some(std::str::from_utf8(value).map_err(|_| TextError)?),
            _ => {}
        }
    }
    let map = field_map(rest, |known| {
        known == Known::Host
            || is_of_the_connection(known)
            // A tunnel has no length, and the key belongs to HTTP/1.1.
            || (upgrade.is_some() && known == Known::ContentLength)
    })?;
    let uri = Uri::builder().scheme(scheme).authority(host).path_and_query(path_and_query(target)?);
    let mut request = Request::new(());
    *request.uri_mut() = uri.build().map_err(|_| TextError)?;
    *request.method_mut() = if upgrade.is_some() { Method::CONNECT } else { method };
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = map;
    if upgrade.is_some() {
        request.headers_mut().remove("sec-websocket-key");
    }
    Ok((request, upgrade))
}
