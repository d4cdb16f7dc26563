//! HPACK, header compression for HTTP/2 (RFC 7541).

mod decoder;
mod encoder;
mod field;
mod huffman;
mod integer;
mod static_table;

pub(crate) use decoder::Decoder;
pub(crate) use encoder::Encoder;
pub(crate) use field::{Kind, Line};
pub(crate) use static_table::index;

/// The size of both dynamic tables: the initial one (RFC 9113 section 6.5.2). A larger one takes more
/// memory per connection than it saves bytes.
pub(crate) const TABLE_MAX_BYTES: usize = 4096;

/// The most memory that the tables of both directions keep.
pub(crate) const MEMORY_MAX_BYTES: usize = decoder::MEMORY_MAX_BYTES + encoder::MEMORY_MAX_BYTES;
