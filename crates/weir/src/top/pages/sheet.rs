//! Lays out a page: headings, labelled text that is wrapped, rows of figures.

use ratatui_core::text::Span;

use crate::terminal::clean;
use crate::top::tone::{Line, Tone};

/// How wide labels are, with the space after them.
const LABEL_COLUMNS: usize = 20;

/// A narrower page has its labels on separate lines.
const BESIDE_MIN: usize = 60;

/// A page that is being written.
pub(super) struct Sheet {
    width: usize,
    lines: Vec<Line>,
}

impl Sheet {
    pub(super) fn new(width: u16) -> Sheet {
        Sheet { width: usize::from(width), lines: Vec::new() }
    }

    pub(super) fn lines(self) -> Vec<Line> {
        self.lines
    }

    pub(super) fn blank(&mut self) {
        self.lines.push(Vec::new());
    }

    /// Text without a label.
    pub(super) fn heading(&mut self, text: &str) {
        for text in wrapped(text, self.width) {
            self.lines.push(vec![(Tone::Strong, text)]);
        }
    }

    /// Text, with a label before its first line.
    pub(super) fn labelled(&mut self, label: &str, tone: Tone, text: &str) {
        self.beside(label, tone, wrapped(text, self.room()));
    }

    /// Text that is copied as it is: broken only where a line ends.
    pub(super) fn verbatim(&mut self, text: &str) {
        let lines = text.lines().flat_map(|line| broken(line, self.room())).collect();
        self.beside("", Tone::Plain, lines);
    }

    /// Columns for text beside labels.
    fn room(&self) -> usize {
        self.width - self.labels()
    }

    /// Columns for labels.
    fn labels(&self) -> usize {
        if self.width < BESIDE_MIN { 2.min(self.width) } else { LABEL_COLUMNS }
    }

    fn beside(&mut self, label: &str, tone: Tone, lines: Vec<String>) {
        let labels = self.labels();
        let mut label = label;
        if self.width < BESIDE_MIN && !label.is_empty() {
            self.lines.push(vec![(Tone::Quiet, label.to_owned())]);
            label = "";
        }
        for line in lines {
            self.lines.push(vec![(Tone::Quiet, format!("{label:<labels$}")), (tone, line)]);
            label = "";
        }
    }

    /// Figures with a label, each aligned on the right of a column.
    pub(super) fn figures(&mut self, label: &str, tone: Tone, figures: &[String]) {
        const COLUMNS: usize = 12;
        let figures: Vec<String> = figures.iter().map(|text| format!("{text:>COLUMNS$}")).collect();
        self.lines.push(vec![
            (Tone::Quiet, format!("{label:<LABEL_COLUMNS$}")),
            (tone, figures.concat()),
        ]);
    }

    /// A picture with a label and what it shows at most.
    pub(super) fn picture(&mut self, label: &str, picture: String, largest: &str) {
        self.lines.push(vec![
            (Tone::Quiet, format!("{label:<LABEL_COLUMNS$}")),
            (Tone::Data, picture),
            (Tone::Quiet, format!("  {largest}")),
        ]);
    }
}

/// Breaks text at spaces into lines of at most `width` cells; what is longer than a line is broken anywhere.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let text = clean(text);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = Span::raw(word).width();
        let gap = usize::from(used > 0);
        if used + gap + length > width && used > 0 {
            lines.push(String::new());
            used = 0;
        }
        let gap = usize::from(used > 0);
        let Some(line) = lines.last_mut() else { continue };
        if length <= width {
            line.extend(std::iter::repeat_n(' ', gap));
            line.push_str(word);
            used += gap + length;
            continue;
        }
        let mut pieces = broken(word, width);
        let last = pieces.pop().unwrap_or_default();
        used = Span::raw(&last).width();
        pieces.push(last);
        // A line that is still empty takes the first piece.
        if lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines.extend(pieces);
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// Breaks text anywhere into lines of at most `width` cells.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for char in clean(text).chars() {
        let mut buffer = [0; 4];
        let length = Span::raw(&*char.encode_utf8(&mut buffer)).width();
        if used + length > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            line.push(char);
            used += length;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words_and_long_words_anywhere() {
        assert_eq!(wrapped("one two  three", 8), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrapped("日本日本", 5), ["日本", "日本"]);
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(broken("sysctl -w  a=1", 8), ["sysctl -", "w  a=1"]);
        assert_eq!(wrapped("a\u{1b}[0m", 80), ["a\\u{1b}[0m"]);
    }
}
