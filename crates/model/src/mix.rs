//! Hashes of values that no attacker chooses.

/// Spreads every bit of `x` over all bits of the result; one to one (the finalizer of `SplitMix64`,
/// Steele, Lea and Flood 2014).
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns a hash of some bytes, the same in every process and version.
pub fn hash_bytes(bytes: impl Iterator<Item = u8>) -> u64 {
    // FNV-1a, then one round of mixing, since its high bits alone are weak for short input.
    let fnv = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mix(fnv)
}
