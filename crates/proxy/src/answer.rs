//! Answers that Weir makes itself: refusals, redirects, errors.

use std::fmt::Write as _;
use std::time::Duration;

use model::Cause;
use wire::http1::{RequestHead, Version};

use crate::head::Bytes;

/// What is answered.
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    pub(crate) cause: Cause,
    /// What exactly, where there is more to say than the cause does.
    pub(crate) detail: &'static str,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) location: Option<&'a str>,
}

impl<'a> Answer<'a> {
    /// The answer that stands for `cause`.
    pub(crate) fn of(cause: Cause) -> Answer<'a> {
        Answer { status: cause.status(), cause, detail: "", retry_after: None, location: None }
    }

    /// Appends the whole response. `close` says that the connection ends with it.
    pub(crate) fn write(&self, request: Option<&RequestHead>, close: bool, out: &mut Vec<u8>) {
        let mut body = String::new();
        if self.location.is_none() {
            // Writing to a String cannot fail.
            let _ = writeln!(body, "{} {}", self.status, reason(self.status));
            let _ = write!(body, "{}", self.cause.name());
            if !self.detail.is_empty() {
                let _ = write!(body, ": {}", self.detail);
            }
            body.push('\n');
        }
        let mut head = Bytes(out);
        let _ = write!(head, "HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        let _ = write!(head, "Content-Length: {}\r\n", body.len());
        if !body.is_empty() {
            let _ = head.write_str("Content-Type: text/plain; charset=utf-8\r\n");
        }
        if let Some(location) = self.location {
            let _ = write!(head, "Location: {location}\r\n");
        }
        if let Some(wait) = self.retry_after {
            // Whole seconds (RFC 9110 section 10.2.3); 0 would ask for a storm.
            let _ = write!(head, "Retry-After: {}\r\n", wait.as_millis().div_ceil(1000).max(1));
        }
        let _ = write!(head, "Date: {}\r\n", date());
        if close {
            let _ = head.write_str("Connection: close\r\n");
        } else if request.is_some_and(|r| r.version() == Version::Http10) {
            let _ = head.write_str("Connection: keep-alive\r\n");
        }
        let _ = head.write_str("\r\n");
        if !request.is_some_and(RequestHead::is_head) {
            let _ = head.write_str(&body);
        }
    }
}

fn date() -> String {
    let date = wire::date::imf_fixdate(os::clock::wall().as_secs());
    String::from_utf8_lossy(&date).into_owned()
}

/// The reason phrase of a status that Weir itself sends (RFC 9110 section 15).
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        410 => "Gone",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
