//! Certificates by ACME in a running balancer: what listeners present before and after one is issued,
//! when the thread runs that obtains them, and how a new one takes effect.
//!
//! ```text
//! read ─▶ fill: stored, or in use, or a placeholder ─▶ published ─▶ tend: the thread runs
//!                                  ▲                                     │ issues one
//!                                  └──────── renewed ◀── the main thread ┘
//! ```
//!
//! The thread runs in one process at a time: it is stopped while a new process starts, since both
//! accept connections then, and only one of them could answer a challenge.

mod log;
mod report;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acme::{Event, State};
use model::{Acme, AcmeCertificate, Certificate, Moment, Snapshot};
use tls::{Challenges, SharedCertificates};

use crate::state_directory;

pub(crate) use report::report;

/// How long a process that took over from another one waits before it orders certificates: until the
/// other one no longer accepts connections, some of which could be for a challenge.
const TAKEN_OVER_WAIT: Duration = Duration::from_secs(2);

/// The certificates that the thread has reported and that do not take effect yet, by names.
type Received = Arc<Mutex<HashMap<Vec<String>, Certificate>>>;

/// The thread, for the main thread and the admin API.
pub(crate) type Shared = Arc<Mutex<Option<Thread>>>;

/// The thread that obtains certificates.
pub(crate) struct Thread {
    /// As in the configuration.
    settings: Arc<Acme>,
    /// `None`: it could not start.
    handle: Option<acme::Handle>,
    shared: Arc<SharedCertificates>,
    /// That it does not run has been logged.
    is_logged: bool,
}

/// Obtains certificates for a balancer.
pub(crate) struct Certificates {
    challenges: Arc<Challenges>,
    shared: Arc<SharedCertificates>,
    received: Received,
    thread: Shared,
    /// The thread does not start before.
    from: Moment,
}

impl Certificates {
    /// Opens the state directory and fills in the configuration's certificates. `owner` (user and
    /// group IDs): the user that this process, still root, will switch to. `taken_over`: another
    /// process has handed over its listeners.
    ///
    /// # Errors
    /// One line, if certificates cannot be obtained with these settings.
    pub(crate) fn open(
        snapshot: &mut Arc<Snapshot>,
        owner: Option<(u32, u32)>,
        taken_over: bool,
    ) -> Result<Certificates, String> {
        fill(snapshot, None, owner)?;
        let wait = if taken_over { TAKEN_OVER_WAIT } else { Duration::ZERO };
        let shared = SharedCertificates::default();
        // From the start: who orders is not known before this process has joined the fleet.
        shared.set_shared(snapshot.fleet.as_ref().is_some_and(|fleet| fleet.tls.is_some()));
        Ok(Certificates {
            challenges: Arc::default(),
            shared: Arc::new(shared),
            received: Arc::default(),
            thread: Arc::default(),
            from: os::clock::now() + wait,
        })
    }

    /// Returns the challenges, which listeners answer.
    pub(crate) fn challenges(&self) -> Arc<Challenges> {
        Arc::clone(&self.challenges)
    }

    /// Returns the certificates that the fleet shares.
    pub(crate) fn shared(&self) -> Arc<SharedCertificates> {
        Arc::clone(&self.shared)
    }

    /// Returns the thread, for [`report`].
    pub(crate) fn thread(&self) -> Shared {
        Arc::clone(&self.thread)
    }

    /// Runs the thread with the settings of `snapshot`, or ends it: if these have none, or if it `may`
    /// not run now. Logs if it has stopped by itself. Call it often.
    pub(crate) fn tend(&self, snapshot: &Snapshot, may: bool) {
        let wanted = snapshot.acme.as_ref().filter(|_| may && os::clock::now() >= self.from);
        let mut slot = lock(&self.thread);
        match (&mut *slot, wanted) {
            (Some(thread), Some(wanted)) if thread.runs_with(wanted) => thread.look(),
            (None, None) => {}
            (_, wanted) => {
                if let Some(handle) = slot.take().and_then(|thread| thread.handle) {
                    handle.stop();
                }
                *slot = wanted.map(|settings| self.start(settings, snapshot));
                if slot.is_none() {
                    self.shared.withdraw();
                }
            }
        }
    }

    fn start(&self, settings: &Arc<Acme>, snapshot: &Snapshot) -> Thread {
        let resolved = Arc::new(resolved(settings, snapshot));
        let (received, known) = (Arc::clone(&self.received), Arc::clone(&resolved));
        let events = Box::new(move |event: Event| {
            log::log(&event, &known);
            if let Event::Certificate(update) = event
                && let Some(AcmeCertificate { names }) = known.certificates.get(update.index)
            {
                lock(&received).insert(sorted(names), update.stored.certificate);
            }
        });
        let started = State::open(&resolved, None).map_err(|error| error.to_string());
        let started = started.and_then(|state| {
            acme::start(resolved, state, self.challenges(), self.shared(), events)
                .map_err(|error| error.to_string())
        });
        let (settings, shared) = (Arc::clone(settings), self.shared());
        match started {
            Ok(handle) => Thread { settings, handle: Some(handle), shared, is_logged: false },
            Err(line) => {
                tracing::error!("certificates are not renewed: {line}");
                shared.withdraw();
                Thread { settings, handle: None, shared, is_logged: true }
            }
        }
    }

    /// Returns the configuration with the certificates that have been issued since the last call;
    /// `None`: it has them already.
    pub(crate) fn renewed(&self, current: &Arc<Snapshot>) -> Option<Arc<Snapshot>> {
        let received = std::mem::take(&mut *lock(&self.received));
        if received.is_empty() {
            return None;
        }
        let mut renewed = Snapshot::clone(current);
        renewed.fill_acme(|acme| received.get(&sorted(&acme.names)).cloned());
        (renewed.listeners != current.listeners).then(|| Arc::new(renewed))
    }

    /// Ends the thread; takes milliseconds.
    pub(crate) fn stop(&self) {
        if let Some(handle) = lock(&self.thread).take().and_then(|thread| thread.handle) {
            handle.stop();
        }
        self.shared.withdraw();
    }
}

impl Thread {
    fn runs_with(&self, wanted: &Arc<Acme>) -> bool {
        Arc::ptr_eq(&self.settings, wanted) || self.settings == *wanted
    }

    /// Logs it once if the thread has ended by itself.
    fn look(&mut self) {
        if !self.is_logged && self.handle.as_ref().is_some_and(|handle| !handle.is_running()) {
            self.is_logged = true;
            self.shared.withdraw();
            tracing::error!(
                "the ACME thread has stopped, which is a bug in Weir; certificates in use stay in use, \
                 but are not renewed; `weir upgrade` or a restart starts it again"
            );
        }
    }
}

/// Fills in the certificates of a configuration that was read: what the state directory has, else
/// what `current` uses for the same names, else a self-signed one.
///
/// # Errors
/// One line, if certificates cannot be obtained with these settings.
pub(crate) fn fill(
    snapshot: &mut Arc<Snapshot>,
    current: Option<&Snapshot>,
    owner: Option<(u32, u32)>,
) -> Result<(), String> {
    let Some(settings) = &snapshot.acme else { return Ok(()) };
    let settings = resolved(settings, snapshot);
    acme::check(&settings).map_err(|error| error.to_string())?;
    State::open(&settings, owner).map_err(|error| error.to_string())?;
    let used = current.map(in_use).unwrap_or_default();
    let mut made = HashMap::new();
    let mut failed = None;
    Arc::make_mut(snapshot).fill_acme(|AcmeCertificate { names }| {
        let key = sorted(names);
        let known = used.get(&key).copied().or_else(|| made.get(&key));
        match acme::stored(&settings, names) {
            Ok(Some(stored)) if known.is_none_or(|known| !is_newer(known, &stored)) => {
                return Some(stored.certificate);
            }
            Ok(_) => {}
            Err(error) => tracing::warn!("{error}; another certificate is ordered"),
        }
        if let Some(known) = known {
            return Some(Certificate::clone(known));
        }
        match acme::placeholder(names) {
            Ok(placeholder) => Some(made.entry(key).or_insert(placeholder).clone()),
            Err(line) => {
                failed = Some(line);
                None
            }
        }
    });
    failed.map_or(Ok(()), Err)
}

/// Returns whether the certificate in use is newer than the stored one: it could not be stored.
fn is_newer(used: &Certificate, stored: &acme::Stored) -> bool {
    tls::certificate(used).is_ok_and(|facts| facts.not_before > stored.facts.not_before)
}

/// Checks that the state directory can be used by the user that this process is now.
///
/// # Errors
/// One line, if it cannot.
pub(crate) fn reopen(snapshot: &Snapshot) -> Result<(), String> {
    let Some(settings) = &snapshot.acme else { return Ok(()) };
    let opened = State::open(&resolved(settings, snapshot), None);
    opened.map(drop).map_err(|error| error.to_string())
}

/// Returns what would make [`fill`] fail, without creating anything.
pub(crate) fn obstacle(snapshot: &Snapshot) -> Option<String> {
    let settings = resolved(snapshot.acme.as_ref()?, snapshot);
    acme::check(&settings).err().map(|error| error.to_string())
}

/// Returns the settings with an absolute state directory.
fn resolved(settings: &Acme, snapshot: &Snapshot) -> Acme {
    // An absolute path replaces what it is joined to.
    Acme { state: state_directory::of(snapshot).join(&settings.state), ..settings.clone() }
}

/// Returns the certificates by ACME, by names.
fn in_use(snapshot: &Snapshot) -> HashMap<Vec<String>, &Certificate> {
    let tls = snapshot.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    let certificates = tls.flat_map(|tls| &tls.certificates);
    certificates.filter_map(|one| Some((sorted(&one.acme.as_ref()?.names), one))).collect()
}

/// Returns the names in an order that does not depend on that of the file.
fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
