//! Writes text to the screen. All of it passes [`clean`], and only the palette knows colours.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

use crate::terminal::clean;
use crate::top::tone::{Line, Tone, width};

/// From here on a screen is wide.
pub(super) const WIDE: u16 = 100;

/// How tones look. Colours are those of the terminal, so that they suit its background.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    pub(crate) has_colours: bool,
}

impl Palette {
    fn style(self, tone: Tone) -> Style {
        let colour = |style: Style, colour: Color| {
            if self.has_colours { style.fg(colour) } else { style }
        };
        let plain = Style::new();
        match tone {
            Tone::Plain => plain,
            Tone::Strong => plain.add_modifier(Modifier::BOLD),
            Tone::Quiet => plain.add_modifier(Modifier::DIM),
            Tone::Data => colour(plain, Color::Cyan),
            Tone::Trouble => colour(plain.add_modifier(Modifier::BOLD), Color::Red),
            Tone::Chosen => plain.add_modifier(Modifier::REVERSED),
        }
    }
}

/// A screen that is being drawn.
pub(super) struct Canvas<'a> {
    buffer: &'a mut Buffer,
    palette: Palette,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(buffer: &'a mut Buffer, palette: Palette) -> Canvas<'a> {
        Canvas { buffer, palette }
    }

    /// Writes text into the first line of `area`, as much as fits. Returns the cells that it takes.
    pub(super) fn text(&mut self, area: Rect, tone: Tone, text: &str) -> u16 {
        let area = area.intersection(self.buffer.area);
        if area.is_empty() {
            return 0;
        }
        let style = self.palette.style(tone);
        let width = usize::from(area.width);
        let (end, _) = self.buffer.set_stringn(area.x, area.y, clean(text), width, style);
        end - area.x
    }

    /// Writes pieces of text one after another. Returns the cells that they take.
    pub(super) fn pieces<'t>(
        &mut self,
        area: Rect,
        pieces: impl IntoIterator<Item = (Tone, &'t str)>,
    ) -> u16 {
        let mut used = 0;
        for (tone, piece) in pieces {
            let rest = Rect {
                x: area.x.saturating_add(used),
                width: area.width.saturating_sub(used),
                ..area
            };
            used = used.saturating_add(self.text(rest, tone, piece));
        }
        used
    }

    /// Writes lines from the top, as many as fit.
    pub(super) fn lines(&mut self, area: Rect, lines: &[Line]) {
        for (y, line) in (area.y..area.bottom()).zip(lines) {
            let pieces = line.iter().map(|(tone, text)| (*tone, text.as_str()));
            self.pieces(Rect { y, height: 1, ..area }, pieces);
        }
    }

    /// Writes text at the right end of the first line of `area`.
    pub(super) fn right(&mut self, area: Rect, tone: Tone, text: &str) {
        let taken = width(text).min(area.width);
        let place = Rect { x: area.right() - taken, width: taken, ..area };
        self.text(place, tone, text);
    }

    /// Gives what is in `area` another tone.
    pub(super) fn tint(&mut self, area: Rect, tone: Tone) {
        self.buffer.set_style(area.intersection(self.buffer.area), self.palette.style(tone));
    }
}

/// Returns text that takes at most `room` cells: the middle of a longer one is left out, since names often
/// differ at their ends.
pub(super) fn fitted(text: &str, room: u16) -> String {
    let text = clean(text);
    if width(&text) <= room {
        return text.into_owned();
    }
    let Some(kept) = room.checked_sub(1) else { return String::new() };
    let head: String = taken(text.chars(), kept.div_ceil(2));
    let tail: String = taken(text.chars().rev(), kept / 2).chars().rev().collect();
    format!("{head}…{tail}")
}

/// The first characters that take at most `room` cells.
fn taken(chars: impl Iterator<Item = char>, room: u16) -> String {
    let mut out = String::new();
    for char in chars {
        out.push(char);
        if width(&out) > room {
            out.pop();
            break;
        }
    }
    out
}

/// Returns text that takes at most `room` cells: the end of a longer one is left out.
pub(super) fn cut(text: &str, room: u16) -> String {
    let text = clean(text);
    if width(&text) <= room {
        return text.into_owned();
    }
    let Some(kept) = room.checked_sub(1) else { return String::new() };
    format!("{}…", taken(text.chars(), kept).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_too_long_is_shortened() {
        assert_eq!(fitted("10.0.2.15:8080", 14), "10.0.2.15:8080");
        assert_eq!(fitted("[2001:db8::2:15]:8080", 15), "[2001:d…5]:8080");
        assert_eq!(fitted("日本日本", 6), "日…本");
        assert_eq!((fitted("abc", 0), fitted("abc", 1)), (String::new(), "…".to_owned()));
        assert_eq!(cut("one two three", 9), "one two…");
        assert_eq!(fitted("a\u{1b}b", 20), "a\\u{1b}b");
    }
}
