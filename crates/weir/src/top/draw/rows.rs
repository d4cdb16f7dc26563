//! Draws a table: the columns that there is room for, and the rows around the selected one.

use ratatui_core::layout::Rect;

use super::paint::{Canvas, WIDE, cut, fitted};
use crate::top::past::{self, Of, cells};
use crate::top::picture::Picture;
use crate::top::table::{Cell, Column, Listing, Width};
use crate::top::tone::{Tone, bar, sparkline};

/// The signs before the selected row and before those in trouble, and a space.
const MARK: u16 = 3;

/// Cells between two columns, on a narrow screen and on a wide one.
const GAPS: (u16, u16) = (1, 2);

/// Draws the heading and as many rows as fit, with the selected one among them.
pub(super) fn rows(
    picture: &Picture,
    table: &Listing,
    selected: Option<usize>,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let Some(height) = area.height.checked_sub(1).filter(|height| *height > 0) else { return };
    let places = places(table, area);
    for (at, place) in &places {
        let column = &table.columns[*at];
        let is_sorted = table.sort.is_some() && column.sort == table.sort;
        let tone = if is_sorted { Tone::Strong } else { Tone::Quiet };
        put(canvas, *place, tone, &fitted(&column.head, place.width), column.is_number);
    }
    if table.rows.is_empty() {
        canvas.text(
            Rect { y: area.y + 1, height: 1, ..area },
            Tone::Quiet,
            &cut(&table.empty, area.width),
        );
        return;
    }
    let first = first(table.rows.len(), selected.unwrap_or(0), usize::from(height));
    let shown = table.rows.iter().enumerate().skip(first).take(usize::from(height));
    for (y, (index, row)) in (area.y + 1..).zip(shown) {
        let line = Rect { y, height: 1, ..area };
        let is_selected = selected == Some(index);
        // Both are signs too: there may be no colours, and no reversed text.
        let mark = if is_selected { ">" } else { " " };
        let trouble = if row.is_trouble { "!" } else { " " };
        canvas.pieces(line, [(Tone::Strong, mark), (Tone::Trouble, trouble)]);
        for (at, place) in &places {
            let (Some(cell), column) = (row.cells.get(*at), &table.columns[*at]) else { continue };
            draw_cell(picture, cell, column, Rect { y, ..*place }, canvas);
        }
        if is_selected {
            let width = text_width(table, &places, area);
            canvas.tint(Rect { width, ..line }, Tone::Chosen);
        }
    }
    rest(table, selected, usize::from(height), area, canvas);
}

/// The part of a line before its picture, which would be hard to read when reversed.
fn text_width(table: &Listing, places: &[(usize, Rect)], area: Rect) -> u16 {
    let is_picture = |(at, _): &&(usize, Rect)| matches!(table.columns[*at].width, Width::Rest(..));
    places.iter().find(is_picture).map_or(area.width, |(_, place)| place.x - area.x)
}

/// Returns the first row that is shown: the selected one stays in the middle, so that one sees what is around.
fn first(rows: usize, selected: usize, height: usize) -> usize {
    selected.saturating_sub(height / 2).min(rows.saturating_sub(height))
}

/// Writes into the heading's line how many rows there are, if not all are shown.
fn rest(
    table: &Listing,
    selected: Option<usize>,
    height: usize,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    let (found, all) = (table.rows.len(), table.all);
    let text = match selected {
        _ if found < all => format!(" {found} of {all} found "),
        _ if found <= height => return,
        Some(selected) => format!(" {}/{all} ", selected + 1),
        None => format!(" {} more ", found - height),
    };
    canvas.right(area, Tone::Strong, &text);
}

fn draw_cell(
    picture: &Picture,
    cell: &Cell,
    column: &Column,
    place: Rect,
    canvas: &mut Canvas<'_>,
) {
    match cell {
        Cell::Text(text) => {
            put(canvas, place, Tone::Plain, &shortened(text, column, place), column.is_number);
        }
        Cell::Trouble(text) => {
            put(canvas, place, Tone::Trouble, &shortened(text, column, place), column.is_number);
        }
        Cell::Spark(service) => {
            let width = past::width(place.width);
            let known = picture.service_past(service);
            let cells =
                known.map(|(past, series)| cells(past, series, "requests", width, Of::Rate));
            canvas.text(place, Tone::Data, &sparkline(&cells.unwrap_or_default()));
        }
        Cell::Bar { part, of: Some(of) } => {
            let tone = if part >= of { Tone::Trouble } else { Tone::Data };
            canvas.text(place, tone, &bar(*part, *of, place.width));
        }
        Cell::Bar { of: None, .. } => {}
    }
}

/// Names lose their middle, sentences their end.
fn shortened(text: &str, column: &Column, place: Rect) -> String {
    match column.width {
        Width::Prose(..) => cut(text, place.width),
        Width::Fixed(_) | Width::Grow(..) | Width::Rest(..) => fitted(text, place.width),
    }
}

fn put(canvas: &mut Canvas<'_>, place: Rect, tone: Tone, text: &str, is_number: bool) {
    if is_number {
        canvas.right(place, tone, text);
    } else {
        canvas.text(place, tone, text);
    }
}

/// Returns where each column is, of those that are shown: its position and its place in the heading's line.
fn places(table: &Listing, area: Rect) -> Vec<(usize, Rect)> {
    let shown: Vec<(usize, &Column)> = table
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column.on.contains(&area.width))
        .collect();
    let gap = if area.width < WIDE { GAPS.0 } else { GAPS.1 };
    let gaps = gap * (shown.len().saturating_sub(1) as u16);
    let least = |column: &Column| match column.width {
        Width::Fixed(width) | Width::Grow(width, _) | Width::Prose(width, _) => width,
        Width::Rest(least, _) => least,
    };
    let taken = shown.iter().map(|(_, column)| least(column)).fold(0, u16::saturating_add);
    let mut left = area.width.saturating_sub(taken.saturating_add(MARK + gaps));
    let mut x = area.x + MARK;
    let widest = |at: usize| table.widest.get(at).copied().unwrap_or(0);
    let mut places = Vec::with_capacity(shown.len());
    for (at, column) in shown {
        let more = match column.width {
            Width::Fixed(_) => 0,
            Width::Grow(least, most) | Width::Prose(least, most) => {
                widest(at).min(most).saturating_sub(least).min(left)
            }
            Width::Rest(least, most) => most.saturating_sub(least).min(left),
        };
        left -= more;
        let width = (least(column) + more).min(area.right().saturating_sub(x));
        places.push((at, Rect { x, y: area.y, width, height: 1 }));
        x = (x + width + gap).min(area.right());
    }
    places
}
