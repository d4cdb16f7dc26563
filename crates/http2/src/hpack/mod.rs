//! HPACK, header compression for HTTP/2 (RFC 7541).

mod decoder;
mod encoder;
mod field;
mod huffman;
mod integer;
mod static_table;
mod table;

pub(crate) use decoder::Decoder;
pub(crate) use encoder::Encoder;
pub(crate) use field::{Kind, Line};
pub(crate) use static_table::index;

/// The size of both dynamic tables: the initial one (RFC 9113 section 6.5.2). A larger one takes
/// more memory per connection than it saves bytes.
pub(crate) const TABLE_MAX_BYTES: usize = 4096;

/// The most memory that both directions keep.
pub(crate) const MEMORY_MAX_BYTES: usize = table::memory_max_bytes::<decoder::Name>()
    + table::memory_max_bytes::<()>()
    + encoder::SEEN_BYTES;
