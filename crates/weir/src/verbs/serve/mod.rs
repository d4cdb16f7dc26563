//! `weir serve`: what a running balancer is told, and what becomes of it.
//!
//! The main thread starts the balancer and then waits: for signals, for what the admin API is
//! asked, for a change of the file. Whatever it does is done one thing after the other.

mod balancer;

use std::time::Duration;

pub(crate) use balancer::{Balancer, Beginning, Followed, told};

use control::load::Load;

use crate::desk::{self, Desk, Errand};
use crate::flags::{Common, Exit, ServeArgs};
use crate::log;
use crate::reload::{Reloader, Trigger};
use crate::reminder::Reminder;
use crate::signals::{Event, Events};
use crate::sockets;
use crate::upgrade::{self, Predecessor, Program, Successor};

/// How often the main thread looks at the file when nothing else happens.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &ServeArgs, common: Common) -> Exit {
    let program = Program::this();
    log::start(common);
    let mut predecessor = match Predecessor::find() {
        Ok(predecessor) => predecessor,
        Err(error) => {
            eprintln!("weir: cannot take over from the process that started this one: {error}");
            return Exit::Failed;
        }
    };
    let mut reloader = Reloader::new(&args.file);
    let Load { outcome, seen } = control::load::load(&args.file, common.colours_stderr());
    reloader.has_read(seen);
    let snapshot = match outcome {
        Ok(loaded) => {
            eprint!("{}", loaded.warnings);
            loaded.snapshot
        }
        Err(error) => {
            eprintln!("{error}");
            if let Some(predecessor) = predecessor {
                predecessor.say_failed(&error.to_string());
            }
            return Exit::Mistake;
        }
    };
    let handed = predecessor.as_mut().map(Predecessor::take_sockets).unwrap_or_default();
    let (desk, errands) = desk::open();
    // Caught before anything is started, so that no signal finds a half-started balancer.
    let started = Events::catch(errands)
        .map_err(|error| vec![format!("no signals: {error}")])
        .and_then(|events| {
            // Whoever starts a balancer learns of every obstacle at once, before anything else
            // happens.
            let (sockets, door) = sockets::open(&snapshot, handed).map_err(|error| error.lines)?;
            let carried = predecessor.as_mut().map(Predecessor::take_servers);
            let sources = reloader.sources(&desk);
            let identity = predecessor.as_mut().and_then(Predecessor::take_identity);
            let identity = identity.unwrap_or_else(upgrade::new_identity);
            let affinity_key = predecessor.as_mut().and_then(Predecessor::take_affinity_key);
            let beginning =
                Beginning { snapshot, sockets, door, carried, affinity_key, identity, sources };
            Ok((Balancer::start(beginning)?, events))
        });
    match started {
        Ok((balancer, events)) => {
            if let Some(predecessor) = predecessor {
                predecessor.say_ready();
            }
            serve(balancer, events, reloader, &desk, &program);
            Exit::Done
        }
        Err(errors) => {
            for error in &errors {
                eprintln!("weir: {error}");
            }
            if let Some(predecessor) = predecessor {
                predecessor.say_failed(&errors.join("\n"));
            }
            Exit::Failed
        }
    }
}

/// Does what the balancer is told, until it is told to stop or a new process has taken over.
fn serve(
    mut balancer: Balancer,
    mut events: Events,
    mut reloader: Reloader,
    desk: &Desk,
    program: &Program,
) {
    let mut successor: Option<Successor> = None;
    // SIGHUP has come while there was one: whoever serves in the end follows it.
    let mut hung_up = false;
    let mut reminder = Reminder::new();
    loop {
        reminder.look(&balancer.published().snapshot);
        if successor.is_none() && std::mem::take(&mut hung_up) {
            let _ = reloader.reload(&mut balancer, Trigger::Signal);
        }
        let event = events.next(LOOK_EVERY);
        // One that serves by now is not late, however long it took to be heard.
        let is_heard = matches!(event, Some(Event::Asked(Errand::HearSuccessor(..))));
        if !is_heard && let Some(late) = successor.take_if(|successor| successor.is_late()) {
            late.give_up("it was not ready in time");
        }
        let (trigger, reply) = match event {
            Some(Event::Stop(signal)) => {
                if let Some(successor) = successor {
                    successor.give_up("this process is stopping");
                }
                return balancer.stop(signal, &mut events.close());
            }
            Some(Event::Asked(Errand::HearSuccessor(pid, said))) => {
                // One that was given up is not heard any more.
                if let Some(heard) = successor.take_if(|successor| successor.is_process(pid))
                    && let Some(heir) = heard.takes_over(&said)
                {
                    if hung_up {
                        upgrade::hang_up(heir);
                    }
                    return balancer.leave(&mut events.close());
                }
                continue;
            }
            Some(Event::Upgrade) => {
                upgrade::begin(&mut successor, &balancer, desk, program, None);
                continue;
            }
            Some(Event::Asked(Errand::Upgrade(reply))) => {
                upgrade::begin(&mut successor, &balancer, desk, program, Some(reply));
                continue;
            }
            Some(Event::Reload) => (Trigger::Signal, None),
            Some(Event::Asked(Errand::Reload(reply))) => (Trigger::Api, Some(reply)),
            // A successor has read the file or watches it; if it fails, it is still a change.
            None if successor.is_none() && reloader.has_changed(balancer.watches()) => {
                (Trigger::File, None)
            }
            None => continue,
        };
        let answer = match &successor {
            // It may have read the file already, and it has the present sockets.
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
