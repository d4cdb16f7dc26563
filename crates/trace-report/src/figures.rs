//! A table of figures, as aligned text or as HTML. Headings may have several lines.

use std::fmt;

use page::{Cell, table};

/// Rows of cells. Columns of words are aligned to the left, others to the right.
pub struct Figures<const N: usize> {
    heading: [&'static str; N],
    rows: Vec<[String; N]>,
}

/// Headings longer than this are broken at their spaces.
const HEADING_MAX: usize = 8;

impl<const N: usize> Figures<N> {
    /// A table without rows.
    pub fn headed(heading: [&'static str; N]) -> Self {
        Figures { heading, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// As a table of HTML; `label` names it.
    pub(crate) fn write_html(&self, out: &mut impl fmt::Write, label: &str) -> fmt::Result {
        let is_words = self.is_words();
        let cell = |(text, is_words): (&str, bool)| {
            let cell = Cell::from(text);
            if is_words { cell.class("words text") } else { cell }
        };
        let heads = self.heading.into_iter().zip(is_words).map(cell);
        let rows =
            self.rows.iter().map(|cells| cells.iter().map(String::as_str).zip(is_words).map(cell));
        table(out, label, heads, rows)
    }

    /// Which columns hold words.
    fn is_words(&self) -> [bool; N] {
        std::array::from_fn(|n| {
            let letters = |cell: &String| cell.chars().any(|one| one.is_alphabetic() || one == ':');
            let is_filled = |cell: &&[String; N]| !cell[n].is_empty();
            let filled = self.rows.iter().filter(is_filled).count();
            // A figure with a unit is not a word.
            let wordy =
                self.rows.iter().filter(|row| letters(&row[n]) && !starts_with_figure(&row[n]));
            filled > 0 && wordy.count() * 2 > filled
        })
    }

    /// As aligned text.
    pub fn text(&self) -> String {
        let headings: [Vec<&str>; N] = self.heading.map(broken);
        let height = headings.iter().map(Vec::len).max().unwrap_or(0);
        let is_words = self.is_words();
        let widths: [usize; N] = std::array::from_fn(|n| {
            let cells = self.rows.iter().map(|row| row[n].chars().count());
            let heads = headings[n].iter().map(|line| line.chars().count());
            cells.chain(heads).max().unwrap_or(0)
        });
        let mut out = String::new();
        for at in 0..height {
            // Short headings stand at the bottom.
            let cells = std::array::from_fn(|n| {
                let from = height - headings[n].len();
                at.checked_sub(from).and_then(|at| headings[n].get(at)).copied().unwrap_or("")
            });
            line(&mut out, cells, widths, is_words);
        }
        for row in &self.rows {
            line(&mut out, row.each_ref().map(String::as_str), widths, is_words);
        }
        out
    }
}

fn starts_with_figure(cell: &str) -> bool {
    cell.starts_with(|one: char| one.is_ascii_digit()) && !cell.contains([':', '→'])
}

fn broken(heading: &str) -> Vec<&str> {
    let is_long = heading.chars().count() > HEADING_MAX && !heading.contains('→');
    if is_long { heading.split(' ').collect() } else { vec![heading] }
}

fn line<const N: usize>(
    out: &mut String,
    cells: [&str; N],
    widths: [usize; N],
    is_words: [bool; N],
) {
    let mut text = String::new();
    for n in 0..N {
        let fill = " ".repeat(widths[n] - cells[n].chars().count());
        text.push_str("  ");
        if is_words[n] {
            text.push_str(cells[n]);
            text.push_str(&fill);
        } else {
            text.push_str(&fill);
            text.push_str(cells[n]);
        }
    }
    out.push_str(text.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_below_each_other_and_words_begin_together() {
        let mut table = Figures::headed(["when", "sent again", "from"]);
        table.row(["0 <> 1".into(), "12".into(), "10.0.0.1:80".into()]);
        table.row(["10 <> 11".into(), "1,200".into(), "b".into()]);
        let expected = "             sent\n      when  again  from\n    0 <> 1     12  10.0.0.1:80\n  10 <> 11  1,200  b\n";
        assert_eq!(table.text(), expected);
    }

    #[test]
    fn cells_are_escaped() {
        let mut table = Figures::headed(["a < b"]);
        table.row(["<b title=\"x\">&".into()]);
        let mut html = String::new();
        table.write_html(&mut html, "t").unwrap();
        assert!(html.contains("a &lt; b"), "{html}");
        assert!(html.contains("&lt;b title=&quot;x&quot;&gt;&amp;"), "{html}");
    }
}
