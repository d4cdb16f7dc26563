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

/// Writes a table, which scrolls sideways in its own box where it is wider than the page. `label` names
/// it for screen readers. The first cell of a row is its heading; it and cells of class `text` are
/// aligned to the left, others to the right. `heads` may be empty.
///
/// # Errors
/// If `out` fails.
pub fn table<H: Into<Cell>, C: Into<Cell>, R: IntoIterator<Item = C>>(
    out: &mut impl Write,
    label: &str,
    heads: impl IntoIterator<Item = H>,
    rows: impl IntoIterator<Item = R>,
) -> fmt::Result {
    // The keyboard can scroll what has the focus.
    let label = escaped(label);
    write!(out, "<div class=\"rows\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">")?;
    out.write_str("<table>\n")?;
    let mut heads = heads.into_iter().peekable();
    if heads.peek().is_some() {
        out.write_str("<thead><tr>")?;
        for cell in heads {
            let cell = cell.into();
            // An empty corner is no heading.
            let tag = if cell.html.is_empty() { "td" } else { "th scope=\"col\"" };
            write_cell(out, tag, &cell)?;
        }
        out.write_str("</tr></thead>\n")?;
    }
    out.write_str("<tbody>\n")?;
    for cells in rows {
        out.write_str("<tr>")?;
        for (index, cell) in cells.into_iter().enumerate() {
            let cell = cell.into();
            let is_heading = index == 0 && !cell.html.is_empty();
            write_cell(out, if is_heading { "th scope=\"row\"" } else { "td" }, &cell)?;
        }
        out.write_str("</tr>\n")?;
    }
    out.write_str("</tbody></table></div>\n")
}

fn write_cell(out: &mut impl Write, tag: &str, cell: &Cell) -> fmt::Result {
    let Cell { html, class } = cell;
    let name = tag.split(' ').next().unwrap_or(tag);
    match *class {
        "" => write!(out, "<{tag}>{html}</{name}>"),
        class => write!(out, "<{tag} class=\"{class}\">{html}</{name}>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_escaped_unless_they_are_markup() {
        let mut out = String::new();
        let cells = [Cell::from("<a>"), Cell::markup("<b>x</b>".to_owned()).class("text")];
        table(&mut out, "\"t\"", ["h&", ""], [cells]).unwrap();
        assert!(out.contains("aria-label=\"&quot;t&quot;\""), "{out}");
        assert!(out.contains("<tr><th scope=\"col\">h&amp;</th><td></td></tr>"), "{out}");
        let row = "<th scope=\"row\">&lt;a&gt;</th><td class=\"text\"><b>x</b></td>";
        assert!(out.contains(row), "{out}");
    }
}
