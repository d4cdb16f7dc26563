//! `weir`: words in, words out. Reads the command line and hands over to the verb.

mod api_client;
mod flags;
mod incident;
mod render;
mod terminal;
mod top;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use flags::{Cli, Exit, Verb};
use model::Administrative;

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
    let exit = match cli.verb {
        Verb::Serve(args) => verbs::serve::run(&args, cli.common),
        Verb::Check(args) => verbs::check::run(&args, cli.common),
        Verb::Init(args) => verbs::init::run(&args, cli.common),
        Verb::Schema => verbs::schema::run(),
        Verb::Completions(args) => verbs::completions::run(&args),
        Verb::Man(args) => verbs::man::run(&args),
        Verb::Explain(args) => verbs::explain::run(&args, cli.common),
        Verb::Bundle(args) => verbs::bundle::run(&args),
        Verb::Status(args) => verbs::status::run(&args, cli.common),
        Verb::Top(args) => verbs::top::run(&args, cli.common),
        Verb::Drain(args) => verbs::server_state::run(&args, Administrative::Drain),
        Verb::Ready(args) => verbs::server_state::run(&args, Administrative::Ready),
        Verb::Maintenance(args) => verbs::maintenance::run(args),
        Verb::Reload(args) => verbs::reload::run(&args),
        Verb::Upgrade(args) => verbs::upgrade::run(&args),
        Verb::Doctor(args) => verbs::doctor::run(&args, cli.common),
        Verb::Demo(args) => verbs::demo::run(&args, cli.common),
        Verb::Trace(args) => verbs::trace::run(&args, cli.common),
        Verb::Bench(args) => verbs::bench::run(&args, cli.common),
        Verb::Lab(args) => verbs::lab::run(&args, cli.common),
    };
    balancer::log::finish();
    exit.into()
}
