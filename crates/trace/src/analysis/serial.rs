//! Sequence numbers compared as RFC 1982 compares serial numbers: around the end of 32 bits.

/// `one` comes after `other`.
pub(crate) fn is_after(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() > 0
}

/// `one` comes before `other`.
pub(crate) fn is_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() < 0
}
