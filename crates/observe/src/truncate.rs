//! Cuts texts of others that are too long for a log.

/// What follows a text that was cut.
pub const TRUNCATED: &[u8] = b"[truncated]";

/// Returns at most `max` bytes of `text`, up to a character's border if it is UTF-8. Of other bytes, it
/// returns `max`.
pub fn cut(text: &[u8], max: usize) -> &[u8] {
    // A character has at most three bytes after its first.
    let is_border = |at: &usize| text.get(*at).is_none_or(|byte| !matches!(byte, 0x80..0xC0));
    let end = (max.saturating_sub(3)..=max).rev().find(is_border).unwrap_or(max);
    &text[..end.min(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        for (text, max, kept) in [
            ("abc", 4, "abc"),
            ("abc", 3, "abc"),
            ("abc", 2, "ab"),
            ("abc", 0, ""),
            ("aé", 2, "a"),
            ("é", 1, ""),
            ("a\u{1f600}b", 4, "a"),
            ("a\u{1f600}b", 5, "a\u{1f600}"),
        ] {
            assert_eq!(cut(text.as_bytes(), max), kept.as_bytes(), "{text} {max}");
        }
        assert_eq!(cut(&[0x80; 9], 5), [0x80; 5]);
    }
}
