//! Compares sequence numbers as serial numbers (RFC 1982), which wrap at 32 bits.

/// `one` comes after `other`. Of two numbers half of all apart each comes after the other and before
/// it, as in tshark.
pub(crate) fn is_after(one: u32, other: u32) -> bool {
    is_before(other, one)
}

/// `one` comes before `other`.
pub(crate) fn is_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() < 0
}
