//! `weir lab shell`: starts an incident's hosts with their programs for interactive use.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::lab::run::{Request, find, visit};
use ::lab::stop::Stop;
use balancer::signals::Signals;
use os::process::{Ask, signal};

use crate::flags::{Exit, LabShellArgs};

use super::{failed, incident, mistaken, watched};

/// How long a command has to end once it was asked to.
const GRACE: Duration = Duration::from_secs(3);

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
    let (stop, is_there) = (Stop::default(), AtomicBool::new(false));
    // A terminal's Ctrl-C reaches the command as well, and what it does then is its own affair;
    // SIGTERM reaches only this process. Before there is a command, either ends the making.
    let caught = |signal| {
        if signal == "SIGTERM" || !is_there.load(Ordering::Relaxed) {
            stop.pull();
        }
    };
    let ended = watched(&mut signals, caught, || {
        visit(&request, &stop, |command| {
            is_there.store(true, Ordering::Relaxed);
            eprintln!("{name}: you are on {}; `exit` removes everything", args.host);
            ended(command(&args.host, &program).args(words), args.command.is_empty(), &stop)
                .map_err(|error| format!("{}: {error}", program.display()))
        })
    });
    match ended {
        Ok(status) => Exit::Command(code(status)),
        Err(why) => failed(&why),
    }
}

/// Runs a command to its end, which comes soon once `stop` is pulled.
fn ended(command: &mut Command, is_shell: bool, stop: &Stop) -> io::Result<ExitStatus> {
    let mut started = Started(command.spawn()?);
    if let Some(ended) = stop.until(Duration::MAX, || started.0.try_wait().transpose()) {
        return ended;
    }
    // A shell at a terminal ignores SIGTERM; SIGHUP is how a terminal that goes away ends it. One
    // that was made to stand still has to go on for that.
    let ask = if is_shell { Ask::HangUp } else { Ask::Terminate };
    signal(started.0.id(), ask)?;
    signal(started.0.id(), Ask::GoOn)?;
    if let Some(ended) = Stop::never().until(GRACE, || started.0.try_wait().transpose()) {
        return ended;
    }
    started.0.kill()?;
    started.0.wait()
}

/// A child that is never left behind, whatever fails.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // One whose end was waited for gets no signal.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a shell makes of how a command ended: its code, or 128 and the number of a signal.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|number| 128 + number));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
