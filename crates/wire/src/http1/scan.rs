//! Finds a head's end, in one pass that also refuses bare line feeds and oversized heads; and names
//! the rule that a refused field section violates.

use super::error::HeadFault;
use super::grammar::{is_token, is_value_byte, trim_ows};
use super::head::{FIELDS_MAX, HeadLimits};

/// Returns the length of the head at the start of `input`, including the empty line; `None` if it
/// is incomplete. `start_line` checks the start line (without CRLF) as soon as it is complete.
///
/// Each line is checked only by the bytes up to its end: so the result does not depend on how the
/// bytes were split on the way.
#[inline]
pub(super) fn scan<E: From<HeadFault>>(
    input: &[u8],
    limits: &HeadLimits,
    start_line_max_bytes: usize,
    start_line: impl FnOnce(&[u8]) -> Result<(), E>,
) -> Result<Option<usize>, E> {
    let lines_max = limits.fields_max.min(FIELDS_MAX) + 1;
    let mut start_line = Some(start_line);
    let mut begin = 0;
    let mut lines = 0;
    for feed in memchr::memchr_iter(b'\n', input) {
        if lines == 0 && feed >= start_line_max_bytes {
            return Err(HeadFault::StartLineTooLong.into());
        }
        if feed >= limits.head_max_bytes {
            return Err(HeadFault::HeadTooLarge.into());
        }
        let line = &input[begin..feed];
        let [line @ .., b'\r'] = line else {
            return Err(HeadFault::BareLineFeed.into());
        };
        if let Some(start_line) = start_line.take() {
            start_line(line)?;
        } else if line.is_empty() {
            return Ok(Some(feed + 1));
        }
        lines += 1;
        if lines > lines_max {
            return Err(HeadFault::TooManyFields.into());
        }
        begin = feed + 1;
    }
    if lines == 0 && input.len() > start_line_max_bytes {
        return Err(HeadFault::StartLineTooLong.into());
    }
    if input.len() > limits.head_max_bytes {
        return Err(HeadFault::HeadTooLarge.into());
    }
    Ok(None)
}

/// Returns the rule that the first bad field line of `section` violates. For the error's text only,
/// after the parser has refused the section; `spaces_before_colon` if these are allowed.
#[cold]
pub(super) fn diagnose_fields(section: &[u8], spaces_before_colon: bool) -> HeadFault {
    for line in section.split(|&b| b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        if line.contains(&b'\r') {
            return HeadFault::BareCarriageReturn;
        }
        if matches!(line[0], b' ' | b'\t') {
            return HeadFault::LineFolding;
        }
        let Some(colon) = line.iter().position(|&b| b == b':') else {
            return HeadFault::MissingColon;
        };
        let name = &line[..colon];
        if !is_token(name) {
            let spaced = !name.is_empty() && is_token(trim_ows(name));
            if !spaced {
                return HeadFault::BadFieldName;
            }
            if !spaces_before_colon {
                return HeadFault::SpaceBeforeColon;
            }
        }
        if !line[colon + 1..].iter().copied().all(is_value_byte) {
            return HeadFault::BadFieldValue;
        }
    }
    HeadFault::BadFieldName
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::RequestError;

    #[test]
    fn scanning_bounds_are_exact() {
        let input = b"GET / HTTP/1.1\r\nA: b\r\n\r\nrest";
        let scan_with = |head, line, fields| {
            let limits =
                HeadLimits { head_max_bytes: head, target_max_bytes: 0, fields_max: fields };
            scan::<RequestError>(input, &limits, line, |_| Ok(()))
        };
        assert_eq!(scan_with(24, 16, 1), Ok(Some(24)));
        assert_eq!(scan_with(23, 16, 1), Err(RequestError::HeadTooLarge));
        assert_eq!(scan_with(24, 15, 1), Err(RequestError::TargetTooLong));
        assert_eq!(scan_with(24, 16, 0), Err(RequestError::TooManyFields));
    }
}
