//! Changes that compression makes to a response head.

use decide::compression::Effect;
use model::FieldChanges;
use wire::http1::{ResponseHead, encode};

use super::changed;

/// Appends a field of the server or the configuration, adjusted for `effect`.
pub(super) fn put_field(effect: Effect, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
    if effect.weakens && is("etag") && value.starts_with(b"\"") {
        // Different bytes with the same meaning, so a weak validator (RFC 9110 section 8.8.3).
        out.extend_from_slice(b"ETag: W/");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
        return;
    }
    // Ranges would refer to bytes that the server does not have. `identity` is not a coding, and
    // only one `Content-Encoding` remains: the one that was applied.
    if effect.coding.is_some() && (is("accept-ranges") || is("content-encoding")) {
        return;
    }
    encode::put_field(out, name, value);
}

/// Appends the fields that `effect` requires.
pub(super) fn put_own_fields(
    effect: Effect,
    head: &ResponseHead,
    changes: &FieldChanges,
    out: &mut Vec<u8>,
) {
    if let Some(coding) = effect.coding {
        encode::put_field(out, b"Content-Encoding", coding.as_str().as_bytes());
    }
    if effect.varies && !varies_already(head, changes) {
        encode::put_field(out, b"Vary", b"Accept-Encoding");
    }
}

/// Returns whether `Vary` already covers this, by a field that the server sent and the
/// configuration keeps, or by one that the configuration adds.
fn varies_already(head: &ResponseHead, changes: &FieldChanges) -> bool {
    let kept = head.fields().filter(|field| !changed(changes, field.name));
    let own = changes.set.iter().chain(&changes.add);
    kept.map(|field| (field.name, field.value))
        .chain(own.map(|(name, value)| (name.as_bytes(), value.as_bytes())))
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"vary"))
        .flat_map(|(_, value)| value.split(|&b| b == b','))
        .map(<[u8]>::trim_ascii)
        .any(|name| name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding"))
}
