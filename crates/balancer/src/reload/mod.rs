//! Reloads the configuration: checks the whole file, then applies all of it or nothing, and writes the
//! receipt.
//!
//! `instance` applies a configuration; this module decides when, and reports the result.

mod history;
mod receipt;
mod watch;

use std::path::Path;
use std::sync::Arc;

use admin::ReloadError;
use admin_api::receipt::{Reload, ReloadResult, Trigger};
use control::load::{Load, Seen};
use model::Snapshot;
use observe::TimestampCache;

use crate::certificates;
use crate::commands::{Answer, CommandSender};
use crate::instance::{Applied, Balancer};
use crate::service_manager;

use history::{History, Use};
use watch::Watch;

/// Reloads one configuration file.
pub(crate) struct Reloader {
    watch: Watch,
    history: Arc<History>,
}

impl Reloader {
    /// Returns a reloader for the configuration in `file`.
    pub(crate) fn new(file: &Path) -> Reloader {
        Reloader { watch: Watch::new(file), history: Arc::default() }
    }

    /// Records that the configuration and the files that it names were read in the state `seen`.
    pub(crate) fn has_read(&mut self, seen: Vec<Seen>) {
        self.watch.has_read(seen);
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
        let Load { outcome: loaded, seen } = control::load::load(self.watch.file(), false);
        self.watch.has_read(seen);
        let warnings = loaded.as_ref().map_or("", |loaded| &loaded.warnings).to_owned();
        let outcome = match loaded {
            Err(error) => Err(error.to_string()),
            Ok(loaded) => apply(loaded.snapshot, balancer),
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

/// Applies a configuration, or returns why not. `None`: it is the one in force.
fn apply(mut snapshot: Arc<Snapshot>, balancer: &mut Balancer) -> Result<Option<Applied>, String> {
    let current = balancer.published();
    Arc::make_mut(&mut snapshot).share_services(&current.snapshot);
    certificates::fill(&mut snapshot, Some(&current.snapshot), None)?;
    if snapshot == current.snapshot && balancer.is_reachable() {
        current.note_reread(&snapshot);
        return Ok(None);
    }
    drop(current);
    balancer.apply(snapshot).map(Some).map_err(|lines| lines.join("\n"))
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
