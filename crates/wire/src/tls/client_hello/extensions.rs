//! Parses the body of a `ClientHello` (RFC 8446 section 4.1.2) up to its extensions, and of these
//! the server name (RFC 6066 section 3) and ALPN (RFC 7301 section 3.1).

use std::net::IpAddr;

use super::{ClientHello, EXTENSIONS_MAX, HelloError};

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;

/// `NameType.host_name`.
const HOST_NAME: u8 = 0;

/// RFC 1035 section 2.3.4, as text and without the final dot.
const NAME_MAX_BYTES: usize = 253;
/// RFC 1035 section 2.3.4.
const LABEL_MAX_BYTES: usize = 63;

/// Parses a complete message body.
pub(super) fn read(body: &[u8]) -> Result<ClientHello, HelloError> {
    extension_block(body).ok_or(HelloError::BadMessage).and_then(extensions)
}

/// Returns the extensions of the body; empty if there are none.
fn extension_block(body: &[u8]) -> Option<&[u8]> {
    const VERSION_BYTES: usize = 2;
    const RANDOM_BYTES: usize = 32;
    const SESSION_ID_MAX_BYTES: usize = 32;

    // The version is not checked: the server decides whether to accept it.
    let mut rest = body.get(VERSION_BYTES + RANDOM_BYTES..)?;
    let session_id = take::<1>(&mut rest)?;
    let ciphers = take::<2>(&mut rest)?;
    let compressions = take::<1>(&mut rest)?;
    let sound = session_id.len() <= SESSION_ID_MAX_BYTES
        && !ciphers.is_empty()
        && ciphers.len().is_multiple_of(2)
        && !compressions.is_empty();
    // Before TLS 1.3 a message may end here.
    let block = if rest.is_empty() { rest } else { take::<2>(&mut rest)? };
    (sound && rest.is_empty()).then_some(block)
}

/// Takes a vector from `rest`, preceded by its length in `N` bytes, at most 2.
fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, after) = rest.split_first_chunk::<N>()?;
    let len = len.iter().fold(0, |len, &byte| len << 8 | usize::from(byte));
    let (value, after) = after.split_at_checked(len)?;
    *rest = after;
    Some(value)
}

/// Each type may occur once, including those of GREASE (RFC 8701 section 3.1).
fn extensions(mut rest: &[u8]) -> Result<ClientHello, HelloError> {
    let mut hello = ClientHello::default();
    let mut types = [0; EXTENSIONS_MAX];
    let mut count = 0;
    while let Some((kind, after)) = rest.split_first_chunk::<2>() {
        rest = after;
        let kind = u16::from_be_bytes(*kind);
        let value = take::<2>(&mut rest).ok_or(HelloError::BadMessage)?;
        if types[..count].contains(&kind) {
            return Err(HelloError::RepeatedExtension);
        }
        *types.get_mut(count).ok_or(HelloError::TooManyExtensions)? = kind;
        count += 1;
        match kind {
            SERVER_NAME => hello.server_name = server_name(value)?,
            ALPN => hello.alpn = alpn(value).ok_or(HelloError::BadAlpn)?.into(),
            _ => {}
        }
    }
    if rest.is_empty() { Ok(hello) } else { Err(HelloError::BadMessage) }
}

fn server_name(value: &[u8]) -> Result<Option<Box<str>>, HelloError> {
    let Some(name) = host_name(value)? else {
        return Ok(None);
    };
    let name = std::str::from_utf8(name).map_err(|_| HelloError::BadServerName)?;
    if name.parse::<IpAddr>().is_ok() {
        return Ok(None);
    }
    // The RFC does not allow a final dot; some clients send it, and it changes nothing.
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.len() > NAME_MAX_BYTES || !name.split('.').all(is_label) {
        return Err(HelloError::BadServerName);
    }
    Ok(Some(name.to_ascii_lowercase().into()))
}

/// Returns the one host name of a `ServerNameList`; `None`: it only has names of other types. Those
/// also begin with a length, whatever they will be.
fn host_name(value: &[u8]) -> Result<Option<&[u8]>, HelloError> {
    let mut outer = value;
    let mut list = take::<2>(&mut outer).ok_or(HelloError::BadNameList)?;
    let mut found = None;
    if list.is_empty() || !outer.is_empty() {
        return Err(HelloError::BadNameList);
    }
    while let Some((&kind, after)) = list.split_first() {
        list = after;
        let name = take::<2>(&mut list).ok_or(HelloError::BadNameList)?;
        if kind == HOST_NAME && (name.is_empty() || found.replace(name).is_some()) {
            return Err(HelloError::BadNameList);
        }
    }
    Ok(found)
}

/// Letters, digits and hyphens; underscores occur in practice and are unambiguous.
fn is_label(label: &str) -> bool {
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=LABEL_MAX_BYTES).contains(&label.len()) && label.bytes().all(is_sound)
}

/// Returns a valid `ProtocolNameList` without its length.
fn alpn(value: &[u8]) -> Option<&[u8]> {
    let mut outer = value;
    let list = take::<2>(&mut outer)?;
    let mut rest = list;
    while !rest.is_empty() {
        if take::<1>(&mut rest)?.is_empty() {
            return None;
        }
    }
    (!list.is_empty() && outer.is_empty()).then_some(list)
}
