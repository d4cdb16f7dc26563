//! Text from outside, as a terminal may show it.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns text from outside as a terminal may show it: characters that control it, or that reorder or hide
/// text, are written out.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        if is_hidden(char) {
            // Writing to a String cannot fail.
            _ = write!(out, "\\u{{{:x}}}", u32::from(char));
        } else {
            out.push(char);
        }
    }
    Cow::Owned(out)
}

/// Whether a character may not be shown: controls, line separators, marks of direction, joiners, fillers, marks that are drawn over the character
/// before them, and other characters without a shape.
pub(crate) fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{2800}'
            | '\u{3164}' | '\u{fe20}'..='\u{fe2f}' | '\u{ffa0}')
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_cannot_control_a_terminal() {
        assert_eq!(clean("catalog"), "catalog");
        assert_eq!(clean("a\u{1b}[2Jb\r\n\u{9b}c"), "a\\u{1b}[2Jb\\u{d}\\u{a}\\u{9b}c");
        assert_eq!(clean("a\u{202e}b\u{200b}"), "a\\u{202e}b\\u{200b}");
        assert_eq!(clean("é\u{3164}\u{2800}e\u{301}"), "é\\u{3164}\\u{2800}e\\u{301}");
        assert_eq!(clean("日本"), "日本");
    }
}
