//! Which change a key asks for, and whether it can be made now.

use model::Administrative;

use super::action::Change;
use super::state::{Input, Notice, State};
use super::table::Id;
use super::view::Place;

/// What keys change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Server { service: String, address: String },
    Service(String),
}

impl State {
    /// Returns what the keys for changes are about: the page's subject, or the selected row's.
    pub(crate) fn subject(&self) -> Option<Subject> {
        let id = match &self.view().place {
            Place::Page(id) => id,
            _ => self.view().id.as_ref()?,
        };
        let server = |service: &str, address: &String| {
            Some(Subject::Server { service: service.to_owned(), address: address.clone() })
        };
        match id {
            Id::Server { service, address }
            | Id::Request { service, server: Some(address), .. } => server(service, address),
            Id::Service(name) => Some(Subject::Service(name.clone())),
            Id::Trouble { .. } | Id::Finding { .. } => match self.about(id)? {
                (service, [address]) => server(service, address),
                _ => None,
            },
            _ => None,
        }
    }

    /// Asks whether a change is wanted.
    pub(super) fn ask(&mut self, state: Administrative) {
        let change = match (self.subject(), state) {
            (Some(Subject::Server { service, address }), state) => {
                Change::Server { service, address, state }
            }
            (Some(Subject::Service(service)), Administrative::Maintenance) => {
                Change::Service { service, on: true }
            }
            (Some(Subject::Service(service)), Administrative::Ready) => {
                Change::Service { service, on: false }
            }
            (Some(Subject::Service(_)), Administrative::Drain) => {
                return self
                    .refuse("A service cannot be drained: open it with enter and drain a server");
            }
            (None, _) => {
                return self.refuse("Select a server first: these keys change its state");
            }
        };
        match self.obstacle(&change) {
            Some(why) => self.refuse(&why),
            None => self.input = Input::Confirm { change, shown_at: None },
        }
    }

    /// Returns the reason why a change cannot be made now.
    pub(super) fn obstacle(&self, change: &Change) -> Option<String> {
        let is_known = || match change {
            Change::Server { service, address, .. } => {
                self.picture.as_ref().is_some_and(|known| known.server(service, address).is_some())
            }
            Change::Service { .. } => true,
        };
        if self.paused.is_some() {
            Some("The figures are paused: space continues, then ask again".to_owned())
        } else if self.lost.is_some() || self.is_old() {
            Some("The figures are old, so nothing can be changed from here".to_owned())
        } else if self.is_changing {
            Some("The last change has not been answered yet".to_owned())
        } else if !is_known() {
            Some("This server has no address at present".to_owned())
        } else {
            None
        }
    }

    /// Shows why a key has no effect.
    pub(super) fn refuse(&mut self, why: &str) {
        self.notice = Some(Notice { text: why.to_owned(), is_error: true, since: self.now });
    }
}
