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
use discovery::consul::register::CheckStatus;
use model::{Moment, Snapshot};
use orders::FleetOrder;
use tls::SharedTickets;
use tokio::sync::{mpsc, watch};

use crate::Options;
use crate::comeback;
use crate::discover::{Answered, Discovery, FLEET, Reported, TagsReport};
use crate::fleet::{Fleet, Parts};
use crate::order::{Confirmed, HandedOrder, NotOrdered};
use crate::probe::{Heard, Message, Prober};
use crate::register::Registrar;
use crate::status::Status;
use crate::watch::Watches;

/// Maximum number of answers and probe messages that wait for the loop; their tasks block when it
/// is full.
const WAITING_MAX: usize = 1024;

/// After the plan of probes was made for display, the next change waits for this times the number of probes: a
/// second with 20,000, for which making it takes longer than a change of some servers.
const SHOW_PLAN_PAUSE: Duration = Duration::from_micros(50);

/// A request from another thread.
pub(crate) enum Command {
    /// Look up the names that this configuration adds, and reply when the lookups have started.
    Prepare(Arc<Snapshot>, SyncSender<()>),
    /// Publish this configuration, apply it, and reply.
    Publish(Arc<Snapshot>, SyncSender<Arc<Published>>),
    /// Remove the listeners' entries in Consul, and reply when that is done or after this time.
    Deregister(Duration, SyncSender<()>),
    /// Leave the entries to another process, and reply.
    HandOver(SyncSender<()>),
    /// Save what the next process needs, and reply.
    Save(SyncSender<()>),
    /// Make an order for all members of the fleet, and reply when they have confirmed it.
    Order(FleetOrder, SyncSender<Result<Confirmed, NotOrdered>>),
    /// Reply with the orders for the whole fleet that this process knows.
    Orders(SyncSender<Vec<HandedOrder>>),
    /// End.
    Stop,
}

/// The loop's state.
pub(crate) struct Loop {
    registry: Arc<Registry>,
    services: Vec<Arc<LiveService>>,
    by_name: HashMap<Arc<str>, Arc<LiveService>>,
    discovery: Discovery,
    /// Services without servers whose names have not been looked up yet, and what to log for each
    /// if they resolve to nothing.
    unresolved: HashMap<Arc<str>, TierChange>,
    /// Each name and each source has been asked at least once.
    is_all_tried: bool,
    watches: Watches,
    server_down: Box<dyn Fn() + Send>,
    registrar: Registrar,
    prober: Prober,
    fleet: Fleet,
    status: Arc<Status>,
    next_tick: Moment,
    /// When the plan of probes is shown again after a change of some servers.
    show_plan_at: Option<Moment>,
    plan_shown_at: Moment,
    reports: mpsc::Receiver<Reported>,
    answers: mpsc::Receiver<Answered>,
    tags: mpsc::Receiver<TagsReport>,
    messages: mpsc::Receiver<Message>,
}

impl Loop {
    pub(crate) fn new(
        registry: Arc<Registry>,
        options: Options,
        status: Arc<Status>,
        tickets: Arc<SharedTickets>,
    ) -> Loop {
        let (answers_in, answers) = mpsc::channel(WAITING_MAX);
        let (messages_in, messages) = mpsc::channel(WAITING_MAX);
        let (reports_in, reports) = mpsc::channel(WAITING_MAX);
        let (tags_in, tags) = mpsc::channel(1);
        let for_tags = (tags_in, status.shared_tags());
        let parts = Parts {
            registry: Arc::clone(&registry),
            gate: options.gate,
            handed: options.orders,
            tickets,
            challenges: options.challenges,
            certificates: options.certificates,
            loads: Arc::clone(status.loads()),
            leaving: Arc::clone(status.leaving()),
            news: Arc::clone(status.loads().news()),
        };
        let fleet = Fleet::new(options.fleet, status.shared_fleet(), parts);
        Loop {
            registry,
            services: Vec::new(),
            by_name: HashMap::new(),
            discovery: Discovery::new(
                answers_in,
                reports_in,
                for_tags,
                (options.state_file, options.pods),
            ),
            unresolved: HashMap::new(),
            is_all_tried: false,
            watches: Watches::default(),
            server_down: options.server_down,
            registrar: Registrar::new(status.shared_registrations()),
            prober: Prober::new(options.probes_running_max, messages_in),
            fleet,
            status,
            next_tick: Moment::ZERO,
            show_plan_at: None,
            plan_shown_at: Moment::ZERO,
            reports,
            answers,
            tags,
            messages,
        }
    }

    /// Runs until it receives `Stop`, or until all senders of commands are gone.
    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        mut announced: watch::Receiver<Option<CheckStatus>>,
    ) {
        loop {
            let wake = self.act(os::clock::now());
            let sleep = tokio::time::sleep(wake.since(os::clock::now()));
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Prepare(snapshot, reply)) => {
                        self.is_all_tried = false;
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
                    Some(Command::Deregister(max, reply)) => {
                        self.fleet.leave(&mut self.prober, os::clock::now());
                        self.registrar.remove(max, reply);
                    }
                    Some(Command::HandOver(reply)) => {
                        self.fleet.hand_over(&mut self.prober, os::clock::now());
                        self.registrar.hand_over(reply);
                    }
                    Some(Command::Save(reply)) => {
                        self.discovery.save();
                        let _ = reply.send(());
                    }
                    Some(Command::Order(wanted, reply)) => {
                        self.fleet.order(wanted, reply, os::clock::now());
                    }
                    Some(Command::Orders(reply)) => {
                        // The receiver may be gone.
                        let _ = reply.send(self.fleet.orders());
                    }
                    Some(Command::Stop) | None => {
                        self.discovery.save();
                        return;
                    }
                },
                Ok(()) = announced.changed() => {
                    if let Some(status) = *announced.borrow_and_update() {
                        self.registrar.announce(status);
                        if status == CheckStatus::Passing {
                            self.fleet.serve(&mut self.prober, os::clock::now());
                        }
                    }
                }
                Some(answered) = self.answers.recv() => self.on_answers(answered),
                Some(reported) = self.reports.recv() => self.on_reports(reported),
                Some(report) = self.tags.recv() => {
                    self.discovery.on_tags(report, os::clock::now());
                    self.show_tried();
                }
                Some(message) = self.messages.recv() => {
                    let heard = self.prober.on_message(message, os::clock::now());
                    self.on_heard(heard);
                }
                () = self.fleet.readable() => {
                    let heard = self.fleet.on_readable(&mut self.prober, os::clock::now());
                    self.on_heard(heard);
                }
                () = self.fleet.news() => self.fleet.on_news(os::clock::now()),
                () = sleep => {}
            }
        }
    }

    /// Does what is due; returns when something is next due.
    fn act(&mut self, now: Moment) -> Moment {
        self.discovery.start_due(now);
        let changed = self.discovery.tick(now);
        for service in &changed {
            self.set_servers(service, now);
            self.show_source(service);
        }
        if !changed.is_empty() {
            self.fleet.set_addresses(self.discovery.fleet_addresses(), now);
            // Requests may wait for servers that are gone.
            (self.server_down)();
        }
        if self.show_plan_at.is_some_and(|due| due <= now) {
            self.show_plan(now);
        }
        self.fleet.follow_slots(&self.services, now);
        self.fleet.tick(&mut self.prober, now);
        let watches = &self.watches;
        self.prober.start_due(now, |id| watches.wants(id), |id| watches.needs_own(id));
        if self.next_tick <= now {
            comeback::tick(&self.services, now);
            self.next_tick = now + comeback::TICK;
        }
        let due = [
            self.discovery.next_due(),
            self.prober.next_due(),
            self.fleet.next_due(&self.prober),
            self.show_plan_at,
            Some(self.next_tick),
        ];
        due.into_iter().flatten().min().unwrap_or(now + Duration::from_secs(1))
    }

    /// Applies what happened to probes.
    fn on_heard(&mut self, heard: impl IntoIterator<Item = Heard>) {
        let mut any_down = false;
        for heard in heard {
            self.status.count(&heard);
            any_down |= self.watches.on_heard(&heard, os::clock::now());
        }
        if any_down {
            (self.server_down)();
        }
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
            self.fleet.set_addresses(self.discovery.fleet_addresses(), now);
            // Requests may wait for servers that are gone.
            (self.server_down)();
        }
        self.log_unresolved();
        self.publish_discovered();
    }

    /// Applies a report of a source and all others that have arrived. The servers of each service are set
    /// once.
    fn on_reports(&mut self, first: Reported) {
        let now = os::clock::now();
        // By service, when the first answer that changed it had arrived.
        let mut changed: HashMap<Arc<str>, Moment> = HashMap::new();
        let mut reported = HashSet::new();
        let mut next = Some(first);
        while let Some(report) = next {
            let (service, arrived) = (Arc::clone(report.service()), report.arrived());
            if self.discovery.on_report(report, now) {
                changed.entry(Arc::clone(&service)).or_insert(arrived);
            }
            reported.insert(service);
            next = self.reports.try_recv().ok();
        }
        for (service, arrived) in &changed {
            self.set_servers(service, now);
            self.status.note_propagation(os::clock::now().since(*arrived));
        }
        if !changed.is_empty() {
            self.fleet.set_addresses(self.discovery.fleet_addresses(), now);
            // Requests may wait for servers that are gone.
            (self.server_down)();
        }
        for service in &reported {
            self.show_source(service);
        }
        // Otherwise names of new servers would not be among those that a start or a reload waits for.
        self.discovery.start_due(now);
        self.log_unresolved();
        self.show_tried();
    }

    fn show_plan(&mut self, now: Moment) {
        self.show_plan_at = None;
        self.plan_shown_at = now;
        self.status.set_plan(self.prober.report());
    }

    fn show_source(&self, service: &str) {
        if let Some(state) = self.discovery.source(service) {
            self.status.set_source(state);
        }
    }

    /// Sets the servers of one service as they are known now, and updates its checks.
    fn set_servers(&mut self, service: &str, now: Moment) {
        let Some(live) = self.by_name.get(service).map(Arc::clone) else { return };
        let change = live.set_endpoints(self.discovery.endpoints(&live.spec()), now);
        let has_servers = live.endpoints().tier != Tier::Nobody;
        // The first servers of a service are not a recovery.
        let is_first = has_servers && self.unresolved.remove(service).is_some();
        change.iter().filter(|_| !is_first).for_each(crate::log_tier);
        self.fleet.note_servers();
        let followed = self.watches.follow_one(&live, now);
        self.prober.change(&followed.gone, followed.new, now);
        let pause = SHOW_PLAN_PAUSE.saturating_mul(self.prober.probes());
        self.show_plan_at.get_or_insert(now.max(self.plan_shown_at + pause));
    }

    fn publish(&mut self, snapshot: Arc<Snapshot>, now: Moment) -> Arc<Published> {
        self.is_all_tried = false;
        self.discovery.follow(&snapshot, now);
        self.registrar.follow(&snapshot);
        let discovery = &self.discovery;
        let published = self.registry.publish_with(snapshot, now, |service| {
            Discovery::is_needed_by(service).then(|| discovery.endpoints(service))
        });
        self.services.clone_from(&published.services);
        let services = published.services.iter();
        self.by_name = services.map(|one| (one.name().clone(), one.clone())).collect();
        let by_name = &self.by_name;
        self.unresolved.retain(|name, _| by_name.contains_key(name));
        let fleet_has_source =
            published.snapshot.fleet.as_ref().is_some_and(|one| one.discover.is_some());
        let has_source = |name: &str| {
            by_name.get(name).is_some_and(|live| live.spec().discover.is_some())
                || (name == FLEET && fleet_has_source)
        };
        self.status.keep_sources(has_source);
        for change in &published.tier_changes {
            let live = self.by_name.get(&change.service);
            let waits = live.is_some_and(|one| !self.is_tried(one));
            if change.to == Tier::Nobody && waits {
                // Its names are being looked up: whether it has servers will be known shortly.
                self.unresolved.insert(Arc::clone(&change.service), change.clone());
            } else {
                crate::log_tier(change);
            }
        }
        self.follow_servers(now);
        self.fleet.note_servers();
        self.fleet.follow(&published.snapshot, &mut self.prober, now);
        self.fleet.set_addresses(self.discovery.fleet_addresses(), now);
        self.services.iter().for_each(|service| self.show_source(service.name()));
        self.show_source(FLEET);
        self.publish_discovered();
        published
    }

    /// Updates the servers of services that use a name for which `is_changed` holds.
    fn set_endpoints(&mut self, is_changed: impl Fn(&str) -> bool, now: Moment) {
        let discovery = &self.discovery;
        let affected = self.services.iter();
        let affected = affected.filter(|one| discovery.uses_names(&one.spec(), &is_changed));
        let affected: Vec<Arc<str>> = affected.map(|one| one.name().clone()).collect();
        for service in &affected {
            self.set_servers(service, now);
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
        self.discovery.is_tried(&service.spec())
    }

    /// Updates the checks to the services' current servers.
    fn follow_servers(&mut self, now: Moment) {
        let consumers = self.watches.follow(&self.services, now);
        self.prober.follow(consumers, now);
        self.show_plan(now);
    }

    /// Tells those who wait for a start or a reload when everything has been asked once. After that, there is
    /// nothing to look at until the next configuration.
    fn show_tried(&mut self) {
        if !self.is_all_tried {
            self.is_all_tried = self.discovery.is_next_tried();
            self.status.set_all_tried(self.is_all_tried);
        }
    }

    fn publish_discovered(&mut self) {
        self.status.set_discovered(self.discovery.names());
        self.show_tried();
    }
}
