//! `weir serve`: the story of a start and of a stop, top to bottom.
//!
//! Each step's work is done elsewhere; here is the order, and why it is this one.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use model::{AccessLog, Snapshot};

use crate::flags::{Common, Exit, ServeArgs};
use crate::signals::Signals;
use crate::sockets::{self, Sockets};
use crate::{log, render, report};

/// How long servers given by name may keep a start waiting for their first resolution.
const RESOLVE_MAX: Duration = Duration::from_secs(5);

/// How often a stop looks whether the last connection has ended, or a second signal has come.
const DRAIN_LOOK: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &ServeArgs, common: Common) -> Exit {
    log::start(common);
    let snapshot = match load(args, common) {
        Ok(snapshot) => snapshot,
        Err(error) => {
            eprintln!("{error}");
            return Exit::Mistake;
        }
    };
    match serve(snapshot) {
        Ok(()) => Exit::Done,
        Err(errors) => {
            for error in errors {
                eprintln!("weir: {error}");
            }
            Exit::Failed
        }
    }
}

/// Reads the file and says what is doubtful in it.
fn load(args: &ServeArgs, common: Common) -> Result<Arc<Snapshot>, control::load::LoadError> {
    let loaded = control::load::load(&args.file, common.colours_stderr())?;
    eprint!("{}", loaded.warnings);
    Ok(loaded.snapshot)
}

/// Runs a balancer until a signal ends it.
fn serve(snapshot: Arc<Snapshot>) -> Result<(), Vec<String>> {
    // Caught before anything is started, so that no signal finds a half-started balancer.
    let mut signals = Signals::catch().map_err(|error| vec![format!("no signals: {error}")])?;
    // Whoever starts a balancer learns of every obstacle at once, before anything else happens.
    let sockets = sockets::open(&snapshot).map_err(|error| error.lines)?;
    let balancer = Balancer::start(snapshot, sockets)?;
    let signal = signals.wait();
    tracing::info!("{signal}: stopping; a second signal stops at once");
    balancer.stop(&mut signals);
    Ok(())
}

/// A whole balancer at work.
pub(crate) struct Balancer {
    pub(crate) registry: Arc<decide::Registry>,
    pub(crate) counters: Arc<observe::Registry>,
    snapshot: Arc<Snapshot>,
    ready: Arc<AtomicBool>,
    control: control::Control,
    proxy: proxy::Handle,
    admin: Option<admin::Handle>,
    access_writer: Option<JoinHandle<()>>,
}

impl Balancer {
    /// Starts one on its sockets. What prevents it is told, a line each.
    pub(crate) fn start(
        snapshot: Arc<Snapshot>,
        sockets: Sockets,
    ) -> Result<Balancer, Vec<String>> {
        let workers = sockets.clients.len();

        // What only root may do comes first, and all of it.
        let (access, access_writer) = open_access_log(&snapshot)?;
        drop_privileges(&snapshot)?;
        sockets.say_shortfalls();

        // Then the configuration comes into force, with probes and names under way. Clients wait
        // in the listen queue until every name has been looked up.
        let registry = Arc::new(decide::Registry::new());
        let counters = Arc::new(observe::Registry::new());
        let alarm = Arc::new(OnceLock::<proxy::Alarm>::new());
        let options = control::Options { server_down: ring(&alarm), ..control::Options::default() };
        let control = control::start(Arc::clone(&registry), Arc::clone(&snapshot), options)
            .map_err(|error| vec![format!("cannot start the control thread: {error}")])?;
        if !control.status().wait_resolved(RESOLVE_MAX) {
            tracing::warn!("not every server's name is resolved yet; starting without them");
        }

        // The workers take what waits.
        let proxy = proxy::start(proxy::Options {
            registry: Arc::clone(&registry),
            counters: Arc::clone(&counters),
            sockets: sockets.clients,
            access,
        })
        .map_err(|error| vec![format!("cannot start the workers: {error}")])?;

        // From here on, whoever waits for a server that is marked down goes elsewhere.
        let _ = alarm.set(proxy.alarm());

        // Last the API, which shows what is there by now.
        let ready = Arc::new(AtomicBool::new(true));
        let plan = control.status();
        let admin = sockets.admin.map(|listener| {
            admin::start(admin::Options {
                listener,
                registry: Arc::clone(&registry),
                counters: Arc::clone(&counters),
                plan: Arc::new(move || report::plan(&plan.plan())),
                configuration: Arc::new(|snapshot| {
                    let plan = health::report::of_snapshot(snapshot);
                    render::json::explained(snapshot, report::plan(&plan))
                }),
                probes: Arc::new(Vec::new),
                ready: Arc::clone(&ready),
                workers,
                version: env!("CARGO_PKG_VERSION"),
            })
        });
        let admin = admin.transpose().map_err(|error| vec![format!("admin: {error}")])?;
        announce(&snapshot, workers, admin.as_ref());
        Ok(Balancer { registry, counters, snapshot, ready, control, proxy, admin, access_writer })
    }

    /// Stops accepting, finishes what runs up to the configuration's `drain_max`, or until one more
    /// signal comes.
    pub(crate) fn stop(self, signals: &mut Signals) {
        told(os::notify::stopping());
        self.ready.store(false, Relaxed);
        self.proxy.begin_drain();
        // Probes and the API go on meanwhile, so that a drain can be watched.
        let mut deadline = os::clock::now() + self.snapshot.drain_max;
        while self.proxy.connections() > 0 && os::clock::now() < deadline {
            if let Some(signal) = signals.wait_at_most(DRAIN_LOOK) {
                tracing::info!("{signal}: stopping at once");
                deadline = os::clock::now();
            }
        }
        let cut_off = self.proxy.finish(deadline - os::clock::now());
        if let Some(admin) = self.admin {
            admin.stop();
        }
        self.control.shutdown();
        if self.access_writer.is_some_and(|writer| writer.join().is_err()) {
            tracing::error!("the access log's writer ended by a panic");
        }
        match cut_off {
            0 => tracing::info!("stopped"),
            connections => tracing::warn!(connections, "stopped; connections were cut off"),
        }
    }
}

/// What control calls when it has marked a server down; without workers there is nobody to tell.
fn ring(alarm: &Arc<OnceLock<proxy::Alarm>>) -> Box<dyn Fn() + Send> {
    let alarm = Arc::clone(alarm);
    Box::new(move || {
        if let Some(alarm) = alarm.get() {
            alarm.ring();
        }
    })
}

/// Opens the log while the program may still be root.
fn open_access_log(
    snapshot: &Snapshot,
) -> Result<(proxy::AccessSink, Option<JoinHandle<()>>), Vec<String>> {
    let access = &snapshot.log.access;
    proxy::AccessSink::open(access).map_err(|error| {
        let what = match access {
            AccessLog::File(path) => path.display().to_string(),
            AccessLog::Stdout | AccessLog::Off => "standard output".to_owned(),
        };
        vec![format!("cannot write the access log to {what}: {error}")]
    })
}

/// Becomes whom the configuration names. Only root can; for others it must be whom they are.
fn drop_privileges(snapshot: &Snapshot) -> Result<(), Vec<String>> {
    let Some((user, group)) = &snapshot.run_as else {
        return Ok(());
    };
    os::privileges::switch(user, group.as_deref()).map_err(|error| vec![error.to_string()])?;
    tracing::info!(user, "privileges dropped");
    Ok(())
}

/// Says that the balancer takes work, to people and to the service manager.
fn announce(snapshot: &Snapshot, workers: usize, admin: Option<&admin::Handle>) {
    for listener in &snapshot.listeners {
        tracing::info!(listener = %listener.name, address = %listener.address, "listening");
    }
    if let Some(admin) = admin {
        tracing::info!("admin API at http://{}/", admin.address());
    }
    let (routes, services) = (snapshot.routes.len(), snapshot.services.len());
    tracing::info!(version = env!("CARGO_PKG_VERSION"), workers, routes, services, "ready");
    told(os::notify::status(&format!("{workers} workers, {routes} routes, {services} services")));
    told(os::notify::ready());
}

/// A service manager that does not listen is no reason to stop.
fn told(result: io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, "the service manager could not be told");
    }
}
