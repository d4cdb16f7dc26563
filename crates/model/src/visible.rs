//! Texts of others for people to read: bounded, and without characters that could forge lines or change a
//! terminal.

use std::fmt::Write as _;

/// Returns the start of a text, at most `bytes_max` long, with control characters as `\xNN`, and others that cannot
/// be seen as Rust escapes them.
pub fn visible(text: &str, bytes_max: usize) -> String {
    let mut out = String::new();
    for character in text.chars() {
        let before = out.len();
        if character.is_control() {
            // There is no control character above U+009F. Writing to a String cannot fail.
            let _ = write!(out, "\\x{:02x}", u32::from(character));
        } else if matches!(character, '"' | '\'' | '\\') {
            out.push(character);
        } else {
            out.extend(character.escape_debug());
        }
        if out.len() > bytes_max {
            out.truncate(before);
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_before_what_does_not_fit() {
        for (text, max, wanted) in [
            ("a\nb", 9, "a\\x0ab"),
            ("a\nb", 5, "a\\x0a"),
            ("a\nb", 4, "a"),
            ("é\u{9b}", 6, "é\\x9b"),
            ("a\u{202e}", 99, "a\\u{202e}"),
            ("éé", 3, "é"),
            ("\"a\"", 9, "\"a\""),
            ("", 0, ""),
        ] {
            assert_eq!(visible(text, max), wanted, "{text:?} {max}");
        }
    }
}
