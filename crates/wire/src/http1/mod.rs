//! HTTP/1.1 messages (RFC 9112): parsing heads and chunked bodies, and encoding.
//!
//! Strict on purpose. Weir sits between parsers that it does not know; anything that two of them
//! might interpret differently is refused here, so that nothing ambiguous is ever forwarded.
//! Reading is [`parse_request`], [`parse_response`] and [`ChunkedDecoder`]; writing is [`encode`].
//! The proxy moves bytes, applies timeouts and answers errors.

mod authority;
mod cdn_loop;
mod chunked;
mod codings;
pub mod encode;
mod error;
pub mod forwarded;
mod grammar;
mod head;
mod known;
mod request;
mod response;
mod scan;
mod target;

pub use chunked::{Chunk, ChunkLimits, ChunkedDecoder, is_forbidden_trailer, trailer};
pub use encode::chunk_header;
pub use error::{ChunkError, RequestError, ResponseError};
pub use grammar::{decimal, is_token, is_token_byte, is_value_byte};
pub use head::{FIELDS_MAX, FieldRef, Fields, HeadLimits, Parsed, Version};
pub use known::{Known, is_same_field};
pub use request::{METHOD_MAX_BYTES, RequestBody, RequestHead, parse_request};
pub use response::{ResponseBody, ResponseHead, parse_response};

/// Maximum number of informational responses before a final one (RFC 9110 section 15.2); a server
/// that sends more is broken.
pub const INFORMATIONAL_MAX: u8 = 16;
