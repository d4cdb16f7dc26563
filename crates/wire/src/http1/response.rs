//! A response head: the status line and body framing (RFC 9112 sections 4 and 6). The proxy decides
//! whether the connection is kept, and what the client receives.

use std::mem::MaybeUninit;

use super::codings::{Coding, TransferCodings};
use super::error::ResponseError;
use super::grammar::{decimal, list_elements};
use super::head::{ConnectionOptions, FIELDS_MAX, FieldStore, Fields, HeadLimits, Parsed, Version};
use super::known::Known;
use super::scan::{diagnose_fields, scan};

/// How a response's body is framed (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseBody {
    /// No body.
    #[default]
    None,
    /// Content-Length, in bytes; may be 0.
    Length(u64),
    /// Chunked.
    Chunked,
    /// Everything until the server closes the connection.
    UntilClose,
}

/// A response head with its own buffer. Reuse it: its capacities are kept.
#[derive(Clone, Debug, Default)]
pub struct ResponseHead {
    status: u16,
    reason: Vec<u8>,
    version: Version,
    fields: FieldStore,
    length: Option<u64>,
    chunked: bool,
    connection: ConnectionOptions,
}

/// Parses the response head at the start of `input` into `head`, whose former content is lost.
/// After [`Parsed::Partial`] call again with the same bytes and more.
///
/// The result is the same however the bytes were split on the way. After an error nothing further
/// on this connection can be trusted.
///
/// # Errors
/// The head is refused: contains the violated rule.
pub fn parse_response(
    input: &[u8],
    limits: &HeadLimits,
    head: &mut ResponseHead,
) -> Result<Parsed, ResponseError> {
    head.clear();
    let expected = b"HTTP/";
    let seen = input.len().min(expected.len());
    if input[..seen] != expected[..seen] {
        return Err(ResponseError::NotHttp);
    }
    match scan(input, limits, limits.head_max_bytes, check_status_line)? {
        None => Ok(Parsed::Partial),
        Some(len) => {
            head.read(&input[..len])?;
            Ok(Parsed::Complete { consumed: len })
        }
    }
}

impl ResponseHead {
    /// Clears everything but the capacities.
    pub fn clear(&mut self) {
        self.status = 0;
        self.reason.clear();
        self.version = Version::default();
        self.fields.clear();
        self.length = None;
        self.chunked = false;
        self.connection = ConnectionOptions::default();
    }

    /// Returns the status code, 100 to 999.
    #[inline]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the reason phrase; often empty.
    #[inline]
    pub fn reason(&self) -> &[u8] {
        &self.reason
    }

    /// Returns the server's version.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns every field, in order. Content-Length of a response that must not have one (RFC 9110
    /// section 8.6), and its repetitions, are marked as not to be forwarded.
    #[inline]
    pub fn fields(&self) -> Fields<'_> {
        self.fields.iter()
    }

    /// Returns the first value of that name.
    #[inline]
    pub fn known(&self, known: Known) -> Option<&[u8]> {
        self.fields.known(known)
    }

    /// Returns the first value of a name, compared ignoring case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields.field(name.as_bytes())
    }

    /// Returns whether the server will keep the connection, from the view of an HTTP/1.1 client
    /// (RFC 9112 section 9.3). A body framed by the connection's end also ends it; so does a 204
    /// that announces a body, since that server may send one.
    #[inline]
    pub fn keep_alive(&self) -> bool {
        let body_announced = self.chunked || self.length.is_some_and(|length| length > 0);
        self.connection.persists(self.version) && !(self.status == 204 && body_announced)
    }

    /// Returns the body's framing, given whether the request was HEAD.
    #[inline]
    pub fn body(&self, request_method_is_head: bool) -> ResponseBody {
        match self.status {
            _ if request_method_is_head => ResponseBody::None,
            100..=199 | 204 | 304 => ResponseBody::None,
            _ if self.chunked => ResponseBody::Chunked,
            _ => self.length.map_or(ResponseBody::UntilClose, ResponseBody::Length),
        }
    }

    /// Returns the length in Content-Length, whether or not a body follows (HEAD, 304).
    #[inline]
    pub fn content_length(&self) -> Option<u64> {
        self.length
    }

    /// Returns whether another response to the same request follows: 1xx except 101, after which
    /// the connection uses another protocol.
    #[inline]
    pub fn is_informational(&self) -> bool {
        matches!(self.status, 100 | 102..=199)
    }

    /// Returns the Upgrade field's value if this is 101 (Switching Protocols) and lists it in
    /// Connection.
    pub fn upgrade(&self) -> Option<&[u8]> {
        if self.status != 101 || !self.connection.upgrade {
            return None;
        }
        self.fields.only(Known::Upgrade)
    }

    /// Parses a complete head: `section` ends with its empty line and has passed `scan`.
    fn read(&mut self, section: &[u8]) -> Result<(), ResponseError> {
        let mut room = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; FIELDS_MAX];
        let mut parsed = httparse::Response::new(&mut []);
        let status = httparse::ParserConfig::default()
            // RFC 9112 section 5.1: whitespace before a colon is removed from responses. Fields are
            // re-encoded, so it is not forwarded.
            .allow_spaces_after_header_name_in_responses(true)
            .parse_response_with_uninit_headers(&mut parsed, section, &mut room);
        match status {
            Ok(httparse::Status::Complete(len)) if len == section.len() => {}
            Err(error) => return Err(diagnose(section, error)),
            // The scan has just found the end of the head.
            Ok(_) => return Err(ResponseError::BadStatusLine),
        }
        self.version = if parsed.version == Some(0) { Version::Http10 } else { Version::Http11 };
        self.status =
            parsed.code.filter(|&code| code >= 100).ok_or(ResponseError::BadStatusLine)?;
        // A reason with obs-text is returned empty: it is only for display, and the status counts.
        self.reason.extend_from_slice(parsed.reason.unwrap_or_default().as_bytes());
        self.read_fields(section, parsed.headers)?;
        self.connection = self.fields.read_connection()?;
        Ok(())
    }

    /// Stores the fields and derives the message's framing.
    fn read_fields(
        &mut self,
        section: &[u8],
        fields: &[httparse::Header<'_>],
    ) -> Result<(), ResponseError> {
        let from = fields
            .first()
            .map_or(section.len(), |first| first.name.as_ptr().addr() - section.as_ptr().addr());
        let section = &section[from..];
        let base = section.as_ptr().addr();
        self.fields.start(section);
        let mut codings = TransferCodings::default();
        let mut lengths = 0;
        for field in fields {
            let known = Known::of(field.name.as_bytes());
            match known {
                Known::ContentLength => {
                    for element in list_elements(field.value) {
                        let length = decimal(element).ok_or(ResponseError::BadContentLength)?;
                        if self.length.is_some_and(|first| first != length) {
                            return Err(ResponseError::DifferingContentLengths);
                        }
                        self.length = Some(length);
                        lengths += 1;
                    }
                }
                Known::TransferEncoding => codings.read(field.value),
                _ => {}
            }
            self.fields.push(base, field.name.as_bytes(), field.value, known);
        }
        if lengths > 1 {
            self.fields.keep_first_element(Known::ContentLength);
            self.fields.withhold(Known::ContentLength, true);
        }
        if matches!(self.status, 100..=199 | 204) {
            self.fields.withhold(Known::ContentLength, false);
        }
        self.chunked = match codings.coding() {
            Coding::None => false,
            _ if self.length.is_some() => return Err(ResponseError::LengthAndTransferEncoding),
            _ if self.version == Version::Http10 => {
                return Err(ResponseError::TransferEncodingIn10);
            }
            Coding::Chunked => true,
            Coding::Unknown | Coding::Malformed => return Err(ResponseError::BadTransferEncoding),
        };
        Ok(())
    }
}

/// Checks the start of a status line as soon as the line is complete.
#[inline]
fn check_status_line(line: &[u8]) -> Result<(), ResponseError> {
    match line {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0' | b'1', b' ', ..] => Ok(()),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor, b' ', ..]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Err(ResponseError::VersionNotSupported)
        }
        _ => Err(ResponseError::BadStatusLine),
    }
}

/// Returns the rule violated by a head that the parser refused.
#[cold]
fn diagnose(section: &[u8], error: httparse::Error) -> ResponseError {
    let line_len = memchr::memchr(b'\n', section).map_or(section.len(), |feed| feed + 1);
    let (line, fields) = section.split_at(line_len);
    let line = line.strip_suffix(b"\r\n").unwrap_or(line);
    match error {
        _ if line.contains(&b'\r') => ResponseError::BareCarriageReturn,
        httparse::Error::Token | httparse::Error::Version | httparse::Error::Status => {
            ResponseError::BadStatusLine
        }
        httparse::Error::NewLine => ResponseError::BareCarriageReturn,
        httparse::Error::TooManyHeaders => ResponseError::TooManyFields,
        httparse::Error::HeaderName | httparse::Error::HeaderValue => {
            ResponseError::from(diagnose_fields(fields, true))
        }
    }
}

#[cfg(test)]
mod tests;
