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

/// A wall-clock time as figures carry it.
fn rfc3339(since_epoch: std::time::Duration) -> String {
    let text = observe::TimestampCache::default().at(since_epoch);
    String::from_utf8_lossy(text.as_bytes()).into_owned()
}

/// This machine, as figures name it.
fn host() -> load::report::run::Host {
    load::report::run::Host {
        name: os::process::host_name(),
        kernel: os::process::kernel_release(),
        cpus: u32::try_from(os::cpu::cores()).unwrap_or(u32::MAX),
        ..Default::default()
    }
}

/// Says in one line why nothing came of it.
fn failed(why: &str) -> Exit {
    eprintln!("weir: {why}");
    Exit::Failed
}
