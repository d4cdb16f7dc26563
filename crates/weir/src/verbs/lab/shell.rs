//! `weir lab shell`: an incident's hosts with their programs, to look around in.

use std::path::PathBuf;

use ::lab::run::{Request, find, visit};
use ::lab::stop::Stop;

use crate::flags::{Exit, LabShellArgs};

use super::{failed, incident, mistaken};

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
    let ended = visit(&request, &Stop::never(), |command| {
        eprintln!("{name}: you are on {}; `exit` removes everything", args.host);
        let status = command(&args.host, &program).args(words).status();
        status.map(|_| ()).map_err(|error| format!("{}: {error}", program.display()))
    });
    match ended {
        Ok(()) => Exit::Done,
        Err(why) => failed(&why),
    }
}
