//! Why an upload, or one request of it, failed: one line for people, and whether a retry may help.

use std::fmt;
use std::time::Duration;

use transport::client::ClientError;
use transport::dial::DialError;

/// Why a request failed.
#[derive(Debug)]
pub enum UploadError {
    /// The name has no address.
    Lookup {
        /// The name.
        host: String,
        /// What the system said.
        why: String,
    },
    /// No connection to any address.
    Dial(DialError),
    /// The connection failed within an exchange.
    Exchange(ClientError),
    /// The store refused.
    Refused {
        /// The response's status.
        status: u16,
        /// The `Code` of S3's error, if there is one.
        code: String,
        /// Its `Message`, or what else the body begins with.
        message: String,
    },
    /// The store's answer makes no sense.
    Unexpected(String),
    /// Not done in time.
    Late(Duration),
    /// It was stopped, and by which signal.
    Stopped(&'static str),
}

impl UploadError {
    /// Whether another attempt may succeed: what the network did, and what a store says when it
    /// has too much to do (Amazon S3's guidance on retries).
    pub fn may_pass(&self) -> bool {
        match self {
            UploadError::Lookup { .. } | UploadError::Dial(_) | UploadError::Late(_) => true,
            UploadError::Exchange(error) => !matches!(error, ClientError::BadRequest(_)),
            UploadError::Refused { status, code, .. } => {
                // Of a completion that fails, only the code tells: its status was sent before (see
                // "CompleteMultipartUpload" in the API's reference).
                let passing = [
                    "InternalError",
                    "OperationAborted",
                    "RequestTimeout",
                    "ServiceUnavailable",
                    "SlowDown",
                ];
                matches!(status, 408 | 429 | 500..=599) || passing.contains(&code.as_str())
            }
            UploadError::Unexpected(_) | UploadError::Stopped(_) => false,
        }
    }

    /// Whether the store knows nothing of the upload (any more).
    pub(super) fn is_no_such_upload(&self) -> bool {
        matches!(self, UploadError::Refused { code, .. } if code == "NoSuchUpload")
    }

    /// A response that is no success.
    pub(super) fn refused(status: u16, body: &[u8]) -> UploadError {
        let text = String::from_utf8_lossy(body);
        let code = element(&text, "Code").unwrap_or_default();
        let message = match element(&text, "Message") {
            Some(message) => message,
            None if code.is_empty() => one_line(&text),
            None => String::new(),
        };
        UploadError::Refused { status, code, message }
    }
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UploadError::Lookup { host, why } => write!(f, "no address for {host}: {why}"),
            UploadError::Dial(error) => error.fmt(f),
            UploadError::Exchange(error) => error.fmt(f),
            UploadError::Refused { status, code, message } => {
                write!(f, "{status}")?;
                for text in [code.as_str(), message.trim_end_matches('.')] {
                    if !text.is_empty() {
                        write!(f, " {text}")?;
                    }
                }
                f.write_str(match code.as_str() {
                    "SignatureDoesNotMatch" => "; check the secret key and the region",
                    "InvalidAccessKeyId" => "; check the access key",
                    "RequestTimeTooSkewed" => "; check this machine's clock",
                    "NoSuchBucket" => "; the bucket must exist: --bucket",
                    "PermanentRedirect" | "AuthorizationHeaderMalformed" => {
                        "; the bucket is in another region"
                    }
                    "EntityTooSmall" => "; raise --part-size: Amazon S3 asks for 5 MiB",
                    _ => "",
                })
            }
            UploadError::Unexpected(what) => f.write_str(what),
            UploadError::Late(time) => write!(f, "not done within {time:?}"),
            UploadError::Stopped(by) => write!(f, "stopped by {by}"),
        }
    }
}

impl std::error::Error for UploadError {}

/// Characters of a foreign text that are shown.
const SHOWN_MAX: usize = 300;

/// The text of the first element of that name. An error is looked at, not parsed: it comes with or
/// without a namespace, and from proxies that are no S3.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
        .iter()
        .fold(inner.to_owned(), |text, (entity, character)| text.replace(entity, character));
    Some(one_line(&plain))
}

/// Foreign text in one line without control characters, cut where it gets long.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_control() || c.is_whitespace());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(SHOWN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_line_with_code_and_message() {
        let body = b"<?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code>\
            <Message>The specified bucket\n does not &lt;exist&gt;</Message></Error>";
        let error = UploadError::refused(404, body);
        assert_eq!(
            error.to_string(),
            "404 NoSuchBucket The specified bucket does not <exist>; the bucket must exist: \
             --bucket"
        );
        assert!(!error.may_pass());
    }

    #[test]
    fn a_refusal_by_something_else_is_shown_as_it_is() {
        let error = UploadError::refused(502, b"bad\x1b[31m gateway\r\n");
        assert_eq!(error.to_string(), "502 bad [31m gateway");
        assert!(error.may_pass());
        assert_eq!(UploadError::refused(503, b"").to_string(), "503");
        let long = UploadError::refused(500, "é".repeat(10_000).as_bytes()).to_string();
        assert_eq!(long.chars().count(), "500 ".len() + SHOWN_MAX);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for (status, code, wanted) in [
            (503, "SlowDown", true),
            (400, "RequestTimeout", true),
            (200, "InternalError", true),
            (200, "AccessDenied", false),
            (429, "", true),
            (403, "SignatureDoesNotMatch", false),
            (400, "EntityTooSmall", false),
        ] {
            let (code, message) = (code.to_owned(), String::new());
            let error = UploadError::Refused { status, code, message };
            assert_eq!(error.may_pass(), wanted, "{error}");
        }
    }
}
