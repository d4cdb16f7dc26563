//! The parts of gRPC that a server of small messages needs (gRPC's `doc/PROTOCOL-HTTP2.md`): a message in its frame, and
//! the status that ends a call.

use std::fmt::Write as _;

/// The most bytes that the message of a request may have.
pub const MESSAGE_MAX_BYTES: usize = 4_096;
/// The most bytes of a request's body: the message and its prefix.
pub const BODY_MAX_BYTES: usize = MESSAGE_MAX_BYTES + PREFIX_BYTES;
const PREFIX_BYTES: usize = 5;

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The request is not what it should be.
    InvalidArgument,
    /// It took too long.
    DeadlineExceeded,
    /// What it asks for does not exist.
    NotFound,
    /// The request is too large.
    ResourceExhausted,
    /// There will be no answer until the configuration is another one.
    FailedPrecondition,
    /// There is no such method, or no such form of messages.
    Unimplemented,
    /// There is no answer at the moment.
    Unavailable,
}

impl Code {
    /// Returns its number in `grpc-status`.
    pub fn number(self) -> u32 {
        match self {
            Code::InvalidArgument => 3,
            Code::DeadlineExceeded => 4,
            Code::NotFound => 5,
            Code::ResourceExhausted => 8,
            Code::FailedPrecondition => 9,
            Code::Unimplemented => wire::grpc::UNIMPLEMENTED,
            Code::Unavailable => 14,
        }
    }
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its kind.
    pub code: Code,
    /// One line for people.
    pub message: String,
}

impl Status {
    /// Creates a status.
    pub fn new(code: Code, message: impl Into<String>) -> Status {
        Status { code, message: message.into() }
    }

    /// Returns `grpc-message`: percent-encoded, so that it fits into a header field.
    pub fn message_field(&self) -> String {
        const BYTES_MAX: usize = 1_024;
        let mut field = String::new();
        for byte in self.message.bytes() {
            if field.len() >= BYTES_MAX {
                break;
            }
            match byte {
                b'%' | ..b' ' | 0x7f.. => {
                    // Writing into a String never fails.
                    let _ = write!(field, "%{byte:02X}");
                }
                _ => field.push(char::from(byte)),
            }
        }
        field
    }
}

/// What a request's head says.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The method, such as `POST`.
    pub method: &'a [u8],
    /// `Content-Type`.
    pub content_type: Option<&'a [u8]>,
    /// `grpc-encoding`.
    pub encoding: Option<&'a [u8]>,
}

/// Why a request is refused because of its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The client does not speak gRPC: it gets this status of HTTP.
    Http(u16),
    /// With a status of gRPC.
    Grpc(Status),
}

/// Checks the head of a request.
///
/// # Errors
/// How it is refused.
pub fn check(head: Head<'_>) -> Result<(), Refusal> {
    if !head.content_type.is_some_and(wire::grpc::is_content_type) {
        return Err(Refusal::Http(415));
    }
    if head.method != b"POST" {
        return Err(Refusal::Http(405));
    }
    if head.encoding.is_some_and(|encoding| encoding != b"identity") {
        return Err(Refusal::Grpc(compressed()));
    }
    Ok(())
}

fn compressed() -> Status {
    Status::new(Code::Unimplemented, "messages must not be compressed (grpc-encoding: identity)")
}

/// Returns the message in the whole body of a request.
///
/// # Errors
/// There is not exactly one, or it is compressed or too long.
pub fn message(body: &[u8]) -> Result<&[u8], Status> {
    let invalid = |what: &str| Err(Status::new(Code::InvalidArgument, what));
    let Some((prefix, rest)) = body.split_first_chunk::<PREFIX_BYTES>() else {
        return invalid("the request has no message");
    };
    let [flag, length @ ..] = *prefix;
    match flag {
        0 => {}
        1 => return Err(compressed()),
        _ => return invalid("the message has an invalid prefix"),
    }
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > MESSAGE_MAX_BYTES {
        return Err(too_long());
    }
    match rest.len().cmp(&length) {
        std::cmp::Ordering::Less => invalid("the message is cut off"),
        std::cmp::Ordering::Equal => Ok(rest),
        std::cmp::Ordering::Greater => invalid("the request has more than one message"),
    }
}

/// Returns the status of a request that is too long.
pub fn too_long() -> Status {
    let message = format!("the request's message has more than {MESSAGE_MAX_BYTES} bytes");
    Status::new(Code::ResourceExhausted, message)
}

/// Returns a message of a response in its frame.
pub fn framed(message: &impl prost::Message) -> Vec<u8> {
    let message = message.encode_to_vec();
    let mut frame = Vec::with_capacity(PREFIX_BYTES + message.len());
    frame.push(0);
    frame.extend(u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend(message);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_message() {
        let long = [&[0, 0, 0, 0x10, 1][..], &[0; 4_097]].concat();
        for (body, expected) in [
            (&b"\0\0\0\0\0"[..], Ok(&b""[..])),
            (b"\0\0\0\0\x02ab", Ok(b"ab")),
            (b"", Err(Code::InvalidArgument)),
            (b"\0\0\0\0", Err(Code::InvalidArgument)),
            (b"\0\0\0\0\x02a", Err(Code::InvalidArgument)),
            (b"\0\0\0\0\x01ab", Err(Code::InvalidArgument)),
            (b"\x01\0\0\0\x01a", Err(Code::Unimplemented)),
            (b"\x02\0\0\0\x01a", Err(Code::InvalidArgument)),
            (b"\0\xff\xff\xff\xffa", Err(Code::ResourceExhausted)),
            (&long, Err(Code::ResourceExhausted)),
        ] {
            assert_eq!(message(body).map_err(|status| status.code), expected, "{body:?}");
        }
    }

    #[test]
    fn heads_are_checked() {
        let check = |method: &str, content_type: Option<&str>, encoding: Option<&str>| {
            check(Head {
                method: method.as_bytes(),
                content_type: content_type.map(str::as_bytes),
                encoding: encoding.map(str::as_bytes),
            })
        };
        let grpc = Some("application/grpc");
        assert_eq!(check("POST", grpc, None), Ok(()));
        assert_eq!(check("POST", Some("application/grpc+proto"), Some("identity")), Ok(()));
        assert_eq!(check("GET", grpc, None), Err(Refusal::Http(405)));
        for wrong in [None, Some("application/json"), Some("application/grpc-web")] {
            assert_eq!(check("POST", wrong, None), Err(Refusal::Http(415)), "{wrong:?}");
        }
        assert_eq!(check("POST", grpc, Some("gzip")), Err(Refusal::Grpc(compressed())));
    }

    #[test]
    fn messages_fit_into_a_field() {
        let status = Status::new(Code::NotFound, "100 % é\n");
        assert_eq!(status.message_field(), "100 %25 %C3%A9%0A");
        let long = Status::new(Code::NotFound, "\u{7f}".repeat(10_000));
        assert!(long.message_field().len() < 1_030);
    }
}
