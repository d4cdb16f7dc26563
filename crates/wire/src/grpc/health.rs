//! The messages of `grpc.health.v1.Health/Check`:
//!
//! ```proto
//! message HealthCheckRequest { string service = 1; }
//! message HealthCheckResponse { ServingStatus status = 1; }
//! ```
//!
//! Each is preceded by one byte that tells whether it is compressed, and its length in four bytes.

/// Maximum length of a service name.
pub const SERVICE_MAX_BYTES: usize = 1024;

/// The compression flag and the length.
const PREFIX_BYTES: usize = 5;

/// Field 1, a string.
const SERVICE_TAG: u8 = 0x0a;

/// The serving status of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServingStatus {
    /// The server does not know.
    Unknown,
    /// The service accepts requests.
    Serving,
    /// The service accepts no requests.
    NotServing,
    /// There is no such service. (Used for watching; a check is answered `NOT_FOUND` instead.)
    ServiceUnknown,
    /// A number that the protocol does not define.
    Other,
}

impl ServingStatus {
    /// Returns the protocol's name for it.
    pub fn name(self) -> &'static str {
        match self {
            ServingStatus::Unknown => "UNKNOWN",
            ServingStatus::Serving => "SERVING",
            ServingStatus::NotServing => "NOT_SERVING",
            ServingStatus::ServiceUnknown => "SERVICE_UNKNOWN",
            ServingStatus::Other => "a serving status that is not of the protocol",
        }
    }
}

/// Why a response cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthError {
    /// It is compressed, although no compression was offered.
    Compressed,
    /// It is not one complete message.
    Framing,
    /// The message is not valid protobuf, or not of this type.
    Message,
}

impl HealthError {
    /// Returns a description.
    pub fn detail(self) -> &'static str {
        match self {
            HealthError::Compressed => "the health service answers compressed, unasked",
            HealthError::Framing => "the health service's answer is not one whole message",
            HealthError::Message => "the health service's answer is malformed",
        }
    }
}

/// Appends the request for the health of `service`; empty: of the server as a whole. A name longer
/// than [`SERVICE_MAX_BYTES`] is the caller's error, and is sent all the same.
pub fn put_check_request(out: &mut Vec<u8>, service: &str) {
    let mut message = Vec::with_capacity(service.len() + 8);
    // An empty field is omitted (proto3).
    if !service.is_empty() {
        message.push(SERVICE_TAG);
        put_varint(&mut message, service.len());
        message.extend_from_slice(service.as_bytes());
    }
    out.push(0);
    // Names are far shorter than four bytes can express.
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(&message);
}

fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Parses the response, which is the whole body.
///
/// # Errors
/// Anything but one message of this type; unknown fields, which the protocol may add later, are
/// skipped.
pub fn read_answer(body: &[u8]) -> Result<ServingStatus, HealthError> {
    let Some((prefix, message)) = body.split_first_chunk::<PREFIX_BYTES>() else {
        return Err(HealthError::Framing);
    };
    let [flag, length @ ..] = *prefix;
    if usize::try_from(u32::from_be_bytes(length)) != Ok(message.len()) {
        return Err(HealthError::Framing);
    }
    match flag {
        0 => read_message(message).ok_or(HealthError::Message),
        1 => Err(HealthError::Compressed),
        _ => Err(HealthError::Framing),
    }
}

/// Of several values the last counts; none means 0 (proto3).
fn read_message(mut bytes: &[u8]) -> Option<ServingStatus> {
    let mut status = 0;
    while !bytes.is_empty() {
        let tag = take_varint(&mut bytes)?;
        let (field, kind) = (tag >> 3, tag & 7);
        match (field, kind) {
            (1, 0) => status = take_varint(&mut bytes)?,
            // There is no field 0, and field 1 is a number.
            (0 | 1, _) => return None,
            (_, 0) => _ = take_varint(&mut bytes)?,
            (_, 1) => bytes = bytes.get(8..)?,
            (_, 2) => {
                let length = usize::try_from(take_varint(&mut bytes)?).ok()?;
                bytes = bytes.get(length..)?;
            }
            (_, 5) => bytes = bytes.get(4..)?,
            _ => return None,
        }
    }
    Some(match status {
        0 => ServingStatus::Unknown,
        1 => ServingStatus::Serving,
        2 => ServingStatus::NotServing,
        3 => ServingStatus::ServiceUnknown,
        _ => ServingStatus::Other,
    })
}

/// At most ten bytes of seven bits, the lowest first.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if (bits << shift) >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(service: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_check_request(&mut out, service);
        out
    }

    fn framed(message: &[u8]) -> Vec<u8> {
        let mut out = vec![0];
        out.extend((message.len() as u32).to_be_bytes());
        out.extend(message);
        out
    }

    #[test]
    fn a_question_is_written_as_protobuf_does() {
        assert_eq!(request(""), [0, 0, 0, 0, 0]);
        assert_eq!(request("abc"), *b"\0\0\0\0\x05\x0a\x03abc");
        // From 128 bytes on the length takes two.
        let long = request(&"x".repeat(300));
        assert_eq!(long[..8], [0, 0, 0, 1, 47, 0x0a, 0xac, 0x02]);
        assert_eq!(long.len(), 5 + 303);
    }

    #[test]
    fn each_answer_has_its_meaning() {
        for (message, status) in [
            (&b""[..], ServingStatus::Unknown),
            (b"\x08\x00", ServingStatus::Unknown),
            (b"\x08\x01", ServingStatus::Serving),
            (b"\x08\x02", ServingStatus::NotServing),
            (b"\x08\x03", ServingStatus::ServiceUnknown),
            (b"\x08\x04", ServingStatus::Other),
            // A negative number, sign-extended to ten bytes.
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ServingStatus::Other),
            // The last counts.
            (b"\x08\x02\x08\x01", ServingStatus::Serving),
            // Fields that are not known yet: a number, eight bytes, text, four bytes.
            (b"\x10\x07\x19abcdefgh\x22\x02hi\x2dabcd\x08\x01", ServingStatus::Serving),
            // The longer way to write a number is allowed.
            (b"\x88\x00\x81\x00", ServingStatus::Serving),
        ] {
            assert_eq!(read_answer(&framed(message)), Ok(status), "{message:?}");
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let messages: [&[u8]; 10] = [
            b"\x08",
            b"\x08\x80",
            // Eleven bytes, and ten that hold more than 64 bits.
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x01",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
            b"\x0a\x01x",
            b"\x00\x01",
            b"\x11abc",
            b"\x12\x05abc",
            b"\x13",
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ];
        for message in messages {
            assert_eq!(read_answer(&framed(message)), Err(HealthError::Message), "{message:?}");
        }
        let framings: [&[u8]; 6] = [
            b"",
            b"\0\0\0\0",
            b"\0\0\0\0\x02\x08",
            b"\0\0\0\0\0x",
            b"\x02\0\0\0\0",
            b"\0\xff\xff\xff\xff",
        ];
        for body in framings {
            assert_eq!(read_answer(body), Err(HealthError::Framing), "{body:?}");
        }
        assert_eq!(read_answer(b"\x01\0\0\0\x02\x08\x01"), Err(HealthError::Compressed));
    }

    #[test]
    fn nothing_that_a_server_sends_panics() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..20_000 {
            let message: Vec<u8> = (0..rng.usize(..24)).map(|_| rng.u8(..)).collect();
            // Framed well, so that the message itself is read; and as it is.
            let _ = read_answer(&framed(&message));
            let _ = read_answer(&message);
        }
    }
}
