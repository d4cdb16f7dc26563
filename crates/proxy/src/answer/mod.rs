//! Answers that Weir generates itself: refusals, errors, redirects. Written into the caller's
//! buffer without allocating, since floods of bad requests are answered here.
//!
//! They reveal only what anyone may know: cause and request ID, never an address, a server or a
//! service.

mod body;
mod form;
mod grpc;
mod reason;

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::sync::Arc;
use std::time::Duration;

use decide::error_page::Chosen;
use model::{Cause, Content, Fault};
use wire::http1::{RequestHead, Version};

use crate::head::{Bytes, OwnFields};

use body::Facts;
use form::Form;
use reason::reason;

/// A response that Weir generates.
pub(crate) struct Answer {
    /// 0: nothing is sent, because the client has gone.
    pub(crate) status: u16,
    pub(crate) cause: Cause,
    /// Detail beyond the cause, if any.
    pub(crate) detail: &'static str,
    /// The status that a server sent and that was not passed on.
    pub(crate) received_status: Option<u16>,
    pub(crate) retry_after: Option<Duration>,
    /// Target of a redirect; a redirect has no body.
    pub(crate) location: Option<String>,
    /// The value of `WWW-Authenticate`: what the client can prove itself with (RFC 9110 section 11.6.1).
    pub(crate) challenge: Option<String>,
    /// A configured content, in place of one that tells the cause.
    pub(crate) content: Option<Arc<Content>>,
}

/// Facts about the exchange that an answer ends.
pub(crate) struct Occasion<'a> {
    /// `None`: the head could not be parsed.
    pub(crate) request: Option<&'a RequestHead>,
    /// As in the access log; may contain any bytes that a trusted peer sent.
    pub(crate) request_id: &'a [u8],
    /// Whether the listener reports causes in `Proxy-Status`.
    pub(crate) proxy_status: bool,
    /// Whether the connection closes after this answer.
    pub(crate) close: bool,
    /// Whether it answers a gRPC call over HTTP/2.
    pub(crate) grpc: bool,
    /// The error page to send instead of a body that tells the cause.
    pub(crate) page: Option<Chosen<'a>>,
    pub(crate) own: OwnFields<'a>,
}

/// What differs between the heads of answers.
struct Head<'a> {
    status: u16,
    content_type: Option<&'a str>,
    /// Caches may store it, as far as its own fields allow. An error would outlive its cause there.
    stored: bool,
}

impl Answer {
    /// Returns the answer for `cause`.
    pub(crate) fn of(cause: Cause) -> Answer {
        Answer {
            status: cause.status(),
            cause,
            detail: "",
            received_status: None,
            retry_after: None,
            location: None,
            challenge: None,
            content: None,
        }
    }

    /// Returns whether it answers an error, rather than as the route is configured to.
    pub(crate) fn is_error(&self) -> bool {
        self.cause.status() > 0
    }

    /// Appends the whole response; for a HEAD request only the head.
    pub(crate) fn write(&self, occasion: &Occasion<'_>, out: &mut Vec<u8>) {
        self.write_at(os::clock::wall().as_secs(), occasion, out);
    }

    /// Appends the response as of a given time in seconds since the epoch.
    fn write_at(&self, now_s: u64, occasion: &Occasion<'_>, out: &mut Vec<u8>) {
        // A configured response is sent as it is.
        if occasion.grpc && self.content.is_none() {
            return self.write_grpc(now_s, occasion, out);
        }
        if let Some(content) = &self.content {
            return self.write_content(now_s, (content, false), occasion, out);
        }
        if let Some(Chosen { content, varies }) = occasion.page {
            return self.write_content(now_s, (content, varies), occasion, out);
        }
        let form = match (&self.location, occasion.request) {
            (Some(_), _) => None,
            (None, Some(request)) => Some(form::form(request)),
            (None, None) => Some(Form::Text),
        };
        let content_type = form.map(Form::content_type);
        let head = Head { status: self.status, content_type, stored: !self.is_error() };
        self.write_head(now_s, head, occasion, out);
        let head_end = out.len();
        if let Some(form) = form {
            let facts = Facts {
                status: self.status,
                cause: self.cause,
                detail: self.public_detail(),
                request_id: occasion.request_id,
            };
            body::write(form, &facts, out);
        }
        let length = out.len() - head_end;
        if occasion.request.is_some_and(RequestHead::is_head) {
            out.truncate(head_end);
        }
        // The length is only known now and goes before the body. 20 bytes of name, at most 20
        // digits.
        let mut last_line = Cursor::new([0; 48]);
        let _ = write!(last_line, "Content-Length: {length}\r\n\r\n");
        let used = last_line.position() as usize;
        out.splice(head_end..head_end, last_line.get_ref()[..used].iter().copied());
    }

    /// Appends the whole response with a configured content, which may vary with `Accept`.
    fn write_content(
        &self,
        now_s: u64,
        (content, varies): (&Content, bool),
        occasion: &Occasion<'_>,
        out: &mut Vec<u8>,
    ) {
        let Content { media_type, fields, body } = content;
        let head = Head {
            status: self.status,
            content_type: media_type.as_deref(),
            stored: !self.is_error() || fields.iter().any(|(name, _)| name == "cache-control"),
        };
        self.write_head(now_s, head, occasion, out);
        if varies {
            out.extend_from_slice(b"Vary: Accept\r\n");
        }
        for (name, value) in fields {
            // The head has one already, from what is known of this error.
            if name == "retry-after" && self.retry_after.is_some() {
                continue;
            }
            if occasion.own.replace(name.as_bytes()) {
                continue;
            }
            let _ = write!(Bytes(out), "{name}: {}\r\n", &**value);
        }
        // A 204 has no Content-Length (RFC 9110 section 8.6).
        if self.status != 204 {
            let _ = write!(Bytes(out), "Content-Length: {}\r\n", body.len());
        }
        out.extend_from_slice(b"\r\n");
        if !occasion.request.is_some_and(RequestHead::is_head) {
            out.extend_from_slice(body);
        }
    }

    /// Appends the response to a gRPC call: a head that has the status of the call and ends the stream
    /// ("Trailers-Only" in gRPC over HTTP/2).
    fn write_grpc(&self, now_s: u64, occasion: &Occasion<'_>, out: &mut Vec<u8>) {
        let content_type = Some("application/grpc");
        self.write_head(now_s, Head { status: 200, content_type, stored: false }, occasion, out);
        let _ = write!(Bytes(out), "grpc-status: {}\r\ngrpc-message: ", self.grpc_status());
        grpc::write_message(self.cause, self.public_detail(), out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Returns the status of the call that this answers, if it is a gRPC call.
    pub(crate) fn grpc_status(&self) -> u8 {
        grpc::status(self.cause, self.status, self.detail)
    }

    /// Appends the head except for its last lines.
    fn write_head(
        &self,
        now_s: u64,
        Head { status, content_type, stored }: Head<'_>,
        occasion: &Occasion<'_>,
        out: &mut Vec<u8>,
    ) {
        // Writing to a Vec cannot fail.
        let _ = write!(Bytes(out), "HTTP/1.1 {status} {}\r\n", reason(status));
        out.extend_from_slice(b"Date: ");
        wire::date::put_imf_fixdate(out, now_s);
        out.extend_from_slice(b"\r\n");
        if let Some(location) = &self.location {
            let _ = write!(Bytes(out), "Location: {location}\r\n");
        }
        if let Some(content_type) = content_type {
            let _ = write!(Bytes(out), "Content-Type: {content_type}\r\n");
        }
        if !stored {
            out.extend_from_slice(b"Cache-Control: no-store\r\n");
        }
        if occasion.proxy_status && self.is_error() {
            self.write_proxy_status(out);
        }
        out.extend_from_slice(b"X-Request-Id: ");
        body::write_id(occasion.request_id, out);
        out.extend_from_slice(b"\r\n");
        occasion.own.write(out);
        if self.cause == Cause::HttpMethodNotAllowed {
            // RFC 9110 section 15.5.6 requires it.
            out.extend_from_slice(b"Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n");
        }
        if let Some(challenge) = &self.challenge {
            let _ = write!(Bytes(out), "WWW-Authenticate: {challenge}\r\n");
        }
        if let Some(wait) = self.retry_after {
            // Whole seconds (RFC 9110 section 10.2.3); 0 would invite immediate retries.
            let seconds = wait.as_millis().div_ceil(1000).max(1);
            let _ = write!(Bytes(out), "Retry-After: {seconds}\r\n");
        }
        if occasion.close {
            out.extend_from_slice(b"Connection: close\r\n");
        } else if occasion.request.is_some_and(|r| r.version() == Version::Http10) {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
    }

    /// Appends Proxy-Status (RFC 9209 section 2), strings as defined by RFC 8941 section 3.3.3.
    fn write_proxy_status(&self, out: &mut Vec<u8>) {
        let _ = write!(Bytes(out), "Proxy-Status: weir; error={}", self.cause.name());
        if let Some(status) = self.received_status {
            let _ = write!(Bytes(out), "; received-status={status}");
        }
        let detail = self.public_detail();
        if !detail.is_empty() {
            out.extend_from_slice(b"; details=\"");
            for byte in detail.bytes().filter(|byte| (b' '..=b'~').contains(byte)) {
                if matches!(byte, b'"' | b'\\') {
                    out.push(b'\\');
                }
                out.push(byte);
            }
            out.push(b'"');
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Returns the detail that the client may see. What is wrong with its request is shown to the
    /// client; what is wrong behind Weir appears only in the access log.
    fn public_detail(&self) -> &'static str {
        // Whether a user exists is nothing for those who guess.
        let is_public = self.cause.fault() == Fault::Client && self.cause != Cause::Unauthenticated;
        if is_public { self.detail } else { "" }
    }
}

#[cfg(test)]
mod tests;
