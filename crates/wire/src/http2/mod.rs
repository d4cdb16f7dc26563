//! Message heads of HTTP/2 (RFC 9113 section 8) in the text of HTTP/1.1, and back.
//!
//! Everything behind the connection reads heads with one strict parser and writes them with one
//! writer, [`crate::http1`]'s; a stream of HTTP/2 translates at its edge. What comes from a peer
//! has passed through the types of the `http` crate, whose names and values hold no line end (but
//! for `:protocol`, see [`is_protocol`]), so
//! the text has the fields that the peer sent and no others; what the parser does not take is
//! refused as it would be in HTTP/1.1.

pub mod frames;
mod read;
mod request;
mod response;

pub use read::{TextError, read_trailers, trailer};
pub use request::{Protocol, can_carry_authority, is_protocol, read_request, write_request};
pub use response::{read_response, write_response};

use http::HeaderMap;

use crate::http1::{Known, encode, is_forbidden_trailer};

/// Appends trailers as lines of text, but those that must not be passed on as trailers (RFC 9110
/// section 6.5.1): a server that merges them into the fields would believe them.
pub fn write_trailers(trailers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in trailers {
        let name = name.as_str().as_bytes();
        if !is_forbidden_trailer(name) {
            encode::put_field(out, name, value.as_bytes());
        }
    }
}

/// Whether a field frames a message or is about one connection only: HTTP/2 says such things in
/// other ways (RFC 9113 section 8.2.2).
fn is_of_the_connection(known: Known) -> bool {
    known != Known::Te && known.is_hop_by_hop()
}

#[cfg(test)]
mod tests;
