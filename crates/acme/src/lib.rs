//! Obtains and renews certificates by ACME (RFC 8555), and asks the authority when to renew
//! (RFC 9773).
//!
//! An I/O shell: [`start`] runs one thread with a current-thread runtime. `schedule` decides what
//! is due, `order` carries one order, `store` is the state directory. Listeners answer challenges
//! from a [`tls::Challenges`] that they share with this thread, and receive certificates as
//! [`Event`]s. Until the first is issued they can present a [`placeholder`].

mod account;
mod backoff;
mod event;
mod failure;
mod http;
mod manager;
mod order;
mod placeholder;
mod schedule;
mod store;
mod text;

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use model::Acme;
use tls::{Challenges, SharedCertificates};
use tokio::sync::oneshot;

pub use event::{Event, Failure, Source, Status, Update};
pub use placeholder::{is_placeholder, placeholder};
pub use store::{State, StateError, Stored, stored};

use crate::http::Http;
use crate::manager::Manager;

/// Receives what happens, on the manager's thread; it must not block.
pub type Events = Box<dyn FnMut(Event) + Send>;

/// Why ACME cannot start. Displays as one line.
#[derive(Debug)]
pub enum StartError {
    /// The settings cannot work.
    Settings(String),
    /// The system cannot create a thread.
    System(io::Error),
}

/// The manager's thread. Dropping it ends the thread without waiting for it.
#[derive(Debug)]
pub struct Handle {
    stop: Option<oneshot::Sender<()>>,
    status: Arc<Mutex<Vec<Status>>>,
    thread: Option<JoinHandle<()>>,
}

/// Checks the settings as [`start`] does.
///
/// # Errors
/// Those of [`start`] about the settings, one line.
pub fn check(settings: &Acme) -> Result<(), StartError> {
    client(settings).map(drop).map_err(StartError::Settings)
}

/// Starts to obtain and renew the settings' certificates. Each that is stored already is reported
/// first, with [`Source::Stored`].
///
/// Other processes may use the same state directory at the same time, such as this process's
/// successor in an upgrade: one of them orders, the others take the result from the directory.
/// The same holds for the processes that `shared` knows, each with a state directory of its own.
///
/// Settings do not change; after a reload another manager is started and this one stopped.
///
/// # Errors
/// The settings cannot work: no `https` directory, authorities or an HMAC key that cannot be read;
/// or the system cannot create a thread.
pub fn start(
    settings: Arc<Acme>,
    state: State,
    challenges: Arc<Challenges>,
    shared: Arc<SharedCertificates>,
    events: Events,
) -> Result<Handle, StartError> {
    let tls = client(&settings).map_err(StartError::Settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartError::System)?;
    let (http, performer) = Http::new(tls);
    let manager = Manager::new(settings, state, (challenges, shared), http, events);
    let status = Arc::clone(&manager.status);
    let (stop, stopped) = oneshot::channel();
    let work = move || {
        let tasks = tokio::task::LocalSet::new();
        tasks.block_on(&runtime, async {
            tokio::select! {
                // Also when the handle has been dropped.
                _ = stopped => {}
                () = performer.run() => {}
                () = manager.run() => {}
            }
        });
        // A lookup in progress cannot be interrupted; it ends by itself.
        runtime.shutdown_background();
    };
    let thread = std::thread::Builder::new().name("weir-acme".into()).spawn(work);
    let thread = Some(thread.map_err(StartError::System)?);
    Ok(Handle { stop: Some(stop), status, thread })
}

/// Checks the settings, and returns how the authority's certificate is verified.
fn client(settings: &Acme) -> Result<Arc<tls::rustls::ClientConfig>, String> {
    if !http::is_usable(&settings.directory) {
        let url = text::foreign(&settings.directory);
        return Err(format!("the ACME directory {url} is not usable; its URL must be https"));
    }
    if let Some(external) = &settings.external_account {
        account::external_key(external)?;
    }
    let ca = settings.ca.clone();
    let shown = ca.path.display().to_string();
    tls::own_client(ca)
        .map_err(|mistake| format!("the ACME directory's authorities in {shown}: {mistake}"))
}

impl Handle {
    /// Returns the state of all certificates, in the settings' order; empty until the thread has
    /// read the state directory.
    pub fn status(&self) -> Vec<Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the thread is running. Without it nothing is renewed.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends the thread and waits for it: at most milliseconds, since whatever it waits for is cut
    /// off. An order under way is continued by the next start.
    pub fn stop(mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the ACME thread panicked; certificates were not renewed");
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Settings(line) => f.write_str(line),
            StartError::System(error) => write!(f, "cannot start the ACME thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Settings(_) => None,
            StartError::System(error) => Some(error),
        }
    }
}
