//! `weir bench`: measurements, and test servers for them.

mod authorities;
mod carry_out;
mod compare;
mod connect;
mod http;
mod limit;
mod live;
mod measure;
mod output;
pub(crate) mod pages;
mod report;
mod serve;
mod table;
mod upload;
mod words;

use crate::flags::{BenchArgs, BenchVerb, Common, Exit};

pub(crate) fn run(args: &BenchArgs, common: Common) -> Exit {
    match &args.verb {
        Some(BenchVerb::Connect(args)) => connect::run(args, common),
        Some(BenchVerb::Limit(args)) => limit::run(args, common),
        Some(BenchVerb::Compare(args)) => compare::run(args, common),
        Some(BenchVerb::Serve(args)) => serve::run(args, common),
        Some(BenchVerb::Upload(args)) => upload::run(args, common),
        None => http::run(&args.http, common),
    }
}
