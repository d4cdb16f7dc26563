//! A balancer as a service: loads the configuration file, takes over from another process or starts
//! on its own, and then handles signals, the admin API and changes of the file.
//!
//! All of this happens on the main thread, one event at a time.

use admin_api::receipt::Trigger;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use control::load::{Load, LoadError};
use model::Snapshot;
use os::socket_activation::{self, Passed};

use crate::certificate_reminder::CertificateReminder;
use crate::commands::{self, Command, CommandSender};
use crate::events::{Event, Events};
use crate::instance::{Balancer, Known, StartOptions};
use crate::not_admitted::SharedNotAdmitted;
use crate::reload::Reloader;
use crate::service_manager::Watchdog;
use crate::sockets::{self, Handed, remove_unused};
use crate::traffic_history;
use crate::upgrade::{self, Predecessor, Program, Successor};

/// How often the main thread checks the file when nothing else happens.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What to serve, and how.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The configuration file.
    pub file: PathBuf,
    /// The program that an upgrade starts.
    pub program: Program,
    /// Whether errors and warnings about the file are coloured.
    pub colours: bool,
}

/// A configuration that was read and is valid, and the process to take over from, if there is one.
pub struct Loaded {
    program: Program,
    predecessor: Option<Predecessor>,
    /// Sockets that the service manager passed.
    activated: Vec<Passed>,
    reloader: Reloader,
    snapshot: Arc<Snapshot>,
    warnings: String,
}

/// Why a balancer does not serve.
#[derive(Debug)]
pub enum Cause {
    /// The state handed over by the starting process cannot be used.
    Handover(String),
    /// The configuration is unreadable or invalid.
    Configuration(LoadError),
    /// Something outside the configuration prevents it: one line per obstacle.
    Obstacles(Vec<String>),
}

/// A balancer that does not serve. A predecessor waits for [`NotServing::tell_predecessor`].
pub struct NotServing {
    /// The reason.
    pub cause: Cause,
    predecessor: Option<Box<Predecessor>>,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Handover(why) => f.write_str(why),
            Cause::Configuration(error) => error.fmt(f),
            Cause::Obstacles(lines) => f.write_str(&lines.join("\n")),
        }
    }
}

impl NotServing {
    fn new(cause: Cause, predecessor: Option<Predecessor>) -> NotServing {
        NotServing { cause, predecessor: predecessor.map(Box::new) }
    }

    /// Reports the failure to the predecessor, if there is one, which may end this process then:
    /// must be called last.
    pub fn tell_predecessor(self) {
        if let Some(predecessor) = self.predecessor {
            predecessor.say_failed(&self.cause.to_string());
        }
    }
}

/// Reads and checks the configuration, and the state handed over by a predecessor. Must be called
/// once, before anything else is opened.
///
/// # Errors
/// The configuration has mistakes, or the handover from the predecessor failed.
pub fn load(options: ServeOptions) -> Result<Loaded, NotServing> {
    let ServeOptions { file, program, colours } = options;
    let predecessor =
        Predecessor::find().map_err(|why| NotServing::new(Cause::Handover(why), None))?;
    // Those of a predecessor are handed over.
    let activated = match &predecessor {
        Some(_) => Ok(Vec::new()),
        None => socket_activation::take(),
    };
    let activated = activated.map_err(|error| {
        let line = format!("the service manager's sockets cannot be used: {error}");
        NotServing::new(Cause::Obstacles(vec![line]), None)
    })?;
    let mut reloader = Reloader::new(&file);
    let Load { outcome, seen, input } = control::load::load(&file, colours);
    reloader.has_read(seen);
    match outcome {
        Ok(loaded) => match reloader.first(loaded.snapshot, input) {
            Ok(snapshot) => {
                let warnings = loaded.warnings;
                Ok(Loaded { program, predecessor, activated, reloader, snapshot, warnings })
            }
            Err(line) => Err(NotServing::new(Cause::Obstacles(vec![line]), predecessor)),
        },
        Err(error) => Err(NotServing::new(Cause::Configuration(error), predecessor)),
    }
}

impl Loaded {
    /// Returns warnings about the configuration, as text; empty if there are none.
    pub fn warnings(&self) -> &str {
        &self.warnings
    }

    /// Starts the balancer, and serves until it is stopped or a new process has taken over.
    ///
    /// # Errors
    /// The balancer could not be started.
    pub fn serve(self) -> Result<(), NotServing> {
        let Loaded { program, mut predecessor, activated, mut reloader, snapshot, .. } = self;
        let (commands, received) = commands::channel();
        // Caught before anything is started, so that no signal arrives at a half-started balancer.
        let started = Events::catch(received)
            .map_err(|error| vec![format!("no signals: {error}")])
            .and_then(|events| {
                let sources = reloader.sources(&commands);
                let handed = match predecessor.as_mut() {
                    Some(predecessor) => predecessor.take_sockets(),
                    None => sockets::activated(&snapshot, activated)?,
                };
                let options = start_options(snapshot, predecessor.as_mut(), handed, sources)?;
                let options = StartOptions { not_admitted: reloader.not_admitted(), ..options };
                let files = options.sockets.files();
                // Consul answers with other routes than those of the last run.
                let balancer = Balancer::start_with(options, |routes| reloader.with_routes(routes));
                let balancer = balancer.inspect_err(|_| remove_unused(&files))?;
                Ok((balancer, events))
            });
        match started {
            Ok((mut balancer, events)) => {
                let departing = predecessor.map(|predecessor| {
                    balancer.publish_files();
                    predecessor.say_ready()
                });
                balancer.register(departing);
                let events = events.and_gateways(balancer.gateways());
                run(balancer, events, reloader, &commands, &program);
                Ok(())
            }
            Err(lines) => Err(NotServing::new(Cause::Obstacles(lines), predecessor)),
        }
    }
}

/// Opens what `snapshot` needs and was not `handed` over. Fails with every obstacle at
/// once, before anything else happens.
fn start_options(
    snapshot: Arc<Snapshot>,
    mut predecessor: Option<&mut Predecessor>,
    handed: Handed,
    sources: admin::Sources,
) -> Result<StartOptions, Vec<String>> {
    let (mut sockets, doors) = sockets::open(&snapshot, handed).map_err(|error| error.lines)?;
    if predecessor.is_none() {
        // Before the user is switched. A predecessor keeps its files until this process serves.
        let errors: Vec<_> = sockets.publish_files().iter().map(ToString::to_string).collect();
        if !errors.is_empty() {
            return Err(errors);
        }
    }
    let history = predecessor.as_mut().and_then(|it| it.take_history());
    let history = Some(traffic_history::begin(history.as_deref()));
    Ok(StartOptions {
        snapshot,
        sockets,
        doors,
        known: Known {
            servers: predecessor.as_mut().map(|it| it.take_servers()),
            maintenance: predecessor.as_mut().map(|it| it.take_maintenance()).unwrap_or_default(),
            orders: predecessor.as_mut().map(|it| it.take_orders()).unwrap_or_default(),
            changes: predecessor.as_mut().map(|it| it.take_changes()).unwrap_or_default(),
        },
        affinity_key: predecessor.as_mut().and_then(|it| it.take_affinity_key()),
        identity: predecessor.and_then(Predecessor::take_identity),
        not_admitted: SharedNotAdmitted::default(),
        sources: admin::Sources { history, ..sources },
    })
}

/// Gives up a successor that is not ready in time. One that serves by now is not late, however long its message took to
/// be processed.
fn give_up_late(successor: &mut Option<Successor>, event: Option<&Event>) {
    let is_heard = matches!(event, Some(Event::Asked(Command::SuccessorSaid(..))));
    if !is_heard && let Some(late) = successor.take_if(|successor| successor.is_late()) {
        late.give_up("it was not ready in time");
    }
}

/// Handles events, until a signal stops the balancer or a new process has taken over.
fn run(
    mut balancer: Balancer,
    mut events: Events,
    mut reloader: Reloader,
    commands: &CommandSender,
    program: &Program,
) {
    let mut successor: Option<Successor> = None;
    // SIGHUP arrived while there was a successor: the process that serves in the end reloads.
    let mut hung_up = false;
    let mut reminder = CertificateReminder::new();
    let mut watchdog = Watchdog::new(os::clock::now());
    loop {
        watchdog.tend(os::clock::now());
        reminder.look(&balancer.published().snapshot);
        if successor.is_none() && std::mem::take(&mut hung_up) {
            let _ = reloader.reload(&mut balancer, Trigger::Signal);
        }
        // While a new process starts, both accept connections, and either could get those of a
        // challenge.
        balancer.tend_certificates(successor.is_none());
        // A successor follows them, too; if it fails, they are still others.
        if successor.is_none() {
            reloader.follow_gateways(&mut balancer);
        }
        let due = reloader.gateways_due() - os::clock::now();
        let event = events.next(if due.is_zero() { LOOK_EVERY } else { due.min(LOOK_EVERY) });
        give_up_late(&mut successor, event.as_ref());
        let (trigger, reply) = match event {
            Some(Event::Stop(signal)) => {
                if let Some(successor) = successor {
                    successor.give_up("this process is stopping");
                }
                return balancer.stop(signal, &mut events.close());
            }
            Some(Event::Asked(Command::SuccessorSaid(pid, said))) => {
                // Messages of a successor that was given up are ignored.
                if let Some(heard) = successor.take_if(|successor| successor.is_process(pid))
                    && let Some((pid, channel)) = heard.takes_over(&said)
                {
                    if hung_up {
                        upgrade::hang_up(pid);
                    }
                    return balancer.leave(channel, &mut events.close());
                }
                continue;
            }
            Some(Event::Upgrade) => {
                upgrade::begin(&mut successor, &balancer, commands, program, None);
                continue;
            }
            Some(Event::Asked(Command::Upgrade(reply))) => {
                upgrade::begin(&mut successor, &balancer, commands, program, Some(reply));
                continue;
            }
            Some(Event::Gateways) => continue,
            Some(Event::Reload) => (Trigger::Signal, None),
            Some(Event::Asked(Command::Reload(reply))) => (Trigger::Api, Some(reply)),
            // A successor has read the file or watches it; if it fails, the change is still
            // pending.
            None if successor.is_none() && reloader.has_changed(balancer.watches()) => {
                (Trigger::File, None)
            }
            None => {
                // A successor follows them, too; if it fails, they are still others.
                if successor.is_none() {
                    reloader.follow_routes(&mut balancer);
                }
                balancer.free_garbage();
                // Not before a signal that has arrived: a predecessor that gives this process up sends one.
                balancer.tend_registration();
                continue;
            }
        };
        let answer = match &successor {
            // It may have read the file already, and it has the current sockets.
            Some(_) => {
                hung_up |= trigger == Trigger::Signal;
                Reloader::put_off(&balancer, trigger)
            }
            None => reloader.reload(&mut balancer, trigger),
        };
        if let Some(reply) = reply {
            reply.send(answer);
        }
    }
}
