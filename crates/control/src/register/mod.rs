//! The entries of Weir's listeners in Consul: one task for each keeps its entry, with a check that says whether Weir
//! is ready.
//!
//! Nothing is registered before [`Registrar::announce`]: this process serves then. A failing agent affects neither
//! requests nor readiness. Clocks and connections are here; `discovery::consul::register` has what is sent and what
//! answers mean.

mod agent;
mod bounded;
mod keep;
mod losses;
mod ownership;
mod state;
#[cfg(test)]
mod tests;
mod wanted;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use discovery::consul::register::{CheckStatus, Metadata};
use model::{Consul, Registration, Snapshot};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub(crate) use bounded::HANDED_OVER_MAX;
use keep::Kept;
pub use state::RegistrationState;
pub(crate) use state::Registrations;
use wanted::{Details, Wanted};

/// Identifies an entry: its ID, and the URL of the agent.
type Key = (Box<str>, String);

struct Task {
    details: Rc<Details>,
    wanted: watch::Sender<Wanted>,
    /// Whether the agent has accepted the entry.
    is_registered: watch::Receiver<bool>,
    handle: JoinHandle<()>,
}

/// All entries.
pub(crate) struct Registrar {
    shown: Arc<Registrations>,
    metadata: Metadata,
    /// `None`: this process does not serve yet, or no longer.
    announced: Option<CheckStatus>,
    /// Those of the configuration in force.
    configured: Vec<(Arc<str>, Arc<Registration>)>,
    consul: Option<Arc<Consul>>,
    /// How many details there were.
    count: u64,
    tasks: HashMap<Key, Task>,
    /// Tasks that remove their entries.
    leaving: HashMap<Key, Task>,
}

impl Registrar {
    pub(crate) fn new(shown: Arc<Registrations>) -> Registrar {
        let instance = format!("{:016x}", fastrand::u64(..)).into();
        Registrar {
            shown,
            metadata: Metadata { version: env!("CARGO_PKG_VERSION"), instance },
            announced: None,
            configured: Vec::new(),
            consul: None,
            count: 0,
            tasks: HashMap::new(),
            leaving: HashMap::new(),
        }
    }

    /// Applies a configuration: new entries are registered, changed ones again, and those that are gone removed.
    pub(crate) fn follow(&mut self, snapshot: &Snapshot) {
        let listeners = snapshot.listeners.iter();
        let configured = listeners
            .filter_map(|listener| Some((Arc::clone(&listener.name), listener.register.clone()?)));
        self.configured = configured.collect();
        self.consul.clone_from(&snapshot.registries.consul);
        self.update();
    }

    /// Registers all entries with this status, or changes it. A process that has not served registers nothing when
    /// it stops.
    pub(crate) fn announce(&mut self, status: CheckStatus) {
        if self.announced.is_none() && status == CheckStatus::Critical {
            return;
        }
        self.announced = Some(status);
        self.update();
    }

    /// Removes all entries; replies when that is done, or after `max`.
    pub(crate) fn remove(&mut self, max: Duration, reply: SyncSender<()>) {
        self.announced = None;
        self.update();
        let leaving: Vec<_> = self.leaving.drain().collect();
        end(
            leaving,
            max,
            reply,
            "Consul may still list this process: it was not deregistered in time",
        );
    }

    /// Ends all tasks; the entries stay, since another process keeps them from now on. Replies when nothing is sent
    /// any more, or after a second. Removals may end in that time.
    pub(crate) fn hand_over(&mut self, reply: SyncSender<()>) {
        self.announced = None;
        self.shown.keep(|_| false);
        let mut ending: Vec<_> = self.leaving.drain().collect();
        for (key, task) in self.tasks.drain() {
            task.want(Wanted::HandedOver);
            ending.push((key, task));
        }
        end(
            ending,
            HANDED_OVER_MAX,
            reply,
            "the new process takes over during requests to Consul; entries that were being removed may stay",
        );
    }

    fn update(&mut self) {
        self.leaving.retain(|_, task| !task.handle.is_finished());
        let mut before = std::mem::take(&mut self.tasks);
        let mut begun = Vec::new();
        if let (Some(status), Some(consul)) = (self.announced, self.consul.clone()) {
            for (listener, entry) in &self.configured {
                let key = (entry.id.clone(), consul.peer.url.to_string());
                let known = before.remove(&key);
                let is_same = known.as_ref().is_some_and(|task| {
                    let details = &task.details;
                    details.listener == *listener
                        && details.entry == *entry
                        && details.consul == consul
                });
                // A removal in progress ends before the entry is registered again.
                let known = known.or_else(|| self.leaving.remove(&key));
                let mut task = match known {
                    Some(task) if is_same => {
                        task.want(Wanted::Listed(Rc::clone(&task.details), status));
                        self.tasks.insert(key, task);
                        continue;
                    }
                    known => known,
                };
                self.count += 1;
                let details = Rc::new(Details::new(self.count, listener, entry, &consul));
                self.shown.begin(&details);
                if let Some(task) = &mut task {
                    task.details = Rc::clone(&details);
                    task.want(Wanted::Listed(Rc::clone(&details), status));
                }
                let task = task.unwrap_or_else(|| {
                    let task = self.start(details, status);
                    begun.push(task.is_registered.clone());
                    task
                });
                self.tasks.insert(key, task);
            }
        }
        for (key, task) in before {
            task.want(Wanted::Gone(begun.clone()));
            self.leaving.insert(key, task);
        }
        let tasks = &self.tasks;
        self.shown.keep(|listener| tasks.values().any(|task| *task.details.listener == *listener));
    }

    fn start(&self, details: Rc<Details>, status: CheckStatus) -> Task {
        let (wanted, changes) = watch::channel(Wanted::Listed(Rc::clone(&details), status));
        let (registered, is_registered) = watch::channel(false);
        let (shown, metadata) = (Arc::clone(&self.shown), self.metadata.clone());
        let kept = Kept::new(Rc::clone(&details), metadata, shown, registered);
        let handle = tokio::task::spawn_local(kept.keep(changes));
        Task { details, wanted, is_registered, handle }
    }
}

impl Task {
    /// Changes what is wanted; a task is woken only if that differs.
    fn want(&self, wanted: Wanted) {
        self.wanted.send_if_modified(|now| {
            let differs = *now != wanted;
            if differs {
                *now = wanted;
            }
            differs
        });
    }
}

/// Waits for the end of all tasks, for `max` at most, and replies. Logs `late` with the IDs of those that have not
/// ended.
fn end(tasks: Vec<(Key, Task)>, max: Duration, reply: SyncSender<()>, late: &'static str) {
    let deadline = Instant::now() + max;
    tokio::task::spawn_local(async move {
        let mut left = Vec::new();
        for ((id, _), mut task) in tasks {
            if tokio::time::timeout_at(deadline, &mut task.handle).await.is_err() {
                task.handle.abort();
                left.push(id);
            }
        }
        if !left.is_empty() {
            tracing::warn!(ids = left.join(" "), "{late}");
        }
        // The receiver may be gone.
        let _ = reply.send(());
    });
}
