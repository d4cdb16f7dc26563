//! The frame of SVG pictures: a title, a legend, and panels with axes.

use std::fmt::Write as _;

use diagnose::words::thousands;
use page::{escaped, trimmed};

pub(crate) const WIDTH: f64 = 1_000.0;
pub(crate) const LEFT: f64 = 96.0;
pub(crate) const RIGHT: f64 = 24.0;
/// The place of the legend; panels begin below it.
const LEGEND_Y: f64 = 62.0;
/// Decimals of figures on an axis.
const DECIMALS: usize = 6;
/// The approximate number of figures on the two axes, and the width of a letter.
const TICKS: [f64; 2] = [10.0, 5.0];
const LETTER: f64 = 6.7;

/// Colours of everything but the data, on light ground and on dark. The attributes are for viewers
/// without style sheets.
const STYLE: &str = "svg.capture{max-width:100%;height:auto}\
    .capture text{fill:#191d22}.capture .soft{fill:#5a646e}.capture .ground{fill:#fff}\
    .capture .grid{stroke:#e2e5e7}.capture .axis{stroke:#8b949c}\
    @media(prefers-color-scheme:dark){.capture text{fill:#e7ebee}.capture .soft{fill:#9aa5af}\
    .capture .ground{fill:#171c20}.capture .grid{stroke:#2a3137}.capture .axis{stroke:#66717b}}";
/// Dark enough for small letters on white.
const SOFT: &str = "#4d4d4d";

/// A picture that is being drawn.
pub(crate) struct Chart {
    pub(crate) out: String,
}

impl Chart {
    pub(crate) fn new(title: &str, about: &str, height: f64) -> Chart {
        let out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" font-family=\"Inter, system-ui, sans-serif\" \
             font-size=\"12\" class=\"capture\" role=\"img\" aria-label=\"{0}: {1}\">\n\
             <style>{STYLE}</style>\n\
             <rect class=\"ground\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
             <text x=\"{LEFT}\" y=\"22\" font-size=\"16\" font-weight=\"600\">{0}</text>\n\
             <text class=\"soft\" x=\"{LEFT}\" y=\"40\" fill=\"{SOFT}\">{1}</text>\n",
            escaped(title),
            escaped(about)
        );
        Chart { out }
    }

    /// Draws the legend.
    pub(crate) fn legend<'a>(&mut self, entries: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let mut x = LEFT;
        for (name, colour) in entries {
            _ = writeln!(
                self.out,
                "<rect x=\"{x:.1}\" y=\"{}\" width=\"11\" height=\"11\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{LEGEND_Y}\">{}</text>",
                LEGEND_Y - 10.0,
                x + 16.0,
                escaped(name)
            );
            x += 40.0 + name.chars().count() as f64 * LETTER;
        }
    }

    pub(crate) fn text(&mut self, x: f64, y: f64, text: &str) {
        _ = writeln!(
            self.out,
            "<text class=\"soft\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"{SOFT}\">{}</text>",
            escaped(text)
        );
    }

    /// Draws a shape with a title that browsers show under the pointer.
    pub(crate) fn titled(&mut self, shape: &str, attributes: &str, title: &str) {
        let title = escaped(title);
        _ = writeln!(self.out, "<{shape} {attributes}><title>{title}</title></{shape}>");
    }

    pub(crate) fn end(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

/// A plot with its axes and scale.
pub(crate) struct Panel {
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) x_max: f64,
    pub(crate) y_max: f64,
    /// Of the figures on the left.
    pub(crate) y_unit: Unit,
}

/// The unit of figures.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Count,
    Bytes,
    BitsPerSecond,
}

impl Unit {
    fn text(self, value: f64) -> String {
        let (suffix, is_scaled) = match self {
            Unit::Count => ("", false),
            Unit::Bytes => ("B", true),
            Unit::BitsPerSecond => ("bit/s", true),
        };
        if !is_scaled {
            return thousands(value as u64);
        }
        let scales = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
        let found = scales.into_iter().find(|(scale, _)| value >= *scale);
        let (scale, letter) = found.unwrap_or((1.0, ""));
        format!("{} {letter}{suffix}", trimmed(value / scale, DECIMALS))
    }
}

impl Panel {
    pub(crate) fn x(&self, value: f64) -> f64 {
        LEFT + value / self.x_max * (WIDTH - LEFT - RIGHT)
    }

    pub(crate) fn y(&self, value: f64) -> f64 {
        self.bottom - value / self.y_max * (self.bottom - self.top)
    }

    /// Lets shapes with `clip-path="url(#plot)"` end where the panel does.
    pub(crate) fn clip(&self, chart: &mut Chart) {
        _ = writeln!(
            chart.out,
            "<clipPath id=\"plot\"><rect x=\"{LEFT}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>",
            self.top,
            WIDTH - LEFT - RIGHT,
            self.bottom - self.top
        );
    }

    /// Draws the axes; `x_name`, if any, is written below the horizontal one.
    pub(crate) fn axes(&self, chart: &mut Chart, y_name: &str, x_name: Option<&str>) {
        let (right, bottom, out) = (WIDTH - RIGHT, self.bottom, &mut chart.out);
        let whole = matches!(self.y_unit, Unit::Count | Unit::Bytes);
        for value in ticks(self.y_max, TICKS[1], whole) {
            let y = self.y(value);
            _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.2}\" x2=\"{right}\" y2=\"{y:.2}\" stroke=\"#e0e0e0\"/>\
                 <text x=\"{}\" y=\"{:.2}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                self.y_unit.text(value)
            );
        }
        for value in ticks(self.x_max, TICKS[0], false) {
            let x = self.x(value);
            _ = write!(
                out,
                "<line class=\"axis\" x1=\"{x:.2}\" y1=\"{bottom}\" x2=\"{x:.2}\" y2=\"{}\" stroke=\"#808080\"/>",
                bottom + 5.0
            );
            if x_name.is_some() {
                _ = write!(
                    out,
                    "<text x=\"{x:.2}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                    bottom + 19.0,
                    trimmed(value, DECIMALS)
                );
            }
            out.push('\n');
        }
        _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{LEFT} {}V{bottom}H{right}\" fill=\"none\" stroke=\"#808080\"/>\
             <text class=\"soft\" transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\" fill=\"{SOFT}\">{}</text>",
            self.top,
            f64::midpoint(self.top, bottom),
            escaped(y_name)
        );
        if let Some(x_name) = x_name {
            chart.text(f64::midpoint(LEFT, right), bottom + 38.0, x_name);
        }
    }
}

/// Round values from 0 to `most`, about `count` of them: 1, 2 or 5 of a power of ten apart.
fn ticks(most: f64, count: f64, whole: bool) -> impl Iterator<Item = f64> {
    let rough = most / count;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|one| one * power).find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let step = if whole { step.max(1.0) } else { step };
    (0..).map(move |n| f64::from(n) * step).take_while(move |value| *value <= most * 1.0001)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_on_axes_are_round() {
        let on = |most, count, whole| {
            ticks(most, count, whole).map(|one| trimmed(one, DECIMALS)).collect::<Vec<_>>()
        };
        assert_eq!(on(0.9, 5.0, false), ["0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(on(2.0, 5.0, true), ["0", "1", "2"]);
        assert_eq!(on(125.0, 10.0, false), ["0", "20", "40", "60", "80", "100", "120"]);
    }

    #[test]
    fn figures_have_their_unit() {
        assert_eq!(Unit::Count.text(12_000.0), "12,000");
        assert_eq!(Unit::Bytes.text(2_500_000.0), "2.5 MB");
        assert_eq!(Unit::BitsPerSecond.text(0.0), "0 bit/s");
        assert_eq!(Unit::BitsPerSecond.text(2e9), "2 Gbit/s");
    }
}
