//! `weir bench`: measuring, and what measurements are made with.

mod compare;
mod serve;
mod upload;

use crate::flags::{BenchArgs, BenchVerb, Common, Exit};

pub(crate) fn run(args: &BenchArgs, common: Common) -> Exit {
    match &args.verb {
        BenchVerb::Compare(args) => compare::run(args, common),
        BenchVerb::Serve(args) => serve::run(args, common),
        BenchVerb::Upload(args) => upload::run(args, common),
    }
}

/// Says in one line why nothing came of it.
fn failed(why: &str) -> Exit {
    eprintln!("weir: {why}");
    Exit::Failed
}
