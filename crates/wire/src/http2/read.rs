//! Parses the text of heads that this program has written itself.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use memchr::memchr;

use crate::http1::Known;

/// A text that is not a message head, or contains what HTTP/2 cannot carry. Heads consist of what
/// was parsed and of a checked configuration, so no peer can cause this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextError;

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a head that HTTP/2 cannot carry")
    }
}

impl std::error::Error for TextError {}

/// Returns the first line without its end, and the lines after it.
pub(super) fn first_line(text: &[u8]) -> Result<(&[u8], &[u8]), TextError> {
    let end = memchr(b'\n', text).ok_or(TextError)?;
    let line = text[..end].strip_suffix(b"\r").ok_or(TextError)?;
    Ok((line, &text[end + 1..]))
}

/// Returns the field lines of `text`, up to an empty one: the classified name, name, value.
pub(super) fn fields(mut text: &[u8]) -> impl Iterator<Item = (Known, &[u8], &[u8])> {
    std::iter::from_fn(move || {
        let (line, rest) = first_line(text).ok()?;
        text = rest;
        let colon = memchr(b':', line)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        Some((Known::of(name), name, value))
    })
}

/// Returns the fields of `text` except those to drop.
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

/// Returns the value of the trailer with that name.
pub fn trailer<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    fields(text).find(|(_, found, _)| found.eq_ignore_ascii_case(name)).map(|(_, _, value)| value)
}

/// Parses trailer lines.
///
/// # Errors
/// A line is not a field that may occur in trailers.
pub fn read_trailers(text: &[u8]) -> Result<HeaderMap, TextError> {
    field_map(text, super::is_of_the_connection)
}
