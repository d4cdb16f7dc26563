//! Charts as data: `assets/page.js` draws them, and has no figures of its own.

use std::fmt::Write as _;

use serde::Serialize;

use crate::COLOURS;
use crate::escape::escaped;
use crate::numbers::{seconds, trimmed};

/// A chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// How to read it.
    pub note: String,
    /// The values' unit.
    pub unit: Unit,
    /// What `xs` are.
    pub x: Axis,
    /// Whether the values are drawn on a log scale.
    pub log: bool,
    /// Lines, or bars on top of each other.
    pub style: Style,
    /// The points' places, ascending.
    pub xs: Vec<f64>,
    /// Where the axis ends; `None`: with the last of `xs`.
    pub end: Option<f64>,
    /// The lines; of a stack the lowest first.
    pub lines: Vec<Line>,
    /// Events.
    pub marks: Vec<Mark>,
    /// Bounds.
    pub levels: Vec<Level>,
}

impl Chart {
    /// The chart's place, title and legend; `index` is its number in the page. The script writes the
    /// figures of the legend, and the text that stands for the drawing.
    pub(crate) fn html(&self, index: usize) -> String {
        let (title, note) = (escaped(&self.title), escaped(&self.note));
        let mut out = format!(
            "<figure><figcaption><h3>{title}</h3>{note}</figcaption>\
             <div class=\"plot\" id=\"chart-{index}\" role=\"img\" aria-label=\"{title}\"></div>\
             <ul class=\"legend\" id=\"legend-{index}\"><li class=\"at\"></li>"
        );
        for line in self.lines.iter().filter(|line| !line.quiet) {
            let (swatch, label) = (line.swatch(self.style), escaped(&line.label));
            // Writing to a String cannot fail.
            let _ =
                write!(out, "<li>{swatch}<span>{label}</span><span class=\"figure\"></span></li>");
        }
        out += "</ul>";
        for mark in &self.marks {
            out += &mark.html(self.x);
        }
        out + "</figure>"
    }

    /// Whether all of its values are 0.
    pub fn is_flat(&self) -> bool {
        self.lines.iter().flat_map(|line| &line.values).flatten().all(|value| *value == 0.0)
    }
}

/// A unit of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "their names say it")]
pub enum Unit {
    #[default]
    Count,
    PerSecond,
    Milliseconds,
    Percent,
    BytesPerSecond,
    BitsPerSecond,
}

/// A horizontal axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Seconds.
    #[default]
    Time,
    /// 1/(1-quantile), on a log scale: 10 is the 90th percentile.
    Spectrum,
    /// Requests per second.
    Rate,
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Lines, interrupted where a value is missing.
    #[default]
    Lines,
    /// Bars from each x to the next, on top of each other.
    Stack,
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Line {
    /// Its name.
    pub label: String,
    /// Which of the page's colours, from 0.
    pub colour: usize,
    /// Whether it is dashed.
    pub dashed: bool,
    /// Whether the legend leaves it out, because another line stands for it there.
    pub quiet: bool,
    /// Points of this shape instead of a line.
    pub shape: Option<Shape>,
    /// As many as `xs`; `None`: no value there.
    pub values: Vec<Option<f64>>,
}

/// The shape of points, which tells lines apart without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "their names say it")]
pub enum Shape {
    Dot,
    Ring,
    Cross,
}

impl Line {
    /// Its sign in the legend, as `assets/page.js` draws the line.
    fn swatch(&self, style: Style) -> String {
        let shape = match (self.shape, style) {
            (Some(Shape::Dot), _) => "<circle class=\"full\" cx=\"9\" cy=\"5\" r=\"4\"/>",
            (Some(Shape::Ring), _) => "<circle cx=\"9\" cy=\"5\" r=\"3.6\"/>",
            (Some(Shape::Cross), _) => "<path d=\"M5.5 1.5l7 7m0-7l-7 7\"/>",
            (None, Style::Stack) => "<rect class=\"full\" x=\"4\" width=\"10\" height=\"10\"/>",
            (None, Style::Lines) if self.dashed => "<path d=\"M0 5h18\" stroke-dasharray=\"5 3\"/>",
            (None, Style::Lines) => "<path d=\"M0 5h18\"/>",
        };
        let colour = self.colour % COLOURS;
        format!(
            "<svg class=\"swatch t{colour}\" viewBox=\"0 0 18 10\" aria-hidden=\"true\">{shape}</svg>"
        )
    }
}

/// A bound: a horizontal line with a text on it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// Where.
    pub y: f64,
    /// What.
    pub text: String,
}

/// An event: a vertical line, and a text below the chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// When.
    pub x: f64,
    /// What.
    pub text: String,
    /// Which line it belongs to, with that line's colour; `None`: all of them.
    pub whose: Option<(String, usize)>,
}

impl Mark {
    /// The text below the chart.
    fn html(&self, x: Axis) -> String {
        let whose = self.whose.as_ref().map_or_else(String::new, |(name, colour)| {
            format!("<span class=\"t{}\">{}</span>, ", colour % COLOURS, escaped(name))
        });
        let at = match x {
            Axis::Rate => format!("{}/s", trimmed(self.x, 1)),
            Axis::Time | Axis::Spectrum => seconds(self.x, 1),
        };
        format!("<div class=\"happened\">┆ {whose}{at}: {}</div>", escaped(&self.text))
    }
}
