//! What compression changes in a response's head.

use decide::compression::Effect;
use wire::http1::{FieldRef, ResponseHead, encode};

/// Appends a field of the server's as it is with `effect`.
pub(super) fn put_field(effect: Effect, field: FieldRef<'_>, out: &mut Vec<u8>) {
    let is = |name: &str| field.name.eq_ignore_ascii_case(name.as_bytes());
    if effect.weakens && is("etag") && field.value.starts_with(b"\"") {
        // Other bytes, the same meaning (RFC 9110 section 8.8.3).
        out.extend_from_slice(b"ETag: W/");
        out.extend_from_slice(field.value);
        out.extend_from_slice(b"\r\n");
        return;
    }
    // Ranges would be of bytes that the server does not know, and a coding of `identity` is none.
    if effect.coding.is_some() && (is("accept-ranges") || is("content-encoding")) {
        return;
    }
    encode::put_field(out, field.name, field.value);
}

/// Appends the fields that are due to `effect`.
pub(super) fn put_own_fields(effect: Effect, head: &ResponseHead, out: &mut Vec<u8>) {
    if let Some(coding) = effect.coding {
        encode::put_field(out, b"Content-Encoding", coding.as_str().as_bytes());
    }
    if effect.varies && !varies_already(head) {
        encode::put_field(out, b"Vary", b"Accept-Encoding");
    }
}

/// Whether the server says so itself.
fn varies_already(head: &ResponseHead) -> bool {
    let lines = head.fields().filter(|field| field.name.eq_ignore_ascii_case(b"vary"));
    let mut names =
        lines.flat_map(|field| field.value.split(|&b| b == b',')).map(<[u8]>::trim_ascii);
    names.any(|name| name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding"))
}
