//! Errors of connections and streams.

use std::fmt;

/// An error code (RFC 9113 section 7). Unknown codes keep their number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)+) => {
        impl Code {
            $($(#[$doc])* pub const $name: Code = Code($number);)+

            /// Returns the code's name in the registry; `None` for unknown codes.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)+
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// No error: a graceful end.
    NO_ERROR = 0x0;
    /// An unspecific violation.
    PROTOCOL_ERROR = 0x1;
    /// An unexpected internal error.
    INTERNAL_ERROR = 0x2;
    /// The peer did not respect flow control.
    FLOW_CONTROL_ERROR = 0x3;
    /// SETTINGS were not acknowledged in time.
    SETTINGS_TIMEOUT = 0x4;
    /// A frame after a stream's end.
    STREAM_CLOSED = 0x5;
    /// A frame of an invalid size.
    FRAME_SIZE_ERROR = 0x6;
    /// The stream was not processed at all: the request can be sent again.
    REFUSED_STREAM = 0x7;
    /// The stream is not needed any more.
    CANCEL = 0x8;
    /// Header compression cannot be continued.
    COMPRESSION_ERROR = 0x9;
    /// The connection of a CONNECT request was reset.
    CONNECT_ERROR = 0xa;
    /// The peer causes excessive load.
    ENHANCE_YOUR_CALM = 0xb;
    /// The transport's security is insufficient.
    INADEQUATE_SECURITY = 0xc;
    /// HTTP/1.1 is required.
    HTTP_1_1_REQUIRED = 0xd;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {:#x}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A violation of the protocol by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The code of the GOAWAY or `RST_STREAM` frame that is sent.
    pub code: Code,
    /// The rule that was violated.
    pub rule: &'static str,
}

impl Violation {
    pub(crate) const fn new(code: Code, rule: &'static str) -> Violation {
        Violation { code, rule }
    }

    pub(crate) const fn protocol(rule: &'static str) -> Violation {
        Violation::new(Code::PROTOCOL_ERROR, rule)
    }

    pub(crate) const fn size(rule: &'static str) -> Violation {
        Violation::new(Code::FRAME_SIZE_ERROR, rule)
    }

    pub(crate) const fn load(rule: &'static str) -> Violation {
        Violation::new(Code::ENHANCE_YOUR_CALM, rule)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.rule)
    }
}

impl std::error::Error for Violation {}

/// Why a stream ended before its message was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The peer reset it.
    ByPeer(Code),
    /// The peer has not processed the stream, as stated by GOAWAY or `REFUSED_STREAM`. Any request
    /// can be retried, whatever its method.
    Unprocessed,
    /// The peer violated the protocol on this stream, which was reset.
    Violation(Violation),
}

/// Why a client's request was refused before it was reported. It has been reset or answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its head violates RFC 9113 section 8; the stream was reset.
    Malformed(&'static str),
    /// Its head is larger than announced; it was answered with 431.
    HeadTooLarge,
    /// The client has its maximum number of streams already; the stream was reset.
    TooManyStreams,
}
