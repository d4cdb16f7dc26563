//! Text in aligned columns, two spaces apart, readable without a terminal.

use std::ops::RangeBounds;

/// Rows of cells, as wide as their widest.
pub(crate) struct Columns<const N: usize> {
    rows: Vec<[String; N]>,
    /// Which columns are numbers, aligned on the right.
    numbers: [bool; N],
}

impl<const N: usize> Columns<N> {
    /// Without a heading.
    pub(crate) fn plain() -> Self {
        Columns { rows: Vec::new(), numbers: [false; N] }
    }

    /// With a heading for each column. One whose cells are all empty is left out.
    pub(crate) fn headed(heading: [&str; N]) -> Self {
        Columns { rows: vec![heading.map(str::to_owned)], numbers: [false; N] }
    }

    /// Aligns these columns on the right.
    pub(crate) fn numbers(mut self, columns: impl RangeBounds<usize>) -> Self {
        for (at, is_number) in self.numbers.iter_mut().enumerate() {
            *is_number = columns.contains(&at);
        }
        self
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// A row whose cells may have several lines each.
    pub(crate) fn tall_row(&mut self, cells: [Vec<String>; N]) {
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let mut columns = cells.map(Vec::into_iter);
        for _ in 0..height {
            let line = columns.each_mut().map(|column| column.next().unwrap_or_default());
            self.rows.push(line);
        }
    }

    pub(crate) fn text(&self) -> String {
        let headed = usize::from(self.rows.len() > 1);
        let width = |n: usize| {
            let filled = self.rows.iter().skip(headed).any(|row| !row[n].is_empty());
            let widest = self.rows.iter().map(|row| row[n].chars().count()).max();
            if filled { widest.unwrap_or(0) } else { 0 }
        };
        let widths: [usize; N] = std::array::from_fn(width);
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            let cells = row.iter().zip(widths).zip(self.numbers);
            for ((cell, width), is_number) in cells.filter(|((_, width), _)| *width > 0) {
                let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
                let (before, after) = if is_number { (&*gap, "") } else { ("", &*gap) };
                line.extend([before, cell, after, "  "]);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
