//! What text is for. The palette makes colours and weights of it, so that nothing but the palette knows
//! whether there are colours.

use ratatui_core::text::Span;

use crate::terminal::clean;

/// What a piece of text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Names and headings.
    Strong,
    /// Labels and explanations.
    Quiet,
    /// Figures as pictures.
    Data,
    /// Trouble, which a word or a sign says too.
    Trouble,
    /// What is selected.
    Chosen,
}

/// A line: pieces of text from left to right.
pub(crate) type Line = Vec<(Tone, String)>;

/// The cells of a terminal that text takes.
pub(crate) fn width(text: &str) -> u16 {
    u16::try_from(Span::raw(&*clean(text)).width()).unwrap_or(u16::MAX)
}

/// A sparkline: a character for each value, from nothing to the largest of them.
pub(crate) fn sparkline(cells: &[Option<f64>]) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = cells.iter().flatten().copied().fold(0.0, f64::max);
    let level = |value: f64| {
        if value <= 0.0 || largest <= 0.0 {
            return LEVELS[0];
        }
        // The lowest is nothing at all; the least of anything stands above it.
        let level = (value / largest * 7.0).round().clamp(1.0, 7.0);
        LEVELS[level as usize]
    };
    cells.iter().map(|cell| cell.map_or(' ', level)).collect()
}

/// A bar of at most `width` cells that is full at `of`.
pub(crate) fn bar(part: u32, of: u32, width: u16) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = u64::from(width) * 8;
    let filled = u64::from(part.min(of)) * eighths / u64::from(of.max(1));
    // Something is never shown as nothing.
    let filled = if part > 0 { filled.max(1) } else { filled };
    let mut bar = "█".repeat((filled / 8) as usize);
    if !filled.is_multiple_of(8) {
        bar.push(EIGHTHS[(filled % 8) as usize]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_never_hide_anything() {
        let cells = [Some(0.0), None, Some(0.001), Some(50.0), Some(100.0)];
        assert_eq!(sparkline(&cells), "▁ ▂▅█");
        assert_eq!(sparkline(&[Some(0.0), Some(0.0)]), "▁▁");
        assert_eq!((bar(0, 64, 8), bar(1, 10_000, 8)), (String::new(), "▏".to_owned()));
        assert_eq!((bar(64, 64, 8), bar(99, 64, 8)), ("████████".into(), "████████".into()));
        assert_eq!(bar(4, 64, 8), "▌");
        assert_eq!(bar(1, 0, 2), "▏", "a limit of nothing");
    }
}
