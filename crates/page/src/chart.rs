//! Charts as data: `assets/page.js` draws them, and has no figures of its own.

use serde::Serialize;

use crate::COLOURS;
use crate::escape::escaped;
use crate::numbers::seconds;

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
    /// The lines; of a stack the lowest first.
    pub lines: Vec<Line>,
    /// Events.
    pub marks: Vec<Mark>,
}

impl Chart {
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
    /// As many as `xs`; `None`: no value there.
    pub values: Vec<Option<f64>>,
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
    pub(crate) fn html(&self) -> String {
        let whose = self.whose.as_ref().map_or_else(String::new, |(name, colour)| {
            format!("<span class=\"t{}\">{}</span>, ", colour % COLOURS, escaped(name))
        });
        let (at, text) = (seconds(self.x, 1), escaped(&self.text));
        format!("<div class=\"soft small\">┆ {whose}{at}: {text}</div>")
    }
}
