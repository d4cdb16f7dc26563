//! What is on the screen, and what is known of the balancer.

use std::time::Duration;

use model::Moment;

use super::action::Change;
use super::judgement::Judgement;
use super::lists;
use super::picture::{Needs, Picture, Proposal};
use super::table::{Id, Listing, Sort};
use super::view::{Place, View};

/// Figures are called old after this: a second between two requests, and a slow answer. With old figures
/// nothing can be changed.
const OLD: Duration = Duration::from_millis(3_500);

/// Everything that a frame is drawn from.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Where the admin API is, as a person writes it.
    pub(crate) address: String,
    pub(crate) now: Moment,
    /// Columns and lines of the terminal.
    pub(crate) size: (u16, u16),
    pub(crate) picture: Option<Picture>,
    pub(crate) fetched_at: Moment,
    pub(crate) judgement: Judgement,
    pub(crate) lost: Option<Lost>,
    /// The picture stays as it is; since when.
    pub(crate) paused: Option<Moment>,
    /// The tab, then what was opened from it; never empty.
    pub(crate) views: Vec<View>,
    /// The table of the last view.
    pub(crate) table: Listing,
    pub(crate) input: Input,
    pub(crate) notice: Option<Notice>,
    /// A change has been sent and not been answered.
    pub(crate) is_changing: bool,
}

/// The balancer does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) why: String,
    pub(crate) since: Moment,
}

/// What keys do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// They move and act.
    Normal,
    /// They write the text to search for.
    Find,
    /// They agree to a change or not. `shown_at`: since when the whole question has been on the screen.
    Confirm { change: Change, shown_at: Option<Moment> },
    /// The page about the keys is shown.
    Help,
}

/// The answer to a change, or a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    pub(crate) since: Moment,
}

impl State {
    /// Nothing is known yet.
    pub(crate) fn new(address: String, size: (u16, u16), now: Moment) -> State {
        State {
            address,
            now,
            size,
            picture: None,
            fetched_at: now,
            judgement: Judgement::default(),
            lost: None,
            paused: None,
            views: vec![View::new(Place::Services)],
            table: Listing::default(),
            input: Input::Normal,
            notice: None,
            is_changing: false,
        }
    }

    /// The view on the screen.
    pub(crate) fn view(&self) -> &View {
        static SERVICES: View = View::SERVICES;
        // It is never empty: views are added and removed, but never the first.
        self.views.last().unwrap_or(&SERVICES)
    }

    /// Takes a new picture, whose figures are as old as its first request. A question that it changes, apart
    /// from numbers, has to be read again.
    pub(crate) fn show(&mut self, picture: Picture, at: Moment) {
        if let (Input::Confirm { change, shown_at }, Some(before)) =
            (&mut self.input, &self.picture)
            && change.wording(before) != change.wording(&picture)
        {
            *shown_at = None;
        }
        self.judgement = Judgement::of(&picture);
        self.picture = Some(picture);
        self.fetched_at = at;
    }

    /// Makes the table of the view on the screen.
    pub(crate) fn arrange(&mut self) {
        let Some(picture) = &self.picture else { return };
        let view = self.view();
        let sort = view.place.is_sortable().then(|| Sort::at(view.sort));
        let listing = lists::listing(picture, &self.judgement, &view.place);
        self.table = listing.arranged(&view.filter, sort, view.is_reversed);
    }

    /// Notes that the screen was drawn. `has_question`: with the whole question about a change.
    pub(crate) fn drawn(&mut self, has_question: bool, now: Moment) {
        if let Input::Confirm { shown_at, .. } = &mut self.input {
            *shown_at = shown_at.or(Some(now)).filter(|_| has_question);
        }
    }

    /// Returns the age of the figures.
    pub(crate) fn age(&self) -> Duration {
        self.now.since(self.fetched_at)
    }

    /// Whether the figures are too old to act on.
    pub(crate) fn is_old(&self) -> bool {
        self.age() >= OLD
    }

    /// Returns the service that something is about, and its servers at fault.
    pub(crate) fn about(&self, id: &Id) -> Option<(&str, &[String])> {
        let of_finding = || {
            let seen =
                self.picture.as_ref()?.findings().find(|seen| Id::of(&seen.finding) == *id)?;
            Some((seen.finding.service.as_deref()?, &*seen.finding.servers))
        };
        match id {
            Id::Trouble { .. } => {
                let trouble = self.judgement.troubles.iter().find(|trouble| trouble.id == *id)?;
                Some((trouble.service.as_deref()?, &trouble.servers))
            }
            Id::Finding { .. } => of_finding(),
            _ => None,
        }
    }

    /// Returns what to fetch for the view on the screen.
    pub(crate) fn needs(&self) -> Needs {
        let place = &self.view().place;
        let page = match place {
            Place::Page(id) => Some(id),
            _ => None,
        };
        let server = match page {
            Some(Id::Server { service, address }) => Some((service.clone(), address.clone())),
            _ => None,
        };
        Needs {
            causes: *place == Place::Causes || matches!(page, Some(Id::Cause(_))),
            requests: matches!(place, Place::Requests(_) | Place::Clients),
            checks: *place == Place::Checks || server.is_some(),
            server,
            proposal: self.proposal(),
        }
    }

    /// Returns the change of a server that the question is about.
    fn proposal(&self) -> Option<Proposal> {
        let Input::Confirm { change: Change::Server { service, address, state }, .. } = &self.input
        else {
            return None;
        };
        let (service, address, state) = (service.clone(), address.clone(), *state);
        Some(Proposal { service, address, state })
    }
}
