//! What text is for. The palette makes colours and weights of it, so that nothing but the palette knows
//! whether there are colours.

use std::borrow::Cow;
use std::fmt::Write as _;

use ratatui_core::text::Span;

/// What a piece of text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Names and headings.
    Strong,
    /// Labels and explanations.
    Quiet,
    /// Figures as pictures.
    Data,
    /// Trouble, which a word or a sign says too.
    Trouble,
    /// What is selected.
    Chosen,
}

/// A line: pieces of text from left to right.
pub(crate) type Line = Vec<(Tone, String)>;

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

/// Controls, line separators, marks of direction, joiners, fillers, marks that are drawn over the character
/// before them, and other characters without a shape.
fn is_hidden(char: char) -> bool {
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

/// The cells of a terminal that text takes.
pub(crate) fn width(text: &str) -> u16 {
    u16::try_from(Span::raw(&*clean(text)).width()).unwrap_or(u16::MAX)
}

/// A sparkline: a character for each value, from nothing to the largest of them.
pub(crate) fn sparkline(cells: &[Option<f64>]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = cells.iter().flatten().copied().fold(0.0, f64::max);
    let level = |value: f64| {
        if value <= 0.0 || largest <= 0.0 {
            return LEVELS[0];
        }
        // The lowest is nothing at all; the least of anything stands above it.
        let level = (value / largest * 7.0).round().clamp(1.0, 7.0);
        LEVELS[level as usize]
    };
    cells.iter().map(|cell| cell.map_or(' ', level)).collect()
}

/// A bar of at most `width` cells that is full at `of`.
pub(crate) fn bar(part: u32, of: u32, width: u16) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = u64::from(width) * 8;
    let filled = u64::from(part.min(of)) * eighths / u64::from(of.max(1));
    // Something is never shown as nothing.
    let filled = if part > 0 { filled.max(1) } else { filled };
    let mut bar = "█".repeat((filled / 8) as usize);
    if !filled.is_multiple_of(8) {
        bar.push(EIGHTHS[(filled % 8) as usize]);
    }
    bar
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

    #[test]
    fn pictures_never_hide_anything() {
        let cells = [Some(0.0), None, Some(0.001), Some(50.0), Some(100.0)];
        assert_eq!(sparkline(&cells), "▁ ▂▅█");
        assert_eq!(sparkline(&[Some(0.0), Some(0.0)]), "▁▁");
        assert_eq!((bar(0, 64, 8), bar(1, 10_000, 8)), (String::new(), "▏".to_owned()));
        assert_eq!((bar(64, 64, 8), bar(99, 64, 8)), ("████████".into(), "████████".into()));
        assert_eq!(bar(4, 64, 8), "▌");
        assert_eq!(bar(1, 0, 2), "▏", "a limit of nothing");
    }
}
