//! Reloads the configuration: checks the whole file, then applies all of it or nothing, and writes the
//! receipt.
//!
//! `instance` applies a configuration; this module decides when, and reports the result.

mod gateways;
mod history;
mod receipt;
mod tagged;
mod watch;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use admin::ReloadError;
use admin_api::receipt::{Reload, ReloadResult, Trigger};
use control::load::{Input, Load, Seen};
use model::{Moment, PublishedRoute, Snapshot};
use observe::TimestampCache;

use crate::certificates;
use crate::commands::{Answer, CommandSender};
use crate::instance::{Applied, Balancer, RESOLVE_MAX, Refused};
use crate::not_admitted::{NotAdmitted, SharedNotAdmitted};
use crate::{service_manager, state_directory};

use gateways::Gateways;
use history::{History, Use};
use tagged::Tagged;
use watch::Watch;

/// How long the first servers of new services may take when routes change: this thread does nothing else meanwhile.
const ROUTES_RESOLVE_MAX: Duration = Duration::from_millis(500);
/// Shortest time between two changes of routes, and that time for each second that a change takes.
const ROUTES_EVERY_MIN: Duration = Duration::from_secs(1);
const ROUTES_PAUSE_PER_WORK: u32 = 10;
/// The pause doubles with each so many replaced configurations that requests in progress still use, up to about 17
/// minutes.
const REPLACED_PER_DOUBLING: usize = 8;
const ROUTES_DOUBLINGS_MAX: usize = 10;
/// What could not be applied is tried again after this time.
const APPLY_RETRY: Duration = Duration::from_secs(10);

/// Reloads one configuration file.
pub(crate) struct Reloader {
    watch: Watch,
    history: Arc<History>,
    /// What published routes are added to; `None`: there are none.
    tagged: Option<Tagged>,
    not_admitted: SharedNotAdmitted,
    /// When the routes may change next.
    routes_due: Moment,
    /// The files with the routes that services publish.
    files: Option<Arc<Snapshot>>,
    gateways: Gateways,
}

impl Reloader {
    /// Returns a reloader for the configuration in `file`.
    pub(crate) fn new(file: &Path) -> Reloader {
        Reloader {
            watch: Watch::new(file),
            history: Arc::default(),
            tagged: None,
            not_admitted: SharedNotAdmitted::default(),
            routes_due: Moment::ZERO,
            files: None,
            gateways: Gateways::default(),
        }
    }

    /// Records that the configuration and the files that it names were read in the state `seen`.
    pub(crate) fn has_read(&mut self, seen: Vec<Seen>) {
        self.watch.has_read(seen);
    }

    /// Returns the configuration with which a process starts: that of the file, with the routes that services
    /// published when an earlier process ended.
    ///
    /// # Errors
    /// There is `[kubernetes]`, but the defaults of the file do not suit Gateways.
    pub(crate) fn first(
        &mut self,
        file: Arc<Snapshot>,
        input: Option<Input>,
    ) -> Result<Arc<Snapshot>, String> {
        self.gateways.defaults = gateways::defaults(&file, input.as_ref())?;
        self.files = Some(Arc::clone(&file));
        self.tagged = input.and_then(|input| Tagged::of(input, &file));
        let consul = file.registries.consul.as_ref();
        let Some(settings) = consul.and_then(|consul| consul.routes.as_ref()) else {
            return Ok(file);
        };
        let saved = control::saved_routes(&state_directory::servers_file(&file), settings);
        Ok(self.with_routes(saved).unwrap_or(file))
    }

    /// Returns the configuration with these routes; `None`: it has them, or services may not publish any.
    pub(crate) fn with_routes(
        &mut self,
        routes: Arc<Vec<PublishedRoute>>,
    ) -> Option<Arc<Snapshot>> {
        let tagged = self.tagged.as_mut()?;
        if !tagged.is_behind(&routes) {
            return None;
        }
        match tagged.with(routes) {
            Ok((snapshot, not_admitted)) => {
                self.not_admitted.set(not_admitted, None);
                self.files = Some(Arc::clone(&snapshot));
                Some(snapshot)
            }
            Err(problem) => {
                tracing::error!("routes from tags in Consul cannot be applied: {problem}");
                self.not_admitted.set(NotAdmitted::new(), Some(problem));
                None
            }
        }
    }

    /// Returns the routes that the file does not admit, for other threads.
    pub(crate) fn not_admitted(&self) -> SharedNotAdmitted {
        self.not_admitted.clone()
    }

    /// Applies the routes that services publish now to the configuration in force, if there are others and the last
    /// time was not just now. If they cannot be applied, those before stay, and it is tried again later.
    pub(crate) fn follow_routes(&mut self, balancer: &mut Balancer) {
        let began = os::clock::now();
        if began < self.routes_due {
            return;
        }
        let Some(tagged) = &mut self.tagged else { return };
        let routes = balancer.published_routes();
        if !tagged.is_behind(&routes) {
            return;
        }
        let outcome = tagged.with(routes).and_then(|(files, not_admitted)| {
            let applied = self.gateways.apply_files(&files, balancer, ROUTES_RESOLVE_MAX)?;
            self.files = Some(files);
            Ok((applied, not_admitted))
        });
        let took = os::clock::now().since(began);
        // Long connections keep a configuration in memory that routes have replaced.
        let in_use = balancer.replaced_configurations() / REPLACED_PER_DOUBLING;
        let pause = ROUTES_EVERY_MIN * (1 << in_use.min(ROUTES_DOUBLINGS_MAX));
        self.routes_due = os::clock::now() + pause.max(took * ROUTES_PAUSE_PER_WORK);
        let took_ms = (took.as_secs_f64() * 1e6).round() / 1e3;
        match outcome {
            Ok((applied, not_admitted)) => {
                let refused = not_admitted.len();
                self.not_admitted.set(not_admitted, None);
                if let Some(Applied { diff, generation, .. }) = applied {
                    let changes = receipt::line(&diff);
                    tracing::info!(
                        generation,
                        took_ms,
                        changes,
                        refused,
                        "routes from tags in Consul have changed"
                    );
                }
            }
            Err(problem) => {
                tagged.is_not_applied();
                self.routes_due = self.routes_due.max(began + APPLY_RETRY);
                if self.not_admitted.get().problem.as_ref() != Some(&problem) {
                    tracing::error!("routes from tags in Consul cannot be applied: {problem}");
                }
                self.not_admitted.set(NotAdmitted::new(), Some(problem));
            }
        }
    }

    /// Returns when [`Reloader::follow_gateways`] may apply the next change.
    pub(crate) fn gateways_due(&self) -> Moment {
        self.gateways.due()
    }

    /// Applies what the Gateways of Kubernetes serve now, if that has changed and the last time was not just now. If it
    /// cannot be applied, what was served before stays, and it is tried again later.
    pub(crate) fn follow_gateways(&mut self, balancer: &mut Balancer) {
        if let Some(files) = &self.files {
            self.gateways.follow(files, balancer);
        }
    }

    /// Returns the functions with which the admin API reloads, upgrades and shows receipts.
    pub(crate) fn sources(&self, commands: &CommandSender) -> admin::Sources {
        let (reload, upgrade) = (commands.clone(), commands.clone());
        let (receipts, gauges) = (Arc::clone(&self.history), Arc::clone(&self.history));
        admin::Sources {
            reload: Some(Arc::new(move || reload.reload())),
            upgrade: Some(Arc::new(move || upgrade.upgrade())),
            reloads: Some(Arc::new(move || receipts.receipts())),
            reload_gauges: Some(Arc::new(move || gauges.gauges())),
            ..admin::Sources::default()
        }
    }

    /// Returns whether the file, or a file that it names, has changed since it was last read; always
    /// false unless `watched`.
    pub(crate) fn has_changed(&mut self, watched: bool) -> bool {
        watched && self.watch.has_settled()
    }

    /// Loads the file and applies it, or changes nothing and returns why.
    pub(crate) fn reload(&mut self, balancer: &mut Balancer, trigger: Trigger) -> Answer<Reload> {
        service_manager::notify(os::notify::reloading());
        let began = os::clock::now();
        let Load { outcome: loaded, seen, input } = control::load::load(self.watch.file(), false);
        self.watch.has_read(seen);
        let warnings = loaded.as_ref().map_or("", |loaded| &loaded.warnings).to_owned();
        let outcome = match loaded {
            Err(error) => Err(error.to_string()),
            Ok(loaded) => self.apply_file(loaded.snapshot, input, balancer),
        };
        if trigger == Trigger::Signal {
            // Log rotation sends SIGHUP too.
            balancer.reopen_access_log();
        }
        service_manager::notify(os::notify::ready());
        let took = os::clock::now() - began;
        let took_ms = (took.as_secs_f64() * 1e6).round() / 1e3;
        let (result, what) = match &outcome {
            Ok(Some(applied)) => (ReloadResult::Applied, changes(applied)),
            Ok(None) => (ReloadResult::Unchanged, Reload::default()),
            Err(why) => {
                (ReloadResult::Refused, Reload { why: Some(why.clone()), ..Reload::default() })
            }
        };
        let receipt = Reload {
            result: result.into(),
            trigger: trigger.into(),
            at: now_text(),
            took_ms,
            generation: balancer.published().generation,
            warnings: (!warnings.is_empty()).then(|| warnings.clone()),
            ..what
        };
        let used = outcome.as_ref().ok().and_then(Option::as_ref);
        let used = used.map(|new| Use { asked: began, first: Arc::clone(&new.first_use) });
        self.history.add(result, receipt.clone(), used, os::clock::wall());
        log(trigger, took_ms, &outcome, &warnings);
        match outcome {
            Ok(_) => Ok(receipt),
            Err(why) => Err(ReloadError::Refused(why)),
        }
    }

    /// Applies what the files say, with the routes that services publish.
    fn apply_file(
        &mut self,
        file: Arc<Snapshot>,
        input: Option<Input>,
        balancer: &mut Balancer,
    ) -> Result<Option<Applied>, String> {
        let of_file = gateways::defaults(&file, input.as_ref())?;
        let mut tagged = input.and_then(|input| Tagged::of(input, &file));
        let with_tags = tagged.as_mut().map(|tagged| tagged.with(balancer.published_routes()));
        let (files, not_admitted, problem) = match with_tags {
            Some(Ok((snapshot, not_admitted))) => (snapshot, not_admitted, None),
            Some(Err(problem)) => (file, NotAdmitted::new(), Some(problem)),
            None => (file, NotAdmitted::new(), None),
        };
        let before = self.gateways.set_defaults(of_file, balancer);
        let applied = self.gateways.apply_files(&files, balancer, RESOLVE_MAX);
        let applied = applied.inspect_err(|_| self.gateways.defaults = before)?;
        self.files = Some(files);
        self.tagged = tagged;
        self.not_admitted.set(not_admitted, problem);
        Ok(applied)
    }

    /// Refuses a reload during an upgrade, because the new process may have read the file already. A
    /// signal reopens the log at once and is repeated after the upgrade; other callers get an error.
    pub(crate) fn put_off(balancer: &Balancer, trigger: Trigger) -> Answer<Reload> {
        if trigger == Trigger::Signal {
            balancer.reopen_access_log();
        }
        let why = "an upgrade is in progress; try again when it has ended";
        tracing::warn!(trigger = trigger.as_str(), "not reloaded: an upgrade is in progress");
        Err(ReloadError::Failed(why.to_owned()))
    }
}

/// Applies a configuration, or returns why not. `None`: it is the one in force. `resolve_max`: how long new names and
/// sources may take.
fn apply(
    mut snapshot: Arc<Snapshot>,
    balancer: &mut Balancer,
    resolve_max: Duration,
) -> Result<Option<Applied>, Refused> {
    let current = balancer.published();
    Arc::make_mut(&mut snapshot).share_services(&current.snapshot);
    certificates::fill(&mut snapshot, Some(&current.snapshot), None)
        .map_err(|line| Refused::from(vec![line]))?;
    if snapshot == current.snapshot && balancer.is_reachable() {
        current.note_reread(&snapshot);
        return Ok(None);
    }
    drop(current);
    balancer.apply(snapshot, resolve_max).map(Some)
}

/// Returns the members of the receipt that only a new configuration has.
fn changes(applied: &Applied) -> Reload {
    Reload {
        changes: Some(receipt::changes(&applied.diff)),
        carried: Some(applied.preserved.to_receipt()),
        waiting_for_upgrade: Some(applied.waiting.clone()),
        ..Reload::default()
    }
}

/// Logs the result in one line, followed by the errors of a refused file and warnings.
fn log(trigger: Trigger, took_ms: f64, outcome: &Result<Option<Applied>, String>, warnings: &str) {
    let trigger = trigger.as_str();
    match outcome {
        Ok(Some(applied)) => {
            let Applied { diff, preserved, waiting, generation, first_use: _ } = applied;
            tracing::info!(
                trigger,
                generation,
                took_ms,
                changes = receipt::line(diff),
                carried = receipt::preserved(preserved),
                "reloaded"
            );
            if !waiting.is_empty() {
                tracing::warn!(
                    waiting = waiting.join("; "),
                    "in the file, but in force only with a new process: `weir upgrade`, or a restart"
                );
            }
        }
        Ok(None) => tracing::info!(trigger, took_ms, "reloaded: the file says what is in force"),
        Err(why) => {
            tracing::error!(
                trigger,
                took_ms,
                "reload refused; the old configuration stays in force"
            );
            tracing::error!("{why}");
        }
    }
    if !warnings.is_empty() {
        tracing::warn!("{}", warnings.trim_end());
    }
}

/// Returns the current time as text.
fn now_text() -> String {
    TimestampCache::default().at(os::clock::wall()).to_string()
}
