//! Moving within a view, and from one view to another.

use super::pages::LINES_AROUND;
use super::state::State;
use super::table::{Id, Sort};
use super::view::{Place, View};

impl State {
    /// Whether the view is a page, which has lines instead of rows.
    pub(super) fn is_page(&self) -> bool {
        matches!(self.view().place, Place::Page(_))
    }

    /// Moves the selection, or scrolls a page.
    pub(super) fn step(&mut self, by: isize) {
        let is_page = self.is_page();
        let Some(view) = self.views.last_mut() else { return };
        if is_page {
            let by = i32::try_from(by).unwrap_or(if by < 0 { i32::MIN } else { i32::MAX });
            // `update` stops at the last line.
            let scroll = i32::from(view.scroll).saturating_add(by).clamp(0, i32::from(u16::MAX));
            view.scroll = u16::try_from(scroll).unwrap_or(u16::MAX);
        } else {
            view.select(view.at.saturating_add_signed(by), &self.table.rows);
        }
    }

    /// Moves by half a screen.
    pub(super) fn step_half(&mut self, sign: isize) {
        let half = self.size.1.saturating_sub(LINES_AROUND).max(2) / 2;
        self.step(sign * isize::try_from(half).unwrap_or(1));
    }

    /// Opens what is selected.
    pub(super) fn open(&mut self) {
        if let Some(place) = self.opens() {
            self.views.push(View::new(place));
        }
    }

    /// Returns what the selected row leads to.
    pub(crate) fn opens(&self) -> Option<Place> {
        let id = self.view().id.as_ref().filter(|_| !self.is_page())?;
        let server = |service: &str, address: &String| {
            Place::Page(Id::Server { service: service.to_owned(), address: address.clone() })
        };
        match id {
            Id::Service(name) => Some(Place::Servers(Some(name.clone()))),
            Id::Client(client) => Some(Place::Requests(Some(client.clone()))),
            Id::Request { service, server: Some(address), .. } => Some(server(service, address)),
            Id::Trouble { .. } => match self.about(id)? {
                (service, [address]) => Some(server(service, address)),
                (service, _) => Some(Place::Servers(Some(service.to_owned()))),
            },
            Id::Request { .. } | Id::Probes(_) => None,
            id @ (Id::Server { .. }
            | Id::Cause(_)
            | Id::ServerErrors
            | Id::Finding { .. }
            | Id::Gap(_)) => Some(Place::Page(id.clone())),
        }
    }

    /// Ends a search, or goes back to the view before; from any tab, to the first.
    pub(super) fn back(&mut self) {
        let can_leave = self.views.len() > 1;
        match self.views.last_mut() {
            Some(view) if !view.filter.is_empty() => view.filter.clear(),
            _ if can_leave => drop(self.views.pop()),
            _ => self.go_to(&Place::Services),
        }
    }

    /// Goes to a tab. What was selected there before is forgotten, unless it is the current one.
    pub(super) fn go_to(&mut self, place: &Place) {
        match self.views.first() {
            Some(first) if first.place == *place => self.views.truncate(1),
            _ => self.views = vec![View::new(place.clone())],
        }
    }

    /// Goes `by` tabs to the right.
    pub(super) fn turn(&mut self, by: usize) {
        let tab = self.views.first().map(|view| &view.place);
        let at = Place::TABS.iter().position(|(place, _)| Some(place) == tab).unwrap_or(0);
        self.go_to(&Place::TABS[(at + by) % Place::TABS.len()].0);
    }

    /// Sorts by the next order, or reverses the order.
    pub(super) fn sort(&mut self, is_reverse: bool) {
        if let Some(view) = self.views.last_mut().filter(|view| view.place.is_sortable()) {
            if is_reverse {
                view.is_reversed = !view.is_reversed;
            } else {
                view.sort = (view.sort + 1) % Sort::ALL.len();
                view.is_reversed = false;
            }
        }
    }
}
