//! The head of a page: its answer as one sentence, the figures behind it, and tiles with the main ones.

use std::fmt::{self, Write};

use crate::escape::escaped;

/// What an answer means for its reader. Shown by colour and by shape; the sentence says it as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// A result that is neither good nor bad.
    #[default]
    Plain,
    /// What was asked for was met.
    Good,
    /// The figures are not what they seem, or something deserves attention.
    Warn,
    /// What was asked for was not met.
    Bad,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Tone::Plain => "plain",
            Tone::Good => "good",
            Tone::Warn => "warn",
            Tone::Bad => "bad",
        }
    }

    /// The shape that stands beside the sentence, as the dashboard has it; a plain answer has none.
    pub fn mark(self) -> String {
        let path = match self {
            Tone::Plain => return String::new(),
            Tone::Good => "M6 2.5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7Z",
            Tone::Warn => "M6 1L11.5 10.5H.5Z",
            Tone::Bad => {
                "M3.2 1.6L6 4.4L8.8 1.6L10.4 3.2L7.6 6L10.4 8.8L8.8 10.4L6 7.6L3.2 10.4L1.6 8.8L4.4 6L1.6 3.2Z"
            }
        };
        let class = self.class();
        format!(
            "<svg class=\"mark {class}\" viewBox=\"0 0 12 12\" aria-hidden=\"true\"><path d=\"{path}\"/></svg>"
        )
    }
}

/// The answer of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What it means.
    pub tone: Tone,
    /// The answer in one sentence, without a full stop.
    pub headline: String,
    /// What it rests on, a sentence each.
    pub details: Vec<String>,
}

impl Answer {
    /// Writes it as the page's title; `of` says what it is about.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn write(&self, out: &mut impl Write, of: &str) -> fmt::Result {
        let (class, mark, headline) =
            (self.tone.class(), self.tone.mark(), escaped(&self.headline));
        writeln!(
            out,
            "<section class=\"answer {class}\"><p class=\"of\">{}</p><h1>{mark}{headline}</h1>",
            escaped(of)
        )?;
        if !self.details.is_empty() {
            out.write_str("<ul>")?;
            for detail in &self.details {
                write!(out, "<li>{}</li>", escaped(detail))?;
            }
            out.write_str("</ul>")?;
        }
        out.write_str("</section>\n")
    }
}

/// Writes tiles: of each the figure, its unit, and what it is.
///
/// # Errors
/// If `out` fails.
pub fn tiles<'a>(
    out: &mut impl Write,
    tiles: impl IntoIterator<Item = (&'a str, String)>,
) -> fmt::Result {
    out.write_str("<div class=\"tiles\">")?;
    for (name, value) in tiles {
        // The unit is quieter than the figure.
        let (figure, unit) = value.split_once(' ').unwrap_or((&value, ""));
        write!(
            out,
            "<div class=\"tile\"><span class=\"soft small\">{}</span><b>{} <small>{}</small></b></div>",
            escaped(name),
            escaped(figure),
            escaped(unit)
        )?;
    }
    out.write_str("</div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_escaped_and_its_tone_has_a_shape_as_well_as_a_colour() {
        let answer = Answer {
            tone: Tone::Bad,
            headline: "<b>no</b>".to_owned(),
            details: vec!["a < b".to_owned()],
        };
        let mut out = String::new();
        answer.write(&mut out, "http://<i>").unwrap();
        assert!(out.contains("<p class=\"of\">http://&lt;i&gt;</p>"), "{out}");
        assert!(out.contains("</svg>&lt;b&gt;no&lt;/b&gt;</h1>"), "{out}");
        assert!(out.contains("<li>a &lt; b</li>"), "{out}");
        let marks = [Tone::Good, Tone::Warn, Tone::Bad].map(Tone::mark);
        assert!(marks[0] != marks[1] && marks[1] != marks[2], "{marks:?}");
    }

    #[test]
    fn the_unit_of_a_tile_is_quieter_than_its_figure() {
        let mut out = String::new();
        tiles(&mut out, [("p99", "12.3 ms".to_owned()), ("requests", "7".to_owned())]).unwrap();
        assert!(out.contains("<b>12.3 <small>ms</small></b>"), "{out}");
    }
}
