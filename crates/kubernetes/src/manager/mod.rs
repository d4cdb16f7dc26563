//! Connects everything: watches → store → resolver → the caller and the writer. All on one thread.

mod hiding;
mod publish;
mod references;
mod report;
mod requests;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gateway::objects::Key;
use gateway::pods::PodSets;
use gateway::resolve::incremental::Changes;
use gateway::served::{InForce, Served};
use model::Moment;
use os::clock::now;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::sleep;

use self::publish::Outcome;
use crate::absence::Absences;
use crate::api::Api;
use crate::discover;
use crate::elect::{self, Elector};
use crate::event::Event;
use crate::expose::ports::Ports;
use crate::failing::Failing;
use crate::failure::{Cause, Failure};
use crate::fetch::Fetches;
use crate::health::Health;
use crate::hidden::Hidden;
use crate::kinds::{Discovered, Kind, Source, Versions};
use crate::recorder::Recorder;
use crate::relists::Relists;
use crate::resolver::{PortLimits, Resolver};
use crate::reviews;
use crate::settings::{Exposure, Settings};
use crate::store::{Id, Store};
use crate::watch::{Message, What};
use crate::writer::{Answer, Writer};

/// Objects are resolved at most once in this time.
const RESOLVE_EVERY_MIN: Duration = Duration::from_millis(20);
/// After a quiet time, further changes are waited for this long.
const GATHER: Duration = Duration::from_millis(5);
/// At most this many messages of watches wait; then the watches wait.
const MESSAGES_MAX: usize = 64;
/// After this many messages at once, other work is looked at.
const BATCH_MAX: usize = 256;

/// What the caller receives.
pub(crate) struct Outputs {
    pub(crate) served: watch::Sender<Arc<Served>>,
    pub(crate) pods: watch::Sender<Arc<PodSets>>,
    pub(crate) health: watch::Sender<Arc<Health>>,
}

/// A watch that runs.
struct Running {
    version: &'static str,
    task: AbortHandle,
    is_listed: bool,
    failure: Option<Failure>,
    /// How often it has failed in a row without a list.
    failures: u32,
    /// Since when it has been forbidden without interruption.
    forbidden_since: Option<Moment>,
    /// Whether Weir serves without this kind: it need not read it, and has not been allowed to.
    is_left_out: bool,
}

/// The end of a request.
enum Done {
    Read(Id, Result<Value, Failure>),
    Written(Box<Answer>),
    Recorded(Result<(), Failure>),
}

/// Everything that is known.
pub(crate) struct Manager {
    settings: Arc<Settings>,
    events: crate::Events,
    outputs: Outputs,
    api: Rc<Api>,
    elector: Rc<Elector>,
    store: Store,
    resolver: Resolver,
    discovered: Discovered,
    discovery: Option<Failure>,
    watches: BTreeMap<Source, Running>,
    fetches: Fetches,
    writer: Writer,
    recorder: Recorder,
    ports: Ports,
    absences: Absences,
    messages: mpsc::Sender<Message>,
    done: mpsc::Sender<Done>,
    /// When objects are resolved next.
    resolve_at: Option<Moment>,
    /// When they can be resolved again.
    rested_at: Moment,
    /// Since when changes have been held back until objects that they refer to are read.
    held_since: Option<Moment>,
    relists: Relists,
    is_complete: bool,
    is_leading: bool,
    election: elect::State,
    /// The ports of Services that Gateways use.
    used: Arc<PortLimits>,
    /// The Pods of ports that only the generation in force uses.
    leaving: PodSets,
    /// The statuses of the generation that was published last.
    latest: Option<Outcome>,
    /// Those that wait for their generation to be in force.
    pending: Option<Outcome>,
    /// Those that were passed to the writer last.
    passed: Option<Outcome>,
    health: Health,
    not_exposed: BTreeSet<Key>,
    /// Whether it may have changed which contents are unknown.
    has_unread: bool,
    /// How many objects of a kind are beyond its limit.
    refused: BTreeMap<Kind, usize>,
    has_reported_outage: bool,
    /// When the first objects were asked for.
    began: Moment,
    has_reported_awaited: bool,
    failing: Failing,
    absent: Option<BTreeSet<&'static str>>,
    /// The namespaces whose Pods may state limits.
    pod_namespaces: BTreeSet<Arc<str>>,
    /// Whether there are more of them than Weir watches.
    has_refused_pods: bool,
    /// The namespaces that the start has skipped.
    hidden: Hidden,
    /// Whether this instance has left the election for good.
    has_left: bool,
}

/// What arrives at the manager.
pub(crate) struct Inputs {
    messages: mpsc::Receiver<Message>,
    done: mpsc::Receiver<Done>,
}

impl Manager {
    pub(crate) fn new(
        settings: Arc<Settings>,
        outputs: Outputs,
        events: crate::Events,
    ) -> (Manager, Inputs) {
        let (messages, messages_received) = mpsc::channel(MESSAGES_MAX);
        let (done, done_received) = mpsc::channel(MESSAGES_MAX);
        let api = Rc::new(Api::new(settings.kubeconfig.clone()));
        let elector = Elector::new(
            Rc::clone(&api),
            Arc::clone(&settings.namespace),
            Arc::clone(&settings.lease),
            Arc::clone(&settings.identity),
        );
        let (first, last) = match settings.exposure {
            Exposure::Services { port_first, port_last, .. } => (port_first, port_last),
            Exposure::Pool { .. } => (1, 1),
        };
        let manager = Manager {
            resolver: Resolver::new(&settings),
            writer: Writer::new(Arc::clone(&settings.controller_name)),
            recorder: Recorder::new(settings.namespaces.as_deref()),
            settings,
            events,
            outputs,
            api,
            elector: Rc::new(elector),
            store: Store::default(),
            discovered: Discovered::default(),
            discovery: None,
            watches: BTreeMap::new(),
            fetches: Fetches::new(),
            ports: Ports::new(first, last),
            absences: Absences::default(),
            messages,
            done,
            resolve_at: None,
            rested_at: Moment::ZERO,
            held_since: None,
            relists: Relists::default(),
            is_complete: false,
            is_leading: false,
            election: elect::State::default(),
            used: Arc::default(),
            leaving: PodSets::default(),
            latest: None,
            pending: None,
            passed: None,
            health: Health::new(now()),
            not_exposed: BTreeSet::new(),
            has_unread: false,
            refused: BTreeMap::new(),
            has_reported_outage: false,
            began: now(),
            has_reported_awaited: false,
            failing: Failing::default(),
            absent: None,
            pod_namespaces: BTreeSet::new(),
            has_refused_pods: false,
            hidden: Hidden::default(),
            has_left: false,
        };
        (manager, Inputs { messages: messages_received, done: done_received })
    }

    /// Works until `stop`, then gives the Lease up.
    pub(crate) async fn run(
        mut self,
        mut inputs: Inputs,
        reviews: Option<reviews::Work>,
        mut in_force: watch::Receiver<Arc<InForce>>,
        (mut leave, mut stop): (oneshot::Receiver<()>, oneshot::Receiver<()>),
    ) {
        if let Some(work) = reviews {
            spawn_local(reviews::run(Rc::clone(&self.api), work));
        }
        let (answers, mut answered) = mpsc::channel(1);
        spawn_local(discover::run(Rc::clone(&self.api), answers));
        let (state, mut elected) = watch::channel(elect::State::default());
        let elector = Rc::clone(&self.elector);
        let election = spawn_local(async move { elector.run(state).await });
        self.watch(&Versions::new());
        loop {
            self.begin_requests();
            self.report();
            let due = [self.resolve_at, self.writes_due(), self.fetches.due(), self.absences.due()];
            tokio::select! {
                // Also when the handle has been dropped.
                _ = &mut stop => break,
                _ = &mut leave, if !self.has_left => {
                    self.has_left = true;
                    election.abort();
                    self.elected(elect::State::default());
                    let elector = Rc::clone(&self.elector);
                    spawn_local(async move { elector.release().await });
                }
                () = until(due.into_iter().flatten().min()) => {
                    if self.resolve_at.is_some_and(|at| at <= now()) {
                        let in_force = Arc::clone(&in_force.borrow());
                        self.resolve(&in_force);
                    }
                    if self.absences.due().is_some_and(|at| at <= now()) {
                        self.set_unwanted();
                    }
                }
                Some(message) = inputs.messages.recv() => {
                    self.take(message);
                    for _ in 0..BATCH_MAX {
                        let Ok(message) = inputs.messages.try_recv() else { break };
                        self.take(message);
                    }
                }
                Some(done) = inputs.done.recv() => self.end(done),
                Some(answer) = answered.recv() => self.discovered(answer),
                Ok(()) = elected.changed(), if !self.has_left => {
                    let state = elected.borrow_and_update().clone();
                    self.elected(state);
                }
                Ok(()) = in_force.changed() => {
                    let in_force = Arc::clone(&in_force.borrow_and_update());
                    self.in_force(&in_force);
                }
            }
        }
        election.abort();
        self.elector.release().await;
    }

    /// Takes what a watch reports.
    fn take(&mut self, message: Message) {
        let Message { source, what } = message;
        self.relists.observe(self.api.news().generation, now());
        // A watch that was ended may still have sent something.
        let Some(running) = self.watches.get_mut(&source) else { return };
        let is_change = matches!(what, What::Applied(_) | What::Deleted(_));
        match what {
            What::Listed(items, generation) => {
                // Ports are allocated once all Services that Weir made are known.
                self.store.dirty.has_surroundings |=
                    source.kind == Kind::OwnService && !running.is_listed;
                running.is_listed = true;
                running.is_left_out = false;
                running.failures = 0;
                self.relists.listed(&source, generation, now());
                self.list(&source, items);
            }
            What::Checked(generation) => self.relists.checked(&source, generation),
            What::Interrupted => self.relists.interrupted(&source),
            What::Followed => running.succeeded(),
            What::Applied(item) => match self.hidden.of(&source) {
                Some(hidden) => drop(hidden.insert(item.key.clone(), *item)),
                None => self.store.apply(source.kind, *item),
            },
            What::Deleted(key) => match self.hidden.of(&source) {
                Some(hidden) => drop(hidden.remove(&key)),
                None => self.store.delete(source.kind, &key),
            },
            What::Failed(failure) => {
                self.health.last_error = Some(Arc::clone(&failure.line));
                self.relists.failed(&source, &failure);
                running.failed(failure);
                if source.kind.is_optional() {
                    self.leave_out(now());
                    // It may be the last kind of a namespace.
                    self.reveal_complete();
                }
            }
        }
        if !is_change {
            // Contents may have become unknown or known, and so may Gateways that are absent.
            self.has_unread |= source.kind.is_fetched();
            if matches!(source.kind, Kind::Gateway | Kind::IngressClass) {
                self.set_unwanted();
            }
        }
        if self.is_complete {
            self.gather();
        } else {
            // Also for an empty list: the start may have waited for it.
            self.resolve_within(GATHER);
        }
    }

    /// Schedules the resolution of changes.
    fn gather(&mut self) {
        let has_pods = !self.store.dirty.slices.is_empty();
        // While changes are held back, only Pods are published.
        let has_changes = !self.is_holding() && (self.store.dirty.is_any() || self.has_unread);
        if has_pods || has_changes {
            self.resolve_within(GATHER);
        }
    }

    /// Schedules the next resolution in a while at the latest, but not before the rest after the last one is over.
    fn resolve_within(&mut self, wait: Duration) {
        let at = (now() + wait).max(self.rested_at);
        self.resolve_at = Some(self.resolve_at.map_or(at, |before| before.min(at)));
    }

    fn elected(&mut self, state: elect::State) {
        if let Some(failure) = &state.failure {
            self.health.last_error = Some(Arc::clone(&failure.line));
        }
        let is_leading = state.is_leading;
        self.election = state;
        if is_leading == self.is_leading {
            return;
        }
        self.is_leading = is_leading;
        (self.events)(Event::Leading { is_leading });
        if is_leading {
            self.writer.push_all(&self.store);
            self.recorder.restart(now());
            self.list_own_services();
        } else {
            self.writer.clear();
            self.ports.forget();
        }
    }

    /// Resolves what has changed, and publishes it.
    fn resolve(&mut self, in_force: &InForce) {
        let began = now();
        self.resolve_at = None;
        self.try_resolve(began, in_force);
        // A resolve that takes long must leave time for other work.
        let ended = now();
        self.rested_at = ended + RESOLVE_EVERY_MIN.max(ended.since(began));
    }

    fn try_resolve(&mut self, began: Moment, in_force: &InForce) {
        self.set_pod_namespaces();
        self.set_references();
        if self.is_complete {
            self.relists.observe(self.api.news().generation, began);
            if let Some(end) = self.relists.end() {
                self.resolve_at = Some(end);
                // What is referred to afterwards has its own time.
                self.held_since = None;
                self.publish_pods();
                return;
            }
            if self.holds_back(began) {
                self.publish_pods();
                return;
            }
        } else {
            if !self.starts() {
                return;
            }
            self.is_complete = true;
            self.fetches.give_up();
            self.store.dirty.has_surroundings = true;
            (self.events)(Event::Complete);
        }
        let touched = std::mem::take(&mut self.store.dirty.statuses);
        let mut changes = self.store.take_changes();
        if self.health.resolved == 0 {
            changes = Changes::all();
        }
        let has_surroundings = std::mem::take(&mut self.store.dirty.has_surroundings);
        if has_surroundings || self.resolver.is_concerned(&self.store, &changes) {
            let resolution = self.resolver.resolve(&self.store, &changes);
            self.health.resolved += 1;
            self.publish(resolution, in_force);
        } else {
            self.publish_pods();
        }
        if self.is_leading {
            self.writer.touch(touched);
        }
    }
}

impl Running {
    fn new(version: &'static str, task: AbortHandle) -> Running {
        Running {
            version,
            task,
            is_listed: false,
            failure: None,
            failures: 0,
            forbidden_since: None,
            is_left_out: false,
        }
    }

    /// Returns whether nothing of this kind is missing.
    fn is_read(&self) -> bool {
        self.is_listed || self.is_left_out
    }

    fn failed(&mut self, failure: Failure) {
        if failure.cause == Cause::Forbidden {
            self.forbidden_since.get_or_insert(now());
        } else {
            self.forbidden_since = None;
        }
        self.failures = self.failures.saturating_add(1);
        self.failure = Some(failure);
    }

    fn succeeded(&mut self) {
        self.forbidden_since = None;
        self.failures = 0;
        self.failure = None;
    }
}

/// Waits until a moment, or for ever.
async fn until(at: Option<Moment>) {
    match at {
        Some(at) => sleep(at.since(now())).await,
        None => std::future::pending().await,
    }
}
