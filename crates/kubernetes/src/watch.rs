//! Follows the objects of one source: lists them in pages, then watches for changes. What is known stays until a new
//! list is complete.
//!
//! ```text
//! list ──> watch ── ended by a time limit or an outage, and the server's version is not an older one ──> watch
//!            └───── 410 Gone, any failure, or another watch has found an older version ──> wait ──> list
//! ```
//!
//! After a failure the objects are listed again, instead of watching on from the last version: if the data of the API
//! server were restored from a backup, the same versions may stand for other changes, and the server skips changes with
//! versions that it believes to be known.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use http::Request;
use http::header::ACCEPT;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use gateway::objects::Key;

use crate::api::{self, Api, PAGE_OBJECTS_MAX, REQUEST_MAX};
use crate::backoff::Backoff;
use crate::failure::{Cause, Failure};
use crate::item::{self, Change, Item, Outline, Page};
use crate::kinds::Source;
use crate::news::Standing;
use crate::text::is_older;

/// The server ends a watch after about this time.
const WATCH_SECONDS: u64 = 270;
/// A watch without an event or a bookmark for this long is begun again: its connection may be dead. The server sends
/// bookmarks only for kinds that have changed since it started.
const SILENCE_MAX: Duration = Duration::from_secs(150);
/// A watch that has lasted this long was no failure.
const STEADY_AFTER: Duration = Duration::from_secs(20);
/// After this many watches in a row that ended early, the source counts as failing: the server, or a proxy before it, ends
/// them all. Changes are then seen with the next list only.
const EARLY_MAX: u32 = 3;
/// At most this many pages: a server that repeats itself must not be followed for ever.
const PAGES_MAX: usize = 10_000;

/// What a watch reports.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) source: Source,
    pub(crate) what: What,
}

/// See [`Message`].
#[derive(Debug)]
pub(crate) enum What {
    /// All objects, as they were in a generation (see `news`).
    Listed(Vec<Item>, u64),
    /// The server's version was not older than what is known, in a generation.
    Checked(u64),
    /// The objects are listed again, and nothing has failed that people should know.
    Interrupted,
    /// Changes are reported from now on: whatever failed is over.
    Followed,
    /// An object was added or changed.
    Applied(Box<Item>),
    /// An object was deleted.
    Deleted(Key),
    /// It cannot be read at the moment; it is tried again.
    Failed(Failure),
}

/// One watch.
pub(crate) struct Watch {
    pub(crate) api: Rc<Api>,
    pub(crate) source: Source,
    /// The version of the kind in the API.
    pub(crate) version: &'static str,
    /// Empty: all.
    pub(crate) label_selector: String,
    pub(crate) messages: mpsc::Sender<Message>,
}

/// The manager has ended.
struct Ended;

/// What is kept between attempts.
#[derive(Default)]
struct State {
    backoff: Backoff,
    /// Lists because of older data. If the data change back and forth between two histories, they are listed less and less
    /// often.
    histories: Backoff,
    /// How many watches in a row have ended early.
    early: u32,
    /// The version of what is known. Empty: nothing.
    version: String,
    /// The generation (see `news`) in which that was listed or checked last.
    known_at: u64,
    /// The number of retries (see `news`) before the last request, or when a watch ended.
    asked: u64,
}

/// Why the objects are listed again.
enum Again {
    Failed(Failure),
    /// Another watch has found older data.
    OlderData,
}

/// How a watch has ended.
enum End {
    Failed(Failure),
    /// By the server or after silence, in order.
    InOrder,
    /// A new generation has begun.
    Outdated,
}

impl Watch {
    /// Follows the source until the manager ends.
    pub(crate) async fn run(self) {
        let mut state = State::default();
        while let Ok(again) = self.follow(&mut state).await {
            let mut waits = &mut state.backoff;
            let (failure, is_failure) = match again {
                Again::Failed(failure) if failure.cause == Cause::Gone => {
                    state.early = state.early.saturating_add(1);
                    // One version that is too old is no failure for people.
                    (failure, state.early >= EARLY_MAX)
                }
                Again::Failed(failure) => (failure, true),
                Again::OlderData => {
                    state.asked = self.api.news().retries;
                    waits = &mut state.histories;
                    (older_data(), false)
                }
            };
            let what = if is_failure { What::Failed(failure.clone()) } else { What::Interrupted };
            if self.send(what).await.is_err() {
                return;
            }
            let wait = waits.failed(failure.retry_after, fastrand::f64());
            if self.api.wait(wait, &failure, state.asked).await {
                waits.restart();
            }
        }
    }

    async fn send(&self, what: What) -> Result<(), Ended> {
        let message = Message { source: self.source.clone(), what };
        self.messages.send(message).await.map_err(|_| Ended)
    }

    /// Lists and watches until the objects have to be listed again.
    async fn follow(&self, state: &mut State) -> Result<Again, Ended> {
        let items = match self.list(state).await {
            Ok(items) => items,
            // The next page of a list that took too long is gone. Unlike for a watch, that is a failure.
            Err(failure) if failure.cause == Cause::Gone => {
                return Ok(Again::Failed(Failure { cause: Cause::Other, ..failure }));
            }
            Err(failure) => return Ok(Again::Failed(failure)),
        };
        self.send(What::Listed(items, state.known_at)).await?;
        if state.backoff.failures() > 0 {
            self.api.readable_again();
        }
        loop {
            match self.api.news().standing(state.known_at) {
                Standing::Current => {}
                Standing::Outdated => return Ok(Again::OlderData),
                Standing::Unchecked => {
                    if let Err(failure) = self.check(state).await {
                        return Ok(Again::Failed(failure));
                    }
                    self.send(What::Checked(state.known_at)).await?;
                    continue;
                }
            }
            let began = os::clock::now();
            let end = self.watch(state).await?;
            let has_lasted = os::clock::now().since(began) >= STEADY_AFTER;
            if has_lasted {
                state.early = 0;
                state.backoff.succeeded();
                state.histories.succeeded();
            }
            match end {
                End::Failed(failure) => return Ok(Again::Failed(failure)),
                End::Outdated => {}
                // A server that ends watches at once must not be asked all the time.
                End::InOrder if !has_lasted => {
                    let failure = Failure::new(Cause::Gone, "watches end early");
                    return Ok(Again::Failed(failure));
                }
                End::InOrder => {
                    if let Err(failure) = self.check(state).await {
                        return Ok(Again::Failed(failure));
                    }
                    self.send(What::Checked(state.known_at)).await?;
                }
            }
        }
    }

    /// Checks that the server's version is not older than the one that is known.
    async fn check(&self, state: &mut State) -> Result<(), Failure> {
        let (page, generation) = self.page(1, "", state).await?;
        let found = text(&page.metadata["resourceVersion"]);
        if is_older(found, &state.version) {
            self.api.older_data(state.known_at);
            return Err(older_data());
        }
        state.known_at = generation;
        Ok(())
    }

    /// Lists all objects, and notes their version.
    async fn list(&self, state: &mut State) -> Result<Vec<Item>, Failure> {
        let (items, version, generation) = self.pages(state).await?;
        // The new history begins with the list that shows it.
        let is_news = is_older(&version, &state.version) && self.api.older_data(state.known_at);
        state.known_at = if is_news { self.api.news().generation } else { generation };
        state.version = version;
        Ok(items)
    }

    /// Returns all objects, their version, and the generation in which the first page was asked for.
    async fn pages(&self, state: &mut State) -> Result<(Vec<Item>, String, u64), Failure> {
        let mut items = Vec::new();
        let mut next = String::new();
        let mut first = None;
        for _ in 0..PAGES_MAX {
            let (page, generation) = self.page(PAGE_OBJECTS_MAX, &next, state).await?;
            let first = *first.get_or_insert(generation);
            let read = |object: &RawValue| item::read_text(self.source.kind, object.get());
            let before = items.len();
            items.extend(page.items.iter().map(|object| &**object).filter_map(read));
            self.skip(before + page.items.len() - items.len());
            text(&page.metadata["continue"]).clone_into(&mut next);
            if next.is_empty() {
                let version = text(&page.metadata["resourceVersion"]).to_owned();
                return Ok((items, version, first));
            }
            // Parsing a page takes milliseconds, in which nothing else runs.
            tokio::task::yield_now().await;
        }
        let line = format!("the list has more than {PAGES_MAX} pages");
        Err(Failure::new(Cause::Unusable, line))
    }

    async fn page(
        &self,
        limit: u32,
        next: &str,
        state: &mut State,
    ) -> Result<(Page, u64), Failure> {
        let mut path = self.path();
        put(&mut path, "limit", &limit.to_string());
        if !next.is_empty() {
            put(&mut path, "continue", next);
        }
        let request = self.request(&path, "PartialObjectMetadataList")?;
        state.asked = self.api.news().retries;
        let (body, generation) = self.api.bytes(request, REQUEST_MAX).await?;
        let page = serde_json::from_slice(&body).map_err(|error| {
            // Not an empty list: everything would be removed.
            let line = format!(
                "the answer is not a list of objects; does something answer in place of the API server? {error}"
            );
            Failure::new(Cause::Unusable, line)
        })?;
        Ok((page, generation))
    }

    /// Reports changes from the version on, and keeps it up to date.
    async fn watch(&self, state: &mut State) -> Result<End, Ended> {
        // Not all watches of all instances end at the same time.
        let seconds = WATCH_SECONDS + fastrand::u64(0..30);
        let mut path = self.path();
        put(&mut path, "watch", "true");
        put(&mut path, "allowWatchBookmarks", "true");
        put(&mut path, "timeoutSeconds", &seconds.to_string());
        put(&mut path, "resourceVersion", &state.version);
        let request = match self.request(&path, "PartialObjectMetadata") {
            Ok(request) => request,
            Err(failure) => return Ok(End::Failed(failure)),
        };
        state.asked = self.api.news().retries;
        let mut lines = match self.api.lines(request).await {
            Ok(lines) => lines,
            Err(failure) => return Ok(End::Failed(failure)),
        };
        // After several that ended early, it counts as followed once it has lasted.
        let is_trusted = state.early < EARLY_MAX;
        if is_trusted {
            self.send(What::Followed).await?;
        }
        let mut has_lasted = pin!(sleep(STEADY_AFTER));
        let mut is_followed = is_trusted;
        let mut outdated = pin!(self.api.outdated(state.known_at));
        loop {
            let event = tokio::select! {
                event = timeout(SILENCE_MAX, lines.next()) => event,
                () = &mut has_lasted, if !is_followed => {
                    is_followed = true;
                    self.send(What::Followed).await?;
                    continue;
                }
                // The connection may have died without a packet while no API server could be reached.
                () = &mut outdated => return Ok(End::Outdated),
            };
            state.asked = self.api.news().retries;
            let event = match event {
                Ok(Some(Ok(event))) => event,
                Ok(Some(Err(failure))) => return Ok(End::Failed(failure)),
                // Silence is no failure; whether the API server answers is found out next.
                Ok(None) | Err(_) => return Ok(End::InOrder),
            };
            if let Some(failure) = self.event(event, &mut state.version).await? {
                return Ok(End::Failed(failure));
            }
        }
    }

    /// Reports an event of a watch. Returns a failure if it is one.
    async fn event(&self, event: Change, version: &mut String) -> Result<Option<Failure>, Ended> {
        let object = event.object.as_deref().map_or("null", RawValue::get);
        if event.kind == "ERROR" {
            let status = serde_json::from_str(object).unwrap_or_default();
            return Ok(Some(Failure::of_status(500, &status)));
        }
        let Some(outline) = Outline::read(object) else {
            self.skip(1);
            return Ok(None);
        };
        if !outline.version.is_empty() {
            version.replace_range(.., &outline.version);
        }
        match &*event.kind {
            "ADDED" | "MODIFIED" => {
                if let Some(item) = item::read_text(self.source.kind, object) {
                    self.send(What::Applied(Box::new(item))).await?;
                }
            }
            "DELETED" => self.send(What::Deleted(outline.metadata.key())).await?,
            // Bookmarks have a version only.
            _ => {}
        }
        Ok(None)
    }

    /// Reports objects without a name: nothing else can be said about them.
    fn skip(&self, count: usize) {
        if count > 0 {
            tracing::warn!("{count} of the {} have no name and are ignored", self.source);
        }
    }

    fn path(&self) -> String {
        let mut path = self.source.kind.path(self.version, self.source.namespace.as_deref());
        path.push('?');
        if !self.label_selector.is_empty() {
            put(&mut path, "labelSelector", &self.label_selector);
        }
        path
    }

    fn request(&self, path: &str, metadata_as: &str) -> Result<Request<Vec<u8>>, Failure> {
        let accept = if self.source.kind.is_metadata_only() {
            format!("application/json;as={metadata_as};g=meta.k8s.io;v=v1")
        } else {
            "application/json".to_owned()
        };
        api::built(Request::get(path).header(ACCEPT, accept).body(Vec::new()))
    }
}

/// The failure of a check that has found older data.
fn older_data() -> Failure {
    let line = "the API server has older data than before; all objects are read again";
    Failure::new(Cause::Other, line)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Adds a parameter to a query.
fn put(path: &mut String, name: &str, value: &str) {
    if !path.ends_with(['?', '&']) {
        path.push('&');
    }
    path.push_str(name);
    path.push('=');
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            path.push(char::from(byte));
        } else {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            path.push('%');
            path.push(char::from(DIGITS[usize::from(byte >> 4)]));
            path.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_encoded() {
        let mut path = String::from("/a?");
        put(&mut path, "limit", "1");
        put(&mut path, "continue", "a+/=é&");
        assert_eq!(path, "/a?limit=1&continue=a%2B%2F%3D%C3%A9%26");
    }
}
