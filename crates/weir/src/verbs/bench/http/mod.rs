//! `weir bench URL`: HTTP load.

mod asked;

use load::engine::plan::{Plan, Protocol};
use load::engine::prepare;

use crate::flags::bench::http::HttpArgs;
use crate::flags::{Common, Exit};

use super::measure::{Measured, measure};
use super::{refused, report, table};

pub(crate) use asked::{Wanted, raise_descriptors};

pub(crate) fn run(args: &HttpArgs, common: Common) -> Exit {
    let plan = match plan(args) {
        Ok(plan) => plan,
        Err(refusal) => return refused(&refusal),
    };
    let Measured { mut run, interrupted } = match measure(plan, !args.report.quiet, common) {
        Ok(measured) => measured,
        Err(error) => return super::failed(&format!("the load cannot begin: {error}")),
    };
    let conditions = args.expect.iter().flat_map(|conditions| conditions.iter());
    run.expectations = conditions.map(|condition| condition.judge(&run)).collect();
    // Files first: whoever reads the table may have closed it.
    let written = report::write(&run, &args.report);
    super::print(&table::text(&run, interrupted, common.colours_stdout()));
    match written {
        Ok(()) => super::verdict(&run),
        Err(error) => super::failed(&error),
    }
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
