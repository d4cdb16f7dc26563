//! `weir doctor`: finds host problems that affect its traffic.
//!
//! Facts come from this host (`collect`) or from a file; what they mean is said by `diagnose`.

mod checks;
mod explain;
pub(super) mod facts;
mod lists;
mod sysctl;
mod watch;

use diagnose::facts::Facts;
use diagnose::finding::Report;
use diagnose::rules::diagnose;
use serde_json::{Value, json};

use self::facts::Settings;
use super::check::{print, print_json};
use crate::flags::{Common, DoctorArgs, DoctorVerb, Exit};
use crate::render;

pub(crate) fn run(args: &DoctorArgs, common: Common) -> Exit {
    match &args.about {
        Some(DoctorVerb::Sysctl(args)) => return sysctl::run(args, common),
        Some(DoctorVerb::Listeners(args)) => return lists::listeners(args, common),
        Some(DoctorVerb::Sockets(args)) => return lists::sockets(args, common),
        Some(DoctorVerb::Checks(args)) => return checks::run(args, common),
        None => {}
    }
    if let Some(name) = &args.explain {
        return explain::run(name);
    }
    if args.watch {
        return watch::run(&args.facts, common);
    }
    let settings = if args.save.is_some() { Settings::All } else { Settings::OfRules };
    let facts = match facts::get(&args.facts, settings) {
        Ok(facts) => facts,
        Err(error) => return error.tell(),
    };
    if let Some(path) = &args.save
        && let Err(why) = facts::save(&facts, path)
    {
        eprintln!("weir: {why}");
        return Exit::Failed;
    }
    let report = diagnose(&facts);
    let printed = if args.facts.json {
        print_json(&value(&facts, &report))
    } else {
        print(&render::doctor::report(&facts, &report, common.colours_stdout()))
    };
    ended(printed, &report)
}

/// The exit code: what went wrong in saying it comes before what was said.
fn ended(printed: Exit, report: &Report) -> Exit {
    match printed {
        Exit::Done if report.has_weight() => Exit::Findings,
        printed => printed,
    }
}

/// The report as JSON, with what it was made from in a few words.
fn value(facts: &Facts, report: &Report) -> Value {
    let namespaces = facts.namespaces.iter().map(|namespace| {
        json!({ "inode": namespace.inode, "name": namespace.name, "is_own": namespace.is_own })
    });
    json!({
        "taken_at_unix_ms": facts.taken_at_unix_ms,
        "looked_for_ms": facts::looked_for_ms(facts),
        "kernel": facts.host.kernel_release,
        "namespaces": namespaces.collect::<Value>(),
        "has_weight": report.has_weight(),
        "findings": report.findings,
        "could_not_check": report.could_not_check,
    })
}
