//! `weir lab`: networks with faults, and incidents on them.

mod link;

use crate::flags::{Common, Exit, LabArgs, LabVerb};

pub(crate) fn run(args: &LabArgs, _common: Common) -> Exit {
    match &args.verb {
        LabVerb::Link(args) => link::run(args),
    }
}

/// Says why the lab could not do what it was asked for.
fn failed(why: &str) -> Exit {
    eprintln!("weir lab: {why}");
    Exit::Failed
}
