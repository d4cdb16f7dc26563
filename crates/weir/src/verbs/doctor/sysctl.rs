//! `weir doctor sysctl`: explains and evaluates the kernel settings in use, or those of a file.

use diagnose::facts::Facts;
use diagnose::sysctl::{Effect, Machine, Reviewed, Which, in_use, of_file};
use serde_json::{Value, json};

use super::super::check::{print, print_json};
use super::facts::{Settings, at_once, text_of};
use crate::flags::{Common, Exit, SysctlArgs};
use crate::render;

/// Larger than any file of settings that a person wrote.
const FILE_MAX_BYTES: u64 = 1024 * 1024;

pub(super) fn run(args: &SysctlArgs, common: Common) -> Exit {
    let facts = match at_once(&args.list, Settings::All) {
        Ok(facts) => facts,
        Err(error) => return error.tell(),
    };
    let machine = Machine::of(&facts.host);
    let groups = if let Some(path) = &args.file {
        match text_of(path, FILE_MAX_BYTES) {
            Ok(text) => {
                let name = path.display().to_string();
                let of = format!("{name}, as it would be on this machine");
                vec![(of, of_file(&name, &text, &machine))]
            }
            Err(error) => return error.tell(),
        }
    } else {
        let which = if args.all { Which::All } else { Which::Changed };
        in_namespaces(&facts, &machine, which)
    };
    let weighs = |one: &Reviewed| matches!(one.judgement.effect, Effect::Harms);
    let harms = groups.iter().flat_map(|(_, settings)| settings).any(weighs);
    let printed = if args.list.json {
        let groups = groups
            .iter()
            .map(|(name, settings)| json!({ "of": name, "settings": settings }))
            .collect::<Value>();
        print_json(&json!({ "reviewed": groups, "harms": harms }))
    } else {
        print(&render::doctor::settings(&groups, common.colours_stdout()))
    };
    match printed {
        Exit::Done if harms => Exit::Findings,
        printed => printed,
    }
}

/// What is in force in each namespace that could be read.
fn in_namespaces(facts: &Facts, machine: &Machine, which: Which) -> Vec<(String, Vec<Reviewed>)> {
    let files = facts.host.sysctl_files.get().map_or(&[][..], Vec::as_slice);
    let each = facts.namespaces.iter().filter_map(|namespace| {
        let settings = namespace.settings.get()?;
        // Files are applied to the namespace in which the machine was started.
        let files = if namespace.is_own { files } else { &[] };
        let name = if namespace.is_own {
            "This network namespace".to_owned()
        } else {
            format!("Network namespace {}", namespace.name)
        };
        Some((name, in_use(settings, files, machine, which)))
    });
    each.collect()
}
