//! Follows the routes that services publish in Consul's tags. One blocking query of the catalogue's services is
//! enough, since its answer has the tags of all of them.

use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use discovery::consul::tags::{Kept, KeptRoute, KeptState, Published, SavedRoute, published};
use model::{Consul, Moment, PublishedRoute, TagRoutes};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_local};

use super::queries::{self, Answered, Client, Question, put_parameter};
use super::{consul, parsed, saved};

/// Shortest time between two queries: each change of any service ends one, and a change of routes is a reload.
const ASKED_EVERY_MIN: Duration = Duration::from_secs(1);

/// What a query has found, for the control loop.
pub(crate) struct TagsReport {
    /// Identifies the task, so that what a stopped one has found is ignored.
    watch: u64,
    arrived: Moment,
    found: Result<(Published, Option<u64>), String>,
}

/// The published routes, for other threads.
#[derive(Clone, Debug, Default)]
pub struct TagsState {
    /// Every route with what is known of it, by service, host and path.
    pub routes: Arc<[KeptRoute]>,
    /// How their source is.
    pub source: KeptState,
    /// The routes alone. The same allocation as before if they have not changed.
    pub published: Arc<Vec<PublishedRoute>>,
}

/// The state that the control loop writes and any thread reads; `None`: tags publish no routes.
#[derive(Debug, Default)]
pub(crate) struct Shared(Mutex<Option<TagsState>>);

impl Shared {
    pub(crate) fn state(&self) -> Option<TagsState> {
        self.lock().clone()
    }

    pub(crate) fn published(&self) -> Arc<Vec<PublishedRoute>> {
        self.lock().as_ref().map(|state| Arc::clone(&state.published)).unwrap_or_default()
    }

    fn set(&self, kept: &Kept) {
        let mut state = self.lock();
        let before = state.take().unwrap_or_default();
        let routes = Arc::clone(kept.routes());
        let published = if Arc::ptr_eq(&before.routes, &routes)
            || before.published.iter().eq(routes.iter().map(|one| &one.route))
        {
            before.published
        } else {
            Arc::new(routes.iter().map(|one| one.route.clone()).collect())
        };
        *state = Some(TagsState { routes, source: kept.state().clone(), published });
    }

    fn lock(&self) -> MutexGuard<'_, Option<TagsState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the routes in the state file of an earlier process, as far as `settings` allows them; none if it cannot be
/// read.
pub fn saved_routes(state_file: &Path, settings: &TagRoutes) -> Arc<Vec<PublishedRoute>> {
    let saved = saved::read(state_file).routes;
    let kept = Kept::restored(&saved, settings, os::clock::now());
    Arc::new(kept.routes().iter().map(|one| one.route.clone()).collect())
}

/// The routes, and the task that asks for them.
pub(super) struct Tags {
    reports: mpsc::Sender<TagsReport>,
    shared: Arc<Shared>,
    watch: u64,
    /// `None`: tags publish no routes.
    following: Option<Following>,
}

struct Following {
    consul: Arc<Consul>,
    settings: TagRoutes,
    client: Rc<Client>,
    kept: Kept,
    task: JoinHandle<()>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Tags {
    pub(super) fn new(reports: mpsc::Sender<TagsReport>, shared: Arc<Shared>) -> Tags {
        Tags { reports, shared, watch: 0, following: None }
    }

    /// Follows what the configuration says. The first time, the routes are those that an earlier process has `saved`.
    /// With other settings, those stay that they allow.
    pub(super) fn follow(
        &mut self,
        consul: Option<&Arc<Consul>>,
        saved: &[SavedRoute],
        client: impl FnOnce(&Arc<Consul>) -> Rc<Client>,
        now: Moment,
    ) {
        let wanted = consul.and_then(|consul| Some((consul, consul.routes.clone()?)));
        let Some((consul, settings)) = wanted else {
            self.following = None;
            *self.shared.lock() = None;
            return;
        };
        if self.following.as_ref().is_some_and(|following| following.consul == *consul) {
            return;
        }
        let kept = match self.following.take() {
            Some(mut before) => {
                let mut kept = std::mem::take(&mut before.kept);
                kept.restrict(&settings);
                kept
            }
            None => Kept::restored(saved, &settings, now),
        };
        self.shared.set(&kept);
        let client = client(consul);
        let task = self.start(consul, &settings, &client);
        self.following =
            Some(Following { consul: Arc::clone(consul), settings, client, kept, task });
    }

    fn start(
        &mut self,
        consul: &Arc<Consul>,
        settings: &TagRoutes,
        client: &Rc<Client>,
    ) -> JoinHandle<()> {
        self.watch += 1;
        let asker = Asker {
            consul: Arc::clone(consul),
            settings: settings.clone(),
            shared: Arc::clone(&self.shared),
            reports: self.reports.clone(),
            watch: self.watch,
        };
        spawn_local(asker.ask(Rc::clone(client)))
    }

    /// Applies what a query has found. Returns whether the routes changed.
    pub(super) fn on_report(&mut self, report: TagsReport, now: Moment) -> bool {
        let Some(following) = self.following.as_mut().filter(|_| report.watch == self.watch) else {
            return false;
        };
        let kept = &mut following.kept;
        let changed = match report.found {
            Ok((answer, index)) => {
                if kept.state().failing_since.is_some() {
                    tracing::info!("Consul answers again about routes in tags");
                }
                kept.on_answer(answer, index, following.settings.hold_max, now)
            }
            Err(why) => {
                if kept.state().failing_since.is_none() {
                    tracing::warn!(why, "no routes from Consul's tags; the last ones stay");
                }
                kept.on_failure(why, report.arrived);
                false
            }
        };
        self.shared.set(kept);
        changed
    }

    /// Drops routes that were held for long enough. Returns whether there were any.
    pub(super) fn tick(&mut self, now: Moment) -> bool {
        const NAMED_MAX: usize = 8;
        let Some(following) = &mut self.following else { return false };
        let services = following.kept.tick(now);
        if services.is_empty() {
            return false;
        }
        let named: Vec<_> = services.iter().take(NAMED_MAX).map(String::as_str).collect();
        let (count, services) = (services.len(), named.join(", "));
        tracing::warn!(
            count,
            services,
            "routes of services that Consul no longer lists are dropped"
        );
        self.shared.set(&following.kept);
        // Other services may have published the same, and were refused: they are asked about again.
        if let Some(mut following) = self.following.take() {
            following.task.abort();
            let Following { consul, settings, client, .. } = &following;
            following.task = self.start(consul, settings, client);
            self.following = Some(following);
        }
        true
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        self.following.as_ref()?.kept.next_due()
    }

    /// Returns whether Consul has been asked at least once.
    pub(super) fn is_tried(&self) -> bool {
        self.following.as_ref().is_none_or(|following| {
            let state = following.kept.state();
            state.answered_at.is_some() || state.failing_since.is_some()
        })
    }

    /// Returns all routes, to be saved.
    pub(super) fn saved(&self, now: Moment) -> Vec<SavedRoute> {
        self.following.as_ref().map(|following| following.kept.saved(now)).unwrap_or_default()
    }
}

/// What asks for the tags of all services.
struct Asker {
    consul: Arc<Consul>,
    settings: TagRoutes,
    shared: Arc<Shared>,
    reports: mpsc::Sender<TagsReport>,
    watch: u64,
}

impl Asker {
    /// Reports them, now and when they change.
    async fn ask(self, client: Rc<Client>) {
        // Routes are those of one datacenter: the first.
        let part = self.consul.datacenters.first().cloned();
        let mut path = String::from("/v1/catalog/services?");
        put_parameter(&mut path, "dc", part.as_deref());
        if self.consul.queries.stale {
            path.push_str("stale&");
        }
        let question = Question { path, part, asked_every_min: ASKED_EVERY_MIN };
        let tell = async |arrived, found| {
            // The loop is gone only when the process stops.
            let _ = self.reports.send(TagsReport { watch: self.watch, arrived, found }).await;
        };
        queries::watch(client, question, async |answered| self.read(answered).await, tell).await;
    }

    async fn read(&self, mut answered: Answered) -> Result<Published, String> {
        const LACKS_RIGHTS: &str = "the token may not read all services; it needs service:read";
        consul::check_status(&answered)?;
        let is_filtered = consul::is_filtered(&answered);
        let (body, settings) = (std::mem::take(&mut answered.body), self.settings.clone());
        let before = self.shared.published();
        let read = move |body: &[u8]| published(body, &settings.formats, &settings.hosts, &before);
        let mut read = parsed(body, read).await?;
        // The catalogue always has the service `consul`, unless the token may not read it.
        if read.listed.is_empty() {
            answered.check_empty("x-consul-knownleader", "Consul")?;
        }
        if is_filtered {
            if read.listed.is_empty() {
                return Err(LACKS_RIGHTS.to_owned());
            }
            read.refused.note("catalogue", LACKS_RIGHTS);
        }
        Ok(read)
    }
}
