//! The record layer around a `ClientHello` (RFC 8446 section 5.1): the message may be split over
//! several records, and others may follow.

use std::borrow::Cow;

use super::{HelloError, PEEK_MAX_BYTES};

/// `ContentType.handshake`.
const HANDSHAKE: u8 = 22;

/// `HandshakeType.client_hello`.
const CLIENT_HELLO: u8 = 1;

/// Type, version, length.
const RECORD_HEADER_BYTES: usize = 5;

/// Type, length.
const MESSAGE_HEADER_BYTES: usize = 4;

/// RFC 8446 section 5.1.
const FRAGMENT_MAX_BYTES: usize = 1 << 14;

/// Returns the body of the `ClientHello` at the start of `input`, without its header; `None`: it is
/// incomplete. Nothing is copied unless it is complete and split.
pub(super) fn message(input: &[u8]) -> Result<Option<Cow<'_, [u8]>>, HelloError> {
    let seen = &input[..input.len().min(PEEK_MAX_BYTES)];
    let mut header = Header::default();
    let (mut records, mut fragments) = (0, 0);
    let mut rest = seen;
    while let Some(fragment) = next(&mut rest, records == 0)? {
        records += 1;
        fragments += fragment.len();
        header.feed(fragment)?;
        let Some(len) = header.message_len() else {
            continue;
        };
        if records * RECORD_HEADER_BYTES + len > PEEK_MAX_BYTES {
            return Err(HelloError::TooLong);
        }
        if fragments >= len {
            return Ok(Some(body(seen, len)?));
        }
    }
    if seen.len() == PEEK_MAX_BYTES { Err(HelloError::TooLong) } else { Ok(None) }
}

/// Takes the next record from `rest` and returns its fragment, as far as it has arrived; `None`:
/// there is nothing yet. Each byte is checked as soon as it arrives.
fn next<'a>(rest: &mut &'a [u8], is_first: bool) -> Result<Option<&'a [u8]>, HelloError> {
    let bad = if is_first { HelloError::NotTls } else { HelloError::BadRecord };
    // Of the version, only what all versions share is checked: RFC 8446 says to ignore the rest.
    if rest.first().is_some_and(|&kind| kind != HANDSHAKE)
        || rest.get(1).is_some_and(|&major| major != 3)
    {
        return Err(bad);
    }
    let Some((header, after)) = rest.split_first_chunk::<RECORD_HEADER_BYTES>() else {
        return Ok(None);
    };
    let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
    if len == 0 || len > FRAGMENT_MAX_BYTES {
        return Err(HelloError::BadRecordLength);
    }
    let (fragment, after) = after.split_at(len.min(after.len()));
    *rest = after;
    Ok((!fragment.is_empty()).then_some(fragment))
}

/// The message's header, which may itself be split.
#[derive(Default)]
struct Header {
    bytes: [u8; MESSAGE_HEADER_BYTES],
    len: usize,
}

impl Header {
    fn feed(&mut self, fragment: &[u8]) -> Result<(), HelloError> {
        for (place, &byte) in self.bytes[self.len..].iter_mut().zip(fragment) {
            *place = byte;
            self.len += 1;
        }
        if self.len > 0 && self.bytes[0] != CLIENT_HELLO {
            return Err(HelloError::NotClientHello);
        }
        Ok(())
    }

    /// Returns the message's length, including the header.
    fn message_len(&self) -> Option<usize> {
        let [_, high, middle, low] = self.bytes;
        let len = u32::from_be_bytes([0, high, middle, low]) as usize;
        (self.len == MESSAGE_HEADER_BYTES).then_some(MESSAGE_HEADER_BYTES + len)
    }
}

/// Returns the body of a message of `len` bytes, all of which are in `seen`.
fn body(seen: &[u8], len: usize) -> Result<Cow<'_, [u8]>, HelloError> {
    let mut whole = Vec::new();
    let mut rest = seen;
    while let Some(fragment) = next(&mut rest, whole.is_empty())? {
        if whole.is_empty() && fragment.len() >= len {
            return Ok(Cow::Borrowed(&fragment[MESSAGE_HEADER_BYTES..len]));
        }
        let missing = len - whole.len();
        whole.extend_from_slice(&fragment[..missing.min(fragment.len())]);
        if whole.len() == len {
            break;
        }
    }
    whole.drain(..MESSAGE_HEADER_BYTES);
    Ok(Cow::Owned(whole))
}
