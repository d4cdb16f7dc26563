//! Text from outside, for logs.

/// Maximum length of text from an authority in a message.
const FOREIGN_MAX_CHARACTERS: usize = 400;

/// Returns foreign text as one line of bounded length, without control characters.
pub(crate) fn foreign(text: &str) -> String {
    let shown = text.chars().take(FOREIGN_MAX_CHARACTERS);
    let mut line: String = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(FOREIGN_MAX_CHARACTERS).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_one_line_of_bounded_length() {
        assert_eq!(foreign("a\r\nb\u{1b}[31mc"), "a  b [31mc");
        assert_eq!(foreign(&"é".repeat(1000)).chars().count(), FOREIGN_MAX_CHARACTERS + 1);
    }
}
