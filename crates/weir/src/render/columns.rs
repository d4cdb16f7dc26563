//! Text in aligned columns, two spaces apart, readable without a terminal.

/// Rows of cells, as wide as their widest.
pub(crate) struct Columns<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Columns<N> {
    /// Without a heading.
    pub(crate) fn plain() -> Self {
        Columns { rows: Vec::new() }
    }

    /// With a heading for each column. One whose cells are all empty is left out.
    pub(crate) fn headed(heading: [&str; N]) -> Self {
        Columns { rows: vec![heading.map(str::to_owned)] }
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
            for (cell, width) in row.iter().zip(widths).filter(|(_, width)| *width > 0) {
                line.push_str(cell);
                let gap = width.saturating_sub(cell.chars().count()) + 2;
                line.extend(std::iter::repeat_n(' ', gap));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
