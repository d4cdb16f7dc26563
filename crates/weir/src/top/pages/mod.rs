//! Pages about one thing: a server, a cause, a finding. Lines that fit a width, without colours.

mod cause;
mod finding;
mod server;
mod sheet;

use super::state::State;
use super::table::Id;
use super::tone::Line;
use super::view::Place;

/// Returns the page about `id`, of lines that are at most `width` wide; empty if there is none.
pub(crate) fn page(state: &State, id: &Id, width: u16) -> Vec<Line> {
    let Some(picture) = &state.picture else { return Vec::new() };
    match id {
        Id::Server { service, address } => server::page(picture, service, address, width),
        Id::Cause(name) => cause::page(picture, name, width),
        Id::ServerErrors => cause::server_errors(width),
        Id::Finding { .. } => finding::page(picture, id, width),
        Id::Trouble { .. } => {
            let mut troubles = state.judgement.troubles.iter();
            troubles.find(|trouble| trouble.id == *id).map_or_else(Vec::new, |trouble| {
                note(&format!("{}. Enter shows where.", trouble.text), width)
            })
        }
        Id::Gap(_) => {
            let mut gaps = state.judgement.gaps.iter();
            gaps.find(|gap| Id::Gap(gap.what.clone()) == *id)
                .map_or_else(Vec::new, |gap| note(&format!("{}: {}.", gap.what, gap.why), width))
        }
        Id::Service(_) | Id::Client(_) | Id::Request { .. } | Id::Probes(_) => Vec::new(),
    }
}

/// Returns text as lines that are at most `width` wide.
pub(crate) fn note(text: &str, width: u16) -> Vec<Line> {
    let mut sheet = sheet::Sheet::new(width);
    sheet.heading(text);
    sheet.lines()
}

/// The lines of the screen around a page: the headline, the sentence, the tabs, the keys.
pub(crate) const LINES_AROUND: u16 = 4;

/// Returns how far the page on the screen can be scrolled.
pub(crate) fn scroll_max(state: &State) -> u16 {
    let Place::Page(id) = &state.view().place else { return 0 };
    let (columns, lines) = state.size;
    let shown = usize::from(lines.saturating_sub(LINES_AROUND).max(1));
    let hidden = page(state, id, columns).len().saturating_sub(shown);
    u16::try_from(hidden).unwrap_or(u16::MAX)
}
