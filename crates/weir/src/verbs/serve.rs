//! `weir serve`: starts a balancer as a service, and reports what prevents the start.

use balancer::Program;
use balancer::log;
use balancer::serve::{self, Cause, NotServing, ServeOptions};

use crate::flags::{Common, Exit, ServeArgs};

pub(crate) fn run(args: &ServeArgs, common: Common) -> Exit {
    // Asked first: later another program may stand at our path.
    let program = Program::this();
    log::start(common.log_options());
    let options =
        ServeOptions { file: args.file.clone(), program, colours: common.colours_stderr() };
    let ended = serve::load(options).and_then(|loaded| {
        eprint!("{}", loaded.warnings());
        loaded.serve()
    });
    match ended {
        Ok(()) => Exit::Done,
        Err(error) => failed(error),
    }
}

fn failed(error: NotServing) -> Exit {
    let exit = match &error.cause {
        Cause::Handover(why) => {
            eprintln!("weir: cannot take over from the process that started this one: {why}");
            Exit::Failed
        }
        Cause::Configuration(error) => {
            eprintln!("{error}");
            Exit::Mistake
        }
        Cause::Obstacles(lines) => {
            for line in lines {
                eprintln!("weir: {line}");
            }
            Exit::Failed
        }
    };
    error.tell_predecessor();
    exit
}
