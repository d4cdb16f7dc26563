//! `weir bench URL`: HTTP load.

mod asked;

use load::engine::Refusal;
use load::engine::plan::Plan;

use crate::flags::bench::http::HttpArgs;
use crate::flags::{Common, Exit};

use super::carry_out::carry_out;

pub(crate) use asked::{Wanted, raise_descriptors};

pub(crate) fn run(args: &HttpArgs, common: Common) -> Exit {
    carry_out(plan(args), &args.report, &args.expect, common, |_| String::new())
}

/// The plan for what was asked, with every server greeted.
fn plan(args: &HttpArgs) -> Result<Plan, Refusal> {
    let wanted = Wanted::read(args)?;
    let shape = Wanted::shape(&args.shape)?;
    wanted.plan(shape, &args.shape)
}
