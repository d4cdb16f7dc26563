//! A mixing step for hashes of values that no attacker chooses.

/// Spreads every bit of `x` over all bits of the result; one to one (the finalizer of `SplitMix64`,
/// Steele, Lea and Flood 2014).
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
