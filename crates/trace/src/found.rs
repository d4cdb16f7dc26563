//! The result of reading a record from a buffer.

/// Longest packet that is read, in bytes: what tcpdump and tshark write and read at most.
pub const PACKET_MAX_BYTES: usize = 262_144;

/// What a format's parser makes of the bytes at hand.
pub(crate) enum Found {
    /// A packet: its bytes stand at `start..end`, and `consumed` bytes are done with.
    Record { time_ns: i64, link: u32, wire_bytes: u32, start: usize, end: usize, consumed: usize },
    /// A frame number without a packet.
    NoPacket { consumed: usize },
    /// Nothing to tell; `consumed` bytes are done with, and may be more than are at hand.
    Passed { consumed: usize },
    /// This many bytes must be at hand before anything can be said.
    Need(usize),
    /// The bytes make no sense.
    Broken(String),
}
