//! Character classes and the small productions that several messages share (RFC 9110 section 5).
//! Implemented as tables, so that a byte costs one load.

/// `tchar` of RFC 9110 section 5.6.2.
static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0_usize;
    while b < 128 {
        table[b] = (b as u8).is_ascii_alphanumeric();
        b += 1;
    }
    let extra = b"!#$%&'*+-.^_`|~";
    let mut i = 0;
    while i < extra.len() {
        table[extra[i] as usize] = true;
        i += 1;
    }
    table
};

/// Returns whether `b` may occur in a token.
#[inline]
pub const fn is_token_byte(b: u8) -> bool {
    TOKEN[b as usize]
}

/// Returns whether `bytes` is a token: not empty, `tchar` only.
#[inline]
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&b| is_token_byte(b))
}

/// Returns whether `b` may occur in a field value (RFC 9110 section 5.5): visible, obs-text, SP or
/// HTAB.
#[inline]
pub fn is_value_byte(b: u8) -> bool {
    b == b'\t' || (b >= b' ' && b != 0x7f)
}

/// Returns `bytes` without the optional whitespace (SP, HTAB) around it.
#[inline]
pub(super) fn trim_ows(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = bytes {
        bytes = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// Returns the elements of a comma-separated list (RFC 9110 section 5.6.1), trimmed; empty ones are
/// included, so that a strict caller sees them. Quoted strings are not parsed.
#[inline]
pub(super) fn list_elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(trim_ows)
}

/// Returns the number that `1*DIGIT` is, at most 2⁶³-1; no sign, no whitespace, no other base.
#[inline]
pub fn decimal(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for &b in bytes {
        if !b.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(b - b'0'))?;
    }
    // Lengths are also stored as signed numbers, here and in servers; half the range is plenty.
    i64::try_from(value).ok().map(|_| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        for good in ["GET", "a", "!#$%&'*+-.^_`|~09azAZ"] {
            assert!(is_token(good.as_bytes()), "{good}");
        }
        for bad in ["", " ", "a b", "a:", "a(", "é", "a\0", "\"", "a/b", "{", "a\x7f"] {
            assert!(!is_token(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn decimals() {
        assert_eq!(decimal(b"0"), Some(0));
        assert_eq!(decimal(b"0000000000000000000000000000042"), Some(42));
        assert_eq!(decimal(b"9223372036854775807"), Some(i64::MAX as u64));
        for bad in [
            "",
            "9223372036854775808",
            "18446744073709551616",
            "+5",
            "-5",
            "0x5",
            "5,5",
            " 5",
            "5 ",
            "5a",
            "5.0",
            "٥",
        ] {
            assert_eq!(decimal(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn whitespace_is_trimmed_at_both_ends_only() {
        assert_eq!(trim_ows(b" \t a b\t "), b"a b");
        assert_eq!(trim_ows(b" \t "), b"");
        assert_eq!(list_elements(b" a ,, b\t,").collect::<Vec<_>>(), [&b"a"[..], b"", b"b", b""]);
    }
}
