//! The bottom of the screen: the keys, or a question, a search, an answer. And the page about the keys.

use ratatui_core::layout::Rect;

use super::paint::{Canvas, WIDE, cut};
use crate::top::asking::Subject;
use crate::top::pages::note;
use crate::top::state::{Input, State};
use crate::top::table::Sort;
use crate::top::tone::{Line, Tone, width};

/// Returns the lines that the bottom needs.
pub(super) fn height(state: &State, columns: u16) -> u16 {
    match &state.input {
        Input::Confirm { .. } => {
            u16::try_from(question(state, columns).len()).unwrap_or(u16::MAX).saturating_add(1)
        }
        _ => 1 + u16::from(state.notice.is_some() || state.is_changing),
    }
}

/// Draws it. Returns whether it has the whole question about a change.
pub(super) fn foot(state: &State, area: Rect, canvas: &mut Canvas<'_>) -> bool {
    let last = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
    match &state.input {
        Input::Confirm { .. } => {
            let question = question(state, area.width);
            if question.is_empty() || question.len() >= usize::from(area.height) {
                keys(&[("", "the question needs a larger window;"), ("esc", "back")], last, canvas);
                return false;
            }
            canvas.lines(area, &question);
            keys(&[("y", "do it"), ("any other key", "leave it")], last, canvas);
            return true;
        }
        Input::Find => {
            let typed = format!("/{}", state.view().filter);
            let used = canvas.text(last, Tone::Strong, &typed);
            let rest = Rect { x: last.x + used, width: last.width.saturating_sub(used), ..last };
            canvas.text(rest, Tone::Chosen, " ");
            let text = "enter keeps it   esc ends it";
            if width(&typed).saturating_add(width(text) + 3) < area.width {
                canvas.right(last, Tone::Quiet, text);
            }
        }
        Input::Help => keys(&[("any key", "back"), ("q", "quit")], last, canvas),
        Input::Normal => {
            notice(state, area, canvas);
            keys(&keys_of(state), last, canvas);
        }
    }
    false
}

/// The answer to the last change.
fn notice(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    if state.is_changing {
        canvas.text(area, Tone::Strong, "asking the balancer …");
    } else if let Some(notice) = &state.notice {
        let (tone, sign) = if notice.is_error { (Tone::Trouble, "! ") } else { (Tone::Strong, "") };
        let text = format!("{sign}{}", notice.text);
        canvas.text(area, tone, &cut(&text, area.width));
    }
}

/// What a change will do, over a few lines.
fn question(state: &State, columns: u16) -> Vec<Line> {
    let (Input::Confirm { change, .. }, Some(picture)) = (&state.input, &state.picture) else {
        return Vec::new();
    };
    note(&change.question(picture), columns)
}

/// The keys that do something in the view on the screen.
fn keys_of(state: &State) -> Vec<(&'static str, &'static str)> {
    let view = state.view();
    let mut keys = Vec::new();
    if state.opens().is_some() {
        keys.push(("enter", "open"));
    }
    if state.views.len() > 1 || !view.filter.is_empty() {
        keys.push(("esc", "back"));
    }
    match state.subject() {
        Some(Subject::Server { .. }) => {
            keys.extend([("d", "drain"), ("r", "ready"), ("m", "maint")]);
        }
        // A narrow screen has no room for keys that are rarely used.
        Some(Subject::Service(_)) if state.size.0 >= WIDE => {
            keys.extend([("r", "ready"), ("m", "maint")]);
        }
        Some(Subject::Service(_)) | None => {}
    }
    let has_rows = !state.table.rows.is_empty();
    if view.place.is_sortable() && has_rows {
        // A narrow screen has no room for the order, which the heading shows too.
        let is_wide = state.size.0 >= WIDE;
        keys.push(("s", if is_wide { Sort::at(view.sort).label() } else { "sort" }));
        if view.is_reversed {
            keys.push(("S", "reversed"));
        }
    }
    if state.paused.is_some() {
        keys.push(("space", "continue"));
    }
    if has_rows || !view.filter.is_empty() {
        keys.push(("/", "find"));
    }
    keys.extend([("c", "causes"), ("e", "findings"), ("?", "help"), ("q", "quit")]);
    keys
}

/// Draws keys with what they do, as many as fit; the last two always.
fn keys(keys: &[(&str, &str)], area: Rect, canvas: &mut Canvas<'_>) {
    let taken =
        |(key, what): &(&str, &str)| width(key).saturating_add(width(what)).saturating_add(3);
    let (others, last) = keys.split_at(keys.len().saturating_sub(2));
    let mut room = area.width.saturating_add(2).saturating_sub(last.iter().map(taken).sum());
    let fit = others.iter().take_while(|key| match room.checked_sub(taken(key)) {
        Some(rest) => {
            room = rest;
            true
        }
        None => false,
    });
    let mut x = area.x;
    for (key, what) in fit.chain(last) {
        let rest = Rect { x, width: area.right().saturating_sub(x), ..area };
        let pieces = [(Tone::Strong, *key), (Tone::Quiet, " "), (Tone::Quiet, *what)];
        x = x.saturating_add(canvas.pieces(rest, pieces)).saturating_add(2).min(area.right());
    }
}

/// The page about the keys.
pub(super) fn help(area: Rect, canvas: &mut Canvas<'_>) {
    const KEYS: [(&str, &str); 18] = [
        ("↑ ↓, j k", "select a row, or scroll a page; PgUp PgDn, g G go further"),
        ("enter, l", "open: a service, its servers, a server, a finding"),
        ("esc, h", "back"),
        ("1 … 7, tab", "the views: services, servers, clients, causes, …"),
        ("c, e", "causes of failures; findings, the worst first"),
        ("d", "drain a server, also that of a finding"),
        ("m", "maintenance: a server as with d, without checks; or a service"),
        ("r", "ready: ends either"),
        ("s, S", "sort by another column; reverse the order"),
        ("/", "find: only rows with this text"),
        ("space", "pause: the figures stay as they are"),
        ("q, ctrl-C", "quit; the balancer is not affected; ctrl-L draws all again"),
        ("! and ?", "trouble; something that is not known or not judged"),
        ("REQ/S, P99, …", "of the last ten seconds, unless a heading says otherwise"),
        ("LAST 60 S", "requests per second, from none to the row's most"),
        ("P50, P99", "of a service: the whole exchange; of a server: the first byte"),
        ("≤", "of all services together: at most this, the slowest service's"),
        ("WEIGHT 5*", "not the weight of the configuration file"),
    ];
    for (y, (key, what)) in (area.y..area.bottom()).zip(KEYS) {
        let line = Rect { y, height: 1, ..area };
        canvas.text(line, Tone::Strong, key);
        let x = (area.x + 15).min(area.right());
        canvas.text(Rect { x, width: area.right() - x, ..line }, Tone::Plain, what);
    }
}
