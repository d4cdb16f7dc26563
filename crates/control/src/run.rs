//! The control loop: one thread that receives commands, answers and probe results, and acts on
//! timers.
//!
//! Everything here runs on one current-thread runtime; what the workers see changes only through
//! `decide`'s pointers and `model`'s atomics.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use decide::{LiveService, Published, Registry, Tier, TierChange};
use model::{Moment, Snapshot};
use tokio::sync::mpsc;

use crate::Options;
use crate::comeback;
use crate::discover::{Answered, Discovery, hosts};
use crate::probe::{Message, Prober};
use crate::status::Status;
use crate::watch::Watches;

/// Maximum number of answers and probe messages that wait for the loop; their tasks block when it
/// is full.
const WAITING_MAX: usize = 1024;

/// A request from another thread.
pub(crate) enum Command {
    /// Look up the names that this configuration adds, and reply when the lookups have started.
    Prepare(Arc<Snapshot>, SyncSender<()>),
    /// Publish this configuration, apply it, and reply.
    Publish(Arc<Snapshot>, SyncSender<Arc<Published>>),
    /// End.
    Stop,
}

/// The loop's state.
pub(crate) struct Loop {
    registry: Arc<Registry>,
    services: Vec<Arc<LiveService>>,
    discovery: Discovery,
    /// Services without servers whose names have not been looked up yet, and what to log for each
    /// if they resolve to nothing.
    unresolved: HashMap<Arc<str>, TierChange>,
    watches: Watches,
    server_down: Box<dyn Fn() + Send>,
    prober: Prober,
    status: Arc<Status>,
    next_tick: Moment,
    answers: mpsc::Receiver<Answered>,
    messages: mpsc::Receiver<Message>,
}

impl Loop {
    pub(crate) fn new(registry: Arc<Registry>, options: Options, status: Arc<Status>) -> Loop {
        let (answers_in, answers) = mpsc::channel(WAITING_MAX);
        let (messages_in, messages) = mpsc::channel(WAITING_MAX);
        Loop {
            registry,
            services: Vec::new(),
            discovery: Discovery::new(None, answers_in),
            unresolved: HashMap::new(),
            watches: Watches::default(),
            server_down: options.server_down,
            prober: Prober::new(options.probes_running_max, messages_in),
            status,
            next_tick: Moment::ZERO,
            answers,
            messages,
        }
    }

    /// Runs until it receives `Stop`, or until all senders of commands are gone.
    pub(crate) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        loop {
            let wake = self.act(os::clock::now());
            let sleep = tokio::time::sleep(wake.since(os::clock::now()));
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Prepare(snapshot, reply)) => {
                        self.discovery.expect(&snapshot, os::clock::now());
                        self.publish_discovered();
                        // The receiver may be gone.
                        let _ = reply.send(());
                    }
                    Some(Command::Publish(snapshot, reply)) => {
                        let published = self.publish(snapshot, os::clock::now());
                        // The receiver may be gone; the configuration is published all the same.
                        let _ = reply.send(published);
                    }
                    Some(Command::Stop) | None => return,
                },
                Some(answered) = self.answers.recv() => self.on_answers(answered),
                Some(message) = self.messages.recv() => {
                    if let Some(heard) = self.prober.on_message(message) {
                        self.status.count(&heard);
                        if self.watches.on_heard(&heard, os::clock::now()) {
                            (self.server_down)();
                        }
                    }
                }
                () = sleep => {}
            }
        }
    }

    /// Does what is due; returns when something is next due.
    fn act(&mut self, now: Moment) -> Moment {
        self.discovery.start_due(now);
        let watches = &self.watches;
        self.prober.start_due(now, |id| watches.wants(id));
        if self.next_tick <= now {
            comeback::tick(&self.services, now);
            self.next_tick = now + comeback::TICK;
        }
        let due = [self.discovery.next_due(), self.prober.next_due(), Some(self.next_tick)];
        due.into_iter().flatten().min().unwrap_or(now + Duration::from_secs(1))
    }

    /// Processes an answer and all others that have arrived, so that a thousand names that resolve
    /// at once do not rebuild the plan a thousand times.
    fn on_answers(&mut self, first: Answered) {
        let now = os::clock::now();
        let mut changed = HashSet::new();
        let mut next = Some(first);
        while let Some((host, answer)) = next {
            if self.discovery.on_answer(&host, answer, now) {
                changed.insert(host);
            }
            next = self.answers.try_recv().ok();
        }
        if !changed.is_empty() {
            self.set_endpoints(|host| changed.contains(host), now);
            self.follow_servers(now);
        }
        self.log_unresolved();
        self.publish_discovered();
    }

    fn publish(&mut self, snapshot: Arc<Snapshot>, now: Moment) -> Arc<Published> {
        self.discovery.follow(&snapshot, now);
        let discovery = &self.discovery;
        let published = self.registry.publish_with(snapshot, now, |service| {
            hosts(service).next().is_some().then(|| discovery.endpoints(service))
        });
        self.services.clone_from(&published.services);
        let by_name: HashMap<&str, &Arc<LiveService>> =
            published.services.iter().map(|one| (&**one.name(), one)).collect();
        self.unresolved.retain(|name, _| by_name.contains_key(&**name));
        for change in &published.tier_changes {
            let spec = by_name.get(&*change.service);
            let waits = spec.is_some_and(|one| !self.is_tried(one));
            if change.to == Tier::Nobody && waits {
                // Its names are being looked up: whether it has servers will be known shortly.
                self.unresolved.insert(Arc::clone(&change.service), change.clone());
            } else {
                crate::log_tier(change);
            }
        }
        self.follow_servers(now);
        self.publish_discovered();
        published
    }

    /// Updates the servers of services that use a name for which `is_changed` holds.
    fn set_endpoints(&mut self, is_changed: impl Fn(&str) -> bool, now: Moment) {
        for service in &self.services {
            let spec = service.spec();
            if hosts(&spec).any(&is_changed) {
                let change = service.set_endpoints(self.discovery.endpoints(&spec), now);
                // The first servers of a service are not a recovery.
                let is_first = self.unresolved.remove(service.name()).is_some();
                change.iter().filter(|_| !is_first).for_each(crate::log_tier);
            }
        }
    }

    /// Logs services that have no servers although their names have been looked up.
    fn log_unresolved(&mut self) {
        for service in &self.services {
            if self.unresolved.contains_key(service.name())
                && self.is_tried(service)
                && let Some(change) = self.unresolved.remove(service.name())
            {
                crate::log_tier(&change);
            }
        }
    }

    /// Returns whether each of the service's names has been looked up at least once.
    fn is_tried(&self, service: &LiveService) -> bool {
        hosts(&service.spec()).all(|host| self.discovery.is_tried(host))
    }

    /// Updates the checks to the services' current servers.
    fn follow_servers(&mut self, now: Moment) {
        let consumers = self.watches.follow(&self.services, now);
        self.prober.follow(consumers, now);
        self.status.set_plan(self.prober.report());
    }

    fn publish_discovered(&self) {
        self.status.set_discovered(self.discovery.status(), self.discovery.all_tried());
    }
}
