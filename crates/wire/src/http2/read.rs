//! Reads back the text of heads that this program has written itself.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memchr;

use crate::http1::Known;

/// A text that is no message head, or holds what HTTP/2 cannot carry. Heads are made of what was
/// parsed and of a checked configuration, so this does not happen by a peer's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextError;

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a head that HTTP/2 cannot carry")
    }
}

impl std::error::Error for TextError {}

/// The first line without its end, and the lines after it.
pub(super) fn first_line(text: &[u8]) -> Result<(&[u8], &[u8]), TextError> {
    let end = memchr(b'\n', text).ok_or(TextError)?;
    let line = text[..end].strip_suffix(b"\r").ok_or(TextError)?;
    Ok((line, &text[end + 1..]))
}

/// The field lines of `text`, up to an empty one: what is known of the name, name, value.
pub(super) fn fields(mut text: &[u8]) -> impl Iterator<Item = (Known, &[u8], &[u8])> {
    std::iter::from_fn(move || {
        let (line, rest) = first_line(text).ok()?;
        text = rest;
        let colon = memchr(b':', line)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        Some((Known::of(name), name, value))
    })
}

/// The fields of `text` but those to drop.
pub(super) fn field_map(text: &[u8], drop: impl Fn(Known) -> bool) -> Result<HeaderMap, TextError> {
    let mut map = HeaderMap::with_capacity(16);
    for (known, name, value) in fields(text) {
        if !drop(known) {
            let name = HeaderName::from_bytes(name).map_err(|_| TextError)?;
            let value = HeaderValue::from_bytes(value).map_err(|_| TextError)?;
            // Fails only above 32,768 fields, far beyond any head's limit.
            map.try_append(name, value).map_err(|_| TextError)?;
        }
    }
    Ok(map)
}

/// The value of the trailer of that name in such lines.
pub fn trailer<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    fields(text).find(|(_, found, _)| found.eq_ignore_ascii_case(name)).map(|(_, _, value)| value)
}

/// The trailers whose lines `text` holds.
///
/// # Errors
/// A line is no field that may stand in trailers.
pub fn read_trailers(text: &[u8]) -> Result<HeaderMap, TextError> {
    field_map(text, super::is_of_the_connection)
}
