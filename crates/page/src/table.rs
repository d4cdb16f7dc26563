//! Tables.

use std::fmt::{self, Write};

use crate::escape::escaped;

/// A cell of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    html: String,
    class: &'static str,
}

impl Cell {
    /// A cell with markup of the page's own: everything from outside in it must be escaped.
    pub fn markup(html: String) -> Cell {
        Cell { html, class: "" }
    }

    /// With classes of the style sheet, such as `text` for prose, `good` or `bad`.
    #[must_use]
    pub fn class(mut self, class: &'static str) -> Cell {
        self.class = class;
        self
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { html: escaped(text.as_ref()), class: "" }
    }
}

/// Writes a table, which scrolls sideways where it is wider than the page. The first column and cells
/// of class `text` are aligned to the left, others to the right. `heads` may be empty.
///
/// # Errors
/// If `out` fails.
pub fn table<H: Into<Cell>, C: Into<Cell>, R: IntoIterator<Item = C>>(
    out: &mut impl Write,
    heads: impl IntoIterator<Item = H>,
    rows: impl IntoIterator<Item = R>,
) -> fmt::Result {
    out.write_str("<div class=\"wide\"><table>\n")?;
    let mut heads = heads.into_iter().peekable();
    if heads.peek().is_some() {
        row(out, "th", heads)?;
    }
    for cells in rows {
        row(out, "td", cells)?;
    }
    out.write_str("</table></div>\n")
}

fn row<C: Into<Cell>>(
    out: &mut impl Write,
    tag: &str,
    cells: impl IntoIterator<Item = C>,
) -> fmt::Result {
    out.write_str("<tr>")?;
    for cell in cells {
        let Cell { html, class } = cell.into();
        match class {
            "" => write!(out, "<{tag}>{html}</{tag}>")?,
            class => write!(out, "<{tag} class=\"{class}\">{html}</{tag}>")?,
        }
    }
    out.write_str("</tr>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_escaped_unless_they_are_markup() {
        let mut out = String::new();
        let cells = [Cell::from("<a>"), Cell::markup("<b>x</b>".to_owned()).class("text")];
        table(&mut out, ["h&"], [cells]).unwrap();
        assert!(out.contains("<tr><th>h&amp;</th></tr>"), "{out}");
        assert!(out.contains("<td>&lt;a&gt;</td><td class=\"text\"><b>x</b></td>"), "{out}");
    }
}
