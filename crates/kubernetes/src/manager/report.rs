//! How the connection is → the caller's health, and events for what has changed.

use std::sync::Arc;

use os::clock::now;

use super::{Manager, shown};
use crate::event::Event;
use crate::failure::Cause;

impl Manager {
    fn report_unreadable(&mut self) {
        for ((kind, key), error) in std::mem::take(&mut self.store.dirty.unreadable) {
            (self.events)(Event::Unreadable { object: format!("{} {key}", kind.name()), error });
        }
    }

    /// Publishes how the connection is, if it has changed.
    pub(super) fn report(&mut self) {
        self.report_unreadable();
        let failures = self.watches.values().filter_map(|running| running.failure.as_ref());
        let others = [&self.discovery, &self.election].into_iter().flatten();
        let outage = failures.clone().chain(others).find(|failure| failure.is_outage());
        // One kind may fail for reasons of its own.
        let is_all = self.watches.values().all(|running| running.failure.is_some());
        let outage = outage.or_else(|| failures.clone().next().filter(|_| is_all));
        let has_any = self.watches.values().any(|running| running.is_listed);
        let is_connected = outage.is_none() && (has_any || self.health.is_connected);
        match outage {
            Some(failure) if !self.has_reported_outage => {
                (self.events)(Event::Disconnected { error: Arc::clone(&failure.line) });
                self.has_reported_outage = true;
            }
            None if is_connected && !self.health.is_connected => {
                (self.events)(Event::Connected);
                self.has_reported_outage = false;
            }
            Some(_) | None => {}
        }
        if is_connected != self.health.is_connected {
            self.health.is_connected = is_connected;
            self.health.since = now();
        }
        let failing = self.watches.iter().filter_map(|(source, running)| {
            Some((shown(source), Arc::clone(&running.failure.as_ref()?.line)))
        });
        self.health.failing = failing.collect();
        self.report_forbidden();
        self.health.is_leading = self.is_leading;
        self.health.writes_waiting = self.writer.waiting();
        if std::mem::take(&mut self.store.dirty.has_unreadable) {
            let unreadable = self.store.unreadable.iter();
            let named = unreadable
                .map(|((kind, key), why)| (format!("{} {key}", kind.name()), why.clone()));
            self.health.unreadable = named.collect();
        }
        self.outputs.health.send_if_modified(|before| {
            let is_changed = **before != self.health;
            if is_changed {
                *before = Arc::new(self.health.clone());
            }
            is_changed
        });
    }

    fn report_forbidden(&mut self) {
        let mut forbidden = self.writer.forbidden.clone();
        for (source, running) in &self.watches {
            if let Some(failure) =
                running.failure.as_ref().filter(|one| one.cause == Cause::Forbidden)
            {
                forbidden.insert(format!("list {}", shown(source)), Arc::clone(&failure.line));
            }
        }
        for (what, failure) in [
            ("read the kinds of the Gateway API", &self.discovery),
            ("read and write the Lease", &self.election),
        ] {
            if let Some(failure) = failure.as_ref().filter(|one| one.cause == Cause::Forbidden) {
                forbidden.insert(what.to_owned(), Arc::clone(&failure.line));
            }
        }
        for (what, error) in &forbidden {
            if !self.health.forbidden.contains(what) {
                let (what, error) = (what.clone(), Arc::clone(error));
                (self.events)(Event::Forbidden { what, error });
            }
        }
        for what in &self.health.forbidden {
            if !forbidden.contains_key(what) {
                (self.events)(Event::Permitted { what: what.clone() });
            }
        }
        self.health.forbidden = forbidden.into_keys().collect();
    }
}
