//! Conversion of response heads.

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response, StatusCode};

use super::is_of_the_connection;
use super::read::{TextError, field_map, first_line};
use crate::http1::{Known, encode};

/// Appends the text of a response head. `ended`: whether there is no body and there are no
/// trailers; `None`: it answers a HEAD, and says nothing about a body. `upgrade`: it answers an
/// extended CONNECT for that protocol, accepted by a 2xx (RFC 8441 section 4) and in HTTP/1.1 by a
/// 101, with `accept` for a WebSocket.
pub fn write_response(
    status: StatusCode,
    fields: &HeaderMap,
    ended: Option<bool>,
    upgrade: Option<(&str, &str)>,
    out: &mut Vec<u8>,
) {
    let upgrade = upgrade.filter(|_| status.is_success());
    let status = if upgrade.is_some() { 101 } else { status.as_u16() };
    let reason = encode::reason_phrase(status);
    encode::put_status_line(out, crate::http1::Version::Http11, status, reason.as_bytes());
    for (name, value) in fields {
        if !is_of_the_connection(Known::of(name.as_str().as_bytes())) {
            encode::put_field(out, name.as_str().as_bytes(), value.as_bytes());
        }
    }
    // Neither has a body, whatever its fields say (RFC 9110 sections 15.2 and 15.3.5).
    let bodiless = status < 200 || status == 204 || status == 304;
    if let Some((protocol, accept)) = upgrade {
        out.extend_from_slice(b"Connection: Upgrade\r\n");
        encode::put_field(out, b"Upgrade", protocol.as_bytes());
        encode::put_field(out, b"Sec-WebSocket-Accept", accept.as_bytes());
    } else if let Some(ended) = ended
        && !bodiless
        && !fields.contains_key(CONTENT_LENGTH)
    {
        out.extend_from_slice(if ended {
            b"Content-Length: 0\r\n".as_slice()
        } else {
            b"Transfer-Encoding: chunked\r\n"
        });
    }
    out.extend_from_slice(b"\r\n");
}

/// Parses a complete response head in `text`. Body framing of HTTP/1.1 and connection-specific
/// fields are left out. `upgraded`: it answers an extended CONNECT, accepted by 200.
///
/// # Errors
/// The text is not a response head that HTTP/2 can carry.
pub fn read_response(text: &[u8], upgraded: bool) -> Result<Response<()>, TextError> {
    let (line, rest) = first_line(text)?;
    let digits = line.split(|&byte| byte == b' ').nth(1).ok_or(TextError)?;
    let mut status = StatusCode::from_bytes(digits).map_err(|_| TextError)?;
    let mut map = field_map(rest, is_of_the_connection)?;
    if upgraded && status == StatusCode::SWITCHING_PROTOCOLS {
        status = StatusCode::OK;
        map.remove("sec-websocket-accept");
    }
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = map;
    Ok(response)
}
