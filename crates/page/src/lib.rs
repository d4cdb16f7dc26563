//! Pages: self-contained HTML files with escaped text, tables and interactive charts, for reports.
//!
//! A page is one file that needs no network and no server. Text and tables are plain HTML, readable
//! without scripts; uPlot draws the charts. The Content-Security-Policy forbids loading anything. The
//! caller formats its content with [`escaped`]: text that came from outside must never stand in a page
//! unescaped.

mod answer;
mod chart;
mod escape;
mod numbers;
mod table;

use std::fmt;

use serde::Serialize;

pub use answer::{Answer, Tone, tiles};
pub use chart::{Axis, Chart, Level, Line, Mark, Shape, Style, Unit};
pub use escape::escaped;
pub use numbers::{milliseconds, seconds, trimmed};
pub use table::{Cell, table};

/// uPlot 1.6.32 by Leon Sorokin, from the npm package's `dist`, MIT licence (`assets/uplot-LICENSE`).
const UPLOT: &str = include_str!("assets/uplot-1.6.32.min.js");
const UPLOT_CSS: &str = include_str!("assets/uplot-1.6.32.min.css");
const UPLOT_LICENSE: &str = include_str!("assets/uplot-LICENSE");
const TOKENS: &str = include_str!("assets/tokens.css");
const CSS: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");

/// Nothing is loaded and nothing is sent, whatever stands in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";

/// Colours that the style sheet defines, `--c0` to `--c7` and the classes `k0` to `k7`. Further lines
/// start again at 0.
pub const COLOURS: usize = 8;

/// A page that is being written. Implements [`fmt::Write`] for its body.
#[derive(Debug)]
pub struct Page {
    program: &'static str,
    title: String,
    css: &'static str,
    body: String,
    charts: Vec<Placed>,
    groups: usize,
}

/// A chart, and the group of charts whose cursors move together.
#[derive(Debug, Serialize)]
struct Placed {
    group: usize,
    #[serde(flatten)]
    chart: Chart,
}

impl Page {
    /// Begins a page. `program` made it, such as `weir bench`; `css` is added to the common style sheet.
    pub fn new(program: &'static str, title: &str, css: &'static str) -> Page {
        let (title, body, charts) = (title.to_owned(), String::new(), Vec::new());
        Page { program, title, css, body, charts, groups: 0 }
    }

    /// Places charts that belong together: their cursors move together.
    pub fn charts(&mut self, charts: impl IntoIterator<Item = Chart>) {
        self.groups += 1;
        self.body.push_str("<div class=\"charts\">");
        for chart in charts {
            self.body += &chart.html(self.charts.len());
            self.charts.push(Placed { group: self.groups, chart });
        }
        self.body.push_str("</div>\n");
    }

    /// Returns the whole file.
    pub fn finish(self) -> String {
        let Page { program, title, css, body, charts, .. } = self;
        let data = serde_json::to_string(&charts).unwrap_or_else(|_| "[]".to_owned());
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{} · {program}</title>\n<style>{UPLOT_CSS}{TOKENS}{CSS}{css}</style>\n</head>\n<body>\n\
             <main>\n{body}\n<p class=\"soft small\">Made by {program}. Charts: uPlot, whose licence is \
             in this file's source.</p>\n</main>\n\
             <script type=\"application/json\" id=\"charts-data\">{}</script>\n\
             <script>\n/*\n{UPLOT_LICENSE}*/\n{UPLOT}</script>\n<script>{SCRIPT}</script>\n\
             </body>\n</html>\n",
            escaped(&title),
            // Within a script element only this could end it.
            data.replace('<', "\\u003c"),
        )
    }
}

impl fmt::Write for Page {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.body.write_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text_and_nothing_is_fetched() {
        let evil = "</script><script>alert(1)</script><img src=x>";
        let mut page = Page::new("weir test", evil, "");
        let line =
            Line { label: evil.to_owned(), values: vec![Some(1.0), None], ..Line::default() };
        let mark = Mark { x: 1.0, text: evil.to_owned(), whose: Some((evil.to_owned(), 1)) };
        page.charts([Chart {
            title: evil.to_owned(),
            note: evil.to_owned(),
            xs: vec![0.0, 1.0],
            lines: vec![line],
            marks: vec![mark],
            ..Chart::default()
        }]);
        let html = page.finish();
        assert!(!html.contains("<script>alert") && !html.contains("<img"));
        assert_eq!(html.matches("</script>").count(), 3, "the page's own");
        assert!(html.contains("&lt;/script&gt;&lt;script&gt;alert(1)"), "it is shown");
        let outside = html.replace("https://github.com/leeoniya/uPlot", "").replace(evil, "");
        let outside = outside.replace("src=x", "");
        for word in ["src=", "href=", "@import", "url(", "https://", "fetch("] {
            assert!(!outside.contains(word), "{word}");
        }
    }

    #[test]
    fn every_chart_has_its_place_and_charts_placed_together_are_a_group() {
        let mut page = Page::new("weir test", "t", "");
        page.charts([Chart::default(), Chart::default()]);
        page.charts([Chart::default()]);
        let html = page.finish();
        for place in ["id=\"chart-0\"", "id=\"chart-1\"", "id=\"chart-2\""] {
            assert_eq!(html.matches(place).count(), 1, "{place}");
        }
        assert_eq!(html.matches("\"group\":1,").count(), 2);
        assert_eq!(html.matches("\"group\":2,").count(), 1);
    }
}
