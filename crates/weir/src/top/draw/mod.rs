//! Draws a state: the headline, the worst that is wrong as a sentence, the tabs, the view, the keys.

mod foot;
mod head;
mod paint;
mod rows;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

pub(crate) use paint::Palette;

use super::lists::listing;
use super::pages::{note, page};
use super::state::{Input, State};
use super::table::{Id, Sort};
use super::tone::Tone;
use super::view::Place;
use paint::{Canvas, WIDE};

/// A smaller screen shows nothing but a request for a larger one.
const COLUMNS_MIN: u16 = 30;
const LINES_MIN: u16 = 8;

/// The lines above the view.
const LINES_ABOVE: u16 = 3;

/// Draws the whole screen. Returns whether the question about a change, if there is one, is on it entirely.
pub(crate) fn draw(state: &State, palette: Palette, buffer: &mut Buffer) -> bool {
    let area = buffer.area;
    let mut canvas = Canvas::new(buffer, palette);
    if area.width < COLUMNS_MIN || area.height < LINES_MIN {
        canvas.text(area, Tone::Strong, "weir top needs a larger window");
        return false;
    }
    let line = |y: u16| Rect { y: area.y + y, height: 1, ..area };
    head::headline(state, line(0), &mut canvas);
    head::sentence(state, line(1), &mut canvas);
    head::tabs(state, line(2), &mut canvas);
    let foot = foot::height(state, area.width).min(area.height - LINES_ABOVE);
    let body = Rect { y: area.y + LINES_ABOVE, height: area.height - LINES_ABOVE - foot, ..area };
    let bottom = Rect { y: body.bottom(), height: foot, ..area };
    if state.input == Input::Help {
        foot::help(body, &mut canvas);
    } else {
        view(state, body, &mut canvas);
        if state.lost.is_some() {
            canvas.tint(body, Tone::Quiet);
        }
    }
    foot::foot(state, bottom, &mut canvas)
}

fn view(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    let Some(picture) = &state.picture else {
        match &state.lost {
            Some(lost) => canvas.lines(area, &note(&lost.why, area.width)),
            None => drop(canvas.text(area, Tone::Quiet, "Waiting for the first answer …")),
        }
        return;
    };
    let view = state.view();
    if let Place::Page(id) = &view.place {
        let lines = page(state, id, area.width);
        canvas.lines(area, lines.get(usize::from(view.scroll)..).unwrap_or_default());
        let last = lines.len().min(usize::from(view.scroll.saturating_add(area.height)));
        if lines.len() > usize::from(area.height) {
            let (first, all) = (u32::from(view.scroll) + 1, lines.len());
            let keys = if area.width < WIDE / 2 { "" } else { " lines: j k" };
            let shown = format!(" {first}–{last} of {all}{keys} ");
            canvas.right(area, Tone::Strong, &shown);
        }
        return;
    }
    let table = &state.table;
    let (upper, lower) = split(area, &view.place, table.rows.len());
    rows::rows(picture, table, Some(view.at), upper, canvas);
    match (&view.place, &view.id) {
        (Place::Services, Some(Id::Service(name))) => {
            let servers = Place::Servers(Some(name.clone()));
            // Those in trouble are shown, however many there are.
            let below = listing(picture, &state.judgement, &servers);
            let below = below.arranged("", Some(Sort::Trouble), false);
            rows::rows(picture, &below, None, lower, canvas);
        }
        (Place::Causes | Place::Findings, Some(id)) => {
            canvas.lines(lower, &page(state, id, lower.width));
        }
        _ => {}
    }
}

/// Returns the area of a view's table, and the one below for what is selected in it.
fn split(area: Rect, place: &Place, rows: usize) -> (Rect, Rect) {
    let has_lower = matches!(place, Place::Services | Place::Causes | Place::Findings);
    if !has_lower {
        return (area, Rect { height: 0, ..area });
    }
    // The heading and the rows, in at most half of the screen.
    let wanted = u16::try_from(rows.max(1)).unwrap_or(u16::MAX).saturating_add(1);
    let height = wanted.min((area.height / 2).max(2)).min(area.height);
    let lower_y = (area.y + height + 1).min(area.bottom());
    let lower = Rect { y: lower_y, height: area.bottom() - lower_y, ..area };
    (Rect { height, ..area }, lower)
}

#[cfg(test)]
mod tests;
