//! A request head: the request line, body framing and the destination (RFC 9112 sections 3, 5 and
//! 6). Routing and forwarding are decided elsewhere.

use std::mem::MaybeUninit;

use super::authority;
use super::codings::{Coding, TransferCodings};
use super::error::RequestError;
use super::grammar::{decimal, is_token, is_token_byte, list_elements, trim_ows};
use super::head::{
    ConnectionOptions, FIELDS_MAX, FieldStore, Fields, HeadLimits, Parsed, Span, Version,
};
use super::known::Known;
use super::scan::{diagnose_fields, scan};
use super::target::{Path, Target};
use crate::grpc;

/// No registered method is longer (`UPDATEREDIRECTREF` has 17).
pub const METHOD_MAX_BYTES: usize = 32;

/// Maximum number of empty lines skipped before a request (RFC 9112 section 2.2 requires at least
/// one).
const EMPTY_LINES_MAX: usize = 4;

/// Two spaces, `HTTP/1.1` and CRLF.
const REQUEST_LINE_REST_BYTES: usize = 12;

/// How a request's body is framed (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestBody {
    /// No body.
    #[default]
    None,
    /// Content-Length, in bytes; may be 0.
    Length(u64),
    /// Chunked.
    Chunked,
}

/// A request head with its own buffer. Reuse it: its capacities are kept, so that after the first
/// few requests parsing allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    /// Method, target and (if not part of the target) authority: all ASCII, one after the other.
    text: String,
    method: Span,
    target: Span,
    parts: Target,
    version: Version,
    fields: FieldStore,
    body: RequestBody,
    connection: ConnectionOptions,
    expects_continue: bool,
    /// The requested upgrade; empty: none.
    upgrade: Span,
}

/// Parses the request head at the start of `input` into `head`, whose former content is lost. After
/// [`Parsed::Partial`] call again with the same bytes and more.
///
/// The result is the same however the bytes were split on the way. After an error the connection
/// can only be answered and closed.
///
/// # Errors
/// The head is refused: contains the violated rule and the response status.
pub fn parse_request(
    input: &[u8],
    limits: &HeadLimits,
    head: &mut RequestHead,
) -> Result<Parsed, RequestError> {
    head.clear();
    let skipped = skip_empty_lines(input)?;
    let Some(section) = input.get(skipped..).filter(|rest| !rest.is_empty()) else {
        return Ok(Parsed::Partial);
    };
    if section == b"\r" {
        return Ok(Parsed::Partial); // perhaps one more empty line
    }
    if !is_token_byte(section[0]) {
        return Err(RequestError::NotHttp);
    }
    let line_max = limits
        .target_max_bytes
        .saturating_add(METHOD_MAX_BYTES + REQUEST_LINE_REST_BYTES)
        .min(limits.head_max_bytes.max(1));
    match scan(section, limits, line_max, check_version)? {
        None => Ok(Parsed::Partial),
        Some(len) => {
            head.read(&section[..len], limits)?;
            Ok(Parsed::Complete { consumed: skipped + len })
        }
    }
}

impl RequestHead {
    /// Clears everything but the capacities.
    pub fn clear(&mut self) {
        self.text.clear();
        self.fields.clear();
        self.method = Span::default();
        self.target = Span::default();
        self.parts = Target::default();
        self.version = Version::default();
        self.body = RequestBody::None;
        self.connection = ConnectionOptions::default();
        self.expects_continue = false;
        self.upgrade = Span::default();
    }

    /// Returns the method as sent: methods are case-sensitive (RFC 9110 section 9.1).
    #[inline]
    pub fn method(&self) -> &str {
        self.method.of_str(&self.text)
    }

    /// Returns whether the method is HEAD.
    #[inline]
    pub fn is_head(&self) -> bool {
        self.method() == "HEAD"
    }

    /// Returns whether the method is idempotent (RFC 9110 section 9.2.2). Unknown methods are not.
    #[inline]
    pub fn is_idempotent(&self) -> bool {
        matches!(self.method(), "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE")
    }

    /// Returns whether it is a gRPC call: by its media type, with or without the encoding of its
    /// messages ("gRPC over HTTP2", Requests).
    pub fn is_grpc(&self) -> bool {
        self.known(Known::ContentType).is_some_and(grpc::is_content_type)
    }

    /// Returns the client's version.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the request target as sent, in any form.
    #[inline]
    pub fn target(&self) -> &str {
        self.target.of_str(&self.text)
    }

    /// Returns the path without query, as sent; `*` for the asterisk form; `/` if an absolute URI
    /// has none.
    #[inline]
    pub fn path(&self) -> &str {
        match self.parts.path {
            Path::At(span) => span.of_str(&self.text),
            Path::Asterisk => "*",
            Path::Root => "/",
        }
    }

    /// Returns what follows the first `?` of the target.
    #[inline]
    pub fn query(&self) -> Option<&str> {
        self.parts.query.map(|span| span.of_str(&self.text))
    }

    /// Returns host and port: those of an absolute target, which override Host (RFC 9112 section
    /// 3.2.2), else those of Host; empty if an HTTP/1.0 request has neither.
    #[inline]
    pub fn authority(&self) -> &str {
        self.parts.authority.of_str(&self.text)
    }

    /// Returns the authority without its port, as sent: compare it ignoring case. An IPv6 address
    /// keeps its brackets.
    #[inline]
    pub fn host(&self) -> &str {
        self.parts.host.of_str(&self.text)
    }

    /// Returns every field, in order.
    #[inline]
    pub fn fields(&self) -> Fields<'_> {
        self.fields.iter()
    }

    /// Removes every field whose name `is_removed`. What was read from fields of HTTP itself (its body's
    /// length, its upgrade) stays as it is.
    pub fn remove_fields(&mut self, is_removed: impl Fn(&[u8]) -> bool) {
        self.fields.remove(is_removed);
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

    /// Returns the body's framing.
    #[inline]
    pub fn body(&self) -> RequestBody {
        self.body
    }

    /// Returns whether the client wants the connection to persist (RFC 9112 section 9.3).
    #[inline]
    pub fn keep_alive(&self) -> bool {
        self.connection.persists(self.version)
    }

    /// Returns whether the client waits for 100 (Continue) before it sends its body. Never for
    /// HTTP/1.0, where the expectation is ignored, nor without a body (RFC 9110 section 10.1.1).
    #[inline]
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
            && self.version == Version::Http11
            && !matches!(self.body, RequestBody::None | RequestBody::Length(0))
    }

    /// Returns the Upgrade field's value if the request asks to upgrade: HTTP/1.1, `upgrade` listed
    /// in Connection, one Upgrade field, and `h2c` not among its protocols. `h2c` is obsolete (RFC
    /// 9113 section 3.1), and an HTTP/2 tunnel would take requests past every rule here; a server
    /// may always ignore Upgrade (RFC 9110 section 7.8). After [`RequestHead::keep_upgrade`] it is
    /// one protocol of the list, or none.
    #[inline]
    pub fn upgrade(&self) -> Option<&[u8]> {
        if self.upgrade.is_empty() {
            return None;
        }
        let value = self.fields.at(self.upgrade);
        (!list_elements(value).any(is_h2c)).then_some(value)
    }

    /// Reduces the requested protocols to the first one that is `allowed`, by its whole name or by
    /// the part before a version (`name/version`), ignoring case.
    pub fn keep_upgrade<T: AsRef<str>>(&mut self, allowed: &[T]) {
        if self.upgrade.is_empty() {
            return;
        }
        let is_allowed = |protocol: &&[u8]| {
            !is_h2c(protocol)
                && allowed.iter().any(|allowed| {
                    let allowed = allowed.as_ref().as_bytes();
                    protocol.eq_ignore_ascii_case(allowed)
                        || protocol_name(protocol).eq_ignore_ascii_case(allowed)
                })
        };
        let kept = list_elements(self.fields.at(self.upgrade)).find(is_allowed);
        self.upgrade = kept.map(|kept| self.fields.span_of(kept)).unwrap_or_default();
    }

    /// Returns whether the client sent `TE: trailers` (RFC 9110 section 10.1.4).
    pub fn accepts_trailers(&self) -> bool {
        self.fields.has(Known::Te)
            && self.fields().filter(|field| field.known == Known::Te).any(|field| {
                list_elements(field.value).any(|member| member.eq_ignore_ascii_case(b"trailers"))
            })
    }

    /// Returns the value of a cookie, as sent, from the first Cookie field that has it. Cookie
    /// names are case-sensitive (RFC 6265 section 5.4).
    pub fn cookie(&self, name: &str) -> Option<&[u8]> {
        if !self.fields.has(Known::Cookie) {
            return None;
        }
        self.cookies(name).next()
    }

    /// Returns the values of all cookies of a name. Spaces around a name or a value do not belong to it:
    /// most servers remove them.
    pub fn cookies(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.fields()
            .filter(|field| field.known == Known::Cookie)
            .flat_map(|field| field.value.split(|&b| b == b';').map(trim_ows))
            .filter_map(move |pair| {
                let value = trim_ows(pair.strip_prefix(name.as_bytes())?).strip_prefix(b"=")?;
                Some(trim_ows(value))
            })
    }

    /// Parses a complete head: `section` ends with its empty line and has passed `scan`.
    fn read(&mut self, section: &[u8], limits: &HeadLimits) -> Result<(), RequestError> {
        let mut room = [const { MaybeUninit::<httparse::Header<'_>>::uninit() }; FIELDS_MAX];
        let mut parsed = httparse::Request::new(&mut []);
        let status = parsed.parse_with_uninit_headers(section, &mut room);
        match status {
            Ok(httparse::Status::Complete(len)) if len == section.len() => {}
            Err(error) => return Err(diagnose(section, error)),
            // The scan has just found the end of the head.
            Ok(_) => return Err(RequestError::BadFieldName),
        }
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
            return Err(RequestError::BadMethod);
        };
        self.version = if parsed.version == Some(0) { Version::Http10 } else { Version::Http11 };
        if method.len() > METHOD_MAX_BYTES {
            return Err(RequestError::MethodTooLong);
        }
        if method == "CONNECT" {
            return Err(RequestError::ConnectNotSupported);
        }
        if target.len() > limits.target_max_bytes {
            return Err(RequestError::TargetTooLong);
        }
        self.text.push_str(method);
        self.text.push_str(target);
        self.method = Span::new(0, method.len());
        self.target = Span::new(method.len(), target.len());
        self.parts = Target::parse(method, target)?;
        self.read_fields(section, parsed.headers)?;
        self.connection = self.fields.read_connection()?;
        if self.connection.upgrade && self.version == Version::Http11 {
            let asked = self.fields.only(Known::Upgrade);
            self.upgrade = asked.map(|value| self.fields.span_of(value)).unwrap_or_default();
        }
        Ok(())
    }

    /// Stores the fields and derives the message's framing and destination.
    #[inline]
    fn read_fields(
        &mut self,
        section: &[u8],
        fields: &[httparse::Header<'_>],
    ) -> Result<(), RequestError> {
        let from = fields
            .first()
            .map_or(section.len(), |first| first.name.as_ptr().addr() - section.as_ptr().addr());
        let section = &section[from..];
        let base = section.as_ptr().addr();
        self.fields.start(section);
        let mut host: Option<&[u8]> = None;
        let mut length = None;
        let mut codings = TransferCodings::default();
        for field in fields {
            let known = Known::of(field.name.as_bytes());
            match known {
                Known::Host if host.is_some() => return Err(RequestError::RepeatedHost),
                Known::Host => host = Some(field.value),
                Known::ContentLength if length.is_some() => {
                    return Err(RequestError::RepeatedContentLength);
                }
                Known::ContentLength => {
                    length = Some(decimal(field.value).ok_or(RequestError::BadContentLength)?);
                }
                Known::TransferEncoding => codings.read(field.value),
                Known::Expect if field.value.eq_ignore_ascii_case(b"100-continue") => {
                    self.expects_continue = true;
                }
                Known::Expect => return Err(RequestError::UnknownExpectation),
                _ => {}
            }
            self.fields.push(base, field.name.as_bytes(), field.value, known);
        }
        self.body = self.framing(codings.coding(), length)?;
        self.read_host(host)
    }

    /// RFC 9112 sections 6.1 and 6.3.
    #[inline]
    fn framing(&self, coding: Coding, length: Option<u64>) -> Result<RequestBody, RequestError> {
        match (coding, length) {
            (Coding::None, None) => Ok(RequestBody::None),
            (Coding::None, Some(length)) => Ok(RequestBody::Length(length)),
            (_, Some(_)) => Err(RequestError::LengthAndTransferEncoding),
            (_, None) if self.version == Version::Http10 => Err(RequestError::TransferEncodingIn10),
            (Coding::Chunked, None) => Ok(RequestBody::Chunked),
            (Coding::Unknown, None) => Err(RequestError::UnknownTransferCoding),
            (Coding::Malformed, None) => Err(RequestError::BadTransferEncoding),
        }
    }

    /// RFC 9112 section 3.2. A Host beside an absolute target must be valid too, although it is
    /// unused.
    #[inline]
    fn read_host(&mut self, host: Option<&[u8]>) -> Result<(), RequestError> {
        let Some(host) = host else {
            return match self.version {
                Version::Http11 => Err(RequestError::MissingHost),
                Version::Http10 => Ok(()),
            };
        };
        let host_len = authority::host_len(host).ok_or(RequestError::BadHost)?;
        if self.parts.authority.is_empty() {
            let at = self.text.len();
            self.text.push_str(std::str::from_utf8(host).map_err(|_| RequestError::BadHost)?);
            self.parts.authority = Span::new(at, host.len());
            self.parts.host = Span::new(at, host_len);
        }
        Ok(())
    }
}

fn is_h2c(protocol: &[u8]) -> bool {
    protocol_name(protocol).eq_ignore_ascii_case(b"h2c")
}

/// Returns the name of a protocol without its version (RFC 9110 section 7.8).
fn protocol_name(protocol: &[u8]) -> &[u8] {
    protocol.split(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Returns the length of the empty lines at the start of `input` (RFC 9112 section 2.2).
#[inline]
fn skip_empty_lines(input: &[u8]) -> Result<usize, RequestError> {
    let mut at = 0;
    loop {
        match &input[at..] {
            [b'\r', b'\n', ..] if at == EMPTY_LINES_MAX * 2 => {
                return Err(RequestError::TooManyEmptyLines);
            }
            [b'\r', b'\n', ..] => at += 2,
            [b'\r', _, ..] => return Err(RequestError::BareCarriageReturn),
            [b'\n', ..] => return Err(RequestError::BareLineFeed),
            _ => return Ok(at),
        }
    }
}

/// Checks the end of a request line as soon as the line is complete: an HTTP/0.9 client sends
/// nothing after it and would wait.
#[inline]
fn check_version(line: &[u8]) -> Result<(), RequestError> {
    if line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0") {
        return Ok(());
    }
    let version = line.rsplit(|&b| b == b' ').next().unwrap_or_default();
    match version.strip_prefix(b"HTTP/") {
        Some([major, b'.', minor]) if major.is_ascii_digit() && minor.is_ascii_digit() => {
            Err(RequestError::VersionNotSupported)
        }
        _ if line.contains(&b'\r') => Err(RequestError::BareCarriageReturn),
        _ => Err(RequestError::MissingVersion),
    }
}

/// Returns the rule violated by a head that the parser refused.
#[cold]
fn diagnose(section: &[u8], error: httparse::Error) -> RequestError {
    let line_len = memchr::memchr(b'\n', section).map_or(section.len(), |feed| feed + 1);
    let (line, fields) = section.split_at(line_len);
    let line = line.strip_suffix(b"\r\n").unwrap_or(line);
    match error {
        httparse::Error::Token | httparse::Error::Version | httparse::Error::Status => {
            let method = line.split(|&b| b == b' ').next().unwrap_or_default();
            if line.contains(&b'\r') {
                RequestError::BareCarriageReturn
            } else if is_token(method) {
                RequestError::BadTarget
            } else {
                RequestError::BadMethod
            }
        }
        httparse::Error::NewLine => RequestError::BareCarriageReturn,
        httparse::Error::TooManyHeaders => RequestError::TooManyFields,
        httparse::Error::HeaderName | httparse::Error::HeaderValue => {
            RequestError::from(diagnose_fields(fields, false))
        }
    }
}

#[cfg(test)]
mod tests;
