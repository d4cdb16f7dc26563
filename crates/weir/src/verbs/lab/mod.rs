//! `weir lab`: reproduces incidents on networks with faults, and verifies their solutions.

mod link;
mod run;
mod shell;
mod text;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::lab::incident::{Incident, entries, find};
use ::lab::network::state;

use balancer::signals::Signals;

use crate::flags::{Common, Exit, LabArgs, LabListArgs, LabVerb};

/// Between two looks at whether what signals can end has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &LabArgs, common: Common) -> Exit {
    match &args.verb {
        LabVerb::List(args) => list(args),
        LabVerb::Run(args) => run::run(args, common),
        LabVerb::Shell(args) => shell::run(args),
        LabVerb::Clean => clean(),
        LabVerb::Link(args) => link::run(args),
    }
}

fn list(args: &LabListArgs) -> Exit {
    for entry in entries() {
        if args.names {
            println!("{}", entry.name);
        } else {
            // Every one of them is read by a test.
            let title = Incident::read(entry.name, entry.text).map(|incident| incident.title);
            println!("{:<22}{}", entry.name, title.unwrap_or_default());
        }
    }
    Exit::Done
}

fn clean() -> Exit {
    match state::clean() {
        Ok(removed) => {
            for what in &removed.namespaces {
                println!("removed host {what}");
            }
            for what in &removed.files {
                println!("removed {}", what.display());
            }
            for pid in &removed.left {
                println!("left alone: the run of process {pid}, which goes on");
            }
            if removed == state::Removed::default() {
                println!("nothing is left of any run");
            }
            Exit::Done
        }
        Err(why) => failed(&why),
    }
}

/// An incident that comes with Weir, or one of a file.
fn incident(name: &str) -> Result<(String, Incident), String> {
    if let Some(entry) = find(name) {
        return Ok((name.to_owned(), Incident::read(name, entry.text)?));
    }
    let path = Path::new(name);
    if path.extension().is_none_or(|extension| extension != "toml") {
        let names: Vec<&str> = entries().iter().map(|entry| entry.name).collect();
        let names = names.join(", ");
        return Err(format!("there is no incident `{name}`; there are {names}, and files (.toml)"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok((stem, Incident::read(name, &text)?))
}

/// Runs `work` while waiting for signals; calls `caught` with the name of each.
fn watched<T>(
    signals: &mut Signals,
    mut caught: impl FnMut(&'static str) + Send,
    work: impl FnOnce() -> T,
) -> T {
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                if let Some(signal) = signals.wait_at_most(LOOK_EVERY) {
                    caught(signal);
                }
            }
        });
        // The scope ends with its threads.
        let _over = Over(&has_ended);
        work()
    })
}

/// Signals that the work has ended, even by a panic: otherwise the signal thread would wait for ever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Says why the lab could not do what it was asked for.
fn failed(why: &str) -> Exit {
    eprintln!("weir lab: {why}");
    Exit::Failed
}

/// Says what is wrong with the words, or with a file.
fn mistaken(why: &str) -> Exit {
    eprintln!("weir lab: {why}");
    Exit::Mistake
}
