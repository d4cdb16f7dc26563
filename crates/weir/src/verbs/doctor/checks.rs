//! `weir doctor checks`: the load that a configuration's health checks put on each endpoint.

use control::load::Folder;
use diagnose::checks::{Checks, load, of_haproxy, of_snapshot};
use serde_json::json;

use super::super::check::{print, print_json};
use super::facts::text_of;
use crate::flags::{ChecksArgs, Common, Exit};
use crate::render;

/// Larger than any configuration that people or programs have made.
const FILE_MAX_BYTES: u64 = 64 * 1024 * 1024;

pub(super) fn run(args: &ChecksArgs, common: Common) -> Exit {
    let text = match text_of(&args.file, FILE_MAX_BYTES) {
        Ok(text) => text,
        Err(error) => return error.tell(),
    };
    let read = if is_haproxy(&text) {
        of_haproxy(&text).map_err(|why| eprintln!("weir: {}: {why}", args.file.display()))
    } else {
        of_weir(args, &text, common)
    };
    let Ok(checks) = read else { return Exit::Mistake };
    let load = load(&checks, args.nodes.into());
    let has_storm = load.storms().next().is_some();
    let printed = if args.json {
        print_json(&json!({ "load": load, "has_storm": has_storm }))
    } else {
        print(&diagnose::render::checks(&load, render::doctor::WIDTH))
    };
    match printed {
        Exit::Done if has_storm => Exit::Findings,
        printed => printed,
    }
}

fn of_weir(args: &ChecksArgs, text: &str, common: Common) -> Result<Checks, ()> {
    let name = args.file.display().to_string();
    match config::check(text, &name, &Folder::of(&args.file)) {
        Ok(checked) => Ok(of_snapshot(&checked.snapshot)),
        Err(report) => {
            eprint!("{}", report.render(common.colours_stderr()));
            Err(())
        }
    }
}

/// HAProxy's sections begin with a word of their own; TOML's in brackets.
fn is_haproxy(text: &str) -> bool {
    const SECTIONS: &[&str] = &["global", "defaults", "frontend", "backend", "listen"];
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        SECTIONS.contains(&first) && words.next() != Some("=")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_shows_whose_it_is() {
        assert!(is_haproxy("# checks\nglobal\n  maxconn 5\nbackend mesh\n"));
        assert!(!is_haproxy("workers = 2\n[[listener]]\naddress = \"0.0.0.0:80\"\n"));
        assert!(!is_haproxy(""));
    }
}
