//! How an exchange of the small client can fail.

use std::fmt;
use std::io;

use model::Cause;
use wire::http1::ResponseError;

use crate::body::BodyError;
use crate::http2::StreamError;

/// Why an exchange failed.
#[derive(Debug)]
pub enum ClientError {
    /// The request cannot be sent as it is; nothing was sent.
    BadRequest(&'static str),
    /// The server closed or reset the connection before sending anything of a response. On a kept
    /// connection that is the normal race with the server's idle timeout.
    Closed {
        /// Whether the connection had served an exchange before.
        kept: bool,
        /// The system's error, unless the stream simply ended.
        source: Option<io::Error>,
    },
    /// The connection ended or broke within the response.
    Incomplete(Option<io::Error>),
    /// The response is not valid; contains the violated rule.
    Malformed(&'static str),
    /// The response head is larger than accepted.
    HeadTooLarge,
    /// Not complete in time.
    Timeout {
        /// Whether the response head had arrived.
        in_body: bool,
    },
}

impl ClientError {
    pub(super) fn of_head(error: ResponseError) -> ClientError {
        match error {
            ResponseError::HeadTooLarge | ResponseError::TooManyFields => ClientError::HeadTooLarge,
            other => ClientError::Malformed(other.detail()),
        }
    }

    /// Returns the error for a connection that broke, before anything of a response arrived or
    /// (`begun`) after.
    pub(super) fn of_break(source: Option<io::Error>, kept: bool, begun: bool) -> ClientError {
        // The peer violated the protocol; the network is not at fault.
        if let Some(StreamError::Violation(violation)) = source.as_ref().map(StreamError::of) {
            return ClientError::Malformed(violation.rule);
        }
        if begun { ClientError::Incomplete(source) } else { ClientError::Closed { kept, source } }
    }

    /// Returns the system's or TLS's error, if there is one.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            ClientError::Closed { source, .. } | ClientError::Incomplete(source) => source.as_ref(),
            _ => None,
        }
    }

    /// Returns the corresponding cause.
    pub fn cause(&self) -> Cause {
        match self {
            ClientError::BadRequest(_) => Cause::ProxyInternalError,
            ClientError::Closed { kept: true, .. } => Cause::ServerClosedIdleConnection,
            ClientError::Closed { kept: false, .. } => Cause::ConnectionTerminated,
            ClientError::Incomplete(_) => Cause::HttpResponseIncomplete,
            ClientError::Malformed(_) => Cause::HttpProtocolError,
            ClientError::HeadTooLarge => Cause::HttpResponseHeadTooLarge,
            ClientError::Timeout { in_body: false } => Cause::HttpResponseTimeout,
            ClientError::Timeout { in_body: true } => Cause::ConnectionReadTimeout,
        }
    }
}

impl From<BodyError> for ClientError {
    fn from(error: BodyError) -> ClientError {
        match error {
            BodyError::Io(error) => ClientError::Incomplete(Some(error)),
            BodyError::Ended => ClientError::Incomplete(None),
            BodyError::Chunk(error) => ClientError::Malformed(error.detail()),
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::BadRequest(why) => write!(f, "the request cannot be sent: {why}"),
            ClientError::Closed { source: Some(source), .. } => {
                write!(f, "connection lost before a response: {source}")
            }
            ClientError::Closed { .. } => f.write_str("connection closed before a response"),
            ClientError::Incomplete(Some(source)) => {
                write!(f, "connection lost within the response: {source}")
            }
            ClientError::Incomplete(None) => f.write_str("connection closed within the response"),
            ClientError::Malformed(why) => write!(f, "not a valid HTTP response: {why}"),
            ClientError::HeadTooLarge => f.write_str("the response head is too large"),
            ClientError::Timeout { in_body: false } => f.write_str("no response head in time"),
            ClientError::Timeout { in_body: true } => {
                f.write_str("the response body was not complete in time")
            }
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.io().map(|error| error as &(dyn std::error::Error + 'static))
    }
}
