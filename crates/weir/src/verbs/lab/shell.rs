//! `weir lab shell`: an incident's hosts with their programs, to look around in.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use ::lab::run::{Request, find, visit};
use ::lab::stop::Stop;
use os::process::{Ask, signal};

use crate::flags::{Exit, LabShellArgs};
use crate::signals::Signals;

use super::{failed, incident, mistaken};

/// Between two looks at whether the command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &LabShellArgs) -> Exit {
    let (name, incident) = match incident(&args.name) {
        Ok(found) => found,
        Err(why) => return mistaken(&why),
    };
    if !incident.all_hosts().contains(&args.host) {
        let hosts = incident.all_hosts().join(", ");
        return mistaken(&format!("{name} has no host `{}`; it has {hosts}", args.host));
    }
    let weir = match std::env::current_exe() {
        Ok(weir) => weir,
        Err(error) => return failed(&format!("this program: {error}")),
    };
    let request = Request {
        name: &name,
        incident: &incident,
        seed: 1,
        is_short: false,
        only: args.only.as_deref(),
        weir: &weir,
        keeps_files: false,
    };
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let words = if args.command.is_empty() { vec![shell] } else { args.command.clone() };
    let (program, words) = words.split_first().map_or(("", &[][..]), |(one, rest)| (one, rest));
    let program = if program == "weir" { Some(weir.clone()) } else { find(program, &weir) };
    let Some(program): Option<PathBuf> = program else {
        return mistaken("there is no such program");
    };
    let mut signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return failed(&format!("no signals: {error}")),
    };
    let ended = visit(&request, &Stop::never(), |command| {
        eprintln!("{name}: you are on {}; `exit` removes everything", args.host);
        ended(command(&args.host, &program).args(words), &mut signals)
            .map_err(|error| format!("{}: {error}", program.display()))
    });
    match ended {
        Ok(status) => Exit::Command(code(status)),
        Err(why) => failed(&why),
    }
}

/// Runs a command to its end. A terminal's Ctrl-C reaches it as well, and what it does then is its
/// own affair; SIGTERM reaches only this process, which hands it on.
fn ended(command: &mut Command, signals: &mut Signals) -> io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if signals.wait_at_most(LOOK_EVERY) == Some("SIGTERM") {
            signal(child.id(), Ask::Terminate)?;
        }
    }
}

/// What a shell makes of how a command ended: its code, or 128 and the number of a signal.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|number| 128 + number));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
