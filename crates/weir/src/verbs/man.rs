//! `weir man`: manual pages.

use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};

use super::check;
use crate::flags::{Cli, Exit, ManArgs};

pub(crate) fn run(args: &ManArgs) -> Exit {
    let mut weir = Cli::command().disable_help_subcommand(true);
    // Subcommands get their whole names, and the flags that all commands take.
    weir.build();
    if let Some(folder) = &args.to {
        return match write_all(&weir, folder) {
            Ok(()) => Exit::Done,
            Err(error) => {
                eprintln!(
                    "weir: the manual pages cannot be written to {}: {error}",
                    folder.display()
                );
                Exit::Failed
            }
        };
    }
    let mut command = &weir;
    for name in &args.command {
        let Some(found) = command.find_subcommand(name) else {
            eprintln!(
                "weir: no command is named {}; `weir help` lists all",
                args.command.join(" ")
            );
            return Exit::Mistake;
        };
        command = found;
    }
    match page(command) {
        Ok(page) => check::print(&String::from_utf8_lossy(&page)),
        Err(error) => {
            eprintln!("weir: {error}");
            Exit::Failed
        }
    }
}

/// Writes the pages of a command and of those below it.
fn write_all(command: &Command, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join(format!("{}.1", name(command))), page(command)?)?;
    command.get_subcommands().try_for_each(|below| write_all(below, folder))
}

/// Returns the page of a command, in the man macros of roff.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let (name, source) = (name(command), concat!("weir ", env!("CARGO_PKG_VERSION")));
    let man = clap_mangen::Man::new(command.clone()).title(name);
    man.source(source).manual("Weir").render(&mut page)?;
    Ok(page)
}

/// Returns the name of a command's page: `weir-bench-limit`.
fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).to_owned()
}
