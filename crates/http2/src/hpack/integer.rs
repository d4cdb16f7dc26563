//! Integers of RFC 7541 section 5.1: a prefix within a byte, then seven bits a byte.

/// The integer is incomplete, or larger than HPACK needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadInteger;

/// More continuation bytes are refused: four of them express 2²⁸, more than any length or index.
const CONTINUATIONS_MAX: u32 = 4;

/// Reads an integer with a prefix of `prefix` bits at the start of `bytes`; returns it and the
/// number of bytes that it takes.
#[inline]
pub(crate) fn decode(bytes: &[u8], prefix: u32) -> Result<(usize, usize), BadInteger> {
    let mask = (1_usize << prefix) - 1;
    let first = usize::from(*bytes.first().ok_or(BadInteger)?) & mask;
    if first < mask { Ok((first, 1)) } else { continued(bytes, mask) }
}

fn continued(bytes: &[u8], mask: usize) -> Result<(usize, usize), BadInteger> {
    let mut value = mask;
    for (index, &byte) in (0..CONTINUATIONS_MAX).zip(&bytes[1..]) {
        value += usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok((value, index as usize + 2));
        }
    }
    Err(BadInteger)
}

/// Appends `value` with a prefix of `prefix` bits; `flags` holds the upper bits of the first byte.
#[inline]
pub(crate) fn encode(value: usize, prefix: u32, flags: u8, out: &mut Vec<u8>) {
    let mask = (1_usize << prefix) - 1;
    if value < mask {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541 appendix C.1.
    #[test]
    fn the_examples_of_the_rfc() {
        for (value, prefix, bytes) in
            [(10, 5, &[0x0a][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a])]
        {
            let mut out = Vec::new();
            encode(value, prefix, 0, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(decode(bytes, prefix), Ok((value, bytes.len())));
        }
    }

    #[test]
    fn all_prefixes_and_sizes() {
        for prefix in 1..=8 {
            for value in (0..600).chain([16_383, 16_384, 1 << 21, (1 << 28) - 1]) {
                let mut out = Vec::new();
                encode(value, prefix, 0, &mut out);
                assert_eq!(decode(&out, prefix), Ok((value, out.len())));
                for end in 0..out.len() {
                    assert_eq!(decode(&out[..end], prefix), Err(BadInteger));
                }
            }
        }
    }

    #[test]
    fn endless_integers_are_refused() {
        assert_eq!(decode(&[0xff; 9], 7), Err(BadInteger));
        assert_eq!(decode(&[0xff, 0x80, 0x80, 0x80, 0x80, 0x00], 7), Err(BadInteger));
    }
}
