//! Encoding: field lines, status lines, chunk headers. Each appends to the caller's buffer, which
//! is reused for the next message; nothing is formatted through `std::fmt`.

use super::head::Version;

/// The last chunk and an empty trailer section (RFC 9112 section 7.1).
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The maximum decimal length of a `u64`.
pub const DECIMAL_MAX_BYTES: usize = 20;

/// Returns the line before a chunk of `len` bytes: hexadecimal size, CRLF. A `len` of 0 would end
/// the body, so callers never write an empty chunk.
#[inline]
pub fn chunk_header(len: usize, out: &mut [u8; 18]) -> &[u8] {
    out[16] = b'\r';
    out[17] = b'\n';
    let mut at = 16;
    let mut rest = len as u64;
    loop {
        at -= 1;
        out[at] = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
        if rest == 0 {
            return &out[at..];
        }
    }
}

/// Returns `value` in decimal.
#[inline]
pub fn decimal(value: u64, out: &mut [u8; DECIMAL_MAX_BYTES]) -> &[u8] {
    let mut at = DECIMAL_MAX_BYTES;
    let mut rest = value;
    loop {
        at -= 1;
        out[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &out[at..];
        }
    }
}

/// Appends `name: value` and CRLF.
#[inline]
pub fn put_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends `name: value` and CRLF for a number.
#[inline]
pub fn put_number_field(out: &mut Vec<u8>, name: &[u8], value: u64) {
    put_field(out, name, decimal(value, &mut [0; DECIMAL_MAX_BYTES]));
}

/// Appends `method SP target SP HTTP/1.1` and CRLF. Weir always sends its own version (RFC 9110
/// section 2.5).
#[inline]
pub fn put_request_line(out: &mut Vec<u8>, method: &str, target: &str) {
    out.reserve(method.len() + target.len() + 12);
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

/// Appends a status line. An empty `reason` means the usual phrase for the status.
#[inline]
pub fn put_status_line(out: &mut Vec<u8>, version: Version, status: u16, reason: &[u8]) {
    out.extend_from_slice(match version {
        Version::Http10 => b"HTTP/1.0 ",
        Version::Http11 => b"HTTP/1.1 ",
    });
    out.extend_from_slice(decimal(u64::from(status), &mut [0; DECIMAL_MAX_BYTES]));
    out.push(b' ');
    let reason = if reason.is_empty() { reason_phrase(status).as_bytes() } else { reason };
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

/// Returns the usual reason phrase (RFC 9110 section 15, RFC 6585); empty for a status without one.
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_headers() {
        let mut out = [0; 18];
        assert_eq!(chunk_header(0, &mut out), b"0\r\n");
        assert_eq!(chunk_header(0x1f, &mut out), b"1f\r\n");
        assert_eq!(chunk_header(65_536, &mut out), b"10000\r\n");
        assert_eq!(chunk_header(usize::MAX, &mut out), b"ffffffffffffffff\r\n");
    }

    #[test]
    fn numbers() {
        for value in [0, 9, 10, 204, 1_234_567_890, u64::MAX] {
            let mut out = [0; DECIMAL_MAX_BYTES];
            assert_eq!(decimal(value, &mut out), value.to_string().as_bytes());
        }
    }

    #[test]
    fn lines() {
        let mut out = Vec::new();
        put_status_line(&mut out, Version::Http11, 200, b"");
        put_status_line(&mut out, Version::Http10, 299, b"");
        put_status_line(&mut out, Version::Http11, 404, b"Nope");
        put_field(&mut out, b"Server", b"x");
        put_number_field(&mut out, b"Content-Length", 12);
        put_request_line(&mut out, "GET", "/a?b");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 200 OK\r\nHTTP/1.0 299 \r\nHTTP/1.1 404 Nope\r\nServer: x\r\n\
             Content-Length: 12\r\nGET /a?b HTTP/1.1\r\n"
        );
    }
}
