//! From decoded fields to the text of a head.

use wire::http1::encode::{put_field, put_status_line, reason_phrase};
use wire::http1::{Version, decimal, is_forbidden_trailer, is_token};

use super::Scratch;
use crate::hpack::{Kind, Line};
use crate::priority::Priority;

/// Why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It breaks a rule: an error of the stream (RFC 9113 section 8.1.1).
    Malformed(&'static str),
    /// It is larger than announced.
    TooLarge,
}

/// Which message a block belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Request,
    Response {
        /// To an extended CONNECT.
        upgrades: bool,
    },
    Trailers,
}

/// Properties of a request besides its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestFacts {
    pub(crate) content_length: Option<u64>,
    pub(crate) priority: Option<Priority>,
    /// An extended CONNECT.
    pub(crate) upgrades: bool,
}

/// Properties of the request that affect how its response is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseContext<'a> {
    /// It was a HEAD.
    pub(crate) is_head: bool,
    /// The block ends the stream.
    pub(crate) ended: bool,
    /// It was an extended CONNECT: the protocol, and the accepting value for its key.
    pub(crate) upgrade: Option<(&'a str, &'a str)>,
}

/// A range of the buffer of pseudo-header fields.
type Part = Option<(usize, usize)>;

/// Builds the text of one head from its fields.
pub(crate) struct HeadReader<'a> {
    text: &'a mut Vec<u8>,
    cookies: &'a mut Vec<u8>,
    pseudo: &'a mut Vec<u8>,
    message: Message,
    size: usize,
    size_max: usize,
    fault: Option<Fault>,
    /// A regular field was read: pseudo-header fields are no longer allowed.
    begun: bool,
    method: Part,
    scheme: Part,
    authority: Part,
    path: Part,
    protocol: Part,
    status: u16,
    content_length: Option<u64>,
    priority: Option<Priority>,
}

impl<'a> HeadReader<'a> {
    /// Begins a head of at most `size_max` bytes as RFC 9113 section 6.5.2 counts them. Also
    /// returns the buffer for literals.
    pub(crate) fn new(
        scratch: &'a mut Scratch,
        message: Message,
        size_max: usize,
    ) -> (HeadReader<'a>, &'a mut Vec<u8>) {
        let Scratch { text, cookies, pseudo, line } = scratch;
        text.clear();
        cookies.clear();
        pseudo.clear();
        let reader = HeadReader {
            text,
            cookies,
            pseudo,
            message,
            size: 0,
            size_max,
            fault: None,
            begun: false,
            method: None,
            scheme: None,
            authority: None,
            path: None,
            protocol: None,
            status: 0,
            content_length: None,
            priority: None,
        };
        (reader, line)
    }

    /// Adds the next field.
    #[inline]
    pub(crate) fn field(&mut self, line: Line<'_>) {
        self.size += line.size();
        if self.size > self.size_max || self.fault.is_some() {
            return;
        }
        if line.kind == Kind::Plain && self.begun && self.message != Message::Trailers {
            self.text.extend_from_slice(line.bytes);
        } else if let Err(fault) = self.special(line) {
            self.fault = Some(fault);
        }
    }

    fn special(&mut self, line: Line<'_>) -> Result<(), Fault> {
        let malformed = |rule| Err(Fault::Malformed(rule));
        if line.kind.is_pseudo() {
            return self.pseudo_field(line);
        }
        match line.kind {
            Kind::Invalid => return malformed("a field name or value has forbidden characters"),
            Kind::OfConnection => return malformed("a connection-specific field"),
            Kind::Te if line.value() != b"trailers" => return malformed("TE is not trailers"),
            Kind::Ignored => return Ok(()),
            _ => {}
        }
        if self.message == Message::Trailers {
            // RFC 9110 section 6.5.1: a server that merges these into the fields would trust them.
            if !is_forbidden_trailer(line.name()) {
                self.text.extend_from_slice(line.bytes);
            }
            return Ok(());
        }
        if !self.begun {
            self.begin()?;
        }
        match line.kind {
            Kind::Host if self.message == Message::Request => return self.host(line),
            Kind::Cookie if self.message == Message::Request => {
                // HTTP/1.1 has one field for all (RFC 9113 section 8.2.3).
                if !self.cookies.is_empty() {
                    self.cookies.extend_from_slice(b"; ");
                }
                self.cookies.extend_from_slice(line.value());
                return Ok(());
            }
            Kind::ContentLength => {
                let length = decimal(line.value());
                if length.is_none()
                    || self.content_length.is_some_and(|known| Some(known) != length)
                {
                    return malformed("content-length is not one number");
                }
                if self.content_length.replace(length.unwrap_or(0)).is_some() {
                    return Ok(());
                }
            }
            Kind::Priority => {
                self.priority = Some(match self.priority {
                    Some(before) => before.joined(line.value()),
                    None => Priority::parse(line.value()),
                });
            }
            Kind::WebSocketHandshake if self.is_extended_connect() => return Ok(()),
            _ => {}
        }
        self.text.extend_from_slice(line.bytes);
        Ok(())
    }

    /// Returns whether this is an extended CONNECT or the response to one. Its text gets handshake
    /// fields of its own.
    fn is_extended_connect(&self) -> bool {
        self.protocol.is_some() || self.message == (Message::Response { upgrades: true })
    }

    fn pseudo_field(&mut self, line: Line<'_>) -> Result<(), Fault> {
        let malformed = |rule| Err(Fault::Malformed(rule));
        if self.message == Message::Trailers {
            return malformed("a pseudo-header field in trailers");
        }
        if self.begun {
            return malformed("a pseudo-header field after a regular one");
        }
        let is_request = self.message == Message::Request;
        let part = match line.kind {
            Kind::Status if !is_request => {
                let &[b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] = line.value() else {
                    return malformed(":status is not a status");
                };
                if self.status != 0 {
                    return malformed("a pseudo-header field twice");
                }
                self.status = decimal(line.value()).unwrap_or(0) as u16;
                return Ok(());
            }
            Kind::Method if is_request => &mut self.method,
            Kind::Scheme if is_request => &mut self.scheme,
            Kind::Authority if is_request => &mut self.authority,
            Kind::Path if is_request => &mut self.path,
            Kind::Protocol if is_request => &mut self.protocol,
            _ => return malformed("a pseudo-header field of the other kind of message"),
        };
        let start = self.pseudo.len();
        self.pseudo.extend_from_slice(line.value());
        match part.replace((start, self.pseudo.len())) {
            None => Ok(()),
            Some(_) => malformed("a pseudo-header field twice"),
        }
    }

    /// Writes the start line.
    fn begin(&mut self) -> Result<(), Fault> {
        self.begun = true;
        match self.message {
            Message::Request => self.request_line(),
            Message::Response { .. } if self.status == 0 => Err(Fault::Malformed("no :status")),
            Message::Response { upgrades } => {
                // RFC 8441 section 5: a 2xx accepts, as a 101 does in HTTP/1.1.
                let accepts = upgrades && self.status / 100 == 2;
                let status = if accepts { 101 } else { self.status };
                let reason = reason_phrase(status).as_bytes();
                put_status_line(self.text, Version::Http11, status, reason);
                Ok(())
            }
            Message::Trailers => Ok(()),
        }
    }

    fn request_line(&mut self) -> Result<(), Fault> {
        let malformed = |rule| Err(Fault::Malformed(rule));
        let part = |part: Part| part.map(|(start, end)| &self.pseudo[start..end]);
        let Some(method) = part(self.method).filter(|method| is_token(method)) else {
            return malformed("no :method, or not a method");
        };
        let authority = part(self.authority);
        let is_connect = method == b"CONNECT";
        let (method, target) = if is_connect && self.protocol.is_none() {
            // RFC 9113 section 8.5.
            let (None, None, Some(authority)) = (self.scheme, self.path, authority) else {
                return malformed("CONNECT has an :authority only");
            };
            (method, authority)
        } else {
            match part(self.protocol) {
                Some(_) if !is_connect => return malformed(":protocol without CONNECT"),
                Some(protocol) if !is_token(protocol) => {
                    return malformed(":protocol is not a protocol");
                }
                _ => {}
            }
            if !part(self.scheme).is_some_and(is_scheme) {
                return malformed("no :scheme, or not a scheme");
            }
            let is_target = |path: &&[u8]| {
                path.first() == Some(&b'/') || (*path == b"*" && method == b"OPTIONS")
            };
            let Some(path) = part(self.path).filter(is_target) else {
                return malformed("no :path, or not a path");
            };
            (if is_connect { &b"GET"[..] } else { method }, path)
        };
        // HTTP/1.1 delimits by spaces.
        let is_visible = |byte: &u8| *byte > b' ' && *byte != 0x7f;
        if !target.iter().chain(authority.unwrap_or_default()).all(is_visible) {
            return malformed("a space in :path or :authority");
        }
        self.text.extend_from_slice(method);
        self.text.push(b' ');
        self.text.extend_from_slice(target);
        self.text.extend_from_slice(b" HTTP/1.1\r\n");
        if let Some(authority) = authority {
            put_field(self.text, b"Host", authority);
        }
        Ok(())
    }

    /// A Host beside `:authority` must be the same (RFC 9113 section 8.3.1).
    fn host(&mut self, line: Line<'_>) -> Result<(), Fault> {
        match self.authority.map(|(start, end)| &self.pseudo[start..end]) {
            Some(authority) if !authority.eq_ignore_ascii_case(line.value()) => {
                Err(Fault::Malformed("Host differs from :authority"))
            }
            Some(_) => Ok(()),
            None => {
                self.text.extend_from_slice(line.bytes);
                Ok(())
            }
        }
    }

    /// Ends the fields; returns the first fault.
    fn check(&mut self) -> Result<(), Fault> {
        match self.fault {
            _ if self.size > self.size_max => Err(Fault::TooLarge),
            Some(fault) => Err(fault),
            None if self.begun => Ok(()),
            None => self.begin(),
        }
    }

    /// Ends a request's head. `ended`: there is no body and there are no trailers. `key`: for an
    /// Upgrade to WebSocket.
    pub(crate) fn finish_request(
        mut self,
        ended: bool,
        key: fn() -> String,
    ) -> Result<RequestFacts, Fault> {
        self.check()?;
        if !self.cookies.is_empty() {
            put_field(self.text, b"Cookie", self.cookies);
        }
        if let Some((start, end)) = self.protocol {
            // A tunnel has no length (RFC 9113 section 8.5); HTTP/1.1 would read it as a body's
            // length.
            if self.content_length.is_some() {
                return Err(Fault::Malformed("content-length of a tunnel"));
            }
            let protocol = &self.pseudo[start..end];
            self.text.extend_from_slice(b"Connection: Upgrade\r\n");
            put_field(self.text, b"Upgrade", protocol);
            if protocol.eq_ignore_ascii_case(b"websocket") {
                put_field(self.text, b"Sec-WebSocket-Key", key().as_bytes());
            }
        } else if ended {
            if self.content_length.is_some_and(|length| length > 0) {
                return Err(Fault::Malformed("content-length without content"));
            }
        } else if self.content_length.is_none() {
            self.text.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        self.text.extend_from_slice(b"\r\n");
        Ok(RequestFacts {
            content_length: self.content_length,
            priority: self.priority,
            upgrades: self.protocol.is_some(),
        })
    }

    /// Ends a response's head; returns its status as received, and the length of its content, as
    /// far as that is known.
    pub(crate) fn finish_response(
        mut self,
        context: ResponseContext<'_>,
    ) -> Result<(u16, Option<u64>), Fault> {
        let malformed = |rule| Err(Fault::Malformed(rule));
        self.check()?;
        let ResponseContext { is_head, ended, upgrade } = context;
        match self.status {
            // RFC 9113 section 8.6.
            101 => return malformed(":status 101"),
            ..200 if ended => return malformed("an informational response that ends its stream"),
            _ => {}
        }
        let upgrade = upgrade.filter(|_| self.status / 100 == 2);
        let mut content = self.content_length;
        // Neither has a body, whatever its fields say (RFC 9110 sections 15.2 and 15.3.5).
        let bodiless = is_head || matches!(self.status, ..200 | 204 | 304);
        if let Some((protocol, accept)) = upgrade {
            self.text.extend_from_slice(b"Connection: Upgrade\r\n");
            put_field(self.text, b"Upgrade", protocol.as_bytes());
            put_field(self.text, b"Sec-WebSocket-Accept", accept.as_bytes());
            content = None;
        } else if bodiless {
            content = Some(0);
        } else {
            match content {
                None if ended => self.text.extend_from_slice(b"Content-Length: 0\r\n"),
                None => self.text.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
                Some(length) if ended && length > 0 => {
                    return malformed("content-length without content");
                }
                Some(_) => {}
            }
        }
        self.text.extend_from_slice(b"\r\n");
        Ok((self.status, content))
    }

    /// Ends trailers.
    pub(crate) fn finish_trailers(mut self) -> Result<(), Fault> {
        self.check()
    }
}

/// RFC 3986 section 3.1.
fn is_scheme(text: &[u8]) -> bool {
    let is_rest = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    text.first().is_some_and(u8::is_ascii_alphabetic) && text.iter().all(is_rest)
}
