//! Decoder of the chunked transfer coding (RFC 9112 section 7.1), however its bytes are split. Data
//! is not copied: the caller learns where it lies in its own buffer. `encode` writes chunks.

use std::ops::Range;

use super::encode::put_field;
use super::error::ChunkError;
use super::grammar::{is_token, is_value_byte, trim_ows};
use super::known::Known;

/// More digits than 63 bits need, so that leading zeros are bounded.
const SIZE_DIGITS_MAX: u8 = 16;

/// How much a chunked body may carry besides its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// How much longer chunk extensions may be than twice the data they came with.
    pub extensions_max_bytes: u32,
    /// The whole trailer section.
    pub trailers_max_bytes: u32,
}

impl Default for ChunkLimits {
    /// 4 KiB of extensions, 8 KiB of trailers.
    fn default() -> ChunkLimits {
        ChunkLimits { extensions_max_bytes: 4 * 1024, trailers_max_bytes: 8 * 1024 }
    }
}

/// The result of one call of [`ChunkedDecoder::decode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Bytes of input that have been processed, including `data`.
    pub consumed: usize,
    /// Where body data lies in the input; may be empty.
    pub data: Range<usize>,
    /// Whether the body is complete, including trailers. The next message begins after `consumed`.
    pub end: bool,
}

/// The position of the next byte in the coding.
///
/// ```text
/// Size ─┬──────────────┬─▶ SizeFeed ─┬─▶ Data ─▶ DataReturn ─▶ DataFeed ─▶ Size
///       └▶ Extension* ─┘             └─▶ TrailerStart ─▶ LastFeed ─▶ End
///                                          ▲   └▶ Trailer ┐
///                                          └──────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the digits of the size.
    Size,
    /// After the size, in whitespace that only an extension may follow.
    BeforeExtension,
    /// In the extensions.
    Extension,
    /// After the CR of a chunk's header.
    SizeFeed,
    /// In the data.
    Data,
    /// Before the CR that follows data.
    DataReturn,
    /// Before the LF that follows data.
    DataFeed,
    /// At the start of a trailer line, or of the empty line that ends the body.
    TrailerStart,
    /// In a trailer line.
    Trailer,
    /// Before the body's last LF.
    LastFeed,
    /// All done.
    End,
}

/// Decodes one chunked body. Allocates only if there are trailers, and keeps what it allocated.
#[derive(Clone, Debug)]
pub struct ChunkedDecoder {
    limits: ChunkLimits,
    state: State,
    digits: u8,
    /// The size being read, then the remaining length of the chunk's data.
    left: u64,
    /// Extension bytes beyond those permitted by the data so far.
    extension_bytes: u64,
    trailer_bytes: usize,
    /// The trailer line being read.
    line: Vec<u8>,
    trailers: Vec<u8>,
}

impl ChunkedDecoder {
    /// Returns a decoder at the start of a body.
    pub fn new(limits: ChunkLimits) -> ChunkedDecoder {
        ChunkedDecoder {
            limits,
            state: State::Size,
            digits: 0,
            left: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
            line: Vec::new(),
            trailers: Vec::new(),
        }
    }

    /// Resets it for another body. Capacities are kept.
    pub fn reset(&mut self) {
        self.state = State::Size;
        self.digits = 0;
        self.left = 0;
        self.extension_bytes = 0;
        self.trailer_bytes = 0;
        self.line.clear();
        self.trailers.clear();
    }

    /// Returns whether the body is complete.
    pub fn is_end(&self) -> bool {
        self.state == State::End
    }

    /// Continues with `input`, which starts where the last call's `consumed` ended. Stops after one
    /// run of data: call again with the rest while something was consumed and the end has not been
    /// reached. After an error the body is lost.
    ///
    /// # Errors
    /// The chunked coding is invalid or exceeds its limits.
    pub fn decode(&mut self, input: &[u8]) -> Result<Chunk, ChunkError> {
        let mut at = 0;
        while self.state != State::End {
            if self.state == State::Data {
                let rest = (input.len() - at) as u64;
                let take = self.left.min(rest) as usize;
                self.left -= take as u64;
                if self.left == 0 {
                    self.state = State::DataReturn;
                }
                return Ok(Chunk { consumed: at + take, data: at..at + take, end: false });
            }
            if self.state == State::Trailer {
                at += self.trailer(&input[at..])?;
                if self.state == State::Trailer {
                    break;
                }
                continue;
            }
            let Some(&byte) = input.get(at) else {
                break;
            };
            at += 1;
            self.step(byte)?;
        }
        Ok(Chunk { consumed: at, data: at..at, end: self.state == State::End })
    }

    /// Returns the trailer fields as `name: value` lines with CRLF, ready to be forwarded; complete
    /// once the end has been reached. Fields that frame, route, authenticate or describe the
    /// message, or concern the connection, are left out (RFC 9110 section 6.5.1).
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Processes one byte that is neither data nor inside a trailer line.
    #[inline]
    fn step(&mut self, byte: u8) -> Result<(), ChunkError> {
        self.state = match (self.state, byte) {
            (State::Size, _) if byte.is_ascii_hexdigit() => return self.digit(byte),
            (State::Size, _) if self.digits == 0 => return Err(ChunkError::BadSize),
            (State::Size | State::Extension, b'\r') => State::SizeFeed,
            (State::Size | State::BeforeExtension, b';') => {
                self.extension_byte()?;
                State::Extension
            }
            (State::Size | State::BeforeExtension, b' ' | b'\t') => {
                self.extension_byte()?;
                State::BeforeExtension
            }
            (State::Size | State::BeforeExtension, b'\r' | b'\n') => {
                return Err(ChunkError::MissingLineEnd);
            }
            (State::Size | State::BeforeExtension, _) => return Err(ChunkError::BadSize),
            (State::Extension, b'\n') => return Err(ChunkError::MissingLineEnd),
            (State::Extension, _) if is_value_byte(byte) => {
                self.extension_byte()?;
                State::Extension
            }
            (State::Extension, _) => return Err(ChunkError::BadExtension),
            (State::SizeFeed, b'\n') => self.begin_chunk(),
            (State::DataReturn, b'\r') => State::DataFeed,
            (State::DataFeed, b'\n') => State::Size,
            (State::TrailerStart, b'\r') => State::LastFeed,
            (State::LastFeed, b'\n') => State::End,
            (State::TrailerStart, _) => {
                self.line.clear();
                self.line.push(byte);
                self.trailer_bytes += 1;
                if byte == b'\n' {
                    return Err(ChunkError::MissingLineEnd);
                }
                State::Trailer
            }
            (State::SizeFeed | State::DataReturn | State::DataFeed | State::LastFeed, _) => {
                return Err(ChunkError::MissingLineEnd);
            }
            // `decode` handles these itself.
            (State::Data | State::Trailer | State::End, _) => self.state,
        };
        Ok(())
    }

    #[inline]
    fn digit(&mut self, byte: u8) -> Result<(), ChunkError> {
        let value = match byte {
            b'0'..=b'9' => byte - b'0',
            _ => (byte | 0x20) - b'a' + 10,
        };
        self.digits += 1;
        // 63 bits: sizes are signed numbers in some parsers.
        if self.digits > SIZE_DIGITS_MAX || self.left >= 1 << 59 {
            return Err(ChunkError::SizeTooLarge);
        }
        self.left = self.left << 4 | u64::from(value);
        Ok(())
    }

    #[inline]
    fn extension_byte(&mut self) -> Result<(), ChunkError> {
        self.extension_bytes += 1;
        if self.extension_bytes > u64::from(self.limits.extensions_max_bytes) {
            return Err(ChunkError::ExtensionTooLong);
        }
        Ok(())
    }

    /// Handles a complete header line.
    #[inline]
    fn begin_chunk(&mut self) -> State {
        self.digits = 0;
        if self.left == 0 {
            return State::TrailerStart;
        }
        self.extension_bytes = self.extension_bytes.saturating_sub(self.left.saturating_mul(2));
        State::Data
    }

    /// Continues a trailer line; returns how much of `input` belongs to it.
    fn trailer(&mut self, input: &[u8]) -> Result<usize, ChunkError> {
        let feed = memchr::memchr(b'\n', input);
        let len = feed.map_or(input.len(), |feed| feed + 1);
        self.trailer_bytes += len;
        if self.trailer_bytes > self.limits.trailers_max_bytes as usize {
            return Err(ChunkError::TrailersTooLarge);
        }
        self.line.extend_from_slice(&input[..len]);
        if feed.is_some() {
            let line = self.line.strip_suffix(b"\r\n").ok_or(ChunkError::MissingLineEnd)?;
            let colon = memchr::memchr(b':', line).ok_or(ChunkError::BadTrailer)?;
            let (name, value) = (&line[..colon], trim_ows(&line[colon + 1..]));
            if !is_token(name) || !value.iter().all(|&b| is_value_byte(b)) {
                return Err(ChunkError::BadTrailer);
            }
            if !is_forbidden_trailer(name) {
                put_field(&mut self.trailers, name, value);
            }
            self.state = State::TrailerStart;
        }
        Ok(len)
    }
}

/// Returns the value of the trailer with that name, from lines of trailers.
pub fn trailer<'a>(lines: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    lines.split(|&byte| byte == b'\n').find_map(|line| {
        let (field, value) = line.split_at(line.iter().position(|&byte| byte == b':')?);
        field.eq_ignore_ascii_case(name).then(|| value[1..].trim_ascii())
    })
}

/// Returns whether a field must not be forwarded as a trailer (RFC 9110 section 6.5.1).
pub fn is_forbidden_trailer(name: &[u8]) -> bool {
    /// In addition to those in `Known`: request modifiers, authentication, response control and
    /// content description.
    const OTHERS: [&str; 19] = [
        "age",
        "cache-control",
        "content-encoding",
        "content-range",
        "expires",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "if-range",
        "if-unmodified-since",
        "max-forwards",
        "pragma",
        "proxy-authenticate",
        "proxy-authentication-info",
        "range",
        "vary",
        "via",
        "warning",
        "www-authenticate",
    ];
    match Known::of(name) {
        Known::Other => {
            Known::is_masked(name)
                || OTHERS.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes()))
        }
        Known::Server
        | Known::UserAgent
        | Known::Referer
        | Known::Tracestate
        | Known::GrpcStatus => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests;
