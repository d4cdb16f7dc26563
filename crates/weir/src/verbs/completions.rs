//! `weir completions`: completion scripts for shells.

use clap::CommandFactory;

use super::check;
use crate::flags::{Cli, CompletionsArgs, Exit};

pub(crate) fn run(args: &CompletionsArgs) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weir", &mut script);
    check::print(&String::from_utf8_lossy(&script))
}
