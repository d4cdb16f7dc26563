//! Requests to the API server besides watches: contents of Secrets and ConfigMaps, and writes.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use model::Moment;
use os::clock::{now, wall};
use tokio::task::spawn_local;

use super::{Done, GATHER, Manager};
use crate::api::{self, REQUEST_MAX};
use crate::event::Event;
use crate::failure::Cause;
use crate::item;
use crate::recorder;
use crate::text;
use crate::writer;

/// Contents of Secrets and ConfigMaps that arrive within this time are resolved at once: certificates are often renewed
/// together.
const GATHER_READS: Duration = Duration::from_millis(50);

impl Manager {
    /// Begins requests that are due.
    pub(super) fn begin_requests(&mut self) {
        while let Some(id) = self.fetches.begin(now()) {
            let (api, done) = (Rc::clone(&self.api), self.done.clone());
            spawn_local(async move {
                let (kind, key) = &id;
                let path = format!("{}/{}", kind.path("v1", Some(&key.namespace)), key.name);
                let found = match api::get(&path) {
                    Ok(request) => api.json(request, REQUEST_MAX).await,
                    Err(failure) => Err(failure),
                };
                // The manager may have ended.
                let _ = done.send(Done::Read(id, found)).await;
            });
        }
        if !self.may_write() {
            return;
        }
        let time = text::time(wall());
        while let Some((write, job)) =
            self.writer.begin(&self.store, &self.discovered.versions, now(), &time)
        {
            let (api, done) = (Rc::clone(&self.api), self.done.clone());
            spawn_local(async move {
                let answer = writer::execute(api, write, job).await;
                let _ = done.send(Done::Written(Box::new(answer))).await;
            });
        }
        if let Some((key, body)) = self.recorder.begin(now(), &time) {
            let (api, done) = (Rc::clone(&self.api), self.done.clone());
            spawn_local(async move {
                let result = recorder::write(api, key, body).await;
                let _ = done.send(Done::Recorded(result)).await;
            });
        }
    }

    /// Returns when the next write is due.
    pub(super) fn writes_due(&self) -> Option<Moment> {
        let due = [self.writer.due(now()), self.recorder.due(now())];
        due.into_iter().flatten().min().filter(|_| self.may_write())
    }

    /// Returns whether this instance may write at this moment.
    pub(super) fn may_write(&self) -> bool {
        self.is_leading && self.elector.is_leading()
    }

    /// Takes the end of a request.
    pub(super) fn end(&mut self, done: Done) {
        let is_read = matches!(done, Done::Read(..));
        match done {
            Done::Written(answer) => {
                if let Some(event) = self.writer.end(*answer, &mut self.store, now()) {
                    (self.events)(event);
                }
            }
            Done::Recorded(result) => {
                let (now, time) = (now(), text::time(wall()));
                let report = self.recorder.end(result, now, &time, fastrand::f64());
                if let Some(event) = report {
                    (self.events)(event);
                }
            }
            Done::Read(id, Ok(object)) => {
                self.has_unread = true;
                let version = object["metadata"]["resourceVersion"].as_str().map(Box::from);
                if self.fetches.read(&id, version, now()) {
                    match item::contents(id.0, object) {
                        Ok(contents) => self.store.set_contents(&id.1, contents),
                        Err(error) => {
                            self.store.remove_contents(&id);
                            self.fetches.unusable(&id, Arc::clone(&error));
                            let object = format!("{} {}", id.0.name(), id.1);
                            (self.events)(Event::Unreadable { object, is_ignored: true, error });
                        }
                    }
                }
            }
            Done::Read(id, Err(failure)) if failure.cause == Cause::NotFound => {
                self.has_unread = true;
                if self.fetches.read(&id, None, now()) {
                    self.store.remove_contents(&id);
                }
            }
            Done::Read(id, Err(failure)) => {
                // What was read before stays.
                self.health.last_error = Some(Arc::clone(&failure.line));
                let is_news = self.fetches.failed(&id, failure, now(), fastrand::f64());
                self.has_unread |= is_news;
            }
        }
        if is_read {
            // Others are likely to follow. The start and changes that are held back wait for the last one.
            let waits = !self.is_complete || self.is_holding();
            self.resolve_within(if waits { GATHER } else { GATHER_READS });
        } else if self.is_complete {
            self.gather();
        }
    }
}
