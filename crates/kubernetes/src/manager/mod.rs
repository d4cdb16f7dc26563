//! Connects everything: watches → store → resolver → the caller and the writer. All on one thread.

mod publish;
mod report;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use gateway::objects::Key;
use gateway::pods::{PodSets, ServicePortKey};
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
use crate::expose::service;
use crate::failure::{Cause, Failure};
use crate::fetch::{self, Fetches};
use crate::health::Health;
use crate::kinds::{Discovered, Kind, Source, Versions};
use crate::resolver::Resolver;
use crate::settings::{Exposure, Settings};
use crate::store::{Id, Store};
use crate::watch::{Message, Watch, What};
use crate::writer::{Answer, Writer};

/// Objects are resolved at most once in this time.
const RESOLVE_EVERY_MIN: Duration = Duration::from_millis(20);
/// After a quiet time, further changes are waited for this long.
const GATHER: Duration = Duration::from_millis(5);
/// Changes wait at most this long for what they refer to.
const HOLD_MAX: Duration = Duration::from_secs(2);
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
}

/// The end of a request.
enum Done {
    Read(Id, Result<Value, Failure>),
    Written(Box<Answer>),
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
    is_complete: bool,
    is_leading: bool,
    election: Option<Failure>,
    /// The ports of Services that Gateways use.
    used: BTreeSet<ServicePortKey>,
    /// The statuses of the generation that was published last.
    latest: Option<Outcome>,
    /// Those that wait for their generation to be in force.
    pending: Option<Outcome>,
    /// Those that were passed to the writer last.
    passed: Option<Outcome>,
    health: Health,
    not_exposed: BTreeSet<Key>,
    cut: Vec<Kind>,
    has_reported_outage: bool,
    absent: Option<BTreeSet<&'static str>>,
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
            is_complete: false,
            is_leading: false,
            election: None,
            used: BTreeSet::new(),
            latest: None,
            pending: None,
            passed: None,
            health: Health::new(now()),
            not_exposed: BTreeSet::new(),
            cut: Vec::new(),
            has_reported_outage: false,
            absent: None,
        };
        (manager, Inputs { messages: messages_received, done: done_received })
    }

    /// Works until `stop`, then gives the Lease up.
    pub(crate) async fn run(
        mut self,
        mut inputs: Inputs,
        mut in_force: watch::Receiver<Arc<InForce>>,
        mut leave: oneshot::Receiver<()>,
        mut stop: oneshot::Receiver<()>,
    ) {
        let (answers, mut answered) = mpsc::channel(1);
        spawn_local(discover::run(Rc::clone(&self.api), answers));
        let (state, mut elected) = watch::channel(elect::State::default());
        let elector = Rc::clone(&self.elector);
        let election = spawn_local(async move { elector.run(state).await });
        self.watch(&Versions::new());
        let mut has_left = false;
        loop {
            self.begin_requests();
            self.report();
            let writes = self.writer.due(now()).filter(|_| self.may_write());
            let due = [self.resolve_at, writes, self.fetches.due(), self.absences.due()];
            tokio::select! {
                // Also when the handle has been dropped.
                _ = &mut stop => break,
                _ = &mut leave, if !has_left => {
                    has_left = true;
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
                Ok(()) = elected.changed(), if !has_left => {
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
        // A watch that was ended may still have sent something.
        let Some(running) = self.watches.get_mut(&source) else { return };
        let failure = match what {
            What::Listed(items) => {
                // Ports are allocated once all Services that Weir made are known.
                self.store.dirty.has_exposure |=
                    source.kind == Kind::OwnService && !running.is_listed;
                running.is_listed = true;
                self.store.replace(&source, items);
                None
            }
            What::Applied(item) => {
                self.store.apply(source.kind, *item);
                None
            }
            What::Deleted(key) => {
                self.store.delete(source.kind, &key);
                None
            }
            What::Failed(failure) => {
                self.health.last_error = Some(Arc::clone(&failure.line));
                if source.kind == Kind::Gateway {
                    self.absences.clear();
                }
                Some(failure)
            }
        };
        running.failure = failure;
        if self.is_complete {
            self.gather();
        } else {
            // Also for an empty list: the start may have waited for it.
            self.resolve_at.get_or_insert_with(|| now() + GATHER);
        }
    }

    /// Schedules the resolution of changes.
    fn gather(&mut self) {
        if self.held_since.is_some() && !self.store.dirty.slices.is_empty() {
            // Pods never wait.
            self.publish_pods();
        }
        if self.resolve_at.is_none()
            && (self.store.dirty.is_any() || !self.store.dirty.slices.is_empty())
        {
            let soon = now() + GATHER;
            self.resolve_at = Some(soon.max(self.rested_at));
        }
    }

    /// Begins and ends watches for the kinds that there are.
    fn discovered(&mut self, answer: Result<Versions, Failure>) {
        match answer {
            Ok(versions) => {
                self.discovery = None;
                let is_missing = |running: &Running| {
                    running.failure.as_ref().is_some_and(|one| one.cause == Cause::NotFound)
                };
                let watches = &self.watches;
                self.discovered.answer(versions, now(), |kind| {
                    let mut of_kind = watches.iter().filter(|(source, _)| source.kind == kind);
                    of_kind.all(|(_, running)| is_missing(running))
                });
                let versions = self.discovered.versions.clone();
                self.watch(&versions);
                if self.discovered.is_settled {
                    self.set_absent();
                }
                // The start may have waited for this answer only.
                self.resolve_at.get_or_insert(now());
            }
            Err(failure) => {
                self.health.last_error = Some(Arc::clone(&failure.line));
                self.discovered.failed();
                self.discovery = Some(failure);
            }
        }
    }

    fn set_absent(&mut self) {
        let absent: BTreeSet<&'static str> = self.discovered.absent().map(Kind::name).collect();
        let is_news = match &self.absent {
            Some(before) => *before != absent,
            None => !absent.is_empty(),
        };
        if is_news {
            (self.events)(Event::Absent { kinds: absent.iter().copied().collect() });
        }
        self.health.absent.clone_from(&absent);
        self.absent = Some(absent);
    }

    /// Watches these kinds of the Gateway API, and Kubernetes' own.
    fn watch(&mut self, versions: &Versions) {
        let has_services = matches!(self.settings.exposure, Exposure::Services { .. });
        let mut wanted: BTreeMap<Source, &'static str> = BTreeMap::new();
        for kind in Kind::ALL {
            let is_known = !kind.is_gateway_api();
            let version = versions.get(&kind).copied().or(is_known.then_some("v1"));
            let Some(version) = version else { continue };
            let namespaces = match &self.settings.namespaces {
                _ if kind == Kind::OwnService && !has_services => continue,
                _ if kind == Kind::OwnService => vec![Some(Arc::clone(&self.settings.namespace))],
                Some(namespaces) if kind.is_namespaced() => {
                    namespaces.iter().cloned().map(Some).collect()
                }
                Some(_) | None => vec![None],
            };
            wanted.extend(
                namespaces.into_iter().map(|namespace| (Source { kind, namespace }, version)),
            );
        }
        let is_wanted =
            |source: &Source, running: &Running| wanted.get(source) == Some(&running.version);
        let ended: Vec<Source> = self
            .watches
            .iter()
            .filter(|(source, running)| !is_wanted(source, running))
            .map(|(source, _)| source.clone())
            .collect();
        for source in ended {
            if let Some(running) = self.watches.remove(&source) {
                running.task.abort();
            }
            // With another version, the objects stay until they are listed.
            if !wanted.contains_key(&source) {
                self.store.replace(&source, Vec::new());
            }
        }
        for (source, version) in wanted {
            if self.watches.contains_key(&source) {
                continue;
            }
            let label_selector = match source.kind {
                Kind::OwnService => service::label_selector(&self.settings.controller_name),
                _ => String::new(),
            };
            let watch = Watch {
                api: Rc::clone(&self.api),
                source: source.clone(),
                version,
                label_selector,
                messages: self.messages.clone(),
            };
            let task = spawn_local(watch.run()).abort_handle();
            self.watches.insert(source, Running { version, task, is_listed: false, failure: None });
        }
        self.gather();
    }

    fn elected(&mut self, state: elect::State) {
        if let Some(failure) = &state.failure {
            self.health.last_error = Some(Arc::clone(&failure.line));
        }
        self.election = state.failure;
        if state.is_leading == self.is_leading {
            return;
        }
        self.is_leading = state.is_leading;
        (self.events)(Event::Leading { is_leading: state.is_leading });
        if state.is_leading {
            self.writer.push_all(&self.store);
            self.list_own_services();
        } else {
            self.writer.clear();
            self.ports.forget();
            self.absences.clear();
        }
    }

    /// Lists the Services that Weir made again: the former leader may have written some that the watch has not reported.
    fn list_own_services(&mut self) {
        let own: Vec<Source> =
            self.watches.keys().filter(|one| one.kind == Kind::OwnService).cloned().collect();
        for source in own {
            if let Some(running) = self.watches.remove(&source) {
                running.task.abort();
            }
        }
        let versions = self.discovered.versions.clone();
        self.watch(&versions);
    }

    /// Resolves what has changed, and publishes it.
    fn resolve(&mut self, in_force: &InForce) {
        self.resolve_at = None;
        let began = now();
        self.set_references();
        if self.is_complete && self.holds_back(began) {
            self.publish_pods();
            return;
        }
        let touched = std::mem::take(&mut self.store.dirty.statuses);
        if !self.is_complete {
            self.health.awaited = self.awaited();
            if !self.health.awaited.is_empty() {
                return;
            }
            self.is_complete = true;
            self.store.dirty.has_exposure = true;
            (self.events)(Event::Complete);
        }
        let mut changes = self.store.take_changes();
        if self.health.resolved == 0 {
            changes = Changes::all();
        }
        let has_exposure = std::mem::take(&mut self.store.dirty.has_exposure);
        if has_exposure || self.resolver.is_concerned(&self.store, &changes) {
            let resolution = self.resolver.resolve(&self.store, &changes);
            self.health.resolved += 1;
            self.publish(resolution, in_force);
        } else {
            self.publish_pods();
        }
        if self.is_leading {
            self.writer.touch(touched);
        }
        // A resolve that takes long must leave time for other work.
        let ended = now();
        self.rested_at = ended + RESOLVE_EVERY_MIN.max(ended.since(began));
    }

    /// Decides which Secrets and ConfigMaps are read.
    fn set_references(&mut self) {
        if !std::mem::take(&mut self.store.dirty.has_references) {
            return;
        }
        self.store.find_references();
        for id in self.fetches.set(&self.store.referred, &self.store.versions) {
            self.store.remove_contents(&id);
        }
        for kind in &self.fetches.cut {
            if !self.cut.contains(kind) {
                let count_max = fetch::count_max(*kind);
                (self.events)(Event::TooManyReferences { kind: kind.name(), count_max });
            }
        }
        self.cut.clone_from(&self.fetches.cut);
    }

    /// Returns whether changes wait for objects that are referred to for the first time: a listener with a new
    /// certificate would have none until then.
    fn holds_back(&mut self, now: Moment) -> bool {
        if self.fetches.awaited().next().is_none() {
            self.held_since = None;
            return false;
        }
        let end = *self.held_since.get_or_insert(now) + HOLD_MAX;
        let is_held = now < end;
        if is_held {
            self.resolve_at = Some(end);
        }
        is_held
    }

    /// Returns what the start waits for.
    fn awaited(&self) -> BTreeSet<String> {
        let mut awaited = BTreeSet::new();
        if !self.discovered.is_settled {
            awaited.insert("the kinds of the Gateway API".to_owned());
        }
        for (source, running) in &self.watches {
            if !running.is_listed {
                awaited.insert(shown(source));
            }
        }
        awaited.extend(self.fetches.awaited().map(|(kind, key)| format!("{} {key}", kind.name())));
        awaited
    }
}

/// Returns what a watch asks for, for people.
fn shown(source: &Source) -> String {
    let plural = source.kind.plural();
    match &source.namespace {
        Some(namespace) => format!("{plural} of namespace {namespace}"),
        None => plural.to_owned(),
    }
}

/// Waits until a moment, or for ever.
async fn until(at: Option<Moment>) {
    match at {
        Some(at) => sleep(at.since(now())).await,
        None => std::future::pending().await,
    }
}
