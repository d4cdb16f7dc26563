//! Views, and what is selected in each.

use super::table::{Id, Row};

/// What is on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Services,
    /// The servers of a service, or of all.
    Servers(Option<String>),
    Clients,
    Causes,
    /// Requests in flight, those of one client or all.
    Requests(Option<String>),
    Findings,
    Checks,
    /// A page about one thing of a table.
    Page(Id),
}

impl Place {
    /// The views that a key leads to, in the order of the keys.
    pub(crate) const TABS: [(Place, &'static str); 7] = [
        (Place::Services, "services"),
        (Place::Servers(None), "servers"),
        (Place::Clients, "clients"),
        (Place::Causes, "causes"),
        (Place::Requests(None), "in flight"),
        (Place::Findings, "findings"),
        (Place::Checks, "checks"),
    ];

    /// Whether its rows can be sorted in several ways.
    pub(crate) fn is_sortable(&self) -> bool {
        matches!(self, Place::Services | Place::Servers(_))
    }
}

/// A place, and what is selected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) place: Place,
    /// The selected row, and what it is about.
    pub(crate) at: usize,
    pub(crate) id: Option<Id>,
    /// Only rows with this text are shown.
    pub(crate) filter: String,
    /// Position in [`super::table::Sort::ALL`].
    pub(crate) sort: usize,
    pub(crate) is_reversed: bool,
    /// The first line of a page that is shown.
    pub(crate) scroll: u16,
}

impl View {
    pub(crate) const SERVICES: View = View {
        place: Place::Services,
        at: 0,
        id: None,
        filter: String::new(),
        sort: 0,
        is_reversed: false,
        scroll: 0,
    };

    pub(crate) fn new(place: Place) -> View {
        View { place, ..View::SERVICES }
    }

    /// Whether it has the same rows as `other` in the same order.
    pub(crate) fn has_same_rows(&self, other: &View) -> bool {
        let rows = |view: &View| (view.sort, view.is_reversed);
        self.place == other.place && self.filter == other.filter && rows(self) == rows(other)
    }

    /// Selects the row at `at`, or the last one.
    pub(crate) fn select(&mut self, at: usize, rows: &[Row]) {
        self.at = at.min(rows.len().saturating_sub(1));
        self.id = rows.get(self.at).map(|row| row.id.clone());
    }

    /// Finds what is selected among new rows. If it is gone, the row in its place is selected.
    pub(crate) fn follow(&mut self, rows: &[Row]) {
        let found = self.id.as_ref().and_then(|id| rows.iter().position(|row| row.id == *id));
        self.select(found.unwrap_or(self.at), rows);
    }
}
