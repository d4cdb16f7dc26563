//! Converts HTTP/2 message heads (RFC 9113 section 8) to the text form of HTTP/1.1, and back.
//!
//! Everything above the connection uses one strict parser and one encoder for heads, those of
//! [`crate::http1`]; an HTTP/2 stream converts at its edge. What comes from a peer has passed
//! through the types of the `http` crate, whose names and values contain no line end (except for
//! `:protocol`, see [`is_protocol`]), so the text has exactly the fields that the peer sent; what
//! the parser does not accept is refused as in HTTP/1.1.

pub mod frames;
mod read;
mod request;
mod response;

pub use read::{TextError, read_trailers, trailer};
pub use request::{Protocol, can_carry_authority, is_protocol, read_request, write_request};
pub use response::{read_response, write_response};

use http::HeaderMap;

use crate::http1::{Known, encode, is_forbidden_trailer};

/// Appends trailers as lines of text, except those that must not be forwarded as trailers (RFC 9110
/// section 6.5.1): a server that merges them into the fields would trust them.
pub fn write_trailers(trailers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in trailers {
        let name = name.as_str().as_bytes();
        if !is_forbidden_trailer(name) {
            encode::put_field(out, name, value.as_bytes());
        }
    }
}

/// Returns whether a field frames a message or concerns one connection only: HTTP/2 expresses these
/// differently (RFC 9113 section 8.2.2).
fn is_of_the_connection(known: Known) -> bool {
    known != Known::Te && known.is_hop_by_hop()
}

#[cfg(test)]
mod tests;
