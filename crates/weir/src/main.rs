//! `weir`: words in, words out. Reads the command line and hands over to the verb.

mod flags;
mod log;
mod render;
mod report;
mod signals;
mod sockets;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use flags::{Cli, Exit, Verb};

fn main() -> ExitCode {
    // The origin of every moment is the program's start.
    let _ = os::clock::now();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are "errors" of exit code 0 here.
            let _ = error.print();
            return if error.exit_code() == 0 { Exit::Done } else { Exit::Mistake }.into();
        }
    };
    match cli.verb {
        Verb::Serve(args) => verbs::serve::run(&args, cli.common),
        Verb::Check(args) => verbs::check::run(&args, cli.common),
        Verb::Schema => verbs::schema::run(),
        Verb::Explain(args) => verbs::explain::run(&args, cli.common),
        Verb::Demo(args) => verbs::demo::run(&args, cli.common),
    }
    .into()
}
