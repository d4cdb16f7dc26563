//! The fields of a version 2 header: type, length, value (section 2.2 of `HAProxy`'s
//! `doc/proxy-protocol.txt`), read and written. Types not listed here are skipped.

use super::{Header, ProxyError, Ssl, UNIQUE_ID_MAX_BYTES, VALUE_MAX_BYTES};

const ALPN: u8 = 0x01;
const AUTHORITY: u8 = 0x02;
const CRC32C: u8 = 0x03;
const UNIQUE_ID: u8 = 0x05;
const SSL: u8 = 0x20;

/// Within the value of [`SSL`].
const SSL_VERSION: u8 = 0x21;
const SSL_CN: u8 = 0x22;
const SSL_CIPHER: u8 = 0x23;

/// In the first byte of [`SSL`]: the client used TLS.
const CLIENT_SSL: u8 = 0x01;
/// It presented a certificate on this connection.
const CLIENT_CERT_CONN: u8 = 0x02;
/// It presented one in this session.
const CLIENT_CERT_SESS: u8 = 0x04;

/// Type and length.
const PREFIX_BYTES: usize = 3;

/// Parses the fields, which begin at `at` and extend to the end of `whole`, the entire header.
pub(super) fn read<'a>(
    whole: &'a [u8],
    at: usize,
    header: &mut Header<'a>,
) -> Result<(), ProxyError> {
    let mut checksum = None;
    let mut rest = &whole[at..];
    while let Some((kind, value)) = next(&mut rest)? {
        match kind {
            ALPN => once(&mut header.alpn, value)?,
            AUTHORITY => once(&mut header.authority, text(value)?)?,
            UNIQUE_ID if value.len() > UNIQUE_ID_MAX_BYTES => {
                return Err(ProxyError::UniqueIdTooLong);
            }
            UNIQUE_ID => once(&mut header.unique_id, value)?,
            SSL => once(&mut header.ssl, ssl(value)?)?,
            CRC32C => {
                once(&mut checksum, ())?;
                check(whole, whole.len() - rest.len(), value)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Takes the next field from `rest`.
fn next<'a>(rest: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>, ProxyError> {
    let [kind, high, low, after @ ..] = *rest else {
        return if rest.is_empty() { Ok(None) } else { Err(ProxyError::FieldCutOff) };
    };
    let len = usize::from(u16::from_be_bytes([*high, *low]));
    let (value, after) = after.split_at_checked(len).ok_or(ProxyError::FieldCutOff)?;
    *rest = after;
    Ok(Some((*kind, value)))
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), ProxyError> {
    if place.is_some() {
        return Err(ProxyError::RepeatedField);
    }
    *place = Some(value);
    Ok(())
}

fn text(value: &[u8]) -> Result<&str, ProxyError> {
    let text = std::str::from_utf8(value).map_err(|_| ProxyError::BadText)?;
    if text.chars().any(char::is_control) { Err(ProxyError::BadText) } else { Ok(text) }
}

fn ssl(value: &[u8]) -> Result<Ssl<'_>, ProxyError> {
    let Some((&[client, ref verify @ ..], mut rest)) = value.split_first_chunk::<5>() else {
        return Err(ProxyError::FieldCutOff);
    };
    let mut ssl = Ssl {
        tls: client & CLIENT_SSL != 0,
        certificate_in_connection: client & CLIENT_CERT_CONN != 0,
        certificate_in_session: client & CLIENT_CERT_SESS != 0,
        verify: u32::from_be_bytes(*verify),
        ..Ssl::default()
    };
    while let Some((kind, value)) = next(&mut rest)? {
        match kind {
            SSL_VERSION => once(&mut ssl.version, text(value)?)?,
            SSL_CIPHER => once(&mut ssl.cipher, text(value)?)?,
            SSL_CN => once(&mut ssl.common_name, value)?,
            _ => {}
        }
    }
    Ok(ssl)
}

/// Section 2.2.3: verifies the checksum of the entire header, in which the checksum itself, which
/// ends at `end`, counts as zeros.
fn check(whole: &[u8], end: usize, value: &[u8]) -> Result<(), ProxyError> {
    let sent: [u8; 4] = value.try_into().map_err(|_| ProxyError::BadChecksum)?;
    // RFC 9260 appendix A; the field itself counts as zeros.
    let parts = [&whole[..end - sent.len()], &[0; 4], &whole[end..]];
    let sum = parts.iter().fold(0, |sum, part| crc32c::crc32c_append(sum, part));
    if sum == u32::from_be_bytes(sent) { Ok(()) } else { Err(ProxyError::BadChecksum) }
}

/// Appends the fields of `header`.
pub(super) fn write(out: &mut Vec<u8>, header: &Header<'_>) {
    put(out, ALPN, header.alpn, VALUE_MAX_BYTES);
    put(out, AUTHORITY, header.authority.map(str::as_bytes), VALUE_MAX_BYTES);
    put(out, UNIQUE_ID, header.unique_id, UNIQUE_ID_MAX_BYTES);
    if let Some(ssl) = &header.ssl {
        let start = out.len();
        out.extend_from_slice(&[SSL, 0, 0, client(ssl)]);
        out.extend_from_slice(&ssl.verify.to_be_bytes());
        put(out, SSL_VERSION, ssl.version.map(str::as_bytes), VALUE_MAX_BYTES);
        put(out, SSL_CN, ssl.common_name, VALUE_MAX_BYTES);
        put(out, SSL_CIPHER, ssl.cipher.map(str::as_bytes), VALUE_MAX_BYTES);
        // Fits: the values above are bounded.
        let len = (out.len() - start - PREFIX_BYTES) as u16;
        out[start + 1..start + PREFIX_BYTES].copy_from_slice(&len.to_be_bytes());
    }
}

fn client(ssl: &Ssl<'_>) -> u8 {
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    flag(ssl.tls, CLIENT_SSL)
        | flag(ssl.certificate_in_connection, CLIENT_CERT_CONN)
        | flag(ssl.certificate_in_session, CLIENT_CERT_SESS)
}

fn put(out: &mut Vec<u8>, kind: u8, value: Option<&[u8]>, max_bytes: usize) {
    let Some(value) = value.filter(|value| value.len() <= max_bytes) else {
        return;
    };
    out.push(kind);
    out.extend_from_slice(&(value.len() as u16).to_be_bytes());
    out.extend_from_slice(value);
}
