//! Translates the WebSocket handshake between HTTP/1.1 and HTTP/2 (RFC 6455 section 4, RFC 8441
//! section 5): HTTP/2 has neither the key nor the response to it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

/// RFC 6455 section 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Returns a key: 16 random bytes in base64. It is not secret.
pub(crate) fn key() -> String {
    STANDARD.encode(fastrand::u128(..).to_ne_bytes())
}

/// Returns the response to the key in a request head; empty if there is none.
pub(crate) fn accept(request: &[u8]) -> String {
    const NAME: &[u8] = b"\r\nsec-websocket-key:";
    let key = request
        .windows(NAME.len())
        .position(|window| window.eq_ignore_ascii_case(NAME))
        .map(|at| &request[at + NAME.len()..])
        .and_then(|value| value.split(|&byte| byte == b'\r').next());
    key.map_or_else(String::new, |key| {
        STANDARD.encode(Sha1::new().chain_update(key.trim_ascii()).chain_update(GUID).finalize())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_answered_as_in_the_specification() {
        // RFC 6455 section 1.3.
        let text = b"GET / HTTP/1.1\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        assert_eq!(accept(text), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(accept(b"GET / HTTP/1.1\r\n\r\n"), "");
        assert_eq!(STANDARD.decode(key()).unwrap().len(), 16);
    }
}
