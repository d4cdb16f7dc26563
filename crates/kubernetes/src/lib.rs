//! Watches the API server of a Kubernetes cluster, hands what is to be served to the caller, and writes statuses and a
//! Service for each Gateway.
//!
//! An I/O shell: [`start`] runs one thread with a current-thread runtime. `gateway` resolves objects; `store` has those
//! that are known, `watch` follows them, `lease` decides which instance writes, `statuses` and `expose` decide what.
//!
//! The API server can be slow, absent, or older than before at any time: what is known stays in use.

#![cfg(feature = "client")]
#![allow(clippy::doc_markdown, reason = "the kinds of Kubernetes objects are words of its prose")]

mod absence;
mod api;
mod applied;
mod backoff;
mod connecting;
mod credentials;
mod discover;
mod elect;
mod event;
mod expose;
mod failing;
mod failure;
mod fetch;
mod health;
mod hidden;
mod item;
mod kinds;
mod lease;
mod limit;
mod manager;
mod news;
mod pace;
mod queue;
mod recorder;
mod relists;
mod resolver;
mod reviews;
mod settings;
mod statuses;
mod store;
mod text;
mod turns;
mod unserved;
mod watch;
mod writer;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use gateway::pods::PodSets;
use gateway::served::{InForce, Served};
use tokio::sync::{oneshot, watch as channel};

pub use event::Event;
pub use health::Health;
pub use reviews::Reviews;
pub use settings::{Exposure, Settings};

use crate::limit::Limit;
use crate::manager::{Manager, Outputs};
use crate::settings::NAMESPACES_MAX;

/// Receives what happens, on the thread of the watches; it must not block.
pub type Events = Box<dyn FnMut(Event) + Send>;

/// Why the watches cannot start. Displays as one line.
#[derive(Debug)]
pub enum StartError {
    /// The settings cannot work.
    Settings(String),
    /// The system cannot create a thread.
    System(io::Error),
}

/// The thread of the watches. Dropping it ends the thread without waiting for it.
#[derive(Debug)]
pub struct Handle {
    /// What is to be served.
    pub served: channel::Receiver<Arc<Served>>,
    /// The Pods of the Services that it uses. They are there before a [`Served`] that needs them.
    pub pods: channel::Receiver<Arc<PodSets>>,
    /// How the connection to the API server is.
    pub health: channel::Receiver<Arc<Health>>,
    /// Asks the API server who clients of an aggregated API are; `None`: it is not to be asked.
    pub reviews: Option<Reviews>,
    leave: Option<oneshot::Sender<()>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts to watch. `in_force` is what the caller serves: the statuses that say so are written only then.
///
/// # Errors
/// The settings cannot work, or the system cannot create a thread. That the API server cannot be reached is no error.
pub fn start(
    mut settings: Settings,
    in_force: channel::Receiver<Arc<InForce>>,
    mut events: Events,
) -> Result<Handle, StartError> {
    check(&settings).map_err(StartError::Settings)?;
    settings.identity = unique(&settings.identity).map_err(StartError::System)?;
    // Lookups of names and programs that print credentials, of which some may hang.
    const BLOCKING_MAX: usize = 16;
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(BLOCKING_MAX).build();
    let runtime = runtime.map_err(StartError::System)?;
    let (served_sender, served) = channel::channel(Arc::default());
    let (pods_sender, pods) = channel::channel(Arc::default());
    let (health_sender, health) = channel::channel(Arc::new(Health::new(os::clock::now())));
    let outputs = Outputs { served: served_sender, pods: pods_sender, health: health_sender };
    let (reviews, reviewed) = settings.has_reviews.then(reviews::channel).unzip();
    let (leave, left) = oneshot::channel();
    let (stop, stopped) = oneshot::channel();
    let mut limit = Limit::default();
    let events: Events = Box::new(move |event| {
        if let Some(event) = limit.admit(event, os::clock::now()) {
            events(event);
        }
    });
    let work = move || {
        let tasks = tokio::task::LocalSet::new();
        tasks.block_on(&runtime, async {
            let (manager, inputs) = Manager::new(Arc::new(settings), outputs, events);
            manager.run(inputs, reviewed, in_force, (left, stopped)).await;
        });
        drop(tasks);
        // A lookup in progress cannot be interrupted; it ends by itself.
        runtime.shutdown_background();
    };
    let thread = std::thread::Builder::new().name("weir-kubernetes".into()).spawn(work);
    let thread = Some(thread.map_err(StartError::System)?);
    Ok(Handle { served, pods, health, reviews, leave: Some(leave), stop: Some(stop), thread })
}

/// Returns a name that no other process has: of two with one name, both would believe to hold the Lease.
fn unique(identity: &str) -> io::Result<Arc<str>> {
    let mut bytes = [0; 8];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(format!("{identity}_{}", text::hexadecimal(&bytes)).into())
}

/// Checks the settings as [`start`] does.
///
/// # Errors
/// What is wrong, one line.
pub fn check(settings: &Settings) -> Result<(), String> {
    if settings.identity.is_empty() || settings.namespace.is_empty() || settings.lease.is_empty() {
        return Err("the identity, the namespace and the Lease must have names".to_owned());
    }
    match &settings.namespaces {
        Some(namespaces) if namespaces.is_empty() => {
            return Err("the list of namespaces is empty; leave it out to watch all".to_owned());
        }
        Some(namespaces) if namespaces.len() > NAMESPACES_MAX => {
            return Err(format!(
                "at most {NAMESPACES_MAX} namespaces can be watched one by one; leave the list out \
                 to watch all"
            ));
        }
        Some(_) | None => {}
    }
    match &settings.exposure {
        Exposure::Services { port_first, port_last, .. }
            if port_first > port_last || *port_first == 0 =>
        {
            Err(format!("{port_first} to {port_last} is no range of ports"))
        }
        Exposure::Services { selector, .. } if selector.is_empty() => {
            Err("the selector of Weir's Pods is empty".to_owned())
        }
        Exposure::Pool { addresses } if addresses.is_empty() => {
            Err("the pool has no addresses".to_owned())
        }
        Exposure::Services { .. } | Exposure::Pool { .. } => Ok(()),
    }
}

impl Handle {
    /// Returns whether the thread is running. Without it, changes to the cluster are not seen.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Gives the Lease up at once and for good, so that another instance writes. This one goes on reading. Does not wait.
    pub fn leave(&mut self) {
        if let Some(leave) = self.leave.take() {
            // The thread may have ended.
            let _ = leave.send(());
        }
    }

    /// Gives the Lease up, ends the thread, and waits for it: at most two seconds, if the API server does not answer.
    pub fn stop(mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the Kubernetes thread panicked; changes to the cluster were not seen");
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Settings(line) => f.write_str(line),
            StartError::System(error) => write!(f, "cannot start the Kubernetes thread: {error}"),
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
