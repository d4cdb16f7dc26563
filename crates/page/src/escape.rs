//! Text as HTML and XML, for pages and drawings that show text from outside.

/// Escapes a text for use between elements and in quoted attributes. Line breaks and tabs become
/// spaces, other control characters U+FFFD.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn text_cannot_become_markup() {
        let escaped = escaped("<b a=\"x\" c='y'>&\u{7}\n");
        assert_eq!(escaped, "&lt;b a=&quot;x&quot; c=&#39;y&#39;&gt;&amp;\u{fffd} ");
    }
}
