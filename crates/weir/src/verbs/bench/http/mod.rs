//! `weir bench URL`: HTTP load.

mod asked;

use load::engine::plan::{Plan, Protocol};
use load::engine::prepare;

use crate::flags::bench::http::HttpArgs;
use crate::flags::{Common, Exit};

use super::carry_out;

pub(crate) use asked::{Wanted, raise_descriptors};

pub(crate) fn run(args: &HttpArgs, common: Common) -> Exit {
    carry_out(plan(args), &args.report, &args.expect, common, |_| String::new())
}

/// The plan for what was asked, with every server greeted.
fn plan(args: &HttpArgs) -> Result<Plan, prepare::Refusal> {
    let wanted = Wanted::read(args)?;
    let shape = Wanted::shape(&args.shape)?;
    wanted.plan(shape, &args.shape)
}

/// What is spoken.
pub(crate) fn protocol(args: &HttpArgs) -> Protocol {
    if args.ways.http2 { Protocol::Http2 } else { Protocol::Http1 }
}
