//! Command lines, split into words.

/// Splits a command line at spaces; text in single quotes is one word.
///
/// # Errors
/// If a quote does not end, or there is no word.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if is_quoted || words.is_empty() {
        return Err(format!("`{line}` is not a command line"));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_become_words() {
        assert_eq!(split("a 'b c'  d'' ").unwrap(), ["a", "b c", "d"]);
        assert!(split("a 'b").is_err() && split("  ").is_err());
    }
}
